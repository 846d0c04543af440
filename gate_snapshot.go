package paceline

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// look is the material of a View's Snapshots, guarded by the Group's lock.
type look struct {
	lanes  []*Lane          // lanes that are not retired, in any order
	leaves []*Lane          // retired lanes with open permits
	gone   map[string]*past // counts of forgotten lanes, by client
	events observe.EventLog
}

// about says for Snapshots to whom a lane belongs.
type about struct {
	client string
	weight float64
	told   bool
	index  int // in look.lanes
}

// past is the counts and waits of a client or a lane.
type past struct {
	observe.Counts
	waits observe.Waits
}

const (
	// mostGone bounds how many clients without a lane keep their own counts. All further ones share
	// one entry.
	mostGone   = 1000
	otherGone  = "other"
	lookAtOnce = 64 // lanes read before the lock is released for others
	// mostGuesses is for how many lanes a Snapshot estimates when the last goroutine goes: those that
	// wait the longest. Each estimate examines up to 256 other goroutines.
	mostGuesses = 64
)

func (v *look) add(a *Lane) {
	a.about.index = len(v.lanes)
	v.lanes = append(v.lanes, a)
}

func (v *look) retire(a *Lane) {
	last := len(v.lanes) - 1
	v.lanes[a.about.index] = v.lanes[last]
	v.lanes[a.about.index].about.index = a.about.index
	v.lanes = slices.Delete(v.lanes, last, len(v.lanes))
	v.leaves = append(v.leaves, a)
	v.fold()
}

// fold forgets retired lanes whose permits are all settled, and keeps their counts.
func (v *look) fold() {
	v.leaves = slices.DeleteFunc(v.leaves, func(a *Lane) bool {
		if int64(a.lane.Granted()) != a.counts.tally.Sum() {
			return false
		}
		if v.gone == nil {
			v.gone = map[string]*past{}
		}
		name := a.about.client
		if v.gone[name] == nil && len(v.gone) >= mostGone {
			name = otherGone
		}
		if v.gone[name] == nil {
			v.gone[name] = new(past)
		}
		v.gone[name].add(a.pastLocked())
		return true
	})
}

// pastLocked returns the counts and waits of a lane so far.
func (a *Lane) pastLocked() *past {
	p := &past{Counts: a.statsLocked().Counts(), waits: a.waits}
	p.waits.AtOnce = p.Sent - a.waited
	return p
}

func (p *past) add(more *past) {
	observe.AddCounts(&p.Counts, &more.Counts)
	p.waits.Merge(&more.waits)
}

// View is a selection of a Group's lanes with its own Snapshots. An example is one server of
// several whose clients have limits in common. The figures of a limit include the lanes of other
// Views. Group.View makes a View. Safe for concurrent use.
type View struct {
	group *Group
	since time.Time

	// The Group's lock guards these.
	look    look
	drained error // of Drain
}

// View returns a View without lanes: see LaneConfig.View.
func (j *Group) View() *View { return &View{group: j, since: time.Now()} }

// Note is View.Note, for the Group's own Snapshots.
func (j *Group) Note(e observe.Event) { j.view.Note(e) }

// Note adds an Event to the Snapshots. It fills in Number, At, Last and Count. An Event of the same
// Kind and Whose as one of the last second is counted with that one.
func (v *View) Note(e observe.Event) {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	v.look.events.Note(time.Now(), e)
}

// noteRefusalLocked notes that the server refused a request of a lane.
func (a *Lane) noteRefusalLocked(o *limit.Outcome) {
	if a.about.told {
		return
	}
	line := "the server refused a request"
	if o.RetryAfter > 0 {
		line += ", and asks to stay away for " + text.Span(o.RetryAfter)
	}
	whose := observe.Whose{Client: a.about.client}
	a.view.look.events.Note(time.Now(), observe.Event{Kind: observe.EventRefused, Whose: whose, Text: line})
}

// Snapshot returns the state of all lanes now, except those of another View. With more than 64
// lanes, each 64 are of one instant: between them the lock is released.
func (j *Group) Snapshot() observe.Snapshot { return j.view.Snapshot() }

// Snapshot is Group.Snapshot for the lanes of the View.
func (v *View) Snapshot() observe.Snapshot {
	j := v.group
	s := snapshot{clients: map[string]*client{}, limits: map[*Limit]int{}}
	j.mu.Lock()
	s.At, s.Since = time.Now(), v.since
	v.look.fold()
	lanes := slices.Concat(v.look.lanes, v.look.leaves)
	for name, p := range v.look.gone {
		s.client(name).past.add(p)
	}
	s.Events = v.look.events.All()
	for i, a := range lanes {
		if i > 0 && i%lookAtOnce == 0 {
			j.mu.Unlock()
			j.mu.Lock()
		}
		s.lookLocked(j.now(), a)
	}
	s.guessLocked(j.now(), j)
	j.mu.Unlock()
	return s.done()
}

// snapshot is a Snapshot in the making.
type snapshot struct {
	observe.Snapshot
	clients map[string]*client
	limits  map[*Limit]int // index of a limit's first LimitState
	owners  []*Limit       // the limit of each LimitState
	guesses []guess
	usage   []limit.Usage
}

// guess is an estimate to be made for a client: when the last goroutine of a lane goes.
type guess struct {
	lane   *Lane
	of     *client
	waited time.Duration
}

