package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// settle settles the request at every limit, at its first call. Each limit learns the server's
// statements about it.
func (s *sent) settle(o limit.Outcome) {
	if s.settled.Swap(true) {
		return
	}
	defer s.leaf.release()
	if s.finds != nil { // those that wait for its cost must find that in the limits: see TestUnknownRoutes
		defer s.t.shapes.Ends(s.finds)
	}
	s.t.notices.Ends(s.seen)
	if s.more && o.Result == limit.Accepted && !o.Metered {
		o.Metered, o.Actual = true, s.cost
	}
	billed, paid := o, false
	if s.bill.reserved != 0 {
		billed, paid = s.billed(o)
	}
	if s.entry != 0 {
		s.t.config.Recorder.Settle(s.entry, s.cost, billed)
	}
	if s.end != nil {
		s.end.comes(s.t, func(e *end) { e.outcome = billed })
	}
	if s.key != nil {
		s.t.settled(s.key, &o)
	}
	if s.leaf.newcomer != nil {
		s.unnamed(o.Result)
	}
	moved := s.leaf.joined()
	if moved {
		s.follows()
	}
	w, v := s.way, &s.verdict
	if w.taught {
		s.teach()
	}
	switch {
	case moved || paid:
		seen := o
		if paid {
			seen = looked(o, billed)
		}
		s.permit.SettleEach(seen, s.each(o, billed, paid))
	case o.Result == limit.Limited || v.Said.Partly || len(v.Said.Limits) > 0:
		s.permit.SettleEach(o, func(m *paceline.Limit) limit.Outcome { return s.hears(m, o) })
	case o.RetryAfter > 0:
		s.permit.SettleEach(o, func(m *paceline.Limit) limit.Outcome { return s.stays(m, o) })
	default:
		s.permit.Settle(o)
	}
	if s.cost[limit.Money] > 0 {
		s.spends()
	}
	if h := w.server; h.down.Load() && (o.Result == limit.Accepted || o.Link == limit.Working) {
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
		case s.left(m):
			return limit.Outcome{Result: limit.Unsent}
		case paid:
			return s.bills(m, s.hears(m, o), billed)
		}
		return s.hears(m, o)
	}
}

// hears returns the outcome for one limit.
func (s *sent) hears(m *paceline.Limit, o limit.Outcome) limit.Outcome {
	if s.way.room != nil && m == s.way.room.limit {
		return s.inRoom(o)
	}
	return s.own(s.way.index(m), o)
}

// stays returns the outcome for one limit after a failure whose answer asks to stay away. The limits
// of the host do. A limit that other hosts share goes on.
func (s *sent) stays(m *paceline.Limit, o limit.Outcome) limit.Outcome {
	i := s.way.index(m)
	if i < 0 || s.way.nodes[i] == s.t.shared || s.way.nodes[i].in().Scope == ScopeClient {
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
			has = func(scope provider.Scope) bool {
				return scope != provider.Route && scope != provider.Model && scope != provider.Resource
			}
		}
		stated, _ := s.verdict.Policies(has)
		if all := classify.Stated(stated); len(all) > 0 {
			s.t.group.Update(func(now mono.Time) { ability.State(n.stack, now, all) }, n.limit)
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
		s.verdict.Scope != provider.Model && s.verdict.Scope != provider.Resource:
		return o // the quota of this very node may have refused
	case s.way.nodes[i] == s.t.shared: // it learns what is left; the refusal may concern another partition
		o.Elsewhere, o.RetryAfter = o.Result == limit.Limited, 0
		return o
	}
	own := s.verdict.For(s.way.has(i))
	own.Result, own.Metered, own.Actual, own.ArrivedAgo = o.Result, o.Metered, o.Actual, o.ArrivedAgo
	return own
}

// ended settles an attempt whose answer's body has ended, or will never be read. text is the body, if
// that says what the request cost.
func (s *sent) ended(u tokens.Usage, err error, metered bool, text []byte) {
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
	if text != nil && o.Result == limit.Accepted {
		s.costs(&o, text)
	}
	s.settle(o)
}

// settled counts the outcome of an attempt with a key.
func (t *Transport) settled(k *key, o *limit.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.tally.Settled(o)
}

// end is the end of an attempt, for Config.Settled. Its two halves come in any order, on two goroutines.
type end struct {
	mu      sync.Mutex
	half    bool // one of them has come
	attempt Attempt
	outcome limit.Outcome
}

// comes takes in a half. The second one makes the end whole.
func (e *end) comes(t *Transport, half func(*end)) {
	e.mu.Lock()
	half(e)
	whole := e.half
	e.half = true
	e.mu.Unlock()
	if whole {
		t.config.Settled(e.attempt, e.outcome)
	}
}

// reports tells of an attempt whose header or error has come.
func (s *sent) reports(a *Attempt) {
	if f := s.t.config.Ended; f != nil {
		f(*a)
	}
	if s.end != nil {
		s.end.comes(s.t, func(e *end) { e.attempt = *a })
	}
}
