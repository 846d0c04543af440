package scheduler

import (
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A ticket may cost something else by each class of ways (LaneConfig.Classes). Then each way is asked for
// its own cost, and that is admitted. So the first way of a lane at a limit does not stand for its others
// there, which may cost less: lookBeside asks those, too.

// mostClass is the largest of LaneConfig.Classes.
const mostClass = math.MaxInt8 - 1

// classify gives a way its class; nil: there are none.
func (w *Way) classify(all []int) {
	if all == nil {
		return
	}
	class := all[w.Index]
	if class < 0 || class > mostClass {
		panic("scheduler: a class that is negative or too large")
	}
	w.class, w.lane.classes = int8(class+1), true
}

// Classes returns LaneConfig.Classes, for reading only.
func (a *Lane) Classes() []int { return a.config.Classes }

// AskEach is Ask for a ticket that costs costs[i] by the ways of class i. cost is the largest of each
// unit. costs must not change while the ticket waits.
func (t *Ticket) AskEach(cost *limit.Cost, costs []limit.Cost) {
	t.Ask(cost)
	t.Costs, t.Metered, t.Least = costs, true, cost.Least()
	for i := range costs {
		for u, n := range costs[i].Least() {
			t.Least[u] = min(t.Least[u], n)
		}
	}
}

// each reports whether t may cost something else by each class of ways. Costs is read of such tickets only:
// it is in another cache line than all that a turn needs.
func (t *Ticket) each() bool { return t.Metered && t.Costs != nil }

// Cost returns what t costs by the way.
func (w *Way) Cost(t *Ticket) *limit.Cost {
	if w.class == 0 || !t.each() {
		return &t.Cost
	}
	return &t.Costs[w.class-1]
}

// pass lets t go by a way.
func (l *Scheduler) pass(now mono.Time, w *Way, t *Ticket) Pass {
	if !t.each() {
		return l.admit(now, w, &t.Cost, t.uses())
	}
	cost := w.Cost(t)
	least := cost.Least()
	return l.admit(now, w, cost, &least)
}

// asks notes that the ways are asked for t, and reports whether they were last asked for the same cost.
func (a *Lane) asks(t *Ticket) (same bool) {
	switch {
	case a.classes && t.each():
		a.asked[limit.Requests] = -1 // no ticket costs that
	case t.Cost == a.asked:
		return true
	default:
		a.asked = t.Cost
	}
	return false
}

// lookBeside looks at the other ways of a lane that wait at m, where w stays. It reports whether to look
// at the first way there again.
func (l *Scheduler) lookBeside(now mono.Time, m *Limit, w *Way) (more bool) {
	if !w.lane.ends[0].head.each() {
		return false
	}
	first, wake := m.first, m.wake
	for _, v := range w.lane.ways {
		if v == w || v.at != m {
			continue
		}
		if l.look(now, m, v) {
			return true
		}
		first, wake = min(first, m.first), min(wake, m.wake)
	}
	m.first = first
	l.rouse(m, wake)
	return false
}
