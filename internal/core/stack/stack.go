// Package stack has all that stands between one credential, or any other partition of a server's quota, and its next
// request, as one limit.Limiter: the configured limit, what is in flight, a pause, what the server says is left, and a slow
// beginning. It can only be stricter than the configured limit.
//
// Like every Limiter it is arithmetic on a now that it is given, owns no clock and no lock, and belongs to one driver. What an
// outage of a host is, where nothing arrives, is package breaker's.
package stack

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Config describes a Stack. The zero value has no limit of its own, learns from answers, and begins fast.
type Config struct {
	// Limiter is the server's rule. It belongs to the Stack from now on. If nil, none.
	Limiter limit.Limiter
	// Beside, where Limiter is nil, is another Stack's, in whose limit all requests of this one count. What the server says is left is compared
	// with it. If nil, none.
	Beside limit.Limiter
	// InFlight is the most requests in flight. If zero, no bound.
	InFlight int
	// Adapt, if not nil, has a bound on requests in flight that nobody states: see limit.Adaptive.
	Adapt *limit.AdaptiveConfig
	// Gap is the least time between two sends. If zero, none.
	Gap time.Duration
	// Ordered says that requests must arrive in the order they were sent, as nonces must: then Gap, too, is a limit.Sequence's,
	// which ends at the first proof that it does not do; and without any gap and InFlight one is in flight at a time.
	Ordered bool
	// LearnGap has a limit.Sequence learn the gap. Not with Gap or InFlight.
	LearnGap bool
	// Late is how long a request whose outcome is unknown still counts as in flight for InFlight and LearnGap. If zero,
	// 5 s; negative: not at all.
	Late time.Duration
	// Slow begins slowly after a pause: one request first, and each that is answered makes room for one more than before
	// it. It is for where nobody knows a limit. SlowAgain does so from the second refusal in a row on.
	Slow, SlowAgain bool
	// Trial has the first request go alone until it is answered, or for so long, and the next one, too, if it was refused. If zero, not.
	Trial time.Duration
	// Pause is how long to stay away after the n-th refusal in a row if that names no time. If refusals name a time, twenty in a row
	// are believed; from the 21st on the pause is at least that of the first, second and so on of those that name none. The zero value
	// is ready; with a negative Base there is no pause.
	Pause backoff.Policy
	// MaxPause is the longest that one answer keeps everybody away, whatever it asks for: then one request goes, and if that
	// is refused the next one twice as long after it, until the server's own time has come. If zero, 1 h; negative, or where the
	// Outcome says that it is Sure: no request goes before that time.
	MaxPause time.Duration
	// Rand jitters Pause. It belongs to the driver. If nil, there is no jitter.
	Rand *rand.Rand
}

const (
	defaultMaxPause = time.Hour
	forEver         = 1 << 62 // 146 years
)

// Stack is all limits of one partition as one. Made by New. Not safe for concurrent use; Ready, Admit and Settle do not
// allocate, but for the first word of what is left.
type Stack struct {
	own      limit.Limiter
	counts   limit.Limiter   // what answers are compared with: own, or what is beside it
	later    bool            // the server counts some of a cost only later: see limit.Arriving
	fitted   *limit.Fitted   // over own; nil: no limit is configured
	under    limit.Limiter   // fitted and the bounds on what is in flight; nil: none
	foresees bool            // limit.ReadyAfter knows of under
	made     []limit.Limiter // under
	last     mono.Time
	sent     uint64 // requests so far: each is known by its number
	book     limit.Book[request]
	calm     bool // nothing but under has anything to say
	lapses   bool // leases of own may
	again    func()
	waiting  func() int
	note     func(kind, text string)

	closed   bool
	pause    pause
	begin    Beginning
	trial    trial
	told     *fairshare.Hints // nil: nothing was ever said
	capacity limit.Cost
}

// request is what is kept of one in flight.
type request struct {
	under  limit.Lease
	at     mono.Time
	number uint64
	cost   limit.Cost
}

