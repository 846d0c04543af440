package limit

import (
	"math"

	"github.com/paceline-go/paceline/limit/mono"
)

// Forecaster is a Limiter that can bound from below when a cost can go that has others ahead of it. With it a caller that cannot wait
// for so long is told at once. All limiters of this package are.
type Forecaster interface {
	Limiter
	// NotBefore returns an instant, not before now, that is no later than any at which cost can be admitted once n requests
	// that together cost at least ahead have been admitted before it, one by one, from now on; Never if it never can. It
	// changes nothing, and takes as long for a million ahead as for one.
	//
	// What is open counts in full, unless the caller takes off ahead what it has reserved beyond what it surely uses: so a
	// component of ahead may be negative. The bound holds whenever and however what is open and ahead is answered, at any
	// latency; but a request that ends Unsent, refused where refusals are free, or cheaper than was counted, a SetLimit,
	// and one ahead who leaves, make room that it does not know of.
	//
	// With nothing open and nobody ahead it is what Ready says, where LearnLead is not at work.
	NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time
}

// Forecasts reports whether l, with everything in it, is a Forecaster, so that NotBefore is a bound.
func Forecasts(l Limiter) bool {
	return !anyPart(l, func(l Limiter) bool {
		_, is := l.(wrapper)
		_, ok := l.(Forecaster)
		return !ok && !is
	})
}

// NotBefore asks l if it is a Forecaster. Otherwise it returns the instant of Ready, as if nobody were ahead, with now in place of
// AfterSettle, since an answer may come at once.
func NotBefore(l Limiter, now mono.Time, n int, ahead, cost Cost) mono.Time {
	if f, ok := l.(Forecaster); ok {
		return f.NotBefore(now, n, ahead, cost)
	}
	t := l.Ready(now, cost)
	if t == AfterSettle {
		return now
	}
	return t
}

// asked is the question of a forecast, in the unit of one account.
type asked struct {
	now         mono.Time
	ahead, cost int64
}

// history is what was settled of a limit, however that is kept.
type history struct {
	total int64
	// freed returns from when on at least cost of it no longer counts. cost is between 1 and the total.
	freed func(cost int64) mono.Time
	// last is the latest bound of an arrival in it.
	last mono.Time
}

// ages keeps in two numbers how old the oldest of what is open can be: it is in one of two generations, and when the older
// one is gone, the younger takes its place.
type ages struct {
	oldest mono.Time // nothing that is open was admitted before
	young  mono.Time // what was admitted from here on is of the younger generation
	old    int       // how many are of the older one
}

// admit and close are told how many others are open.
func (g *ages) admit(at mono.Time, others int) {
	if others == 0 {
		g.oldest, g.young, g.old = at, at+1, 1
	} else if at < g.young {
		g.old++
	}
}

func (g *ages) close(now, at mono.Time, others int) {
	if at < g.young {
		if g.old--; g.old == 0 && others > 0 {
			g.oldest, g.young, g.old = g.young, now+1, others
		}
	}
}

// plus returns a + b, and less a − b, within ±math.MaxInt64.
func plus(a, b int64) int64 {
	if a > 0 {
		return a + min(b, math.MaxInt64-a)
	}
	return a + max(b, -math.MaxInt64-a)
}

func less(a, b int64) int64 { return plus(a, -max(b, -math.MaxInt64)) }
