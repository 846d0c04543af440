// Package fleet runs clients who share a quota, and know nothing of each other, in virtual time: a Scenario is the quota,
// the clients and what they want, and a Report what became of them. Each client follows a throttle.Strategy, which may be
// one of your own.
//
// fleet.go has what is run, client.go the clients, server.go the quota, measure.go what is counted and report.go what is
// made of that; standard.go has the scenarios that strategies are compared in. Package sim/scenario reads them from files.
//
// The same Scenario has the same Report. Nothing here is safe for concurrent use; runs of their own may be concurrent.
package fleet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/sim"
	"github.com/paceline-go/paceline/throttle"
)

// Scenario is a quota, and the clients that share it: they know what its server publishes, and nothing of each other. It
// replays to the byte: the same Scenario has the same Report.
//
// Package sim/scenario reads one from a file.
type Scenario struct {
	Name string
	// Duration is how long it lasts. Who sleeps at its end is cut off, and what has no answer by then is not counted.
	Duration time.Duration
	Seed     uint64
	Server   Quota
	Groups   []Group
	// Sample is the time between two values of Report.Series. If zero, there is none.
	Sample time.Duration
}

// Quota is a server with one quota for all, applied by the servers of package rule. With every answer it says how many more
// requests would pass at that instant.
type Quota struct {
	Kind QuotaKind
	// Limit requests per Window is what it publishes, and applies unless Changes. If zero, 4500 per hour.
	Limit  int64
	Window time.Duration
	// Capacity is the most that a Bucket or GCRA holds. If zero, Limit.
	Capacity int64
	// Level is how many requests would pass at once when the first one arrives, which is when the server's clock starts. If
	// zero, none with a Bucket or GCRA, as in the published simulations, and all with the others.
	Level int64
	// Full: a Bucket or GCRA starts at Capacity, not at Level.
	Full bool
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
	// Service is how long the server works on a request once it has decided whether it passes. If zero, no time: then only
	// requests that arrive at one instant are concurrent.
	Service latency.Law
	// Silent: answers do not say what remains.
	Silent bool
	// Changes are of the quota, in the order of time. No client is told.
	Changes []Change
}

// Change is an instant from which on the quota is another one.
type Change struct {
	At time.Duration
	// Factor is by what Limit and Capacity are multiplied: those of Quota, not of the Change before.
	Factor float64
}

// Group is clients that are alike. A client is a thread: it has one request at a time, which it tries until it is served.
type Group struct {
	Name     string
	Strategy throttle.Strategy
	// Params are those of its strategy. If Rate and Burst are zero, they are what Quota publishes.
	Params throttle.Params
	// Processes of so many Threads each: threads share what their process knows. If zero, 1.
	Processes, Threads int
	// Link is the latency to the server and, drawn again, back.
	Link latency.Law
	// Work is how long a thread is busy between an answer and its next try or request. If zero, not at all; 1 ms if
	// Link and Service take less than that on average, since nobody does infinitely many requests at one instant.
	Work   time.Duration
	Demand Demand
	// Join is when its threads start, Spread within how long after that they do, each at random. If zero: at once, all together.
	Join, Spread time.Duration
	// Leave is when they are gone, whatever they are about. If zero, they stay.
	Leave time.Duration
}

// Demand is when a client has a request to make.
type Demand struct {
	Kind DemandKind
	// On and Off are the periods of OnOff, which begins with On.
	On, Off time.Duration
	// PerSecond is how many requests come to each client of Light, at random instants. They wait for each other.
	PerSecond float64
	// Total is how many requests the group has to do in all. If zero, there is no end of them. When every group of a
	// Scenario is done, the run is over.
	Total int
}

// DemandKind is a kind of Demand.
type DemandKind uint8

const (
	Always DemandKind = iota // saturating: the next request is at hand when the one before is served
	OnOff                    // saturating for a while, then none for a while
	Light                    // at a rate
)

// QuotaKind is a kind of Quota.
type QuotaKind uint8

const (
	Bucket       QuotaKind = iota // rule.Bucket
	GCRA                          // rule.GCRA
	DecreaseOnly                  // Limit requests in all: nothing comes back
	Rolling                       // rule.Rolling
	Calendar                      // rule.Calendar, whose first interval begins with the first request
	Weighted                      // rule.Weighted, by the same calendar
)

// Fleet runs a Scenario, step by step. It is not safe for concurrent use.
type Fleet struct {
	scenario  Scenario
	loop      sim.Loop[event]
	link      *rand.Rand // latencies
	server    quotaServer
	groups    []groupState
	processes []processState
	threads   []threadState
	open      int // groups that are not done: those without a Total never are
	end       mono.Time
	ended     bool
	m         measures
}

type event struct {
	what eventKind
	who  int32
	gen  uint32
}

type eventKind uint8

const (
	joined    eventKind = iota // a group
	left                       // a group
	changed                    // the quota
	sampled                    // the series
	entered                    // a thread begins
	wanted                     // a request comes to a thread
	idled                      // a thread is to look for its next request
	retried                    // a thread is to try again
	slept                      // a thread sends
	readied                    // a process is to ask its limiter
	arrived                    // a request
	worked                     // the server is done with a request
	wasServed                  // the answer is there
)

