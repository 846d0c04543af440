package limit

import (
	"fmt"
	"time"
)

// Rate is what a Limiter lets through in the long run: N of Unit per Per. Limit is the name of the
// limit, as in Bound.
type Rate struct {
	Limit string
	Unit  Unit
	N     int64
	Per   time.Duration
}

// String is a rate for readers: "20 requests per 1s".
func (r Rate) String() string {
	var c Cost
	c[r.Unit] = r.N
	return fmt.Sprintf("%s per %v", c, r.Per)
}

// rated is a Limiter that knows its rates. All limiters of this package are, except Adaptive.
type rated interface {
	Limiter
	// Rates returns the rates, always as many and in the same order. Concurrency, Spacing, Sequence
	// and Cooldown have none. ok is false if a part of the Limiter does not know its rates.
	Rates() (all []Rate, ok bool)
}

// Rates returns the rates of l, always as many and in the same order. ok is false if a part of l
// does not know its rates. A Limiter that knows them has a method
//
//	Rates() (all []Rate, ok bool)
func Rates(l Limiter) (all []Rate, ok bool) {
	ok = l != nil
	visit(l, nil, func(l Limiter, name *string) bool {
		r, is := l.(rated)
		if !is {
			_, is := l.(wrapper)
			ok = ok && is
			return !is
		}
		rates, can := r.Rates()
		ok = ok && can
		for _, rate := range rates {
			if name != nil {
				rate.Limit = *name
			}
			all = append(all, rate)
		}
		return true
	})
	if !ok {
		return nil, false
	}
	return all, true
}
