package limit

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// The shortest time of a fit before more is tried: a window in the first window, a minute or a
// window in a search. While the fit grows, it is a minute or two windows, but never more than ten
// minutes.
func TestFitLasts(t *testing.T) {
	for _, c := range []struct {
		state     fitState
		per, want time.Duration
	}{
		{trial, time.Second, time.Second}, {trial, time.Minute, time.Minute},
		{searching, time.Second, time.Minute}, {searching, time.Minute + 1, time.Minute + 1}, {searching, time.Hour, time.Hour},
		{growing, time.Second, time.Minute}, {growing, 30 * time.Second, time.Minute}, {growing, 31 * time.Second, 62 * time.Second},
		{growing, 5*time.Minute - 1, 10*time.Minute - 2}, {growing, time.Hour, 10 * time.Minute}, {growing, 24 * time.Hour, 10 * time.Minute},
	} {
		f := fit{rate: Rule{Per: c.per}, stage: stage{state: c.state}}
		if got := f.lasts(); got != c.want {
			t.Errorf("state %d, window of %v: %v, want %v", c.state, c.per, got, c.want)
		}
	}
}

// A refusal is evidence if something was served lately: in the last window. With one request at a
// time, that is in the last eight windows, or eight gaps.
func TestFitServes(t *testing.T) {
	for name, c := range map[string]struct {
		stage
		ago  time.Duration // since the last answer
		want bool
	}{
		"free":                         {stage{state: free, n: 10}, time.Second, true},
		"free, a window later":         {stage{state: free, n: 10}, 2 * time.Second, false},
		"one, never mind of what":      {stage{state: free, n: 1}, 2 * time.Second, false},
		"two fit, a window later":      {stage{state: held, n: 2}, 2 * time.Second, false},
		"one fits, within the window":  {stage{state: held, n: 1}, time.Second, true},
		"one fits, in eight":           {stage{state: held, n: 1}, 8*time.Second - 1, true},
		"one fits, after eight":        {stage{state: held, n: 1}, 8 * time.Second, false},
		"one in a minute, in eight":    {stage{state: held, n: 1, gap: time.Minute}, 8*time.Minute - 1, true},
		"one in a minute, after eight": {stage{state: held, n: 1, gap: time.Minute}, 8 * time.Minute, false},
		"less than a window apart":     {stage{state: growing, n: 1, gap: time.Millisecond}, 8*time.Second - 1, true},
	} {
		f := NewFitted(MustRolling(10, time.Second))
		f.Settle(0, admit(f, 0, One), &Outcome{Result: Accepted})
		t0 := &f.fits[0]
		t0.stage, t0.answered = c.stage, 0
		if got := t0.serves(mono.Time(c.ago)); got != c.want {
			t.Errorf("%s: after %v %v", name, c.ago, got)
		}
	}
}

// A search tries half of the accepted cost, rounded up. It never tries more than half of the
// refused cost, nor less than one.
func TestFitHalves(t *testing.T) {
	for _, c := range []struct{ fits, below, want int64 }{
		{20, 40, 10}, {21, 40, 11}, {40, 20, 10}, {40, 21, 11}, {40, 19, 10}, {1, 40, 1}, {0, 40, 1}, {5, 2, 1}, {5, 1, 1},
	} {
		f := NewFitted(MustRolling(100, time.Second))
		t0 := &f.fits[0]
		t0.state, t0.below = searching, c.below
		if t0.set(0, &cause{fits: c.fits}); t0.n != c.want || t0.low != c.want {
			t.Errorf("%d accepted of %d: %d are tried, and %d is safe, want %d", c.fits, c.below, t0.n, t0.low, c.want)
		}
	}
}

// A search ends when the good and the bad value are a tenth apart. The good value holds until the
// end of the pause.
func TestFitFound(t *testing.T) {
	for _, c := range []struct {
		low, high int64
		want      bool
	}{{10, 11, true}, {10, 12, true}, {10, 13, false}, {100, 111, true}, {100, 112, false}, {9, 10, true}, {9, 11, false}} {
		f := fit{stage: stage{state: searching, n: c.low, low: c.low, high: c.high, caution: caution{times: 3}}}
		found := f.found(mono.Time(time.Hour))
		if want := mono.Time(time.Hour).Add(4 * cautionPause); found != c.want || (f.state == held) != c.want || c.want && f.until != want {
			t.Errorf("%d holds and %d does not: %v, state %d until %v, want %v", c.low, c.high, found, f.state, f.until, c.want)
		}
	}
}

// If even one at a time is refused, the gap holds for as long as a search result: ten minutes, and
// twice as long after each earlier proof. A pause that ends later does not become shorter.
func TestFitRefusesEvenOne(t *testing.T) {
	now := mono.Time(time.Hour)
	for _, c := range []struct {
		times int
		until mono.Time
		want  mono.Time
	}{
		{0, mono.Min, now.Add(10 * time.Minute)}, {1, mono.Min, now.Add(10 * time.Minute)}, {2, mono.Min, now.Add(20 * time.Minute)},
		{3, mono.Min, now.Add(40 * time.Minute)}, {1, now.Add(5 * time.Hour), now.Add(5 * time.Hour)},
	} {
		f := NewFitted(MustRolling(100, time.Second))
		t0 := &f.fits[0]
		t0.stage = stage{state: held, n: 1, low: 1, caution: caution{until: c.until, times: c.times}}
		if t0.refused(now, new(cause)); t0.state != held || t0.until != c.want {
			t.Errorf("wrong %d times before: state %d until %v, want %v", c.times, t0.state, t0.until, c.want)
		}
	}
}

// Served requests are news at least once per eighth: after each answer at first, later after at
// most an eighth more.
func TestFitNews(t *testing.T) {
	f, last, all := fit{stage: stage{n: MaxCost}}, 0, 0
	for i := 1; i <= 1000; i++ {
		if f.serve(mono.Time(i), 1) {
			last, all = i, all+1
		} else if i-last > max(last/8, 1) {
			t.Fatalf("%d were served, and %d when it was news last", i, last)
		}
	}
	if all > 200 {
		t.Errorf("of 1000 %d were news", all)
	}
}
