package transport

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// tries is what a call's attempts have shown.
type tries struct {
	most   int  // how many attempts it has, but for refusals while patient
	again  bool // the client itself sent the same request before
	theirs bool // the client decides whether it is sent again
	denied keyring.Denials

	// last and lastErr are the end of the attempt before this one, if it can still be returned.
	last    *http.Response
	lastErr error

	// stranded is since when faults of the way to the host kept it from being sent; zero: the
	// latest attempt could.
	stranded time.Time
	none     int // attempts in a row, up to the latest, that were none for that reason
}

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
	if v.Result == limit.Failed && (v.Status == http.StatusUnauthorized || v.Status == http.StatusForbidden) && s.wasRefused() {
		in.Refused = true
		*v = t.policy.Of(&in)
	}
	if t.config.Actual != nil && resp != nil && v.Result == limit.Accepted {
		if cost, ok := t.config.Actual(resp); ok {
			v.Outcome.Metered, v.Outcome.Actual = true, cost
		}
	}
	s.notice()
	s.ofOthers()
	if v.Shown != nil {
		s.way.server.dialect.Store(&v.Shown)
	}
	if resp != nil {
		t.look.answered(s.headed.Sub(t.epoch), s.way.on(s.leaf).whose().Server(), in.RTT)
		s.way.server.learn(v.Shown, resp.Header)
		if s.leaf.partition.Key != "" {
			t.belongs(s.leaf, resp)
		}
		if s.leaf.joined() {
			s.follows()
		}
	}
	if s.way.target != nil {
		c.judgeAway(s)
	}
	if t.config.Scope != nil && v.Said.Refusal != provider.None {
		p, _ := s.partition()
		v.Scope = cmp.Or(t.config.Scope(p, v.Said), v.Scope)
	}
	return in
}

// wasRefused reports whether a limit refused the key of an attempt last, with nothing served since.
func (s *sent) wasRefused() (yes bool) {
	n := s.way.nodes[s.way.at(provider.Key)]
	s.t.group.Update(func(mono.Time) { yes = n.stack.Refusals() > 0 })
	return yes
}

// ofOthers drops statements about another resource than that of the request. Its route counts there
// from now on.
func (s *sent) ofOthers() {
	if own := bare(s.leaf.partition.Resource); own != "" {
		if other := s.verdict.OfResource(own); other != "" {
			s.elsewhere(other)
		}
	}
}

// bare returns the name of a resource as answers have it, whether it is a key's or an address's.
func bare(resource string) string { return strings.TrimPrefix(resource, ofAddress) }

// ofAddress begins the names of an address's resources: see provider.OfAddress.
const ofAddress = "address "

// evidence makes the evidence for a verdict.
func (c *call) evidence(s *sent, resp *http.Response, err error, last bool) classify.Evidence {
	written, began, rtt := s.wire.Times(s.headed)
	in := classify.Evidence{
		Err: err, Wrote: classify.Nothing, Now: s.headed, RTT: rtt,
		Provider:   s.way.server.provider,
		Idempotent: classify.Idempotent(c.req), Model: s.leaf.partition.Model != "", Once: c.getBody == nil,
		Ended:   c.ctx.Err() != nil,
		Upgrade: classify.Upgrades(c.req.Header),
		Nonce:   s.key != nil && s.key.Ordered,
	}
	if written {
		in.Wrote, in.Took = classify.Something, s.headed.Sub(began)
	}
	if err != nil {
		in.Link = classify.LinkOf(c.ctx, err)
		in.Idempotent = in.Idempotent || errors.Is(err, send.ErrUnprocessed)
	}
	if known := s.way.server.dialect.Load(); known != nil {
		in.Shown = *known
	}
	if resp != nil {
		in.Status, in.Header = resp.StatusCode, resp.Header
	}
	s.none = err != nil && !written && stack.Excuses(in.Link, s.way.server.down.Load()) && c.bears(s)
	in.Last, in.Resends, in.Patient = last && !s.none, c.again && !s.none, c.patience() > 0
	return in
}

// moreDelay is the most steps by which the pauses grow between attempts that are none. So no
// request sleeps long after the host is back.
const moreDelay = 4

// bears reports whether the request still waits for a way to its host.
func (c *call) bears(s *sent) bool {
	most := c.bearsFor(s.way)
	if c.stranded.IsZero() {
		return most > 0
	}
	return s.headed.Sub(c.stranded) < most
}

