package sending

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/internal/send"
)

// Unsent is an error of Config.Base: nothing of the request was written.
type Unsent struct{ Err error }

func (e *Unsent) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *Unsent) Unwrap() error { return e.Err }

// trip sends a request, at most once. It returns with the answer, or with the reason why there is
// none.
func (s *Sender) trip(ctx context.Context, q *http.Request, a *send.Exchange, out *Response) (*http.Response, error) {
	if s.direct == nil {
		return s.base.SendIn(ctx, q, a)
	}
	// A client of its own: it decides when a request is written, and says if it was not.
	sent := q.WithContext(ctx)
	res, err := s.direct.RoundTrip(sent)
	unsent, is := errors.AsType[*Unsent](err)
	if out.Written = !is; is {
		err = unsent.Err
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
