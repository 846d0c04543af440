package paceline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Gate lets goroutines wait for a Limiter, first come first served. Most callers want Wait; TryWait never blocks.
//
// The goroutine at the head of the line holds up all others, so that a large cost is not starved by small ones. Work
// that should be packed or put in order by priority belongs in a Pool.
//
// A Gate starts no goroutine and needs no closing. It has one timer, set only while the head of the line knows when it
// may go; whoever makes room (a Settle, the timer, Update, a waiter who gives up) admits those at the head and wakes
// them alone. Safe for concurrent use. Made by NewGate; the zero Gate is not usable. A Gate made inside a testing/synctest
// bubble belongs to that bubble.
type Gate struct {
	base time.Time // epoch of the instants that the limiter sees

	mu      sync.Mutex // guards all below
	limiter limit.Limiter
	head    *waiter
	tail    *waiter
	waiting int
	wake    mono.Time // the head's verdict, later than the now of its asking; meaningless without a head

	timer *time.Timer
	armed mono.Time // instant the timer is set for, as far as the Gate cares; notArmed: none

	// Not a sync.Pool: that would hand a channel from one synctest bubble to another.
	free  *waiter
	freed int

	ticks uint64 // timer callbacks
	wakes uint64 // waiters woken
}

const (
	notArmed = limit.Never
	// freeMax bounds what a burst of waiters leaves behind, at about 256 bytes each.
	freeMax = 1024
)

// waiter is a goroutine in line. Links and verdict are guarded by the Gate's lock; whoever takes it out of the line to
// wake it writes the verdict and sends on woken, both under the lock, once.
type waiter struct {
	prev, next *waiter
	inLine     bool
	ahead      int
	cost       limit.Cost
	asked      mono.Time
	deadline   mono.Time     // limit.Never: none
	woken      chan struct{} // room for one
	lease      limit.Lease   // the verdict if reason is nil
	reason     error
	ready      mono.Time // with ErrDeadline: when it could go
}

// NewGate returns a Gate for l, which now belongs to the Gate: nobody else may use it, other than inside Update. It
// panics if l is nil. Two Gates must not share a limiter: the second would never hear of the first's Settle.
func NewGate(l limit.Limiter) *Gate {
	if l == nil {
		panic("paceline: NewGate: the Limiter is nil")
	}
	return &Gate{base: time.Now(), limiter: l, armed: notArmed}
}

// Permit is leave to send one request now. Every Permit must be settled, exactly once: until then it counts in full
// against the limit. Copies are the same Permit. The zero Permit is none.
type Permit struct {
	gate  *Gate
	lease limit.Lease
}

// Settle says how the request ended, as soon as that is known: with limit.Unsent if it was not sent after all, with the
// zero Outcome if nobody can tell. It admits the head of the line if that makes room. It panics if the Permit was
// settled before or is the zero Permit.
func (p Permit) Settle(o limit.Outcome) {
	if p.gate == nil {
		panic("paceline: settle of the zero Permit")
	}
	p.gate.settle(p.lease, &o)
}

func (g *Gate) settle(l limit.Lease, o *limit.Outcome) {
	g.mu.Lock()
	defer g.mu.Unlock() // the limiter panics if this is the second time
	now := g.now()
	g.limiter.Settle(now, l, *o)
	g.serveLocked(now)
}

