package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
)

// prepare finds out what the request counts in and what it costs. For the latter it may read the body.
func (c *call) prepare() error {
	t, req := c.t, c.req
	if req.URL == nil {
		return errors.New("transport: the request has no URL")
	}
	if c.body == nil || c.body == http.NoBody {
		c.getBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
	}
	c.ctx = contextOf(req)
	p := t.config.Partition(req)
	c.cost = limit.One
	if t.config.Tokens != nil && req.Method == http.MethodPost && req.Header.Get("Content-Encoding") == "" {
		if err := c.estimate(&p); err != nil {
			return err
		}
	}
	if t.config.Cost != nil {
		c.cost = t.config.Cost(req, c.cost)
	}
	l, err := t.find(p.bounded())
	c.leaf = l
	return err
}

// estimate reads the body and adds to the cost what it will use. A body that it cannot read costs one request: the server
// will say what is wrong with it.
func (c *call) estimate(p *Partition) error {
	api := tokens.APIOf(c.req.URL.Path)
	if api == tokens.NoAPI || c.body == nil || c.body == http.NoBody {
		return nil
	}
	raw, err := c.read(c.t.config.MaxBody)
	if err != nil {
		return fmt.Errorf("transport: the body of the request: %w", err)
	}
	if raw == nil {
		c.t.log.Debug("body too long to estimate", "partition", *p, "max", c.t.config.MaxBody)
		return nil
	}
	body, err := tokens.Parse(api, raw)
	if err != nil {
		c.t.log.Debug("body not estimated", "partition", *p, "err", err)
		return nil
	}
	if body.Model == "" {
		body.Model = p.Model
	}
	c.api, c.est = api, c.t.config.Tokens.Of(body)
	if p.Model == "" {
		p.Model = body.Model
	}
	c.cost[limit.Input], c.cost[limit.Output], c.cost[limit.Tokens] = c.t.config.Counting.Reserve(c.est, body)
	return nil
}

// read returns the body, and nil if it is longer than most. Afterwards it can still be sent.
func (c *call) read(most int64) ([]byte, error) {
	var from io.ReadCloser
	rewinds := c.getBody != nil
	if rewinds {
		again, err := c.getBody()
		if err != nil {
			return nil, err
		}
		defer again.Close()
		from = again
	} else {
		from = &once{ReadCloser: c.body}
		c.body = from
		defer context.AfterFunc(c.ctx, func() { from.Close() })()
	}
	var b bytes.Buffer
	if n := c.req.ContentLength; n > 0 && n <= most {
		b.Grow(int(n) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(from, most+1))
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case err != nil:
		return nil, err
	case rewinds && n > most:
		return nil, nil
	case rewinds:
		return b.Bytes(), nil
	case n > most:
		c.body = &spliced{Reader: io.MultiReader(&b, from), Closer: from}
		return nil, nil
	}
	from.Close()
	raw := b.Bytes()
	c.getBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	c.body, _ = c.getBody()
	return raw, nil
}

// once is closed once, whoever else closes it.
type once struct {
	io.ReadCloser
	closed atomic.Bool
}

func (o *once) Close() error {
	if o.closed.Swap(true) {
		return nil
	}
	return o.ReadCloser.Close()
}

// contextOf returns the context of a request, which ends with its Cancel, if that is all that can end it: of both, it is
// undefined which counts, and http.Client.Timeout sets both.
func contextOf(r *http.Request) context.Context {
	//lint:ignore SA1019 clients that are older than contexts have nothing else
	cancel := r.Cancel
	if ctx := r.Context(); cancel == nil || ctx.Done() != nil {
		return ctx
	}
	return cancelled{r.Context(), cancel}
}

type cancelled struct {
	context.Context
	done <-chan struct{}
}

func (c cancelled) Done() <-chan struct{} { return c.done }

func (c cancelled) Err() error {
	select {
	case <-c.done:
		return context.Canceled
	default:
		return nil
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

type spliced struct {
	io.Reader
	io.Closer
}

// sent is an attempt under way: what is to be settled, once.
type sent struct {
	t       *Transport
	leaf    *leaf
	permits [maxNodes]paceline.Permit
	cost    limit.Cost
	at      time.Duration // leave was given, on the Transport's clock
	got     atomic.Bool   // a connection was there to write to
	wrote   atomic.Int64  // all of the request was written, on the Transport's clock; 0: not yet
	traced  atomic.Bool   // the Base tells of connections
	settled atomic.Bool
	headed  time.Duration // the header was there
	header  limit.Outcome
	said    quota.Observation

	api tokens.API
	est tokens.Estimate
}

func (s *sent) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn: func(string) { s.traced.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			s.got.Store(true)
			s.wrote.Store(0) // it begins anew
		},
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				s.wrote.Store(max(int64(s.t.now()), 1))
			}
		},
	}
}

