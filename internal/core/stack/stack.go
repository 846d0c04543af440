package stack

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// Config describes a Stack. The zero value has no limit of its own, learns from answers, and begins
// fast.
type Config struct {
	// Limiter is the server's rule. The Stack owns it from now on. If nil, there is none.
	Limiter limit.Limiter
	// Beside, where Limiter is nil, is the limiter of another Stack. All requests of this one count
	// in its limit. The server's hints are compared with it. If nil, there is none.
	Beside limit.Limiter
	// InFlight is the most requests in flight. If zero, there is no bound.
	InFlight int
	// Adapt, if not nil, learns a bound on requests in flight that the server does not state: see
	// limit.Adaptive.
	Adapt *limit.AdaptiveConfig
	// Gap is the least time between two sends. If zero, none.
	Gap time.Duration
	// Ordered means that requests must arrive in the order in which they were sent, as nonces must.
	// Then a limit.Sequence keeps the Gap, and ends at the first proof that the gap is too small.
	// Without a Gap, LearnGap and InFlight, one request is in flight at a time.
	Ordered bool
	// LearnGap makes a limit.Sequence learn the gap. Not with Gap or InFlight.
	LearnGap bool
	// Late is how long a request of unknown outcome still counts as in flight for InFlight and
	// LearnGap. If zero, 5 s; negative: not at all.
	Late time.Duration
	// Slow makes the load begin slowly after a pause: one request first, and each that is answered
	// makes room for one more. It is for an unknown limit. SlowAgain does so from the second
	// refusal in a row on.
	Slow, SlowAgain bool
	// First is for how long the first requests go few at a time, and more as they are served. So a limit that is
	// wrong costs few refusals, and not a whole window of them. If zero, there is no such time.
	First time.Duration
	// Trial makes the first request go alone until it is answered, or for this time. The next one
	// also goes alone if the first was refused. If zero, there is no trial.
	Trial time.Duration
	// Pause is the pause after the n-th refusal in a row without a time. If refusals name a time,
	// twenty in a row are believed. From the 21st on the pause is at least that of the first,
	// second and so on of those without a time. The zero value is ready. With a negative Base there
	// is no pause.
	Pause backoff.Policy
	// MaxPause is the longest pause for one answer, whatever time it asks for. Then one request
	// goes. If that is refused, the next one goes after twice that time, and so on, until the
	// server's own time has come. If zero, 1 h. If negative, or where the Outcome is Sure, no
	// request goes before the server's time.
	MaxPause time.Duration
	// Use is the part of the limits that is used, and Ramp the time in which the load rises to it: see
	// limit.Headroom. Use also holds for what the server says is left. If zero, all, and at once.
	Use  float64
	Ramp time.Duration
	// Rand jitters Pause. It belongs to the driver. If nil, there is no jitter.
	Rand *rand.Rand
}

const (
	defaultMaxPause = time.Hour
	forEver         = 1 << 62 // 146 years
)

// Stack is all limits of one partition as one. New makes it. Not safe for concurrent use. Ready,
// Admit and Settle do not allocate, except at the first hint.
type Stack struct {
	own      limit.Limiter
	counts   limit.Limiter   // the limit for comparison with answers: own, or Beside
	later    bool            // the server counts a part of a cost only later: see limit.Arriving
	fitted   *limit.Fitted   // over own; nil: no limit is configured
	under    limit.Limiter   // fitted and the bounds on requests in flight; nil: none
	foresees bool            // limit.ReadyAfter is known for under
	made     []limit.Limiter // under, for Unwrap
	room     *limit.Headroom // under, if it uses a part or has a ramp; nil: it does not
	use      float64         // the part of what is left that is used
	ramp     time.Duration   // as configured
	last     mono.Time
	sent     uint64                 // the Number of the latest request
	book     limit.Book[limit.Sent] // with the arriving costs
	calm     bool                   // only under bounds requests now
	still    bool                   // and no plain answer changes more than under
	hollow   bool                   // under has no part, and may get some (limit.Varying)
	silent   bool                   // still, and no under has a part: see Silent
	skipped  iter.Seq[*limit.Sent]  // nil: the driver skips none
	again    func()
	waiting  func() (n int, free float64)
	note     func(kind, text string)

	closed   bool
	rests    mono.Time // no request goes before, as a user wants; mono.Min: any time
	pause    pause
	begin    Beginning
	trial    trial
	told     *fairshare.Hints // nil: no answer had a hint
	heeded   *limit.Outcome   // the present answer without the resets of full buckets; nil: none had one
	capacity limit.Cost
}