// guessLocked estimates for the lanes that wait the longest. Of a client with another lane no instant is known.
func (s *snapshot) guessLocked(now mono.Time, j *Group) {
	slices.SortStableFunc(s.guesses, func(a, b guess) int { return cmp.Compare(b.waited, a.waited) })
	for _, g := range s.guesses[:min(len(s.guesses), mostGuesses)] {
		if g.lane.lane.Len() == 0 { // it went while others were read
			continue
		}
		if at := j.line.LastGoes(now, g.lane.lane); at < limit.AfterSettle {
			if t := j.Time(at); t.After(g.of.LastGoes) {
				g.of.LastGoes = t
			}
		}
	}
	for _, g := range s.guesses[min(len(s.guesses), mostGuesses):] {
		g.of.LastGoes = time.Time{}
	}
}

// client is a ClientState in the making.
type client struct {
	past past
	observe.ClientState
}

func (s *snapshot) client(name string) *client {
	c := s.clients[name]
	if c == nil {
		c = &client{ClientState: observe.ClientState{Name: name}}
		s.clients[name] = c
	}
	return c
}

func (s *snapshot) lookLocked(now mono.Time, a *Lane) {
	j, c := a.group, s.client(a.about.client)
	p := a.pastLocked()
	c.past.add(p)
	c.Weight = max(c.Weight, cmp.Or(a.about.weight, 1))
	c.InFlight += int(p.Sent - a.counts.tally.Sum())
	for _, w := range a.lane.Ways() {
		for _, l := range w.Limits() {
			if m, ok := l.Of.(*Limit); ok {
				s.limitLocked(now, j, m)
			}
		}
	}
	n := a.lane.Len()
	if n == 0 {
		return
	}
	c.Waiting += n
	waited := time.Duration(0)
	if w, ok := a.lane.First().Of.(*waiter); ok {
		waited = now.Sub(w.asked)
	}
	c.LongestWait = max(c.LongestWait, waited)
	s.guesses = append(s.guesses, guess{a, c, waited})
	on, _ := a.lane.At()
	if on == nil {
		return
	}
	m := on.Of.(*Limit)
	i, found := s.limits[m], -1
	name, reserve := a.lane.Reserve(now)
	if !reserve {
		name = on.Rule(now).Name
	}
	for ; i < len(s.owners) && s.owners[i] == m; i++ {
		if found < 0 || s.Limits[i].Name == name {
			found = i
		}
	}
	if found >= 0 {
		if s.Limits[found].Waiting += n; reserve {
			s.Limits[found].WaitingReserve += n
		}
	}
}

// limitLocked reads a limit, once.
func (s *snapshot) limitLocked(now mono.Time, j *Group, m *Limit) {
	if _, seen := s.limits[m]; seen {
		return
	}
	s.limits[m] = len(s.Limits)
	var pause observe.PauseState
	if m.paused != nil {
		if p, on := m.paused(now); on {
			pause = p
			s.Paused = append(s.Paused, p)
		}
	}
	s.usage = limit.AppendUsage(s.usage[:0], m.limit.Limiter, now)
	for i := range s.usage {
		l := observe.LimitOf(&s.usage[i])
		l.Whose, l.PausedUntil, l.Why = m.whose, pause.Until, pause.Why
		l.StoredIn(m.limit.Limiter)
		cost := limit.One
		cost[s.usage[i].Unit] = 1
		switch at := m.limit.Limiter.Ready(now, cost); {
		case at >= limit.AfterSettle:
			l.NextUnknown = true
		case at > now:
			l.Next = j.Time(at)
		}
		s.Limits, s.owners = append(s.Limits, l), append(s.owners, m)
	}
}

// done computes the totals of all lanes, and sorts.
func (s *snapshot) done() observe.Snapshot {
	for name, c := range s.clients {
		c.ClientState.Counts = c.past.Counts
		observe.AddCounts(&s.Counts, &c.past.Counts)
		s.Waiting += c.Waiting
		s.InFlight += c.InFlight
		s.LongestWait = max(s.LongestWait, c.LongestWait)
		s.Waits = c.past.waits.Append(s.Waits, name)
		s.Clients = append(s.Clients, c.ClientState)
	}
	s.Sort()
	return s.Snapshot
}

// Stats returns what the Lane has done so far, as of one instant.
func (a *Lane) Stats() observe.Stats {
	a.group.mu.Lock()
	defer a.group.mu.Unlock()
	s := a.statsLocked()
	s.At, s.Waiting = time.Now(), a.lane.Len()
	return s
}

func (a *Lane) statsLocked() observe.Stats {
	c := &a.counts
	s := observe.StatsOf(int64(a.lane.Granted()), &c.tally)
	s.InFlight = int(s.Admitted - c.tally.Sum())
	s.Never, s.Late, s.Full, s.Cancelled = c.never, c.late, c.full, c.cancelled+c.gaveUp.Load()
	return s
}

// counts are the counts of a lane. The Group's lock guards them, except gaveUp.
type counts struct {
	tally                        limit.Tally
	never, late, full, cancelled int64
	gaveUp                       atomic.Int64 // those whose context was done before they stood in line
}

func (c *counts) refused(why error) {
	switch why {
	case ErrNever:
		c.never++
	case ErrDeadline:
		c.late++
	case ErrFull:
		c.full++
	default:
		c.cancelled++
	}
}