// Wait returns when cost may go and has been admitted. It takes its place at the end of the line and leaves it only by
// being served or by an error, which is always a *WaitError:
//
//   - ErrNever, at once, if the cost is larger than the limit can ever allow; also later, if an Update makes it so.
//   - ErrDeadline, at once, if the earliest instant known is after ctx's deadline; also later, as soon as that is found
//     out, or if the deadline passes. The error says when it could have gone.
//   - ctx's error and its cause, if ctx is or gets cancelled.
//
// The earliest instant is that of now: if a Permit still open were settled as unsent it could be sooner. Giving up
// costs the limit nothing and those behind no time. A grant that races with giving up wins: the Permit is returned even
// if ctx is done by then (settle it as limit.Unsent if it is of no more use). A ctx done before the call never gets one.
func (g *Gate) Wait(ctx context.Context, cost limit.Cost) (Permit, error) {
	if ctx.Err() != nil {
		e := &WaitError{Cost: cost}
		e.ended(ctx)
		return Permit{}, e
	}
	p, w, err := g.enter(ctx, cost)
	if w == nil {
		return p, err
	}
	select {
	case <-w.woken:
		return g.leave(ctx, w, true)
	case <-ctx.Done():
		return g.leave(ctx, w, false)
	}
}

// enter admits cost at once, or refuses it at once, or returns its new place in the line.
func (g *Gate) enter(ctx context.Context, cost limit.Cost) (Permit, *waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	own, turn := g.askLocked(now, cost)
	at := max(own, turn)
	switch {
	case at <= now:
		return Permit{g, g.limiter.Admit(now, cost)}, nil, nil
	case at == limit.Never:
		return Permit{}, nil, &WaitError{Reason: ErrNever, Cost: cost, Ahead: g.waiting}
	}
	deadline := limit.Never
	if d, ok := ctx.Deadline(); ok {
		deadline = mono.Of(g.base, d)
		// Either may be AfterSettle while the other already is an instant too late.
		if late := latest(own, turn); late > deadline {
			e := &WaitError{Reason: ErrDeadline, Cost: cost, Ahead: g.waiting, Deadline: d}
			e.Ready = g.base.Add(time.Duration(late))
			return Permit{}, nil, e
		}
	}
	w := g.free
	if w != nil {
		g.free, w.next = w.next, nil
		g.freed--
	} else {
		w = &waiter{woken: make(chan struct{}, 1)}
	}
	w.cost, w.asked, w.deadline, w.ahead = cost, now, deadline, g.waiting
	g.linkLocked(w)
	if g.head == w {
		g.wakeAtLocked(now, at)
	}
	return Permit{}, w, nil
}

// leave reads the verdict of a waiter that was woken or gives up, and frees its place.
func (g *Gate) leave(ctx context.Context, w *waiter, woken bool) (Permit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !woken && w.inLine {
		now := g.now()
		e := &WaitError{Cost: w.cost, Ahead: w.ahead, Waited: now.Sub(w.asked)}
		e.ended(ctx)
		if g.wake > now && g.wake < limit.AfterSettle {
			e.Ready = g.base.Add(time.Duration(g.wake))
		}
		first := g.head == w
		g.unlinkLocked(w)
		g.recycleLocked(w)
		if first {
			g.serveLocked(now)
		}
		return Permit{}, e
	}
	if !woken {
		<-w.woken // sent under the lock: it is there
	}
	if w.reason == nil {
		p := Permit{g, w.lease}
		g.recycleLocked(w)
		return p, nil
	}
	e := &WaitError{Reason: w.reason, Cost: w.cost, Ahead: w.ahead, Waited: g.now().Sub(w.asked)}
	e.Deadline, _ = ctx.Deadline()
	if w.reason == ErrDeadline {
		e.Ready = g.base.Add(time.Duration(w.ready))
	}
	g.recycleLocked(w)
	return Permit{}, e
}

// What TryWait says instead of a time to wait: as in package limit, later than every instant.
const (
	// RetryAfterSettle: only the Settle of an open Permit can make room, and nobody knows when that will be.
	RetryAfterSettle = time.Duration(math.MaxInt64 - 1)
	// RetryNever: the cost is larger than the limit; only a change of limit helps.
	RetryNever = time.Duration(math.MaxInt64)
)

