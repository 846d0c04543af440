package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Weighted keeps to a window that a server estimates from two counters: what came in this interval, and what came in the
// one before it, in proportion to what of that is still in the window. Cloudflare counts so, and HAProxy's rates. When the
// intervals begin need not be known.
//
// A cost w may go at s when, for every c that might be the beginning of the server's interval, a − W⁺ < c ≤ a = s − Margin,
//
//	Σ open + w + Σ {w_i : u_i ≥ c} + (1 − (a − c)/W⁺) · Σ {w_i : c − W⁺ ≤ u_i < c}  ≤  Limit
//
// Between two of the instants u_i and u_i + W⁺ the sums do not change and the factor rises with c, so those are the c to look
// at. For one c the estimate falls with s, and goes on falling in the interval after it: the earliest s is the latest of
// what each c asks for, which is solved for, not searched.
//
// In the long run it allows Limit per W⁺ and mean round trip, as Rolling does: averaged over c each request counts for
// W⁺/2 in its own interval, W⁺/2 in the next, and its round trip in full.
//
// Not safe for concurrent use. Admit and Settle are as those of Rolling; Ready looks at every distinct u of two windows
// unless there is room for all of them: with the default Grain at most 4,000.
type Weighted struct {
	account
	span    time.Duration // W⁺
	margin  time.Duration
	grain   time.Duration
	settled log
}

// WeightedConfig describes a server's weighted window.
type WeightedConfig struct {
	// Limit is the most that the estimate may come to.
	Limit  int64
	Window time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is one tick of the server's clock and a little; Window/10000 for its drift comes on top. If zero, 1.1 ms.
	// Negative: none, and no drift.
	Margin time.Duration
	// Grain: arrivals within one share an entry, at its end. If zero, Window/2000; negative: each has its own.
	Grain time.Duration
	Arrivals
}

// NewWeighted checks the configuration and returns a Weighted with an empty history.
func NewWeighted(c WeightedConfig) (*Weighted, error) {
	a, err := newAccount("Weighted", c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	l := &Weighted{account: a, span: c.Window + c.Window/10000, margin: c.Margin, grain: c.Grain}
	switch {
	case c.Margin == 0:
		l.margin = 1100 * time.Microsecond
	case c.Margin < 0:
		l.span, l.margin = c.Window, 0
	}
	switch {
	case c.Grain == 0:
		l.grain = c.Window / 2000
	case c.Grain < 0:
		l.grain = 0
	case c.Grain > c.Window:
		return nil, fmt.Errorf("limit: Weighted: Grain %v is longer than Window %v", c.Grain, c.Window)
	}
	if 2*l.span+l.margin < c.Window {
		return nil, fmt.Errorf("limit: Weighted: Window %v and Margin %v overflow", c.Window, c.Margin)
	}
	return l, nil
}

// SetLimit changes the limit from now on; the history stays.
func (l *Weighted) SetLimit(now mono.Time, n int64) error { return l.setLimit("Weighted", now, n) }

// Ready implements Limiter.
func (l *Weighted) Ready(now mono.Time, cost Cost) mono.Time {
	now = max(now, l.last)
	w := cost.of(l.unit)
	if w == 0 || l.open+l.settled.total+w <= l.limit {
		return now
	}
	if w > l.limit {
		return Never
	}
	room := l.limit - l.open - w
	if room < 0 {
		return AfterSettle
	}
	return max(now, l.earliest(room).Add(l.margin-l.ahead()))
}

// earliest returns the first instant at which the estimate of what is settled is at most room, wherever the server's
// intervals begin.
func (l *Weighted) earliest(room int64) mono.Time {
	g := &l.settled
	// For c = u_i: what is in [c − W, c) begins at entry i − …, for c = u_i + W it begins at entry i.
	var (
		t           = mono.Min
		first, last = 0, 0    // of c − W at c = u_i; of c at c = u_i + W
		gone, upTo  int64     // the costs before first, and before last
		before      int64     // the cost before entry i
		total       = g.total // of all
		ask         = func(c mono.Time, old, current int64) { t = max(t, l.calm(c, room, old, current)) }
	)
	for i := range g.n {
		e := g.at(i)
		for g.at(first).at < e.at.Add(-l.span) {
			gone += g.at(first).cost
			first++
		}
		ask(e.at, before-gone, total-before)
		end := e.at.Add(l.span)
		for last < g.n && g.at(last).at < end {
			upTo += g.at(last).cost
			last++
		}
		ask(end, upTo-before, total-upTo)
		before += e.cost
	}
	return t
}

// calm returns from when on a server whose interval begins at c finds at most room: old came in the interval before,
// current from c on.
func (l *Weighted) calm(c mono.Time, room, old, current int64) mono.Time {
	switch {
	case old+current <= room:
		return mono.Min
	case current > room:
		return c.Add(l.span) // and then current is old
	}
	return c.Add(scale(l.span, time.Duration(old+current-room), time.Duration(old)))
}

// Admit implements Limiter.
func (l *Weighted) Admit(now mono.Time, cost Cost) Lease { return l.admit(now, cost.of(l.unit)) }

// Settle implements Limiter.
func (l *Weighted) Settle(now mono.Time, lease Lease, o Outcome) {
	now, u, w := l.close(now, lease, &o)
	l.settled.forget(now.Add(-2*l.span - l.margin))
	if w > 0 {
		l.settled.add(grained(u, l.grain), w)
	}
}
