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

// waiter is a goroutine in line. The Group's lock guards all but woken. A verdict is sent once, as
// true on woken; from then on the waiter is out of line. A false on woken asks the waiter to begin
// spinning.
type waiter struct {
	ticket   scheduler.Ticket
	lane     *Lane
	next     *waiter // in the list of free waiters
	here     bool    // its goroutine serves the line just now, and need not be woken
	asked    mono.Time
	woken    chan bool // capacity 1
	measured bool
	tally    *tally // not nil if the waiter is or was measured
}

// wait admits cost or fails. came decides its place in line; limit.Never: the end.
func (a *Lane) wait(ctx context.Context, cost *limit.Cost, came mono.Time, s *WaitStats) (Permit, error) {
	if ctx.Err() != nil {
		e := &WaitError{Cost: *cost}
		e.ended(ctx)
		a.counts.gaveUp.Add(1)
		return Permit{}, e
	}
	p, w, err := a.enter(ctx, cost, came, nil, s != nil)
	if w == nil {
		return p, err
	}
	return a.inLine(ctx, w, s)
}

// waitTurn is wait by a Turn, whose Came is came.
func (a *Lane) waitTurn(ctx context.Context, cost *limit.Cost, came mono.Time, turn *Turn,
	s *WaitStats) (Permit, error) {
	if ctx.Err() != nil {
		return a.wait(ctx, cost, came, s)
	}
	var until time.Time
	if turn.MaxWait > 0 {
		until = time.Now().Add(turn.MaxWait)
	}
	p, w, err := a.enter(ctx, cost, came, turn, s != nil)
	switch {
	case w == nil:
		return p, err
	case until.IsZero():
		return a.inLine(ctx, w, s)
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
		// Nothing to do under the lock, which the sender of the verdict may still hold.
		if told && s == nil && w.ticket.State == scheduler.Granted {
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

// enter admits cost at once, refuses it at once, or returns its new place in line. turn bounds the
// foreseen wait and prefers ways, unless it is nil.
func (a *Lane) enter(ctx context.Context, cost *limit.Cost, came mono.Time, turn *Turn,
	measured bool) (Permit, *waiter, error) {
	if cost.Negative() {
		return Permit{}, nil, a.negative(cost)
	}
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	now := j.now()
	if a.drainedLocked() != nil {
		return Permit{}, nil, a.turnedAwayLocked(&WaitError{Cost: *cost})
	}
	if a.lane.Len() == 0 && !turn.chooses() { // a cost that can go at once needs no place in line
		if pass, at := j.line.Try(now, a.lane, cost, nil); at <= now {
			j.deliverLocked(now)
			return Permit{pass}, nil, nil
		}
	}
	w := j.takeLocked()
	t := &w.ticket
	t.Came = min(came, now)
	t.Place, t.Deadline = t.Came.Add(-a.headLocked()), limit.Never
	if d, ok := ctx.Deadline(); ok {
		t.Deadline = mono.Of(j.base, d)
	}
	t.Homes, t.Again = 0, turn != nil && turn.Again
	if turn.chooses() {
		t.Homes, t.Hold = turn.Homes, turn.Hold
		t.AskEach(cost, turn.Costs)
	} else {
		t.Ask(cost)
	}
	w.lane, w.asked, w.measured = a, now, false
	state := scheduler.None
	if turn != nil && turn.MaxWait > 0 {
		most := turn.MaxWait
		t.Deadline = min(t.Deadline, now.Add(most))
		if at, n := j.line.ExpectOf(now, a.lane, t); at > now.Add(most) && at < limit.AfterSettle {
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
	if t.State == scheduler.Granted { // it may overtake those before it
		p := Permit{t.Pass}
		j.recycleLocked(w)
		return p, nil, nil
	}
	if j.spinner == w {
		w.nudge(false)
	}
	return Permit{}, w, nil
}

// next is the next step of a waiter.
type next int

const (
	gone  next = iota // return
	spin              // read the clock
	sleep             // until woken, or until the context ends
)

// leave takes one step for a waiter that was woken, gives up, or finished spinning. It reads the
// verdict, if there is one, and frees the place unless the waiter goes on waiting.
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

// Drain refuses all goroutines that wait in the lanes of the View, and each later Wait there. The Reason
// of their WaitErrors is reason, which must not be nil. Permits that were given are settled as ever.
func (v *View) Drain(reason error) {
	if reason == nil {
		panic("paceline: Drain without a reason")
	}
	j := v.group
	j.mu.Lock()
	defer j.unlock()
	v.drained = reason
	now := j.now()
	for _, a := range v.look.lanes {
		a.emptyLocked(now)
	}
	j.deliverLocked(now)
}

// Drain is View.Drain for one lane. It is for a lane whose limits are to be others: its goroutines wait in
// another lane then, with Turn.Again.
func (a *Lane) Drain(reason error) {
	if reason == nil {
		panic("paceline: Drain without a reason")
	}
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	a.drained = reason
	now := j.now()
	a.emptyLocked(now)
	j.deliverLocked(now)
}

// emptyLocked refuses all that wait in a drained lane.
func (a *Lane) emptyLocked(now mono.Time) {
	j := a.group
	for t := a.lane.First(); t != nil; t = a.lane.First() {
		w := t.Of.(*waiter)
		j.line.Leave(now, t)
		w.endLocked(now)
		if j.spinner == w {
			j.spinner = nil
		}
		w.nudge(true)
	}
}

// TryWait is Gate.TryWait, in this lane.
func (a *Lane) TryWait(cost limit.Cost) (p Permit, retry time.Duration, ok bool) {
	var one [1]Permit
	n, retry := a.try(&cost, one[:])
	return one[0], retry, n == 1
}

// deliverLocked wakes every waiter that has a verdict, and makes sure that the Group acts again in
// time. It must follow every use of the scheduler.
func (j *Group) deliverLocked(now mono.Time) {
	pending, changes, wake := j.line.Due(now)
	if pending {
		j.tellLocked(now)
		_, changes, wake = j.line.Due(now)
	}
	if changes != j.changes {
		j.changes = changes
		j.hint.clear()
	}
	if wake != j.armed || j.lead > 0 {
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

// armLocked sets the timer for the first known instant, or stops it. If the instant is near, the
// first waiter spins instead.
func (j *Group) armLocked(now mono.Time) {
	at := j.line.Wake()
	if j.lead > 0 {
		j.due.Store(int64(at))
		if t := j.line.Soonest(); j.spinner == nil && t != nil && j.nearLocked(now) {
			j.spinner = t.Of.(*waiter)
			if !j.spinner.here { // a waiter that is here would take the nudge for its verdict, over and over
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
	// The limit for which that waiter waits may be known only now.
	if t := j.line.Soonest(); t != nil && at >= now.Add(observe.Sampled) {
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

// tick is the timer's callback. A tick that a later setting of the timer has replaced does no harm:
// it reviews the Group and sets the timer again.
func (j *Group) tick() {
	j.mu.Lock()
	defer j.unlock()
	j.ticks++
	j.armed = notArmed
	j.deliverLocked(j.now())
}

// spin yields until w is due or no longer near, has its verdict, or gives up.
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

// nearLocked reports whether the first instant is near, but not yet reached.
func (j *Group) nearLocked(now mono.Time) bool {
	d := j.line.Wake().Sub(now)
	return d > 0 && d <= j.lead
}

// nudge wakes w. told means that w has its verdict.
func (w *waiter) nudge(told bool) {
	select {
	case w.woken <- told:
	default: // w was asked to spin, has not begun, and will read the verdict
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

// recycleLocked keeps a waiter that is out of line and has read its verdict.
func (j *Group) recycleLocked(w *waiter) {
	if j.freed == freeMax-1 { // spare holds one more
		return
	}
	if len(w.woken) > 0 { // w found its verdict without reading woken
		<-w.woken
	}
	w.next, j.free = j.free, w
	j.freed++
}