// New checks the configuration and returns a Stack that has sent nothing. The error names the field
// and the value.
func New(c Config) (*Stack, error) {
	if err := c.Pause.Check(); err != nil {
		return nil, fmt.Errorf("Pause: %w", err)
	}
	if err := (&limit.HeadroomConfig{Use: c.Use, Ramp: c.Ramp}).Check(); err != nil {
		return nil, err
	}
	if c.Trial < 0 {
		return nil, fmt.Errorf("a Trial of %v is negative", c.Trial)
	}
	if c.First < 0 {
		return nil, fmt.Errorf("a First of %v is negative", c.First)
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
	g := &Stack{own: c.Limiter, counts: c.Limiter, later: arrivesLater(c.Limiter), fitted: fitted, last: mono.Min,
		rests: mono.Min, pause: newPause(c), trial: trial{long: c.Trial}}
	if c.Limiter == nil {
		g.counts = c.Beside
	}
	if c.First > 0 {
		g.begin.First(c.First)
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
	g.hollow = g.isHollow()
	if err := g.SetUse(mono.Min, c.Use, c.Ramp); err != nil {
		return nil, err
	}
	g.compose()
	return g, nil
}

// rules returns the configured limit and the bounds on requests in flight.
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
		if rules = append(rules, l); c.InFlight == 0 {
			rules[len(rules)-1] = limit.Named("nonce order", l) // no user set a bound
		}
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

// isHollow reports whether the configured limiter is all that is there, and has no part now.
func (g *Stack) isHollow() bool {
	return g.fitted != nil && g.under == limit.Limiter(g.fitted) && len(limit.Parts(g.own)) == 0
}

// Silent lets a driver skip the Stack while *on holds: see scheduler.Silent. A Stack without a limit
// is silent, unless it pauses, tests or begins slowly, has hints, or was refused last. So is one whose
// limit has no part at the moment.
func (g *Stack) Silent(skipped iter.Seq[*limit.Sent]) (on *bool) {
	g.skipped = skipped
	return &g.silent
}

// catchUp gets the requests in flight that the driver skipped. It comes before all that reads them,
// or ends the silence.
func (g *Stack) catchUp() {
	if !g.silent || g.skipped == nil {
		return
	}
	for s := range g.skipped {
		g.keep(s, s.At)
		g.sent = max(g.sent, s.Number)
		if g.under != nil {
			g.under.Admit(s)
		}
	}
}

// keep records a request that went at the instant at.
func (g *Stack) keep(s *limit.Sent, at mono.Time) *limit.Sent {
	r := g.book.Take(s.Number)
	r.At, r.Number, r.Cost = at, s.Number, *g.arriving(&s.Cost)
	return r
}

// InFlight ranges over the unsettled requests, in no order. The Stack must not be used meanwhile.
// It is for a Stack without a Limiter, which counts all of a cost.
func (g *Stack) InFlight() iter.Seq[*limit.Sent] {
	g.catchUp()
	return g.book.All()
}

// Unwrap returns the configured limit and the bounds on requests in flight.
func (g *Stack) Unwrap() []limit.Limiter { return g.made }

// Misfits returns the configured limits that proved wrong.
func (g *Stack) Misfits() []limit.Misfit {
	if g.fitted == nil {
		return nil
	}
	return g.fitted.Misfits()
}

// Learned counts possible changes of the result of Lessons.
func (g *Stack) Learned() uint64 {
	if g.fitted == nil {
		return 0
	}
	return g.fitted.Learned()
}

// Lessons returns the lessons of refusals within configured limits.
func (g *Stack) Lessons() []limit.Lesson {
	if g.fitted == nil {
		return nil
	}
	return g.fitted.Lessons()
}

// Follow updates the Stack after the configured Limiter got other parts (limit.Varying).
func (g *Stack) Follow(now mono.Time) {
	if g.fitted == nil {
		return
	}
	g.last = max(now, g.last)
	g.fitted.Follow(g.last)
	if g.room != nil {
		g.room.Follow(g.last)
	}
	g.catchUp() // parts that came count what is in flight
	g.hollow = g.isHollow()
	g.later = arrivesLater(g.own)
	if g.again != nil {
		ability.Supply(g.own, g.again, g.waiting, g.note)
	}
	g.compose()
}

// Supply answers ability.Supply, for the configured limit.
func (g *Stack) Supply(again func(), waiting func() (n int, free float64), note func(kind, text string)) {
	g.again, g.waiting, g.note = again, waiting, note
	ability.Supply(g.own, again, waiting, note)
}

// arrivesLater reports whether the server counts a part of a cost only later.
func arrivesLater(l limit.Limiter) bool {
	all := limit.Cost{}
	for u := range all {
		all[u] = limit.MaxCost
	}
	return limit.Arriving(l, all) != all
}

// Own returns the configured Limiter, nil if there is none. It serves for changes (SetLimit,
// SetWindow), and for the question which cost could ever fit.
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
	return max(t, g.answersLet(now, nil, &cost, 1-g.use))
}

// ReadyAfter implements limit.Forecaster. Over a limiter without forecasts no ticket may pass
// another.
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
	return max(t, g.answersLet(now, &first, &cost, 1-g.use))
}

