package transport

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/sight"
	"github.com/paceline-go/paceline/internal/wire"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/verdict"
)

// sent is an attempt under way: what is to be settled, once.
type sent struct {
	t       *Transport
	leaf    *leaf
	permit  paceline.Permit
	cost    limit.Cost
	wire    wire.Attempt
	settled atomic.Bool
	headed  time.Time // the header was there
	verdict verdict.Verdict
	heeded  bool
	wait    time.Duration // of its request, as heed says

	api   tokens.API
	est   tokens.Estimate
	count tokens.Counting
}

// begin makes an attempt of a leave.
func (c *call) begin(p paceline.Permit) *sent {
	s := &sent{t: c.t, leaf: c.leaf, permit: p, cost: c.cost, api: c.api, est: c.est, count: c.count}
	s.leaf.active.Add(1)
	c.t.attempts.Add(1)
	return s
}

// with returns the request to be handed to the Base, which closes its body.
func (c *call) with(body io.ReadCloser) *http.Request {
	if body == nil {
		return c.req
	}
	r := new(http.Request)
	*r = *c.req
	r.Body, r.GetBody = body, c.getBody
	return r
}

// send makes one attempt with the leave that has been got, and says what is to become of the request: a.Again, after the wait.
func (c *call) send(number int, last bool) (resp *http.Response, a Attempt, wait time.Duration, err error) {
	t := c.t
	s := c.begin(c.permit)
	a = Attempt{Request: c.req, Partition: c.leaf.partition, Number: number, Cost: c.cost, Waits: c.waits}
	c.waits = paceline.WaitStats{}
	returns := false
	defer func() {
		if !returns { // the Base panics, or a function of the configuration
			defer s.settle(limit.Outcome{})
			if resp != nil && resp.Body != nil {
				resp.Body.Close()
			}
		}
	}()
	if number > 1 {
		t.resent.Add(1)
	}
	r := c.req
	if c.body != nil {
		r = c.with(c.body)
		c.body = nil // from here on the Base closes it
	}
	var p *pair
	if t.hedging {
		p = c.hedge(s, number, last)
		defer p.stop()
	}
	resp, err = c.trip(s, r)
	in := c.hear(s, resp, err, last)
	if p != nil {
		p.primary(&a, &s, &resp, &in)
		err = in.Err
	}
	wait, err = c.judge(s, &a, &in, &resp, last)
	if t.config.Ended != nil {
		t.config.Ended(a)
	}
	returns = true
	return resp, a, wait, err
}

