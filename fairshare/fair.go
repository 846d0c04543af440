package fairshare

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Fair shares a quota with any number of strangers that follow the same law. It learns only from
// the answers to its own requests: served or limited, how much remains, and when there will be
// more. The fair share is the law's only equilibrium.
//
// In a token bucket the level rests at a small reserve. In a fixed window it falls evenly to almost
// nothing. In a rolling window a little is left. Where answers are only served or limited, a window
// is used up just before its end, and a bucket is found empty now and then.
//
// One process is one sharer of a Weight, with any number of requests in flight. A request counts by
// its cost in the Unit, and as 1 if the Unit is limit.Requests. A request of cost 0 passes freely.
//
// Fair reads these fields of an outcome: Result, RTT and RetryAfter; and for its Unit Actual,
// Remaining, Reset and Known. RetryAfter is a lower bound, within MaxWait. It is ignored if it is a
// Reset that Refills names. A server's false answers can make Fair slow, up to MaxWait. They cannot
// make it hammer.
//
// Ready draws no random numbers and never returns limit.AfterSettle. Not safe for concurrent use.
type Fair struct {
	config  FairConfig
	rate    float64 // units of cost that the quota gives in a second
	level   level   // the law for this kind of quota
	bucket  bucketLevel
	window  windowLevel
	rolling rollingLevel

	finder  finder
	silence silence
	unknown *silentUnknown // the law for an unknown quota; nil: the quota is known. See Auto

	account
	belief
	entitled entitled
	noise    noise

	last  mono.Time
	seen  sighting // the present answer: a field, since a local variable would be allocated
	heard uint64   // the newest request whose answer was used
	stale uint64   // answers to requests up to this one describe the time before a refusal
	empty int      // how many answers in a row were limited or left nothing
	book  limit.Book[sent]
}

// sighting is the state of the quota by the answer to one request.
type sighting struct {
	sent
	mid     mono.Time // halfway between send and answer: the best guess at the request's arrival
	left    float64   // what remained, plus half a request, since servers round down
	none    bool      // nothing remained
	limited bool
	// when there will be more, by the answer; for a window, later, by all answers; mono.Min: not
	// known
	ends   mono.Time
	window int // the number of the window in which it arrived
}

// NewFair checks the configuration and returns a Fair that has sent nothing.
func NewFair(c FairConfig) (*Fair, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	f := &Fair{config: c, rate: float64(c.Limit) / c.MeanCost / c.Window.Seconds(), last: mono.Min}
	f.shape()
	f.account = newAccount(c.MaxWait, c.MeanCost)
	f.n = f.clamp(assumedSharers / c.Weight)
	if c.Start > 0 {
		f.n, f.known = f.clamp(f.tokens(c.Start)), true
	}
	f.entitled.sharers = c.Sharers / c.Weight
	f.step = f.span(f.n)
	f.planned = c.Start
	return f, nil
}

// shape makes the levels for the configured quota.
func (f *Fair) shape() {
	c := &f.config
	units := float64(c.Limit) / c.MeanCost
	f.bucket = bucketLevel{capacity: float64(c.Capacity) / c.MeanCost}
	f.window = newWindowLevel(units, c.Window)
	f.rolling = newRollingLevel(units, c.Window)
	switch c.Kind {
	case FixedWindow:
		f.level = &f.window
	case RollingWindow:
		f.level = &f.rolling
	default:
		f.level = &f.bucket
	}
}

// tokens returns the number of units that flow in during d.
func (f *Fair) tokens(d time.Duration) float64 { return d.Seconds() * f.rate }

// span returns the time in which these units flow in, at most MaxWait. It is negative if units is.
func (f *Fair) span(units float64) time.Duration {
	if units < 0 {
		return -min(Seconds(-units/f.rate), f.config.MaxWait)
	}
	return min(Seconds(units/f.rate), f.config.MaxWait)
}

// counts returns the counted cost of a request. Where the Unit is requests, each counts as 1.
func (f *Fair) counts(cost *limit.Cost) float64 {
	if f.config.Unit == limit.Requests {
		return float64(min(max(cost[limit.Requests], 0), 1))
	}
	return float64(min(max(cost[f.config.Unit], 0), limit.MaxCost))
}

