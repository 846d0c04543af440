package queue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Verify returns an error if what the queue keeps of a request in one place contradicts another.
func (q *Queue) Verify() error {
	if err := q.counts.Check(); err != nil {
		return err
	}
	held, waiting := map[State]int{}, map[*host]int{}
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
		if waits != (it.host != nil) || waits != (q.later.spots.of[i] >= 0) {
			return fmt.Errorf("item %d is %v: host %v, spot %d", i, it.state, it.host, q.later.spots.of[i])
		}
		if waits {
			waiting[it.host]++
			h := &it.host.ready
			switch {
			case it.later:
				h = &q.later
			case it.aside:
				h = &it.host.aside
			}
			if n := q.later.spots.of[i]; int(n) >= len(h.entries) || h.entries[n].index != i {
				return fmt.Errorf("item %d (later %v): is not where it thinks, at %d", i, it.later, n)
			}
		}
		if overdue := waits && it.request.TTL != 0; (q.deadlines.spots.of[i] >= 0) != overdue {
			return fmt.Errorf("item %d is %v with TTL %v: its place among the deadlines is %d", i, it.state, it.request.TTL, q.deadlines.spots.of[i])
		}
		if it.state == None && (it.request.ID != "" || it.request.Value != nil || it.reason != "") {
			return fmt.Errorf("item %d is forgotten, and still keeps %+v", i, it.request)
		}
	}
	c := q.counts
	if held[Waiting] != c.Waiting || held[InFlight] != c.InFlight || held[Dead] != q.dead.len || held[None] != len(q.free) || ids != len(q.ids) {
		return fmt.Errorf("held %v, %d dead letters, %d free, %d ids; counted %+v", held, q.dead.len, len(q.free), len(q.ids), c)
	}
	all := map[string]*heap{"later": &q.later, "deadlines": &q.deadlines, "heads": &q.hosts.heads}
	for _, h := range q.hosts.all {
		all["host "+h.name], all["aside of "+h.name] = &h.ready, &h.aside
		if err := q.verifyHost(h, waiting[h]); err != nil {
			return fmt.Errorf("host %q: %w", h.name, err)
		}
	}
	if live := len(q.hosts.all) - len(q.hosts.free); len(q.hosts.names) != live {
		return fmt.Errorf("%d names of %d hosts", len(q.hosts.names), live)
	}
	for name, h := range all {
		for n := range h.entries {
			e := &h.entries[n]
			if int(h.spots.of[e.index]) != n {
				return fmt.Errorf("%s: entry %d thinks it is at %d", name, n, h.spots.of[e.index])
			}
			if n > 0 && e.before(&h.entries[(n-1)/4]) {
				return fmt.Errorf("%s: entry %d is before its parent", name, n)
			}
		}
	}
	return nil
}

func (q *Queue) verifyHost(h *host, waiting int) error {
	if h.waiting != waiting {
		return fmt.Errorf("%d wait, counted %d", waiting, h.waiting)
	}
	if known := h.waiting > 0 || h.held || h.alone || h.index == 0; known != (q.hosts.names[h.name] == h) {
		return fmt.Errorf("known %v: %+v", !known, h)
	}
	spot := q.hosts.heads.spots.of[h.index]
	all := slices.Clone(h.ready.entries)
	if !h.alone {
		all = append(all, h.aside.entries...)
	}
	if leads := !h.held && len(all) > 0; leads != (spot >= 0) {
		return fmt.Errorf("held %v, %d ready, among the heads at %d", h.held, len(all), spot)
	} else if leads {
		e, first := q.hosts.heads.entries[spot], slices.MinFunc(all, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
		})
		if e.at != first.at || e.seq != first.seq {
			return fmt.Errorf("stands for %v, its first is %v", e, first)
		}
	}
	return nil
}

// Places returns for how many requests there is a place, and for how many hosts that have a name.
func (q *Queue) Places() (requests, hosts int) { return len(q.items), len(q.hosts.all) - 1 }

// LastGeneration has the next request that ends be the last of its place's generations.
func (q *Queue) LastGeneration(t Ticket) Ticket {
	q.items[t.index].generation = math.MaxUint32
	return Ticket{t.index, math.MaxUint32}
}
