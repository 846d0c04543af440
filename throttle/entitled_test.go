package throttle

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Who is entitled to a quarter of a window goes early enough to have three fifths of that, or a ninth of what time the others leave of
// it; and not earlier than planned where it has that.
func TestEntitledToAWindow(t *testing.T) {
	const plan = 1000
	for name, c := range map[string]struct {
		served, before, left, rate, want float64
	}{
		"nothing served yet":             {0, 60, 100, 0, 60.0 / 15},
		"a third":                        {5, 60, 100, 0, 60.0 / 10},
		"less than one":                  {14.5, 60, 100, 0, 120},
		"all that is due":                {15, 60, 100, 0, plan},
		"more":                           {20, 60, 100, 0, plan},
		"nothing is left":                {0, 60, 0.5, 0, plan},
		"one is left":                    {0, 60, 1, 0, 4},
		"others are slow":                {0, 60, 100, 0.1, 4},
		"others hurry":                   {0, 60, 100, 10, 0.1 * 10 / 15},
		"planned sooner":                 {0, 60000, 100, 0, plan},
		"others would take all soon, of": {5, 60, 20, 20, 0.1 * 1 / 10},
	} {
		e := entitled{sharers: 4, served: c.served}
		got := e.by(&sighting{sent: sent{at: second(500)}}, second(500+plan), 100, c.before, c.left, c.rate)
		if d := got.Sub(second(500 + c.want)); d.Abs() > time.Microsecond {
			t.Errorf("%s: %v after, want %v", name, got.Sub(second(500)), c.want)
		}
	}
	nobodySaid := entitled{}
	if got := nobodySaid.by(&sighting{}, second(plan), 100, 60, 100, 0); got != second(plan) {
		t.Errorf("nobody said how many share, and it goes at %v", got)
	}
}

// In each window what was served counts anew. Who is refused more than a fiftieth of the time believes in as many more sharers; else in half
// again as many as was said.
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

// Who weighs twice as much is one of half as many.
func TestEntitledByWeight(t *testing.T) {
	c := hourly
	c.Sharers, c.Weight = 10, 2
	if f := fairOf(t, c); f.entitled.most() != 7.5 || f.clamp(100) != 7.5 {
		t.Errorf("one of ten, of weight 2, believes in %v, and keeps to %v", f.entitled.most(), f.clamp(100))
	}
}

// What was had of it counts in units of cost.
func TestEntitledInUnits(t *testing.T) {
	c := FairConfig{Kind: TokenBucket, Limit: 36000, Window: time.Hour, Unit: limit.Tokens, MeanCost: 10, Sharers: 3}
	f := fairOf(t, c)
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Tokens, Remaining: limit.Cost{limit.Tokens: 500}}
	f.Settle(0, f.Admit(0, limit.Cost{limit.Tokens: 25}), o)
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
		f.Settle(now, f.Admit(now, limit.One), limit.Outcome{Result: limit.Limited, Known: 1})
	}
	if f.n <= 4.5 {
		t.Errorf("refused a hundred times, it keeps to %v", f.n)
	}
}
