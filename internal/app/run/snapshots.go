package run

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
)

// Sources returns the sources of snapshots while Send runs: one for each part of the input that has
// limits of its own, under the name of its model, and those of Config.Beside. They exist once Open has returned. Snapshots
// have no secrets.
func (r *Run) Sources() (all []observe.Source) {
	for _, g := range r.groups {
		all = append(all, observe.NameSource(g.model, looked{r, g}))
	}
	return append(all, r.c.Beside...)
}

// looked is a group as a source of snapshots.
type looked struct {
	r *Run
	g *group
}

// Snapshot implements observe.Source.
func (l looked) Snapshot() observe.Snapshot {
	s := l.g.pool.Snapshot()
	s.Keys, s.Limits, s.Paused, s.Events = slices.Clone(s.Keys), slices.Clone(s.Limits), slices.Clone(s.Paused),
		slices.Clone(s.Events)
	l.spent(&s)
	hide := func(text *string) { *text, _ = l.r.secrets.HideIn(*text) }
	for i := range s.Keys {
		hide(&s.Keys[i].Why)
	}
	for i := range s.Limits {
		hide(&s.Limits[i].Why)
	}
	for i := range s.Paused {
		hide(&s.Paused[i].Why)
	}
	for i := range s.Events {
		hide(&s.Events[i].Text)
	}
	return s
}

// spent adds tokens and money. The run counts these itself, by the answers.
func (l looked) spent(s *observe.Snapshot) {
	t := l.r.tally
	t.Mu.Lock()
	defer t.Mu.Unlock()
	var all sending.Money
	for name, m := range t.Models {
		if l.r.groups.of(l.r.c.Meter, name) == l.g {
			s.Used.Input += m.InputTokens
			s.Used.Output += m.OutputTokens
			all += m.Spent
		}
	}
	s.Used.Money = all.Millionths()
}

// watch calls look for every group until done, and now and then notes the ceiling. It looks rarely while all heads wait
// long, or while nothing waits, since little changes then.
func (r *Run) watch(done <-chan struct{}) {
	every := telling.LookEvery * time.Duration(1+len(r.c.Keys)/50)
	t := time.NewTimer(every)
	defer t.Stop()
	midnights := r.c.newMidnights()
	noted, due := time.Now(), time.Time{}
	for {
		now := time.Now()
		if now.Sub(noted) >= ceilingEvery*every {
			noted = now
			r.ceilings.note(r.gauge.sustained())
		}
		if midnights.look() {
			r.groups.moveMidnights(r.epoch.Add(midnights.slept))
		}
		if !now.Before(due) {
			next := telling.LookRarely
			for _, g := range r.groups {
				next = min(next, g.look())
			}
			due = now.Add(max(every, next))
			if r.flights.Follow(r.gauge.needs) {
				r.groups.fly(r.course, r.flights.Most(), r.c.Queue)
			}
		}
		pause := due.Sub(now)
		if midnights.read != nil {
			pause = every // a sleep of the machine is noticed at once
		}
		t.Reset(pause)
		select {
		case <-t.C:
		case <-done:
			return
		}
	}
}

// look notes why the head of the group's queue waits. It returns how long the next look has time: a fourth of the head's
// wait, or a fiftieth of the time since a head was seen. By that fiftieth a new head's wait is noted too late at most.
func (g *group) look() time.Duration {
	r, cause := g.r, ""
	var wait time.Duration
	var text string
	headless := true
	g.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
		if q.Counts().Waiting > 0 {
			var at mono.Time
			at, cause, text = g.why(now, q, d)
			wait, headless = at.Sub(now), false
		}
		if cause == "concurrency" && len(r.c.Limits) == 0 { // no other cause is possible
			cause = ""
		}
	})
	now := time.Now()
	g.waits.Look(now, cause)
	if wait >= telling.LongWait {
		if reason := g.unsaid.Swap(nil); reason != nil {
			r.TellUnsaid(*reason, text, now.Add(wait))
		}
	}
	if headless && !g.headAt.IsZero() {
		return now.Sub(g.headAt) / 50
	}
	g.headAt = now
	return wait / 4
}

// midnights keeps the days of a place where they are while the machine sleeps. Go's clock may stand
// still then, and midnight would come later by that. The zero value is for limits without a zone.
// Only watch uses it.
type midnights struct {
	read  func() boottime.Reading // nil: no limit has a zone
	since boottime.Reading
	seen  time.Duration // what the look before read
	slept time.Duration // what the limiters know
}

func (c *Config) newMidnights() (m midnights) {
	for _, l := range c.Limits {
		if l.Zone != "" {
			m.read = boottime.Read
		}
	}
	if m.read != nil && c.clock != nil {
		m.read = func() boottime.Reading { _, reading := c.clock(); return reading }
	}
	if m.read != nil {
		m.since = m.read()
	}
	return m
}

// look reports whether the machine has slept since the last look that reported it. Two looks in a
// row have to agree: a process that is stopped in the midst of a reading seems to have slept.
func (m *midnights) look() bool {
	if m.read == nil {
		return false
	}
	const much = 10 * time.Millisecond
	slept := m.read().Slept(m.since)
	agreed := min(slept, m.seen)
	m.seen = slept
	if agreed <= m.slept+much {
		return false
	}
	m.slept = agreed
	return true
}

// moveMidnights moves the scale of all limiters on by what was slept through. What was sent before
// counts as long as it would have without sleep, or longer.
func (p pools) moveMidnights(epoch time.Time) {
	for _, g := range p {
		g.pool.Update(func(mono.Time, *pool.Queue, *pool.Dispatcher) {
			for _, of := range g.allowances {
				limit.SetEpoch(of.fitted, epoch)
			}
		})
	}
}

// fly tells the groups how many attempts may be in flight, over all of them.
func (p pools) fly(course *course, inFlight, queue int) {
	course.ahead(len(p)*queue, len(p)*inFlight)
	for _, g := range p {
		g.pool.SetInFlight(inFlight)
	}
}

// needs returns how many requests per second the limits allow, infinite if there are none, and how long the latest
// answers took.
func (s *gauge) needs() (perSecond float64, answer time.Duration) {
	s.tally.Mu.Lock()
	defer s.tally.Mu.Unlock()
	perSecond = s.allowed(0, true) / s.tally.CostOfOne()
	if len(s.c.Servers) > 0 {
		perSecond = rate.SpeedAtServers(s.costOf(0, 1000), s.c.Servers)
	}
	return perSecond, rate.Lasting(s.tally.Took.Seconds())
}
