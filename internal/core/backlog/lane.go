package backlog

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// heldFor is how long what a worker holds of a lane should last at its rate. What it has marked is
	// what went at most in an aheadFor of late. More held makes the end wait for the slowest worker; more marked names more
	// if it dies.
	heldFor  = 2 * time.Second
	aheadFor = 100 * time.Millisecond
	// leastHeld and leastAhead are for a rate that is not known yet.
	leastHeld, leastAhead = 4, 2
	// floorFor is how long claims go on where the last one ended. From time to time they begin at the
	// front: there may be requests of a higher priority, or some that were given back. A claim from the
	// front reads all index entries of what is gone, as long as some old transaction keeps them.
	floorFor = 3 * time.Second
)

// Place is where a request stands in its lane: earlier ones go first. Seq decides between equals.
type Place struct{ Place, Seq int64 }

func (p Place) compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Place, q.Place), cmp.Compare(p.Seq, q.Seq))
}

// lane is what a worker has of one lane.
type lane struct {
	idle   idle    // held, not marked
	marked []*held // by the latest committed turn, in their order: the next to send
	held   int     // all that the worker holds of the lane and has not ended

	asking int       // permits that wait for a mark
	asked  mono.Time // when a turn last claimed for it

	sent, before int       // sends in this span of heldFor, and in the one before
	since        mono.Time // the beginning of this span

	burst            int       // sends since began, in a span of aheadFor
	began            mono.Time // of the first send of that span
	most, mostBefore int       // of burst, in this span of heldFor and in the one before

	floor Place
	front mono.Time // when the next claim begins at the front
	empty bool      // the last claim got less than it asked for
}

// rate is how many requests went in the last heldFor, counted in spans: what went in this span, and a
// part of the one before.
func (l *lane) rate(now mono.Time) int {
	l.pass(now)
	left := heldFor - now.Sub(l.since)
	return l.sent + int(int64(l.before)*int64(left)/int64(heldFor))
}

func (l *lane) pass(now mono.Time) {
	switch d := now.Sub(l.since); {
	case d >= 2*heldFor:
		l.before, l.sent, l.since = 0, 0, now
		l.mostBefore, l.most = 0, 0
	case d >= heldFor:
		l.before, l.sent, l.since = l.sent, 0, l.since.Add(heldFor)
		l.mostBefore, l.most = l.most, 0
	}
}

// goes counts a send.
func (l *lane) goes(now mono.Time) {
	l.pass(now)
	l.sent++
	if now.Sub(l.began) >= aheadFor {
		l.began, l.burst = now, 0
	}
	l.burst++
	l.most = max(l.most, l.burst)
}

// want is how many requests to claim: none while half of what should be held is there.
func (l *lane) want(now mono.Time) int {
	most := max(l.rate(now), leastHeld)
	if 2*l.held >= most && l.held > leastHeld/2 {
		return 0
	}
	return most - l.held
}

// ahead is how many to mark. Permits come in bursts, and one that waits for a mark is lost to the limit meanwhile: the
// mean of an aheadFor would leave two of five waiting.
func (l *lane) ahead(now mono.Time) int {
	l.pass(now)
	return max(l.most, l.mostBefore, leastAhead)
}

// low reports whether so few are marked that a permit may come before the next mark.
func (l *lane) low(now mono.Time) bool {
	return len(l.idle) > 0 && 2*len(l.marked) <= l.ahead(now)
}

// turn is by when the lane is asked again, among many: one that had nothing, later.
func (l *lane) turn() mono.Time {
	if l.empty {
		return l.asked.Add(lookIdle)
	}
	return l.asked
}

// from is where the next claim begins.
func (l *lane) from(now mono.Time) Place {
	if now >= l.front {
		l.floor, l.front = Place{}, now.Add(floorFor)
	}
	return l.floor
}

// idle is a heap of requests by their places.
type idle []*held

func (q idle) Len() int           { return len(q) }
func (q idle) Less(i, j int) bool { return q[i].Place.compare(q[j].Place) < 0 }
func (q idle) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *idle) Push(x any)        { *q = append(*q, x.(*held)) }
func (q *idle) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func (q *idle) add(h *held) { heap.Push(q, h) }
func (q *idle) next() *held { return heap.Pop(q).(*held) }

// remove takes a request out, and reports whether it was there.
func (q *idle) remove(h *held) bool {
	i := slices.Index(*q, h)
	if i >= 0 {
		heap.Remove(q, i)
	}
	return i >= 0
}
