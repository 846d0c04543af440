package throttle

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/blind"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Fair shares a quota with any number of strangers who run the same law, by what the answers to its own requests say: served or
// limited, how much remains, and when there will be more. The fair share is the law's only equilibrium. In a token bucket the level
// rests at a small reserve, in a fixed window it goes down evenly to almost nothing, in a rolling one a little is left. Where only served
// or limited is told, a window is used up just before it ends, and a bucket now and then.
//
// One process is one sharer, of a Weight, however many requests it has in flight. A request counts by its cost in one Unit, as one if
// that is limit.Requests, and passes freely if it is nothing.
//
// It reads Result, Actual, Remaining, Reset and their Known bit of its Unit, RetryAfter (a lower bound, within MaxWait) and RTT of
// the outcomes. A server that lies can make it slow, up to MaxWait, but not make it hammer.
//
// Ready never draws random numbers and never says limit.AfterSettle. Not safe for concurrent use.
type Fair struct {
	config  FairConfig
	rate    float64 // units of cost that the quota gives in a second
	level   level   // of the kind of quota it is
	bucket  bucketLevel
	window  windowLevel
	rolling rollingLevel

	finder  finder
	silence silence

	account
	belief
	entitled entitled
	noise    noise

	last  mono.Time
	seen  sighting // by the answer at hand: kept here, or each would be allocated
	heard uint64   // newest answer heeded
	stale uint64   // answers to requests up to this one came of what was before a refusal
	empty int      // answers in a row that were limited or left nothing
	book  limit.Book[sent]
}

// sighting is what the answer to a request told of the quota.
type sighting struct {
	sent
	mid     mono.Time // between send and answer: when it arrived, as well as can be told
	left    float64   // what remained, and half a request since that was rounded down
	none    bool      // nothing remained
	limited bool
	ends    mono.Time // when there will be more, as it was told; then, of a window, as it is known. mono.Min: not at all
	window  int       // number of the window it arrived in
}

// NewFair checks the configuration and returns a Fair that has sent nothing.
func NewFair(c FairConfig) (*Fair, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	f := &Fair{config: c, rate: float64(c.Limit) / c.MeanCost / c.Window.Seconds(), last: mono.Min}
	f.bucket.capacity = float64(c.Capacity) / c.MeanCost
	f.window = newWindowLevel(float64(c.Limit)/c.MeanCost, c.Window)
	f.rolling = newRollingLevel(float64(c.Limit)/c.MeanCost, c.Window)
	switch c.Kind {
	case FixedWindow:
		f.level = &f.window
	case RollingWindow:
		f.level = &f.rolling
	default:
		f.level = &f.bucket
	}
	f.account = newAccount(c.MaxWait, c.MeanCost)
	f.n = f.clamp(blind.Shares / c.Weight)
	if c.Start > 0 {
		f.n, f.known = f.clamp(f.tokens(c.Start)), true
	}
	f.entitled.sharers = c.Sharers / c.Weight
	f.step = f.span(f.n)
	f.planned = c.Start
	return f, nil
}

// tokens is how many units flow in meanwhile.
func (f *Fair) tokens(d time.Duration) float64 { return d.Seconds() * f.rate }

// span is the time in which so many units flow in, at most MaxWait; negative as they are.
func (f *Fair) span(units float64) time.Duration {
	if units < 0 {
		return -min(Seconds(-units/f.rate), f.config.MaxWait)
	}
	return min(Seconds(units/f.rate), f.config.MaxWait)
}

// counts is what a request costs. Of requests, each counts as one.
func (f *Fair) counts(cost *limit.Cost) float64 {
	if f.config.Unit == limit.Requests {
		return float64(min(max(cost[limit.Requests], 0), 1))
	}
	return float64(min(max(cost[f.config.Unit], 0), limit.MaxCost))
}

// Senses implements limit.Sensing: where a server says nothing else, refusals are all that there is to go by.
func (f *Fair) Senses() bool { return true }

// Ready implements limit.Limiter. It never says limit.AfterSettle: an answer that does not come holds the next request back, but not for
// ever.
func (f *Fair) Ready(now mono.Time, cost limit.Cost) mono.Time {
	now = max(now, f.last)
	c := f.counts(&cost)
	if c == 0 {
		return now
	}
	return max(now, f.due(c, f.book.Len(), f.span(f.n)))
}

// Admit implements limit.Limiter.
func (f *Fair) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	f.last = max(now, f.last)
	c := f.counts(&cost)
	if c == 0 {
		return f.book.Open(sent{at: f.last})
	}
	return f.book.Open(f.pay(f.last, c))
}

// Settle implements limit.Limiter.
func (f *Fair) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	a := f.book.Close(l)
	now = max(now, f.last)
	f.last = now
	if a.seq == 0 {
		return
	}
	switch {
	case o.Result == limit.Unsent:
		f.correct(&a, 0)
		return
	case o.Metered && f.config.Unit != limit.Requests:
		f.correct(&a, f.counts(&o.Actual))
	}
	// In the order in which they were sent: of what was sent before, this one knows more.
	if a.seq <= f.heard || a.seq <= f.stale || o.Elsewhere {
		return
	}
	says := o.Known&(1<<f.config.Unit) != 0
	s := &f.seen
	*s = f.sight(now, a, &o, says)
	if says {
		f.find(s)
	}
	switch {
	case f.silence.holds(f, s, says, o.Result):
		f.heard = a.seq
		f.silence.answer(f, now, s, o.RetryAfter)
	case s.limited:
		f.heard = a.seq
		f.refused(now, s, o.RetryAfter)
	case says && (o.Result == limit.Accepted || o.Result == limit.Failed):
		f.heard = a.seq
		f.answered(now, s)
	}
}

// sight reads an answer.
func (f *Fair) sight(now mono.Time, a sent, o *limit.Outcome, says bool) sighting {
	rtt := now.Sub(a.at)
	if o.RTT > 0 {
		rtt = min(rtt, o.RTT)
	}
	s := sighting{sent: a, mid: now.Add(-rtt / 2), limited: o.Result == limit.Limited, ends: mono.Min}
	remaining := int64(0) // of one that was refused there may be some left, for cheaper ones
	if says && !s.limited {
		remaining = min(max(o.Remaining[f.config.Unit], 0), limit.MaxCost)
	}
	s.none = remaining == 0
	s.left = (float64(remaining) + 0.5) / f.config.MeanCost
	switch reset := o.Reset[f.config.Unit]; {
	case says && reset > 0:
		s.ends = now.Add(min(reset, endsMost))
	case s.limited && o.RetryAfter > 0:
		s.ends = now.Add(min(o.RetryAfter, endsMost))
	}
	return s
}

const endsMost = math.MaxInt64 / 4

// answered learns from an answer that was served, and plans.
func (f *Fair) answered(now mono.Time, s *sighting) {
	if s.none {
		f.empty++
	} else {
		f.empty = 0
	}
	f.level.look(f, s)
	f.entitled.heed(s, s.cost/f.config.MeanCost)
	f.learn(s)
	f.plan(now, s)
}

// refused learns from a refusal, and plans. What was sent before it was heard tells nothing more.
func (f *Fair) refused(now mono.Time, s *sighting, retryAfter time.Duration) {
	f.empty++
	f.level.look(f, s)
	f.entitled.heed(s, 0)
	f.level.refused(f, now, s, retryAfter)
	f.stale = f.seq
}

// Sleep implements Sleeper: the time between two requests that cost a unit each, as planned.
func (f *Fair) Sleep() time.Duration { return f.planned }
