package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
)

// call is one RoundTrip: what its stations find out. Each has its part in its own file.
type call struct {
	t       *Transport
	req     *http.Request
	ctx     context.Context
	leaf    *leaf
	who     Client        // of Config.Client
	body    io.ReadCloser // of the next attempt; nil: none, or the Base has it
	getBody func() (io.ReadCloser, error)

	priced              // prepare.go
	targeted            // target.go
	least    limit.Cost // the part of cost that surely counts
	unknown  string     // why the price of a request to a language model is unknown
	// guessed says that no answer has shown yet what requests like this one cost.
	guessed bool
	begun   bool // there was an attempt
	turn         // acquire.go
	tries        // judge.go
}

// calls are for RoundTrip. A call on the stack would be deep below a request in line, whose stack
// would then have 16 KiB and not 8: TestMemoryInLine of the proxy.
var calls = sync.Pool{New: func() any { return new(call) }}

// RoundTrip implements http.RoundTripper. The error is the Base's, or an *Error if a limit stood in
// the way. An *Error wraps a *paceline.WaitError or is ErrPaused. The request was then not sent,
// unless Attempts of the *Error says so.
//
// An answer is returned as it came. A refusal is returned too, if the request is not to be sent
// again:
//
//   - after the last attempt, or with Config.MaxWait, when that is over,
//   - if the server asks for longer than MaxRetryAfter or than the context's deadline allows,
//   - if trying again does not help (no credit, a ban, a request too large),
//   - if the request may have been processed, or its body cannot be read again.
//
// The SDKs of OpenAI and Anthropic try again by themselves, and state how often they did. Their
// attempts and ours do not multiply: one request is sent Config.Attempts times at most, unless it
// never got an answer. Where trying again is over, or does not help, they find X-Should-Retry:
// false. Where only they know whether it does harm (a POST that may have been processed), and with
// Attempts of 1, the decision is theirs.
//
// Both the context and, where that cannot end, Request.Cancel end a wait.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c := calls.Get().(*call)
	c.t, c.req, c.body, c.getBody, c.came = t, req, req.Body, req.GetBody, time.Now()
	defer c.leave()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		if err := c.acquire(); err != nil {
			return c.ends(err, n-1)
		}
		if !c.permit.Fresh() { // the process was stopped meanwhile: back in line, with all other waiting requests
			c.giveBack()
			n--
			continue
		}
		if c.way.target != nil && c.headFirst() {
			n--
			continue
		}
		if resp, ended, err := c.send(&n); ended {
			return resp, err
		}
	}
}

// send makes attempt n, and prepares the next one unless the call has ended. An attempt that was none
// takes its number back.
//
// It is apart from RoundTrip since what it keeps on the stack is large: see calls.
func (c *call) send(n *int) (resp *http.Response, ended bool, err error) {
	resp, a, wait, err := c.attempt(*n, *n >= c.most)
	switch {
	case errors.Is(err, send.ErrLapsed) && !a.Again: // it was none
		if c.getBody == nil {
			return nil, true, err
		}
		*n--
	case a.Again:
		if c.none > 0 {
			*n--
			wait = min(wait, c.bearsFor(c.way)-time.Since(c.stranded)) // the next attempt is at the end
		}
		if !c.stranded.IsZero() && c.maxWait > 0 { // nothing arrives at the host, so each pause is a wait for it
			if wait = min(wait, c.maxWait-c.waited); wait <= 0 {
				return nil, true, err
			}
			c.waited += wait
		}
		if c.last, c.lastErr = nil, err; resp != nil {
			c.last = keep(resp)
		}
		if err := c.rest(wait); err != nil {
			return nil, true, err
		}
	case a.Why == "":
		return resp, true, err
	default:
		c.t.log.Debug("not sent again", "partition", a.Partition, "attempt", a.Number, "status", a.Status, "err", openly(err),
			"why", a.Why)
		if resp != nil && !c.theirs {
			resp = c.final(resp)
		}
		return resp, true, err
	}
	err = c.rewind()
	return nil, err != nil, err
}

// attempt sends once with the acquired permit, judges how that ended, and settles the permit, unless
// the body of the answer is to. If a.Again, the request is sent again after the wait.
func (c *call) attempt(number int, last bool) (resp *http.Response, a Attempt, wait time.Duration, err error) {
	s, began := c.begin(number)
	a = Attempt{Request: c.req, Number: number, Cost: s.cost, Waits: c.waits, Sent: began}
	a.Partition, a.Key = s.partition()
	c.waits = paceline.WaitStats{}
	returns := false
	defer func() {
		// The Base panicked, or a function of the configuration did. (A lapsed attempt comes here
		// too: it is settled already.)
		if !returns {
			defer s.settle(limit.Outcome{})
			if resp != nil && resp.Body != nil {
				resp.Body.Close()
			}
		}
	}()
	r := c.next()
	var p *pair
	if c.t.hedging {
		p = c.hedge(s, number, last)
		defer p.stop()
	}
	resp, err = c.trip(s, r)
	if err != nil && s.lapsed(err, number, p) {
		return nil, a, 0, err
	}
	in := c.hear(s, resp, err, last)
	if p != nil {
		p.primary(&a, &s, &resp, &in)
		err = in.Err
	}
	c.strand(s, in.Wrote)
	wait, err = c.judge(s, &a, &in, &resp, in.Last && !(in.Patient && s.verdict.Result == limit.Limited))
	s.reports(&a)
	returns = true
	return resp, a, wait, err
}

// ends returns the end of a call that gets no permit any more: that of the attempt before, if there
// is one, or the reason.
func (c *call) ends(err error, attempts int) (*http.Response, error) {
	if !errors.Is(c.ctx.Err(), context.Canceled) {
		switch {
		case c.last != nil:
			return c.final(c.last), nil
		case c.lastErr != nil:
			return nil, c.lastErr
		}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		e.Attempts = attempts
	}
	return nil, err
}

// final marks an answer for a client that would try again by itself: it should not.
func (c *call) final(resp *http.Response) *http.Response {
	if c.t.config.Attempts > 1 && c.req.Header.Get(stainless) != "" && resp.StatusCode >= 400 {
		if resp.Header == nil {
			resp.Header = http.Header{}
		}
		resp.Header.Set("X-Should-Retry", "false")
	}
	return resp
}

// rest waits before the next attempt.
func (c *call) rest(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	ctx := c.ctx
	c.t.look.begins(c)
	defer c.t.look.ends(c)
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.t.drains.begun: // its next turn is refused, and the caller gets the last answer
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// rewind gets the body once more.
func (c *call) rewind() error {
	if c.req.Body == nil {
		return nil
	}
	b, err := c.getBody()
	if err != nil {
		return fmt.Errorf("transport: the body to send again: %w", err)
	}
	c.body = b
	return nil
}
