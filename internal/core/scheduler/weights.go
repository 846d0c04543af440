package scheduler

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Class is a party to fair limits: one lane, or several that count as one. So nobody gets more by coming in many lanes.
//
// Between shares it is start-time fair queueing (Goyal, Vin and Cheng, 1996): whoever goes has a start tag, max(virtual, its share's
// finish tag), the smallest goes first, the virtual time is the tag of whoever went last, and the finish tag moves on by what was used,
// over the weight. A head start d puts the virtual time as it was d ago in the place of what it is: a share may go ahead with what would
// have been its part of the last d, and with anything where nobody waited d ago. In whatever span others get their part, but for
// that of one d.
type Class struct {
	config ShareConfig
	count  int // how many tickets wait in its lanes
	flows  map[*Limit]*flow
}

// ShareConfig describes a Class. The zero value is ready.
type ShareConfig struct {
	// Weight is its part of a fair limit, beside others'. If not above 0, 1. What is beyond a million, or its inverse, counts as that: tags
	// are sums of what was used over it.
	Weight float64
	// HeadStart is how long ago it counts as having come, where a limit is fair. Less than 0 counts as 0.
	HeadStart time.Duration
	// Size is the most tickets that may wait in all its lanes. If zero, any number.
	Size int
}

const mostWeight = 1e6

// Class returns a party to fair limits without a lane.
func (l *Scheduler) Share(c ShareConfig) *Class {
	s := &Class{flows: map[*Limit]*flow{}}
	s.Set(c)
	return s
}

// Set changes what a Class is from the next ticket on.
func (s *Class) Set(c ShareConfig) {
	if c.Weight = min(max(c.Weight, 0), mostWeight); !(c.Weight > 0) { // NaN, too
		c.Weight = 1
	}
	c.Weight = max(c.Weight, 1/mostWeight)
	s.config = c
	for m := range s.flows {
		m.fair.remember(c.HeadStart)
	}
}

// Config returns what it is.
func (s *Class) Config() ShareConfig { return s.config }

// Len returns how many tickets wait in its lanes.
func (s *Class) Len() int { return s.count }

func (s *Class) full() bool { return s.config.Size > 0 && s.count >= s.config.Size }

// fairness is what a limit that is fair knows of those who share it.
type fairness struct {
	unit    limit.Unit
	use     func(limit.Cost) float64 // nil: what a cost has of unit
	virtual float64                  // the start tag of whoever went last
	past    past
	active  []*flow // those with tickets that wait, in any order
}

// uses returns how much a cost uses.
func (q *fairness) uses(c *limit.Cost) float64 {
	if q.use != nil {
		return max(q.use(*c), 0)
	}
	return float64(max(c[q.unit], 1))
}

// amounts is a limit.Cost in parts.
type amounts [len(limit.Cost{})]float64

// flow is a Class at one fair limit.
type flow struct {
	share  *Class
	limit  *Limit
	finish float64
	leaps  int // of past.leaps, how many finish is of
	lanes  int
	// Of the ways that are parked at the limit only the front is among those that the limit chooses from; nil: none is parked.
	front *Way
	rest  heap[*Way]

	waiting float64 // tickets of its lanes; one that may go several ways is a part of one in each
	uses    float64 // and what they use
	least   amounts
	active  int // index in fairness.active, from 1
}

// start returns the start tag of what goes next: where the share left off, or, if it was away, with the others.
func (f *flow) start() float64 {
	q := f.limit.fair
	v := q.virtual
	if f.leaps != q.past.leaps {
		q.past.leap(f)
	}
	if d := f.share.config.HeadStart; d > 0 {
		v = q.past.at(f.limit.line.last.Add(-d), f.limit.line.last, v)
	}
	return max(v, f.finish)
}

// join makes a lane's ways part of its share at their fair limits.
func (a *Lane) join(s *Class) {
	for _, w := range a.ways {
		for k, m := range w.limits {
			if m.fair == nil {
				continue
			}
			if s == nil {
				s = a.line.Share(ShareConfig{Weight: a.config.Weight})
			}
			f := s.flows[m]
			if f == nil {
				f = &flow{share: s, limit: m, leaps: m.fair.past.leaps}
				s.flows[m] = f
				m.fair.remember(s.config.HeadStart)
			}
			if w.flows == nil {
				w.flows = make([]*flow, len(w.limits))
			}
			f.lanes++
			w.flows[k], w.fair = f, true
		}
	}
	a.share = s
}

// part takes the ways of a retired lane out of its share.
func (a *Lane) part() {
	for _, w := range a.ways {
		for _, f := range w.flows {
			if f == nil {
				continue
			}
			if f.lanes--; f.lanes == 0 {
				delete(f.share.flows, f.limit)
			}
		}
	}
}

