package limit

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Cooldown keeps away for as long as a server asks: a Retry-After, a ban, a pause of one's own. Put
// it in an All beside the limits of the same server. Not safe for concurrent use.
type Cooldown struct {
	pause time.Duration
	until mono.Time
	last  mono.Time
	driven
}

// NewCooldown returns a Cooldown without a pause under way. pause is how long to stay away after a
// refusal without a Retry-After. It may be 0.
func NewCooldown(pause time.Duration) (*Cooldown, error) {
	if pause < 0 {
		return nil, fmt.Errorf("limit: Cooldown: pause %v is negative", pause)
	}
	return &Cooldown{pause: pause, until: mono.Min, last: mono.Min}, nil
}

// Extend makes nothing ready before t. A t before the present end of the pause changes nothing.
func (c *Cooldown) Extend(t mono.Time) { c.until = max(c.until, min(t, mono.Max)) }

// Until returns the instant before which nothing is ready.
func (c *Cooldown) Until() mono.Time { return c.until }

// Ready implements Limiter.
func (c *Cooldown) Ready(now mono.Time, _ Cost) mono.Time { return max(now, c.last, c.until) }

// Admit implements Limiter.
func (c *Cooldown) Admit(s *Sent) { c.last = max(s.At, c.last) }

// Settle implements Limiter.
func (c *Cooldown) Settle(now mono.Time, _ *Sent, o *Outcome) {
	c.last = max(now, c.last)
	wait := o.RetryAfter
	if wait <= 0 && o.Result == Limited {
		wait = c.pause
	}
	if wait > 0 && !o.Elsewhere {
		c.Extend(c.last.Add(wait))
	}
}

// Rules implements Describer.
func (c *Cooldown) Rules() []Rule { return []Rule{{Name: "cool-down", Counts: CountsNothing}} }

// AppendUsage implements Describer.
func (c *Cooldown) AppendUsage(to []Usage, _ mono.Time) []Usage { return to }

// AppendState implements Keeper.
func (c *Cooldown) AppendState(b []byte) []byte {
	w := begun(b, 'd')
	w.instant(c.last)
	w.instant(c.until)
	return w
}

// Restore implements Keeper.
func (c *Cooldown) Restore(b []byte) error {
	r := reading("Cooldown", 'd', b)
	last, until := r.instant("the last change"), r.instant("the end of the pause")
	if err := r.end(); err != nil {
		return err
	}
	c.last, c.until = max(c.last, last), until
	return nil
}

// ReadyAfter implements Forecaster.
func (c *Cooldown) ReadyAfter(now mono.Time, _, cost Cost) mono.Time { return c.Ready(now, cost) }

// NotBefore implements Forecaster.
func (c *Cooldown) NotBefore(now mono.Time, _ int, _, cost Cost) mono.Time { return c.Ready(now, cost) }