// New checks the configuration and returns a Stack that has sent nothing. The error names the field and the value.
func New(c Config) (*Stack, error) {
	if err := c.Pause.Check(); err != nil {
		return nil, fmt.Errorf("Pause: %w", err)
	}
	if c.Trial < 0 {
		return nil, fmt.Errorf("a Trial of %v is negative", c.Trial)
	}
	rules, err := c.rules()
	if err != nil {
		return nil, err
	}
	var fitted *limit.Fitted
	if c.Limiter != nil {
		fitted = limit.NewFitted(c.Limiter)
		rules[0] = fitted
	}
	switch {
	case c.MaxPause < 0:
		c.MaxPause = forEver
	case c.MaxPause == 0:
		c.MaxPause = defaultMaxPause
	}
	g := &Stack{own: c.Limiter, counts: c.Limiter, later: arrivesLater(c.Limiter), fitted: fitted, last: mono.Min, lapses: limit.Lapses(c.Limiter), calm: c.Trial == 0, pause: newPause(c), trial: trial{long: c.Trial}}
	if c.Limiter == nil {
		g.counts = c.Beside
	}
	switch len(rules) {
	case 0:
	case 1:
		g.under = rules[0]
	default:
		g.under = limit.NewAll(rules...)
	}
	if g.under != nil {
		g.made = []limit.Limiter{g.under}
	}
	g.foresees = g.under != nil && limit.Foresees(g.under)
	return g, nil
}

// rules are the configured limit and the bounds on what is in flight.
func (c *Config) rules() (rules []limit.Limiter, err error) {
	if c.InFlight < 0 {
		return nil, fmt.Errorf("InFlight %d is negative", c.InFlight)
	}
	if c.LearnGap && (c.Gap != 0 || c.InFlight != 0) {
		return nil, errors.New("LearnGap with Gap or InFlight")
	}
	if c.Limiter != nil {
		rules = append(rules, c.Limiter)
	}
	inFlight := int64(c.InFlight)
	if c.Ordered && inFlight == 0 && c.Gap == 0 && !c.LearnGap {
		inFlight = 1
	}
	if inFlight > 0 {
		l, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: inFlight, Late: c.Late})
		if err != nil {
			return nil, err
		}
		rules = append(rules, l)
	}
	if c.Adapt != nil {
		l, err := limit.NewAdaptive(*c.Adapt)
		if err != nil {
			return nil, err
		}
		rules = append(rules, l)
	}
	switch {
	case c.LearnGap || c.Ordered && c.Gap != 0:
		l, err := limit.NewSequence(limit.SequenceConfig{Late: c.Late, Gap: c.Gap})
		if err != nil {
			return nil, err
		}
		rules = append(rules, l)
	case c.Gap != 0:
		l, err := limit.NewSpacing(c.Gap)
		if err != nil {
			return nil, err
		}
		rules = append(rules, l)
	}
	return rules, nil
}

// Unsettled implements limit.Owed.
func (g *Stack) Unsettled() (n int, since mono.Time) {
	since = limit.Never
	for r := range g.book.All() {
		since = min(since, r.at)
	}
	return g.book.Len(), since
}

// InFlight ranges over the leases that are not settled and what each was admitted for, in no order. The Stack must not be used meanwhile. It is for
// a Stack without a Limiter, which counts all of a cost.
func (g *Stack) InFlight() iter.Seq2[limit.Lease, limit.Cost] {
	return func(yield func(limit.Lease, limit.Cost) bool) {
		for lease, r := range g.book.Leases() {
			if !yield(lease, r.cost) {
				return
			}
		}
	}
}

// Unwrap returns the configured limit and the bounds on what is in flight.
func (g *Stack) Unwrap() []limit.Limiter { return g.made }

// Misfits returns the configured limits that were seen to be wrong.
func (g *Stack) Misfits() []limit.Misfit {
	if g.fitted == nil {
		return nil
	}
	return g.fitted.Misfits()
}

// Learned counts how often what Lessons returns may have changed.
func (g *Stack) Learned() uint64 {
	if g.fitted == nil {
		return 0
	}
	return g.fitted.Learned()
}

// Lessons returns what was learned of configured limits that requests were refused within.
func (g *Stack) Lessons() []limit.Lesson {
	if g.fitted == nil {
		return nil
	}
	return g.fitted.Lessons()
}

// Follow takes in that the configured Limiter is made of other limiters now (limit.Varying).
func (g *Stack) Follow(now mono.Time) {
	if g.fitted == nil {
		return
	}
	g.last = max(now, g.last)
	g.fitted.Follow(g.last)
	g.later, g.lapses = arrivesLater(g.own), limit.Lapses(g.own)
	if g.again != nil {
		limit.Supply(g.own, g.again, g.waiting, g.note)
	}
}

// Lapses tells whether leases of the configured limit may lapse: see limit.Lapses.
func (g *Stack) Lapses() bool { return g.lapses }

// Fresh implements limit.Fresher.
func (g *Stack) Fresh(lease limit.Lease) bool {
	return !g.lapses || limit.Fresh(g.under, g.book.At(lease).under)
}

