package transport

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
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

// owners is what is known of the keys of one host. The Transport's lock guards it.
type owners struct {
	*keyring.Owners
	newcomers map[string]*newcomer
}

// mostAccounts is the most accounts to which a newcomer is taken to belong at once.
const mostAccounts = 8

// newcomer is a key without an answer. The Transport's lock guards all but door.
type newcomer struct {
	key    Partition // Host and Key
	home   string    // the key in whose limits its requests count; itself, if it is on its own
	limit  *paceline.Limit
	door   door
	leaves []*leaf
	visits map[*visit]bool
	led    bool // one of its calls waits at the head of the line
}

// visit is a request of a newcomer that is under way. It counts at the leaf where it began, and
// where its key may belong since.
type visit struct {
	*keyring.Flight[*node]
	cost limit.Cost
	of   *newcomer
	from *leaf
	to   *leaf // where the key counts, once that is known; held until the visit ends
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
	o := t.owners[p.Host]
	if o == nil {
		if k := t.runs(p.Host); k == nil || k.row.Organization == "" {
			return nil
		}
		o = t.ownersLocked(p.Host)
	}
	switch {
	case o == nil:
		return nil
	case o.newcomers[p.Key] != nil:
		return o.newcomers[p.Key]
	case !o.Meet(p.Key):
		t.tooManyKeys()
		return nil
	}
	in := o.CountsIn(p.Key)
	if len(in) > 1 { // of several it may belong to any
		o.Alone(p.Key)
		in = o.CountsIn(p.Key)
	}
	if in[0].Home == p.Key && !o.Single(p.Key) {
		return nil
	}
	return t.newcomesLocked(o, Partition{Host: p.Host, Key: p.Key}, in[0].Home)
}

// ownersLocked returns what is known of the keys of a host; nil: there are too many hosts.
func (t *Transport) ownersLocked(host string) *owners {
	o := t.owners[host]
	if o == nil && len(t.owners) < t.mostKeys() {
		o = &owners{newcomers: map[string]*newcomer{}, Owners: keyring.NewOwners(keyring.OwnersConfig{
			Most: mostAccounts, MaxKeys: t.mostKeys(), FirstNames: true})}
		t.owners[strings.Clone(host)] = o
	}
	return o
}

// tooManyKeys logs once that the owners of some keys are not remembered.
func (t *Transport) tooManyKeys() {
	if !t.crowded.Swap(true) {
		t.log.Warn("more keys than MaxPartitions and MaxFrozen allow to remember: each further one counts by itself",
			"keys", t.mostKeys())
	}
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
	v = l.visits(cost)
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
	left := func() {}
	if o := t.owners[g.key.Host]; o.newcomers[g.key.Key] == g {
		left, _ = t.followLocked(o, g.key.Host, o.Alone(g.key.Key))
	}
	t.mu.Unlock()
	left()
	return true
}

// newcomesLocked returns a newcomer that counts in the limits of a key. On its own it sends one
// request at a time.
func (t *Transport) newcomesLocked(o *owners, key Partition, home string) *newcomer {
	g := &newcomer{key: key, home: home, visits: map[*visit]bool{}}
	g.door.single = !g.shares()
	g.limit = t.group.Limit(paceline.LimitConfig{Limiter: &g.door})
	o.newcomers[key.Key] = g
	return g
}

// namedLocked takes in an answer's statement about the owner of its key: the organization, or
// nothing. It returns the work to do without the lock, and the key that this one has joined, if
// any.
func (t *Transport) namedLocked(key Partition, name string, served bool) (left func(), home string, err error) {
	left = func() {}
	o := t.owners[key.Host]
	if o == nil && name != "" {
		o = t.ownersLocked(key.Host)
	}
	if o == nil {
		return left, "", nil
	}
	var moves []keyring.Move
	switch _, known := o.Known(key.Key); {
	case name == "":
		moves = o.Unnamed(key.Key, served)
	case !o.Meet(key.Key):
		t.tooManyKeys()
	default:
		if known { // if it was not met, it counted by itself
			o.Alone(key.Key)
		}
		moves = o.Named(key.Key, name)
	}
	left, err = t.followLocked(o, key.Host, moves)
	if home = o.Home(key.Key); home == key.Key {
		home = ""
	}
	return left, home, err
}

