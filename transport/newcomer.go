package transport

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// acquaintance is the longest wait of a newcomer for limits that may not be its own. It is a little
// longer than the minute of most limits.
const acquaintance = 75 * time.Second

// newcomer is a key without an answer. The Transport's lock guards all but door.
type newcomer struct {
	key   Partition // Host and Key
	home  string    // the key in whose limits its requests count; itself, if it is on its own
	limit *paceline.Limit
	door  door
	led   atomic.Bool // a request has gone before all others, or waits for that, and its answer is missing
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

// newcomerLocked returns the newcomer of a key, or nil if it is none, or if answers would not show
// its organization.
func (t *Transport) newcomerLocked(p Partition) *newcomer {
	if p.Key == "" || t.config.Limit == nil || t.config.Organization != nil || len(t.config.Keys) > 0 || len(t.targets) > 0 {
		return nil
	}
	o := t.owners[p.Host]
	if k := t.runs(p); o == nil && k != nil && k.row.Organization != "" {
		o = t.ownersLocked(p.Host)
	}
	if o == nil {
		return nil
	}
	if g := o.newcomers[p.Key]; g != nil || !t.meetLocked(o, p.Key) {
		return g
	}
	if len(o.CountsIn(p.Key)) > 1 { // of several it may belong to any
		o.Alone(p.Key)
	}
	g := &newcomer{key: Partition{Host: p.Host, Key: p.Key}, home: o.CountsIn(p.Key)[0].Home}
	if g.door.single = !g.shares(); g.door.single && !o.Single(p.Key) {
		return nil
	}
	g.limit = t.group.Limit(paceline.LimitConfig{Limiter: &g.door})
	o.newcomers[p.Key] = g
	return g
}

// shares reports whether the newcomer's requests count in another key's limits.
func (g *newcomer) shares() bool { return g != nil && g.home != g.key.Key }

// turn returns how a request waits at limits that may not be its own. All requests of a newcomer
// depend on its first answer. So its first request goes before all others in line, and does not
// wait for long.
func (g *newcomer) turn(c *call, turn paceline.Turn) paceline.Turn {
	if !g.shares() || !g.led.CompareAndSwap(false, true) {
		return turn
	}
	c.leads = true
	turn.Came = c.t.epoch.Add(-time.Hour) // before all others
	turn.MaxWait = min(cmp.Or(turn.MaxWait, acquaintance), acquaintance)
	return turn
}

// alone puts a newcomer on its own limits, one request at a time, if another key's limits have no
// room for it, or none soon. It reports whether calls that wait at the leaf must look for their
// limits again.
func (t *Transport) alone(l *leaf) bool {
	g := l.newcomer
	if !g.shares() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[g.key.Host]; o.newcomers[g.key.Key] == g {
		o.Alone(g.key.Key)
		t.followLocked(o, g.key.Host, []string{g.key.Key})
	}
	return true
}

// suspectLocked makes a newcomer's requests under way count for other keys too, until its owner is
// known.
func (t *Transport) suspectLocked(g *newcomer, in []*keyring.Account) {
	for _, l := range t.leavesLocked(g.key) {
		for _, a := range in {
			if to, err := t.leafLocked(l.partition, a.Home); err == nil {
				nodes := to.nodes[:to.count]
				update(t.group, func(now mono.Time) { l.join(now, nodes...) }, nodes)
			}
		}
	}
	t.group.Update(func(mono.Time) { g.door.single = true }, g.limit)
}

// join makes the requests of a newcomer that are under way from a leaf count at other nodes, too.
func (l *leaf) join(now mono.Time, others ...*node) {
	for _, n := range others {
		n.t.group.Join(now, l.limits(&l.way), n.limit)
	}
}

// unnamed notes an attempt that ends while its newcomer's owner is unknown. It counts for its key if that
// turns out to belong elsewhere.
func (s *sent) unnamed(o limit.Result) {
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if l := s.leaf; l.newcomer.shares() && l.moved.Load() == nil {
		if l.newcomer.led.Store(false); o != limit.Unsent { // there may be no other answer
			l.past.Add(limit.Past{Cost: s.cost, Result: o})
		}
	}
}

// follows switches an attempt to the limits in which its key counts by now.
func (s *sent) follows() {
	for to := s.leaf.moved.Load(); to != nil; to = to.moved.Load() {
		s.way = &to.way
	}
}

// left reports whether an attempt counted in a limit that turned out not to be its key's.
func (s *sent) left(m *paceline.Limit) bool {
	l := s.leaf
	if !l.joined() || s.way.index(m) >= 0 || m == l.server.way || l.newcomer != nil && m == l.newcomer.limit {
		return false
	}
	return l.room == nil || m != l.room.limit
}
