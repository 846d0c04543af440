package ability_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// lapsing is a limiter whose leave lapses when the test says so.
type lapsing struct {
	limit.Limiter
	lapsed uint64 // the Number of its first request, which lapses
}

func (l *lapsing) Fresh(s *limit.Sent) bool { return s.Number != l.lapsed }

func (l *lapsing) Supply(again func(), _ func() (int, float64), _ func(kind, text string)) { again() }

func (l *lapsing) Admit(s *limit.Sent) {
	l.Limiter.Admit(s)
	l.lapsed = cmp.Or(l.lapsed, s.Number)
}

// foreseeing is a lapsing that is fresh until an instant.
type foreseeing struct {
	*lapsing
	left time.Duration
}

func (l *foreseeing) FreshFor(s *limit.Sent, d time.Duration) bool { return l.Fresh(s) && d < l.left }

// A part that foresees is fresh for as long as it says, at any place.
func TestFreshForOfAll(t *testing.T) {
	l := limit.NewAll(limit.MustRolling(9, time.Second), &foreseeing{&lapsing{Limiter: limit.MustRolling(9, time.Second)}, 5})
	first, second := limittest.Admit(l, 0, limit.One), limittest.Admit(l, 0, limit.One)
	if !ability.FreshFor(l, second, 4) || ability.FreshFor(l, second, 5) || ability.FreshFor(l, first, 0) {
		t.Errorf("of 5 it is fresh for 4: %t, for 5: %t; a lapsed one: %t", ability.FreshFor(l, second, 4), ability.FreshFor(l, second, 5),
			ability.FreshFor(l, first, 0))
	}
}

// Each limiter of an All says whether a request may still be sent, at any place in the All.
func TestFreshOfAll(t *testing.T) {
	roll := func() limit.Limiter { return limit.MustRolling(9, time.Second) }
	wrapped := map[string]func(l limit.Limiter) limit.Limiter{
		"itself":    func(l limit.Limiter) limit.Limiter { return l },
		"the first": func(l limit.Limiter) limit.Limiter { return limit.NewAll(l, roll(), roll()) },
		"the last":  func(l limit.Limiter) limit.Limiter { return limit.NewAll(roll(), roll(), l) },
		"named":     func(l limit.Limiter) limit.Limiter { return limit.Named("it", l) },
		"perhaps":   func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
		"varying":   func(l limit.Limiter) limit.Limiter { return limit.NewVarying(roll(), l) },
		"in several": func(l limit.Limiter) limit.Limiter {
			return limit.NewFitted(limit.NewAll(roll(), limit.Named("it", l)))
		},
	}
	for name, in := range wrapped {
		l := in(&lapsing{Limiter: roll()})
		first, second := limittest.Admit(l, 0, limit.One), limittest.Admit(l, 0, limit.One)
		if ability.Fresh(l, first) || !ability.Fresh(l, second) {
			t.Errorf("%s: of two the first lapsed, and they are fresh: %t, %t", name, ability.Fresh(l, first), ability.Fresh(l, second))
		}
		if !ability.Lapses(l) {
			t.Errorf("%s: something of it lapses", name)
		}
		if ability.FreshFor(l, second, 0) != ability.Fresh(l, second) || ability.FreshFor(l, first, 0) || ability.FreshFor(l, second, 1) {
			t.Errorf("%s: a part that foresees nothing is fresh for some time, or not for none", name)
		}
		supplied := 0
		if ability.Supply(l, func() { supplied++ }, nil, nil); supplied != 1 {
			t.Errorf("%s: it is supplied %d times", name, supplied)
		}
		l = in(roll())
		if lease := limittest.Admit(l, 0, limit.One); !ability.Fresh(l, lease) || ability.Lapses(l) {
			t.Errorf("%s: nothing of it lapses", name)
		}
	}
}