// rtt returns the time since the last of the request was written. Before that a slow body may have held it up, or the place
// of a stream in its connection, for any time. 0: nobody knows, or the answer came before the end of the request.
func (s *sent) rtt(now time.Duration) time.Duration {
	if w := s.wrote.Load(); w > 0 {
		return max(now-time.Duration(w), 1)
	}
	return 0
}

// settle closes the lease of every limit, the first time that it is called. Each hears what the server said of it; d is how
// long that of index pause is to stay away.
func (s *sent) settle(o limit.Outcome, pause int, d time.Duration) {
	if s.settled.Swap(true) {
		return
	}
	defer s.leaf.active.Add(-1)
	nodes := s.leaf.nodes[:s.leaf.count]
	var now time.Time
	if len(s.said.Limits) > 0 || len(s.said.Policies) > 0 {
		now = time.Now()
	}
	own := func(i int) limit.Outcome {
		own := o
		if !now.IsZero() && nodes[i] != s.t.shared {
			s.leaf.hints(i, now, s.said.Limits, &own)
		}
		if i == pause {
			own.RetryAfter = d
		}
		return own
	}
	for i, n := range nodes {
		s.permits[i].Settle(own(i))
		if o.Result == limit.Accepted || o.Result == limit.Failed {
			n.served(s.at)
		}
	}
	if now.IsZero() {
		return
	}
	for i, n := range nodes { // when all are settled: Adopt may panic
		if p, capacity := s.leaf.policies(i, &s.said); n != s.t.shared && len(p) > 0 {
			o := own(i)
			n.hear(p, capacity, &o)
		}
	}
}

// hints puts what remains of limits in the scope of node i into its outcome: of each unit the one of which the least is
// left.
func (l *leaf) hints(i int, now time.Time, limits []quota.ServiceLimit, o *limit.Outcome) {
	for _, v := range limits {
		u, ok := unitOf(v.Unit)
		reset := v.Reset.Sub(now)
		if !ok || !v.Remaining.OK || v.Reset.IsZero() || reset <= 0 || l.at(v.Scope) != i {
			continue
		}
		left := min(v.Remaining.N, limit.MaxCost)
		known := o.Known>>u&1 == 1
		if known && (left > o.Remaining[u] || left == o.Remaining[u] && reset <= o.Reset[u]) {
			continue
		}
		o.Known |= 1 << u
		o.Remaining[u], o.Reset[u] = left, reset
	}
}

// policies returns those in the scope of node i, and what its buckets hold whose resets say when they are full.
func (l *leaf) policies(i int, said *quota.Observation) (own []quota.Policy, capacity limit.Cost) {
	for _, p := range said.Policies {
		if p.Limit <= 0 || l.at(p.Scope) != i {
			continue
		}
		if p.WindowSource == quota.Inferred { // a little different each time
			p.Window, p.WindowSource = 0, ""
		}
		own = append(own, p)
		u, ok := unitOf(p.Unit)
		for _, v := range said.Limits {
			if ok && p.Rule == quota.Bucket && v.Policy == p.Name && v.Whole {
				capacity[u] = min(max(p.Limit, p.Burst), limit.MaxCost)
			}
		}
	}
	return own, capacity
}

// unitOf returns the unit that a Cost has for what a server counts.
func unitOf(u quota.Unit) (limit.Unit, bool) {
	switch u {
	case quota.Requests:
		return limit.Requests, true
	case quota.Weight:
		return limit.Weight, true
	case quota.Orders:
		return limit.Orders, true
	case quota.Input:
		return limit.Input, true
	case quota.Output:
		return limit.Output, true
	case quota.Tokens:
		return limit.Tokens, true
	}
	return 0, false // money's unit is the caller's; bytes and the others have none
}

