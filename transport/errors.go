package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// ErrPaused: the server asked for a pause longer than Config.MaxRetryAfter, so the request was not
// sent. The Error that wraps it has the end of the pause.
var ErrPaused = errors.New("transport: the server asked to stay away")

// ErrOutage: nothing has reached the host for longer than Config.MaxOutage, so the request was not
// sent. The Error that wraps it has the instant of the next probe, and the host's last failure.
var ErrOutage = errors.New("transport: the host is down")

// ErrDrained: the Transport sends nothing more, so the request was not sent: see Transport.Drain.
var ErrDrained = errors.New("transport: it is drained and sends nothing more")

// ErrPrice: a limit of money concerns the request, and its price is unknown, so it was not sent:
// see Config.Price.
var ErrPrice = errors.New("transport: what it costs is not known")

// ErrModel: each of Config.Targets needs the model of the request, and it is not known, so the request
// was not sent: see Target.Models.
var ErrModel = errors.New("transport: no target takes a request of unknown model")

// ErrAttemptTimeout: an attempt had no answer within Config.AttemptTimeout. Such an error is also
// context.DeadlineExceeded, like those of net/http, and its Timeout is true.
var ErrAttemptTimeout = errors.New("transport: the attempt timed out")

// timedOut is an attempt without an answer after that time.
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

// Error says why a request was not sent, or not sent again. It wraps ErrPaused, ErrOutage, ErrKeys,
// ErrDrained, ErrPrice, ErrModel, ErrFull or a *paceline.WaitError. Through the latter it wraps paceline.ErrDeadline,
// paceline.ErrNever or the error of the context.
type Error struct {
	// Partition is the partition of the limit that stood in the way.
	Partition Partition
	// Ready is the earliest instant at which the request could go, as far as is known. Zero:
	// unknown, or never.
	Ready time.Time
	// Refusal is the server's reason, with ErrPaused.
	Refusal provider.Refusal
	// Client is the client's name, with Config.Client. Ahead is how many requests were before it in
	// its lane. With Config.Client, that is the client's own lane.
	Client string
	Ahead  int
	// Name is the name of the limit that stood in the way, as given to limit.Named: see
	// limit.Rule. The limit counts Unit. Empty: no limit did.
	Name string
	Unit limit.Unit
	// With paceline.ErrNever, Size of Unit was the cost, and Limit is the most that ever fits.
	Size, Limit int64
	// MaxWait is Config.MaxWait, with paceline.ErrDeadline, if it comes before the context's
	// deadline.
	MaxWait time.Duration
	// Attempts is how often the request had been sent before; 0: never.
	Attempts int
	Err      error

	client bool      // the deadline is that of http.Client
	failed time.Time // when it failed
	waited time.Duration
	others string     // keys and targets with which it could have gone past the limit that stood in the way
	rule   limit.Rule // the limit that stood in the way
	cause  string     // what stood in the way, if that is no limit: a host that is down, a store
}

// inVain reports whether it waited until its deadline, and no later instant was foreseen.
func (e *Error) inVain() bool {
	w, ok := errors.AsType[*paceline.WaitError](e.Err)
	return ok && w.InVain()
}

// in is when the request could go, from the instant of its failure.
func (e *Error) in() string {
	if e.failed.IsZero() {
		return "at " + e.Ready.Format(time.RFC3339Nano)
	}
	return "in " + text.Span(max(e.Ready.Sub(e.failed), 0))
}

// after says how long it waited, since nothing had shown before that this is in vain.
func (e *Error) after() string {
	if e.waited <= 0 {
		return ""
	}
	return "after " + text.Span(e.waited.Round(time.Millisecond)) + " in line "
}

// ourNames has words for the names of limits that are no limiter of the configuration.
var ourNames = map[string]string{
	"hint":      "what the server's own header leaves",
	"trial":     "the answer to the first request",
	"beginning": "after an outage or a refusal requests go one by one, and each answer lets two more go",
}

