package rule

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// CalendarConfig is the rule that no interval of a calendar holds more than Limit. Limit and Window
// have no default.
type CalendarConfig struct {
	// Limit is the most cost in an interval, 1 or more.
	Limit int64
	// Window is the length of an interval. Its first instant belongs to it, its last to the next.
	Window time.Duration
	// Phase is the first instant of one of the intervals.
	Phase mono.Time
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
	// RefusedCount says that refused requests count as well, each as at most Limit.
	RefusedCount bool
}

// calendar is a counter per interval of the wall clock, such as a key per minute in a shared store.
// The clock may be set back into the interval before. Then the counter of that interval continues.
// The counters of earlier intervals are gone, and begin at 0.
type calendar struct {
	dial
	limit, window, phase int64
	refused              bool
	current, other       interval // the interval of the last arrival, and the interval of the clock before that
}

type interval struct{ from, used int64 }

// NewCalendar returns a server that no request has reached.
func NewCalendar(c CalendarConfig) (Timed, error) {
	if err := checkCommon(c.Limit, c.Window, c.Tick); err != nil {
		return nil, err
	}
	w := int64(c.Window)
	return &calendar{dial: newDial(c.Tick), limit: c.Limit, window: w, phase: inFirst(c.Phase, w), refused: c.RefusedCount,
		current: interval{from: never}, other: interval{from: never}}, nil
}

// inFirst returns the boundary of an interval in [0, window).
func inFirst(phase mono.Time, window int64) int64 {
	p := int64(phase) % window
	if p < 0 {
		p += window
	}
	return p
}

// Arrive is as in Server.
func (c *calendar) Arrive(now mono.Time, cost int64) bool {
	ok := c.Fits(now, cost)
	c.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule.
func (c *calendar) Fits(now mono.Time, cost int64) bool {
	if cost <= 0 {
		return free(cost)
	}
	t := c.follow(now)
	if in := t - c.current.from; in < 0 || in >= c.window {
		c.turn(floor(t-c.phase, c.window) + c.phase)
	}
	return cost <= c.limit && c.current.used+cost <= c.limit
}

// turn makes the interval that begins at from the current one.
func (c *calendar) turn(from int64) {
	c.current, c.other = c.other, c.current
	if c.current.from != from {
		c.current = interval{from: from}
	}
}

// Count is as in Rule.
func (c *calendar) Count(_ mono.Time, cost int64, passed bool) {
	if passed {
		c.current.used += cost
	} else if c.refused {
		c.current.used = min(c.current.used+min(cost, c.limit), c.limit) // a count beyond the limit is not needed
	}
}
