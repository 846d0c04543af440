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
	held, waiting := map[State]int{}, map[*line]int{}
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
		if waits != (it.line != nil) || waits != (q.later.spots.of[i] >= 0) {
			return fmt.Errorf("item %d is %v: host %v, spot %d", i, it.state, it.line, q.later.spots.of[i])
		}
		if waits {
			waiting[it.line]++
			h := &it.line.ready
			switch {
			case it.later:
				h = &q.later
			case it.aside:
				h = &it.line.aside
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
	all := map[string]*heap{"later": &q.later, "deadlines": &q.deadlines}
	inParts := map[*part]int{}
	for _, h := range q.hosts.all {
		sum := 0
		for _, l := range h.lines {
			name := h.name + " " + l.part.name
			all["host "+name], all["aside of "+name] = &l.ready, &l.aside
			if err := q.verifyLine(l, waiting[l]); err != nil {
				return fmt.Errorf("host %q: %w", name, err)
			}
			sum += l.waiting
			inParts[l.part] += l.waiting
		}
		if known := h.waiting > 0 || h.held || h.alone || h.index == 0; sum != h.waiting || known != (q.hosts.names[h.name] == h) {
			return fmt.Errorf("host %q: %d wait, known %v: %+v", h.name, sum, !known, h)
		}
	}
	for i, p := range q.hosts.parts {
		all[fmt.Sprint("heads of ", i, p.name)] = &p.heads
		if p.waiting != inParts[p] || q.hosts.of[p.name] != p {
			return fmt.Errorf("part %q: %d wait, counted %d", p.name, inParts[p], p.waiting)
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

func (q *Queue) verifyLine(l *line, waiting int) error {
	if l.waiting != waiting {
		return fmt.Errorf("%d wait, counted %d", waiting, l.waiting)
	}
	spot := q.hosts.spots.of[l.index]
	all := slices.Clone(l.ready.entries)
	if !l.host.alone {
		all = append(all, l.aside.entries...)
	}
	if leads := !l.host.held && len(all) > 0; leads != (spot >= 0) {
		return fmt.Errorf("held %v, %d ready, among the heads at %d", l.host.held, len(all), spot)
	} else if leads {
		e, first := l.part.heads.entries[spot], slices.MinFunc(all, func(a, b entry) int {
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
