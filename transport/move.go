package transport

import (
	"slices"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit/mono"
)

// carried is what still counts for a key when it moves to the limits of another. The key's usage of
// each limit counts as one request. That is in flight until the last earlier request is answered.
type carried struct {
	t     *Transport
	to    []*leaf
	pairs [][2]*node            // the old and the new one of each limit
	ends  []func(now mono.Time) // these settle the usage with its final amount
	left  int                   // how many leaves of the old limits have requests under way; guarded by the Transport's lock
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
		if other := to.nodes[i]; other != n && !slices.ContainsFunc(m.pairs, func(p [2]*node) bool { return p[0] == n }) {
			m.pairs = append(m.pairs, [2]*node{n, other})
		}
	}
}

// begin makes the usage of the old limits count in the new ones, and moves the requests that wait
// at the old ones. A request that got a permit there before is part of that usage. One that gets a
// permit there afterwards sees that its key has moved.
func (m *carried) begin() {
	m.update(func(now mono.Time) {
		for _, p := range m.pairs {
			old, other := p[0].stack, p[1].stack
			m.ends = append(m.ends, keyring.Carry(now, m.t.group.Number, old.Own(), other, other.Own()))
			old.Close()
		}
	})
}

// endLocked settles the carried usage with its final amount.
func (m *carried) endLocked() {
	m.update(func(now mono.Time) {
		for _, end := range m.ends {
			end(now)
		}
	})
	for _, l := range m.to {
		l.unuseLocked()
	}
}

func (m *carried) update(f func(now mono.Time)) {
	var changed []*node
	for _, p := range m.pairs {
		changed = append(changed, p[:]...)
	}
	update(m.t.group, f, changed)
}
