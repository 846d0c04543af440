package fleet

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/throttle"
)

// Headers are what answers say beside whether they are refusals. The zero value tells what remains, exactly, and nothing else.
// What is said may be wrong by several of these at once; Report.Level is what truly remained.
type Headers struct {
	// Reset is how answers tell, if at all, how long it is until there is more: until the interval of a Calendar or Anchored quota
	// is over, until a Bucket is full, until the oldest request that counts in a Rolling one no longer does. Other kinds do not.
	Reset Precision
	// RetryAfter is how a refusal tells, if at all, how long it is until the request would pass if nobody else asked. It is there
	// for the same kinds as Reset, does not need it, and is true.
	RetryAfter Precision
	// Skew is by how much clocks of clients may be wrong: to each process a reset is told later by a time of its own, drawn
	// evenly from −Skew to Skew, as where a reset is an instant and is compared with the client's clock. One that is past is 0.
	Skew time.Duration

	// Stale is how old what remains, and the reset, may be: a replica asks for them every so often and tells the same in
	// between. If zero, they are as of the request; if longer than the run, as of the first one for ever.
	Stale time.Duration
	// Replicas of that age answer in turn, at random; they ask one after another. If zero, 1.
	Replicas int
	// Factor is by what the remaining that is told is multiplied, where it is in another unit than the quota. If zero, 1.
	Factor float64
	// Noise is the standard deviation of a normal error of what remains, drawn anew for each answer.
	Noise float64
	// Rounded: what remains is told in whole multiples of it, rounded down. If zero, 1.
	Rounded int64
}

// Precision is how exactly a time is told.
type Precision uint8

const (
	Untold Precision = iota
	Exact
	WholeSeconds // rounded up
)

// told is what an answer says of the quota.
type told struct {
	limited           bool
	left              int64 // truly, as of the arrival
	remaining         int64 // as it is told
	reset, retryAfter time.Duration
}

// view is what a replica knows.
type view struct {
	remaining int64
	more      mono.Time
}

// look has a replica ask what remains.
func (s *quotaServer) look(now mono.Time, replica int32) {
	n := s.remaining(now)
	s.replicas[replica] = view{n, s.more(now, n)}
}

// tell returns what the answer to a request of that cost says, which the server has decided about.
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

// misstate returns how much is told to remain where n does. It draws nothing for headers without noise.
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

// skewed is a reset as a client understands it whose clock is wrong by so much.
func (t *told) skewed(by time.Duration) { t.reset = max(t.reset+by, 0) }

// costs is what a limiter is asked about: a request, and what it takes.
func (q *Quota) costs(n int64) limit.Cost {
	c := limit.One
	c[q.Unit] = n
	return c
}

// answer is what a thread learns.
func (q *Quota) answer(t *told, sent mono.Time) throttle.Answer {
	a := throttle.Answer{Limited: t.limited, Known: !q.Silent, Sent: sent, Reset: t.reset, RetryAfter: t.retryAfter}
	if a.Known {
		a.Remaining = float64(t.remaining)
	}
	return a
}

// outcome is what a limiter learns.
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
