package queue

import (
	"fmt"
	"math"
)

// Verify returns an error if what the queue keeps of a request in one place contradicts another.
func (q *Queue) Verify() error {
	if err := q.counts.Check(); err != nil {
		return err
	}
	held := map[State]int{}
	ids := 0
	for n := range q.items {
		i, it := uint32(n), &q.items[n]
		held[it.state]++
		if it.state != None && it.request.ID != "" {
			ids++
			if j, ok := q.ids[it.request.ID]; !ok || j != i {
				return fmt.Errorf("item %d: its id %q leads to %d, %v", i, it.request.ID, j, ok)
			}
		}
		waits := it.state == Waiting
		if in := q.ready.has(i) != q.later.has(i); in != waits || q.ready.has(i) && q.later.has(i) {
			return fmt.Errorf("item %d is %v: ready %v, later %v", i, it.state, q.ready.has(i), q.later.has(i))
		}
		if overdue := waits && it.request.TTL != 0; q.deadlines.has(i) != overdue {
			return fmt.Errorf("item %d is %v with TTL %v: among the deadlines %v", i, it.state, it.request.TTL, q.deadlines.has(i))
		}
		if it.state == None && (it.request.ID != "" || it.request.Value != nil || it.reason != "") {
			return fmt.Errorf("item %d is forgotten, and still keeps %+v", i, it.request)
		}
	}
	c := q.counts
	if held[Waiting] != c.Waiting || held[InFlight] != c.InFlight || held[Dead] != q.dead.len || held[None] != len(q.free) || ids != len(q.ids) {
		return fmt.Errorf("held %v, %d dead letters, %d free, %d ids; counted %+v", held, q.dead.len, len(q.free), len(q.ids), c)
	}
	for name, h := range map[string]*heap{"ready": &q.ready, "later": &q.later, "deadlines": &q.deadlines} {
		for n := range h.entries {
			e := &h.entries[n]
			if int(h.spot[e.index]) != n {
				return fmt.Errorf("%s: entry %d thinks it is at %d", name, n, h.spot[e.index])
			}
			if n > 0 && e.before(&h.entries[(n-1)/4]) {
				return fmt.Errorf("%s: entry %d is before its parent", name, n)
			}
		}
	}
	return nil
}

// LastGeneration has the next request that ends be the last of its place's generations.
func (q *Queue) LastGeneration(t Ticket) Ticket {
	q.items[t.index].generation = math.MaxUint32
	return Ticket{t.index, math.MaxUint32}
}
