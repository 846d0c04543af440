package limit

import (
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Past is a request that another process sent, from the records of that process.
type Past struct {
	// At is the latest instant of its arrival at the server. An At after now: it may still arrive
	// until then.
	At     mono.Time
	Cost   Cost
	Result Result
	// Sent is the instant of its send. Only a limiter that learns reads it: see Replay.
	Sent mono.Time
}

// Replay makes l, which is new, count the requests of another process, so that a restart forgets no
// window. all has the known requests since the instant since, in the order of At. Earlier requests
// are not known, so a bucket counts as empty at since. since should reach back over the longest
// window, and over twice the fill time of the largest bucket. If since is mono.Min, there were no
// earlier requests.
//
// Limiters of requests in flight, or of their order, get nothing: the connections of a process end
// with it. Do not call Replay while requests are open in l.
//
// A Limiter that learns from answers, as those of package fairshare, gets all by its method
//
//	Resume(now mono.Time, all []Past)
func Replay(l Limiter, now, since mono.Time, all []Past) {
	switch l := l.(type) {
	case interface {
		Resume(now mono.Time, all []Past)
	}:
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
		countAll(l, now, all)
	}
}

// ReplayFull makes l, which is new, count as used up at the instant at. It is for a process that has
// no record of the one before: a limit that begins empty would be used twice within one window.
// Limits whose window is longer than longest are left alone, as those of requests in flight are.
//
// Requests of the process before must have arrived by then. After a Drain they have.
func ReplayFull(l Limiter, at mono.Time, longest time.Duration) {
	for _, part := range Parts(l) {
		var all Cost
		rules, _ := Rules(part)
		for i := range rules {
			if r := &rules[i]; r.Per > 0 && r.Per <= longest {
				all[r.Unit] = max(all[r.Unit], r.Most())
			}
		}
		if all != (Cost{}) {
			Replay(part, at, at, []Past{{At: at, Cost: all}})
		}
	}
}

// outcome returns how and when p is settled.
func (p *Past) outcome(now mono.Time) (at mono.Time, o Outcome) {
	// Produced counts output by the age of a request, which is not known here. So each outcome
	// names its cost.
	o = Outcome{Result: p.Result, Metered: true, Actual: p.Cost}
	switch {
	case p.At > now:
		o.Result, o.ArrivedAgo = Unknown, now.Sub(p.At)
	case p.Result == Unknown: // At is the latest possible arrival
		o.Result = Failed
	}
	return min(p.At, now), o
}

// settleAt counts a request that is over.
func settleAt(l Limiter, at mono.Time, cost Cost, o *Outcome) {
	s := &Sent{At: at, Cost: cost}
	l.Admit(s)
	l.Settle(at, s, o)
}

func countAll(l Limiter, now mono.Time, all []Past) {
	for _, p := range all {
		at, o := p.outcome(now)
		settleAt(l, at, p.Cost, &o)
	}
}

// bucketReplay takes no more from a bucket than it has. The bucket that let a request go was not
// below empty then. Ours might fall below, and stay there for hours, if the earlier process had a
// higher limit.
type bucketReplay struct {
	l        Limiter
	now      mono.Time
	underway int64 // the cost that may still arrive at the server
}

// drain empties a bucket, since its content is not known.
func (r *bucketReplay) drain(since mono.Time, u Unit, holds int64) {
	if since == mono.Min {
		return
	}
	var all Cost
	all[u] = holds
	settleAt(r.l, since, all, &Outcome{Result: Failed, Metered: true, Actual: all})
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
	settleAt(b, at, p.Cost, &o)
}
