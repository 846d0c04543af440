package transport

import (
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
	key    Partition // Host and Key
	home   string    // the key in whose limits its requests count; itself, if it is on its own
	limit  *paceline.Limit
	door   door
	visits map[*visit]bool
	led    bool // one of its calls waits at the head of the line
}

// visit is a request of a newcomer that is under way. It counts at the leaf where it began, and
// where its key may belong since.
type visit struct {
	permit paceline.Permit
	cost   limit.Cost
	of     *newcomer
	from   *leaf
	to     *leaf // where the key counts, once that is known; held until the visit ends
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
	if p.Key == "" || t.config.Limit == nil || t.config.Organization != nil || len(t.keys) > 0 || len(t.targets) > 0 {
		return nil
	}
	o := t.owners[p.Host]
	if o == nil {
		if k := t.runs(p); k == nil || k.row.Organization == "" {
			return nil
		}
		if o = t.ownersLocked(p.Host); o == nil {
			return nil
		}
	}
	switch {
	case o.newcomers[p.Key] != nil:
		return o.newcomers[p.Key]
	case !o.Meet(p.Key):
		t.tooManyKeys()
		return nil
	}
	if len(o.CountsIn(p.Key)) > 1 { // of several it may belong to any
		o.Alone(p.Key)
	}
	g := &newcomer{key: Partition{Host: p.Host, Key: p.Key}, home: o.CountsIn(p.Key)[0].Home, visits: map[*visit]bool{}}
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
func (t *Transport) turn(c *call, turn paceline.Turn) paceline.Turn {
	g := c.leaf.newcomer
	if !g.shares() {
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

// enters notes that a call no longer waits, and whether it has a permit. It reports whether the
// request may go: not if its key has moved meanwhile. If the first call of a newcomer does not go,
// the others must not wait for it.
func (t *Transport) enters(c *call, p paceline.Permit, permitted bool) (goes bool) {
	c.visit = nil
	g := c.leaf.newcomer
	if !g.shares() {
		return permitted
	}
	t.mu.Lock()
	if goes = permitted && c.leaf.moved.Load() == nil; goes {
		c.visit = &visit{permit: p, cost: c.cost, of: g, from: c.leaf}
		g.visits[c.visit] = true
	}
	led := c.leads
	if led {
		c.leads, g.led = false, false
	}
	t.mu.Unlock()
	if led && !goes {
		t.alone(c.leaf)
	}
	return goes
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
		t.followLocked(o, g.key.Host, o.Alone(g.key.Key))
	}
	return true
}

// suspectLocked makes a newcomer's requests under way count for other keys too, until its owner is
// known.
func (t *Transport) suspectLocked(g *newcomer, in []keyring.Account) {
	for _, a := range in {
		for v := range g.visits {
			if to, err := t.leafLocked(v.from.partition, a.Home); err == nil {
				v.joinLocked(to)
			}
		}
	}
	t.group.Update(func(mono.Time) { g.door.single = true }, g.limit)
}

// joinLocked makes a visit count at a leaf, too.
func (v *visit) joinLocked(to *leaf) {
	for _, n := range to.nodes[:to.count] {
		v.permit.Join(n.limit)
	}
}

// departLocked makes what a newcomer sent from a leaf count where its key counts from now on.
func (t *Transport) departLocked(l, to *leaf) {
	if l.spent != (limit.Cost{}) {
		update(t.group, func(now mono.Time) {
			for _, n := range to.nodes[:to.count] {
				if l.index(n.limit) < 0 {
					s := &limit.Sent{At: now, Number: t.group.Number(), Cost: l.spent}
					n.stack.Admit(s)
					n.stack.Settle(now, s, &limit.Outcome{Result: limit.Unknown})
				}
			}
		}, to.nodes[:to.count])
	}
	for v := range l.newcomer.visits {
		if v.from == l {
			v.to = to
			to.active.Add(1)
			v.joinLocked(to)
		}
	}
}

// turns switches an attempt to the limits of its key, if the key's owner is known by now.
func (s *sent) turns() {
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

// left reports whether a visit counted in a limit that turned out not to be its key's.
func (v *visit) left(m *paceline.Limit) bool {
	if v == nil || v.to == nil || v.to.index(m) >= 0 {
		return false
	}
	room := v.from.room
	return m != v.from.server.way && m != v.of.limit && (room == nil || m != room.limit)
}

// leave ends the use of the leaf to which a visit moved.
func (v *visit) leave() {
	if v != nil && v.to != nil {
		v.to.release()
	}
}
