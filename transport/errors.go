package transport

import (
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

// ErrPaused: the server asked to stay away for longer than Config.MaxRetryAfter, and the request was not sent. The Error
// around it says until when.
var ErrPaused = errors.New("transport: the server asked to stay away")

// Error is why a request was not sent. It wraps ErrPaused or a *paceline.WaitError, and so paceline.ErrDeadline,
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
	Err         error
}

func (e *Error) Error() string {
	switch {
	case e.Err == ErrPaused:
		return fmt.Sprintf("transport: %v: %s; the server asked to stay away until %s", e.Partition, e.Refusal, e.Ready.Format(time.RFC3339))
	case e.Size > 0:
		return fmt.Sprintf("transport: %v: %d %v never fit its limit of %d", e.Partition, e.Size, e.Unit, e.Limit)
	case !e.Ready.IsZero() && errors.Is(e.Err, paceline.ErrDeadline):
		return fmt.Sprintf("transport: %v: the earliest is %s: %v", e.Partition, e.Ready.Format(time.RFC3339Nano), e.Err)
	}
	return fmt.Sprintf("transport: %v: %v", e.Partition, e.Err)
}

// Unwrap returns ErrPaused or the *paceline.WaitError.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline is the reason, for net.Error and os.IsTimeout.
func (e *Error) Timeout() bool { return errors.Is(e.Err, paceline.ErrDeadline) }

// Temporary is for net.Error, and is what Timeout is.
func (e *Error) Temporary() bool { return e.Timeout() }
