package paceline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
)

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
	// Bound is the limit that stood in the way: with ErrNever the one that Cost is larger than, otherwise the one that it, or
	// the head of the line before it, waited for. Zero if the context was done before the call.
	Bound limit.Bound
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
