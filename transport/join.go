package transport

import (
	"cmp"
	"math"
	"net/http"
	"sort"
	"sync/atomic"

	"github.com/paceline-go/paceline"
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
	left, home, err := t.namedLocked(key, organization, resp.StatusCode < 300)
	t.mu.Unlock()
	// Not earlier: other answers of the key, at the same time, must not be settled before its owner
	// is known.
	l.belongs.Store(name != "")
	l.unknown.Store(false)
	left()
	if err != nil {
		t.log.Error("keys share limits, and are told apart", "partition", key, "organization", organization, "err", err)
	} else if home != "" {
		t.log.Info("keys share limits", "partition", key, "with", home, "organization", organization)
	}
}

// mostKeys is of how many keys the owner is remembered, at some 250 bytes each. It takes a quarter of
// MaxFrozen, besides. A key beyond that counts by itself until its answer names the owner.
func (t *Transport) mostKeys() int {
	return max(t.config.MaxPartitions, int(min(t.config.MaxFrozen/1024, math.MaxInt32)))
}

// carried is what still counts for a key when it joins another. The key's usage of each limit
// counts as one request. That is in flight until the last earlier request is answered.
type carried struct {
	t     *Transport
	from  []*leaf
	to    []*leaf
	pairs []pairOf
	left  atomic.Int64 // how many leaves of the old limits have requests under way
	// parted means that a newcomer has left, and each of its requests counts in its new limits by
	// itself: see newcomer.go.
	parted bool
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

// moveLocked moves the requests of a key that counted by itself to the limits of another.
func (t *Transport) moveLocked(key Partition, home string) error {
	if home == key.Key {
		return nil
	}
	m := &carried{t: t}
	for p, l := range t.leaves {
		if p.Host == key.Host && p.Key == key.Key {
			m.from = append(m.from, l)
		}
	}
	seen := map[*node]bool{}
	for _, l := range m.from {
		p := l.partition
		p.Key = home
		to := t.leaves[p]
		if to == nil {
			var err error
			if to, err = t.newLeafLocked(p, nil, false); err != nil {
				for _, to := range m.to {
					to.unuse()
				}
				return err
			}
			to.used = t.now()
			t.recent.front(to)
		}
		to.active.Add(1) // to prevent that it is forgotten meanwhile
		m.to = append(m.to, to)
		for i, n := range l.nodes[:l.count] {
			if other := to.nodes[i]; other != n && !seen[n] {
				seen[n] = true
				m.pairs = append(m.pairs, pairOf{from: n, to: other})
			}
		}
	}
	m.left.Store(int64(len(m.from)))
	for _, l := range m.from {
		l.active.Add(1)
		l.moved.Store(m)
	}
	m.begin()
	for _, l := range m.from {
		l.unuse()
	}
	return nil
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

// end settles the carried usage with its final amount.
func (m *carried) end() {
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
		l.unuse()
	}
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
	if t := l.server.t; l.unuse() && t.retired.Load() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.sweepLocked()
	}
}

// unuse is release for a caller that may have the Transport's lock. It reports whether the leaf is
// unused now.
func (l *leaf) unuse() bool {
	if l.active.Add(-1) > 0 {
		return false
	}
	m := l.moved.Load()
	switch {
	case m == nil || l.quiet.Swap(true):
	case m.parted:
		l.forget()
	case m.left.Add(-1) == 0:
		m.end()
	}
	return true
}

// update is Group.Update for changes at nodes.
func update(j *paceline.Group, f func(now mono.Time), changed []*node, limits ...*paceline.Limit) {
	for _, n := range changed {
		limits = append(limits, n.limit)
	}
	j.Update(f, limits...)
}
