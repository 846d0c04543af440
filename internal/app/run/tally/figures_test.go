package tally

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
)

// If nonces must arrive in order, the ceiling follows from the round trips.
func TestCeilingOfNonces(t *testing.T) {
	const ms = time.Millisecond
	one := limit.One
	for _, c := range []struct {
		name     string
		limits   []format.Rate
		gap      time.Duration
		numbered bool
		sends    int
		took     time.Duration
		cost     limit.Cost
		want     time.Duration // that the best client takes
	}{
		{"no order", []format.Rate{{N: 20, Per: time.Second}}, 0, false, 100, 50 * ms, one, 0},
		{"one after the other", nil, 0, true, 100, 50 * ms, one, 5 * time.Second},
		{"answers of a near server", nil, 0, true, 5000, 100 * time.Nanosecond, one, 500 * time.Microsecond},
		{"the limit leaves time", []format.Rate{{N: 20, Per: time.Second}}, 0, true, 10, 50 * ms, one, 500 * ms},
		// 20 take until 400 ms; the first has arrived by 20 ms, and its place is free at 1021 ms.
		{"the limit binds", []format.Rate{{N: 20, Per: time.Second}}, 0, true, 21, 20 * ms, one, 1041 * ms},
		{"the trips bind", []format.Rate{{N: 20, Per: time.Second}}, 0, true, 60, 60 * ms, one, 3600 * ms},
		{"a gap", nil, 10 * ms, true, 11, 50 * ms, one, 150 * ms},
		{"what costs two", []format.Rate{{N: 2, Per: time.Second}}, 0, true, 2, 20 * ms, limit.Cost{limit.Requests: 2}, 1041 * ms},
		{"what is free", []format.Rate{{N: 1, Per: time.Second}}, 0, true, 5, 20 * ms, limit.Cost{}, 100 * ms},
		{"a bucket is not a window", []format.Rate{{N: 1, Per: time.Second, Bucket: true}}, 0, true, 5, 20 * ms, one, 100 * ms},
	} {
		f := NewFigures([]format.Key{{Name: "A"}, {Name: "B"}}, c.limits, c.gap, c.numbered)
		for range c.sends {
			f.sent(0, 1, c.took, true, c.cost)
		}
		if got := f.keys[1].takes(); got != c.want {
			t.Errorf("%s: the best client takes %v, expected %v", c.name, got, c.want)
		}
		if got := f.keys[0].takes(); got != 0 {
			t.Errorf("%s: for a key that sent nothing %v", c.name, got)
		}
		want := float64(0)
		if c.want > 0 {
			want = float64(c.sends) * float64(c.cost[limit.Requests]) / c.want.Seconds()
		}
		if got := f.InOrder(); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v/s, expected %v", c.name, got, want)
		}
	}
}

// Answers alone have a latency: the totals of a run without an answer have none, and zeros would be wrong. A latency of
// all keys weighs each answer the same.
func TestLatencyOfAllKeys(t *testing.T) {
	f := NewFigures([]format.Key{{Name: "A"}, {Name: "B"}}, nil, 0, false)
	f.sent(0, 0, time.Hour, false, limit.One)
	if got := f.All(); got != nil {
		t.Errorf("no answer, and yet a latency of %v", got)
	}
	f.sent(0, 0, 10*time.Millisecond, true, limit.One)
	for range 3 {
		f.sent(0, 1, 50*time.Millisecond, true, limit.One)
	}
	if got := f.All(); got == nil || got.Mean != 40 {
		t.Errorf("of 10 ms once and 50 ms three times: %v", got)
	}
}

// A key's percentage is that of its tightest limit, whatever the order of the limits.
func TestPercentOfTheTightestLimit(t *testing.T) {
	wide := format.Rate{N: 1000, Per: time.Second, Unit: limit.Requests}
	tight := format.Rate{N: 10, Per: time.Second, Unit: limit.Requests}
	var want float64
	for _, limits := range [][]format.Rate{{tight}, {wide, tight}, {tight, wide}} {
		f := NewFigures([]format.Key{{Name: "A"}}, limits, 0, false)
		for range 50 {
			f.sent(0, 0, time.Millisecond, true, limit.One)
		}
		var allowed []Allowed
		for _, l := range limits {
			allowed = append(allowed, Allowed{l.Unit, l.Within(time.Time{}, 10*time.Second, false)})
		}
		got := f.Totals([][]Allowed{allowed}, 10*time.Second)[0].Percent
		if want = max(want, got); got < 40 || got != want {
			t.Errorf("%v: %v %%, want %v %%, about half", limits, got, want)
		}
	}
}

func TestLatencyInWords(t *testing.T) {
	for want, l := range map[string]LatencyMS{
		"52.1 ms (median 52, p99 98.8)": {52.1, 52, 98.8}, "999 ms (median 900, p99 3400)": {999.4, 900, 3400},
		"3.4 s (median 3.2, p99 12)": {3400, 3200, 12_000}, "7200 s (median 0.5, p99 7300)": {7.2e6, 500, 7.3e6},
	} {
		if got := l.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// What the limits of the beginning allow with the order of nonces is forgotten when a limit changes.
func TestOrderOfNoncesAfterLimitsChange(t *testing.T) {
	twenty := format.Rate{N: 20, Per: time.Second}
	f := New(0, NewFigures([]format.Key{{Name: "A"}}, []format.Rate{twenty}, 0, true))
	for range 100 {
		f.Figures.sent(0, 0, time.Millisecond, true, limit.One)
	}
	if got := f.Figures.InOrder(); got < 20 || got > 30 {
		t.Errorf("with the limit, %g a second", got)
	}
	f.LimitsChange()
	if got := f.Figures.InOrder(); got < 500 || got > 1100 {
		t.Errorf("by the order of nonces alone, %g a second", got)
	}
}
