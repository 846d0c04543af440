package queued

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Attempt is a job's turn, in the context of its work.
type Attempt struct {
	keys *Keys
	door *door
	job  *Job
	came time.Time

	mu      sync.Mutex
	permit  paceline.Permit
	open    bool // the permit is not settled
	refused bool // the last answer is a refusal by a limit, after which the request may be sent again
}

type attemptKey struct{}

// ErrNoTurn reports a Send or an answer outside of a job's turn.
var ErrNoTurn = errors.New("the context is not that of a job's turn")

// From returns the Attempt of a job's context.
func From(ctx context.Context) (*Attempt, error) {
	a, ok := ctx.Value(attemptKey{}).(*Attempt)
	if !ok {
		return nil, ErrNoTurn
	}
	return a, nil
}

// Send sends a request of the job by client, and settles by the answer. The first one goes at the
// job's turn; each further one waits for a turn of its own, in the worker. The answer is the
// server's, also if it is a refusal: see classify.Verdict.
func (a *Attempt) Send(client *http.Client, r *http.Request) (*http.Response, classify.Verdict, error) {
	if err := a.ready(r.Context()); err != nil {
		return nil, classify.Verdict{}, err
	}
	began := time.Now()
	resp, err := client.Do(r)
	in := classify.From(r, resp, err)
	in.Now, in.Took = time.Now(), time.Since(began)
	in.RTT = in.Took
	if resp != nil && a.keys.policy.NeedsBody(&in) {
		in.Body, err = peek(resp)
		in.Err = err
	}
	v := a.Answered(&in)
	return resp, v, err
}

// peek returns the beginning of a body, which stays to be read.
func peek(resp *http.Response) ([]byte, error) {
	begin, err := io.ReadAll(io.LimitReader(resp.Body, provider.MaxBody))
	rest := resp.Body
	if err != nil {
		rest.Close()
		resp.Body = io.NopCloser(bytes.NewReader(begin))
		return begin, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), rest), rest}
	return begin, nil
}

// ready makes sure of a permit that is fresh.
func (a *Attempt) ready(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if a.open && a.permit.Fresh() {
			return nil
		}
		if a.open {
			a.settleLocked(limit.Outcome{Result: limit.Unsent})
		}
		p, _, err := a.door.lane.WaitTurn(ctx, a.job.Cost, paceline.Turn{Came: a.came})
		if err != nil {
			return err
		}
		a.permit, a.open = p, true
	}
}

// Answered settles the job's turn by the evidence of an answer, and returns the verdict.
func (a *Attempt) Answered(in *classify.Evidence) classify.Verdict {
	v := a.keys.policy.Of(in)
	if v.Result == limit.Limited && v.RetryAfter > 0 {
		a.door.gate.Update(func(mono.Time) { in.Refills = a.door.stack.Refills(&v.Outcome) })
		if in.Refills != 0 {
			v = a.keys.policy.Of(in)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = v.Result == limit.Limited && v.Again
	a.settleLocked(v.Outcome)
	return v
}

// end settles a turn whose work has returned err, if no answer was reported, and reports whether the
// job comes back because it was refused.
func (a *Attempt) end(err error) (refused bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o := limit.Outcome{}
	if err == nil {
		o.Result = limit.Accepted
	}
	a.settleLocked(o)
	return a.refused
}

func (a *Attempt) settle(o limit.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.settleLocked(o)
}

func (a *Attempt) settleLocked(o limit.Outcome) {
	if a.open {
		a.open = false
		a.permit.Settle(o)
	}
}
