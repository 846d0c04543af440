package rate

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int64
		per  time.Duration
	}{
		{"20/s", 20, time.Second}, {"500/m", 500, time.Minute}, {"4500/h", 4500, time.Hour}, {"100000/d", 100000, 24 * time.Hour},
		{"300/10s", 300, 10 * time.Second}, {"5/1.5s", 5, 1500 * time.Millisecond}, {"1/250ms", 1, 250 * time.Millisecond},
		{" 7 / 2d ", 7, 48 * time.Hour}, {"2/.5s", 2, 500 * time.Millisecond}, {"9/1h30m", 9, 90 * time.Minute},
		// As people write them.
		{"100/min", 100, time.Minute}, {"100/minute", 100, time.Minute}, {"100 / Minute", 100, time.Minute}, {"300/5m", 300, 5 * time.Minute},
		{"300/5 min", 300, 5 * time.Minute}, {"300 per 5 minutes", 300, 5 * time.Minute}, {"5 per second", 5, time.Second}, {"5 a second", 5, time.Second},
		{"5 requests per second", 5, time.Second}, {"5 requests/second", 5, time.Second}, {"1 req every 2s", 1, 2 * time.Second}, {"20 in 10 secs", 20, 10 * time.Second},
		{"10rps", 10, time.Second}, {"10 RPS", 10, time.Second}, {"600rpm", 600, time.Minute}, {"100rph", 100, time.Hour}, {"3qps", 3, time.Second},
		{"1k/h", 1000, time.Hour}, {"10K per day", 10_000, 24 * time.Hour}, {"1,000/h", 1000, time.Hour}, {"1_000_000/d", 1_000_000, 24 * time.Hour},
		{"30M/m", 30_000_000, time.Minute}, {"2m/h", 2_000_000, time.Hour}, {"1.5M/d", 1_500_000, 24 * time.Hour}, {"0.25k/s", 250, time.Second}, {".5k/s", 500, time.Second},
		{"70/week", 70, 7 * 24 * time.Hour}, {"70/w", 70, 7 * 24 * time.Hour}, {"70/2 weeks", 70, 14 * 24 * time.Hour}, {"9/19 days", 9, 19 * 24 * time.Hour}, {"1/0.5h", 1, 30 * time.Minute},
	} {
		r, err := Parse(c.text)
		if err != nil || r.N != c.n || r.Per != c.per {
			t.Errorf("%q: %d per %v, %v; want %d per %v", c.text, r.N, r.Per, err, c.n, c.per)
		}
	}
	for text, want := range map[string]string{
		"20":                                  `"20" does not say per what time`,
		"":                                    `"" does not say per what time`,
		"ten":                                 `"ten" does not say per what time`,
		"0/s":                                 `"0/s": "0" is not a whole number from 1 to`,
		"-3/s":                                `"-3/s": "-3" is not a whole number`,
		"+3/s":                                `"+3/s": "+3" is not a whole number`,
		"1.5/s":                               `"1.5/s": "1.5" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 3/2s)`,
		"2.5/min":                             `"2.5/min": "2.5" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 5/2min)`,
		"0.5 per minute":                      `"0.5 per minute": "0.5" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 1/2minute)`,
		"0.001/s":                             `"0.001/s": "0.001" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 1/1000s)`,
		"3.14159/s":                           `"3.14159/s": "3.14159" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 311/99s)`,
		"1.5/2s":                              `"1.5/2s": "1.5" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 3/4s)`,
		"1.5rps":                              `"1.5rps": "1.5" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 3/2s)`,
		"0.4/s":                               `"0.4/s": "0.4" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 2/5s)`,
		"1,5/s":                               `"1,5/s": "1,5" is not a whole number from 1 to 17592186044416 (a fraction is whole ones in a longer time, such as 3/2s)`,
		"10,00/s":                             `"10,00/s": "10,00" is not a whole number`,
		"5 tokens/s":                          `"5 tokens/s": "5 tokens" is not a whole number`,
		"/s":                                  `"/s": "" is not a whole number`,
		"per s":                               `"per s": "" is not a whole number`,
		"rps":                                 `"rps": "" is not a whole number`,
		"k/s":                                 `"k/s": "k" is not a whole number`,
		"1.0005k/s":                           `"1.0005k/s": "1.0005k" is not a whole number`,
		"1.k/s":                               `"1.k/s": "1.k" is not a whole number`,
		"0.0M/s":                              `"0.0M/s": "0.0M" is not a whole number`,
		"20/":                                 `"20/": "" is not a time up to a year`,
		"20/x":                                `"20/x": "x" is not a time up to a year`,
		"20/M":                                `"20/M": "M" is not a time up to a year`,
		"20/month":                            `"20/month": "month" is not a time up to a year`,
		"20/0s":                               `"20/0s": "0s" is not a time up to a year`,
		"20/-1s":                              `"20/-1s": "-1s" is not a time up to a year`,
		"20/10":                               `"20/10": "10" is not a time up to a year`,
		"1/400d":                              `"1/400d": "400d" is not a time up to a year`,
		"1/NaNd":                              `"1/NaNd": "NaNd" is not a time up to a year`,
		"1/s/s":                               `"1/s/s": "s/s" is not a time up to a year`,
		"1/1e99d":                             `"1/1e99d": "1e99d" is not a time up to a year`,
		"1/" + strings.Repeat("9", 400) + "d": `"1/9`,
		"20000000000k/s":                      `"20000000000k/s": "20000000000k" is not a whole number`,
	} {
		_, err := Parse(text)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ", expected "+Forms) {
			t.Errorf("%q: %v, want %s …, expected %s", text, err, want, Forms)
		}
	}
}

// Every form that errors and help name is one.
func TestForms(t *testing.T) {
	for form := range strings.SplitSeq(strings.ReplaceAll(Forms, " or ", ", "), ", ") {
		if _, err := Parse(strings.Trim(form, "'")); err != nil {
			t.Error(err)
		}
	}
}

// Every rate from Parse is within the bounds, and written back it reads as the same rate.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"20/s", "5 per second", "10rps", "1k/h", "300/5 min", "1,000/h", "9/1h30m", "2/.5s", "1/0.0000000001s", "1/" + strings.Repeat("9", 300) + "w", "a an per / k"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Parse(s)
		if err != nil {
			return
		}
		if r.N < 1 || r.N > limit.MaxCost || r.Per <= 0 || r.Per > Longest {
			t.Fatalf("%q: %d per %v", s, r.N, r.Per)
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Fatalf("%q is %v, and that is %v, %v", s, r, again, err)
		}
	})
}
