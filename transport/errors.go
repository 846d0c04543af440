package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

// ErrPaused: the server asked to stay away for longer than Config.MaxRetryAfter, and the request was not sent. The Error
// around it says until when.
var ErrPaused = errors.New("transport: the server asked to stay away")

// ErrOutage: nothing has arrived at the host for longer than Config.MaxOutage, and the request was not sent. The Error around it says
// when the next probe goes; what the host did comes after it.
var ErrOutage = errors.New("transport: the host is down")

// ErrAttemptTimeout: an attempt had no answer within Config.AttemptTimeout. Such an error also is context.DeadlineExceeded, as those
// of net/http are, and its Timeout is true.
var ErrAttemptTimeout = errors.New("transport: the attempt timed out")

// timedOut is how long an attempt had no answer.
type timedOut struct{ after time.Duration }

func (e *timedOut) Error() string {
	return fmt.Sprintf("transport: no answer %v after the attempt began, which is the AttemptTimeout", e.after)
}

func (e *timedOut) Unwrap() error { return ErrAttemptTimeout }

func (e *timedOut) Is(target error) bool { return target == context.DeadlineExceeded }

func (e *timedOut) Timeout() bool { return true }

func (e *timedOut) Temporary() bool { return true }

var errNoURL = errors.New("transport: the request has no URL")

func errStatus(status int) error {
	return fmt.Errorf("it answers %d %s", status, http.StatusText(status))
}

// Error is why a request was not sent, or not again. It wraps ErrPaused or a *paceline.WaitError, and so paceline.ErrDeadline,
// paceline.ErrNever or the error of the context.
type Error struct {
	// Partition is whose limit stood in the way.
	Partition Partition
	// Ready is the earliest instant at which it could go, as far as is known. Zero: not known, or never.
	Ready time.Time
	// Refusal is what the server's reason was, with ErrPaused.
	Refusal quota.Refusal
	// With paceline.ErrNever: Size of Unit was asked for, and Limit is the most that ever fits.
	Unit        limit.Unit
	Size, Limit int64
	// Attempts is how often it had been sent before. 0: never.
	Attempts int
	Err      error

	client bool // the deadline is http.Client's
}

func (e *Error) Error() string {
	s := "transport: " + e.Partition.String()
	switch {
	case errors.Is(e.Err, ErrOutage):
		s += ": " + strings.TrimPrefix(e.Err.Error(), "transport: ")
	case e.Err == ErrPaused:
		s += fmt.Sprintf(": %s; the server asked to stay away until %s", e.Refusal, e.Ready.Format(time.RFC3339))
	case e.Size > 0:
		s += fmt.Sprintf(": %d %v never fit its limit of %d", e.Size, e.Unit, e.Limit)
	case !e.Ready.IsZero() && errors.Is(e.Err, paceline.ErrDeadline):
		s += fmt.Sprintf(": the earliest is %s: %v", e.Ready.Format(time.RFC3339Nano), e.Err)
	default:
		s += fmt.Sprintf(": %v", e.Err)
	}
	if e.client && e.Timeout() {
		s += "; http.Client.Timeout includes the wait for a turn, Config.AttemptTimeout does not"
	}
	if e.Attempts > 0 {
		s += fmt.Sprintf("; it had been sent before (%d)", e.Attempts)
	}
	return s
}

// Unwrap returns ErrPaused or the *paceline.WaitError.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline is the reason, for net.Error and os.IsTimeout.
func (e *Error) Timeout() bool { return errors.Is(e.Err, paceline.ErrDeadline) }

// Temporary is for net.Error, and is what Timeout is.
func (e *Error) Temporary() bool { return e.Timeout() }
