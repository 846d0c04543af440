package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// A Varying changes to limits that it has already, the first of them too. Then requests in flight
// are in flight once, and answered requests stay answered.
func TestVaryingToTheSame(t *testing.T) {
	two := must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2}))
	v := limit.NewVarying(two, limit.MustRolling(50, time.Second))
	a := limittest.Admit(v, 0, limit.One)
	v.Change(0, two, limit.MustRolling(60, time.Second))
	if got := v.Ready(0, limit.One); got != 0 {
		t.Errorf("with one of two in flight the next goes at %v", got)
	}
	b := limittest.Admit(v, 0, limit.One)
	v.Settle(0, a, &limit.Outcome{Result: limit.Accepted})
	v.Settle(0, b, &limit.Outcome{Result: limit.Accepted})
	if n := limit.Unsettled(two); n != 0 {
		t.Errorf("%d are in flight", n)
	}
}

// Follow with equal rates keeps the knowledge about them. For another window or another order
// nothing is known.
func TestFollowOfTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		other []limit.Limiter
		kept  bool
	}{
		"the same":       {nil, true},
		"another window": {[]limit.Limiter{limit.MustRolling(5, time.Second), limit.MustRolling(100, 2*time.Minute)}, false},
		"another order":  {[]limit.Limiter{limit.MustRolling(100, time.Minute), limit.MustRolling(5, time.Second)}, false},
		"one less":       {[]limit.Limiter{limit.MustRolling(5, time.Second)}, false},
		"one more":       {[]limit.Limiter{limit.MustRolling(5, time.Second), limit.MustRolling(100, time.Minute), limit.MustRolling(900, time.Hour)}, false},
		"another unit": {[]limit.Limiter{limit.MustRolling(5, time.Second),
			must(limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Weight}))}, false},
	} {
		v := limit.NewVarying(limit.MustRolling(5, time.Second), limit.MustRolling(100, time.Minute))
		f := limit.NewFitted(v)
		now := at(time.Hour)
		ask := func(r limit.Result) {
			now = f.Ready(now, limit.One)
			f.Settle(now.Add(10*ms), limittest.Admit(f, now, limit.One), &limit.Outcome{Result: r})
			now = now.Add(10 * ms)
		}
		for range 200 {
			ask(limit.Accepted)
		}
		ask(limit.Limited)
		if n := len(f.Misfits()); n != 1 {
			t.Fatalf("%d limits are wrong", n)
		}
		if c.other != nil {
			v.Change(now, c.other...)
		}
		f.Follow(now)
		if kept := len(f.Misfits()) == 1; kept != c.kept {
			t.Errorf("%s: what was learned is kept: %v", name, kept)
		}
	}
}