// Supply implements limit.Supplied, for the configured limit.
func (g *Stack) Supply(again func(), waiting func() int, note func(kind, text string)) {
	g.again, g.waiting, g.note = again, waiting, note
	limit.Supply(g.own, again, waiting, note)
}

// arrivesLater tells whether the server counts some of a cost only later.
func arrivesLater(l limit.Limiter) bool {
	all := limit.Cost{}
	for u := range all {
		all[u] = limit.MaxCost
	}
	return limit.Arriving(l, all) != all
}

// Own returns the configured Limiter, nil if there is none: to change it (SetLimit, SetWindow), and to ask what could ever fit it.
func (g *Stack) Own() limit.Limiter { return g.own }

// Ready implements limit.Limiter.
func (g *Stack) Ready(now mono.Time, cost limit.Cost) mono.Time {
	now = max(now, g.last)
	t := now
	if g.under != nil {
		t = max(t, g.under.Ready(now, cost))
	}
	if g.calm {
		return t
	}
	return max(t, g.heeds(now, nil, &cost))
}

// ReadyAfter implements limit.Foreseer. Over a limiter that does not foresee it never lets anybody pass.
func (g *Stack) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	now = max(now, g.last)
	t := now
	switch {
	case g.foresees:
		t = max(t, limit.ReadyAfter(g.under, now, first, cost))
	case g.under != nil:
		return limit.Never
	}
	if g.calm {
		return t
	}
	return max(t, g.heeds(now, &first, &cost))
}

// heeds is when what the answers have brought about lets a cost go: now, or after first if that is not nil.
func (g *Stack) heeds(now mono.Time, first, cost *limit.Cost) mono.Time {
	if g.closed {
		return limit.Never
	}
	t := g.pause.ready(now)
	more := 0
	if first != nil {
		more = 1
		if g.pause.probes(now) {
			t = g.pause.until
		}
	}
	if g.told != nil {
		t = max(t, g.told.When(now, g.arriving(first), g.arriving(cost)))
	}
	if g.begin.Full(more) {
		t = limit.AfterSettle
	}
	return max(t, g.trial.ready(now, first != nil))
}

// NotBefore implements limit.Forecaster. A probe that is out may end the pause at once, and an answer makes room for more in
// a slow beginning.
func (g *Stack) NotBefore(now mono.Time, n int, ahead, cost limit.Cost) mono.Time {
	now = max(now, g.last)
	t := now
	if g.under != nil {
		t = max(t, limit.NotBefore(g.under, now, n, ahead, cost))
	}
	switch {
	case g.calm:
		return t
	case g.closed:
		return limit.Never
	case g.told != nil:
		t = max(t, g.told.NotBefore(now, n, *g.arriving(&ahead), *g.arriving(&cost)))
	}
	return max(t, g.pause.notBefore(now))
}

// Explain implements limit.Explainer. Beside the names of the configured limits there are "pause" for what the server asked
// for, "told" for what it says is left, "trial" for the answer to the first request, and "beginning" while there is a slow one.
func (g *Stack) Explain(now mono.Time, cost limit.Cost) (mono.Time, limit.Bound) {
	now = max(now, g.last)
	at := g.Ready(now, cost)
	if g.under != nil {
		if under, b := limit.Explain(g.under, now, cost); under == at {
			return at, b
		}
	}
	switch {
	case g.closed || g.pause.ready(now) == at:
		return at, limit.Bound{Name: "pause"}
	case g.told != nil && g.told.Ready(now, *g.arriving(&cost)) == at:
		return at, limit.Bound{Name: "told"}
	case g.trial.on() && g.trial.ready(now, false) == at:
		return at, limit.Bound{Name: "trial"}
	}
	return at, limit.Bound{Name: "beginning"}
}

// arriving is what of a cost is compared with what the server says is left.
func (g *Stack) arriving(cost *limit.Cost) *limit.Cost {
	if !g.later || cost == nil {
		return cost
	}
	arrives := limit.Arriving(g.own, *cost)
	return &arrives
}

// Admit implements limit.Limiter.
func (g *Stack) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	g.last = max(now, g.last)
	g.sent++
	lease, r := g.book.Take()
	r.at, r.number, r.cost = g.last, g.sent, *g.arriving(&cost)
	if g.under != nil {
		r.under = g.under.Admit(now, cost)
	}
	if !g.calm {
		g.pause.admit(g.last, g.sent)
		g.begin.Admit()
		g.trial.admit(g.last, g.sent)
		if g.told != nil {
			g.told.Sent(g.last, &r.cost)
		}
	}
	return lease
}

