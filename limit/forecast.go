package limit

import (
	"math"

	"github.com/paceline-go/paceline/limit/mono"
)

// Forecaster is a Limiter that knows more than the present: what an Admit would do to the next
// request, and how soon a cost can go that has others ahead of it. So a small request may go ahead
// of a large one, and a caller that cannot wait so long gets its refusal at once. All limiters of
// this package are Forecasters.
type Forecaster interface {
	Limiter
	// ReadyAfter returns what Ready(now, cost) would return after an Admit of first at now. Where it
	// cannot know so much, it returns something later, up to Never. A limiter that never knows
	// returns Never for costs of nothing, too: Anchored and Sequence. It changes nothing.
	ReadyAfter(now mono.Time, first, cost Cost) mono.Time

	// NotBefore returns an instant that is not before now, and not later than any possible
	// admission of cost. Before cost, n requests that together cost at least ahead are admitted one
	// by one, from now on. If cost can never go, it returns Never. It changes nothing, and takes as
	// long for a million ahead as for one.
	//
	// Open requests count in full. The caller may take off ahead what they reserve beyond their
	// sure use. So a component of ahead may be negative.
	//
	// The bound holds for all answers to the requests that are open and ahead, at any latency. Some
	// events make room that it does not know of. A request ends Unsent, is refused where refusals
	// are free, or costs less than was counted. SetLimit raises the limit. A request ahead gives
	// up.
	//
	// With nothing open and nothing ahead it is the instant of Ready, unless LearnLead is at work.
	NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time
}

// Forecasts reports whether l, with everything in it, is a Forecaster. Then NotBefore is a bound.
func Forecasts(l Limiter) bool {
	return !anyPart(l, func(l Limiter) bool {
		_, is := l.(wrapper)
		_, ok := l.(Forecaster)
		return !ok && !is
	})
}

// NotBefore calls l if it is a Forecaster. Of an All, Varying or Named it is the latest of the
// parts. Otherwise it returns the instant of Ready, as if nothing were ahead. In place of AfterSettle it returns now,
// since an answer may come at once.
func NotBefore(l Limiter, now mono.Time, n int, ahead, cost Cost) mono.Time {
	if f, ok := l.(Forecaster); ok {
		return f.NotBefore(now, n, ahead, cost)
	}
	if parts, last, ok := conjunction(l); ok {
		t := max(now, last)
		for _, part := range parts {
			t = max(t, NotBefore(part, now, n, ahead, cost))
		}
		return t
	}
	t := l.Ready(now, cost)
	if t == AfterSettle {
		return now
	}
	return t
}

// Expected guesses when a cost goes behind n requests with the cost ahead. It is NotBefore, but for each
// Headroom and Rolling in l, whose guess counts: that is no bound.
func Expected(l Limiter, now mono.Time, n int, ahead, cost Cost) mono.Time {
	t := NotBefore(l, now, n, ahead, cost)
	Ask(l, func(g guesser) { t = max(t, g.expected(now, n, ahead, cost)) })
	return t
}

type guesser interface {
	expected(now mono.Time, n int, ahead, cost Cost) mono.Time
}

// Foresees reports whether ReadyAfter is known of l, with everything in it.
func Foresees(l Limiter) bool {
	return !anyPart(l, func(l Limiter) bool {
		_, is := l.(wrapper)
		return !is && ReadyAfter(l, mono.Min, Cost{}, Cost{}) == Never
	})
}

// MayPass reports whether cost may go now ahead of waits, a cost that waits and may go at ready.
// There must be room for cost, and waits must still be able to go at ready afterwards. Answers
// until then may make both of them earlier. Two things may make waits later, since the limiter
// cannot know them: an answer that used more than was admitted, or a Retry-After. If the Limiter
// does not foresee, nothing may pass.
func MayPass(l Limiter, now mono.Time, cost, waits Cost, ready mono.Time) bool {
	return ready < AfterSettle && l.Ready(now, cost) <= now && ReadyAfter(l, now, cost, waits) <= ready
}

// ReadyAfter calls l if it is a Forecaster. Of an All, Varying or Named it is the latest of the
// parts. Otherwise it returns Never.
func ReadyAfter(l Limiter, now mono.Time, first, cost Cost) mono.Time {
	if f, ok := l.(Forecaster); ok {
		return f.ReadyAfter(now, first, cost)
	}
	parts, last, ok := conjunction(l)
	if !ok {
		return Never
	}
	t := max(now, last)
	for _, part := range parts {
		t = max(t, ReadyAfter(part, now, first, cost))
	}
	return t
}

// asked is the question of a forecast, in the unit of one account.
type asked struct {
	now         mono.Time
	ahead, cost int64
}

// history is the settled requests of a limit, in whatever form the limit keeps them.
type history struct {
	total int64
	// freed returns the instant from which at least cost of it no longer counts. cost is between 1
	// and the total.
	freed func(cost int64) mono.Time
	// last is the latest bound of an arrival in it.
	last mono.Time
}

// ages bounds the age of the oldest open request, with two numbers. Each open request is in one of
// two generations. When the older generation is gone, the younger takes its place.
type ages struct {
	oldest mono.Time // every open request was admitted at this instant or later
	young  mono.Time // requests admitted from here on are of the younger generation
	upTo   uint64    // the last Number of the older one
	latest uint64    // the last Number
	old    int       // how many are of the older generation
	open   int       // how many are open
}

func (g *ages) admit(at mono.Time, number uint64) {
	if g.open == 0 {
		g.oldest, g.young, g.upTo, g.old = at, at+1, number, 1
	} else if at < g.young || number <= g.upTo {
		g.upTo = max(g.upTo, number)
		g.old++
	}
	g.latest = max(g.latest, number)
	g.open++
}

func (g *ages) close(now mono.Time, number uint64) {
	g.open--
	if number <= g.upTo {
		if g.old--; g.old == 0 && g.open > 0 {
			g.oldest, g.young, g.upTo, g.old = g.young, now+1, g.latest, g.open
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
