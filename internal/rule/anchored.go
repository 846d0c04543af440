package rule

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// AnchoredConfig is the rule of an interval that begins with a message. Limit and Window have no
// default.
type AnchoredConfig struct {
	// Limit is the most cost in an interval, 1 or more.
	Limit int64
	// Window is the length of an interval.
	Window time.Duration
	// Closed says that a message exactly Window after the first one of an interval still belongs to
	// it. Otherwise it begins the next interval.
	Closed bool
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
}

// anchored counts in intervals. Each begins with the first message after the end of the interval
// before, as at the messaging controls of some exchanges. Refused messages neither count nor begin
// an interval.
type anchored struct {
	dial
	limit, length int64 // of the interval [begun, begun + length)
	begun, used   int64
}

// NewAnchored returns a server that no request has reached.
func NewAnchored(c AnchoredConfig) (Timed, error) {
	if err := checkCommon(c.Limit, c.Window, c.Tick); err != nil {
		return nil, err
	}
	a := &anchored{dial: newDial(c.Tick), limit: c.Limit, length: int64(c.Window), begun: never}
	if c.Closed {
		a.length++
	}
	return a, nil
}

// Arrive is as in Server.
func (a *anchored) Arrive(now mono.Time, cost int64) bool {
	ok := a.Fits(now, cost)
	a.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule.
func (a *anchored) Fits(now mono.Time, cost int64) bool {
	if cost <= 0 {
		return free(cost)
	}
	over := a.read(now)-a.begun >= a.length
	return cost <= a.limit && (over || a.used+cost <= a.limit)
}

// Count is as in Rule.
func (a *anchored) Count(now mono.Time, cost int64, passed bool) {
	if cost <= 0 || !passed {
		return
	}
	if t := a.read(now); t-a.begun >= a.length {
		a.begun, a.used = t, 0
	}
	a.used += cost
}
