package scheduler

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Class is a party to fair limits: one lane, or several that count as one. So nobody gets more by
// the use of many lanes.
//
// Between classes it is start-time fair queueing (Goyal, Vin and Cheng, 1996). The start tag of a
// ticket is max(virtual, the finish tag of its class). The ticket with the smallest tag goes first.
// The virtual time is the tag of the latest ticket that went. The finish tag then moves on by the
// use, divided by the weight.
//
// A head start d replaces the virtual time by its value d ago. So a class may go ahead with its
// part of the last d, and with anything where no ticket waited d ago. In any span the others get
// their part, except for that of one d.
type Class struct {
	config ShareConfig
	count  int // the number of waiting tickets in its lanes
	lanes  []*Lane
	flows  map[*Limit]*flow
}

// ShareConfig describes a Class. The zero value is ready.
type ShareConfig struct {
	// Weight is its part of a fair limit, beside others'. If not above 0, 1. It is at most a
	// million, and at least the inverse: tags are sums of the use over the weight.
	Weight float64
	// HeadStart is the time by which its tickets count as earlier, where a limit is fair. Less than
	// 0 counts as 0.
	HeadStart time.Duration
	// Size is the most tickets that may wait in all its lanes. If zero, any number.
	Size int
	// Reserve is the part of each limit that its lanes leave free, from 0 to 1, for tickets that
	// leave less. Where such a ticket waits, they leave as little as that ticket.
	Reserve float64
}

const mostWeight = 1e6

// Share returns a Class without a lane.
func (l *Scheduler) Share(c ShareConfig) *Class {
	s := &Class{flows: map[*Limit]*flow{}}
	s.Set(c)
	return s
}

// Set changes a Class from the next ticket on.
func (s *Class) Set(c ShareConfig) {
	if c.Weight = min(max(c.Weight, 0), mostWeight); !(c.Weight > 0) { // NaN, too
		c.Weight = 1
	}
	c.Weight = max(c.Weight, 1/mostWeight)
	s.config = c
	for m := range s.flows {
		m.fair.remember(c.HeadStart)
	}
	for _, a := range s.lanes {
		a.leave(c.Reserve)
	}
}

// Config returns the present configuration.
func (s *Class) Config() ShareConfig { return s.config }

// Len returns the number of waiting tickets in its lanes.
func (s *Class) Len() int { return s.count }

func (s *Class) full() bool { return s.config.Size > 0 && s.count >= s.config.Size }

// fairness is a fair limit's record of the classes that share it.
type fairness struct {
	unit    limit.Unit
	use     func(limit.Cost) float64 // nil: the cost in unit
	virtual float64                  // the start tag of the latest ticket that went
	past    past
	active  []*flow // the classes with waiting tickets, in any order
}

// uses returns how much a cost uses.
func (q *fairness) uses(c *limit.Cost) float64 {
	if q.use != nil {
		return max(q.use(*c), 0)
	}
	return float64(max(c[q.unit], 1))
}

// amounts is a limit.Cost in fractions.
type amounts [len(limit.Cost{})]float64

// flow is a Class at one fair limit.
type flow struct {
	share  *Class
	limit  *Limit
	finish float64
	leaps  int // the value of past.leaps to which finish refers
	lanes  int
	// Of its ways that are parked at the limit only the front is among those that the limit chooses
	// from. nil: none is parked.
	front *Way
	rest  heap[*Way]

	waiting float64 // tickets of its lanes; a ticket with several ways counts in parts, one for each way
	uses    float64 // and their use
	least   amounts
	active  int // index in fairness.active, from 1
}

// start returns the start tag of the next ticket. It continues where the class left off, or, after
// an absence, begins with the others.
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

// join makes a lane's ways part of its class at their fair limits.
func (a *Lane) join(s *Class) {
	for _, w := range a.ways {
		for k, m := range w.limits {
			if m.fair == nil {
				continue
			}
			if s == nil {
				s = a.line.Share(ShareConfig{Weight: a.config.Weight, Reserve: a.config.Reserve})
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
	free := a.config.Reserve
	if a.share = s; s != nil {
		s.lanes = append(s.lanes, a)
		free = s.config.Reserve
	}
	a.leave(free)
}

// part takes the ways of a retired lane out of its class.
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
	if s := a.share; s != nil {
		i, last := slices.Index(s.lanes, a), len(s.lanes)-1
		s.lanes[i], s.lanes[last] = s.lanes[last], nil
		s.lanes = s.lanes[:last]
	}
}

// flow returns the flow of w at m, which is fair.
func (w *Way) flow(m *Limit) *flow { return w.flows[slices.Index(w.limits, m)] }

// within orders the ways of one class that wait at one limit: claims first, then by place.
func (w *Way) within() key {
	if w.claims {
		return key{0, int64(w.place), w.seq}
	}
	return key{1, int64(w.place), w.seq}
}

// enqueue adds w to the ways that wait at m, with the rank of its ticket.
func (m *Limit) enqueue(w *Way) {
	if m.fair == nil {
		if len(m.parked.all) == 1 { // its key may be old: see requeue
			m.parked.all[0].key = m.parked.first().byRank(m)
		}
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

// requeue gives w, which waits at m, the place of its rank. One that waits alone, as most do, needs no key.
func (m *Limit) requeue(w *Way) {
	if m.fair != nil || len(m.parked.all) > 1 {
		m.resort(w)
	}
}

func (m *Limit) resort(w *Way) {
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

// dequeue takes w away from the ways that wait at m.
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

// choose makes the first of the class' ways its front.
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

// lead makes w, one of the rest, the front of the class.
func (f *flow) lead(w *Way) {
	f.rest.remove(&w.spot)
	f.front = w
	if !w.barred {
		w.start = w.turn(f.limit)
	}
	f.limit.parked.push(w, &w.spot, w.byRank(f.limit))
}

// advance moves the virtual time of a fair limit to the start of the ticket that goes now, and the
// tag of its class to the finish.
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
	// If w waits there itself, it is about to leave, or lets another ticket of its lane pass.
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
	if a.share != nil {
		a.share.tally(a, t, n)
	}
}

func (s *Class) tally(a *Lane, t *Ticket, n float64) {
	s.count += int(n)
	part := n / float64(len(a.ways))
	for _, w := range a.ways {
		for _, f := range w.flows {
			if f != nil {
				f.count(w.Cost(t), t.uses(), part, n > 0)
			}
		}
	}
}

func (f *flow) count(cost, least *limit.Cost, part float64, comes bool) {
	q := f.limit.fair
	f.waiting += part
	f.uses += part * q.uses(cost)
	for u, n := range least {
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
