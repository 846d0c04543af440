package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/mono"
)

// Calendar keeps every interval of a server's clock at or under a limit: so many per minute of the clock, per UTC day.
// Where it is known when the intervals begin this allows more than Rolling, which is right where it is not: a whole limit
// late in one interval, and another early in the next.
//
// A cost w may go at s when, with b the beginning of the interval that s − Skew is in,
//
//	Σ open + w + Σ {w_i : u_i ≥ b − Skew} ≤ Limit
//
// Why no interval overflows: the last sent of those that arrive in one is sent when the interval has begun or before. In
// the first case each of the others is open or has u_i ≥ a_i, which is not before the true beginning, nor that before b −
// Skew. In the second, b is an earlier beginning, and more is counted.
//
// Not safe for concurrent use. Ready, Admit and Settle do not allocate; all that was settled in one interval shares one
// entry of 16 bytes.
type Calendar struct {
	account
	window  time.Duration
	phase   mono.Time
	skew    time.Duration
	settled log
}

// CalendarConfig describes a server's window that is aligned to a clock.
type CalendarConfig struct {
	// Limit is the most cost in any interval.
	Limit  int64
	Window time.Duration
	// Phase is a beginning of an interval, any one, on the driver's scale: mono.Of(epoch, midnight).
	Phase mono.Time
	// Skew is how far the server's beginnings may be from where Phase puts them, either way; so long after each of them
	// the first request goes. If zero, 50 ms, what clocks set by NTP keep on a bad day. Negative: none.
	Skew time.Duration
	// Unit is the component of Cost that counts. If zero, Requests.
	Unit Unit
	Arrivals
}

// NewCalendar checks the configuration and returns a Calendar with an empty history.
func NewCalendar(c CalendarConfig) (*Calendar, error) {
	a, err := newAccount("Calendar", c.Limit, c.Window, c.Unit, c.Arrivals)
	if err != nil {
		return nil, err
	}
	if c.LearnLead {
		return nil, fmt.Errorf("limit: Calendar: LearnLead is not for this kind of limit")
	}
	switch {
	case c.Skew == 0:
		c.Skew = 50 * time.Millisecond
	case c.Skew < 0:
		c.Skew = 0
	case c.Skew > c.Window:
		return nil, fmt.Errorf("limit: Calendar: Skew %v is longer than Window %v: then the phase is not known", c.Skew, c.Window)
	}
	l := &Calendar{account: a, window: c.Window, phase: c.Phase, skew: c.Skew}
	if c.OneWayMax > 0 {
		bold, safe := *l, *l
		safe.sure()
		l.pair = newPair(&bold, &safe)
	}
	return l, nil
}

// SetLimit changes the limit from now on; the history stays.
func (c *Calendar) SetLimit(now mono.Time, n int64) error { return c.setLimit("Calendar", now, n) }

// begin returns the beginning of the interval that t is in, by Phase.
func (c *Calendar) begin(t mono.Time) mono.Time {
	in := t.Sub(c.phase) % c.window
	if in < 0 {
		in += c.window
	}
	return t.Add(-in)
}

// freed returns when a request that arrived by u no longer counts.
func (c *Calendar) freed(u mono.Time) mono.Time {
	return c.begin(u.Add(c.skew)).Add(c.window).Add(c.skew)
}

// Ready implements Limiter.
func (c *Calendar) Ready(now mono.Time, cost Cost) mono.Time {
	if c.pair != nil {
		return c.pair.Ready(now, cost)
	}
	now = max(now, c.last)
	w := cost.of(c.unit)
	over := c.open + c.settled.total + w - c.limit
	if over <= 0 || w == 0 {
		return now
	}
	if w > c.limit {
		return Never
	}
	if c.open+w > c.limit {
		return AfterSettle
	}
	return max(now, c.settled.freed(over))
}

// Admit implements Limiter.
func (c *Calendar) Admit(now mono.Time, cost Cost) Lease {
	if c.pair != nil {
		return c.pair.Admit(now, cost)
	}
	return c.admit(now, cost.of(c.unit))
}

// Settle implements Limiter.
func (c *Calendar) Settle(now mono.Time, l Lease, o Outcome) {
	if c.pair != nil {
		c.pair.Settle(now, l, o)
		return
	}
	now, u, w := c.close(now, l, &o)
	c.settled.forget(now)
	if w > 0 {
		c.settled.add(c.freed(u), w)
	}
}
