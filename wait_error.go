package paceline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Why a Wait failed. A third reason is the error of a context that was cancelled.
var (
	// ErrNever: the cost is larger than the limit. Waiting does not help, nor does asking again.
	ErrNever = errors.New("paceline: cost never fits the limit")
	// ErrDeadline: the context's deadline comes first. Such an error also is context.DeadlineExceeded.
	ErrDeadline = errors.New("paceline: the deadline comes first")
	// ErrFull: as many wait already as may: GateConfig.MaxWaiting.
	ErrFull = errors.New("paceline: too many wait already")
)

// WaitError is the error of every Wait that failed, of a Gate, a Lane or a Class: what it asked for and what stood in the way. Nothing was
// admitted then, so there is nothing to settle. errors.Is finds Reason and Cause.
type WaitError struct {
	// Reason is ErrNever, ErrDeadline, ErrFull or the error of the context.
	Reason error
	// Cause is what the context was cancelled with, if that says more than Reason; otherwise nil.
	Cause error
	// Cost is what was asked for.
	Cost limit.Cost
	// Ahead is how many goroutines of its lane, or of its Class, were before it when it asked.
	Ahead int
	// Waited is how long it was in line; 0 if it was refused at once.
	Waited time.Duration
	// Ready is the earliest instant at which it could have gone, as far as was known when it failed. Zero: not known.
	Ready time.Time
	// Deadline is the context's. Zero: none.
	Deadline time.Time
	// Bound is the limit that stood in the way: with ErrNever the one that Cost is larger than, otherwise the one that it, or
	// the first in line before it, waited for. Zero if the context was done before the call.
	Bound limit.Bound
	// Limit is the limit of the Group that the Bound belongs to.
	Limit *Limit
	// Unsettled is how many permits nobody has settled, and Oldest for how long the oldest has been open, if nothing but a Settle
	// could help when it failed, and that is longer than a minute. Otherwise 0.
	Unsettled int
	Oldest    time.Duration
}

// refusedLocked is the error of w, which got a verdict that it may not go.
func (a *Lane) refusedLocked(ctx context.Context, now mono.Time, w *waiter) *WaitError {
	t := &w.ticket
	e := &WaitError{Cost: t.Cost, Ahead: t.Ahead, Waited: now.Sub(w.asked)}
	if e.Deadline, _ = ctx.Deadline(); t.Deadline < limit.AfterSettle {
		e.Deadline = a.group.Time(t.Deadline)
	}
	if a.share != nil && e.Waited == 0 {
		e.Ahead = max(e.Ahead, a.share.share.Len())
	}
	switch t.State {
	case scheduler.Never:
		e.Reason = ErrNever
		e.Limit, e.Bound = a.boundLocked(now, &t.Cost)
	case scheduler.Late:
		e.Reason, e.Ready = ErrDeadline, a.group.base.Add(time.Duration(t.At))
		e.Limit, e.Bound = a.turnLocked(now, &t.Cost)
	case scheduler.Full:
		e.Reason = ErrFull
		at, n := a.group.line.Expect(now, a.lane, &t.Cost, t.Place)
		if e.Ahead = max(e.Ahead, n); at > now && at < limit.AfterSettle {
			e.Ready = a.group.Time(at)
		}
		e.Limit, e.Bound = a.turnLocked(now, &t.Cost)
	}
	e.owed(a.unsettledLocked(now))
	a.counts.refused(e.Reason)
	return e
}

// gaveUpLocked is the error of w, which waits and whose context ended.
func (a *Lane) gaveUpLocked(ctx context.Context, now mono.Time, w *waiter) *WaitError {
	e := &WaitError{Cost: w.ticket.Cost, Ahead: w.ticket.Ahead, Waited: now.Sub(w.asked)}
	e.ended(ctx)
	e.Limit, e.Bound = a.turnLocked(now, &w.ticket.Cost)
	if _, at := a.lane.At(); at > now && at < limit.AfterSettle {
		e.Ready = a.group.base.Add(time.Duration(at))
	}
	e.owed(a.unsettledLocked(now))
	a.counts.refused(e.Reason)
	return e
}

func (e *WaitError) owed(u unsettled) { e.Unsettled, e.Oldest = u.permits, u.oldest }

// turnLocked says what the first in line waits for, or if nobody does what cost would.
func (a *Lane) turnLocked(now mono.Time, cost *limit.Cost) (*Limit, limit.Bound) {
	first := a.lane.First()
	if first == nil {
		return a.boundLocked(now, cost)
	}
	on, _ := a.lane.At()
	if on == nil {
		return a.boundLocked(now, &first.Cost)
	}
	return on.Of.(*Limit), on.Bound(now)
}

// boundLocked says which limit cost would wait for if it were alone: of the way that is ready first the limit that is ready last.
func (a *Lane) boundLocked(now mono.Time, cost *limit.Cost) (*Limit, limit.Bound) {
	var on *scheduler.Limit
	soonest := limit.Never
	for _, w := range a.lane.Ways() {
		var last *scheduler.Limit
		at := now
		for _, m := range w.Limits() {
			if r := m.Limiter.Ready(now, *cost); last == nil || r > at {
				last, at = m, max(at, r)
			}
		}
		if on == nil || at < soonest {
			on, soonest = last, at
		}
	}
	_, b := limit.Explain(on.Limiter, now, *cost)
	return on.Of.(*Limit), b
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
		if b := e.Bound; b.Most > 0 {
			var most limit.Cost
			most[b.Unit] = b.Most
			s += " of " + most.String()
			if b.Name != b.Unit.String() {
				s += " (" + b.Name + ")"
			}
		}
	case e.Reason == ErrDeadline && !e.Ready.IsZero():
		s += fmt.Sprintf(" could go %v after the deadline at the earliest", e.Ready.Sub(e.Deadline))
	case e.Reason == ErrDeadline:
		s += " had no turn before the deadline"
	case e.Reason == ErrFull:
		s += " has no place in line: too many wait already"
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
	if e.Unsettled > 0 {
		s += ", with " + unsettled{e.Unsettled, e.Oldest}.String()
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