// trip sends, and returns an answer or why there is none.
func (c *call) trip(s *sent, r *http.Request) (resp *http.Response, err error) {
	var timer *time.Timer
	if d := c.t.config.AttemptTimeout; d > 0 {
		s.wire.Stops = true
		timer = time.AfterFunc(d, func() { s.wire.Stop(&timedOut{d}) })
	}
	resp, err = c.t.base.Send(r, &s.wire)
	switch {
	case err == nil && resp == nil:
		err = errors.New("transport: the Base returned neither an answer nor an error")
	case timer != nil && !timer.Stop() && err == nil: // its body would break
		err = &timedOut{c.t.config.AttemptTimeout}
	}
	if err == nil {
		resp.Request = c.req
		return resp, nil
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	return nil, err
}

// hear finds out what an attempt proves.
func (c *call) hear(s *sent, resp *http.Response, err error, last bool) verdict.Attempt {
	t := c.t
	s.headed = time.Now()
	in := c.evidence(s, resp, err, last)
	if resp != nil && t.policy.NeedsBody(&in) {
		in.Body = prefix(resp)
	}
	v := &s.verdict
	*v = t.policy.Of(&in)
	if v.Shown != nil {
		s.leaf.server.dialect.Store(&v.Shown)
	}
	if resp != nil {
		s.leaf.server.learn(v.Shown, resp.Header)
		t.belongs(s.leaf, resp.Header)
	}
	if t.config.Scope != nil && v.Said.Refusal != quota.None {
		if scope := t.config.Scope(c.leaf.partition, v.Said); scope != "" {
			v.Scope = scope
		}
	}
	return in
}

// judge settles an attempt by what it proves, or leaves that to the body of its answer. The error is the attempt's, or that of
// Config.CheckRetry, and then there is no answer any more.
func (c *call) judge(s *sent, a *Attempt, in *verdict.Attempt, resp **http.Response, last bool) (wait time.Duration, err error) {
	v := &s.verdict
	c.theirs = c.theirs || v.Theirs
	served := v.Result == limit.Accepted
	c.heed(s, a.Number)
	wait = s.wait
	a.tell(in, v)
	if c.t.config.CheckRetry != nil && c.ctx.Err() == nil {
		err := c.check(v, a, *resp, last)
		if v.Again && v.Result != limit.Limited {
			wait = max(wait, c.t.delay(a.Number))
			v.InTime(wait, c.left())
		}
		a.tell(in, v)
		if err != nil {
			s.settle(v.Outcome)
			if *resp != nil && (*resp).Body != nil {
				(*resp).Body.Close()
			}
			*resp = nil
			return 0, err
		}
	}
	if !served {
		return wait, in.Err
	}
	if h := s.hold(*resp); h != nil {
		(*resp).Body = h
	} else {
		s.settle(v.Outcome)
	}
	return wait, nil
}

// heed settles an attempt that was not served, once, and finds out how long its request is to wait.
func (c *call) heed(s *sent, number int) {
	v := &s.verdict
	if s.heeded || v.Result == limit.Accepted {
		return
	}
	s.heeded = true
	s.settle(v.Outcome)
	s.wait = c.after(s, v, number)
	v.InTime(s.wait, c.left())
}

// tell fills in what became of an attempt.
func (a *Attempt) tell(in *verdict.Attempt, v *verdict.Verdict) {
	a.Status, a.Err, a.RTT, a.Result, a.Said, a.Again, a.Why = in.Status, in.Err, in.RTT, v.Result, v.Said, v.Again, v.Why
}

// evidence is what a verdict is asked about.
func (c *call) evidence(s *sent, resp *http.Response, err error, last bool) verdict.Attempt {
	written, began, rtt := s.wire.Times(s.headed)
	in := verdict.Attempt{
		Err: err, Sight: sight.OfError(c.ctx, err), Wrote: verdict.Nothing, Now: s.headed, RTT: rtt, Provider: s.leaf.server.provider,
		Idempotent: verdict.Idempotent(c.req), Model: s.leaf.partition.Model != "",
		Last: last, Once: c.getBody == nil, Ended: c.ctx.Err() != nil, Resends: c.again,
	}
	if written {
		in.Wrote, in.Took = verdict.Something, s.headed.Sub(began)
	}
	if errors.Is(err, wire.ErrUnprocessed) {
		in.Idempotent = true
	}
	if known := s.leaf.server.dialect.Load(); known != nil {
		in.Shown = *known
	}
	if resp != nil {
		in.Status, in.Header = resp.StatusCode, resp.Header
	}
	return in
}

// after takes in a failure or a refusal, and returns how long its request is to wait, if it goes again.
func (c *call) after(s *sent, v *verdict.Verdict, number int) (wait time.Duration) {
	t := c.t
	if v.Result != limit.Limited {
		if v.Sight != limit.Working && c.ctx.Err() == nil {
			cause := v.Err
			if cause == nil {
				cause = errStatus(v.Status)
			}
			s.leaf.server.failed(cause)
		}
		return max(t.delay(number), v.RetryAfter)
	}
	t.refused.Add(1)
	pause := c.leaf.nodes[c.leaf.at(v.Scope)].refused(v.Said.Refusal, v.Asked)
	if pause > t.config.MaxRetryAfter {
		v.Again = false
		if v.Why == "" {
			v.Why = "everybody stays away for longer than anybody waits"
		}
	}
	if pause <= 0 { // it was sent before the last one, which is over
		return t.delay(number)
	}
	v.InTime(pause, c.left()) // which it waits for in line
	return 0
}

// settle closes the leases of every limit, the first time that it is called. Each hears what the server said of it.
func (s *sent) settle(o limit.Outcome) {
	if s.settled.Swap(true) {
		return
	}
	defer s.leaf.release()
	l, v := s.leaf, &s.verdict
	if o.Result != limit.Limited && len(v.Said.Limits) == 0 {
		s.permit.Settle(o)
	} else {
		s.permit.SettleEach(o, func(m *paceline.Limit) limit.Outcome {
			if l.room != nil && m == l.room.limit {
				return s.inRoom(o)
			}
			return s.own(l.index(m), o)
		})
	}
	if h := l.server; h.down.Load() && o.Result == limit.Accepted {
		h.served()
	}
	if len(v.Said.Policies) == 0 {
		return
	}
	for i, n := range l.nodes[:l.count] { // when all are settled: Adopt may panic
		if n == s.t.shared {
			continue
		}
		if stated, capacity := v.Policies(l.has(i)); len(stated) > 0 {
			o := s.own(i, o)
			n.hear(stated, capacity, &o)
		}
	}
}

// own returns what node i hears of an outcome: -1 is the way to the host.
func (s *sent) own(i int, o limit.Outcome) limit.Outcome {
	switch {
	case i < 0:
		o.RetryAfter = 0
		return o
	case s.leaf.nodes[i] == s.t.shared && s.t.senses && s.verdict.Scope != quota.Route && s.verdict.Scope != quota.Model:
		return o // it may be its own quota that refused
	case s.leaf.nodes[i] == s.t.shared: // it hears all that is left, and is nobody's to pause
		o.Elsewhere, o.RetryAfter = o.Result == limit.Limited, 0
		return o
	}
	own := s.verdict.For(s.leaf.has(i))
	own.Result, own.Metered, own.Actual, own.ArrivedAgo = o.Result, o.Metered, o.Actual, o.ArrivedAgo
	return own
}

// hold returns a body whose end settles the attempt, or nil if nothing depends on it.
func (s *sent) hold(resp *http.Response) *held {
	metered := s.api != tokens.NoAPI && resp.StatusCode < 300 && resp.Header.Get("Content-Encoding") == ""
	if !metered && !s.t.config.UntilBody || resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	h := newHeld(s, resp.Body)
	if metered {
		h.watch(resp)
	}
	return h
}

// ended settles an attempt whose answer's body has ended, or will never be read.
func (s *sent) ended(u tokens.Usage, err error, metered bool) {
	o := s.verdict.Outcome
	o.ArrivedAgo = max(o.ArrivedAgo+time.Since(s.headed), 1)
	switch {
	case !metered || errors.Is(err, tokens.ErrNoUsage) || errors.Is(err, tokens.ErrMalformed):
		// What was admitted stands.
	case err != nil:
		o.Result, o.ArrivedAgo = limit.Unknown, 0
	default:
		s.t.config.Tokens.Learn(s.est, u)
		input, output, total, ok := s.count.Settle(s.est, u)
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
	s.settle(o)
}
