package fleet

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Headers says what answers tell in addition to whether they are refusals. The zero value tells
// exactly what remains, and nothing else. What is told may be wrong in several of these ways at
// once; Report.Level is what truly remained.
type Headers struct {
	// Reset says how exactly answers tell, if at all, how long it is until there is more: until the
	// interval of a Calendar or Anchored quota is over, until a Bucket is full, or until the oldest
	// request that counts in a Rolling one no longer does. Other kinds do not tell.
	Reset Precision
	// RetryAfter says how exactly a refusal tells, if at all, how long it is until the request would
	// pass if nobody else asked. The same kinds have it as have a Reset; it works without Reset, and
	// is always true.
	RetryAfter Precision
	// Skew is by how much the clocks of clients may be wrong. Each process sees resets later by a time
	// of its own, drawn evenly from −Skew to Skew, as where a reset is an instant that is compared
	// with the client's clock. A reset in the past counts as 0.
	Skew time.Duration

	// Stale is how old what is told of the rest and the reset may be: a replica asks for them at
	// intervals of that length and tells the same in between. If zero, they are as of the request; if
	// longer than the run, as of the first request for ever.
	Stale time.Duration
	// Replicas is how many such replicas answer, at random; they ask one after another. If zero, 1.
	Replicas int
	// Factor is by what the remaining that is told is multiplied, if it is in another unit than the quota. If zero, 1.
	Factor float64
	// Noise is the standard deviation of a normal error of what remains, drawn anew for each answer.
	Noise float64
	// Rounded says that what remains is told rounded down to whole multiples of it. If zero, 1.
	Rounded int64
}

// Precision is how exactly a time is told.
type Precision uint8

const (
	Untold Precision = iota
	Exact
	WholeSeconds // rounded up
)

// told is what an answer says about the quota.
type told struct {
	limited           bool
	left              int64 // what truly remained when the request arrived
	remaining         int64 // what the answer says remains
	reset, retryAfter time.Duration
}

// view is what a replica knows about the quota.
type view struct {
	remaining int64
	more      mono.Time
}

// look has a replica ask what remains.
func (s *quotaServer) look(now mono.Time, replica int32) {
	n := s.remaining(now)
	s.replicas[replica] = view{n, s.more(now, n)}
}

// tell returns what the answer to a request of that cost says, after the server has decided about it.
func (s *quotaServer) tell(now mono.Time, cost int64, limited bool, rng *rand.Rand) told {
	h := &s.quota.Headers
	t := told{limited: limited, left: s.remaining(now)}
	v := view{remaining: t.left}
	if h.Stale > 0 {
		v = s.replicas[rng.IntN(len(s.replicas))]
	} else if h.Reset != Untold {
		v.more = s.more(now, t.left)
	}
	t.remaining = h.misstate(v.remaining, rng)
	if h.Reset != Untold && !s.quota.Silent {
		t.reset = h.Reset.of(max(v.more.Sub(now), 0))
	}
	if h.RetryAfter != Untold && limited {
		t.retryAfter = h.RetryAfter.of(s.ready(now, cost).Sub(now))
	}
	return t
}

// misstate returns the remaining that is told if n remains. It draws no random number for headers without noise.
func (h *Headers) misstate(n int64, rng *rand.Rand) int64 {
	if h.Factor == 1 && h.Noise == 0 && h.Rounded == 1 {
		return n
	}
	said := float64(n) * h.Factor
	if h.Noise > 0 {
		said += h.Noise * rng.NormFloat64()
	}
	whole := int64(math.Round(max(said, 0)))
	return whole - whole%h.Rounded
}

// skewed makes the reset what a client sees whose clock is wrong by that much.
func (t *told) skewed(by time.Duration) { t.reset = max(t.reset+by, 0) }

// costs returns what a limiter is asked about: one request that costs n.
func (q *Quota) costs(n int64) limit.Cost {
	c := limit.One
	c[q.Unit] = n
	return c
}

// answer is what a thread learns from an answer.
func (q *Quota) answer(t *told, sent mono.Time) strategy.Answer {
	a := strategy.Answer{Limited: t.limited, Known: !q.Silent, Sent: sent, Reset: t.reset, RetryAfter: t.retryAfter}
	if a.Known {
		a.Remaining = float64(t.remaining)
	}
	return a
}

// outcome is what a limiter learns from an answer.
func (q *Quota) outcome(t *told) limit.Outcome {
	o := limit.Outcome{Result: limit.Accepted, RetryAfter: t.retryAfter}
	if t.limited {
		o.Result = limit.Limited
	}
	if !q.Silent {
		o.Known = 1 << q.Unit
		o.Remaining[q.Unit] = t.remaining
		o.Reset[q.Unit] = t.reset
	}
	return o
}

func (p Precision) of(d time.Duration) time.Duration {
	if p == WholeSeconds {
		return (d + time.Second - 1).Truncate(time.Second)
	}
	return d
}
