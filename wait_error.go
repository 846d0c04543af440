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

// Reasons why a Wait failed. The other reason is the error of a cancelled context.
var (
	// ErrNever: the cost is larger than the limit, or negative. Neither waiting nor asking again
	// helps.
	ErrNever = errors.New("paceline: cost never fits the limit")
	// ErrDeadline: the context's deadline comes first. Such an error is also
	// context.DeadlineExceeded.
	ErrDeadline = errors.New("paceline: the deadline comes first")
	// ErrFull: MaxWaiting goroutines wait already: see GateConfig.MaxWaiting.
	ErrFull = errors.New("paceline: too many wait already")
)

// WaitError is the error of every failed Wait of a Gate or a Lane: its cost, and the limit that
// stood in the way. A failed Wait admitted nothing, so there is nothing to settle. errors.Is finds
// Reason and Cause.
type WaitError struct {
	// Reason is ErrNever, ErrDeadline, ErrFull, the error of the context, or that of View.Drain or
	// Lane.Drain.
	Reason error
	// Cause is the cause of the context's cancellation, if it differs from Reason; otherwise nil.
	Cause error
	// Cost is the cost of the Wait.
	Cost limit.Cost
	// Ahead is how many goroutines of the lane, or of its Class, were before it on arrival.
	Ahead int
	// Waited is how long it was in line; 0 if it failed at once.
	Waited time.Duration
	// Ready is the earliest instant at which it could have gone, as known at the failure. Zero:
	// unknown.
	Ready time.Time
	// Deadline is the context's deadline. Zero: none.
	Deadline time.Time
	// Rule is the limit that stood in the way. With ErrNever, Cost is larger than this limit.
	// Otherwise the goroutine, or the first in line before it, waited for this limit. Zero if the
	// context was done before the call.
	Rule limit.Rule
	// Limit is the limit of the Group to which Rule belongs.
	Limit *Limit
	// Unsettled is how many permits were open at the limit, and Oldest is the age of the oldest.
	// Both are 0 unless only a Settle could help at the failure, and the oldest was open for over a
	// minute.
	Unsettled int
	Oldest    time.Duration
}

// InVain reports whether it waited for its turn until its deadline. No later instant was foreseen: others, whose
// ends nobody knows, kept it from going.
func (e *WaitError) InVain() bool {
	return e.Waited > 0 && errors.Is(e.Reason, ErrDeadline) && !e.Ready.After(e.Deadline)
}

// refusedLocked returns the error of w, which was refused.
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
	case scheduler.None:
		return a.turnedAwayLocked(e)
	case scheduler.Never:
		e.Reason = ErrNever
		e.Limit, e.Rule, e.Cost = a.boundLocked(now, t)
	case scheduler.Late:
		e.Reason, e.Ready = ErrDeadline, a.group.base.Add(time.Duration(t.At))
		e.Limit, e.Rule = a.turnLocked(now, t)
	case scheduler.Full:
		e.Reason = ErrFull
		at, n := a.group.line.ExpectOf(now, a.lane, t)
		if e.Ahead = max(e.Ahead, n); at > now && at < limit.AfterSettle {
			e.Ready = a.group.Time(at)
		}
		e.Limit, e.Rule = a.turnLocked(now, t)
	}
	e.owed(a.unsettledLocked(now))
	a.counts.refused(e.Reason)
	return e
}

// drainedLocked returns the reason of the latest Drain of the lane, or of its View; nil: there was none.
func (a *Lane) drainedLocked() error {
	if a.view.drained != nil {
		return a.view.drained
	}
	return a.drained
}

// turnedAwayLocked completes the error of a Wait in a drained lane. A goroutine that goes on in another lane is
// counted there.
func (a *Lane) turnedAwayLocked(e *WaitError) *WaitError {
	if e.Reason = a.drainedLocked(); a.view.drained != nil {
		a.counts.refused(e.Reason)
	}
	return e
}

// negative returns the error of a cost that no limit can count.
func (a *Lane) negative(cost *limit.Cost) error {
	a.counts.refused(ErrNever)
	return &WaitError{Reason: ErrNever, Cost: *cost}
}

// gaveUpLocked returns the error of w, which waits and whose context ended.
func (a *Lane) gaveUpLocked(ctx context.Context, now mono.Time, w *waiter) *WaitError {
	e := &WaitError{Cost: w.ticket.Cost, Ahead: w.ticket.Ahead, Waited: now.Sub(w.asked)}
	e.ended(ctx)
	e.Limit, e.Rule = a.turnLocked(now, &w.ticket)
	if at := a.group.line.TurnOf(now, &w.ticket); at > now && at < limit.AfterSettle {
		e.Ready = a.group.base.Add(time.Duration(at))
	}
	e.owed(a.unsettledLocked(now))
	a.counts.refused(e.Reason)
	return e
}

func (e *WaitError) owed(u unsettled) { e.Unsettled, e.Oldest = u.permits, u.oldest }

// turnLocked returns the limit for which the first in line waits. With no line, it is the limit for
// which t would wait.
func (a *Lane) turnLocked(now mono.Time, t *scheduler.Ticket) (on *Limit, rule limit.Rule) {
	first := a.lane.First()
	if m, _ := a.lane.At(); first != nil && m != nil {
		return m.Of.(*Limit), m.Rule(now)
	} else if first != nil {
		t = first
	}
	on, rule, _ = a.boundLocked(now, t)
	return on, rule
}

// boundLocked returns the limit for which t would wait if it were alone, and its cost there. That is the
// last limit to be ready, of the first way to be ready.
func (a *Lane) boundLocked(now mono.Time, t *scheduler.Ticket) (*Limit, limit.Rule, limit.Cost) {
	var on *scheduler.Limit
	var cost limit.Cost
	soonest := limit.Never
	for _, w := range a.lane.Ways() {
		var last *scheduler.Limit
		at, own := now, *w.Cost(t)
		for _, m := range w.Limits() {
			if r := m.Limiter.Ready(now, own); last == nil || r > at {
				last, at = m, max(at, r)
			}
		}
		if on == nil || at < soonest {
			on, soonest, cost = last, at, own
		}
	}
	return on.Of.(*Limit), on.Binds(now, cost), cost
}

// ended fills in the reason for the end of ctx, which is done.
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

// counted returns the part of the cost that Rule counts. Of a request to a language model, all of it
// would name its tokens twice: as input, as output, and as both.
func (e *WaitError) counted() limit.Cost {
	if n := e.Cost[e.Rule.Unit]; e.Rule.N > 0 && n > 0 {
		var c limit.Cost
		c[e.Rule.Unit] = n
		return c
	}
	return e.Cost
}

func (e *WaitError) Error() string {
	s := "paceline: cost " + e.counted().String()
	switch {
	case e.Cost.Negative():
		s += " is negative"
	case e.Reason == ErrNever:
		s += " is larger than the limit"
		if b := e.Rule; b.Most() > 0 {
			var most limit.Cost
			most[b.Unit] = b.Most()
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
		s += fmt.Sprintf(", with %d ahead when it came", e.Ahead)
	}
	if e.Unsettled > 0 {
		s += ", with " + unsettled{e.Unsettled, e.Oldest}.String()
	}
	return s
}

// Unwrap returns Reason and Cause, and context.DeadlineExceeded if Reason is ErrDeadline.
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

// Timeout reports whether Reason is ErrDeadline, for net.Error and os.IsTimeout.
func (e *WaitError) Timeout() bool { return e.Reason == ErrDeadline }
