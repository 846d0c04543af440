package transport

import (
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// leaf is one combination of host, key, model, route and client: the limits in which its requests
// count.
type leaf struct {
	partition Partition
	way       // its first way, and most often its only one
	more      []way
	client    *client // with Config.Client; else nil
	lane      *paceline.Lane
	active    atomic.Int64 // requests under way
	answers   answers      // how long they took

	other   atomic.Bool          // its model is not that of the preset, and that has not been logged yet
	belongs atomic.Bool          // Organization, or an answer, has named the owner of this key
	moved   atomic.Pointer[leaf] // where its requests go on; none may wait here any more
	rewayed bool                 // and only the ways to send are others; does not change after moved

	// Guarded by the Transport's lock:
	newcomer   *newcomer                   // if its key is new here and may share limits of others; does not change
	quiet      bool                        // it has moved, and the last request from here has ended
	past       keyring.Past                // requests of a newcomer in another key's limits that no answer names
	used       time.Duration               // when it was last looked up
	prev, next *leaf                       // in the ring
	asides     map[*paceline.Lane]struct{} // lanes of one request each
}

// ring has the leaves in the order of their last use: the one after the root was used last.
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

// find returns the leaf of a partition, and counts it as active; the caller must end that. who is
// its client.
func (t *Transport) find(p Partition, who *Client) (*leaf, error) {
	p.Scope = ""
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Model != "" && len(t.targets) == 0 {
		p = t.sharedLocked(p)
	}
	if o := t.owners[p.Host]; o != nil {
		if in := o.Known(p.Key); in != nil {
			p.Key = in.Home
		}
	}
	l := t.leaves[p]
	if l == nil {
		victim, full := t.roomLocked(now)
		var err error
		if l, err = t.newLeafLocked(p.own(), who, full); err != nil {
			return nil, err
		}
		if victim != nil {
			t.dropLocked(victim)
		}
	}
	if l.client != nil {
		t.clients.become(l.client, who)
	}
	l.active.Add(1)
	l.used = now
	t.recent.front(l)
	return l, nil
}

// maxOthers is how many models that the preset does not have are logged by name.
const maxOthers = 100

// newLeafLocked makes the leaf of a partition. full means that there is no room for new nodes that
// count.
func (t *Transport) newLeafLocked(p Partition, who *Client, full bool) (*leaf, error) {
	l := &leaf{partition: p}
	if err := l.takePaths(t); err != nil {
		return nil, err
	}
	if t.config.Client != nil {
		c, err := t.clients.enter(p, who, t)
		if err != nil {
			return nil, err
		}
		l.client = c
	}
	l.newcomer = t.newcomerLocked(p)
	ways := make([][]*paceline.Limit, l.ways())
	for k := range ways {
		if err := t.nodesLocked(l, k, p, full); err != nil {
			for n := range l.partitions {
				if t.nodes[*n.in()] == nil {
					t.freezeLocked(l, n)
				}
			}
			if l.client != nil {
				t.clients.leave(l.client, t.now())
			}
			return nil, err
		}
	}
	for n := range l.partitions {
		if n.leaves++; n.leaves == 1 {
			t.nodes[*n.in()] = n
			t.clients.own(n)
		}
	}
	all := make([]*way, l.ways())
	for k := range all {
		w := l.by(k)
		all[k], w.server = w, w.nodes[w.at(provider.IP)]
		if t.config.Adaptive != nil {
			t.enterLocked(l, w)
		}
		ways[k] = l.limits(w)
		if m := p.Model; !t.fits(w, p) && !t.others[m] && len(t.others) < maxOthers {
			t.others[m] = true
			l.other.Store(true)
		}
	}
	config := t.lanes(l)
	config.After, config.Classes, config.Homes = afterOf(all), classesOf(all), t.keeps()
	l.lane = t.group.Lane(config, ways...)
	t.leaves[p] = l
	return l, nil
}

// nodesLocked finds the nodes of a way of a leaf, or makes them.
func (t *Transport) nodesLocked(l *leaf, k int, p Partition, full bool) error {
	w := l.by(k)
	if l.newcomer != nil {
		p.Key = l.newcomer.home
	}
	if w.account != nil {
		p.Key = w.account.name
	}
	if w.target != nil {
		p = w.target.on(t, p)
		w.whole = p
	}
	add := func(n *node) {
		w.nodes[w.count] = n
		w.count++
		w.taught = w.taught || n.taught
	}
	for _, s := range scopes {
		q, ok := p.at(s)
		limits := t.limitsAt(&t.config, q)
		if !ok && (s != provider.Model || limits == nil) {
			continue
		}
		n := t.nodes[q]
		if n == nil && k > 0 { // a way before has made the node
			n = l.made(k, q)
		}
		if n == nil {
			var err error
			if n, err = t.cold.bring(t, q, full, func() (own limit.Limiter, err error) {
				if limits != nil {
					own = t.shareOf(q, func() limit.Limiter { return limits(q) })
				}
				t.checkOwnLocked(q, own, l)
				return own, nil
			}); err != nil {
				return err
			}
			t.restLocked(n)
			if s == provider.Key && w.account != nil {
				t.closeLocked(n, w.account)
			}
		}
		add(n)
	}
	if l.client != nil && l.client.own != nil {
		add(l.client.own)
	}
	if t.shared != nil {
		add(t.shared)
	}
	w.apart(t.usual(p))
	return nil
}

// takePaths gives a leaf its ways: those that take requests of its model.
func (l *leaf) takePaths(t *Transport) error {
	first := true
	for _, a := range t.choice.Load().paths {
		switch {
		case !a.target.takes(l.partition.Model):
		case first:
			l.path, first = a, false
		default:
			l.more = append(l.more, way{path: a})
		}
	}
	if first {
		return &Error{Partition: l.partition, Err: ErrModel}
	}
	return nil
}

// made returns the node of a partition that a way before way k has; nil: none has it.
func (l *leaf) made(k int, p Partition) *node {
	for i := range k {
		w := l.by(i)
		if at := slices.IndexFunc(w.nodes[:w.count], func(n *node) bool { return *n.in() == p }); at >= 0 {
			return w.nodes[at]
		}
	}
	return nil
}

// shareOf makes the limits of a partition, or takes the replacement of Config.Share.
func (t *Transport) shareOf(p Partition, made func() limit.Limiter) limit.Limiter {
	own := made()
	if own == nil || t.config.Share == nil {
		return own
	}
	shared := t.config.Share(p, made)
	limit.Ask(shared, func(m interface{ FailRefused() }) { m.FailRefused() })
	return shared
}

// lanes returns the configuration of its lanes.
func (t *Transport) lanes(l *leaf) paceline.LaneConfig {
	lane := paceline.LaneConfig{Told: true, Client: l.partition.Client, View: t.view, Fill: t.config.Fill}
	if l.client != nil {
		lane.Share, lane.Weight = l.client.share, t.clients.weight(l.client)
	}
	return lane
}

// limits returns all limits that a request has to pass by a way.
func (l *leaf) limits(w *way) (all []*paceline.Limit) {
	for _, n := range w.nodes[:w.count] {
		all = append(all, n.limit)
	}
	if all = append(all, w.server.way); w.room != nil {
		all = append(all, w.room.limit)
	}
	if l.newcomer != nil {
		all = append(all, l.newcomer.limit)
	}
	return all
}

// checkOwnLocked panics if a limiter already belongs to another partition, since it would miss this
// partition's requests. also is the leaf for which it is made.
func (t *Transport) checkOwnLocked(p Partition, own limit.Limiter, also *leaf) {
	if !canCompare(own) {
		return
	}
	t.clients.checkOwn(p, own)
	for k := range also.ways() { // a leaf in the making may not have all of its ways
		for _, n := range also.by(k).nodes[:also.by(k).count] {
			if n.stack.Own() == own {
				panicOwned(*n.in(), p)
			}
		}
	}
}

func canCompare(l limit.Limiter) bool { return l != nil && reflect.ValueOf(l).Comparable() }

func (t *Transport) dropLocked(l *leaf) {
	t.recent.remove(l)
	delete(t.leaves, l.partition)
	t.unlinkLocked(l)
}

// unlinkLocked removes a leaf from all that refers to it.
func (t *Transport) unlinkLocked(l *leaf) {
	t.look.forgetsLocked(l)
	l.lane.Retire()
	l.leaveLocked()
	for n := range l.partitions {
		if n.leaves--; n.leaves == 0 {
			delete(t.nodes, *n.in())
			t.clients.disown(n)
			t.freezeLocked(l, n)
		}
	}
	if l.client != nil {
		t.clients.leave(l.client, l.used)
	}
}

// leafLocked returns the leaf of a partition with another key, and makes it if it is missing.
func (t *Transport) leafLocked(p Partition, key string) (l *leaf, err error) {
	p.Key = key
	if l = t.leaves[p]; l == nil {
		if l, err = t.newLeafLocked(p, nil, false); err != nil {
			return nil, err
		}
		l.used = t.now()
		t.recent.front(l)
	}
	return l, nil
}

// release ends one use of a leaf.
func (l *leaf) release() {
	t := l.server.t
	if l.active.Add(-1) > 0 || l.moved.Load() == nil && !t.retired.Load() && !t.drains.on.Load() {
		return
	}
	defer t.drains.look()
	t.mu.Lock()
	defer t.mu.Unlock()
	l.quietLocked()
	if t.retired.Load() {
		t.sweepLocked()
	}
}

// quietLocked notes that nothing from here is under way, which is final where the key has moved.
func (l *leaf) quietLocked() {
	to := l.moved.Load()
	if to == nil || l.quiet || l.active.Load() > 0 {
		return
	}
	l.quiet = true
	l.server.t.unlinkLocked(l)
	if to.active.Add(-1) == 0 {
		to.quietLocked()
	}
}