// bearsFor returns how long the request waits for a way to its host.
func (c *call) bearsFor(w *way) time.Duration {
	most := w.server.settings().MaxOutage
	if c.maxWait > 0 {
		most = min(most, c.maxWait)
	}
	return most
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

// judge settles an attempt by its evidence, or leaves that to the body of its answer. The error is
// the attempt's, or that of Config.CheckRetry; there is then no answer any more.
func (c *call) judge(s *sent, a *Attempt, in *classify.Evidence, resp **http.Response, last bool) (wait time.Duration,
	err error) {
	v := &s.verdict
	if c.leaf.moved.Load() != nil && c.leaf.rewayed { // it may go again with a key that was not there
		if err := c.move(); err != nil {
			c.t.log.Error("a request goes on with the keys of before", "partition", c.leaf.partition, "err", err)
		}
	}
	c.theirs = c.theirs || v.Theirs
	served := v.Result == limit.Accepted
	denied := s.key != nil && v.Answer().Denied && v.Status != http.StatusProxyAuthRequired && !(v.Banned && ofKey(v))
	if denied { // before it is settled, since the next in line must not go if all are to stay away
		c.notesDenial(s, in, *resp, last)
	}
	c.heed(s, a.Number)
	if s.key != nil {
		c.judgeKey(s, denied, last)
	} else {
		c.judgeOwn(s, in, *resp)
	}
	if s.way.target != nil {
		c.judgeTarget(s, last)
	}
	wait = s.wait
	a.tell(in, v)
	if c.t.config.CheckRetry != nil && c.ctx.Err() == nil {
		err := c.check(v, a, *resp, last)
		if v.Again && v.Result != limit.Limited && !c.moves {
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

// judgeKey notes what an attempt shows of its key. If the request was not processed and another key,
// or another number of this one, may help, it is sent again. A key is to blame for a denial if another key is then
// served. If all keys are denied, the request is to blame.
func (c *call) judgeKey(s *sent, denied, last bool) {
	v := &s.verdict
	others := ofKey(v)
	switch {
	case v.Result == limit.Accepted:
		c.blame(s, v)
		return
	case v.Banned && others:
		c.blame(s, v)
	case v.Status == http.StatusProxyAuthRequired: // the way to the server wants a password, and no key helps
		return
	case denied:
		others = c.others()
	case v.Misordered: // the next attempt has a new number
		others = s.key.Ordered
	default: // the key's pause is longer than any wait
		others = others && v.Result == limit.Limited && s.way.look() != nil
	}
	if others && !last && c.getBody != nil && c.ctx.Err() == nil && c.leaf.look() == nil {
		v.Again, v.Why, s.wait = true, "", 0
	}
}

// ofKey reports whether another key may do better.
func ofKey(v *classify.Verdict) bool { return v.Scope != provider.IP && v.Scope != provider.All }

// blame takes in what an attempt shows of its key, and of those that denied the request before.
func (c *call) blame(s *sent, v *classify.Verdict) {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case v.Result == limit.Accepted:
		s.way.server.keysServe(s.way.server.row.Served())
		for _, in := range t.ring.Served(s.key.in, &c.denied) {
			if k := t.choice.Load().at(in); k != nil {
				t.outLocked(k, t.ring.Era(in), observe.KeyDenied)
			}
		}
	case v.Banned:
		t.outLocked(s.key, s.era, v.Out)
	default:
		t.ring.Noted(s.key.in, &c.denied)
	}
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

// after records a failure or a refusal, and returns the wait of its request if it is sent again.
func (c *call) after(s *sent, v *classify.Verdict, number int) (wait time.Duration) {
	t := c.t
	if v.Result != limit.Limited && !v.Said.Partly {
		if v.Link != limit.Working && c.ctx.Err() == nil && !errors.Is(v.Err, send.ErrLapsed) {
			s.way.server.failed(causeOf(v))
		}
		return max(t.delay(number+min(c.none, moreDelay)), v.RetryAfter)
	}
	if v.Result == limit.Limited {
		t.refused.Add(1)
	}
	at := s.way.nodes[s.way.at(v.Scope)]
	t.noteRefused(s, v.Status, v.Said, *at.in())
	pause := at.refused(&v.Said, v.Asked)
	if v.Result == limit.Limited {
		s.tellRefused(at, pause)
	}
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

// causeOf returns why an attempt failed.
func causeOf(v *classify.Verdict) error {
	if v.Err != nil {
		return v.Err
	}
	return errStatus(v.Status)
}

// patience returns how much of the longest wait of the request is left. It is 0 if the request is
// not to wait for a limit for longer than its attempts do.
func (c *call) patience() time.Duration {
	if c.maxWait == 0 || c.t.config.Attempts == 1 {
		return 0
	}
	return max(c.maxWait-time.Since(c.came), 0)
}

// spare returns the time within which a refused request has to be sent again: until its deadline,
// and after its last attempt until its patience is over.
func (c *call) spare(number int) time.Duration {
	if number < c.most {
		return c.left()
	}
	return min(c.left(), c.patience())
}

const whyChecked = "CheckRetry says no"

// check asks Config.CheckRetry, which may overrule a verdict where that is a matter of opinion.
func (c *call) check(v *classify.Verdict, a *Attempt, resp *http.Response, last bool) error {
	shown := resp
	if resp != nil && resp.Body != nil {
		copied := &struct {
			http.Response
			peeked
		}{*resp, peeked{rest: resp.Body}}
		copied.Response.Body = &copied.peeked
		shown = &copied.Response
		defer func() { resp.Body = copied.peeked.whole() }()
	}
	again, err := c.t.config.CheckRetry(c.ctx, *a, shown)
	switch {
	case err != nil:
		v.Again, v.Why = false, whyChecked
		return err
	case again == v.Again:
	case !again:
		v.Again, v.Why = false, whyChecked
	case last:
		v.Why = "that was the last attempt"
	case c.getBody == nil:
		v.Why = "its body cannot be read again: the request has no GetBody"
	default:
		v.Again, v.Why = true, ""
	}
	return nil
}
