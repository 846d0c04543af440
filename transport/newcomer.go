package transport

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Only an answer shows to which organization a key belongs. By then the key may have sent all that
// its own limits allow. So a key is a newcomer until its first answer, if two things hold. Its
// provider lets keys of one organization share limits, and another key was at the host before.
//
// A newcomer counts as a key of the same organization: its requests count in the limits of the
// first key. The answer confirms that, or the newcomer gets its own limits. Its earlier requests
// count there too (decision 26).

// acquaintance is the longest wait of a newcomer for limits that may not be its own. It is a little
// longer than the minute of most limits.
const acquaintance = 75 * time.Second

// introductions is what is known of the keys of one host. The Transport's lock guards it.
type introductions struct {
	first     string // the first key at the host
	answered  bool   // the first key has an answer
	homes     []string
	known     map[string]bool // the keys with an answer
	mute      bool            // an answer named no organization, so there is nothing to wait for
	newcomers map[string]*newcomer
}

// newcomer is a key without an answer. The Transport's lock guards all but door.
type newcomer struct {
	key    Partition // Host and Key
	home   string    // the key in whose limits its requests count; itself, if it is on its own
	told   bool      // an answer has named its organization, and that of the first key is still unknown
	whose  Partition // its organization
	limit  *paceline.Limit
	door   door
	leaves []*leaf
	visits map[*visit]bool
	led    bool // one of its calls waits at the head of the line
}

// visit is a request of a newcomer that is under way.
type visit struct {
	of    *newcomer
	from  *leaf
	cost  limit.Cost
	to    *leaf // where the key counts, once that is known; held until the visit ends
	extra []extra
}

// extra is the record of a visit in a limit that its permit does not have.
type extra struct {
	node *node
	sent *limit.Sent
}

// door is a limit of newcomers besides all others, so that waiting newcomers can be sent away. The
// Group guards it.
type door struct {
	closed bool
	single bool // one at a time, but for no longer than acquaintance: an answer may take very long
	since  mono.Time
	open   int
}

// Ready implements limit.Limiter.
func (d *door) Ready(now mono.Time, _ limit.Cost) mono.Time {
	switch {
	case d.closed:
		return limit.Never
	case d.single && d.open > 0:
		return max(now, d.since.Add(acquaintance))
	}
	return now
}

// Admit implements limit.Limiter.
func (d *door) Admit(s *limit.Sent) {
	if d.open == 0 {
		d.since = s.At
	}
	d.open++
}

// Settle implements limit.Limiter.
func (d *door) Settle(mono.Time, *limit.Sent, *limit.Outcome) { d.open-- }

// ReadyAfter implements limit.Forecaster.
func (d *door) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	if t := d.Ready(now, first); t > now || !d.single {
		return t
	}
	return now.Add(acquaintance)
}

// NotBefore implements limit.Forecaster.
func (d *door) NotBefore(now mono.Time, _ int, _, cost limit.Cost) mono.Time {
	return d.Ready(now, cost)
}

// newcomerLocked returns the newcomer of a key, or nil if it is none, or if answers would not show
// its organization.
func (t *Transport) newcomerLocked(p Partition) *newcomer {
	if p.Key == "" || t.config.Limit == nil || t.config.Organization != nil || len(t.keys) > 0 {
		return nil
	}
	s := t.introductions[p.Host]
	if s == nil {
		if k := t.runs(p.Host); k == nil || k.row.Organization == "" || len(t.introductions) >= t.mostKeys() {
			return nil
		}
		s = t.introduce(p)
	}
	if s.mute || s.first == p.Key || s.known[p.Key] {
		return nil
	}
	if g := s.newcomers[p.Key]; g != nil {
		return g
	}
	if len(s.known)+len(s.newcomers) >= t.mostKeys() {
		return nil
	}
	home := s.first
	if s.answered && len(s.homes) != 1 { // of several it may belong to any
		home = p.Key
	} else if s.answered {
		home = s.homes[0]
	}
	g := t.newNewcomer(Partition{Host: p.Host, Key: p.Key}, home)
	s.newcomers[p.Key] = g
	return g
}

