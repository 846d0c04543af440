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

// Reservation is leave to go at an instant, after Delay and not before. A caller that does not go
// calls Cancel. Safe for concurrent use.
type Reservation struct {
	limiter *Limiter // nil if the Reservation is not OK
	at      time.Time

	// The fields below are guarded by the Gate's lock.
	due   mono.Time // at, by the limiter's clock
	sent  limit.Sent
	held  bool // sent is open
	timer *time.Timer
}

// Reserve reserves the next instant at which one may go. It is behind all earlier reservations. All
// later requests come behind it, those in Wait too. Requests at the Gate itself count as answered
// no earlier than that instant. With limit.Weighted, the instants of many reservations are later
// than necessary: each counts in full until it goes.
func (l *Limiter) Reserve() *Reservation { return l.ReserveN(1) }

// ReserveN is Reserve for n at once. In three cases it is not OK and reserves nothing. n is more
// than Burst. A caller waits, so the instant behind that caller is unknown. Or only the answer to a
// request at the Gate itself can make room.
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

// book finds the instant of r and admits its cost there. While another instant can be found, the
// reservations before it stay open, so that they can be cancelled. When the whole limit is open, book
// settles the oldest one as arrived.
func (l *Limiter) book(now mono.Time, r *Reservation, cost limit.Cost) {
	at := l.limiter.Ready(now, cost) // no earlier than any reserved instant: each reservation was a change
	for at == limit.AfterSettle && len(l.held) > 0 {
		l.settle(now, l.held[0], l.arrives(now, l.held[0]))
		at = l.limiter.Ready(now, cost)
	}
	if at >= limit.AfterSettle {
		return
	}
	l.last = at
	r.limiter, r.due, r.held = l, at, true
	r.sent = limit.Sent{At: at, Number: l.gate.Number(), Cost: cost}
	l.limiter.Admit(&r.sent)
	l.held = append(l.held, r)
	d := at.Sub(now)
	r.at = time.Now().Add(d) // no earlier than due
	r.timer = time.AfterFunc(d, func() {
		l.gate.Update(func(now mono.Time) { l.settle(now, r, l.arrives(now, r)) })
	})
}

// arrives is the outcome of r at now. The request arrives by its instant plus Within. The limiter
// may replace now by the latest reserved instant.
func (l *Limiter) arrives(now mono.Time, r *Reservation) limit.Outcome {
	ago := max(now, l.last).Sub(r.due.Add(l.within))
	if ago == 0 { // 0 would mean unknown
		ago = -1
	}
	return limit.Outcome{ArrivedAgo: ago}
}

// settle settles r if it is open.
func (l *Limiter) settle(now mono.Time, r *Reservation, o limit.Outcome) {
	if !r.held {
		return
	}
	r.held = false
	r.timer.Stop()
	l.held = slices.DeleteFunc(l.held, func(h *Reservation) bool { return h == r })
	l.limiter.Settle(now, &r.sent, &o)
}

// OK reports whether the Reservation has an instant. If not, nothing may go.
func (r *Reservation) OK() bool { return r.limiter != nil }

// Delay returns the wait from now on. It is 0 if the request may go now, and Never if it is not OK.
func (r *Reservation) Delay() time.Duration { return r.DelayFrom(time.Now()) }

// DelayFrom is Delay as of t.
func (r *Reservation) DelayFrom(t time.Time) time.Duration {
	if !r.OK() {
		return Never
	}
	return max(r.at.Sub(t), 0)
}

// Cancel gives a Reservation up. Before its instant, Cancel gives back the reserved amount. There
// is one exception: a later reservation needed it, so it was already counted as gone. Later
// requests still go no earlier than the latest instant ever reserved.
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
