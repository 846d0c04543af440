package scheduler

import (
	"cmp"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// past is the recent virtual time of a fair limit, for classes with a head start. It is kept in
// steps, and interpolated between them.
type past struct {
	// The longest head start. 0: there is none, and only the beginning of a wait is kept.
	span  time.Duration
	steps []step    // by time
	idle  mono.Time // when the last waiting ticket left
	most  float64   // the largest use of one ticket
	leaps int       // the number of leaps of the virtual time
	from  float64   // the virtual time before the latest leap
	by    float64   // the size of that leap
}

// step is an instant, and the virtual time before any change at it.
type step struct {
	at      mono.Time
	virtual float64
}

const (
	// stepsOfSpan is the resolution of the past: this part of the longest head start.
	stepsOfSpan = 32
	// leapOf is the leap of the virtual time when a ticket waits again after a while without any,
	// in units of the largest request. A head start that reaches back to that time is then worth
	// more than any class uses within one.
	leapOf = 1e5
)

func (p *past) every() time.Duration {
	if p.span == 0 {
		return time.Second
	}
	return max(p.span/stepsOfSpan, time.Millisecond)
}

// remember makes the past reach back for d.
func (q *fairness) remember(d time.Duration) {
	q.past.span = max(q.past.span, d)
}

// busy notes that a ticket waits where none did.
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

// leap adds the leap to the finish tag of f, if that was ahead of the virtual time. So the use just
// before the wait still counts, except for classes with a head start.
func (p *past) leap(f *flow) {
	if f.leaps == p.leaps-1 && f.finish > p.from && f.share.config.HeadStart <= 0 {
		f.finish += p.by
	}
	f.leaps = p.leaps
}

// serve moves the virtual time on to the start tag of the ticket that goes.
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

// note adds a step, and forgets those before all head starts.
func (p *past) note(now mono.Time, virtual float64) {
	old := 0
	for old+1 < len(p.steps) && p.steps[old+1].at <= now.Add(-p.span) {
		old++
	}
	p.steps = append(p.steps[:copy(p.steps, p.steps[old:])], step{now, virtual})
}

// at returns the virtual time at t, which is before now, when it is virtual. Before the first step it is that
// of the first step.
func (p *past) at(t, now mono.Time, virtual float64) float64 {
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
	return next.virtual
}
