package fairshare

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A process entitled to a quarter of a window sends early enough for three fifths of that by four
// fifths of the time left. Where others hurry, or did in the window before, it is a tenth of the
// time that they leave. It does not send earlier than planned once it has that.
func TestEntitledToAWindow(t *testing.T) {
	const plan = 1000
	for name, c := range map[string]struct {
		served, before, left float64
		haste                int
		want                 float64
	}{
		"nothing served yet":             {0, 60, 100, 0, 0.8 * 60.0 / 15},
		"a third":                        {5, 60, 100, 0, 0.8 * 60.0 / 10},
		"less than one":                  {14.5, 60, 100, 0, 0.8 * 120},
		"all that is due":                {15, 60, 100, 0, plan},
		"more":                           {20, 60, 100, 0, plan},
		"nothing is left":                {0, 60, 0.5, 0, plan},
		"one is left":                    {0, 60, 1, 0, 0.1 * 540 / 99 / 15},
		"as many were taken as is fair":  {0, 300, 50, 0, 0.8 * 300 / 15},
		"a few more":                     {0, 300, 44, 0, 0.8 * 300 / 15},
		"others hurry":                   {0, 300, 36, 0, 0.1 * 36 / 64 * 300 / 15},
		"they hurried before":            {0, 300, 50, 1, 0.1 * 50 / 50 * 300 / 15},
		"they have not begun yet":        {0, 300, 100, 1, 0.8 * 300 / 15},
		"ten at once, as a window opens": {0, 600, 90, 0, 0.1 * 90 / 10 * 0.001 / 15},
		"half of it, as a window opens":  {0, 595, 50, 0, 0.1 * 50 / 50 * 5.0 / 15},
		"planned sooner":                 {0, 60000, 100, 0, plan},
	} {
		w := newWindowLevel(100, max(10*time.Minute, Seconds(c.before)))
		e := entitled{sharers: 4, served: c.served, haste: c.haste}
		got := e.by(&sighting{sent: sent{at: second(500)}, left: c.left}, second(500+plan), &w, c.before)
		if d := got.Sub(second(500 + c.want)); d.Abs() > time.Microsecond {
			t.Errorf("%s: %v after, want %v", name, got.Sub(second(500)), Seconds(c.want))
		}
	}
	w, nobodySaid := newWindowLevel(100, time.Minute), entitled{}
	if got := nobodySaid.by(&sighting{left: 100}, second(plan), &w, 60); got != second(plan) {
		t.Errorf("nobody said how many share, and it goes at %v", got)
	}
}

// A process that finds a window used up long before its end hurries in the next two. It does not
// after the first window, nor at the end of one.
func TestEntitledToHaste(t *testing.T) {
	w := newWindowLevel(100, time.Minute)
	for _, c := range []struct {
		name   string
		s      sighting
		before float64 // the end
		want   int
	}{
		{"used up", sighting{window: 1, none: true}, 50, 2},
		{"refused", sighting{window: 1, limited: true}, 50, 2},
		{"something is left", sighting{window: 1}, 50, 0},
		{"at the end", sighting{window: 1, none: true}, 3, 0},
		{"the first window", sighting{none: true}, 50, 0},
	} {
		e := entitled{sharers: 4}
		c.s.ends, c.s.mid = second(100), second(100-c.before)
		e.look(&c.s, &w)
		for k, want := range []int{c.want, max(c.want-1, 0), 0} {
			e.heed(&sighting{window: 2 + k}, 1)
			e.heed(&sighting{window: 2 + k}, 1)
			if e.haste != want {
				t.Errorf("%s: %d windows later haste is %d, want %d", c.name, k+1, e.haste, want)
			}
		}
	}
	e := entitled{sharers: 4}
	e.look(&sighting{window: 1, none: true, ends: mono.Min}, &w)
	if e.haste != 0 {
		t.Error("nobody knows when the window ends, and it hurries")
	}
}

// The served amount counts anew in each window. A process that is refused more than a fiftieth of
// the time assumes as many more sharers. Otherwise it assumes half again as many as configured.
func TestEntitledHeeds(t *testing.T) {
	e := entitled{sharers: 4}
	e.heed(&sighting{window: 1}, 3)
	e.heed(&sighting{window: 1}, 2)
	e.heed(&sighting{window: 1, limited: true}, 7) // took nothing
	if e.served != 5 {
		t.Errorf("%v served in the first window", e.served)
	}
	e.heed(&sighting{window: 2}, 2)
	if e.served != 2 {
		t.Errorf("%v served in the second", e.served)
	}
	e = entitled{sharers: 4}
	for i := range 1000 {
		e.heed(&sighting{limited: i%100 == 0}, 1)
	}
	if e.most() != 6 {
		t.Errorf("a hundredth is refused: %v", e.most())
	}
	for range 1000 {
		e.heed(&sighting{limited: true}, 0)
	}
	if math.Abs(e.most()-6*50) > 1e-3 {
		t.Errorf("all is refused: %v", e.most())
	}
	nobodySaid := entitled{}
	nobodySaid.heed(&sighting{limited: true}, 1)
	if nobodySaid != (entitled{}) {
		t.Errorf("nobody said how many share: %+v", nobodySaid)
	}
}

// A process of twice the weight is one of half as many.
func TestEntitledByWeight(t *testing.T) {
	c := hourly
	c.Sharers, c.Weight = 10, 2
	if f := fairOf(t, c); f.entitled.most() != 7.5 || f.clamp(100) != 7.5 {
		t.Errorf("one of ten, of weight 2, believes in %v, and keeps to %v", f.entitled.most(), f.clamp(100))
	}
}

// The served amount counts in units of cost.
func TestEntitledInUnits(t *testing.T) {
	c := FairConfig{Kind: TokenBucket, Limit: 36000, Window: time.Hour, Unit: limit.Tokens, MeanCost: 10, Sharers: 3}
	f := fairOf(t, c)
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Tokens, Remaining: limit.Cost{limit.Tokens: 500}}
	f.Settle(0, limittest.Admit(f, 0, limit.Cost{limit.Tokens: 25}), &o)
	if f.entitled.served != 2.5 {
		t.Errorf("25 tokens are %v units of 10", f.entitled.served)
	}
}

// Refusals are heeded as well: where most are refused they are more than was said.
func TestEntitledAndRefused(t *testing.T) {
	c := hourly
	c.Kind, c.Sharers = TokenBucket, 3
	f := fairOf(t, c)
	f.hears(0, 500, 0)
	for range 100 {
		now := f.Ready(f.last, limit.One)
		f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Limited, Known: 1})
	}
	if f.n <= 4.5 {
		t.Errorf("refused a hundred times, it keeps to %v", f.n)
	}
}