// Check returns what cannot be, as New does, without making the clients: a *FieldError or several of them, joined.
func (s Scenario) Check() error {
	s = s.filled()
	return s.check()
}

// New checks a scenario and puts it at its beginning. Its error is that of Scenario.Check.
func New(s Scenario) (*Fleet, error) {
	s = s.filled()
	if err := s.check(); err != nil {
		return nil, err
	}
	f := &Fleet{scenario: s, link: rand.New(rand.NewPCG(s.Seed, 0x11c4)), end: mono.Time(s.Duration), open: len(s.Groups)}
	f.server = newQuotaServer(&f.scenario.Server)
	if err := f.populate(); err != nil {
		return nil, err
	}
	f.m.start(f)
	for i, c := range s.Server.Changes {
		f.loop.At(mono.Time(c.At), event{what: changed, who: int32(i)})
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		f.loop.At(mono.Time(g.Join), event{what: joined, who: int32(i)})
		if g.Leave > 0 {
			f.loop.At(mono.Time(g.Leave), event{what: left, who: int32(i)})
		}
	}
	if s.Sample > 0 {
		f.loop.At(0, event{what: sampled})
	}
	return f, nil
}

// filled is the scenario with its defaults.
func (s Scenario) filled() Scenario {
	q := &s.Server
	q.Changes = slices.Clone(q.Changes)
	q.Limit = cmp.Or(q.Limit, 4500)
	q.Window = cmp.Or(q.Window, time.Hour)
	q.Capacity = cmp.Or(q.Capacity, q.Limit)
	if q.Full || q.Level == 0 && q.Kind != Bucket && q.Kind != GCRA {
		q.Level = q.Capacity
	}
	s.Groups = slices.Clone(s.Groups)
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Processes = cmp.Or(g.Processes, 1)
		g.Threads = cmp.Or(g.Threads, 1)
		g.Params.Rate = cmp.Or(g.Params.Rate, float64(q.Limit)/q.Window.Seconds())
		g.Params.Burst = cmp.Or(g.Params.Burst, float64(q.Capacity))
		if g.Work == 0 && roughly(g.Link)+roughly(g.Link)+roughly(q.Service) < time.Millisecond {
			g.Work = time.Millisecond
		}
	}
	return s
}

// roughly is the mean of a law, or more than that if it has none.
func roughly(l latency.Law) time.Duration {
	mean, ok := l.Mean()
	if !ok {
		return time.Hour
	}
	return min(mean, time.Hour)
}

// Advance runs what happens until an instant, counted from the beginning, and reports whether that was all: the scenario's
// duration is over, or all is done that there was to do.
func (f *Fleet) Advance(until time.Duration) (done bool) {
	last := min(mono.Time(until), f.end)
	for !f.ended {
		e, ok := f.loop.Next(last)
		if !ok {
			break
		}
		f.m.events++
		f.happen(e)
	}
	if !f.ended {
		f.m.now = max(f.m.now, last)
		f.ended = f.m.now >= f.end
	}
	return f.ended
}

// Now returns how far the run is.
func (f *Fleet) Now() time.Duration { return f.m.now.Sub(0) }

func (f *Fleet) happen(e event) {
	now := f.loop.Now()
	f.m.now = now
	switch e.what {
	case joined:
		f.join(now, e.who)
	case left:
		f.leave(e.who)
	case changed:
		f.m.lost += f.server.change(now, f.scenario.Server.Changes[e.who].Factor)
	case sampled:
		f.m.sample(f, now)
		f.loop.At(now.Add(f.scenario.Sample), e)
	case readied:
		if p := &f.processes[e.who]; p.gen == e.gen {
			p.wake = 0
			f.ask(now, e.who)
		}
	case arrived:
		f.arrive(now, e.who)
	case worked:
		f.m.concurrent--
	case wasServed:
		f.answer(now, e.who)
	default:
		t := &f.threads[e.who]
		if f.groups[t.group].gone {
			return
		}
		switch e.what {
		case entered:
			f.enter(now, e.who)
		case wanted:
			f.want(now, e.who)
		case idled:
			f.next(now, e.who)
		case retried:
			f.try(now, e.who)
		case slept:
			f.send(now, e.who)
		}
	}
}

// arrive has the server decide.
func (f *Fleet) arrive(now mono.Time, who int32) {
	t := &f.threads[who]
	t.limited = !f.server.arrive(now)
	t.remaining = f.server.remaining(now)
	f.m.arrival(now, t.limited, t.remaining)
	answered := now
	if service := &f.scenario.Server.Service; *service != (latency.Law{}) {
		answered = now.Add(service.Draw(f.link))
		f.m.enterServer()
		f.loop.At(answered, event{what: worked})
	} else {
		f.m.sameInstant(now)
	}
	f.loop.At(answered.Add(f.scenario.Groups[t.group].Link.Draw(f.link)), event{what: wasServed, who: who})
}