// Resume answers limit.Replay. Strangers count, too, and answers report it, so it does nothing.
func (f *Fair) Resume(mono.Time, []limit.Past) {}

// Refills returns the units whose Reset in an outcome is the time of a full bucket: bit u for Unit u.
// More is free long before. Call it after Settle and State of the answer. It changes nothing.
//
// In a known bucket each reset is such a time. Where the kind is unknown, it is so if the reset is
// as far away as a bucket takes to fill from the remainder. A window that is used up at its very
// beginning has such a reset, too, but only once.
func (f *Fair) Refills(o *limit.Outcome) (units uint8) {
	u := f.config.Unit
	if f.unknown != nil || f.level != &f.bucket || o.Known>>u&1 == 0 || o.Reset[u] <= 0 {
		return 0
	}
	k := &f.finder
	if f.config.Kind != TokenBucket && k.stated != TokenBucket && k.votes > -kindVotes {
		left := 0.0
		if o.Result != limit.Limited {
			left = float64(min(max(o.Remaining[u], 0), limit.MaxCost)) / f.config.MeanCost
		}
		reset := (o.Reset[u] + o.RTT/2).Seconds()
		if math.Abs(reset-(f.bucket.capacity-left)/f.rate) > f.sameReset() {
			return 0
		}
	}
	return 1 << u
}

// Ready implements limit.Limiter. It never returns limit.AfterSettle: a missing answer delays the
// next request, but not for ever.
func (f *Fair) Ready(now mono.Time, cost limit.Cost) mono.Time {
	now = max(now, f.last)
	c := f.counts(&cost)
	if c == 0 {
		return now
	}
	return max(now, f.due(c, f.book.Len(), f.span(f.n)))
}

// Admit implements limit.Limiter.
func (f *Fair) Admit(s *limit.Sent) {
	f.last = max(s.At, f.last)
	a := sent{at: f.last}
	if c := f.counts(&s.Cost); c > 0 {
		a = f.pay(f.last, c)
		a.alone = f.book.Len() == 0
	}
	f.book.Open(s.Number, a)
}

// Settle implements limit.Limiter.
func (f *Fair) Settle(now mono.Time, r *limit.Sent, o *limit.Outcome) {
	a := f.book.Close(r.Number)
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
	// Answers count in the order of their requests. The answer to an earlier request knows less
	// than the answer to a later one.
	if a.seq <= f.heard || a.seq <= f.stale || o.Elsewhere {
		return
	}
	says := o.Known&(1<<f.config.Unit) != 0
	s := &f.seen
	*s = f.sight(now, a, o, says)
	if says && !s.limited {
		f.silence.speaks(f)
	}
	if says || s.limited && f.silence.said {
		f.find(s)
	}
	wait := o.RetryAfter
	if s.limited && wait > 0 {
		heeded := *o
		heeded.Refilled(f.Refills(o))
		wait = heeded.RetryAfter
	}
	switch {
	case f.unknown != nil:
		if s.limited || o.Result == limit.Accepted || o.Result == limit.Failed {
			f.heard = a.seq
			f.unknown.answer(f, now, s, wait)
		}
	case f.silence.holds(f, s, says, o.Result, wait):
		f.heard = a.seq
		f.silence.answer(f, now, s, wait)
	case s.limited:
		f.refused(now, s, wait)
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
	remaining := int64(0) // after a refusal there may be enough left for cheaper requests
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

// answered learns from an answer that was served, and plans the next request.
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

// refused learns from a refusal, and plans the next request. Answers to requests that were sent
// before the refusal arrived are then ignored.
func (f *Fair) refused(now mono.Time, s *sighting, retryAfter time.Duration) {
	f.empty++
	f.level.look(f, s)
	f.entitled.heed(s, 0)
	f.level.refused(f, now, s, retryAfter)
	f.stale = f.seq
}

// Sleep implements Sleeper: the planned time between two requests that cost a unit each.
func (f *Fair) Sleep() time.Duration { return f.planned }

// Seconds returns a number of seconds as a duration. It rounds up, since a wait before a request
// must not be too short. The result is at least 0 and at most the longest duration.
func Seconds(s float64) time.Duration {
	d := math.Ceil(s * 1e9)
	if d >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(max(d, 0))
}