// answersLet returns when a cost may go by the answers so far, now, or after first if that is not nil.
// It leaves a part free of what is left.
func (g *Stack) answersLet(now mono.Time, first, cost *limit.Cost, free float64) mono.Time {
	if g.closed {
		return limit.Never
	}
	t := max(g.pause.ready(now), g.rests)
	more := 0
	if first != nil {
		more = 1
		if g.pause.probes(now) {
			t = max(g.pause.until, g.rests)
		}
	}
	if g.told != nil {
		t = max(t, g.told.When(now, g.arriving(first), g.arriving(cost), free))
	}
	if g.begin.Full(more) {
		if end, ok := g.begin.End(); ok {
			t = max(t, end)
		} else {
			t = limit.AfterSettle
		}
	}
	return max(t, g.trial.ready(now, first != nil))
}

// NotBefore implements limit.Forecaster. A probe in flight may end the pause at once, and an answer
// makes room for more in a slow beginning.
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
	return max(t, g.pause.notBefore(now), g.rests)
}

// Explain is limit.Explain with five more names: "pause" is a pause, "rest" one by Rest, and "hint" what answers say
// is left. "trial" is the answer to the first request, and "beginning" a slow beginning.
func (g *Stack) Explain(now mono.Time, cost limit.Cost) (mono.Time, limit.Rule) {
	now = max(now, g.last)
	at, rule := g.Ready(now, cost), limit.Rule{Name: "limit"}
	if g.under != nil {
		var under mono.Time
		if under, rule = limit.Explain(g.under, now, cost); under == at {
			return at, rule
		}
	}
	switch {
	case g.rests == at:
		return at, limit.Rule{Name: "rest"}
	case g.closed || g.pause.ready(now) == at:
		return at, limit.Rule{Name: "pause"}
	case g.told != nil && g.told.ReadyLeaving(now, nil, *g.arriving(&cost), 1-g.use) == at:
		return at, limit.Rule{Name: "hint"}
	case g.trial.on() && g.trial.ready(now, false) == at:
		return at, limit.Rule{Name: "trial"}
	case g.begin.Full(0):
		return at, limit.Rule{Name: "beginning"}
	}
	return at, rule // the limiter has a clock of its own, as over a store, and said something else meanwhile
}

// arriving returns the part of a cost that is compared with the server's hints.
func (g *Stack) arriving(cost *limit.Cost) *limit.Cost {
	if !g.later || cost == nil {
		return cost
	}
	arrives := limit.Arriving(g.own, *cost)
	return &arrives
}

// Admit implements limit.Limiter.
func (g *Stack) Admit(s *limit.Sent) {
	g.last = max(s.At, g.last)
	g.sent = s.Number
	r := g.keep(s, g.last)
	if g.under != nil {
		g.under.Admit(s)
	}
	if !g.calm {
		g.pause.admit(g.last, g.sent)
		g.begin.Admit(g.last)
		g.trial.admit(g.last, g.sent)
		if g.told != nil {
			g.told.Sent(g.last, &r.Cost)
		}
	}
}

// Settle implements limit.Limiter. The configured limiter reads all of the outcome.
func (g *Stack) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	plain := o.Plain()
	if !plain {
		g.catchUp()
	}
	r := g.book.Return(s.Number)
	g.last = max(now, g.last)
	if g.under != nil {
		g.under.Settle(now, s, o)
	}
	if g.still && plain {
		return
	}
	o = g.heeds(o)
	g.hear(r, o)
	g.trial.settle(r.Number, o.Result)
	switch {
	case o.Elsewhere:
		g.pause.unsure(g.last, r.Number)
	case o.RetryAfter > 0 || o.Result == limit.Limited:
		if g.pause.refused(g.last, r.Number, g.sent, o.RetryAfter, o.Sure) &&
			(g.pause.slow || g.pause.again && g.pause.strikes > 1) {
			g.begin.Start(g.sent)
		}
	default:
		g.pause.served(g.last, r.Number, o.Result)
	}
	g.begin.Settle(g.last, r.Number, o.RetryAfter <= 0 && (o.Result == limit.Accepted || o.Result == limit.Failed))
	g.compose()
}

