package paceline

import (
	"cmp"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// look is what a View keeps for its Snapshots, guarded by the Junction's lock.
type look struct {
	lanes  []*Lane          // all but those that were retired, in any order
	leaves []*Lane          // retired, with permits that are not settled
	gone   map[string]*past // what lanes did that are gone, by client
	events events
}

// about says whose a lane is, for Snapshots.
type about struct {
	client string
	weight float64
	told   bool
	index  int // in look.lanes
}

// past is what a client did.
type past struct {
	Counts
	atOnce int64 // of those that were sent, without a wait
	waits  []limitWaits
}

const (
	// mostGone bounds how many clients are remembered of which no lane is left; the others are together.
	mostGone   = 1000
	otherGone  = "other"
	lookAtOnce = 64 // lanes looked at before the lock is let go
	// mostGuesses is for how many lanes a Snapshot guesses when the last goroutine goes: each guess looks at up to 256 others.
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

// fold forgets retired lanes whose permits are all settled, and keeps what they did.
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

// pastLocked is what a lane did so far.
func (a *Lane) pastLocked() *past {
	c, t := &a.counts, &a.counts.tally
	p := &past{waits: a.waits.each, atOnce: int64(a.lane.Granted()) - a.waits.granted}
	p.Counts = Counts{
		Sent: int64(a.lane.Granted()), Accepted: t.Accepted, Limited: t.Limited, Failed: t.Failed, Unknown: t.Unknown, Unsent: t.Unsent,
		Never: c.never, Late: c.late, Full: c.full, Cancelled: c.cancelled + c.gaveUp.Load(), Used: AmountsOf(t.Used),
	}
	return p
}

func (p *past) add(more *past) {
	p.Counts.add(&more.Counts)
	p.atOnce += more.atOnce
	for i := range more.waits {
		w := &more.waits[i]
		k := slices.IndexFunc(p.waits, func(o limitWaits) bool { return o.limit == w.limit })
		if k < 0 {
			p.waits = append(p.waits, *w)
		} else {
			p.waits[k].Merge(&w.Classes)
		}
	}
}

func (c *Counts) add(d *Counts) {
	c.Sent += d.Sent
	c.Accepted += d.Accepted
	c.Limited += d.Limited
	c.Failed += d.Failed
	c.Unknown += d.Unknown
	c.Unsent += d.Unsent
	c.Never += d.Never
	c.Late += d.Late
	c.Full += d.Full
	c.Cancelled += d.Cancelled
	used, more := c.Used.Cost(), d.Used.Cost()
	for u, n := range more {
		used[u] += n
	}
	c.Used = AmountsOf(used)
}

// View is some lanes of a Junction, looked at by themselves: of one server of several, say, whose clients have limits in common. What is
// said of a limit is of all that it counts, by whichever lanes. Made by Junction.View. Safe for concurrent use.
type View struct {
	junction *Junction
	since    time.Time
	look     look // guarded by the Junction's lock
}

// View returns a View without lanes: see LaneConfig.View.
func (j *Junction) View() *View { return &View{junction: j, since: time.Now()} }

// Note is View.Note, for the Junction's own Snapshots.
func (j *Junction) Note(e Event) { j.view.Note(e) }

// Note adds an Event, which is then in Snapshots. Its Number, At, Last and Count are filled in. An Event of the same Kind and Whose as
// one of the last second is counted with that one.
func (v *View) Note(e Event) {
	v.junction.mu.Lock()
	defer v.junction.mu.Unlock()
	v.look.events.note(time.Now(), e)
}

// noteRefusalLocked notes that the server refused a request of a lane.
func (a *Lane) noteRefusalLocked(o *limit.Outcome) {
	if a.about.told {
		return
	}
	text := "the server refused a request"
	if o.RetryAfter > 0 {
		text += ", and asks to stay away for " + humanize.Span(o.RetryAfter)
	}
	a.view.look.events.note(time.Now(), Event{Kind: EventRefused, Whose: Whose{Client: a.about.client}, Text: text})
}

// Snapshot returns the state of the Gate now. It has one client, without a name.
func (g *Gate) Snapshot() Snapshot { return g.junction.Snapshot() }

// Snapshot returns the state of all lanes now, but for those of another View. With more than 64 lanes, each 64 are of one instant: between
// them the lock is let go.
func (j *Junction) Snapshot() Snapshot { return j.view.Snapshot() }

// Snapshot is Junction.Snapshot, of the lanes of the View.
func (v *View) Snapshot() Snapshot {
	j := v.junction
	s := snapshot{clients: map[string]*client{}, limits: map[*Limit]int{}}
	j.mu.Lock()
	s.At, s.Since = time.Now(), v.since
	v.look.fold()
	lanes := slices.Concat(v.look.lanes, v.look.leaves)
	for name, p := range v.look.gone {
		s.client(name).past.add(p)
	}
	s.Events = v.look.events.all()
	for i, a := range lanes {
		if i > 0 && i%lookAtOnce == 0 {
			j.mu.Unlock()
			j.mu.Lock()
		}
		s.lookLocked(j.now(), a)
	}
	j.mu.Unlock()
	return s.done()
}

// snapshot is a Snapshot that is being made.
type snapshot struct {
	Snapshot
	clients map[string]*client
	limits  map[*Limit]int // of those that were looked at, where their first LimitState is
	owners  []*Limit       // of each LimitState
	guesses int            // of when the last of a lane goes
	usage   []limit.Usage
}

// client is a ClientState with what it is made of.
type client struct {
	past past
	ClientState
}

func (s *snapshot) client(name string) *client {
	c := s.clients[name]
	if c == nil {
		c = &client{ClientState: ClientState{Name: name}}
		s.clients[name] = c
	}
	return c
}

func (s *snapshot) lookLocked(now mono.Time, a *Lane) {
	j, c := a.junction, s.client(a.about.client)
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
	if w, ok := a.lane.First().Of.(*waiter); ok {
		c.LongestWait = max(c.LongestWait, now.Sub(w.asked))
	}
	if s.guesses++; s.guesses > mostGuesses {
		c.LastGoes = time.Time{}
	} else if at := j.line.LastGoes(now, a.lane); at < limit.AfterSettle {
		if t := j.Time(at); t.After(c.LastGoes) {
			c.LastGoes = t
		}
	}
	on, _ := a.lane.At()
	if on == nil {
		return
	}
	m := on.Of.(*Limit)
	i, found := s.limits[m], -1
	for name := on.Bound(now).Name; i < len(s.owners) && s.owners[i] == m; i++ {
		if found < 0 || s.Limits[i].Name == name {
			found = i
		}
	}
	if found >= 0 {
		s.Limits[found].Waiting += n
	}
}

// limitLocked looks at a limit, once.
func (s *snapshot) limitLocked(now mono.Time, j *Junction, m *Limit) {
	if _, seen := s.limits[m]; seen {
		return
	}
	s.limits[m] = len(s.Limits)
	var pause PauseState
	if m.paused != nil {
		if p, on := m.paused(now); on {
			pause = p
			s.Paused = append(s.Paused, p)
		}
	}
	s.usage = limit.AppendUsage(s.usage[:0], m.limit.Limiter, now)
	for i := range s.usage {
		l := limitState(&s.usage[i])
		l.Whose, l.PausedUntil, l.Why = m.whose, pause.Until, pause.Why
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

func limitState(u *limit.Usage) LimitState {
	l := LimitState{
		Name: u.Limit, Unit: u.Unit.String(), Used: u.Used, Open: u.Open, Allowed: u.Allowed, Window: u.Window, PerWindow: u.PerWindow,
		Total: u.Total, Recent: u.Recent, Fits: u.Fits,
	}
	switch {
	case u.InFlight:
		l.Unit = "in flight"
		l.Share = float64(u.Used) / float64(max(u.Allowed, 1))
	case u.PerWindow > 0:
		l.Share = float64(u.Recent) / float64(u.PerWindow)
	}
	// Beside what flows into a bucket goes what it had in store, and a limit may have been lowered: more than the ceiling is all of it.
	l.Share = min(l.Share, 1)
	return l
}

// done fills in what concerns all lanes together, and sorts.
func (s *snapshot) done() Snapshot {
	for name, c := range s.clients {
		c.ClientState.Counts = c.past.Counts
		s.Counts.add(&c.past.Counts)
		s.Waiting += c.Waiting
		s.InFlight += c.InFlight
		s.LongestWait = max(s.LongestWait, c.LongestWait)
		s.Waits = c.past.appendWaits(s.Waits, name)
		s.Clients = append(s.Clients, c.ClientState)
	}
	s.order()
	return s.Snapshot
}

// order computes the shares of clients, and sorts, so that the order does not depend on chance.
func (s *Snapshot) order() {
	for i := range s.Clients {
		if s.Accepted > 0 {
			s.Clients[i].Share = float64(s.Clients[i].Accepted) / float64(s.Accepted)
		}
	}
	slices.SortFunc(s.Clients, func(a, b ClientState) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(s.Limits, func(a, b LimitState) int { return a.Whose.compare(b.Whose) })
	slices.SortStableFunc(s.Paused, func(a, b PauseState) int { return a.Whose.compare(b.Whose) })
	slices.SortFunc(s.Waits, func(a, b WaitTimes) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Limit, b.Limit))
	})
	s.Bounds = histogram.Bounds()
}

func (w Whose) compare(v Whose) int {
	return cmp.Or(cmp.Compare(w.Host, v.Host), cmp.Compare(w.Key, v.Key), cmp.Compare(w.Model, v.Model), cmp.Compare(w.Route, v.Route), cmp.Compare(w.Client, v.Client))
}

// appendWaits appends how long requests were in line, and those that were not.
func (p *past) appendWaits(to []WaitTimes, client string) []WaitTimes {
	if p.atOnce > 0 {
		at := WaitTimes{Client: client, Times: Times{Count: p.atOnce}}
		for range histogram.Bounds() {
			at.Upto = append(at.Upto, p.atOnce)
		}
		to = append(to, at)
	}
	for i := range p.waits {
		w := &p.waits[i]
		if n := w.N(); n > 0 {
			to = append(to, WaitTimes{w.limit, client, times(&w.Classes)})
		}
	}
	return to
}

func times(c *histogram.Classes) Times { return Times{c.N(), c.Sum(), c.Upto(nil)} }
