package scheduler

import (
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// leave sets the part of each limit that the lane leaves free.
func (a *Lane) leave(free float64) {
	free = min(max(free, 0), 1)
	if !(free > 0) { // NaN, too
		free = 0
	}
	if a.reserves {
		a.line.reserve--
	}
	a.reserve, a.reserves = free, free > 0
	if a.reserves {
		a.line.reserve++
	}
}

// leaving returns when cost may go by w at m and leave free what w leaves there, as of now, or after
// first if that is not nil. It asks m once: a share.Member fetches what it is asked for.
func (m *Limit) leaving(now mono.Time, w *Way, first, cost *limit.Cost) mono.Time {
	free := m.leaves(w)
	switch {
	case free > 0:
		return limit.ReadyLeaving(m.Limiter, now, first, *cost, free)
	case first != nil:
		return now
	}
	return m.Limiter.Ready(now, *cost)
}

// leaves returns the part of m that w leaves free. Where a ticket waits that leaves less, w leaves as
// little, and the turn decides: so a reserve makes no lane wait for ever while others want more than
// all. Of a fair limit, the front of a class stands for the class.
func (m *Limit) leaves(w *Way) float64 {
	if m.own {
		return 0
	}
	free := w.lane.reserve
	for i := 0; i < len(m.parked.all) && free > 0; i++ {
		if a := m.parked.all[i].x.lane; a.count > 0 {
			free = min(free, a.reserve)
		}
	}
	return free
}

// Reserve names the rule of which the first ticket of the lane waits only for what the lane leaves
// free. ok is false if it waits for a limit itself, or for its turn there.
func (a *Lane) Reserve(now mono.Time) (name string, ok bool) {
	on, _ := a.At()
	if on == nil || !a.reserves {
		return "", false
	}
	i := slices.IndexFunc(a.ways, func(w *Way) bool { return w.state == parked && w.at == on })
	if i < 0 {
		return "", false
	}
	w := a.ways[i]
	free, cost := on.leaves(w), w.Cost(a.First())
	if free <= 0 || on.Limiter.Ready(now, *cost) > now || on.leaving(now, w, nil, cost) <= now {
		return "", false
	}
	name = on.Rule(now).Name
	for _, u := range limit.AppendUsage(nil, on.Limiter, now) { // at this instant, no rule says that it binds
		if !u.InFlight && u.Allowed-u.Used-cost[u.Unit] < limit.Leaves(u.Allowed, free) {
			return u.Limit, true
		}
	}
	return name, true
}

// yields reports whether t, going by w, need not wait for h, which waits at m or claims it. Either h
// waits for what it leaves free, and t leaves less. Or t uses nothing of m.
func (m *Limit) yields(now mono.Time, h, w *Way, t *Ticket) bool {
	if h.lane.reserves && m.leaves(h) > w.lane.reserve {
		return true
	}
	cost := w.Cost(t)
	if m.uses(cost) {
		return false
	}
	waits := *h.Cost(h.lane.ends[0].head)
	return limit.ReadyAfter(m.Limiter, now, *cost, waits) <= m.Limiter.Ready(now, waits)
}

// everything is the units of a limiter that counts all requests, or may.
const everything = 1<<16 - 1

// uses reports whether a cost uses anything of m. Most often it uses a request.
func (m *Limit) uses(cost *limit.Cost) bool {
	return m.units&(1<<limit.Requests) != 0 && cost[limit.Requests] > 0 || m.usesAny(cost)
}

func (m *Limit) usesAny(cost *limit.Cost) bool {
	if m.units == 0 {
		m.units = units(m.Limiter)
	}
	if m.units == everything {
		return true
	}
	for u, n := range cost {
		if n > 0 && m.units>>u&1 == 1 {
			return true
		}
	}
	return false
}

// units returns the units that a limiter counts, as bits.
func units(l limit.Limiter) (bits uint16) {
	rules, ok := limit.Rules(l)
	for i := range rules {
		if rules[i].Per <= 0 { // requests in flight, or apart
			ok = false
		}
		bits |= 1 << rules[i].Unit
	}
	if !ok || bits == 0 {
		return everything
	}
	return bits
}
