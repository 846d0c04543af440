package fleet

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/throttle"
)

// Headers are what answers say beside whether they are refusals and what remains.
type Headers struct {
	// Reset is how answers tell, if at all, how long it is until there is more: until the interval of a Calendar or Anchored quota
	// is over, until a Bucket is full, until the oldest request that counts in a Rolling one no longer does. Other kinds do not.
	Reset Precision
	// RetryAfter is how a refusal tells, if at all, how long it is until the request would pass if nobody else asked. It is there
	// for the same kinds as Reset, and does not need it.
	RetryAfter Precision
}

// Precision is how exactly a time is told.
type Precision uint8

const (
	Untold Precision = iota
	Exact
	WholeSeconds // rounded up
)

// told is what an answer says of the quota, as of the arrival of its request.
type told struct {
	limited           bool
	remaining         int64
	reset, retryAfter time.Duration // 0: not told
}

// tell returns what the answer to a request of that cost says, which the server has decided about.
func (s *quotaServer) tell(now mono.Time, cost int64, limited bool) told {
	t := told{limited: limited, remaining: s.remaining(now)}
	h := &s.quota.Headers
	if h.Reset != Untold && !s.quota.Silent {
		t.reset = h.Reset.of(s.more(now, t.remaining).Sub(now))
	}
	if h.RetryAfter != Untold && limited {
		t.retryAfter = h.RetryAfter.of(s.ready(now, cost).Sub(now))
	}
	return t
}

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
