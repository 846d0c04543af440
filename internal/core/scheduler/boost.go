package scheduler

import (
	"cmp"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// past is what the virtual time of a fair limit has been lately, for shares with a head start. It is kept in steps, and read between them.
type past struct {
	span  time.Duration // the longest head start; 0: nobody has one, and all that is kept is when somebody began to wait
	steps []step        // by time
	idle  mono.Time     // when nobody waited any more
	most  float64       // the most that one has used
	leaps int           // how often the virtual time has leapt
	from  float64       // the last time: from there
	by    float64       // by so much
}

// step is an instant, and the virtual time before anything was changed at it.
type step struct {
	at      mono.Time
	virtual float64
}

const (
	// stepsOfSpan is how exact the past is known: to that part of the longest head start.
	stepsOfSpan = 32
	// leapOf is by how many of the largest requests the virtual time leaps when somebody waits again after a while in which nobody did:
	// a head start that reaches back to that time is then worth more than anybody uses within one.
	leapOf = 1e5
)

func (p *past) every() time.Duration {
	if p.span == 0 {
		return time.Second
	}
	return max(p.span/stepsOfSpan, time.Millisecond)
}

// remember sees to it that the past is known for d.
func (q *fairness) remember(d time.Duration) {
	q.past.span = max(q.past.span, d)
}

// busy notes that somebody waits where nobody did.
func (q *fairness) busy(now mono.Time) {
	p := &q.past
	if p.idle.Add(p.every()) > now {
		return
	}
	p.note(now, q.virtual)
	p.from, p.by = q.virtual, leapOf*cmp.Or(p.most, 1)
	p.leaps++
	q.virtual += p.by
	p.steps = append(p.steps, step{now, q.virtual})
}

// leap has the finish tag of f leap, too, if it was ahead of the virtual time: what was used just before somebody waited still counts, but
// for those with a head start.
func (p *past) leap(f *flow) {
	if f.leaps == p.leaps-1 && f.finish > p.from && f.share.config.HeadStart <= 0 {
		f.finish += p.by
	}
	f.leaps = p.leaps
}

// serve moves the virtual time on to the start tag of whoever goes.
func (q *fairness) serve(now mono.Time, start, used float64) {
	p := &q.past
	p.most = max(p.most, used)
	if p.span > 0 {
		if n := len(p.steps); start > q.virtual && (n == 0 || p.steps[n-1].at.Add(p.every()) <= now) {
			p.note(now, q.virtual)
		}
	}
	q.virtual = max(q.virtual, start)
}

// note adds a step, and forgets those that no head start reaches back to.
func (p *past) note(now mono.Time, virtual float64) {
	old := 0
	for old+1 < len(p.steps) && p.steps[old+1].at <= now.Add(-p.span) {
		old++
	}
	p.steps = append(p.steps[:copy(p.steps, p.steps[old:])], step{now, virtual})
}

// at returns what the virtual time was at t, which is before now, when it is virtual.
func (p *past) at(t, now mono.Time, virtual float64) float64 {
	if len(p.steps) == 0 || t < p.steps[0].at {
		if len(p.steps) > 0 {
			return p.steps[0].virtual
		}
		return virtual
	}
	next := step{now, virtual}
	for i := len(p.steps) - 1; i >= 0; i-- {
		s := p.steps[i]
		if s.at <= t {
			if next.at <= s.at {
				return s.virtual
			}
			return s.virtual + (next.virtual-s.virtual)*float64(t.Sub(s.at))/float64(next.at.Sub(s.at))
		}
		next = s
	}
	return virtual
}