// introduce begins the record of a host's keys with the first one.
func (t *Transport) introduce(p Partition) *introductions {
	s := &introductions{first: p.Key, known: map[string]bool{}, newcomers: map[string]*newcomer{}}
	t.introductions[p.Host] = s
	return s
}

// shares reports whether the newcomer's requests count in another key's limits.
func (g *newcomer) shares() bool { return g.home != g.key.Key }

// turn returns how a request waits at limits that may not be its own. All requests of a newcomer
// depend on its first answer. So its first request goes before all others in line, and does not
// wait for long.
func (t *Transport) turn(c *call, turn paceline.Turn) paceline.Turn {
	g := c.leaf.newcomer
	if g == nil || !g.shares() {
		return turn
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(g.visits) == 0 && !g.led {
		g.led, c.leads = true, true
	}
	if c.leads {
		turn.Came = t.epoch.Add(-time.Hour) // before all others
		if turn.MaxWait == 0 || turn.MaxWait > acquaintance {
			turn.MaxWait = acquaintance
		}
	}
	return turn
}

// enter notes that a request of a newcomer is about to go. It reports whether the request may go:
// not if its key has its own limits by now.
func (t *Transport) enter(l *leaf, cost limit.Cost) (v *visit, ok bool) {
	g := l.newcomer
	if g == nil || !g.shares() {
		return nil, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.moved.Load() != nil {
		return nil, false
	}
	v = &visit{of: g, from: l, cost: cost}
	g.visits[v] = true
	return v, true
}

// ends notes that a call no longer waits. If the first call of a key has given up, the others must
// not wait for it.
func (t *Transport) ends(c *call, goes bool) {
	if !c.leads {
		return
	}
	c.leads = false
	t.mu.Lock()
	c.leaf.newcomer.led = false
	t.mu.Unlock()
	if !goes {
		t.alone(c.leaf)
	}
}

// alone puts a newcomer on its own limits, one request at a time, if another key's limits have no
// room for it, or none soon. It reports whether calls that wait at the leaf must look for their
// limits again.
func (t *Transport) alone(l *leaf) bool {
	g := l.newcomer
	if g == nil || !g.shares() {
		return false
	}
	t.mu.Lock()
	s := t.introductions[g.key.Host]
	left := func() {}
	switch {
	case s.newcomers[g.key.Key] != g:
	case g.told:
		left, _, _ = t.knownLocked(s, g.key, g.whose)
	default:
		s.newcomers[g.key.Key] = t.newNewcomer(g.key, g.key.Key)
		left = t.departLocked(g, g.key.Key)
	}
	t.mu.Unlock()
	left()
	return true
}

// newNewcomer returns a newcomer that counts in the limits of a key. On its own it sends one
// request at a time.
func (t *Transport) newNewcomer(key Partition, home string) *newcomer {
	g := &newcomer{key: key, home: home, visits: map[*visit]bool{}}
	g.door.single = !g.shares()
	g.limit = t.group.Limit(paceline.LimitConfig{Limiter: &g.door})
	return g
}

// introduceLocked records an answer's statement about the owner of its key: the organization, or
// nothing. It returns the work to do without the lock, and the key that this one has joined, if
// any.
func (t *Transport) introduceLocked(key, organization Partition, served bool) (left func(), home string, err error) {
	left = func() {}
	named := organization.Key != ""
	s := t.introductions[key.Host]
	if s == nil && named && t.config.Limit != nil && len(t.introductions) < t.mostKeys() {
		s = t.introduce(key)
	}
	if s == nil {
		if named {
			home, err = t.joinLocked(key, organization)
		}
		return left, home, err
	}
	s.mute = s.mute || served && !named
	g := s.newcomers[key.Key]
	if g != nil && g.shares() && !s.answered && named {
		g.told, g.whose = true, organization // the first key's organization decides
		return left, "", nil
	}
	left, home, err = t.knownLocked(s, key, organization)
	if key.Key != s.first || s.answered {
		return left, home, err
	}
	s.answered = true
	all := []func(){left}
	for _, g := range s.newcomers {
		if g.told {
			left, _, failed := t.knownLocked(s, g.key, g.whose)
			all, err = append(all, left), cmp.Or(err, failed)
		}
	}
	return func() {
		for _, left := range all {
			left()
		}
	}, home, err
}

// knownLocked makes a key count with its organization, and returns the key that stands for it, if
// it is another. A newcomer without an organization gets its own limits.
func (t *Transport) knownLocked(s *introductions, key, organization Partition) (left func(), home string, err error) {
	left = func() {}
	if len(s.known) < t.mostKeys() {
		s.known[key.Key] = true
	}
	g := s.newcomers[key.Key]
	delete(s.newcomers, key.Key)
	named := organization.Key != "" && len(t.homes)+len(t.joined) < t.mostKeys()
	switch {
	case g != nil && g.shares():
		if named {
			if first, ok := t.homes[organization]; ok {
				home = t.homeLocked(Partition{Host: key.Host, Key: first})
				t.joined[key] = home
			}
		}
		left = t.departLocked(g, cmp.Or(home, key.Key))
	case named:
		home, err = t.joinLocked(key, organization)
	}
	if g != nil && !g.shares() {
		update(t.group, func(mono.Time) { g.door.single, g.door.closed = false, home != "" }, nil, g.limit)
	}
	if !named || home != "" || t.joined[key] != "" || slices.Contains(s.homes, key.Key) {
		return left, home, err
	}
	if _, ok := t.homes[organization]; !ok {
		t.homes[organization] = key.Key
	}
	s.homes = append(s.homes, key.Key)
	for _, other := range s.newcomers { // it may be of this organization as well
		t.suspectLocked(other, key.Key)
	}
	return left, home, err
}

// suspectLocked makes a newcomer's requests under way count for another key too, until its owner is
// known.
func (t *Transport) suspectLocked(g *newcomer, home string) {
	for v := range g.visits {
		if to, err := t.leafLocked(v.from.partition, home); err == nil {
			t.countLocked(v, to)
		}
	}
	t.group.Update(func(mono.Time) { g.door.single = true }, g.limit)
}

// countLocked makes a visit count in those limits of a leaf where it does not count yet.
func (t *Transport) countLocked(v *visit, to *leaf) {
	var more []*node
	for _, n := range to.nodes[:to.count] {
		if !slices.Contains(v.from.nodes[:v.from.count], n) &&
			!slices.ContainsFunc(v.extra, func(e extra) bool { return e.node == n }) {
			more = append(more, n)
		}
	}
	update(t.group, func(now mono.Time) {
		for _, n := range more {
			v.extra = append(v.extra, extra{n, t.admit(n.stack, now, v.cost)})
		}
	}, more)
}

// admit makes a request without a permit count in a limiter, within Group.Update.
func (t *Transport) admit(l limit.Limiter, now mono.Time, cost limit.Cost) *limit.Sent {
	s := &limit.Sent{At: now, Number: t.group.Number(), Cost: cost}
	l.Admit(s)
	return s
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

// departLocked moves a newcomer's requests, waiting and future ones, to the limits of a key. Its
// requests under way count there from now on. The returned function must be called without the
// lock.
func (t *Transport) departLocked(g *newcomer, key string) func() {
	leaves := g.leaves
	m := &carried{t: t, from: leaves, parted: true}
	m.left.Store(int64(len(leaves)))
	for _, l := range leaves {
		l.active.Add(1)
		t.recent.remove(l)
		delete(t.leaves, l.partition)
		l.moved.Store(m)
	}
	for _, l := range leaves {
		to, err := t.leafLocked(l.partition, key)
		if err != nil {
			t.log.Error("what a key has sent is not counted", "partition", l.partition, "err", err)
			continue
		}
		if l.spent != (limit.Cost{}) {
			v := &visit{of: g, from: l, cost: l.spent}
			t.countLocked(v, to)
			update(t.group, func(now mono.Time) {
				for _, e := range v.extra {
					e.node.stack.Settle(now, e.sent, &limit.Outcome{Result: limit.Unknown})
				}
			}, nil)
		}
		for v := range g.visits {
			if v.from == l {
				v.to = to
				to.active.Add(1)
				t.countLocked(v, to)
			}
		}
	}
	g.leaves = nil
	t.group.Update(func(mono.Time) { g.door.closed = true }, g.limit)
	return func() {
		for _, l := range leaves {
			l.release()
		}
	}
}

// forget drops a leaf that a newcomer has left, after its last request.
func (l *leaf) forget() {
	t := l.server.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unlinkLocked(l)
}

// turns switches an attempt to the limits of its key, if the key's owner is known by now.
func (s *sent) turns() {
	if s.visit == nil {
		return
	}
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if to := s.visit.to; to != nil {
		s.way = &to.way
	}
}

// end takes a visit off the list. Later changes of the newcomer do not concern it.
func (v *visit) end(t *Transport, o limit.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(v.of.visits, v)
	if v.to == nil && o != limit.Unsent { // it counts for its key if that turns out to belong elsewhere
		for u, n := range v.cost {
			v.from.spent[u] = min(v.from.spent[u]+n, limit.MaxCost)
		}
	}
}

// settleVisit settles an attempt of a newcomer. Limits that turned out not to be its key's learn
// that it was not sent.
func (s *sent) settleVisit(o, billed limit.Outcome, paid bool) {
	v := s.visit
	each := func(m *paceline.Limit) limit.Outcome {
		theirs := v.from.way.index(m) >= 0 || slices.ContainsFunc(v.extra, func(e extra) bool { return e.node.limit == m })
		switch {
		case v.to != nil && theirs && v.to.way.index(m) < 0:
			return limit.Outcome{Result: limit.Unsent}
		case paid:
			return s.bills(m, s.hears(m, o), billed)
		}
		return s.hears(m, o)
	}
	seen := o
	if paid {
		seen = looked(o, billed)
	}
	s.permit.SettleEach(seen, each)
	v.settle(s.t, each)
}

// settle ends a visit in the limits that its permit does not have.
func (v *visit) settle(t *Transport, of func(*paceline.Limit) limit.Outcome) {
	var changed []*node
	for _, e := range v.extra {
		changed = append(changed, e.node)
	}
	update(t.group, func(now mono.Time) {
		for _, e := range v.extra {
			e.node.stack.Settle(now, e.sent, new(of(e.node.limit)))
		}
	}, changed)
	if v.to != nil {
		v.to.release()
	}
}

// giveBack returns an unused permit.
func (t *Transport) giveBack(p paceline.Permit, v *visit) {
	unsent := limit.Outcome{Result: limit.Unsent}
	p.Settle(unsent)
	if v != nil {
		v.end(t, limit.Unsent)
		v.settle(t, func(*paceline.Limit) limit.Outcome { return unsent })
	}
}

// meetLocked finds out, before a leaf has nodes, whether its key is new here.
func (l *leaf) meetLocked(t *Transport) {
	g := t.newcomerLocked(l.partition)
	s := t.introductions[l.partition.Host]
	l.unknown.Store(s != nil && (g != nil || s.first == l.partition.Key && !s.answered))
	// A lane passes eight limits at most. With all of these, a newcomer's door would be one too
	// many.
	optional := []bool{l.partition.Model != "", l.partition.Route != "", l.client != nil && l.client.own != nil,
		t.shared != nil, t.config.Adaptive != nil}
	if slices.Contains(optional, false) {
		l.newcomer = g
	}
}