// send makes one attempt with the leave that has been got, and says what is to become of the request.
func (c *call) send(number int, more bool) (resp *http.Response, a Attempt, wait time.Duration, err error) {
	t := c.t
	s := &sent{t: t, leaf: c.leaf, permits: c.permits, cost: c.cost, at: t.now(), api: c.api, est: c.est}
	c.permits = [maxNodes]paceline.Permit{}
	s.leaf.active.Add(1)
	returns := false
	defer func() {
		if !returns { // the Base panics, or a function of the configuration
			defer s.settle(limit.Outcome{}, -1, 0)
			if resp != nil && resp.Body != nil {
				resp.Body.Close()
			}
		}
	}()
	a = Attempt{Request: c.req, Partition: c.leaf.partition, Number: number, Cost: c.cost, Waits: c.waits}
	c.waits = paceline.WaitStats{}
	t.attempts.Add(1)
	if number > 1 {
		t.resent.Add(1)
	}
	r := c.req.WithContext(httptrace.WithClientTrace(c.req.Context(), s.trace()))
	r.Body, c.body = c.body, nil // from here on the Base closes it
	if r.Body != nil {
		r.GetBody = c.getBody
	}
	resp, err = t.base.RoundTrip(r)
	now := t.now()
	a.RTT = s.rtt(now)
	if err == nil && resp == nil {
		s.settle(limit.Outcome{}, -1, 0)
		err = errors.New("transport: the Base returned neither an answer nor an error")
	}
	if err != nil {
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		resp = nil
		c.failed(s, &a, err, more)
		if a.Again {
			wait = t.delay(number)
			c.inTime(&a, wait)
		}
	} else {
		resp.Request = c.req
		wait = c.answered(s, &a, resp, now, more)
	}
	if t.config.Ended != nil {
		t.config.Ended(a)
	}
	returns = true
	return resp, a, wait, err
}

// failed settles an attempt without an answer.
func (c *call) failed(s *sent, a *Attempt, err error, more bool) {
	a.Err = err
	a.Result = limit.Unknown
	if s.traced.Load() && !s.got.Load() {
		a.Result = limit.Unsent // no connection ever was
	}
	s.settle(limit.Outcome{Result: a.Result, RTT: a.RTT}, -1, 0)
	switch {
	case c.ctx.Err() != nil || errors.Is(err, context.Canceled):
		a.Why = "the context ended"
	case c.again:
		a.Why = "its client tries again by itself"
	case a.Result == limit.Unknown && !idempotent(c.req):
		a.Why = "it may have been processed, and is neither idempotent nor has an Idempotency-Key"
	default:
		c.resend(a, more)
	}
}

// resend decides whether what may be sent again can be.
func (c *call) resend(a *Attempt, more bool) {
	switch {
	case !more:
		a.Why = "that was the last attempt"
	case c.getBody == nil:
		a.Why = "its body cannot be read again: the request has no GetBody"
		c.theirs = true
	default:
		a.Again = true
	}
}

// inTime takes back that a request is sent again if the context ends before that.
func (c *call) inTime(a *Attempt, wait time.Duration) {
	if deadline, ok := c.ctx.Deadline(); ok && a.Again && time.Until(deadline) < wait {
		a.Again = false
		a.Why = fmt.Sprintf("it would have to wait for %v, and its deadline comes first", wait)
	}
}

func idempotent(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	// As net/http has it, the header's presence is enough.
	if _, ok := r.Header["Idempotency-Key"]; ok {
		return true
	}
	_, ok := r.Header["X-Idempotency-Key"]
	return ok
}

// answered settles an attempt that was answered, or leaves that to its body.
func (c *call) answered(s *sent, a *Attempt, resp *http.Response, now time.Duration, more bool) (wait time.Duration) {
	t := c.t
	a.Status = resp.StatusCode
	s.headed = now
	said, read := t.read(resp, c.leaf)
	if read {
		s.said, a.Said = said, said
	}
	switch said.Refusal {
	case quota.None, quota.Conflict, quota.Misordered, quota.Unpaid, quota.TooLarge:
	case quota.Overloaded:
		if said.RetryAfter > 0 {
			a.Result = limit.Limited
		}
	default:
		a.Result = limit.Limited
	}
	if a.Result != limit.Limited {
		a.Result = limit.Failed
		if resp.StatusCode < 400 && said.Refusal == quota.None {
			a.Result = limit.Accepted
		}
	}
	o := limit.Outcome{Result: a.Result, RTT: a.RTT, Misordered: said.Refusal == quota.Misordered}
	if a.Result == limit.Limited {
		return c.refused(s, a, resp, o, more)
	}
	o.ArrivedAgo = worked(said.Worked, now-s.at)
	if a.Result == limit.Accepted {
		if h := s.hold(o, resp); h != nil {
			resp.Body = h
			return 0
		}
		s.settle(o, -1, 0)
		return 0
	}
	s.settle(o, -1, 0)
	switch {
	case said.Refusal == quota.Unpaid:
		a.Why = "there is no credit: waiting does not help"
	case said.Refusal == quota.TooLarge:
		a.Why = "it is larger than the limit: it never fits"
	case said.Refusal == quota.Misordered:
		a.Why = "its nonce is used up"
	case !retryable(resp, said.Refusal):
	case resp.Header.Get("X-Should-Retry") == "false":
		a.Why = forbidden
	case said.Refusal != quota.Conflict && !idempotent(c.req):
		a.Why = "it may have been processed, and is neither idempotent nor has an Idempotency-Key"
		c.theirs = true
	case said.RetryAfter > t.config.MaxRetryAfter && said.RetryAfter > 0:
		a.Why = tooLong(said.RetryAfter, t.config.MaxRetryAfter)
	default:
		c.resend(a, more)
		wait = max(t.delay(a.Number), said.RetryAfter)
		c.inTime(a, wait)
	}
	return wait
}

