package transport

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/breaker"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/send/neterr"
	"github.com/paceline-go/paceline/internal/send/once"
	"github.com/paceline-go/paceline/internal/send/timer"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// sent is an attempt under way. It has to be settled, once.
type sent struct {
	t       *Transport
	leaf    *leaf
	way     *way
	key     *key   // nil: the request's own credential
	era     uint64 // of key
	permit  paceline.Permit
	cost    limit.Cost
	wire    once.Exchange
	settled atomic.Bool
	late    timer.Item // of the Transport's late, until Send returns
	began   time.Time  // with Config.Ended: when the Base got it
	headed  time.Time  // when the header of the answer was there
	verdict classify.Verdict
	heeded  bool
	wait    time.Duration // its request's wait before the next attempt, as heed found
	entry   int64         // in Config.Recorder
	visit   *visit        // nil: its key is no newcomer in another key's limits
	none    bool          // nothing of it was sent, by a fault of the way to the host: it is not counted

	api   tokens.API
	est   tokens.Estimate
	count tokens.Counting
	bill  bill
	used  *tokens.Usage // as stated in its answer; nil: not stated
}

// begin makes an attempt of the acquired permit.
func (c *call) begin() *sent {
	s := &sent{t: c.t, leaf: c.leaf, way: c.way, visit: c.visit, permit: c.permit, cost: c.cost, api: c.api, est: c.est,
		count: c.count, bill: c.bill}
	if c.way.account != nil {
		s.key, s.era = c.t.take(c.way.account, &c.denied)
	}
	s.wire.Leave = s
	s.leaf.active.Add(1)
	c.t.attempts.Add(1)
	if c.t.config.Ended != nil {
		s.began = time.Now()
	}
	return s
}

// Fresh reports, right before the first byte, whether it may be written: see paceline.Permit.Fresh.
func (s *sent) Fresh() bool { return !s.settled.Load() && s.permit.Fresh() }

// lapsed takes back an attempt whose permit lapsed before anything was written: it was none. It
// reports whether that is the whole end of the attempt, with no copy under way.
func (s *sent) lapsed(err error, number int, p *pair) bool {
	if !errors.Is(err, once.ErrLapsed) || !p.withdraw() {
		return false
	}
	s.settle(limit.Outcome{Result: limit.Unsent})
	s.t.attempts.Add(-1)
	if number > 1 {
		s.t.resent.Add(-1)
	}
	return true
}

// partition is what the attempt counts in, all fields.
func (s *sent) partition() Partition {
	p := s.leaf.partition
	if s.key != nil {
		p.Key = s.key.account.name
	}
	return p
}

func (s *sent) keyName() string {
	if s.key == nil {
		return ""
	}
	return s.key.Name
}

// with returns the request for the Base, which closes its body.
func (c *call) with(body io.ReadCloser) *http.Request {
	if body == nil {
		return c.req
	}
	r := new(http.Request)
	*r = *c.req
	r.Body, r.GetBody = body, c.getBody
	return r
}

// send makes one attempt with the acquired permit, and decides about the request: if a.Again, it is
// sent again after the wait.
func (c *call) send(number int, last bool) (resp *http.Response, a Attempt, wait time.Duration, err error) {
	t := c.t
	s := c.begin()
	a = Attempt{Request: c.req, Partition: s.partition(), Key: s.keyName(), Number: number, Cost: c.cost, Waits: c.waits,
		Sent: s.began}
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
	if number > 1 {
		t.resent.Add(1)
	}
	r := c.req
	if c.body != nil {
		r = c.with(c.body)
		c.body = nil // the Base closes it
	}
	var p *pair
	if t.hedging {
		p = c.hedge(s, number, last)
		defer p.stop()
	}
	resp, err = c.trip(s, r)
	if s.lapsed(err, number, p) {
		return nil, a, 0, err
	}
	in := c.hear(s, resp, err, last)
	if p != nil {
		p.primary(&a, &s, &resp, &in)
		err = in.Err
	}
	c.strand(s, in.Wrote)
	wait, err = c.judge(s, &a, &in, &resp, in.Last && !(in.Patient && s.verdict.Result == limit.Limited))
	if t.config.Ended != nil {
		t.config.Ended(a)
	}
	returns = true
	return resp, a, wait, err
}

