package paceline

import (
	"context"
	"runtime"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// waiter is a goroutine in line. All but woken is guarded by the Group's lock. Whoever gives it a verdict sends true on woken,
// once: from then on the line has nothing to do with it. A false on woken tells it to begin spinning.
type waiter struct {
	ticket   scheduler.Ticket
	lane     *Lane
	next     *waiter // in the list of free ones
	here     bool    // its goroutine is looking after the line just now, and need not be woken
	asked    mono.Time
	woken    chan bool // room for one
	measured bool
	tally    *tally // not nil if it is or was measured
}

// wait waits. came is its place in line; limit.Never: the end.
func (a *Lane) wait(ctx context.Context, cost *limit.Cost, came mono.Time, s *WaitStats) (Permit, error) {
	if ctx.Err() != nil {
		e := &WaitError{Cost: *cost}
		e.ended(ctx)
		a.counts.gaveUp.Add(1)
		return Permit{}, e
	}
	p, w, err := a.enter(ctx, cost, came, 0, s != nil)
	if w == nil {
		return p, err
	}
	return a.inLine(ctx, w, s)
}

// waitAtMost is wait for no longer than most.
func (a *Lane) waitAtMost(ctx context.Context, cost *limit.Cost, came mono.Time, most time.Duration, s *WaitStats) (Permit, error) {
	if ctx.Err() != nil {
		return a.wait(ctx, cost, came, s)
	}
	until := time.Now().Add(most)
	p, w, err := a.enter(ctx, cost, came, most, s != nil)
	if w == nil {
		return p, err
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return a.inLine(ctx, w, s)
}

// inLine waits for the verdict of w, which has its place.
func (a *Lane) inLine(ctx context.Context, w *waiter, s *WaitStats) (Permit, error) {
	done := ctx.Done()
	for {
		var told bool
		if done == nil { // a select costs twice as much
			told = <-w.woken
		} else {
			select {
			case told = <-w.woken:
			case <-done:
			}
		}
		if told && s == nil && w.ticket.State == scheduler.Granted { // nothing to do under the lock, which whoever told it may still hold
			if p := (Permit{w.ticket.Pass}); a.group.spare.CompareAndSwap(nil, w) {
				return p, nil
			}
		}
		p, then, err := a.leave(ctx, w, s)
		for then == spin {
			a.group.spin(w, done)
			p, then, err = a.leave(ctx, w, s)
		}
		if then == gone {
			return p, err
		}
	}
}

// enter admits cost at once, or refuses it at once, or returns its new place in the line. most is the longest that it may be foreseen to
// wait, if that is not 0.
func (a *Lane) enter(ctx context.Context, cost *limit.Cost, came mono.Time, most time.Duration, measured bool) (Permit, *waiter, error) {
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	now := j.now()
	if a.lane.Len() == 0 { // one that can go at once needs no place in line
		if pass, at := j.line.Try(now, a.lane, cost, nil); at <= now {
			j.deliverLocked(now)
			return Permit{pass}, nil, nil
		}
	}
	w := j.takeLocked()
	t := &w.ticket
	t.Ask(cost)
	t.Place, t.Deadline = min(came, now).Add(-a.headLocked()), limit.Never
	if d, ok := ctx.Deadline(); ok {
		t.Deadline = mono.Of(j.base, d)
	}
	w.lane, w.asked, w.measured = a, now, false
	state := scheduler.None
	if most > 0 {
		t.Deadline = min(t.Deadline, now.Add(most))
		if at, n := j.line.Expect(now, a.lane, cost, t.Place); at > now.Add(most) && at < limit.AfterSettle {
			t.At, t.Ahead, state = at, n, scheduler.Late
			t.State = state
		}
	}
	if state == scheduler.None {
		state = j.line.Enter(now, a.lane, t)
	}
	if state != scheduler.Waiting {
		var p Permit
		var err error
		if state == scheduler.Granted {
			p = Permit{t.Pass}
		} else {
			err = a.refusedLocked(ctx, now, w)
		}
		j.recycleLocked(w)
		j.deliverLocked(now)
		return p, nil, err
	}
	w.beginLocked(now, measured)
	if !measured && a.lane.First() == t {
		a.sampleLocked(now)
	}
	w.here = true
	j.deliverLocked(now)
	w.here = false
	if t.State == scheduler.Granted { // it may pass those before it
		p := Permit{t.Pass}
		j.recycleLocked(w)
		return p, nil, nil
	}
	if j.spinner == w {
		w.nudge(false)
	}
	return Permit{}, w, nil
}

// What a waiter does next.
type next int

const (
	gone  next = iota // return
	spin              // look at the clock
	sleep             // until woken, or the context ends
)

// leave reads the verdict of a waiter that was woken, gives up, or is done with spinning, and frees its place unless it
// is to go on waiting.
func (a *Lane) leave(ctx context.Context, w *waiter, s *WaitStats) (Permit, next, error) {
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	t := &w.ticket
	if t.State == scheduler.Waiting && ctx.Err() != nil {
		now := j.now()
		e := a.gaveUpLocked(ctx, now, w)
		j.line.Leave(now, t)
		w.endLocked(now)
		if j.spinner == w {
			j.spinner = nil
		}
		w.tellLocked(s)
		j.recycleLocked(w)
		j.deliverLocked(now)
		return Permit{}, gone, e
	}
	if j.spinner == w {
		if now := j.now(); !j.nearLocked(now) {
			j.spinner, w.here = nil, true
			j.deliverLocked(now)
			w.here = false
		}
	}
	switch {
	case t.State == scheduler.Waiting && j.spinner == w:
		return Permit{}, spin, nil
	case t.State == scheduler.Waiting:
		return Permit{}, sleep, nil
	}
	w.tellLocked(s)
	p := Permit{t.Pass}
	var err error
	if t.State != scheduler.Granted {
		p, err = Permit{}, a.refusedLocked(ctx, j.now(), w)
	}
	j.recycleLocked(w)
	return p, gone, err
}

// TryWait is Gate.TryWait, in this lane.
func (a *Lane) TryWait(cost limit.Cost) (p Permit, retry time.Duration, ok bool) {
	j := a.group
	if j.hint.until.Load() != noHint {
		if retry, ok := a.refuse(&cost); ok {
			return Permit{}, retry, false
		}
	}
	j.mu.Lock()
	defer j.unlock()
	now := j.now()
	pass, at := j.line.Try(now, a.lane, &cost, nil)
	j.deliverLocked(now)
	if at <= now {
		return Permit{pass}, 0, true
	}
	j.hint.set(min(at, j.line.Wake()), at, &cost, a) // from its instant on asking serves the line
	return Permit{}, retryAfter(now, at), false
}

// deliverLocked wakes all that have a verdict, and sees to it that the Group is looked at again in time. It must follow every use
// of the line.
func (j *Group) deliverLocked(now mono.Time) {
	if j.line.Pending(now) {
		j.tellLocked(now)
	}
	if n := j.line.Changes(); n != j.changes {
		j.changes = n
		j.hint.clear()
	}
	if j.line.Wake() != j.armed || j.lead > 0 {
		j.armLocked(now)
	}
}

func (j *Group) tellLocked(now mono.Time) {
	for t := j.line.Next(now); t != nil; t = j.line.Next(now) {
		w := t.Of.(*waiter)
		w.endLocked(now)
		if !w.measured {
			w.lane.sampleLocked(now)
		}
		if j.spinner == w {
			j.spinner = nil
		}
		j.wakes++
		if !w.here {
			w.nudge(true)
		}
	}
}

// armLocked sets the timer for the first that may go at an instant that is known, or stops it, or has that one look at the clock if
// it is soon.
func (j *Group) armLocked(now mono.Time) {
	at := j.line.Wake()
	if j.lead > 0 {
		j.due.Store(int64(at))
		if t := j.line.Soonest(); j.spinner == nil && t != nil && j.nearLocked(now) {
			j.spinner = t.Of.(*waiter)
			if !j.spinner.here { // if it is here it would take the nudge for its verdict, over and over
				j.spinner.nudge(false)
			}
		}
	}
	if j.spinner != nil {
		at = notArmed
	}
	if at == j.armed {
		return
	}
	j.armed = at
	if t := j.line.Soonest(); t != nil && at >= now.Add(observe.Sampled) { // only now it may be known what that waits for
		t.Of.(*waiter).lane.lookAgainLocked(now)
	}
	switch {
	case at == notArmed:
		j.timer.Stop()
	case j.timer == nil:
		j.timer = time.AfterFunc(at.Sub(now)-j.lead, j.tick)
	default:
		j.timer.Reset(at.Sub(now) - j.lead)
	}
}

// tick is the timer's callback. A callback overtaken by another setting of the timer is harmless: it asks and sets again.
func (j *Group) tick() {
	j.mu.Lock()
	defer j.unlock()
	j.ticks++
	j.armed = notArmed
	j.deliverLocked(j.now())
}

// spin yields until w is due, or not soon, or has its verdict, or gives up.
func (j *Group) spin(w *waiter, done <-chan struct{}) {
	for len(w.woken) == 0 {
		select {
		case <-done:
			return
		default:
		}
		runtime.Gosched()
		if d := mono.Time(j.due.Load()).Sub(j.now()); d <= 0 || d > j.lead {
			return
		}
	}
}

// nearLocked tells whether the first is due soon, but not yet.
func (j *Group) nearLocked(now mono.Time) bool {
	d := j.line.Wake().Sub(now)
	return d > 0 && d <= j.lead
}

// nudge has w look at what is new. told says that it has its verdict.
func (w *waiter) nudge(told bool) {
	select {
	case w.woken <- told:
	default: // it was told to spin, has not begun, and will see
	}
}

func (j *Group) takeLocked() *waiter {
	if j.spare.Load() != nil {
		return j.spare.Swap(nil)
	}
	w := j.free
	if w == nil {
		w = &waiter{woken: make(chan bool, 1)}
		w.ticket.Of = w
		return w
	}
	j.free, w.next = w.next, nil
	j.freed--
	return w
}

// recycleLocked keeps a waiter that is out of the line and has read its verdict.
func (j *Group) recycleLocked(w *waiter) {
	if j.freed == freeMax-1 { // one is spare
		return
	}
	if len(w.woken) > 0 { // it found out by itself
		<-w.woken
	}
	w.next, j.free = j.free, w
	j.freed++
}
