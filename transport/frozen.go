package transport

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
)

// A partition that nobody uses is frozen: what its server still counts, what the server said and
// how long a pause lasts stay in some 200 bytes until nothing of it counts. The next request thaws
// it. So Config.MaxPartitions and Config.Idle bound the partitions at hand, and are no promise
// about windows. Config.MaxFrozen bounds the frozen ones: beyond it, new partitions are refused,
// and no window is forgotten (decision 51).

// ErrFull: what still counts of idle partitions takes all of Config.MaxFrozen, and the request is
// of a partition that is new, so it was not sent. The Error that wraps it says when the first of
// the idle ones ends.
var ErrFull = errors.New("transport: no room for one more partition")

const defaultMaxFrozen = 64 << 20

// remembered is what a frozen partition needs besides bytes.
type remembered struct {
	node   *node                // its memory cannot be written, so it stays as it is
	client *Transport           // of a client: a Transport that makes its node again
	made   func() limit.Limiter // of a client: makes its limiter again
}

// unknownWindow is how long something is kept that nobody knows the end of.
const unknownWindow = 24 * time.Hour

// wholeSize is about how much a node takes that stays as it is.
const wholeSize = 5 << 10

// packed returns a partition as a name for a FrozenStore. It is shorter than eight strings.
func (p Partition) packed() string {
	b := make([]byte, 0, 96)
	for _, f := range [...]string{string(p.Scope), p.Target, p.Host, p.Key, p.Model, p.Resource, p.Route, p.Client} {
		b = append(binary.AppendUvarint(b, uint64(len(f))), f...)
	}
	return string(b)
}

// unpacked returns the partition of a name.
func unpacked(name string) (p Partition) {
	b := []byte(name)
	var scope string
	for _, f := range [...]*string{&scope, &p.Target, &p.Host, &p.Key, &p.Model, &p.Resource, &p.Route, &p.Client} {
		n, size := binary.Uvarint(b)
		*f = string(b[size : size+int(n)])
		b = b[size+int(n):]
	}
	p.Scope = provider.Scope(scope)
	return p
}

// cold is the frozen partitions of a Transport, or the frozen clients of Clients. The lock of its
// owner guards it.
type cold struct {
	*keyring.FrozenStore[remembered]
	refused int64
}

func newCold(most int64) cold { return cold{FrozenStore: keyring.NewFrozenStore[remembered](most)} }

// at returns the present instant on the Group's scale.
func (t *Transport) at() mono.Time { return mono.Of(t.group.Time(0), time.Now()) }

// freezeLocked keeps what the nodes of a leaf remember that no other leaf has.
func (t *Transport) freezeLocked(l *leaf, n *node) {
	// it counts elsewhere now
	carried := l.joined() && n.in().Key == l.partition.Key && n.in().Key != ""
	if !t.retired.Load() && !carried {
		t.cold.put(n, nil)
	}
}

// put freezes a node. made makes its limiter again, for a client.
func (c *cold) put(n *node, made func() limit.Limiter) {
	t := n.t
	var m keyring.FrozenMemory[remembered]
	var now mono.Time
	t.group.Update(func(at mono.Time) {
		now = at
		m = n.memory(now)
	})
	if made != nil && m.Whole == nil {
		m.Whole, m.Size = &remembered{client: t, made: made}, 32
	}
	c.Put(now, n.in().packed(), m)
	if c.Warns() {
		t.log.Warn("what still counts of idle partitions takes most of MaxFrozen; beyond it, new partitions are refused",
			"partitions", c.Len(), "bytes", c.Bytes(), "of", c.Most())
	}
}

