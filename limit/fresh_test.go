package limit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// lapsing is a limiter whose leases lapse when the test says so.
type lapsing struct {
	limit.Limiter
	lapsed []limit.Lease
	never  bool // Lapses returns the opposite
}

func (l *lapsing) Fresh(lease limit.Lease) bool { return !slices.Contains(l.lapsed, lease) }
func (l *lapsing) Lapses() bool                 { return !l.never }

func (l *lapsing) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	lease := l.Limiter.Admit(now, cost)
	l.lapsed = append(l.lapsed, lease)
	if len(l.lapsed) > 1 { // only the first lapses
		l.lapsed = l.lapsed[:1]
	}
	return lease
}

// A request has a lease in each limiter of an All. Each of them says whether the request may still
// be sent, at any place in the All. Lapses
// leaves out a limiter whose own Lapses is false.
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
		for _, never := range []bool{false, true} {
			l := in(&lapsing{Limiter: roll(), never: never})
			first, second := l.Admit(0, limit.One), l.Admit(0, limit.One)
			if limit.Fresh(l, first) || !limit.Fresh(l, second) {
				t.Errorf("%s: of two the first lapsed, and they are fresh: %t, %t", name, limit.Fresh(l, first), limit.Fresh(l, second))
			}
			if limit.Lapses(l) == never {
				t.Errorf("%s: something of it lapses: %t", name, !never)
			}
		}
		l := in(roll())
		if lease := l.Admit(0, limit.One); !limit.Fresh(l, lease) || limit.Lapses(l) {
			t.Errorf("%s: nothing of it lapses", name)
		}
	}
}

// A book ranges over its open leases, each once with its lease, until the loop ends.
func TestLeasesOfABook(t *testing.T) {
	var b limit.Book[int]
	var all []limit.Lease
	for n := range 6 {
		lease, kept := b.Take()
		*kept = n
		all = append(all, lease)
	}
	b.Return(all[1])
	b.Return(all[4])
	want := map[int]limit.Lease{0: all[0], 2: all[2], 3: all[3], 5: all[5]}
	told := 0
	for lease, n := range b.Leases() {
		if told++; want[*n] != lease || *b.At(lease) != *n {
			t.Errorf("%d has another lease", *n)
		}
		delete(want, *n)
	}
	if told != 4 || len(want) > 0 {
		t.Errorf("%d are told, %d are not", told, len(want))
	}
	for range b.Leases() {
		break
	}
	for name, l := range map[string]limit.Lease{"ended": all[1], "zero": {}, "another's": new(limit.Book[int]).Open(1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: it is looked at", name)
				}
			}()
			b.At(l)
		}()
	}
}
