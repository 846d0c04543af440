package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Rolling keeps every span of one window at or under a limit, as seen by the server. It is also right for calendar
// windows of unknown phase, and for a bucket of Limit that refills Limit per Window.
//
// A cost w may go at s when
//
//	Σ open + w + Σ {w_i : u_i + W⁺ > s} ≤ Limit,   W⁺ = Window + Margin
//
// where u_i is the upper bound of the arrival of a settled request. Why no window overflows: let m be the last sent
// among the requests arriving in some window that ends at a. At its admission each of the others was either open or had
// u_i ≥ a_i > a − W⁺, so all of them were counted, and the admission of m bounded their sum, whatever the latencies and
// the order.
//
// Not safe for concurrent use. Ready, Admit and Settle do not allocate once the largest history has been seen; memory
// is 16 bytes per request settled within one window, and requests settled at the same instant share one entry.
type Rolling struct {
	limit    int64
	span     time.Duration
	unit     Unit
	arrivals Arrivals
	last     mono.Time
	open     int64
	settled  log
	book     Book[admitted]
}

type admitted struct {
	at   mono.Time
	cost int64
}

// RollingConfig describes a server's rolling window.
type RollingConfig struct {
	// Limit is the most cost in any span of Window.
	Limit  int64
	Window time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is added to Window. If zero, 1.1 ms + Window/10000: one tick of a server that counts in milliseconds, what
	// its clock may drift against ours, and 0.1 ms. Negative: none, for a server whose clock is ours.
	Margin time.Duration
	Arrivals
}

// NewRolling checks the configuration and returns a Rolling with an empty history.
func NewRolling(c RollingConfig) (*Rolling, error) {
	if err := checkLimit("Rolling", c.Limit); err != nil {
		return nil, err
	}
	if c.Window <= 0 {
		return nil, fmt.Errorf("limit: Rolling: Window %v is not positive", c.Window)
	}
	if c.Unit >= units {
		return nil, fmt.Errorf("limit: Rolling: no such Unit: %d", c.Unit)
	}
	if err := c.Arrivals.check("Rolling"); err != nil {
		return nil, err
	}
	margin := c.Margin
	switch {
	case margin == 0:
		margin = 1100*time.Microsecond + c.Window/10000
	case margin < 0:
		margin = 0
	}
	span := c.Window + margin
	if span < c.Window {
		return nil, fmt.Errorf("limit: Rolling: Window %v and Margin %v overflow", c.Window, c.Margin)
	}
	return &Rolling{limit: c.Limit, span: span, unit: c.Unit, arrivals: c.Arrivals, last: mono.Min}, nil
}

// MustRolling is NewRolling for limits written in the source: n requests in any window. It panics on a bad argument.
func MustRolling(n int64, window time.Duration) *Rolling {
	r, err := NewRolling(RollingConfig{Limit: n, Window: window})
	if err != nil {
		panic(err)
	}
	return r
}

// SetLimit changes the limit from now on; the history stays.
func (r *Rolling) SetLimit(now mono.Time, n int64) error {
	if err := checkLimit("Rolling", n); err != nil {
		return err
	}
	r.last = max(now, r.last)
	r.limit = n
	return nil
}

// Ready implements Limiter.
func (r *Rolling) Ready(now mono.Time, cost Cost) mono.Time {
	now = max(now, r.last)
	w := cost.of(r.unit)
	over := r.open + r.settled.total + w - r.limit
	if over <= 0 || w == 0 {
		return now
	}
	if w > r.limit {
		return Never
	}
	if r.open+w > r.limit {
		return AfterSettle
	}
	return max(now, r.settled.freed(over).Add(r.span))
}

// Admit implements Limiter.
func (r *Rolling) Admit(now mono.Time, cost Cost) Lease {
	r.last = max(now, r.last)
	w := cost.of(r.unit)
	r.open += w
	return r.book.Open(admitted{r.last, w})
}

// Settle implements Limiter.
func (r *Rolling) Settle(now mono.Time, l Lease, o Outcome) {
	now = max(now, r.last)
	a := r.book.Close(l)
	r.last = now
	r.open -= a.cost
	r.settled.forget(now.Add(-r.span))
	w := a.cost
	if o.Metered {
		w = o.Actual.of(r.unit)
	}
	if u, counts := r.arrivals.bound(now, a.at, &o); counts && w > 0 {
		r.settled.add(u, w)
	}
}

// log is what settled requests hold of a limit: (upper bound of arrival, cost), oldest first, with a running total, in
// a ring that grows on demand.
type log struct {
	ring  []arrival // its length is a power of two
	head  int
	n     int
	total int64
}

type arrival struct {
	at   mono.Time
	cost int64
}

func (g *log) at(i int) *arrival { return &g.ring[(g.head+i)&(len(g.ring)-1)] }

// freed returns the arrival whose end frees the last of at least cost, oldest first. cost must be at most the total.
func (g *log) freed(cost int64) mono.Time {
	for i := 0; ; i++ {
		e := g.at(i)
		if cost -= e.cost; cost <= 0 {
			return e.at
		}
	}
}

// forget drops what arrived at or before t.
func (g *log) forget(t mono.Time) {
	for g.n > 0 {
		e := g.at(0)
		if e.at > t {
			return
		}
		g.total -= e.cost
		g.head = (g.head + 1) & (len(g.ring) - 1)
		g.n--
	}
}

// add inserts from the tail: an answer seldom proves an earlier arrival than the one before it did.
func (g *log) add(at mono.Time, cost int64) {
	g.total += cost
	i := g.n
	for i > 0 && g.at(i-1).at > at {
		i--
	}
	if i > 0 {
		if e := g.at(i - 1); e.at == at {
			e.cost += cost
			return
		}
	}
	if g.n == len(g.ring) {
		g.grow()
	}
	for j := g.n; j > i; j-- {
		*g.at(j) = *g.at(j - 1)
	}
	*g.at(i) = arrival{at, cost}
	g.n++
}

func (g *log) grow() {
	ring := make([]arrival, max(8, 2*len(g.ring)))
	n := copy(ring, g.ring[g.head:])
	copy(ring[n:], g.ring[:g.head])
	g.ring, g.head = ring, 0
}
