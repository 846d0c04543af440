package transport

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// headAnswers is how long a HEAD waits for its answer.
const headAnswers = 2 * time.Second

// isOpen reports whether the request may wait to go by a way: its price is known there, no limit is shut,
// and a key is left that has not denied it.
func (c *call) isOpen(w *way) bool {
	return c.affords(w) && w.look() == nil && (w.account == nil || c.t.asks(w.account, &c.denied))
}

// elsewhere reports whether the request may go to another target than that of a way.
func (c *call) elsewhere(than *way) bool {
	for k := range c.leaf.ways() {
		w := c.leaf.by(k)
		if w.target != than.target && !w.server.down.Load() && c.isOpen(w) {
			return true
		}
	}
	return false
}

// judgeAway notes that an attempt was answered in the place of a target that is away, while others can
// take its load.
func (c *call) judgeAway(s *sent) {
	if v := &s.verdict; v.Result == limit.Failed && classify.Away(v.Status) && c.elsewhere(s.way) {
		v.Link = limit.Away
	}
}

// headFirst probes a target that is down by a HEAD in the place of the request, with the permit of the
// request. It reports whether it did: the request itself then waits for another turn. A target without
// connections may come back with 503 at first, so the HEAD goes there, too.
//
// A request goes itself that may be sent again elsewhere after its failure. So it does where no other
// target is open, and where no HEAD gets an answer. It also does after a probe whose answer was 500,
// which may be that of one path or method.
func (c *call) headFirst() bool {
	h := c.way.server
	if !h.heads.Load() || c.heads>>c.way.target.in&1 == 1 || h.mute.Load() || c.getBody != nil && classify.Idempotent(c.req) ||
		!c.elsewhere(c.way) {
		return false
	}
	begun := c.begun
	s, _ := c.begin(1)
	c.begun = begun // the request has not
	s.priced, s.more = priced{cost: s.cost}, false
	for _, u := range [...]limit.Unit{limit.Input, limit.Output, limit.Tokens, limit.Money} {
		s.cost[u] = 0 // it has no body
	}
	ctx, cancel := context.WithTimeout(c.ctx, headAnswers)
	defer cancel()
	resp, err := c.trip(s, headOf(ctx, c.req))
	in := c.evidence(s, resp, err, true)
	s.verdict = c.t.policy.Of(&in)
	if resp != nil {
		io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<10)) // a HEAD's answer has no body
		resp.Body.Close()
	}
	c.judgeAway(s)
	v := &s.verdict
	o := v.Outcome
	if o.Result != limit.Unsent {
		o.Metered, o.Actual = true, s.cost
	}
	s.settle(o)
	if v.Link == limit.Working { // one is enough for a request, whatever others see there
		c.heads |= 1 << c.way.target.in
	}
	switch {
	case err != nil && c.ctx.Err() == nil && ctx.Err() != nil:
		h.mute.Store(true)
	case v.Result == limit.Limited:
		s.way.nodes[s.way.at(v.Scope)].refused(&v.Said, v.Asked)
	case v.Link != limit.Working && c.ctx.Err() == nil:
		h.failed(causeOf(v))
	}
	return true
}

// headOf returns a HEAD for the URL of a request, with its header.
func headOf(ctx context.Context, of *http.Request) *http.Request {
	r := of.Clone(ctx)
	r.Method, r.Body, r.GetBody, r.ContentLength, r.TransferEncoding, r.Trailer = http.MethodHead, nil, nil, 0, nil, nil
	for _, name := range [...]string{"Content-Type", "Content-Length", "Content-Encoding", "Expect"} {
		r.Header.Del(name)
	}
	return r
}
