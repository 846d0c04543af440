package limit

import (
	"github.com/paceline-go/paceline/limit/mono"
)

// Past is a request that another process sent, as the records of that process have it.
type Past struct {
	// At is the latest instant at which the server counts it; after now: it may still arrive until then.
	At     mono.Time
	Cost   Cost
	Result Result
	// Sent is when it went, which only a Resuming asks.
	Sent mono.Time
}

// Resuming is a Limiter that goes on after a restart from what it knew, as Auto of package fairshare can, and is told what was sent since:
// Replay passes on what it is given.
type Resuming interface {
	Limiter
	// Resume has a Limiter that is new go on. What counts in it is among all, as Replay has it.
	Resume(now mono.Time, all []Past)
}

// Replay has l, which is new, count what another process sent, so that a restart forgets no window: all, in the order of At, is what is
// known of since the instant since; what went before is not. A bucket may have been empty then, and is taken to have been, so since should be as far back as the
// longest window, and as twice the time in which the largest bucket fills. If since is mono.Min, nothing went before.
//
// What bounds requests in flight, or their order, hears nothing: the connections of a process end with it. Replay must not be used
// while requests are open in l.
func Replay(l Limiter, now, since mono.Time, all []Past) {
	switch l := l.(type) {
	case Resuming:
		l.Resume(now, all)
	case *Fitted:
		for _, p := range all {
			at, o := p.outcome(now)
			l.Count(at, p.Cost, o)
		}
		Replay(l.own, now, since, all)
	case wrapper:
		for _, part := range l.Unwrap() {
			Replay(part, now, since, all)
		}
	case *Bucket:
		replay := bucketReplay{l: l, now: now}
		replay.drain(since, l.unit, l.limit)
		for _, p := range all {
			replay.count(p)
		}
	case *Produced:
		(&bucketReplay{l: l}).drain(since, l.unit, l.burst)
		countAll(l, now, all)
	case *Concurrency, *Adaptive, *Sequence, *Spacing:
	default:
		if !Senses(l) { // strangers count, too, and answers tell of that
			countAll(l, now, all)
		}
	}
}

// outcome returns how and when p is settled.
func (p *Past) outcome(now mono.Time) (at mono.Time, o Outcome) {
	// Produced counts output by the age of a request, and would see no age here: so each says what it cost.
	o = Outcome{Result: p.Result, Metered: true, Actual: p.Cost}
	switch {
	case p.At > now:
		o.Result, o.ArrivedAgo = Unknown, now.Sub(p.At)
	case p.Result == Unknown: // At is the latest instant at which it can have arrived
		o.Result = Failed
	}
	return min(p.At, now), o
}

func countAll(l Limiter, now mono.Time, all []Past) {
	for _, p := range all {
		at, o := p.outcome(now)
		l.Settle(at, l.Admit(at, p.Cost), o)
	}
}

// bucketReplay takes no more from a bucket than it has, since the bucket that let a request go was not below empty then. Ours might
// become so, and stay so for hours, if the process before had a higher limit.
type bucketReplay struct {
	l        Limiter
	now      mono.Time
	underway int64 // what may still arrive at the server
}

// drain empties a bucket, since nobody knows what it held.
func (r *bucketReplay) drain(since mono.Time, u Unit, holds int64) {
	if since == mono.Min {
		return
	}
	var all Cost
	all[u] = holds
	r.l.Settle(since, r.l.Admit(since, all), Outcome{Result: Failed, Metered: true, Actual: all})
}

func (r *bucketReplay) count(p Past) {
	b := r.l.(*Bucket)
	at, o := p.outcome(r.now)
	w := &p.Cost[b.unit]
	switch {
	case p.At > r.now:
		refilled := int64(float64(p.At.Sub(r.now)) / float64(b.per))
		*w = min(*w, max(b.limit+refilled-r.underway, 0))
		r.underway += *w
	case *w > 0 && b.Ready(at, p.Cost) > at:
		*w = min(*w, b.room(at))
	}
	o.Actual = p.Cost
	b.Settle(at, b.Admit(at, p.Cost), o)
}