// of names the limit in parentheses.
func (e *Error) of() string {
	switch number, plain := e.rule.String(), ourNames[e.Name]; {
	case e.Name == "":
		return ""
	case plain != "" && e.rule.N == 0:
		return " (" + plain + ")"
	case e.Name == number || e.rule.Name != e.Name:
		return " (" + e.Name + ")"
	case e.Name == e.Unit.String():
		return " (" + number + ")"
	default:
		return fmt.Sprintf(" (%s: %s)", e.Name, number)
	}
}

func (e *Error) Error() string {
	s := "transport: " + e.Partition.String()
	if e.others != "" {
		s += ", or " + e.others
	}
	if e.Client != "" && e.Partition.Client == "" {
		s += " client " + strconv.QuoteToGraphic(e.Client)
	}
	switch {
	case errors.Is(e.Err, ErrOutage), errors.Is(e.Err, ErrKeys), e.Err == ErrDrained, errors.Is(e.Err, ErrPrice), errors.Is(e.Err, ErrModel):
		s += ": " + strings.TrimPrefix(secret.SanitizeURLs(e.Err.Error()), "transport: ")
	case e.Err == ErrFull:
		s += fmt.Sprintf(": %s until %s", strings.TrimPrefix(ErrFull.Error(), "transport: "), e.Ready.Format(time.RFC3339))
	case e.Err == ErrPaused:
		s += fmt.Sprintf(": %s; the server asked to stay away until %s", e.Refusal, e.Ready.Format(time.RFC3339))
	case e.MaxWait > 0 && e.cause != "":
		s += fmt.Sprintf(": %s; the request waits for %s at most", e.cause, text.Span(e.MaxWait))
	case e.cause != "" && errors.Is(e.Err, paceline.ErrDeadline):
		s += fmt.Sprintf(": %s; its deadline comes first", e.cause)
	case e.cause != "" && errors.Is(e.Err, paceline.ErrNever):
		s += ": " + e.cause
	case e.Size > 0:
		s += fmt.Sprintf(": a cost of %d %v never fits the limit of %d", e.Size, e.Unit, e.Limit)
		if e.Name != "" && e.Name != e.Unit.String() {
			s += " (" + e.Name + ")"
		}
	case e.MaxWait > 0 && !e.Ready.IsZero() && !e.inVain():
		s += fmt.Sprintf(": %sits turn comes %s at the earliest%s, and it waits for %s at most", e.after(), e.in(), e.of(), text.Span(e.MaxWait))
	case e.MaxWait > 0:
		s += fmt.Sprintf(": it had no turn%s, and waits for %s at most", e.of(), text.Span(e.MaxWait))
	case !e.Ready.IsZero() && errors.Is(e.Err, paceline.ErrDeadline):
		s += fmt.Sprintf(": %sits turn comes %s at the earliest%s, after its deadline", e.after(), e.in(), e.of())
	default:
		s += fmt.Sprintf(": %v", e.Err)
	}
	if e.MaxWait > 0 && e.Ahead > 0 {
		s += fmt.Sprintf("; %d were ahead when it came", e.Ahead)
	}
	if e.client && e.Timeout() && e.MaxWait == 0 {
		s += "; http.Client.Timeout includes the wait for a turn, Config.AttemptTimeout does not"
	}
	if e.Attempts > 0 {
		s += fmt.Sprintf("; it had been sent before (%d)", e.Attempts)
	}
	return s
}

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the context's deadline is the reason, for net.Error and os.IsTimeout.
func (e *Error) Timeout() bool { return errors.Is(e.Err, paceline.ErrDeadline) }

// Temporary returns the result of Timeout, for net.Error.
func (e *Error) Temporary() bool { return e.Timeout() }

// openError is an error that may be shown: without the secrets of URLs in its text.
type openError struct{ err error }

func (e openError) Error() string { return secret.SanitizeURLs(e.err.Error()) }
func (e openError) Unwrap() error { return e.err }

// openly returns an error of the Base for logs and snapshots. It may have a whole URL in it.
func openly(err error) error {
	if err == nil || !strings.Contains(err.Error(), "://") {
		return err
	}
	return openError{err}
}