// Settle implements limit.Limiter. The configured limiter hears all that the outcome says.
func (g *Stack) Settle(now mono.Time, lease limit.Lease, o limit.Outcome) {
	r := g.book.Return(lease)
	g.last = max(now, g.last)
	if g.under != nil {
		g.under.Settle(now, r.under, o)
	}
	if g.calm && o.Known == 0 && o.RetryAfter <= 0 && o.Result != limit.Limited {
		g.pause.served(g.last, r.number, o.Result)
		return
	}
	g.refilled(&o)
	g.hear(r, &o)
	g.trial.settle(r.number, o.Result)
	switch {
	case o.Elsewhere:
		g.pause.unsure(g.last, r.number)
	case o.RetryAfter > 0 || o.Result == limit.Limited:
		if g.pause.refused(g.last, r.number, g.sent, o.RetryAfter, o.Sure) && (g.pause.slow || g.pause.again && g.pause.strikes > 1) {
			g.begin.Start(g.sent)
		}
	default:
		g.pause.served(g.last, r.number, o.Result)
	}
	g.begin.Settle(r.number, o.RetryAfter <= 0 && (o.Result == limit.Accepted || o.Result == limit.Failed))
	g.compose()
}

// Refills implements limit.Refilling, if the configured Limiter does, or that beside it.
func (g *Stack) Refills(o limit.Outcome) uint8 { return limit.Refills(g.counts, o) }

// refilled takes out of an answer what is not to be waited for.
func (g *Stack) refilled(o *limit.Outcome) {
	if resets(o) {
		o.Refilled(g.Refills(*o))
	}
}

// compose finds out whether there is anything to heed.
func (g *Stack) compose() {
	g.calm = !g.closed && g.told == nil && !g.begin.On() && !g.trial.on() && g.pause.over(g.last)
}

// hear takes in what an answer says is left.
func (g *Stack) hear(r *request, o *limit.Outcome) {
	if g.told == nil {
		if !resets(o) {
			return
		}
		g.tell()
		g.told.Sent(r.at, &r.cost)
	}
	g.told.Ended(g.last, r.at, &r.cost, o)
}

// resets tells whether an answer says when there will be more of something.
func resets(o *limit.Outcome) bool {
	for u := range o.Reset {
		if o.Known>>u&1 == 1 && o.Reset[u] > 0 {
			return true
		}
	}
	return false
}

// tell begins to keep what the server says is left: what is in flight may not be in its words.
func (g *Stack) tell() {
	h, err := fairshare.NewHints(fairshare.HintsConfig{Longest: g.pause.most, Capacity: g.capacity, Own: g.counts, Later: g.own == nil})
	if err != nil {
		panic("stack: " + err.Error()) // New and Contain have checked it
	}
	for r := range g.book.All() {
		h.Sent(r.at, &r.cost)
	}
	g.told = h
}

// Contain takes in what the server's buckets hold, in an answer read just now that says o besides: then a reset is when
// they will be full again. Units that are 0 stay as they are; a capacity that makes no sense is not heard.
func (g *Stack) Contain(now mono.Time, capacity limit.Cost, o *limit.Outcome) {
	g.last = max(now, g.last)
	for u, n := range capacity {
		if n == 0 { // an answer need not speak of all
			capacity[u] = g.capacity[u]
		}
	}
	if capacity == g.capacity {
		return
	}
	if _, err := fairshare.NewHints(fairshare.HintsConfig{Capacity: capacity}); err != nil {
		return
	}
	g.capacity = capacity
	said := limit.Outcome{Result: limit.Accepted, Known: o.Known, Sure: o.Sure, Remaining: o.Remaining, Reset: o.Reset}
	g.refilled(&said)
	if resets(&said) || g.told != nil {
		g.tell()
		none := limit.Cost{}
		g.told.Sent(g.last, &none)
		g.told.Ended(g.last, g.last, &none, &said)
		g.compose()
	}
}

// Close keeps everybody away until Open, for good as far as anybody can tell: Ready is limit.Never. It is for a pause that
// nobody is to stand in line for.
func (g *Stack) Close() { g.closed, g.calm = true, false }

// Open ends what Close began.
func (g *Stack) Open() {
	g.closed = false
	g.compose()
}

// Begin begins slowly, as after a pause where nobody knows a limit: one request first, and each that is answered makes room
// for one more than before it.
func (g *Stack) Begin(now mono.Time) {
	g.last = max(now, g.last)
	g.begin.Start(g.sent)
	g.calm = false
}
