package rate

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

func TestParseCounted(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		text string
		want Limit
	}{
		{"500/m", Limit{N: 500, Per: time.Minute, Text: "500/m"}},
		{"20 requests per second", Limit{N: 20, Per: time.Second, Text: "20/s"}},
		{"200k tokens/d", Limit{N: 200_000, Per: day, Unit: limit.Tokens, Text: "200000 tokens/d"}},
		{"30,000 input/min", Limit{N: 30_000, Per: time.Minute, Unit: limit.Input, Text: "30000 input tokens/m"}},
		{"30000 input tokens/m", Limit{N: 30_000, Per: time.Minute, Unit: limit.Input, Text: "30000 input tokens/m"}},
		{"8k output per minute", Limit{N: 8000, Per: time.Minute, Unit: limit.Output, Text: "8000 output tokens/m"}},
		{"6000 weight/m", Limit{N: 6000, Per: time.Minute, Unit: limit.Weight, Text: "6000 weight/m"}},
		{"5USD/d", Limit{N: 5_000_000, Per: day, Unit: limit.Money, Text: "5USD/d"}},
		{"$0.5/h", Limit{N: 500_000, Per: time.Hour, Unit: limit.Money, Text: "0.5USD/h"}},
		{"5USD/d@America/Los_Angeles", Limit{N: 5_000_000, Per: day, Unit: limit.Money, Zone: "America/Los_Angeles", Text: "5USD/d@America/Los_Angeles"}},
		{"200k tokens/month@UTC", Limit{N: 200_000, Per: limit.Month, Unit: limit.Tokens, Zone: "UTC", Text: "200000 tokens/month@UTC"}},
		{"1.25 USD/2d", Limit{N: 1_250_000, Per: 2 * day, Unit: limit.Money, Text: "1.25USD/48h0m0s"}},
	} {
		got, err := ParseCounted(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
			continue
		}
		if again, err := ParseCounted(got.Text); err != nil || again != got {
			t.Errorf("%q is read as %+v, %v; it was %+v", got.Text, again, err, got)
		}
	}
	for text, says := range map[string]string{
		"500":            `"500" does not say per what time, expected 100/min, 4500/h, 200000 tokens/d`,
		"5 apples/d":     `"5 apples/d": "apples" is no unit, expected 100/min`,
		"1EUR/d":         `"1EUR/d": "EUR" is no unit, expected 100/min, 4500/h, 200000 tokens/d, 50k input/m, 20k output/m, 5USD/d`,
		"5 tokens/x":     `"x" is not a time`,
		"5 apples+/d":    `"5 apples+" is not a whole number`,
		"1.5 tokens/d":   `"1.5" is not a whole number from 1`,
		"tokens/d":       `"tokens" is not a whole number`,
		"USD/d":          `"USD" is no sum of dollars`,
		"-5USD/d":        `"-5USD" is no sum of dollars`,
		"1e300USD/d":     "is no sum of dollars",
		"0.0000001USD/d": "is no sum of dollars",
		"nanUSD/d":       "is no sum of dollars",
		"5USD/2d@UTC":    `"5USD/2d@UTC": "2d" has no beginning by the clock of a place, expected d, w, month, or a part of a day`,
		"5USD/d@Mars":    `"5USD/d@Mars": "Mars" is no time zone, expected one such as America/Los_Angeles`,
		"5USD/month":     `"month" is not a time up to a year (30 days are 30d; months are those of a place, such as 100/month@America/Los_Angeles), expected 100/min`,
	} {
		if got, err := ParseCounted(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, says)
		}
	}
}

// A limit written back reads as the same limit.
func FuzzParseCounted(f *testing.F) {
	for _, s := range []string{"500/m", "200k tokens/d", "$0.5/h", "1.25 USD/2d", "5USD/month@Europe/Berlin", "1/6h@Asia/Kolkata", "8k output per minute", "1,000 orders/1.5s", "0.000001USD/300ms"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseCounted(s)
		if err != nil {
			return
		}
		if l.N < 1 || l.N > limit.MaxCost || l.Per <= 0 || l.Per > Longest {
			t.Fatalf("%q: %+v", s, l)
		}
		if again, err := ParseCounted(l.Text); err != nil || again != l {
			t.Fatalf("%q is %+v, and that is read as %+v, %v", s, l, again, err)
		}
	})
}
