package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Store is what processes of one's own share one exact limit by, as package share does: those of
// the groups that follow Share. At the beginning it has been there for long, and nothing counts in
// it.
type Store struct {
	// Link is the latency to the store, and, drawn again, the latency back: a turn goes there and back
	// twice. Work is how long the store takes to put. If zero, no time.
	Link, Work latency.Law
	// Split has processes go on with their parts while they cannot reach the store, as share.Split
	// does; otherwise they wait.
	Split bool
	// Outages are when it cannot be reached.
	Outages []Outage
}

// Outage is a time in which the store cannot be reached.
type Outage struct {
	At, Lasts time.Duration
	// Group is the name of the group that is cut off, and Processes how many of it are, the first
	// ones; if zero, all. If Group is empty, all of all groups are.
	Group     string
	Processes int
}

// Share is what processes follow that share the quota by the Store. Params.Weight is what a process
// of the group gets of it where there is not enough for all; other Params are not for it. The
// limiter is that which suits the Kind of the Quota, as published.
func Share() strategy.Strategy {
	return strategy.Strategy{Name: "share", Text: "processes share one exact limit by a store"}
}

// shares tells whether the group follows Share.
func (g *Group) shares() bool {
	return g.Strategy.Name == Share().Name && g.Strategy.New == nil && g.Strategy.NewLimiter == nil
}

// keeper is the quota as a limiter that can be shared.
func (q *Quota) keeper() (limit.Limiter, error) {
	margin := time.Duration(0) // the limiters' own are for a tick of 1 ms
	if q.Tick > time.Millisecond {
		margin = q.Tick + q.Tick/10 + q.Window/10_000
	}
	switch q.Kind {
	case Bucket, GCRA:
		return limit.NewBucket(limit.BucketConfig{Limit: q.Limit, Window: q.Window, Burst: q.Capacity, Unit: q.Unit,
			Margin: margin})
	case Rolling:
		return limit.NewRolling(limit.RollingConfig{Limit: q.Limit, Window: q.Window, Unit: q.Unit, Margin: margin,
			Grain: q.Window / 2000})
	case Weighted:
		return limit.NewWeighted(limit.WeightedConfig{Limit: q.Limit, Window: q.Window, Unit: q.Unit, Margin: margin})
	}
	return nil, fmt.Errorf("of a %v quota, whose windows nobody knows beforehand: want bucket, gcra, rolling or weighted", q.Kind)
}

// check collects what is impossible in the store of a scenario, some of whose groups may share.
func (s *Store) check(of *Scenario, sharing bool, refuse func(field, format string, a ...any),
	within func(field string, d, least, most time.Duration)) {
	if !sharing {
		if len(s.Outages) > 0 || s.Split || s.Link != (latency.Law{}) || s.Work != (latency.Law{}) {
			refuse("Store", "is there, and no group has the strategy %s", Share().Name)
		}
		return
	}
	if _, err := of.Server.keeper(); err != nil {
		refuse("Server.Kind", "is to be shared, and cannot be: %v", err)
	}
	if q := &of.Server; q.Level != q.Capacity {
		refuse("Server.Level",
			"%d is not the %d that who shares takes the quota to have at the beginning: want full, or none", q.Level, q.Capacity)
	}
	for i, o := range s.Outages {
		at := func(field string) string { return fmt.Sprintf("Store.Outages[%d].%s", i, field) }
		within(at("At"), o.At, 0, longestRun)
		within(at("Lasts"), o.Lasts, 1, longestRun)
		processes := 0
		for i := range of.Groups {
			if g := &of.Groups[i]; g.Name == o.Group && g.shares() {
				processes += g.Processes
			}
		}
		switch {
		case o.Group == "" && o.Processes != 0:
			refuse(at("Processes"), "%d of no group: want the name of one, as well", o.Processes)
		case o.Group != "" && processes == 0:
			refuse(at("Group"), "%q is no group that has the strategy %s", o.Group, Share().Name)
		case o.Processes < 0 || o.Group != "" && o.Processes > processes:
			refuse(at("Processes"), "%d is not from 0, for all, to the %d of the group", o.Processes, processes)
		}
	}
}

// StoreReport says what became of the processes that share the quota by the Store.
type StoreReport struct {
	// Turns is how many were put, PerSecond of them in a second, and Lost how many had no answer, or
	// put nothing for 2 s as others were quicker. Each try of a turn is two statements; PerRequest is
	// how many statements there were for each request that was sent.
	Turns      int            `json:"turns"`
	PerSecond  float64        `json:"turns_per_second"`
	Lost       int            `json:"lost"`
	PerRequest float64        `json:"statements_per_request"`
	Outages    []OutageReport `json:"outages,omitempty"`
}

// OutageReport says what was sent while some or all could not reach the Store.
type OutageReport struct {
	At      float64 `json:"at_s"`
	Seconds float64 `json:"seconds"` // until its end, or that of the run
	// Cut is how many processes of so many were cut off.
	Cut int `json:"cut"`
	Of  int `json:"of"`
	// From is when the first of them went on with its part; nil: none did. Parts is how many requests went by those.
	From  *float64 `json:"parts_from_s"`
	Parts int      `json:"parts"`
	// SentPercent is how much arrived in the outage, or of it from From on, in percent of what the
	// quota refills in that time. What is more than 100 is the price of going on with parts while
	// others still have all. Limited is how many were refused meanwhile, and until what was sent then
	// no longer counts: parts are used for up to 4 s after the end.
	SentPercent float64 `json:"sent_percent"`
	Limited     int     `json:"limited"`
}

