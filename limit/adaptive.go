package limit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Adaptive bounds the requests in flight if the server's bound is not known. Its bound grows while
// the server answers as quickly as usual. It shrinks when answers take longer, or when the server
// reports too much load. Use it beside the known rules of the server. Each request counts once,
// whatever its cost.
//
// Adaptive evaluates answers in rounds. A round has as many answers as the bound, but at least 8
// and at most 64, of requests sent since the bound last changed. At its end, if at least half of
// the bound was in flight at some time,
//
//	gradient = Tolerance × usual / median      0.5 … 1
//	bound    = bound + (bound × gradient + √bound − bound) / 4
//
// where median is the round's latency. At the beginning the bound doubles instead, until the first
// slow answers or the first refusal. The gradient is that of Netflix's concurrency-limits (README
// and Gradient2Limit, 1.5 and 0.5 included). The headroom √bound and the minimum are those of
// Envoy's adaptive concurrency filter.
//
// If the median is lower than usual, usual follows it by a quarter of the difference. Usual rises
// only if our own requests cannot be the cause: with fewer than half of the bound in flight, or in
// a round at Min. After 5 slow rounds at a bound of 5 or less there is such a round, and all begins
// anew from it.
//
// A refusal for load (Outcome.Overloaded, or Limited and not Elsewhere) leaves 0.85 of the requests
// in flight. It does so once for all that were in flight together. A client may press a server of n
// workers as hard as it can. It then keeps all of them busy, with at most as many requests in their
// queue. Against a server that refuses more than n at once, it uses 80 to 90 % of the capacity. 1
// to 5 % of its requests are refused.
//
// Not safe for concurrent use; Ready, Admit and Settle do not allocate.
type Adaptive struct {
	least, most float64
	tolerance   float64
	bound       float64
	last        mono.Time
	open        int    // in flight
	sent        uint64 // the Number of the latest request

	// Of the round:
	since  uint64 // the last request sent before the bound changed
	took   [maxRound]time.Duration
	count  int
	busy   int     // the most requests in flight
	usual  float64 // usual latency of an answer, in ns; 0: not known
	pinned int     // rounds at a bound that no longer shrinks
	alone  bool    // this is a round at Min, to learn what is usual
	steady bool    // the bound was found once and does not double any more
	driven
}

const (
	steepest = 0.5
	floor    = 5    // hardly above 4, where the headroom balances the steepest gradient
	shrink   = 0.85 // at a refusal
	beginner = 3    // answers in a round at the beginning
	minRound = 8
	maxRound = 64
	unpinned = 5 // slow rounds at the floor, until usual is learned anew
)

// AdaptiveConfig describes a bound that adapts. The zero value is ready.
type AdaptiveConfig struct {
	// Initial is the first bound. Usual is learned there. If Initial is already too much for the
	// server, slow answers count as usual. If zero, Min.
	Initial int64
	// Min and Max are the smallest and the largest bound. If zero, 1 and 1000.
	Min, Max int64
	// Tolerance is how much longer than usual answers may take before the bound shrinks. If zero,
	// 1.5; if negative, latency does not matter, and only refusals shrink it.
	Tolerance float64
}

// NewAdaptive checks the configuration and returns an Adaptive with nothing in flight.
func NewAdaptive(c AdaptiveConfig) (*Adaptive, error) {
	c.Min = cmp.Or(c.Min, 1)
	c.Max = cmp.Or(c.Max, max(1000, c.Min))
	c.Initial = cmp.Or(c.Initial, c.Min)
	c.Tolerance = cmp.Or(c.Tolerance, 1.5)
	for _, n := range [...]int64{c.Min, c.Max, c.Initial} {
		if err := checkLimit("Adaptive", n); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Min > c.Max:
		return nil, fmt.Errorf("limit: Adaptive: Min %d is above Max %d", c.Min, c.Max)
	case c.Initial < c.Min || c.Initial > c.Max:
		return nil, fmt.Errorf("limit: Adaptive: Initial %d is not between Min %d and Max %d", c.Initial, c.Min, c.Max)
	case c.Tolerance >= 0 && !(c.Tolerance >= 1 && c.Tolerance <= 1e6) || math.IsNaN(c.Tolerance):
		return nil, fmt.Errorf("limit: Adaptive: Tolerance %v is not between 1 and 1,000,000", c.Tolerance)
	}
	return &Adaptive{
		least: float64(c.Min), most: float64(c.Max), tolerance: c.Tolerance, bound: float64(c.Initial), last: mono.Min,
	}, nil
}