// memory returns what a node remembers. It is idle, and the Group's lock is held.
func (n *node) memory(now mono.Time) (m keyring.FrozenMemory[remembered]) {
	idle, ok := n.stack.Idle(now)
	if !ok { // a request that nobody counts as active any more: an answer that is still read, or the loser of two copies
		idle.Counts = now.Add(unknownWindow)
	}
	m.Counts = idle.Counts
	if ok && n.t.config.Share != nil && limit.Keeps(n.stack.Own()) != nil {
		m.Counts = idle.Said // the store of the shared limits has the rest
	} else if idle.Knows || n.said != nil && n.settings().Adopt != nil {
		m.Useful = max(m.Counts, now.Add(n.settings().Idle))
	}
	away := n.t.choice.Load().isAway(*n.in())
	if away { // another limit may need more than counts in that of today
		m.Useful = max(m.Counts, now.Add(n.settings().Idle))
	}
	if idle.State == nil || away {
		m.Whole, m.Size = &remembered{node: n}, wholeSize
		return m
	}
	why := byte(1 + slices.Index(provider.Refusals(), n.refusal))
	m.State = string(append(idle.State, why))
	return m
}

// revive makes a node that continues from a memory. A memory that does not fit the limit of today
// keeps requests away for as long as it counts.
func (t *Transport) revive(p Partition, own limit.Limiter, m *keyring.FrozenMemory[remembered]) (*node, error) {
	n, err := t.bareNode(p, own)
	if err != nil {
		return nil, err
	}
	last := len(m.State) - 1
	fits, err := n.stack.Revive([]byte(m.State[:last]))
	t.group.Update(func(now mono.Time) {
		if why := int(m.State[last]); why > 0 {
			n.refusal = provider.Refusals()[why-1]
		}
		if p, on := n.stack.Paused(now); on {
			n.shutIf(p.Next.Sub(now) > n.settings().MaxRetryAfter)
		}
		if err != nil || !fits {
			n.stack.Withhold(now, m.Counts)
		}
	})
	if err != nil || !fits {
		t.log.Warn("the limits of an idle partition are of another kind now, so it waits until nothing counts", "partition",
			p, "until", t.group.Time(m.Counts))
	}
	return n, nil
}

// bring returns the node of a partition that has none: a frozen one, or a new one. full means that
// there is no room for a new one that counts.
func (c *cold) bring(t *Transport, p Partition, full bool, made func() (limit.Limiter, error)) (*node, error) {
	name := p.packed()
	m, was := c.Take(name)
	if was && m.Whole != nil && m.Whole.node != nil {
		return m.Whole.node, m.Whole.node.join()
	}
	n, err := c.thaw(t, p, full && !was, made, &m)
	if err == nil {
		return n, n.join()
	}
	if was {
		c.Put(t.at(), name, m)
	}
	return nil, err
}

func (c *cold) thaw(t *Transport, p Partition, full bool, made func() (limit.Limiter, error),
	m *keyring.FrozenMemory[remembered]) (*node, error) {
	own, err := made()
	switch {
	case err != nil:
		return nil, err
	case full && (own != nil || t.slowAt(p)):
		c.refused++
		first, _ := c.Full(t.at())
		return nil, &Error{Partition: p, Ready: t.group.Time(first), Err: ErrFull}
	}
	if m.State == "" {
		return t.newNode(p, own)
	}
	if err := t.fills(p, own); err != nil {
		return nil, err
	}
	return t.revive(p, own, m)
}

// change calls f for the limiters of frozen partitions. limits makes the limiter of one, as it is
// configured now.
func (c *cold) change(now mono.Time, t *Transport, limits func(p Partition) limit.Limiter,
	f func(now mono.Time, p Partition, l limit.Limiter)) {
	c.Each(now, func(name string, m keyring.FrozenMemory[remembered]) keyring.FrozenMemory[remembered] {
		p := unpacked(name)
		n, err := c.melt(t, p, limits, &m)
		if err != nil || n == nil || n.stack.Own() == nil {
			return m
		}
		n.t.group.Update(func(now mono.Time) { // a request of it may be in flight
			own := n.stack.Own()
			f(now, p, own)
			n.stack.Follow(now)
			n.weigh(own)
			m = n.again(now, m.Whole)
		}, n.limits()...)
		return m
	})
}

// limits returns the limit of a node that has one in the Group.
func (n *node) limits() (all []*paceline.Limit) {
	if n.limit != nil {
		all = append(all, n.limit)
	}
	return all
}