// flow returns the share of w at m, which is fair.
func (w *Way) flow(m *Limit) *flow { return w.flows[slices.Index(w.limits, m)] }

// within orders the ways of one share that wait at one limit: claims first, then by place.
func (w *Way) within() key {
	if w.claims {
		return key{0, int64(w.place), w.seq}
	}
	return key{1, int64(w.place), w.seq}
}

// enqueue puts w among those that wait at m. Its rank is that of its ticket.
func (m *Limit) enqueue(w *Way) {
	if m.fair == nil {
		m.parked.push(w, &w.spot, w.byRank(m))
		return
	}
	if len(m.parked.all) == 0 {
		m.fair.busy(m.line.last)
		if !w.barred {
			w.start = w.turn(m)
		}
	}
	f := w.flow(m)
	if f.front == nil {
		f.front = w
		m.parked.push(w, &w.spot, w.byRank(m))
		return
	}
	f.rest.push(w, &w.spot, w.within())
	f.choose()
}

// requeue gives w, which waits at m, the place of its rank.
func (m *Limit) requeue(w *Way) {
	if m.fair == nil {
		m.parked.fix(&w.spot, w.byRank(m))
		return
	}
	f := w.flow(m)
	if f.front != w {
		f.rest.fix(&w.spot, w.within())
	} else {
		m.parked.fix(&w.spot, w.byRank(m))
	}
	f.choose()
}

// dequeue takes w away from those that wait at m.
func (m *Limit) dequeue(w *Way) {
	if m.fair == nil {
		m.parked.remove(&w.spot)
		return
	}
	f := w.flow(m)
	if f.front != w {
		f.rest.remove(&w.spot)
		return
	}
	m.parked.remove(&w.spot)
	if f.front = nil; len(f.rest.all) > 0 {
		f.lead(f.rest.first())
	} else if len(m.parked.all) == 0 {
		m.fair.past.idle = m.line.last
	}
}

// choose sees to it that the first of the share's ways stands for it.
func (f *flow) choose() {
	if len(f.rest.all) == 0 {
		return
	}
	w, v := f.front, f.rest.first()
	if a, b := v.within(), w.within(); !a.before(&b) {
		return
	}
	f.limit.parked.remove(&w.spot)
	f.lead(v)
	f.rest.push(w, &w.spot, w.within())
}

// lead has w, one of the rest, stand for the share.
func (f *flow) lead(w *Way) {
	f.rest.remove(&w.spot)
	f.front = w
	if !w.barred {
		w.start = w.turn(f.limit)
	}
	f.limit.parked.push(w, &w.spot, w.byRank(f.limit))
}

// advance moves the virtual time of a fair limit to the start of what goes now, and that of the share to its finish.
func (w *Way) advance(k int, cost *limit.Cost) {
	f := w.flows[k]
	if f == nil {
		return
	}
	start := f.start()
	q := f.limit.fair
	used := q.uses(cost)
	q.serve(f.limit.line.last, start, used)
	f.finish = start + used/f.share.config.Weight
	// If w waits there itself, it is about to leave, or lets another of its lane pass.
	if v := f.front; v != nil && v != w && !v.barred {
		first := f.limit.parked.first() == v
		v.start = v.turn(f.limit)
		f.limit.parked.fix(&v.spot, v.byRank(f.limit))
		if first && f.limit.parked.first() != v {
			f.limit.line.mark(f.limit)
			f.limit.line.reorder(f.limit)
		}
	}
}

// tally notes that a ticket waits in the lane, or, with n of -1, no longer does.
func (a *Lane) tally(t *Ticket, n float64) {
	s := a.share
	if s == nil {
		return
	}
	s.count += int(n)
	part := n / float64(len(a.ways))
	for _, w := range a.ways {
		for _, f := range w.flows {
			if f != nil {
				f.count(t, part, n > 0)
			}
		}
	}
}

func (f *flow) count(t *Ticket, part float64, comes bool) {
	q := f.limit.fair
	f.waiting += part
	f.uses += part * q.uses(&t.Cost)
	for u, n := range t.uses() {
		f.least[u] += part * float64(n)
	}
	switch {
	case f.active == 0 && comes:
		q.active = append(q.active, f)
		f.active = len(q.active)
	case f.active > 0 && f.waiting < 1e-9:
		last := q.active[len(q.active)-1]
		q.active[f.active-1], last.active = last, f.active
		q.active = q.active[:len(q.active)-1]
		f.active, f.waiting, f.uses, f.least = 0, 0, 0, amounts{}
	}
}
