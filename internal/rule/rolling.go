package rule

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// RollingConfig is the rule that no closed window holds more than Limit. Limit and Window have no
// default.
type RollingConfig struct {
	// Limit is the most cost in any closed window, 1 or more.
	Limit int64
	// Window is the length of the window. An arrival exactly Window ago still counts.
	Window time.Duration
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
	// RefusedCount says that refused requests count as well, each as at most Limit. A client that
	// keeps on trying is then refused again and again.
	RefusedCount bool
}

// rolling is a log of the arrivals in the last window. It holds at most Limit of them, 16 bytes
// each.
type rolling struct {
	dial
	limit, window int64
	refused       bool
	ring          []entry // its length is a power of two
	head, n       int
	sum           int64
}

type entry struct{ at, cost int64 }

// NewRolling returns a server that no request has reached.
func NewRolling(c RollingConfig) (Amendable, error) {
	if err := checkCommon(c.Limit, c.Window, c.Tick); err != nil {
		return nil, err
	}
	return &rolling{dial: newDial(c.Tick), limit: c.Limit, window: int64(c.Window), refused: c.RefusedCount,
		ring: make([]entry, 16)}, nil
}

// Arrive is as in Server.
func (r *rolling) Arrive(now mono.Time, cost int64) bool {
	ok := r.Fits(now, cost)
	r.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule.
func (r *rolling) Fits(now mono.Time, cost int64) bool {
	if cost <= 0 {
		return free(cost)
	}
	t := r.read(now)
	for r.n > 0 && t-r.ring[r.head].at > r.window {
		r.forget()
	}
	return cost <= r.limit && r.sum+cost <= r.limit
}

// Count is as in Rule.
func (r *rolling) Count(now mono.Time, cost int64, passed bool) {
	if cost <= 0 || !passed && !r.refused {
		return
	}
	t := r.read(now)
	cost = min(cost, r.limit)
	last := (r.head + r.n - 1) & (len(r.ring) - 1)
	if r.n > 0 && r.ring[last].at == t {
		r.ring[last].cost += cost
	} else {
		if r.n == len(r.ring) {
			r.grow()
		}
		r.ring[(r.head+r.n)&(len(r.ring)-1)] = entry{t, cost}
		r.n++
	}
	r.sum += cost
	// If the entries after the oldest leave no room, the oldest is no longer needed: it leaves the
	// window before they do. Only refused requests can cause that.
	for r.n > 1 && r.sum-r.ring[r.head].cost >= r.limit {
		r.forget()
	}
	if r.n == 1 { // all arrived at one instant
		r.sum = min(r.sum, r.limit)
		r.ring[r.head].cost = r.sum
	}
}

func (r *rolling) forget() {
	r.sum -= r.ring[r.head].cost
	r.head = (r.head + 1) & (len(r.ring) - 1)
	r.n--
}

func (r *rolling) grow() {
	ring := make([]entry, 2*len(r.ring))
	n := copy(ring, r.ring[r.head:])
	copy(ring[n:], r.ring[:r.head])
	r.ring, r.head = ring, 0
}
