// Package mono has the instants that decisions are made of: integers on a scale whose zero the driver chose (the start
// of a process, of a simulation). It reads no clock. Code that is not a limiter, a queue or a simulator wants time.Time.
//
// Integers and not time.Time because a decision is a few additions and comparisons: the same limiter took 16.5 ns on
// integers and 26 ns on time.Time.
package mono

import (
	"fmt"
	"math"
	"time"
)

// Time is an instant: nanoseconds since an epoch its driver chose. Only instants of one driver may be compared.
// Instants before the epoch are negative and legal. The two largest integers are no instants: package limit uses them
// as verdicts later than every instant.
type Time int64

// The first and the last instant. Add stops at them instead of wrapping round.
const (
	Min Time = math.MinInt64
	Max Time = math.MaxInt64 - 2
)

// Add returns t + d, or Min or Max where that would not fit.
func (t Time) Add(d time.Duration) Time {
	s := t + Time(d)
	if d >= 0 {
		if s < t {
			return Max
		}
		return min(s, Max)
	} else if s > t {
		return Min
	}
	return s
}

// Sub returns t − u, or the largest or smallest duration where that would not fit.
func (t Time) Sub(u Time) time.Duration {
	d := t - u
	switch {
	case (t >= u) == (d >= 0):
		return time.Duration(d)
	case t >= u:
		return math.MaxInt64
	default:
		return math.MinInt64
	}
}

// String prints the instant as a duration since the epoch: "1.036s".
func (t Time) String() string { return fmt.Sprint(time.Duration(t)) }

// Of places t (a context's deadline, a wall time read from a file) on the scale whose epoch is base. If both carry a
// monotonic reading it is used; a wall time is off by whatever the wall clock was stepped since base.
func Of(base, t time.Time) Time { return Time(t.Sub(base)) }