const forbidden = "the server asks not to try again"

func tooLong(d, most time.Duration) string {
	return fmt.Sprintf("the server asks to stay away for %v, which is longer than %v", d, max(most, 0))
}

// worked returns how long before its answer a request had arrived, for sure, that the server says it worked on for so long.
// It may have rounded, and by a clock that is fast by 0.01 %. What is no less than the round trip took is no truth.
func worked(said, took time.Duration) time.Duration {
	if said -= time.Millisecond + said/10_000; said >= took {
		return 0
	}
	return max(said, 0)
}

// retryable tells whether a failure may pass by itself.
func retryable(resp *http.Response, why quota.Refusal) bool {
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return true
	}
	return why == quota.Overloaded || why == quota.Conflict && resp.StatusCode == http.StatusTooManyRequests
}

// refused settles an attempt that a limit refused: its scope pauses. The request itself then waits like any other.
func (c *call) refused(s *sent, a *Attempt, resp *http.Response, o limit.Outcome, more bool) (wait time.Duration) {
	t, said := c.t, &s.said
	t.refused.Add(1)
	i := c.leaf.at(c.concerns(said))
	n := c.leaf.nodes[i]
	d := n.strike(s.at, asks(said), said.Refusal)
	s.settle(o, i, d)
	long := d > 0 && d > t.config.MaxRetryAfter
	if long {
		n.shutOrOpen()
	}
	switch {
	case said.Refusal == quota.Banned:
		a.Why = "it is banned"
	case long:
		a.Why = tooLong(d, t.config.MaxRetryAfter)
	case resp.Header.Get("X-Should-Retry") == "false":
		a.Why = forbidden
	default:
		c.resend(a, more)
		pause := time.Duration(n.until.Load()) - t.now()
		if pause <= 0 { // it was sent before the last one, which is over
			wait = t.delay(a.Number)
		}
		c.inTime(a, max(wait, pause))
	}
	return wait
}

// asks returns for how long a refusal asks to stay away: by a Retry-After, or by resets. That of a limit of which something
// is left is not among those: it does not explain a refusal, and may be that of a day. 0: it does not say.
func asks(said *quota.Observation) time.Duration {
	o := *said
	o.Limits = slices.DeleteFunc(slices.Clone(o.Limits), func(l quota.ServiceLimit) bool { return l.Remaining.OK && l.Remaining.N > 0 })
	now := time.Now()
	if at, ok := o.ComeBack(now); ok {
		return at.Sub(now)
	}
	return 0
}

// hold returns a body whose end settles the attempt, or nil if nothing depends on it.
func (s *sent) hold(o limit.Outcome, resp *http.Response) *held {
	metered := s.api != tokens.NoAPI && resp.StatusCode < 300 && resp.Header.Get("Content-Encoding") == ""
	if !metered && !s.t.config.UntilBody || resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	s.header = o
	h := newHeld(s, resp.Body)
	if metered {
		h.watch(resp)
	}
	return h
}

// ended settles an attempt whose answer's body has ended, or will never be read.
func (s *sent) ended(u tokens.Usage, err error, metered bool) {
	o := s.header
	o.ArrivedAgo = max(o.ArrivedAgo+s.t.now()-s.headed, 1)
	switch {
	case !metered || errors.Is(err, tokens.ErrNoUsage) || errors.Is(err, tokens.ErrMalformed):
		// What was admitted stands.
	case err != nil:
		o.Result, o.ArrivedAgo = limit.Unknown, 0
	default:
		s.t.config.Tokens.Learn(s.est, u)
		input, output, total, ok := s.t.config.Counting.Settle(s.est, u)
		if !ok {
			break
		}
		o.Metered, o.Actual = true, s.cost
		for unit, n := range map[limit.Unit]int64{limit.Input: input, limit.Output: output, limit.Tokens: total} {
			if s.cost[unit] > 0 {
				o.Actual[unit] = min(n, limit.MaxCost)
			}
		}
	}
	s.settle(o, -1, 0)
}
