package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Rolling keeps every span of one window at or under a limit, as the server counts. It is also
// right for calendar windows of unknown phase, and for a bucket of Limit that refills Limit per
// Window.
//
// A cost w may go at s when
//
//	Σ open + w + Σ {w_i : u_i + W⁺ > s} ≤ Limit,   W⁺ = Window + Margin
//
// where u_i is the upper bound of the arrival of a settled request.
//
// Why no window overflows: consider the requests that arrive in some window that ends at a. Let m
// be the last sent among them. When m was admitted, each other request was either open or had
// u_i ≥ a_i > a − W⁺. So all of them counted, and the admission of m bounded their sum. Latencies
// and order do not matter.
//
// Not safe for concurrent use. Ready, Admit and Settle allocate only while the history grows beyond
// its largest size so far. A history takes 16 bytes per request settled within one window, up to
// the next power of two. Requests settled at the same instant share one entry. An All of 500
// requests and 30,000 tokens a minute takes 17 kB, whatever the sizes. A limit of 30,000 tokens a
// minute alone, in requests of one token, takes 525 kB. With a Grain of 0.1 s it takes 17 kB
// (TestLLMMemory in the module's root).
type Rolling struct {
	// The first three cache lines hold the fields that every request reads and writes. With a
	// thousand lanes no limit stays in the cache.
	settled log
	span    time.Duration
	grain   time.Duration
	account
	margin time.Duration // as given
	holds  time.Duration // from a send to the bound of its arrival, lately; with it an object has 256 bytes
}

// RollingConfig describes a server's rolling window. Limit and Window have no default.
type RollingConfig struct {
	// Limit is the most cost in any span of Window.
	Limit  int64
	Window time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	// Margin is added to Window. If zero, 1.1 ms + Window/10000: one tick of a server that counts
	// in milliseconds, the drift of its clock against ours, and 0.1 ms. Negative: none, for a
	// server that shares our clock.
	Margin time.Duration
	// Grain, if positive, bounds the memory for a very large Limit. Arrivals within one Grain share
	// an entry, at the end of the Grain. There are at most (Window + Margin + Late) / Grain + 2
	// entries of 16 bytes. A request counts for up to one Grain longer. If zero, each instant has
	// its own entry.
	Grain time.Duration
	Arrivals
}

