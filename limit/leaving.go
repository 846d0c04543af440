package limit

import (
	"math"

	"github.com/paceline-go/paceline/limit/mono"
)

// ReadyLeaving returns the instant at which cost may go and leave a part of each limit in l free. The
// part is from 0 to 1. The room is asked for and not taken: with N the limit, it is the instant at
// which cost + free·N could go, but at most N. So a cost that would leave less goes when all of the
// limit is free, and none becomes Never. It is never before Ready.
//
// If first is not nil, it is what ReadyLeaving would return after an Admit of *first at now, as of
// ReadyAfter. It changes nothing.
//
// The kinds of this package that count leave a part free. A Limiter of another kind, or with a bound
// of its own, answers by a method
//
//	ReadyLeaving(now mono.Time, first *Cost, cost Cost, free float64) mono.Time
//
// Without it, its parts are asked, and the rest of it is used as a whole.
func ReadyLeaving(l Limiter, now mono.Time, first *Cost, cost Cost, free float64) mono.Time {
	switch l := l.(type) {
	case *Rolling:
		return leaving(l, l.unit, l.limit, now, first, cost, free)
	case *Calendar:
		return leaving(l, l.unit, l.limit, now, first, cost, free)
	case *Anchored:
		return leaving(l, l.unit, l.limit, now, first, cost, free)
	case *Weighted:
		return leaving(l, l.unit, l.limit, now, first, cost, free)
	case *Bucket: // a part of the Burst; the refill is not lower for it
		return leaving(l, l.unit, l.limit, now, first, cost, free)
	case *Produced:
		return leaving(l, l.unit, l.burst, now, first, cost, free)
	case interface {
		ReadyLeaving(now mono.Time, first *Cost, cost Cost, free float64) mono.Time
	}:
		return l.ReadyLeaving(now, first, cost, free)
	}
	parts, last, ok := conjunction(l) // it adds nothing, so its parts are asked once
	t := max(now, last)
	if !ok {
		t = plainly(l, now, first, cost)
		if w, is := l.(wrapper); is {
			parts = w.Unwrap()
		}
	}
	for _, part := range parts {
		t = max(t, ReadyLeaving(part, now, first, cost, free))
	}
	return t
}

// plainly is Ready, or ReadyAfter if first is not nil.
func plainly(l Limiter, now mono.Time, first *Cost, cost Cost) mono.Time {
	if first == nil {
		return l.Ready(now, cost)
	}
	return ReadyAfter(l, now, *first, cost)
}

// one is the number of requests that an Admit of first adds.
func one(first *Cost) int64 {
	if first == nil {
		return 0
	}
	return 1
}

// Leaves returns the part of n that is left free, rounded up. It is less than n, if n is above 0.
func Leaves(n int64, free float64) int64 {
	if !(free > 0) { // NaN, too
		return 0
	}
	const inexact = 1e-9 // a fraction is one of two: 60 · (1 − 59/60) is a little more than 1
	return max(min(int64(math.Ceil(float64(n)*free-inexact)), n-1), 0)
}

// beside returns w with the part of n that it leaves free: at most n, or w.
func beside(w, n int64, free float64) int64 {
	if w == 0 {
		return 0
	}
	return max(w, min(w+Leaves(n, free), n))
}

// leaving answers ReadyLeaving for a limiter of one unit, whose limit is n.
func leaving(l Limiter, u Unit, n int64, now mono.Time, first *Cost, cost Cost, free float64) mono.Time {
	cost[u] = beside(cost.of(u), n, free)
	return plainly(l, now, first, cost)
}

// ReadyLeaving is the function ReadyLeaving. Of a limit that proved wrong, the part is one of the fit.
func (f *Fitted) ReadyLeaving(now mono.Time, first *Cost, cost Cost, part float64) mono.Time {
	t := max(f.last, ReadyLeaving(f.own, now, first, cost, part))
	if !f.bound {
		return t
	}
	t = max(t, plainly(f, now, first, cost))
	cost = f.fitting(cost)
	for i := range f.fits {
		if fit := &f.fits[i]; fit.state != free {
			t = max(t, leaving(fit.ledger, fit.rate.Unit, fit.n, now, first, cost, part))
		}
	}
	return t
}
