package xrate

import (
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Never is the Delay of a Reservation that is not OK.
const Never = time.Duration(math.MaxInt64)

// Reservation is leave to go at an instant that may be to come: after Delay, and not before. Whoever does not go cancels it. Safe for
// concurrent use.
type Reservation struct {
	limiter *Limiter // nil if it is not OK
	at      time.Time

	// What follows is guarded by the Gate's lock.
	due   mono.Time // at, as the limiter has it
	lease limit.Lease
	held  bool // the lease is open
	timer *time.Timer
}

// Reserve holds the next instant at which one may go. That goes behind all that was reserved before, and all that comes later goes
// behind it: those who Wait, too. What uses the Gate itself counts as answered no earlier than that instant. With limit.Weighted the
// instants of many that are reserved at once are later than need be, as each counts in full until it goes.
func (l *Limiter) Reserve() *Reservation { return l.ReserveN(1) }

// ReserveN is Reserve for n at once. It is not OK, and holds nothing, if n is more than Burst, if somebody waits, since then nobody knows
// the instant behind them, or if only the answer to a request sent by way of the Gate itself can make room.
func (l *Limiter) ReserveN(n int) *Reservation {
	if l.AllowN(n) {
		return &Reservation{limiter: l, at: time.Now()}
	}
	r := new(Reservation)
	if l.gate.Stats().Waiting > 0 {
		return r
	}
	l.gate.Update(func(now mono.Time) { l.book(now, r, l.cost(n)) })
	return r
}

// book finds the instant of r and opens its lease there. So long as there is another instant to be found the leases of those before it
// stay open, so that they can be cancelled; when all that is allowed is open the oldest of them is counted on.
func (l *Limiter) book(now mono.Time, r *Reservation, cost limit.Cost) {
	at := l.limiter.Ready(now, cost) // no earlier than any instant that was reserved: that was a change
	for at == limit.AfterSettle && len(l.held) > 0 {
		l.settle(now, l.held[0], l.arrives(now, l.held[0]))
		at = l.limiter.Ready(now, cost)
	}
	if at >= limit.AfterSettle {
		return
	}
	l.last = at
	r.limiter, r.due, r.held = l, at, true
	r.lease = l.limiter.Admit(at, cost)
	l.held = append(l.held, r)
	d := at.Sub(now)
	r.at = time.Now().Add(d) // no earlier than due
	r.timer = time.AfterFunc(d, func() {
		l.gate.Update(func(now mono.Time) { l.settle(now, r, l.arrives(now, r)) })
	})
}

// arrives is the outcome of r at now: it arrives by its instant and Within, though the limiter may take now for the latest instant that
// is reserved.
func (l *Limiter) arrives(now mono.Time, r *Reservation) limit.Outcome {
	ago := max(now, l.last).Sub(r.due.Add(l.within))
	if ago == 0 { // which would say that nothing is known
		ago = -1
	}
	return limit.Outcome{ArrivedAgo: ago}
}

// settle closes the lease of r if it is open.
func (l *Limiter) settle(now mono.Time, r *Reservation, o limit.Outcome) {
	if !r.held {
		return
	}
	r.held = false
	r.timer.Stop()
	l.held = slices.DeleteFunc(l.held, func(h *Reservation) bool { return h == r })
	l.limiter.Settle(now, r.lease, o)
}

// OK reports whether it holds an instant. If not, nothing may go.
func (r *Reservation) OK() bool { return r.limiter != nil }

// Delay returns how long to wait from now on: 0 if it may go, Never if it is not OK.
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom is Delay as of t.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.OK() {
		return Never
	}
	return max(r.at.Sub(t), 0)
}

// Cancel says that what was reserved will not go. Before its instant that gives back what it would have used, unless so much was
// reserved after it that it had been counted on. What comes later still goes no earlier than the latest instant that was ever
// reserved.
func (r *Reservation) Cancel() {
	if !r.OK() {
		return
	}
	l := r.limiter
	l.gate.Update(func(now mono.Time) {
		if now < r.due {
			l.settle(now, r, limit.Outcome{Result: limit.Unsent})
		}
	})
}
