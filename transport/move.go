package transport

import (
	"slices"
	"sort"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// carried is what still counts for a key when it moves to the limits of another. The key's usage of
// each limit counts as one request. That is in flight until the last earlier request is answered.
type carried struct {
	t     *Transport
	to    []*leaf
	pairs []pairOf
	left  int // how many leaves of the old limits have requests under way; guarded by the Transport's lock
}

type pairOf struct {
	from, to *node
	sent     *limit.Sent
	parts    []partOf
	ends     []func(now mono.Time) // these end the requests that count as they produce
}

// partOf is what is carried to one of several limiters, beyond what all of them get. Usage that
// still counts in the day may no longer count in the minute, and some limiters count requests only.
type partOf struct {
	index int // of the limiter; -1: one more request in flight, which costs nothing
	to    limit.Limiter
	sent  *limit.Sent
}

// moveLocked takes a key to the limits of a key, which may be itself: its requests that wait go
// there, and what it sent counts there. Of a newcomer in another key's limits that is request by
// request. For any other key it is the usage of its limits.
func (t *Transport) moveLocked(o *owners, key Partition, home string) {
	g := o.newcomers[key.Key]
	delete(o.newcomers, key.Key)
	m := &carried{t: t}
	var from []*leaf
	for p, l := range t.leaves {
		if p.Host == key.Host && p.Key == key.Key && l.moved.Load() == nil && (l.newcomer.shares() || home != key.Key) {
			from = append(from, l)
		}
	}
	for _, l := range from {
		l.active.Add(1)
		if l.newcomer.shares() { // the next leaf of this partition has other limits
			t.recent.remove(l)
			delete(t.leaves, l.partition)
		} else {
			m.left++
		}
		l.moved.Store(m)
	}
	for _, l := range from {
		to, err := t.leafLocked(l.partition, home)
		switch {
		case err != nil:
			t.log.Error("what a key has sent is not counted", "partition", l.partition, "err", err)
		case l.newcomer.shares():
			t.departLocked(l, to)
		default:
			m.joinLocked(l, to)
		}
	}
	m.begin()
	if g != nil {
		t.group.Update(func(mono.Time) { g.door.single, g.door.closed = false, g.shares() || home != key.Key }, g.limit)
	}
	for _, l := range from {
		l.unuseLocked()
	}
}

// joinLocked has the limits of a leaf count in those of another.
func (m *carried) joinLocked(l, to *leaf) {
	to.active.Add(1) // to prevent that it is forgotten meanwhile
	m.to = append(m.to, to)
	for i, n := range l.nodes[:l.count] {
		if other := to.nodes[i]; other != n && !slices.ContainsFunc(m.pairs, func(p pairOf) bool { return p.from == n }) {
			m.pairs = append(m.pairs, pairOf{from: n, to: other})
		}
	}
}

// begin makes the usage of the old limits count in the new ones, and moves the requests that wait
// at the old ones. A request that got a permit there before is part of that usage. One that gets a
// permit there afterwards sees that its key has moved.
func (m *carried) begin() {
	var changed []*node
	for i := range m.pairs {
		changed = append(changed, m.pairs[i].from, m.pairs[i].to)
	}
	update(m.t.group, func(now mono.Time) {
		for i := range m.pairs {
			p := &m.pairs[i]
			p.carry(m.t, now)
			p.from.stack.Close()
		}
	}, changed)
}

// endLocked settles the carried usage with its final amount.
func (m *carried) endLocked() {
	var changed []*node
	for i := range m.pairs {
		changed = append(changed, m.pairs[i].to)
	}
	update(m.t.group, func(now mono.Time) {
		for i := range m.pairs {
			m.pairs[i].settle(now)
		}
	}, changed)
	for _, l := range m.to {
		l.unuseLocked()
	}
}

// admit makes a request without a permit count in a limiter, within Group.Update.
func (t *Transport) admit(l limit.Limiter, now mono.Time, cost limit.Cost) *limit.Sent {
	s := &limit.Sent{At: now, Number: t.group.Number(), Cost: cost}
	l.Admit(s)
	return s
}

// carry makes the usage of the old limiter count in the new one.
func (p *pairOf) carry(t *Transport, now mono.Time) {
	c := used(p.from.stack.Own(), now)
	p.sent = t.admit(p.to.stack, now, c)
	for i, to := range limit.Parts(p.to.stack.Own()) {
		p.parts = append(p.parts, partOf{i, to, t.admit(to, now, p.beyond(i, &c, now))})
		if to, ok := to.(*limit.Produced); ok {
			for _, old := range p.old(i) {
				if old, ok := old.(*limit.Produced); ok {
					p.ends = append(p.ends, old.CarryTo(now, to))
				}
			}
			continue
		}
		for range p.open(i) - 2 { // these two requests are in flight already
			p.parts = append(p.parts, partOf{-1, to, t.admit(to, now, limit.Cost{})})
		}
	}
}

// settle replaces the carried usage by its final amount.
func (p *pairOf) settle(now mono.Time) {
	c := used(p.from.stack.Own(), now)
	for i := range p.parts {
		part, o := &p.parts[i], &limit.Outcome{Result: limit.Unsent}
		if part.index >= 0 {
			o = &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: p.beyond(part.index, &c, now)}
		}
		part.to.Settle(now, part.sent, o)
	}
	for _, end := range p.ends {
		end(now)
	}
	p.to.stack.Settle(now, p.sent, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: c})
}

// old returns the parts of the old limiter that part i of the new one replaces. If the two are not
// made of the same parts, it is the whole old limiter.
func (p *pairOf) old(i int) []limit.Limiter {
	parts := limit.Parts(p.from.stack.Own())
	if len(parts) == len(limit.Parts(p.to.stack.Own())) {
		return parts[i : i+1]
	}
	return parts
}

// beyond returns the usage of part i that is not in c.
func (p *pairOf) beyond(i int, c *limit.Cost, now mono.Time) (more limit.Cost) {
	for _, part := range p.old(i) {
		for u, n := range used(part, now) {
			more[u] = max(more[u], n-c[u])
		}
	}
	return more
}

// open returns how many requests of part i are in flight, for limits that count each as one,
// whatever it costs.
func (p *pairOf) open(i int) (n int) {
	for _, part := range p.old(i) {
		n = max(n, limit.Unsettled(part))
	}
	return n
}

// used returns, in each unit, how much of a limiter's limits is not available at once, because of
// recent usage or requests in flight.
func used(l limit.Limiter, now mono.Time) (c limit.Cost) {
	if l == nil {
		return c
	}
	for u := range c {
		alone := func(n int64) (c limit.Cost) { c[u] = n; return c }
		ever, counts := limit.Most(l, now, limit.Unit(u))
		if !counts {
			continue
		}
		room := sort.Search(int(ever), func(n int) bool { return l.Ready(now, alone(int64(n)+1)) > now })
		c[u] = ever - int64(room)
	}
	return c
}
