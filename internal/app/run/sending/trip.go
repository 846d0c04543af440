package sending

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/send"
)

// Unsent is an error of Config.Base: nothing of the request was written.
type Unsent struct{ Err error }

func (e *Unsent) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Unsent) Unwrap() error { return e.Err }

// began is when a Base began to send the request of a context. A copy of the request may still begin when the answer
// of another has come.
type began struct{ at atomic.Pointer[time.Time] }

type beganKey struct{}

// Begins says that a Base sends the request of ctx now: the wait for its turn is over. The last call for a request
// counts. Without a call the request began when the Base got it.
func Begins(ctx context.Context) {
	if b, ok := ctx.Value(beganKey{}).(*began); ok {
		now := time.Now()
		b.at.Store(&now)
	}
}

// trip sends a request, at most once. It returns with the answer, or with the reason why there is
// none.
func (s *Sender) trip(ctx context.Context, q *http.Request, a *send.Exchange, out *Response) (*http.Response, error) {
	if s.direct == nil {
		return s.base.SendIn(ctx, q, a)
	}
	// A client of its own: it decides when a request is written, and says if it was not.
	var by began
	sent := q.WithContext(context.WithValue(ctx, beganKey{}, &by))
	res, err := s.direct.RoundTrip(sent)
	unsent, is := errors.AsType[*Unsent](err)
	if out.Written = !is; is {
		err = unsent.Err
	} else if at := by.at.Load(); at != nil {
		out.InLine, out.Began = at.Sub(out.Began), *at
	}
	if err == nil {
		res.Request = sent
	}
	return res, err
}

// wrote notes in out what was written, and when.
func (s *Sender) wrote(a *send.Exchange, out *Response) {
	if s.direct != nil {
		return
	}
	var began time.Time
	if out.Written, began, out.RTT = a.Times(out.Ended); out.Written {
		out.Began = began
	}
}
