package permit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/text"
)

// page explains the kinds of refusals.
const page = "https://github.com/paceline-go/paceline/blob/main/docs/permit.md#"

// refusal is an answer of RFC 9457, in place of a permit.
type refusal struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Limit  string `json:"limit,omitempty"`
	Client string `json:"client,omitempty"`
	// WaitMS is how long the cost would wait; 0: not known.
	WaitMS int64 `json:"wait_ms,omitempty"`
	Ahead  *int  `json:"ahead,omitempty"`

	gone bool // nobody waits for an answer
}

// titles are the kinds of refusals.
var titles = map[string]string{
	"bad-message":   "The message is not the expected one",
	"too-long":      "The message is too long",
	"no-limit":      "No limit has this name",
	"wait-too-long": "The wait for a turn would be too long",
	"line-full":     "Too many wait already",
	"paused":        "The limit is paused",
	"never-fits":    "The cost is larger than the limit",
	"stopping":      "The daemon is stopping",
	"no-state":      "The state file cannot be written",
	"no-key":        "The key is not the expected one",
	"no-browser":    "Browsers have no permits",
}

// kindOf is the kind of a refusal that was read.
func (x *refusal) kindOf() string { return strings.TrimPrefix(x.Type, page) }

func refuse(status int, kind, format string, args ...any) *refusal {
	return &refusal{Type: page + kind, Title: titles[kind], Status: status, Detail: fmt.Sprintf(format, args...)}
}

func (x *refusal) write(w http.ResponseWriter) {
	if x.gone {
		panic(http.ErrAbortHandler)
	}
	b, err := json.Marshal(x)
	if err != nil {
		panic(err) // cannot fail: every field has a JSON form
	}
	h := w.Header()
	if x.WaitMS > 0 {
		h.Set("Retry-After", strconv.FormatInt((x.WaitMS+999)/1000, 10))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(x.Status)
	_, _ = w.Write(append(b, '\n'))
}

// longestMessage bounds the body of a call.
const longestMessage = 1 << 20

// body reads the message of a call.
func body(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	if r.ContentLength > longestMessage {
		return nil, tooLong()
	}
	if n := r.ContentLength; n >= 0 { // in one piece
		b := make([]byte, n)
		if _, err := io.ReadFull(r.Body, b); err != nil {
			return nil, &refusal{gone: true}
		}
		return b, nil
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestMessage))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return nil, tooLong()
	}
	if err != nil {
		return nil, &refusal{gone: true}
	}
	return b, nil
}

func tooLong() *refusal {
	return refuse(http.StatusRequestEntityTooLarge, "too-long", "a message has %d bytes at most", longestMessage)
}

func badMessage(err error) *refusal { return refuse(http.StatusBadRequest, "bad-message", "%v", err) }

// noLimit names the limits that there are.
func (s *Server) noLimit(name string) *refusal {
	names := s.names()
	if len(names) == 0 {
		return refuse(http.StatusNotFound, "no-limit", "the daemon has no limits, expected paceline daemon --limit %s=RATE", name)
	}
	return refuse(http.StatusNotFound, "no-limit", "no limit is called %q, expected one of %s", name, strings.Join(names, ", "))
}

// noTurn is why a cost does not go, by the error of a wait.
func (s *Server) noTurn(ctx context.Context, l *namedLimit, client string, err error, most time.Duration) *refusal {
	var x *refusal
	var wait time.Duration
	e, ok := errors.AsType[*paceline.WaitError](err)
	if !ok {
		panic(err) // a Lane returns no other
	}
	if !e.Ready.IsZero() {
		wait = max(time.Until(e.Ready), time.Millisecond)
	}
	switch {
	case errors.Is(context.Cause(ctx), errStopping):
		x = refuse(http.StatusServiceUnavailable, "stopping", "the daemon is stopping; nothing was granted")
	case errors.Is(e, paceline.ErrNever):
		x = refuse(http.StatusRequestEntityTooLarge, "never-fits", "the cost %s is larger than the limit %s of %s",
			costWords(e.Cost), l.text(), l.Name)
	case errors.Is(e, paceline.ErrFull):
		x = refuse(http.StatusTooManyRequests, "line-full", "%d calls wait already", s.c.MaxWaiting)
	case !errors.Is(e, paceline.ErrDeadline):
		return &refusal{gone: true}
	case s.restsNow(l):
		x = refuse(http.StatusTooManyRequests, "paused", "%s is paused by paceline ctl; the call would wait %s at most",
			l.Name, text.Span(most))
	case e.Rule.Name == "pause" || e.Rule.Name == "hint":
		x = refuse(http.StatusTooManyRequests, "paused", "%s is paused for %s more, as an answer asked for; the call "+
			"would wait %s at most", l.Name, text.Span(wait), text.Span(most))
	case e.InVain():
		x = refuse(http.StatusTooManyRequests, "wait-too-long", "the call waited %s and had no turn at %s; %d others were "+
			"ahead when it came, and permits that are not settled keep their places", text.Span(e.Waited), l.Name, e.Ahead)
	default:
		x = refuse(http.StatusTooManyRequests, "wait-too-long", "the turn at %s would come in %s, behind %d others; the "+
			"call would wait %s at most", l.Name, text.Span(wait), e.Ahead, text.Span(most))
	}
	x.Limit, x.Client, x.WaitMS, x.Ahead = l.Name, client, int64((wait+time.Millisecond-1)/time.Millisecond), &e.Ahead
	return x
}
