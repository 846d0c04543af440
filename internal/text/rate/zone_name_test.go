package rate

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test does not depend on the machine's zones

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestParseLimitOfAZone(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]Limit{
		"100/d@America/Los_Angeles":               {N: 100, Per: day, Zone: "America/Los_Angeles", Text: "100/d@America/Los_Angeles"},
		"1k per day @ Europe/Berlin":              {N: 1000, Per: day, Zone: "Europe/Berlin", Text: "1000/d@Europe/Berlin"},
		"50 requests/week@UTC":                    {N: 50, Per: 7 * day, Zone: "UTC", Text: "50/w@UTC"},
		"50/168h@UTC":                             {N: 50, Per: 7 * day, Zone: "UTC", Text: "50/w@UTC"},
		"9/month@Asia/Kolkata":                    {N: 9, Per: limit.Month, Zone: "Asia/Kolkata", Text: "9/month@Asia/Kolkata"},
		"20/6h@Asia/Kolkata":                      {N: 20, Per: 6 * time.Hour, Zone: "Asia/Kolkata", Text: "20/6h0m0s@Asia/Kolkata"},
		"300rpd@America/Argentina/ComodRivadavia": {N: 300, Per: day, Zone: "America/Argentina/ComodRivadavia", Text: "300/d@America/Argentina/ComodRivadavia"},
		"1/d@Etc/GMT+8":                           {N: 1, Per: day, Zone: "Etc/GMT+8", Text: "1/d@Etc/GMT+8"},
	} {
		l, err := ParseLimit(s)
		if err != nil || l != want {
			t.Errorf("%s: %+v, %v, want %+v", s, l, err, want)
			continue
		}
		if again, err := ParseLimit(l.Text); err != nil || again != l {
			t.Errorf("%s is read as %+v, %v", l.Text, again, err)
		}
		if strings.Contains(l.Text, " ") {
			t.Errorf("%q needs quotes", l.Text)
		}
	}
	for s, says := range map[string]string{
		"100/d@":                    `"100/d@": no zone after the @, expected one such as America/Los_Angeles, Europe/Berlin or UTC`,
		"100/d@Mars/Phobos":         `"100/d@Mars/Phobos": "Mars/Phobos" is no time zone, expected one such as America/Los_Angeles`,
		"100/d@america/los angeles": `"america/los angeles" is no time zone, expected America/Los_Angeles`,
		"100/d@utc":                 `"utc" is no time zone, expected UTC`,
		"100/d@PST":                 `"PST" is no place, and may have no summer time, expected the zone of one, such as America/Los_Angeles`,
		"100/d@EST":                 `expected the zone of one, such as America/New_York`,
		"100/d@Local":               `"Local" is another zone on each machine`,
		"100/d@../../etc/passwd":    `is no time zone`,
		"100/d@UTC@UTC":             `"UTC@UTC" is no time zone`,
		"100/2d@UTC":                `"100/2d@UTC": "2d" has no beginning by the clock of a place, expected d, w, month, or a part of a day such as h or 6h`,
		"100/30d@UTC":               `"30d" has no beginning`,
		"100/5h@UTC":                `"5h" has no beginning`,
		"1.5/month@UTC":             `"1.5" is not a whole number`,
		"100/month":                 `"month" is not a time up to a year (30 days are 30d; months are those of a place, such as 100/month@America/Los_Angeles)`,
		"100@UTC":                   `"100" does not say per what time`,
	} {
		if l, err := ParseLimit(s); err == nil || !strings.Contains(err.Error(), says) || l != (Limit{}) {
			t.Errorf("%s: %+v, %v, want %q", s, l, err, says)
		}
	}
}

// A limit of a place, in figures: 100 a day of Los Angeles, over the end of summer time.
func TestLimitOfAZoneInFigures(t *testing.T) {
	l, err := ParseLimit(ZoneForm)
	if err != nil {
		t.Fatal(err)
	}
	zone, err := location(l.Zone)
	if err != nil {
		t.Fatal(err)
	}
	evening := time.Date(2026, 10, 31, 20, 0, 0, 0, zone)
	for cost, want := range map[int64]time.Duration{1: 0, 100: 0, 101: 4 * time.Hour, 200: 4 * time.Hour, 201: 29 * time.Hour, 1_000_000: 9999*24*time.Hour - 19*time.Hour} {
		if got := l.Takes(evening, cost, 1, 100); got < want-2*time.Hour || got > want+2*time.Hour || cost < 1000 && got != want {
			t.Errorf("%d take %v, want %v", cost, got, want)
		}
	}
	if got := l.Takes(evening, 400, 2, 200); got != 4*time.Hour {
		t.Errorf("400 by two keys take %v", got)
	}
	for d, want := range map[time.Duration]float64{time.Hour: 100, 5 * time.Hour: 200, 28 * time.Hour: 200, 29 * time.Hour: 300} {
		if got := l.Within(evening, d, true); got != want {
			t.Errorf("%g may go in %v, want %g", got, d, want)
		}
	}
	if l.Remembers() != 27*time.Hour+100*time.Millisecond || l.Most() != 100 || !l.Fits(100) || l.Fits(101) {
		t.Errorf("remembers %v, %d at once", l.Remembers(), l.Most())
	}
	if got, want := l.Rule(), "100 requests per 24h0m0s, by the clock of America/Los_Angeles"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	made, err := l.Limiter(limit.Arrivals{})
	if err != nil {
		t.Fatal(err)
	}
	limit.SetEpoch(made, evening)
	made.Settle(0, limittest.Admit(made, 0, limit.Cost{limit.Requests: 100}), &limit.Outcome{Result: limit.Accepted})
	if got, want := made.Ready(0, limit.One), mono.Time(4*time.Hour+50*time.Millisecond); got != want {
		t.Errorf("the next goes at %v, want %v", got, want)
	}
	hours, err := ParseLimit("5/h@Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	if at := time.Date(2026, 11, 1, 0, 10, 0, 0, time.UTC); hours.Within(at, 10*time.Minute, true) != 5 || hours.Within(at, 30*time.Minute, true) != 10 || hours.Takes(at, 11, 1, 0) != 80*time.Minute {
		t.Errorf("%g and %g may go; 11 take %v", hours.Within(at, 10*time.Minute, true), hours.Within(at, 30*time.Minute, true), hours.Takes(at, 11, 1, 0))
	}
	for _, wrong := range []Limit{{N: 1, Per: time.Hour, Zone: "UTC", Bucket: true, Text: "1/h@UTC"}, {N: 1, Per: time.Hour, Zone: "Mars", Text: "1/h@Mars"}} {
		if _, err := wrong.Limiter(limit.Arrivals{}); err == nil || !strings.HasPrefix(err.Error(), "limit "+wrong.Text+": ") {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}