// Most returns how many may be in flight now.
func (a *Adaptive) Most() int64 { return int64(a.bound) }

// Ready implements Limiter.
func (a *Adaptive) Ready(now mono.Time, cost Cost) mono.Time {
	return a.ReadyLeaving(now, nil, cost, 0)
}

// ReadyAfter implements Forecaster.
func (a *Adaptive) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return a.ReadyLeaving(now, &first, cost, 0)
}

// ReadyLeaving is the function ReadyLeaving. The free part is one of the places, and one place is never free.
func (a *Adaptive) ReadyLeaving(now mono.Time, first *Cost, _ Cost, free float64) mono.Time {
	most := a.Most()
	if int64(a.open)+one(first) >= most-Leaves(most, free) {
		return AfterSettle
	}
	return max(now, a.last)
}

// NotBefore implements Forecaster. The requests open and ahead may be answered at once.
func (a *Adaptive) NotBefore(now mono.Time, _ int, _, _ Cost) mono.Time { return max(now, a.last) }

// Admit implements Limiter.
func (a *Adaptive) Admit(s *Sent) {
	a.last = max(s.At, a.last)
	a.sent = s.Number
	a.open++
	a.busy = max(a.busy, a.open)
}

// Settle implements Limiter.
func (a *Adaptive) Settle(now mono.Time, s *Sent, o *Outcome) {
	open := a.open
	a.open--
	a.last = max(now, a.last)
	if s.Number <= a.since {
		return
	}
	if o.Overloaded || o.Result == Limited && !o.Elsewhere {
		a.steady = true
		a.become(min(a.bound, float64(open)) * shrink)
		return
	}
	if took, ok := a.latency(s, o); ok {
		a.took[a.count] = took
		least := minRound
		if !a.steady {
			least = beginner
		}
		if a.count++; a.count >= min(max(int(a.bound), least), maxRound) {
			a.round()
		}
	}
}

// latency returns how long an answer took. Without an answer it returns the wait so far, which
// counts only if it is too long already.
func (a *Adaptive) latency(s *Sent, o *Outcome) (took time.Duration, ok bool) {
	if a.tolerance < 0 {
		return 0, o.Result == Accepted
	}
	took = a.last.Sub(s.At)
	switch {
	case o.Result == Accepted && o.RTT > 0:
		return o.RTT, true
	case o.Result == Accepted:
		return max(took, 1), true
	}
	return took, o.Result == Unknown && a.usual > 0 && float64(took) > a.tolerance*a.usual
}

// round evaluates the answers of a round.
func (a *Adaptive) round() {
	took := a.took[:a.count]
	slices.Sort(took)
	median := float64(took[len(took)/2])
	if a.alone {
		a.alone, a.usual = false, median
	}
	idle := float64(a.busy) < a.bound/2
	gradient := 1.0
	switch {
	case a.tolerance < 0:
	case a.usual == 0:
		a.usual = median
	case median < a.usual:
		a.usual += (median - a.usual) / 4
	default:
		if gradient = min(max(a.tolerance*a.usual/median, steepest), 1); idle {
			a.usual += (median - a.usual) / 4
		}
	}
	if idle {
		a.begin()
		return
	}
	if a.steady = a.steady || gradient < 1; !a.steady {
		a.become(2 * a.bound)
		return
	}
	if a.pinned++; gradient == 1 || a.bound > max(a.least, floor) {
		a.pinned = 0
	}
	if a.pinned == unpinned {
		a.pinned, a.alone, a.steady = 0, true, false
		a.become(a.least)
		return
	}
	a.become(a.bound + (a.bound*gradient+math.Sqrt(a.bound)-a.bound)/4)
}

// become sets the bound and begins a round.
func (a *Adaptive) become(bound float64) {
	a.bound = min(max(bound, a.least), a.most)
	a.begin()
}

func (a *Adaptive) begin() { a.since, a.count, a.busy = a.sent, 0, a.open }

// Rules implements Describer. The bound is found and not known, so its Counts is CountsSomehow.
func (a *Adaptive) Rules() []Rule { return []Rule{{Name: "adaptive concurrency", N: a.Most()}} }

// AppendUsage implements Describer. When the bound shrinks, more than the bound is in flight.
func (a *Adaptive) AppendUsage(to []Usage, _ mono.Time) []Usage {
	open := int64(a.open)
	return append(to, Usage{Limit: "adaptive concurrency", InFlight: true, Used: open, Open: open, Allowed: a.Most(), Requests: a.open})
}
