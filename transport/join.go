package transport

import (
	"cmp"
	"net/http"
	"sort"
	"sync/atomic"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/quota"
)

// Keys of one organization count in the same limits, and models of one family do. Which models those are a provider publishes:
// find gives them one name. Which keys, only its answers tell: then what counts for one key is carried over to the other.

// sharedLocked returns p with the model's name for limits. A gateway's server is taken for one whose models share the most.
func (t *Transport) sharedLocked(p Partition) Partition {
	if p.Model == "" {
		return p
	}
	host := t.config.Provider
	if host == nil {
		if n := t.nodes[Partition{Scope: quota.IP, Host: p.Host}]; n != nil {
			host = n.provider
		} else if d, ok := quota.ForHost(p.Host); ok {
			host = d
		}
	}
	provider := cmp.Or(t.publisher.Name, "anthropic")
	if host != nil {
		provider = host.Name()
	}
	p.Model = quota.SharedModel(provider, p.Model)
	return p
}

// partition is what a request counts in, but for the model in its body, and whether it is said whose key it is.
func (t *Transport) partition(r *http.Request) (p Partition, said bool) {
	p = t.config.Partition(r)
	if t.config.Organization != nil {
		if name := t.config.Organization(r); name != "" {
			p.Key, said = name, true
		}
	}
	return p, said
}

// belongs takes in whose key an answer says it was asked with.
func (t *Transport) belongs(l *leaf, h http.Header) {
	k := l.server.known.Load()
	if l.belongs.Load() || l.partition.Key == "" || k == nil || k.row.Organization == "" {
		return
	}
	name := h.Get(k.row.Organization)
	if name == "" {
		return
	}
	l.belongs.Store(true)
	key := Partition{Host: l.partition.Host, Key: l.partition.Key}
	organization := Partition{Host: l.partition.Host, Key: name}.bounded().own()
	if home, err := t.join(key, organization); err != nil {
		t.log.Error("keys share limits, and are told apart", "partition", key, "organization", organization.Key, "err", err)
	} else if home != "" {
		t.log.Info("keys share limits", "partition", key, "with", home, "organization", organization.Key)
	}
}

// join notes whose a key is, and returns the key that it has joined now, if any.
func (t *Transport) join(key, organization Partition) (home string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	home, known := t.homes[organization]
	home = t.homeLocked(Partition{Host: key.Host, Key: home})
	switch {
	case t.joined[key] != "" || home == key.Key || len(t.homes)+len(t.joined) >= t.config.MaxPartitions:
		return "", nil
	case !known:
		t.homes[organization] = key.Key
		return "", nil
	}
	return home, t.moveLocked(key, home)
}

// homeLocked returns the key that the limits of a key are known by.
func (t *Transport) homeLocked(p Partition) string {
	for p.Scope = ""; ; {
		home, ok := t.joined[Partition{Host: p.Host, Key: p.Key}]
		if !ok {
			return p.Key
		}
		p.Key = home
	}
}

// carried is what counts for a key that joined another: of each limit of its, what was used of it when it joined, as one request
// that is in flight until the last one is answered that went before.
type carried struct {
	t     *Transport
	from  []*leaf
	to    []*leaf
	pairs []pairOf
	left  atomic.Int64 // of from, those under way
}

type pairOf struct {
	from, to *node
	lease    limit.Lease
	parts    []partOf
	ends     []func(now mono.Time) // of what is drawn as it is produced
}

// partOf is what is carried to a limiter of several, beyond what is carried to all: of a minute nothing may count any more that
// counts for the day, and some count requests alone.
type partOf struct {
	index int // -1: it is one more in flight, which costs nothing
	to    limit.Limiter
	lease limit.Lease
}

// moveLocked has the requests of a key go on in the limits of another.
func (t *Transport) moveLocked(key Partition, home string) error {
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
			if to, err = t.newLeafLocked(p); err != nil {
				for _, to := range m.to {
					to.release()
				}
				return err
			}
			to.used = t.now()
			t.recent.front(to)
		}
		to.active.Add(1) // it is not to be forgotten meanwhile
		m.to = append(m.to, to)
		for i, n := range l.nodes[:l.count] {
			if other := to.nodes[i]; other != n && !seen[n] {
				seen[n] = true
				m.pairs = append(m.pairs, pairOf{from: n, to: other})
			}
		}
	}
	t.joined[key] = home
	m.left.Store(int64(len(m.from)))
	for _, l := range m.from {
		l.active.Add(1)
		l.moved.Store(m)
	}
	m.begin()
	for _, l := range m.from {
		l.release()
	}
	return nil
}