// Refills answers ability.Refills, if the configured Limiter or Beside does.
func (g *Stack) Refills(o *limit.Outcome) uint8 { return ability.Refills(g.counts, o) }

// heeds returns an outcome without the resets for which no request has to wait.
func (g *Stack) heeds(o *limit.Outcome) *limit.Outcome {
	if o.Resets() == 0 {
		return o
	}
	units := g.Refills(o)
	if units == 0 {
		return o
	}
	if g.heeded == nil {
		g.heeded = new(limit.Outcome)
	}
	*g.heeded = *o
	g.heeded.Refilled(units)
	return g.heeded
}

// compose computes calm, still and silent.
func (g *Stack) compose() {
	g.calm = !g.closed && g.rests <= g.last && g.told == nil && !g.begin.On() && !g.trial.on() && g.pause.over(g.last)
	g.still = g.calm && g.pause.forgotten()
	g.silent = g.still && (g.under == nil || g.hollow)
}

// hear reads the hints of an answer.
func (g *Stack) hear(r *limit.Sent, o *limit.Outcome) {
	if g.told == nil {
		if o.Resets() == 0 {
			return
		}
		g.tell()
		g.told.Sent(r.At, &r.Cost)
	}
	g.told.Ended(g.last, r.At, &r.Cost, o)
}

// tell begins to keep hints. A server's hints may not include the requests in flight.
func (g *Stack) tell() {
	if err := g.newHints(); err != nil {
		panic("stack: " + err.Error()) // New and Contain have checked it
	}
	h := g.told
	for r := range g.book.All() {
		h.Sent(r.At, &r.Cost)
	}
}

func (g *Stack) newHints() (err error) {
	g.told, err = fairshare.NewHints(fairshare.HintsConfig{Longest: g.pause.most, Capacity: g.capacity, Own: g.counts,
		Later: g.own == nil})
	return err
}

// Contain sets the capacities of the server's buckets, from an answer read just now with the hints
// o. A reset is then the time when a bucket is full again. Units that are 0 stay as they are. An
// impossible capacity is ignored.
func (g *Stack) Contain(now mono.Time, capacity limit.Cost, o *limit.Outcome) {
	g.last = max(now, g.last)
	for u, n := range capacity {
		if n == 0 { // an answer need not have all units
			capacity[u] = g.capacity[u]
		}
	}
	if capacity == g.capacity {
		return
	}
	if _, err := fairshare.NewHints(fairshare.HintsConfig{Capacity: capacity}); err != nil {
		return
	}
	g.catchUp()
	g.capacity = capacity
	said := limit.Outcome{Result: limit.Accepted, Known: o.Known, Sure: o.Sure, Remaining: o.Remaining, Reset: o.Reset}
	heeded := g.heeds(&said)
	if heeded.Resets() != 0 || g.told != nil {
		g.tell()
		none := limit.Cost{}
		g.told.Sent(g.last, &none)
		g.told.Ended(g.last, g.last, &none, heeded)
		g.compose()
	}
}

// Close stops all requests until Open, for an unlimited time: Ready is limit.Never. It is for a
// pause that is too long to wait in line for.
func (g *Stack) Close() {
	g.catchUp()
	g.closed = true
	g.compose()
}

// Open ends the effect of Close.
func (g *Stack) Open() {
	g.closed = false
	g.compose()
}

// Rest stops all requests until t, whatever answers say: a user wants it. It replaces an earlier
// Rest: limit.Never stops them until the next call, and mono.Min ends it. Pauses by answers go on beside it.
func (g *Stack) Rest(now, t mono.Time) {
	g.catchUp()
	g.last = max(now, g.last)
	g.rests = min(t, limit.AfterSettle) // Never would say that a cost is too large for all time
	g.compose()
}

// Rests returns the end of a Rest, limit.AfterSettle if it has none.
func (g *Stack) Rests(now mono.Time) (until mono.Time, on bool) {
	return g.rests, g.rests > max(now, g.last)
}

// Begin begins slowly, as after a pause with an unknown limit: one request first, and each that is
// answered makes room for one more.
func (g *Stack) Begin(now mono.Time) {
	g.catchUp()
	g.last = max(now, g.last)
	g.begin.Start(g.sent)
	g.compose()
}

// Banned is Begin, unless one request goes first already: an answer says that the server bans.
func (g *Stack) Banned(now mono.Time) {
	if g.begin.room != 1 {
		g.Begin(now)
	}
}