// TryWait admits cost now or not at all. It does not overtake goroutines that wait: while there is a line ok is false,
// even if cost would fit.
//
// If ok is false, retry is more than 0: for at least that long, as far as is known now, asking again is in vain. It is
// the time until both this cost and the head of the line could go, not a place in the line. Where no such time is known
// it is RetryAfterSettle or RetryNever.
func (g *Gate) TryWait(cost limit.Cost) (p Permit, retry time.Duration, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	own, turn := g.askLocked(now, cost)
	switch at := max(own, turn); {
	case at <= now:
		return Permit{g, g.limiter.Admit(now, cost)}, 0, true
	case at == limit.Never:
		return Permit{}, RetryNever, false
	case at == limit.AfterSettle:
		return Permit{}, RetryAfterSettle, false
	default:
		return Permit{}, at.Sub(now), false
	}
}

// Update calls f under the Gate's lock, to change or read the limiter: SetLimit, Extend, the replay of a journal. now
// is the instant on the limiter's scale, whose epoch is the making of the Gate. Afterwards every goroutine in line is
// asked about again: those at the head that may go now go, and those whose cost can no longer fit, or no longer by their
// deadline, fail. f must not call the Gate, nor settle one of its Permits: that would hang.
func (g *Gate) Update(f func(now mono.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.reviewLocked() // even if f panics: it may have changed something before
	f(g.now())
}

func (g *Gate) now() mono.Time { return mono.Time(time.Since(g.base)) }

// tick is the timer's callback. A callback overtaken by another setting of the timer is harmless: it asks and sets again.
func (g *Gate) tick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ticks++
	g.armed = notArmed
	g.serveLocked(g.now())
}

// askLocked returns when a newcomer's cost could go by itself, and when the head of the line could. Both are at or
// before now only if there is no line.
func (g *Gate) askLocked(now mono.Time, cost limit.Cost) (own, turn mono.Time) {
	turn = now
	if g.head != nil {
		if g.wake <= now { // the timer is late
			g.serveLocked(now)
		}
		if g.head != nil {
			turn = g.wake
		}
	}
	return g.limiter.Ready(now, cost), turn
}

// serveLocked admits and wakes those at the head of the line that may go, and sets the timer for the first that may not.
// It must follow every change of the limiter and of the head.
func (g *Gate) serveLocked(now mono.Time) {
	for w := g.head; w != nil; w = g.head {
		at := g.limiter.Ready(now, w.cost)
		if at > now {
			if g.failLocked(w, at) {
				continue
			}
			g.wakeAtLocked(now, at)
			return
		}
		w.lease = g.limiter.Admit(now, w.cost)
		g.wakeLocked(w, nil)
	}
	g.wakeAtLocked(now, notArmed)
}

// reviewLocked serves the line and then looks at the rest of it, which serveLocked leaves for later.
func (g *Gate) reviewLocked() {
	now := g.now()
	g.serveLocked(now)
	if g.head == nil {
		return
	}
	for w := g.head.next; w != nil; {
		next := w.next
		g.failLocked(w, g.limiter.Ready(now, w.cost))
		w = next
	}
}

// failLocked wakes w with an error if at, its verdict, leaves it no hope, and reports whether it did.
func (g *Gate) failLocked(w *waiter, at mono.Time) bool {
	switch {
	case at == limit.Never:
		g.wakeLocked(w, ErrNever)
	case at < limit.AfterSettle && at > w.deadline:
		w.ready = at
		g.wakeLocked(w, ErrDeadline)
	default:
		return false
	}
	return true
}

func (g *Gate) wakeLocked(w *waiter, reason error) {
	g.unlinkLocked(w)
	w.reason = reason
	g.wakes++
	w.woken <- struct{}{}
}

// wakeAtLocked notes the head's verdict and sets the timer for it, or stops the timer if it is no instant.
func (g *Gate) wakeAtLocked(now, at mono.Time) {
	g.wake = at
	if at >= limit.AfterSettle {
		at = notArmed
	}
	if at == g.armed {
		return
	}
	g.armed = at
	switch {
	case at == notArmed:
		g.timer.Stop()
	case g.timer == nil:
		g.timer = time.AfterFunc(at.Sub(now), g.tick)
	default:
		g.timer.Reset(at.Sub(now))
	}
}