// begin has what is used in the old limits count in the new ones, and nobody wait at the old ones any more. Who got leave there
// before is in what is used; who does afterwards sees that he has moved.
func (m *carried) begin() {
	var changed []*node
	for i := range m.pairs {
		changed = append(changed, m.pairs[i].from, m.pairs[i].to)
	}
	m.t.update(func(now mono.Time) {
		for i := range m.pairs {
			p := &m.pairs[i]
			p.carry(now)
			p.from.guard.Close()
		}
	}, changed)
}

// end settles what was carried with what it came to.
func (m *carried) end() {
	var changed []*node
	for i := range m.pairs {
		changed = append(changed, m.pairs[i].to)
	}
	m.t.update(func(now mono.Time) {
		for i := range m.pairs {
			m.pairs[i].settle(now)
		}
	}, changed)
	for _, l := range m.to {
		l.release()
	}
}

// carry has what is used in the old limiter count in the new one.
func (p *pairOf) carry(now mono.Time) {
	c := used(p.from.guard.Own(), now)
	p.lease = p.to.guard.Admit(now, c)
	for i, to := range limit.Parts(p.to.guard.Own()) {
		p.parts = append(p.parts, partOf{i, to, to.Admit(now, p.beyond(i, &c, now))})
		if to, ok := to.(*limit.Produced); ok {
			for _, old := range p.old(i) {
				if old, ok := old.(*limit.Produced); ok {
					p.ends = append(p.ends, old.CarryTo(now, to))
				}
			}
			continue
		}
		for range p.open(i) - 2 { // beside these two
			p.parts = append(p.parts, partOf{-1, to, to.Admit(now, limit.Cost{})})
		}
	}
}

// settle has it count as what it has come to.
func (p *pairOf) settle(now mono.Time) {
	c := used(p.from.guard.Own(), now)
	for i := range p.parts {
		part, o := &p.parts[i], limit.Outcome{Result: limit.Unsent}
		if part.index >= 0 {
			o = limit.Outcome{Result: limit.Accepted, Metered: true, Actual: p.beyond(part.index, &c, now)}
		}
		part.to.Settle(now, part.lease, o)
	}
	for _, end := range p.ends {
		end(now)
	}
	p.to.guard.Settle(now, p.lease, limit.Outcome{Result: limit.Accepted, Metered: true, Actual: c})
}

// old returns the parts of the old limiter that part i of the new one stands for: all, where the two are not made of the same.
func (p *pairOf) old(i int) []limit.Limiter {
	parts := limit.Parts(p.from.guard.Own())
	if len(parts) == len(limit.Parts(p.to.guard.Own())) {
		return parts[i : i+1]
	}
	return parts
}

// beyond returns what is used of part i that c has not.
func (p *pairOf) beyond(i int, c *limit.Cost, now mono.Time) (more limit.Cost) {
	for _, part := range p.old(i) {
		for u, n := range used(part, now) {
			more[u] = max(more[u], n-c[u])
		}
	}
	return more
}

// open returns how many are in flight of part i, which may count each as one whatever it costs.
func (p *pairOf) open(i int) (n int) {
	for _, part := range p.old(i) {
		open, _ := limit.Unsettled(part)
		n = max(n, open)
	}
	return n
}

// used returns what of a limiter's limits cannot be had at once, in each unit: what was used lately, or is in flight.
func used(l limit.Limiter, now mono.Time) (c limit.Cost) {
	if l == nil {
		return c
	}
	const most = limit.MaxCost
	for u := range c {
		alone := func(n int64) (c limit.Cost) { c[u] = n; return c }
		if l.Ready(now, alone(most)) != limit.Never {
			continue // it does not count this
		}
		ever := sort.Search(most, func(n int) bool { return l.Ready(now, alone(int64(n)+1)) == limit.Never })
		room := sort.Search(ever, func(n int) bool { return l.Ready(now, alone(int64(n)+1)) > now })
		c[u] = int64(ever - room)
	}
	return c
}

// release ends one use of a leaf.
func (l *leaf) release() {
	if l.active.Add(-1) > 0 {
		return
	}
	if m := l.moved.Load(); m != nil && !l.quiet.Swap(true) && m.left.Add(-1) == 0 {
		m.end()
	}
}

// update is Junction.Update for what changes at nodes.
func (t *Transport) update(f func(now mono.Time), changed []*node) {
	limits := make([]*paceline.Limit, len(changed))
	for i, n := range changed {
		limits[i] = n.limit
	}
	t.junction.Update(f, limits...)
}