// followLocked makes keys count where they belong by now. The returned function must be called
// without the lock.
func (t *Transport) followLocked(o *owners, host string, moves []keyring.Move) (left func(), err error) {
	var all []func()
	for _, m := range moves {
		key, g := Partition{Host: host, Key: m.Key}, o.newcomers[m.Key]
		_, known := o.Known(m.Key)
		home := m.To[0].Home
		var failed error
		switch {
		case g == nil && known:
			failed = t.moveLocked(key, home)
		case g == nil: // it counts by itself, or has not come yet
		case g.shares() && !known && home == g.home: // it may belong elsewhere as well
			t.suspectLocked(g, m.To[1:])
		case g.shares():
			delete(o.newcomers, m.Key)
			if !known && len(m.To) > 1 {
				o.Alone(m.Key)
				_, known = o.Known(m.Key)
				home = o.CountsIn(m.Key)[0].Home
			}
			if !known && (home != m.Key || o.Single(m.Key)) {
				t.newcomesLocked(o, key, home)
			}
			all = append(all, t.departLocked(g, home))
		case known:
			delete(o.newcomers, m.Key)
			failed = t.moveLocked(key, home)
			update(t.group, func(mono.Time) { g.door.single, g.door.closed = false, home != m.Key }, nil, g.limit)
		}
		err = cmp.Or(err, failed)
	}
	return func() {
		for _, left := range all {
			left()
		}
	}, err
}

// suspectLocked makes a newcomer's requests under way count for other keys too, until its owner is
// known.
func (t *Transport) suspectLocked(g *newcomer, in []keyring.Account) {
	for _, a := range in {
		for v := range g.visits {
			if to, err := t.leafLocked(v.from.partition, a.Home); err == nil {
				t.countLocked(v, to)
			}
		}
	}
	t.group.Update(func(mono.Time) { g.door.single = true }, g.limit)
}

// visits returns a request that counts at a leaf.
func (l *leaf) visits(cost limit.Cost) *visit {
	return &visit{Flight: keyring.NewFlight(l.nodes[:l.count]), cost: cost, of: l.newcomer, from: l}
}

// countLocked makes a visit count in those limits of a leaf where it does not count yet.
func (t *Transport) countLocked(v *visit, to *leaf) {
	update(t.group, func(now mono.Time) {
		for _, n := range to.nodes[:to.count] {
			v.Join(n, func() *limit.Sent { return t.admit(n.stack, now, v.cost) })
		}
	}, to.nodes[:to.count])
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
			v := l.visits(l.spent)
			t.countLocked(v, to)
			update(t.group, func(now mono.Time) {
				for _, m := range v.Moved() {
					m.To.stack.Settle(now, m.Sent, &limit.Outcome{Result: limit.Unknown})
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
		theirs := v.from.way.index(m) >= 0 ||
			slices.ContainsFunc(v.Moved(), func(e keyring.Moved[*node]) bool { return e.To.limit == m })
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
	for _, m := range v.Moved() {
		changed = append(changed, m.To)
	}
	update(t.group, func(now mono.Time) {
		for _, m := range v.Moved() {
			m.To.stack.Settle(now, m.Sent, new(of(m.To.limit)))
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
	o := t.owners[l.partition.Host]
	l.unknown.Store(o != nil && o.Open(l.partition.Key))
	// A lane passes eight limits at most. With all of these, a newcomer's door would be one too
	// many.
	optional := []bool{l.partition.Model != "", l.partition.Route != "", l.client != nil && l.client.own != nil,
		t.shared != nil, t.config.Adaptive != nil}
	if slices.Contains(optional, false) {
		l.newcomer = g
	}
}
