package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Concurrency keeps at most a number of requests in flight. Each counts once, whatever its cost. A
// request of unknown outcome may still be on its way, or in progress at the server. So it keeps its
// place until Late has passed.
//
// With a limit of 1 requests arrive in the order they were sent, whatever the latency. A server
// that demands rising nonces needs that. Not safe for concurrent use.
type Concurrency struct {
	limit    int64
	arrivals Arrivals
	last     mono.Time
	lingers  log   // requests of unknown outcome, by the ends of their stay
	open     int64 // in flight
	driven
}

// ConcurrencyConfig describes a server's bound on simultaneous requests. Limit is that bound, and
// has no default.
type ConcurrencyConfig struct {
	Limit int64
	// Late is how long after an unknown outcome a request may still be there. If zero, 5 s;
	// negative: not at all.
	Late time.Duration
}

// NewConcurrency checks the configuration and returns a Concurrency with nothing in flight.
func NewConcurrency(c ConcurrencyConfig) (*Concurrency, error) {
	if err := checkLimit("Concurrency", c.Limit); err != nil {
		return nil, err
	}
	return &Concurrency{limit: c.Limit, arrivals: Arrivals{Late: c.Late}, last: mono.Min}, nil
}

// SetLimit changes the limit from now on. Requests in flight stay.
func (c *Concurrency) SetLimit(now mono.Time, n int64) error {
	if err := checkLimit("Concurrency", n); err != nil {
		return err
	}
	c.last = max(now, c.last)
	c.limit = n
	return nil
}

// Ready implements Limiter.
func (c *Concurrency) Ready(now mono.Time, _ Cost) mono.Time { return c.beside(now, c.open, c.limit) }

// beside returns when one more may go beside those open, under a limit.
func (c *Concurrency) beside(now mono.Time, open, limit int64) mono.Time {
	now = max(now, c.last)
	over := open + c.lingers.total + 1 - limit
	if over <= 0 {
		return now
	}
	if open >= limit {
		return AfterSettle
	}
	return max(now, c.lingers.freed(over))
}

// Admit implements Limiter.
func (c *Concurrency) Admit(s *Sent) {
	c.last = max(s.At, c.last)
	c.open++
}

// Settle implements Limiter.
func (c *Concurrency) Settle(now mono.Time, s *Sent, o *Outcome) {
	now = max(now, c.last)
	c.last = now
	c.open--
	c.lingers.forget(now)
	if o.Result != Unknown {
		return
	}
	if u, _ := c.arrivals.bound(now, s.At, o); u > now {
		c.lingers.add(u, 1)
	}
}

// AppendUsage implements Describer.
func (c *Concurrency) AppendUsage(to []Usage, now mono.Time) []Usage {
	used := c.open + c.lingers.after(max(now, c.last))
	return append(to, Usage{Limit: "concurrency", InFlight: true, Used: used, Open: c.open, Allowed: c.limit, Requests: int(c.open)})
}

// Rules implements Describer.
func (c *Concurrency) Rules() []Rule {
	return []Rule{{Name: "concurrency", N: c.limit, Counts: CountsInFlight}}
}

// ReadyAfter implements Forecaster.
func (c *Concurrency) ReadyAfter(now mono.Time, _, _ Cost) mono.Time {
	return c.beside(now, c.open+1, c.limit)
}

// ReadyLeaving is the function ReadyLeaving. The free part is one of the places, and one place is never free.
func (c *Concurrency) ReadyLeaving(now mono.Time, first *Cost, _ Cost, free float64) mono.Time {
	return c.beside(now, c.open+one(first), c.limit-Leaves(c.limit, free))
}

// NotBefore implements Forecaster. The requests open and ahead may be answered at once.
func (c *Concurrency) NotBefore(now mono.Time, _ int, _, _ Cost) mono.Time {
	now = max(now, c.last)
	if over := c.lingers.total + 1 - c.limit; over > 0 {
		return max(now, c.lingers.freed(over))
	}
	return now
}