// NewRolling checks the configuration and returns a Rolling with an empty history.
func NewRolling(c RollingConfig) (*Rolling, error) {
	a, err := newAccount("Rolling", CountsRolling, c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	r := &Rolling{account: a, grain: c.Grain, settled: newLog(), margin: c.Margin}
	if r.span, err = r.spanOf(c.Window); err != nil {
		return nil, err
	}
	if c.OneWayMax > 0 {
		bold, safe := *r, *r
		safe.sure()
		r.pair = newPair(&bold, &safe)
	}
	return r, nil
}

// spanOf returns W⁺ for a window of d.
func (r *Rolling) spanOf(d time.Duration) (time.Duration, error) {
	if err := checkWindow("Rolling", d); err != nil {
		return 0, err
	}
	span := d + margin(r.margin, d)
	if span < d {
		return 0, fmt.Errorf("limit: Rolling: Window %v and Margin %v overflow", d, r.margin)
	}
	if r.grain < 0 || r.grain > d {
		return 0, fmt.Errorf("limit: Rolling: Grain %v is negative or longer than Window %v", r.grain, d)
	}
	return span, nil
}

// MustRolling is NewRolling for limits written in the source: n requests in any window. It panics
// on a bad argument.
func MustRolling(n int64, window time.Duration) *Rolling {
	r, err := NewRolling(RollingConfig{Limit: n, Window: window})
	if err != nil {
		panic(err)
	}
	return r
}

// SetLimit changes the limit from now on; the history stays.
func (r *Rolling) SetLimit(now mono.Time, n int64) error { return r.setLimit("Rolling", now, n) }

// SetWindow changes the window from now on; the history stays. Consider a window of d whose last
// request goes from now on. It never holds more than the limit, since earlier requests count in it,
// too.
//
// A shorter window frees at once all requests that have left it. For a longer window some requests
// may be forgotten already. Then the whole forgotten cost counts, up to the limit, as if it had
// arrived with its last request. If nothing was forgotten within the longer window, nothing is
// assumed. So a limit that was always kept loses at most one longer window, once.
//
// A Margin that was not given becomes that of the new window. d must be valid as a Window, and no
// shorter than Grain. Otherwise the error says so and nothing changes. As after SetLimit, call
// Ready again, as Gate.Update and Pool.Update do. Change the window when the server does. Requests
// that are on their way then arrive in the other window.
func (r *Rolling) SetWindow(now mono.Time, d time.Duration) error {
	span, err := r.spanOf(d)
	if err != nil {
		return err
	}
	r.span = span
	r.settled.recall()
	return r.setWindow(now, d)
}

// Ready implements Limiter.
func (r *Rolling) Ready(now mono.Time, cost Cost) mono.Time {
	if r.pair != nil {
		return r.pair.Ready(now, cost)
	}
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
	return max(now, r.settled.freed(over).Add(r.span-r.ahead()))
}

// Admit implements Limiter.
func (r *Rolling) Admit(s *Sent) {
	if r.pair != nil {
		r.pair.Admit(s)
		return
	}
	r.admit(s)
}

// Settle implements Limiter.
func (r *Rolling) Settle(now mono.Time, s *Sent, o *Outcome) {
	if r.pair != nil {
		r.pair.Settle(now, s, o)
		return
	}
	now, u, w := r.close(now, s, o)
	// Far from the limit it does no harm to keep entries that have left the window. A look at the
	// oldest entry each time would be a cache miss.
	if g := &r.settled; g.n == len(g.ring) || r.open+g.total > r.limit/2 {
		g.forget(now.Add(-r.span))
	}
	if w > 0 {
		r.settled.add(grained(u, r.grain), w)
		r.holds += (max(u, now.Add(-r.span)).Sub(s.At) - r.holds) / 8
	}
}

// grained returns the end of the grain that t is in.
func grained(t mono.Time, grain time.Duration) mono.Time {
	if grain == 0 {
		return t
	}
	over := time.Duration(t % mono.Time(grain))
	if over > 0 {
		over -= grain
	}
	return t.Add(-over)
}

// AppendUsage implements Describer.
func (r *Rolling) AppendUsage(to []Usage, now mono.Time) []Usage {
	if r.pair != nil {
		return r.pair.appendUsage(to, now)
	}
	now = max(now, r.last)
	used, recent := r.settled.afterBoth(now.Add(r.ahead()-r.span), now.Add(-r.window))
	to = append(to, r.usage(now, r.open+used))
	to[len(to)-1].Recent = recent
	return to
}

// counted returns the cost that counts at now: everything open, and what was settled within one
// window.
func (r *Rolling) counted(now mono.Time) int64 {
	return r.open + r.settled.after(now.Add(-r.span))
}

// AppendState implements Keeper.
func (r *Rolling) AppendState(b []byte) []byte {
	w := r.keep(b, 'r')
	w.log(&r.settled)
	return w
}

// Restore implements Keeper.
func (r *Rolling) Restore(b []byte) error {
	in := reading("Rolling", 'r', b)
	s, settled := in.account(), in.log()
	span, err := r.spanOf(time.Duration(max(s.window, 1)))
	if err := errors.Join(r.keeps(), in.end(), err); err != nil {
		return err
	}
	r.resume(s)
	r.span, r.settled = span, settled
	return nil
}

// ReadyAfter implements Forecaster.
func (r *Rolling) ReadyAfter(now mono.Time, first, cost Cost) mono.Time {
	return r.Ready(now, r.both(first, cost))
}

// NotBefore implements Forecaster.
func (r *Rolling) NotBefore(now mono.Time, n int, ahead, cost Cost) mono.Time {
	if r.pair != nil {
		return r.pair.NotBefore(now, n, ahead, cost)
	}
	return r.cyclesOf(r.shortest(r.span), now, &ahead, &cost)
}

// expected guesses what Expected does. A window begins at the answer, so the next one comes that much later.
func (r *Rolling) expected(now mono.Time, _ int, ahead, cost Cost) mono.Time {
	if r.pair != nil {
		return now
	}
	return r.cyclesOf(r.shortest(r.span)+r.holds, now, &ahead, &cost)
}

func (r *Rolling) cyclesOf(span time.Duration, now mono.Time, ahead, cost *Cost) mono.Time {
	q, t, done := r.ask(now, ahead, cost)
	if done {
		return t
	}
	return r.cycles(q, span, history{r.settled.total, func(w int64) mono.Time {
		return r.soonest(q.now, r.settled.freed(w).Add(r.span))
	}, r.settled.last()}, r.ages.oldest.Add(span))
}
