package scheduler

import (
	"math"
	"math/bits"
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// levels is the number of levels of a lane's skip list. Each has an eighth of the tickets of the
// one below: 100,000 take 50 steps to find one.
const levels = 5

// Lane is a list of tickets that may go the same ways.
type Lane struct {
	// The order of the fields is by cache line, since of a thousand lanes hardly any is in the
	// cache. Every turn needs the first line, most turns also that of least, and one in eight the
	// second.
	line    *Scheduler
	sole    *Way // its way; nil: it has several
	count   int
	granted uint64
	claims  int32 // how many of its ways have claims
	fill    int32 // how many tickets behind the first are looked at, and how often one may be overtaken
	// Watched means that the Scheduler calls Config.Watch.
	Watched bool
	alone   bool // no other lane has its limits
	// Each limit is in one way only: each way is the first where it is parked, and looked at when
	// its instant comes.
	own      bool
	reserves bool // reserve is above 0
	classes  bool // its ways have classes: see costs.go
	ends     [levels]struct{ head, tail *Ticket }

	least    limit.Cost // the cost that its waiting tickets surely use
	reviewed uint64     // Scheduler.changes at the latest Review

	// Of belongs to the driver.
	Of      any
	ways    []*Way
	share   *Class // nil: none of its limits is fair
	config  LaneConfig
	reserve float64  // the part of each limit that it leaves free
	common  []*Limit // of a lane of several ways: the limits that are in all of them
	// With Fill or several ways: the least and the most that a ticket surely uses of each unit, since
	// the lane was empty.
	smallest, largest limit.Cost

	// These are for a lane of several ways. While no ticket waits, the ready ways are kept in
	// order, and the parked ones stay where they are. So the next ticket of the same cost asks only
	// the way of the ticket before.
	asked limit.Cost // the cost that the ways were last asked for
	loose []*Way
	ready turns
	late  []*Way // those with a door
	lanes int    // Scheduler.lanes when alone was computed
}

// First returns the first ticket, or nil.
func (a *Lane) First() *Ticket { return a.ends[0].head }

// Len returns the number of waiting tickets.
func (a *Lane) Len() int { return a.count }

// Granted returns the number of tickets that went, including those that never waited.
func (a *Lane) Granted() uint64 { return a.granted }

// Ways returns the ways, for reading only.
func (a *Lane) Ways() []*Way { return a.ways }

// At returns the limit that the first ticket waits for, by the way that will be ready soonest, and
// its verdict there: an instant, limit.AfterSettle, or limit.Never. Without a waiting ticket it
// returns nil and 0.
func (a *Lane) At() (*Limit, mono.Time) {
	if a.count == 0 {
		return nil, 0
	}
	var on *Limit
	at, opens := limit.Never, limit.Never
	for _, w := range a.ways {
		switch {
		case w.state != parked:
		case w.door != nil && w.at == w.door.limit: // it waits there for the limits of the ways before
			opens = min(opens, w.ready)
		case on == nil || w.ready < at:
			on, at = w.at, w.ready
		}
	}
	return on, min(at, opens)
}

// distinct returns the limits of all ways, each once.
func (a *Lane) distinct() map[*Limit]bool {
	all := map[*Limit]bool{}
	for _, w := range a.ways {
		for _, m := range w.limits {
			all[m] = true
		}
	}
	return all
}

// isAlone reports whether no other lane has one of its limits.
func (a *Lane) isAlone() bool {
	if a.lanes != a.line.lanes {
		a.lanes, a.alone = a.line.lanes, len(a.late) == 0 // no two tickets come at one instant to a door
		for _, w := range a.ways {
			for _, m := range w.limits {
				a.alone = a.alone && m.lanes == 1
			}
		}
	}
	return a.alone
}

// shared returns the limits that are in all ways.
func (a *Lane) shared() (all []*Limit) {
	for _, m := range a.ways[0].limits {
		if !slices.ContainsFunc(a.ways, func(w *Way) bool { return !slices.Contains(w.limits, m) }) {
			all = append(all, m)
		}
	}
	return all
}

// soonest returns when the first parked way will be ready, by the latest verdicts.
func (a *Lane) soonest() mono.Time {
	at := limit.Never
	for _, w := range a.ways {
		at = min(at, w.ready)
	}
	return at
}

// height draws the height of a ticket from its number, so that a run can be repeated.
func height(seq int64) uint8 {
	h := uint64(seq) * 0x9e3779b97f4a7c15
	h ^= h >> 32
	return uint8(min(1+bits.TrailingZeros64(h|1<<62)/3, levels))
}

// insert puts t in the order of Place.
func (a *Lane) insert(t *Ticket) {
	t.height = height(t.seq)
	if last := a.ends[0].tail; last == nil || last.before(t) {
		t.prev = last
		for v := range t.height {
			if a.ends[v].tail == nil {
				a.ends[v].head = t
			} else {
				a.ends[v].tail.next[v] = t
			}
			a.ends[v].tail = t
		}
	} else {
		a.insertWithin(t)
	}
	a.count++
	more(&a.least, t.uses())
	if a.fill > 0 || a.sole == nil {
		if a.count == 1 {
			a.smallest = *t.uses()
		}
		extend(t, &a.smallest, &a.largest)
	}
}

// extend makes smallest and largest include what t surely uses.
func extend(t *Ticket, smallest, largest *limit.Cost) {
	for u, n := range t.uses() {
		smallest[u], largest[u] = min(smallest[u], n), max(largest[u], n)
	}
}

// before finds, on each level, the last ticket before t; nil: t would be the first.
func (a *Lane) before(t *Ticket) (p [levels]*Ticket) {
	var at *Ticket
	for v := levels - 1; v >= 0; v-- {
		next := a.ends[v].head
		if at != nil {
			next = at.next[v]
		}
		for next != nil && next.before(t) {
			at, next = next, next.next[v]
		}
		p[v] = at
	}
	return p
}

func (a *Lane) insertWithin(t *Ticket) {
	p := a.before(t)
	for v := range t.height {
		after := &a.ends[v].head
		if p[v] != nil {
			after = &p[v].next[v]
		}
		t.next[v], *after = *after, t
		if t.next[v] == nil {
			a.ends[v].tail = t
		}
	}
	t.prev = p[0]
	if t.next[0] != nil {
		t.next[0].prev = t
	}
}

// remove takes t out.
func (a *Lane) remove(t *Ticket) {
	next := t.next[0]
	if t.prev == nil {
		for v := range t.height {
			if a.ends[v].head = t.next[v]; a.ends[v].head == nil {
				a.ends[v].tail = nil
			}
			t.next[v] = nil
		}
	} else {
		p := [levels]*Ticket{t.prev}
		if t.height > 1 {
			p = a.before(t)
		}
		for v := range t.height {
			after := &a.ends[v].head
			if p[v] != nil {
				after = &p[v].next[v]
			}
			if *after = t.next[v]; *after == nil {
				a.ends[v].tail = p[v]
			}
			t.next[v] = nil
		}
	}
	if next != nil {
		next.prev = t.prev
	}
	t.prev = nil
	a.count--
	if a.count == 0 {
		a.least, a.smallest, a.largest = limit.Cost{}, limit.Cost{}, limit.Cost{}
		return
	}
	less(&a.least, t.uses())
}

// walked is how many tickets are counted one by one to find the number before a place within the
// lane.
const walked = 64

// ahead returns how many tickets would be before one of this place that came last, and their least
// use. Both may be too small. The sum is valid until the lane changes or the next call.
func (a *Lane) ahead(place mono.Time) (n int, least *limit.Cost) {
	return a.aheadOf(place, math.MaxInt64)
}

// aheadOf is ahead for a ticket with that number, which may wait in the lane.
func (a *Lane) aheadOf(place mono.Time, seq int64) (n int, least *limit.Cost) {
	last := a.ends[0].tail
	if last == nil || last.precedes(place, seq) {
		return a.count, &a.least
	}
	least = &a.line.asker.Least
	n, *least = a.count, a.least
	for range walked {
		n--
		less(least, last.uses())
		if last = last.prev; last == nil || last.precedes(place, seq) {
			return n, least
		}
	}
	n, *least = 0, limit.Cost{}
	for u := a.ends[0].head; u != nil && u.precedes(place, seq) && n < walked; u = u.next[0] {
		n++
		more(least, u.uses())
	}
	return n, least
}