// storeState is the Store as it runs.
type storeState struct {
	store   nodesim.Store
	rng     *rand.Rand
	members []*member
	outages []outage
	calls   []func() // by the number of the event
	free    []int32
	window  time.Duration
	turns   int
	tries   int
	lost    int
	sent    int
	loop    *sim.Loop[event]
}

// outage counts what an OutageReport tells.
type outage struct {
	at, until mono.Time
	from      mono.Time // of the first of the parts
	parts     int
	cost      int64 // of what arrived from then on, or in the outage if there are no parts
	limited   int
}

// member is a process that shares, as the limiter of its threads. Its node's clock is that of the run.
type member struct {
	*node.Node
	of    *storeState
	group string
	turns nodesim.Turns
	cuts  []int // the outages in which it is cut off
}

func (s *storeState) start(f *Fleet) {
	s.loop, s.rng = &f.loop, rand.New(rand.NewPCG(f.scenario.Seed, 0x570e))
	s.window = f.scenario.Server.Window
	for _, o := range f.scenario.Store.Outages {
		at := mono.Time(o.At)
		s.outages = append(s.outages, outage{at: at, until: min(at.Add(o.Lasts), f.end)})
	}
}

// join makes a member of a process.
func (s *storeState) join(f *Fleet, group int, process int32) *member {
	g, c := &f.scenario.Groups[group], &f.scenario.Store
	config := node.Config{New: func() limit.Limiter {
		l, _ := f.scenario.Server.keeper() // which was checked
		return l
	}, ID: fmt.Sprint(process), Weight: g.Params.Weight, Split: c.Split}
	m := &member{Node: node.New(config), of: s, group: g.Name}
	if len(s.members) == 0 {
		s.store.Rest(config)
	}
	place := 0
	for _, other := range s.members {
		if other.group == g.Name {
			place++
		}
	}
	for i, o := range c.Outages {
		if o.Group == "" || o.Group == g.Name && (o.Processes == 0 || place < o.Processes) {
			m.cuts = append(m.cuts, i)
		}
	}
	m.turns = nodesim.Turns{Core: m.Node, Store: &s.store, Now: s.loop.Now, Clock: s.loop.Now, After: s.after,
		Later: s.after,
		Until: func(p mono.Time) time.Duration { return max(p.Sub(s.loop.Now()), 0) },
		Way:   func() time.Duration { return c.Link.Draw(s.rng) }, Work: func() time.Duration { return c.Work.Draw(s.rng) },
		Away: m.away, UpTo: func(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d))) },
		Put: func(_, tries int) { s.turns, s.tries = s.turns+1, s.tries+tries }, Ended: func(err error) {
			if err != nil && !errors.Is(err, node.ErrWait) {
				s.lost++
			}
			f.ask(s.loop.Now(), process)
		}}
	s.members = append(s.members, m)
	return m
}

// after plans a call.
func (s *storeState) after(d time.Duration, call func()) {
	i := int32(len(s.calls))
	if n := len(s.free); n > 0 {
		i = s.free[n-1]
		s.free = s.free[:n-1]
		s.calls[i] = call
	} else {
		s.calls = append(s.calls, call)
	}
	s.loop.At(s.loop.Now().Add(d), event{what: called, who: i})
}

func (s *storeState) call(i int32) {
	call := s.calls[i]
	s.calls[i] = nil
	s.free = append(s.free, i)
	call()
}

// away tells whether the member is cut off now.
func (m *member) away() bool {
	return slices.ContainsFunc(m.cuts, func(i int) bool { return m.of.outages[i].lasts(m.of.loop.Now()) })
}

func (o *outage) lasts(now mono.Time) bool { return o.at <= now && now < o.until }

// leave has a member give back what it holds: its turn does that.
func (m *member) leave() {
	m.Close()
	m.turns.Plan()
}

// Admit implements limit.Limiter, and counts what goes by a part.
func (m *member) Admit(s *limit.Sent) {
	m.of.sent++
	if _, _, on := m.Alone(); on {
		for _, i := range m.cuts {
			if o := &m.of.outages[i]; o.lasts(s.At) {
				if o.parts++; o.parts == 1 { // what arrived before says nothing of parts
					o.from, o.cost, o.limited = s.At, 0, 0
				}
			}
		}
	}
	m.Node.Admit(s)
}

// arrival counts a request at the server.
func (s *storeState) arrival(now mono.Time, cost int64, limited bool) {
	for i := range s.outages {
		o := &s.outages[i]
		if o.lasts(now) {
			o.cost += cost
		}
		if limited && o.at <= now && now < o.until.Add(4*time.Second+s.window) {
			o.limited++
		}
	}
}

// report is nil where nobody shares.
func (s *storeState) report(f *Fleet) *StoreReport {
	if len(s.members) == 0 {
		return nil
	}
	r := &StoreReport{Turns: s.turns, Lost: s.lost}
	if d := f.m.now.Sub(0).Seconds(); d > 0 {
		r.PerSecond = float64(s.turns) / d
	}
	if s.sent > 0 {
		r.PerRequest = 2 * float64(s.tries) / float64(s.sent)
	}
	for i := range s.outages {
		o := &s.outages[i]
		of := OutageReport{At: o.at.Sub(0).Seconds(), Of: len(s.members), Parts: o.parts}
		for _, m := range s.members {
			if slices.Contains(m.cuts, i) {
				of.Cut++
			}
		}
		until := min(o.until, f.m.now)
		if until > o.at {
			of.Seconds = until.Sub(o.at).Seconds()
		}
		since := o.at
		if o.parts > 0 {
			since = o.from
			of.From = new(o.from.Sub(0).Seconds())
		}
		of.Limited = o.limited
		if until > since {
			of.SentPercent = percent(float64(o.cost), f.scenario.Server.rated(since, until))
		}
		r.Outages = append(r.Outages, of)
	}
	return r
}
