package rate

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// The figures for people about a limit, computed by hand: how much goes at once, how fast, how long
// something takes, and how far back it counts.
func TestLimitInFigures(t *testing.T) {
	window := Limit{N: 10, Per: 2 * time.Second}
	bucket := Limit{N: 10, Per: 2 * time.Second, Bucket: true}
	burst := Limit{N: 10, Per: 2 * time.Second, Bucket: true, Burst: 30}
	small := Limit{N: 10, Per: 2 * time.Second, Bucket: true, Burst: 1}
	unused := Limit{N: 10, Per: 2 * time.Second, Burst: 30} // a window has no burst
	for _, c := range []struct {
		name        string
		l           Limit
		most        int64
		remembers   time.Duration
		rule        string
		within      float64 // 5 s
		withinSoFar float64 // 5 s while it goes on
	}{
		{"a window", window, 10, 2 * time.Second, "10 requests per 2s", 35, 30},
		{"a bucket", bucket, 10, 4 * time.Second, "10 requests per 2s, a bucket of 10", 35, 35},
		{"a burst", burst, 30, 12 * time.Second, "10 requests per 2s, a bucket of 30", 55, 55},
		{"a burst of one", small, 1, 400 * time.Millisecond, "10 requests per 2s, a bucket of 1", 26, 26},
		{"a window with a burst", unused, 10, 2 * time.Second, "10 requests per 2s", 35, 30},
	} {
		l := c.l
		if l.Most() != c.most || l.Speed() != 5 || l.Remembers() != c.remembers || l.Within(time.Time{}, 5*time.Second, false) != c.within || l.Within(time.Time{}, 5*time.Second, true) != c.withinSoFar {
			t.Errorf("%s: %d at once, %g a second, remembers %v, within 5 s %g and %g", c.name, l.Most(), l.Speed(), l.Remembers(), l.Within(time.Time{}, 5*time.Second, false), l.Within(time.Time{}, 5*time.Second, true))
		}
		if got := l.Rule(); got != c.rule {
			t.Errorf("%s: its rule is %q", c.name, got)
		}
		if !l.Fits(c.most) || l.Fits(c.most+1) {
			t.Errorf("%s: %d fits %v, one more %v", c.name, c.most, l.Fits(c.most), l.Fits(c.most+1))
		}
		l.Alone = true
		if !l.Fits(c.most + 1) {
			t.Errorf("%s: more than it holds does not go alone", c.name)
		}
		if l.Alone, l.Produced = false, true; !l.Fits(c.most + 1) {
			t.Errorf("%s: more than it holds is not produced", c.name)
		}
	}
	// A window that has only just ended counts; one that has just begun does not.
	if got := window.Within(time.Time{}, 2*time.Second, true); got != 10 {
		t.Errorf("at the end of the first window: %g", got)
	}
	if got := window.Within(time.Time{}, 2050*time.Millisecond, true); got != 20 {
		t.Errorf("after the first window: %g", got)
	}
	if got := window.Within(time.Time{}, 0, true); got != 10 {
		t.Errorf("at the beginning: %g", got)
	}
}

// How long so much takes over several keys, by hand.
func TestLimitTakes(t *testing.T) {
	window := Limit{N: 10, Per: 2 * time.Second}
	bucket := Limit{N: 10, Per: 2 * time.Second, Bucket: true}
	for _, c := range []struct {
		l          Limit
		cost       int64
		keys, room int
		want       time.Duration
	}{
		{window, 0, 1, 0, 0}, {window, 10, 1, 0, 0}, {window, 11, 1, 0, 2 * time.Second}, {window, 20, 1, 0, 2 * time.Second}, {window, 21, 1, 0, 4 * time.Second},
		{window, 20, 2, 0, 0}, {window, 21, 2, 0, 2 * time.Second}, {window, 60, 3, 0, 2 * time.Second},
		{bucket, 0, 1, 0, 0}, {bucket, 10, 1, 10, 0}, {bucket, 11, 1, 10, 200 * time.Millisecond}, {bucket, 15, 1, 0, 3 * time.Second}, {bucket, 30, 2, 20, time.Second}, {bucket, 5, 1, 10, 0},
		{Limit{N: 1, Per: Longest}, 292, 1, 0, 291 * Longest}, {Limit{N: 1, Per: Longest}, 1000, 1, 0, math.MaxInt64},
		{Limit{N: 1, Per: Longest, Bucket: true}, 1000, 1, 0, math.MaxInt64}, {Limit{N: 1, Per: 24 * time.Hour, Zone: "UTC"}, limit.MaxCost, 1, 0, math.MaxInt64},
	} {
		if got := c.l.Takes(time.Time{}, c.cost, c.keys, int64(c.room)); got != c.want {
			t.Errorf("%d of %+v over %d keys with room for %d takes %v, want %v", c.cost, c.l, c.keys, c.room, got, c.want)
		}
	}
}

