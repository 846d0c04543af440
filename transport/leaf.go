package transport

import (
	"errors"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

// The scopes of a request, narrowest first.
var scopes = [...]quota.Scope{quota.Route, quota.Model, quota.Key, quota.IP}

const maxNodes = len(scopes) + 1 // and what all requests share

// leaf is one combination of host, key, model and route: the limits that its requests count in.
type leaf struct {
	partition Partition
	nodes     [maxNodes]*node // narrowest first
	count     int
	server    *node // of them, the host's
	room      *room // nil: none
	lane      *paceline.Lane
	active    atomic.Int64 // requests under way
	answers   answers      // how long they took

	other   atomic.Bool             // it is to be said that its model is not the preset's
	belongs atomic.Bool             // whose key this is has been told
	moved   atomic.Pointer[carried] // its key has joined another: nobody is to wait here
	quiet   atomic.Bool             // and the last one that went from here has ended

	// Guarded by the Transport's lock:
	used       time.Duration // when it was last asked for
	prev, next *leaf         // in the ring
}

// at returns the index of the node of a scope, or that of the key where the request has no such scope.
func (l *leaf) at(s quota.Scope) int {
	if s == quota.All {
		s = quota.IP // a server speaks for itself alone
	}
	key := 0
	for i, n := range l.nodes[:l.count] {
		switch n.partition.Scope {
		case s:
			return i
		case quota.Key:
			key = i
		}
	}
	return key
}

// has returns what tells whether a scope is that of node i.
func (l *leaf) has(i int) func(quota.Scope) bool {
	return func(s quota.Scope) bool { return l.at(s) == i }
}

// index returns the node that has a limit, -1 if it is the way to the host.
func (l *leaf) index(m *paceline.Limit) int {
	for i, n := range l.nodes[:l.count] {
		if n.limit == m {
			return i
		}
	}
	return -1
}

// node returns the one whose limit stood in the way.
func (l *leaf) node(err error) *node {
	if w, ok := errors.AsType[*paceline.WaitError](err); ok && w.Limit != nil {
		if i := l.index(w.Limit); i >= 0 {
			return l.nodes[i]
		}
		return l.server
	}
	return l.nodes[0]
}

// look returns why nobody is to stand in line.
func (l *leaf) look() *Error {
	for _, n := range l.nodes[:l.count] {
		if n.shut.Load() {
			if err := n.look(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ring is the leaves in the order of their last use, the first after the root is the latest.
type ring struct{ root leaf }

func (r *ring) init() { r.root.prev, r.root.next = &r.root, &r.root }

func (r *ring) front(l *leaf) {
	if l.next != nil {
		l.prev.next, l.next.prev = l.next, l.prev
	}
	l.prev, l.next = &r.root, r.root.next
	l.prev.next, l.next.prev = l, l
}

func (r *ring) remove(l *leaf) {
	l.prev.next, l.next.prev = l.next, l.prev
	l.prev, l.next = nil, nil
}

// find returns the leaf of a partition, which is active until the caller says otherwise.
func (t *Transport) find(p Partition) (*leaf, error) {
	p.Scope = ""
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	p = t.sharedLocked(p)
	if len(t.joined) > 0 {
		p.Key = t.homeLocked(p)
	}
	l := t.leaves[p]
	if l == nil {
		t.forgetLocked(now)
		var err error
		if l, err = t.newLeafLocked(p.own()); err != nil {
			return nil, err
		}
	}
	l.active.Add(1)
	l.used = now
	t.recent.front(l)
	return l, nil
}

// maxOthers is how many models that are not the preset's are named.
const maxOthers = 100

func (t *Transport) newLeafLocked(p Partition) (*leaf, error) {
	l := &leaf{partition: p}
	add := func(n *node) {
		l.nodes[l.count] = n
		l.count++
	}
	for _, s := range scopes {
		q, ok := p.at(s)
		if !ok && (s != quota.Model || t.config.Limit == nil) {
			continue
		}
		n := t.nodes[q]
		if n == nil {
			var own limit.Limiter
			if t.config.Limit != nil {
				own = t.config.Limit(q)
			}
			t.checkOwnLocked(q, own, l.nodes[:l.count])
			var err error
			if n, err = t.newNode(q, own); err != nil {
				return nil, err
			}
		}
		add(n)
	}
	if t.shared != nil {
		add(t.shared)
	}
	var way []*paceline.Limit
	for _, n := range l.nodes[:l.count] {
		way = append(way, n.limit)
		if n != t.shared {
			t.nodes[n.partition] = n
			if own := n.guard.Own(); canCompare(own) {
				t.owners[own] = n
			}
			n.leaves++
		}
	}
	l.server = l.nodes[l.at(quota.IP)]
	way = append(way, l.server.way)
	if t.config.Adaptive != nil {
		l.room = t.enterLocked(l)
		way = append(way, l.room.limit)
	}
	if m := p.Model; m != "" && !t.preset.Fits(m) && !t.others[m] && len(t.others) < maxOthers {
		t.others[m] = true
		l.other.Store(true)
	}
	l.lane = t.junction.Lane(paceline.LaneConfig{}, way)
	t.leaves[p] = l
	return l, nil
}

// checkOwnLocked panics if a limiter is another partition's already: that one would never hear of this one's requests.
func (t *Transport) checkOwnLocked(p Partition, own limit.Limiter, also []*node) {
	if !canCompare(own) {
		return
	}
	if t.shared != nil && t.shared.guard.Own() == own {
		panic("transport: Limit returns the Limiter that all requests share")
	}
	other := t.owners[own]
	for _, n := range also {
		if n.guard.Own() == own {
			other = n
		}
	}
	if other != nil {
		panic("transport: Limit returns one limiter for " + other.partition.String() + " and for " + p.String())
	}
}

func canCompare(l limit.Limiter) bool { return l != nil && reflect.ValueOf(l).Comparable() }

// forgetLocked makes room for one more leaf: it forgets what has been idle for long, and if that is not enough what has
// been idle for longest.
func (t *Transport) forgetLocked(now time.Duration) {
	over := len(t.leaves) >= t.config.MaxPartitions
	const look = 8 // at most so many are looked at: a bounded price
	oldest := t.recent.root.prev
	for i := 0; i < look && oldest != &t.recent.root; i++ {
		l := oldest
		oldest = oldest.prev
		idle := now - l.used
		switch {
		case l.active.Load() > 0: // it is in use: it does not hide those behind it
			l.used = now
			t.recent.front(l)
		case over || idle >= t.config.Idle && len(t.pausesOf(l)) == 0:
			t.dropLocked(l)
			over = false
		case idle < t.config.Idle:
			return // so are the others
		}
	}
}

func (t *Transport) dropLocked(l *leaf) {
	t.recent.remove(l)
	delete(t.leaves, l.partition)
	l.lane.Retire()
	l.leaveLocked()
	for _, n := range l.nodes[:l.count] {
		if n == t.shared {
			continue
		}
		if n.leaves--; n.leaves == 0 {
			delete(t.nodes, n.partition)
			if own := n.guard.Own(); canCompare(own) {
				delete(t.owners, own)
			}
		}
	}
}