// melt returns the node of a memory, for a moment; nil: it has none.
func (c *cold) melt(t *Transport, p Partition, limits func(p Partition) limit.Limiter,
	m *keyring.FrozenMemory[remembered]) (*node, error) {
	var own limit.Limiter
	switch w := m.Whole; {
	case w != nil && w.node != nil:
		return w.node, nil
	case w != nil:
		t, own = w.client, w.made()
	case limits != nil:
		own = limits(p)
	}
	return t.revive(p, own, m)
}

// again returns the memory of a node that melted for a moment.
func (n *node) again(now mono.Time, was *remembered) (m keyring.FrozenMemory[remembered]) {
	m = n.memory(now)
	if m.Whole == nil && was != nil && was.made != nil {
		m.Whole, m.Size = was, 32
	}
	return m
}

// lift ends the pause of a frozen partition, and reports whether there was one.
func (c *cold) lift(t *Transport, p Partition, limits func(p Partition) limit.Limiter) (lifted bool) {
	name := p.packed()
	m, was := c.Take(name)
	if !was {
		return false
	}
	if n, err := c.melt(t, p, limits, &m); err == nil {
		n.t.group.Update(func(now mono.Time) {
			_, lifted = n.stack.Paused(now)
			n.stack.Lift(now)
			n.shutIf(false)
			m = n.again(now, m.Whole)
		}, n.limits()...)
	}
	c.Put(t.at(), name, m)
	return lifted
}

// made makes the limits of a partition, as they are configured now; nil: there are none.
func (t *Transport) made(p Partition) limit.Limiter {
	limits := t.limitsAt(&t.latest.Load().config, p)
	if limits == nil {
		return nil
	}
	return t.shareOf(p, func() limit.Limiter { return limits(p) })
}

// roomLocked makes room for one more leaf. full means that there is no room for what the leaf idle
// for longest remembers. That is the victim then, which goes only for a leaf that is known.
func (t *Transport) roomLocked(now time.Duration) (victim *leaf, full bool) {
	over := len(t.leaves) >= t.config.MaxPartitions
	if _, full = t.cold.Full(t.at()); full && !over {
		return nil, false
	}
	const look = 8 // the most that are examined: a bounded price
	oldest := t.recent.root.prev
	for i := 0; i < look && oldest != &t.recent.root; i++ {
		l := oldest
		oldest = oldest.prev
		idle := now - l.used
		switch {
		case l.active.Load() > 0 || l.pendingLocked(): // it is in use; those behind it may not be
			l.used = now
			t.recent.front(l)
		case over && full && t.remembersLocked(l):
			return l, true
		case over || idle >= t.config.Idle && len(t.pausesOf(l)) == 0:
			t.dropLocked(l)
			over = false
		case idle < t.config.Idle:
			return nil, false // the others were used later
		}
	}
	return nil, false
}

// pendingLocked reports whether a leaf has usage of a newcomer whose place is not known yet.
func (l *leaf) pendingLocked() bool {
	return l.newcomer.shares() && l.moved.Load() == nil && len(l.past) > 0
}

// remembersLocked reports whether something would be lost with a leaf.
func (t *Transport) remembersLocked(l *leaf) (remembers bool) {
	t.group.Update(func(now mono.Time) {
		for n := range l.partitions {
			idle, ok := n.stack.Idle(now)
			remembers = remembers || n.leaves == 1 && (!ok || idle.Counts > now)
		}
	})
	return remembers
}

// frozenState returns what is frozen, for Snapshots.
func (t *Transport) frozenState() observe.FrozenState {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.clients
	k.mu.Lock()
	defer k.mu.Unlock()
	return observe.FrozenState{
		Partitions: t.cold.Len(), Bytes: t.cold.Bytes(), Most: t.cold.Most(),
		Clients: k.cold.Len(), ClientBytes: k.cold.Bytes(), ClientMost: k.cold.Most(),
		Refused: t.cold.refused + k.cold.refused,
	}
}