func (g *Gate) linkLocked(w *waiter) {
	w.inLine = true
	w.prev = g.tail
	if g.tail == nil {
		g.head = w
	} else {
		g.tail.next = w
	}
	g.tail = w
	g.waiting++
}

func (g *Gate) unlinkLocked(w *waiter) {
	if w.prev == nil {
		g.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		g.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.inLine = nil, nil, false
	g.waiting--
}

// recycleLocked keeps a waiter that is out of the line and whose channel is empty.
func (g *Gate) recycleLocked(w *waiter) {
	if g.freed == freeMax {
		return
	}
	w.next, g.free = g.free, w
	g.freed++
}

// latest returns the later of those of a and b that are instants, or mono.Min.
func latest(a, b mono.Time) mono.Time {
	t := mono.Min
	if a < limit.AfterSettle {
		t = a
	}
	if b < limit.AfterSettle {
		t = max(t, b)
	}
	return t
}

// Why a Wait failed. A third reason is the error of a context that was cancelled.
var (
	// ErrNever: the cost is larger than the limit. Waiting does not help, nor does asking again.
	ErrNever = errors.New("paceline: cost never fits the limit")
	// ErrDeadline: the context's deadline comes first. Such an error also is context.DeadlineExceeded.
	ErrDeadline = errors.New("paceline: the deadline comes first")
)

// WaitError says what a Wait asked for and what stood in the way.
type WaitError struct {
	// Reason is ErrNever, ErrDeadline or the error of the context.
	Reason error
	// Cause is what the context was cancelled with, if that says more than Reason; otherwise nil.
	Cause error
	// Cost is what was asked for.
	Cost limit.Cost
	// Ahead is how many goroutines were in line when it asked.
	Ahead int
	// Waited is how long it was in line; 0 if it was refused at once.
	Waited time.Duration
	// Ready is the earliest instant at which it could have gone, as far as was known when it failed. Zero: not known.
	Ready time.Time
	// Deadline is the context's. Zero: none.
	Deadline time.Time
}

// ended fills in why ctx, which is done, ended.
func (e *WaitError) ended(ctx context.Context) {
	e.Deadline, _ = ctx.Deadline()
	e.Reason = ctx.Err()
	if c := context.Cause(ctx); c != e.Reason {
		e.Cause = c
	}
	if e.Reason == context.DeadlineExceeded {
		e.Reason = ErrDeadline
	}
}

func (e *WaitError) Error() string {
	s := "paceline: cost " + e.Cost.String()
	switch {
	case e.Reason == ErrNever:
		s += " is larger than the limit"
	case e.Reason == ErrDeadline && !e.Ready.IsZero():
		s += fmt.Sprintf(" could go %v after the deadline at the earliest", e.Ready.Sub(e.Deadline))
	case e.Reason == ErrDeadline:
		s += " had no turn before the deadline"
	default:
		s += fmt.Sprintf(" had no turn: %v", e.Reason)
	}
	if e.Cause != nil {
		s += fmt.Sprintf(" (%v)", e.Cause)
	}
	if e.Waited > 0 {
		s += fmt.Sprintf(", after %v in line", e.Waited)
	}
	if e.Ahead > 0 {
		s += fmt.Sprintf(", with %d ahead", e.Ahead)
	}
	return s
}

// Unwrap makes the error its Reason and its Cause, and context.DeadlineExceeded if its Reason is ErrDeadline.
func (e *WaitError) Unwrap() []error {
	errs := []error{e.Reason}
	if e.Reason == ErrDeadline {
		errs = append(errs, context.DeadlineExceeded)
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

// Timeout reports whether the Reason is ErrDeadline, for net.Error and os.IsTimeout.
func (e *WaitError) Timeout() bool { return e.Reason == ErrDeadline }