// A limiter made of a limit lets exactly so much go at once, and is of the kind that the limit
// says.
func TestLimiterOfALimit(t *testing.T) {
	for _, c := range []struct {
		l    Limit
		room int64
		at   mono.Time // when one more may go after all of it went at 0 and was answered at once
	}{
		{Limit{N: 3, Per: time.Second}, 3, mono.Time(time.Second)},
		{Limit{N: 3, Per: time.Second, Unit: limit.Orders}, 3, mono.Time(time.Second)},
		{Limit{N: 2, Per: time.Second, Bucket: true, Unit: limit.Tokens}, 2, mono.Time(time.Second / 2)},
		{Limit{N: 2, Per: time.Second, Bucket: true, Burst: 5}, 5, mono.Time(time.Second / 2)},
		{Limit{N: 2, Per: time.Second, Bucket: true, Burst: 5, Alone: true}, 5, mono.Time(time.Second / 2)},
	} {
		made, err := c.l.Limiter(limit.Arrivals{})
		if err != nil {
			t.Fatal(err)
		}
		if room := c.l.Room(made, 0); room != c.room {
			t.Errorf("%+v has room for %d", c.l, room)
		}
		cost, one := limit.Cost{}, limit.Cost{}
		cost[c.l.Unit], one[c.l.Unit] = c.room, 1
		lease := limittest.Admit(made, 0, cost)
		made.Settle(0, lease, &limit.Outcome{Result: limit.Accepted})
		if room := c.l.Room(made, 0); room != 0 {
			t.Errorf("%+v has room for %d when all of it went", c.l, room)
		}
		if at := made.Ready(0, one); at < c.at || at > c.at.Add(2*time.Millisecond) {
			t.Errorf("%+v: one more goes at %v, want %v", c.l, at, c.at)
		}
		large := limit.Cost{}
		large[c.l.Unit] = c.room + 1
		if never := made.Ready(0, large) == limit.Never; never == c.l.Alone {
			t.Errorf("%+v: more than it holds never goes: %v", c.l, never)
		}
	}
	produced := Limit{N: 2, Per: time.Second, Bucket: true, Burst: 5, Produced: true, Unit: limit.Output}
	made, err := produced.Limiter(limit.Arrivals{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := made.(*limit.Produced); !ok {
		t.Errorf("%+v is a %T", produced, made)
	}
	if _, err := (Limit{Per: time.Second, Text: "0/s"}).Limiter(limit.Arrivals{}); err == nil || !strings.HasPrefix(err.Error(), "limit 0/s: ") {
		t.Errorf("a limit of nothing: %v", err)
	}
}

// The text of a limit can be typed again and means the same.
func TestParseLimit(t *testing.T) {
	for s, want := range map[string]string{"20/s": "20/s", "300/5m": "300/5m", "5 per second": "5/s", "10rps": "10/s", "5 / s": "5/s"} {
		l, err := ParseLimit(s)
		if err != nil || l.Text != want {
			t.Errorf("%s: %+v, %v, want %s", s, l, err, want)
			continue
		}
		again, err := ParseLimit(l.Text)
		if err != nil || again != l || l.N <= 0 || l.Per <= 0 {
			t.Errorf("%s is %+v, and its text %+v, %v", s, l, again, err)
		}
	}
	if l, err := ParseLimit("many"); err == nil || l != (Limit{}) {
		t.Errorf("%+v, %v", l, err)
	}
}