// trip sends, and returns an answer or the reason why there is none.
func (c *call) trip(s *sent, r *http.Request) (resp *http.Response, err error) {
	if err := s.record(); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	if s.key != nil {
		r = clean(r)
		s.key.Apply(r)
	}
	late := c.t.late
	if late != nil {
		s.wire.Expires, s.late.Of = true, s
		late.Begin(&s.late)
	}
	resp, err = c.t.base.Send(r, &s.wire)
	inTime := late == nil || late.End(&s.late)
	switch {
	case err == nil && resp == nil:
		err = errors.New("transport: the Base returned neither an answer nor an error")
	case !inTime && err == nil: // reading the body may fail
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

// Expired ends an attempt without an answer after Config.AttemptTimeout.
func (s *sent) Expired() { s.wire.Expire(&timedOut{s.t.config.AttemptTimeout}) }

// hear collects the evidence of an attempt.
func (c *call) hear(s *sent, resp *http.Response, err error, last bool) classify.Evidence {
	t := c.t
	s.headed = time.Now()
	in := c.evidence(s, resp, err, last)
	switch {
	case resp == nil:
	case t.policy.NeedsBody(&in):
		in.Body = c.words(s, resp)
	case t.policy.Glances(&in):
		in.Body = c.glance(s, resp)
	}
	v := &s.verdict
	*v = t.policy.Of(&in)
	if v.Said.Partly && !in.Idempotent && c.reads() {
		in.Idempotent = true
		*v = t.policy.Of(&in)
	}
	if v.Result == limit.Limited && v.RetryAfter > 0 {
		if in.Refills = s.refills(); in.Refills != 0 {
			*v = t.policy.Of(&in)
		}
	}
	if v.Shown != nil {
		s.leaf.server.dialect.Store(&v.Shown)
	}
	if resp != nil {
		t.look.answered(t.now(), s.leaf.partition.Host, in.RTT)
		s.leaf.server.learn(v.Shown, resp.Header)
		t.belongs(s.leaf, resp)
		s.turns()
	}
	if t.config.Scope != nil && v.Said.Refusal != provider.None {
		if scope := t.config.Scope(s.partition(), v.Said); scope != "" {
			v.Scope = scope
		}
	}
	return in
}

// judge settles an attempt by its evidence, or leaves that to the body of its answer. The error is
// the attempt's, or that of Config.CheckRetry; there is then no answer any more.
func (c *call) judge(s *sent, a *Attempt, in *classify.Evidence, resp **http.Response, last bool) (wait time.Duration,
	err error) {
	v := &s.verdict
	c.theirs = c.theirs || v.Theirs
	served := v.Result == limit.Accepted
	c.heed(s, a.Number)
	if s.key != nil {
		c.judgeKey(s, last)
	}
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

// heed settles an attempt that was not served, or not in full, unless that was done, and finds the
// wait of its request.
func (c *call) heed(s *sent, number int) {
	v := &s.verdict
	if s.heeded || v.Result == limit.Accepted && !v.Said.Partly {
		return
	}
	s.heeded = true
	s.settle(v.Outcome)
	s.wait = c.after(s, v, number)
	left := c.left()
	if v.Result == limit.Limited {
		left = c.spare(number)
	}
	v.InTime(s.wait, left)
}

// tell fills in the record of the attempt.
func (a *Attempt) tell(in *classify.Evidence, v *classify.Verdict) {
	a.Status, a.Err, a.RTT, a.Result, a.Said, a.Again, a.Why = in.Status, in.Err, in.RTT, v.Result, v.Said, v.Again, v.Why
}

// evidence makes the evidence for a verdict.
func (c *call) evidence(s *sent, resp *http.Response, err error, last bool) classify.Evidence {
	written, began, rtt := s.wire.Times(s.headed)
	in := classify.Evidence{
		Err: err, Link: neterr.OfError(c.ctx, err), Wrote: classify.Nothing, Now: s.headed, RTT: rtt,
		Provider:   s.leaf.server.provider,
		Idempotent: classify.Idempotent(c.req), Model: s.leaf.partition.Model != "", Once: c.getBody == nil,
		Ended:   c.ctx.Err() != nil,
		Upgrade: classify.Upgrades(c.req.Header),
	}
	if written {
		in.Wrote, in.Took = classify.Something, s.headed.Sub(began)
	}
	if errors.Is(err, once.ErrUnprocessed) {
		in.Idempotent = true
	}
	if known := s.leaf.server.dialect.Load(); known != nil {
		in.Shown = *known
	}
	if resp != nil {
		in.Status, in.Header = resp.StatusCode, resp.Header
	}
	s.none = err != nil && !written && breaker.Excuses(in.Link, s.leaf.server.down.Load()) && c.bears(s)
	in.Last, in.Resends, in.Patient = last && !s.none, c.again && !s.none, c.patience() > 0
	return in
}

// moreDelay is the most steps by which the pauses grow between attempts that are none. So no
// request sleeps long after the host is back.
const moreDelay = 4

// bears reports whether the request still waits for a way to its host.
func (c *call) bears(s *sent) bool {
	most := s.leaf.server.settings().MaxOutage
	if c.maxWait > 0 {
		most = min(most, c.maxWait)
	}
	if c.stranded.IsZero() {
		return most > 0
	}
	return s.headed.Sub(c.stranded) < most
}

// strand notes whether the latest attempt is to be none.
func (c *call) strand(s *sent, wrote classify.Wrote) {
	switch {
	case s.none:
		if c.none++; c.stranded.IsZero() {
			c.stranded = s.headed
		}
	case wrote != classify.Nothing:
		c.none, c.stranded = 0, time.Time{}
	default:
		c.none = 0
	}
}

// after records a failure or a refusal, and returns the wait of its request if it is sent again.
func (c *call) after(s *sent, v *classify.Verdict, number int) (wait time.Duration) {
	t := c.t
	if v.Result != limit.Limited && !v.Said.Partly {
		if v.Link != limit.Working && c.ctx.Err() == nil && !errors.Is(v.Err, once.ErrLapsed) {
			cause := v.Err
			if cause == nil {
				cause = errStatus(v.Status)
			}
			s.leaf.server.failed(cause)
		}
		return max(t.delay(number+min(c.none, moreDelay)), v.RetryAfter)
	}
	if v.Result == limit.Limited {
		t.refused.Add(1)
	}
	at := s.way.nodes[s.way.at(v.Scope)]
	t.noteRefused(s, v.Status, v.Said, at.partition)
	pause := at.refused(v.Said.Refusal, v.Asked)
	if pause > t.config.MaxRetryAfter {
		v.Again = false
		if v.Why == "" {
			v.Why = "everybody stays away for longer than anybody waits"
		}
	}
	if pause <= 0 { // it was sent before the last pause began, and that is over
		return t.delay(number)
	}
	if len(c.leaf.more) == 0 {
		v.InTime(pause, c.spare(number)) // it waits for the end of the pause in line
	}
	return 0
}

// settle settles the request at every limit, at its first call. Each limit learns the server's
// statements about it.
func (s *sent) settle(o limit.Outcome) {
	if s.settled.Swap(true) {
		return
	}
	defer s.leaf.release()
	billed, paid := s.billed(o)
	if s.entry != 0 {
		s.t.config.Recorder.Settle(s.entry, s.cost, billed)
	}
	if s.key != nil {
		s.t.settled(s.key, &o)
	}
	if s.visit != nil {
		s.visit.end(s.t, o.Result)
		s.turns()
	}
	l, w, v := s.leaf, s.way, &s.verdict
	s.teach()
	switch {
	case s.visit != nil || paid:
		each, seen := s.each(o, billed, paid), o
		if paid {
			seen = looked(o, billed)
		}
		s.permit.SettleEach(seen, each)
		if s.visit != nil {
			s.visit.settle(s.t, each)
		}
	case o.Result == limit.Limited || v.Said.Partly || len(v.Said.Limits) > 0:
		s.permit.SettleEach(o, func(m *paceline.Limit) limit.Outcome { return s.hears(m, o) })
	case o.RetryAfter > 0:
		s.permit.SettleEach(o, func(m *paceline.Limit) limit.Outcome { return s.stays(m, o) })
	default:
		s.permit.Settle(o)
	}
	if h := l.server; h.down.Load() && o.Result == limit.Accepted {
		h.served()
	}
	if len(v.Said.Policies) == 0 {
		return
	}
	for i, n := range w.nodes[:w.count] { // after all are settled, since Adopt may panic
		if n == s.t.shared {
			continue
		}
		if stated, capacity := v.Policies(w.has(i)); len(stated) > 0 {
			o := s.own(i, o)
			n.hear(stated, capacity, &o)
		}
	}
}

// each returns the outcome for each limit. For those that its key has left it was never sent.
func (s *sent) each(o, billed limit.Outcome, paid bool) func(*paceline.Limit) limit.Outcome {
	return func(m *paceline.Limit) limit.Outcome {
		switch {
		case s.visit.left(m):
			return keyring.Of(false, o)
		case paid:
			return s.bills(m, s.hears(m, o), billed)
		}
		return s.hears(m, o)
	}
}

// hears returns the outcome for one limit.
func (s *sent) hears(m *paceline.Limit, o limit.Outcome) limit.Outcome {
	if s.leaf.room != nil && m == s.leaf.room.limit {
		return s.inRoom(o)
	}
	return s.own(s.way.index(m), o)
}

// stays returns the outcome for one limit after a failure whose answer asks to stay away. The limits
// of the host do. A limit that other hosts share goes on.
func (s *sent) stays(m *paceline.Limit, o limit.Outcome) limit.Outcome {
	i := s.way.index(m)
	if i < 0 || s.way.nodes[i] == s.t.shared || s.way.nodes[i].partition.Scope == ScopeClient {
		o.RetryAfter = 0
	}
	return o
}

// refills returns the units whose resets in the answer only say when a bucket is full again, as the
// limits know. The limits first learn the answer's other statements.
func (s *sent) refills() (units uint8) {
	s.teach()
	s.t.group.Update(func(mono.Time) {
		for _, n := range s.way.nodes[:s.way.count] {
			units |= n.stack.Refills(&s.verdict.Outcome)
		}
	})
	return units
}

// teach passes the answer's statements about limits to the limiters that learn from them, before
// the settlement. The limiter of all requests gets all but those of a route or a model.
func (s *sent) teach() {
	for i, n := range s.way.nodes[:s.way.count] {
		if !n.taught {
			continue
		}
		has := s.way.has(i)
		if n == s.t.shared {
			has = func(scope provider.Scope) bool { return scope != provider.Route && scope != provider.Model }
		}
		stated, _ := s.verdict.Policies(has)
		if all := classify.Stated(stated); len(all) > 0 {
			s.t.group.Update(func(now mono.Time) { limit.State(n.stack, now, all) }, n.limit)
		}
	}
}

// own returns the outcome for node i; i is -1 for the way to the host.
func (s *sent) own(i int, o limit.Outcome) limit.Outcome {
	switch {
	case i < 0:
		o.RetryAfter = 0
		return o
	case s.way.nodes[i] == s.t.shared && s.t.senses && s.verdict.Scope != provider.Route &&
		s.verdict.Scope != provider.Model:
		return o // the quota of this very node may have refused
	case s.way.nodes[i] == s.t.shared: // it learns what is left; the refusal may concern another partition
		o.Elsewhere, o.RetryAfter = o.Result == limit.Limited, 0
		return o
	}
	own := s.verdict.For(s.way.has(i))
	own.Result, own.Metered, own.Actual, own.ArrivedAgo = o.Result, o.Metered, o.Actual, o.ArrivedAgo
	return own
}

// ended settles an attempt whose answer's body has ended, or will never be read.
func (s *sent) ended(u tokens.Usage, err error, metered bool) {
	o := s.verdict.Outcome
	o.ArrivedAgo = max(o.ArrivedAgo+time.Since(s.headed), 1)
	switch {
	case !metered || errors.Is(err, tokens.ErrNoUsage) || errors.Is(err, tokens.ErrMalformed):
		// Nothing better is known, so the admitted cost stands.
	case err != nil:
		o.Result, o.ArrivedAgo = limit.Unknown, 0
	default:
		s.t.config.Tokens.Learn(s.est, u)
		s.t.look.uses(s.leaf.partition.Client, &u)
		s.used = &u
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
