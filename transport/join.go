package transport

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"sort"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// Keys of one organization count in the same limits, and models of one family do. A provider
// publishes its families: find gives their models one name. Only its answers show the organization
// of a key. The counts of one key are then carried over to the other.

// sharedLocked returns p with the model's name for limits. For a gateway, the models count as those
// of the provider that shares the most.
func (t *Transport) sharedLocked(p Partition) Partition {
	if p.Model == "" {
		return p
	}
	host := t.config.Provider
	if host == nil {
		if n := t.nodes[Partition{Scope: provider.IP, Host: p.Host}]; n != nil {
			host = n.provider
		} else if d, ok := provider.ForHost(p.Host); ok {
			host = d
		}
	}
	vendor := cmp.Or(t.publisher.Name, "anthropic")
	if host != nil {
		vendor = host.Name()
	}
	p.Model = provider.SharedModel(vendor, p.Model)
	return p
}

// partition returns what a request counts in, without the model in its body, and whether the
// configuration names the key's owner.
func (c *call) partition() (p Partition, said bool) {
	t, r := c.t, c.req
	p = t.config.Partition(r)
	if t.config.Organization != nil {
		if name := t.config.Organization(r); name != "" {
			p.Key, said = name, true
		}
	}
	if len(t.keys) > 0 {
		p.Key = "" // the key is that of its way
	}
	p.Client = ""
	if t.config.Client != nil {
		c.who = t.config.Client(r)
		p.Client = c.who.Name
	}
	return p, said
}

// belongs records the owner of a key, by its answer.
func (t *Transport) belongs(l *leaf, resp *http.Response) {
	k := l.server.known.Load()
	if l.belongs.Load() || l.partition.Key == "" || k == nil || k.row.Organization == "" {
		return
	}
	name := resp.Header.Get(k.row.Organization)
	if name == "" && (resp.StatusCode >= 500 || !l.unknown.Load()) {
		return
	}
	key := Partition{Host: l.partition.Host, Key: l.partition.Key}
	organization := Partition{Host: l.partition.Host, Key: name}.bounded().own().Key
	t.mu.Lock()
	home := t.namedLocked(key, organization, resp.StatusCode < 300)
	t.mu.Unlock()
	// Not earlier: other answers of the key, at the same time, must not be settled before its owner
	// is known.
	l.belongs.Store(name != "")
	l.unknown.Store(false)
	if home != key.Key {
		t.log.Info("keys share limits", "partition", key, "with", home, "organization", organization)
	}
}

// namedLocked takes in an answer's statement about the owner of its key: the organization, or
// nothing. It returns the key in whose limits this one counts.
func (t *Transport) namedLocked(key Partition, name string, served bool) (home string) {
	o := t.owners[key.Host]
	if o == nil && name != "" {
		o = t.ownersLocked(key.Host)
	}
	if o == nil {
		return key.Key
	}
	switch _, known := o.Known(key.Key); {
	case name == "":
		t.followLocked(o, key.Host, o.Unnamed(key.Key, served))
	case !o.Meet(key.Key):
		t.tooManyKeys()
	default:
		if known { // if it was not met, it counted by itself
			o.Alone(key.Key)
		}
		t.followLocked(o, key.Host, o.Named(key.Key, name))
	}
	return o.Home(key.Key)
}

// followLocked makes keys count where they belong by now.
func (t *Transport) followLocked(o *owners, host string, moves []keyring.Move) {
	for i := 0; i < len(moves); i++ {
		key, g, in := moves[i].Key, o.newcomers[moves[i].Key], o.CountsIn(moves[i].Key)
		switch _, known := o.Known(key); {
		case g == nil && !known: // it counts by itself, or has not come yet
		case known || g.shares() && len(in) == 1:
			t.moveLocked(o, Partition{Host: host, Key: key}, in[0].Home)
		case g.shares() && in[0].Home == g.home: // it may belong elsewhere as well
			t.suspectLocked(g, in[1:])
		case g.shares():
			moves = append(moves, o.Alone(key)...)
		}
	}
}

// mostKeys is of how many keys the owner is remembered, at some 250 bytes each. It takes a quarter of
// MaxFrozen, besides. A key beyond that counts by itself until its answer names the owner.
func (t *Transport) mostKeys() int {
	return max(t.config.MaxPartitions, int(min(t.config.MaxFrozen/1024, math.MaxInt32)))
}

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

// release ends one use of a leaf.
func (l *leaf) release() {
	t := l.server.t
	if l.active.Add(-1) > 0 || l.moved.Load() == nil && !t.retired.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l.quietLocked()
	if t.retired.Load() {
		t.sweepLocked()
	}
}

// unuseLocked is release for a caller that has the Transport's lock.
func (l *leaf) unuseLocked() {
	if l.active.Add(-1) == 0 {
		l.quietLocked()
	}
}

// quietLocked notes that nothing from here is under way, which is final where the key has moved.
func (l *leaf) quietLocked() {
	m := l.moved.Load()
	if m == nil || l.quiet || l.active.Load() > 0 {
		return
	}
	l.quiet = true
	if l.newcomer.shares() {
		m.t.unlinkLocked(l)
	} else if m.left--; m.left == 0 {
		m.endLocked()
	}
}

// update is Group.Update for changes at nodes.
func update(j *paceline.Group, f func(now mono.Time), changed []*node, limits ...*paceline.Limit) {
	for _, n := range changed {
		limits = append(limits, n.limit)
	}
	j.Update(f, limits...)
}
