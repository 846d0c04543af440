package fleet

import (
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Fleet runs a Scenario, step by step. It is not safe for concurrent use.
type Fleet struct {
	scenario  Scenario
	number    uint64        // of the latest request
	outcome   limit.Outcome // of the present answer
	loop      sim.Loop[event]
	link      *rand.Rand // draws latencies
	words     *rand.Rand // draws what headers say
	server    quotaServer
	groups    []groupState
	processes []processState
	store     storeState
	threads   []threadState
	open      int   // groups that are not done; a group without a Total never is
	mostCost  int64 // largest cost of a request
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
	joined    eventKind = iota // a group begins
	left                       // a group is gone
	changed                    // the quota changes
	looked                     // a replica asks what remains
	sampled                    // the series gets an instant
	entered                    // a thread begins
	wanted                     // a request comes to a thread
	idled                      // a thread is to look for its next request
	retried                    // a thread is to try again
	slept                      // a thread sends
	readied                    // a process is to ask its limiter
	arrived                    // a request is at the server
	worked                     // the server is done with a request
	wasServed                  // the answer is there
	called                     // what the store's clients planned
)

// Check returns what is impossible in the scenario, as New does, without making the clients: a
// *FieldError, or several joined.
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
	f := &Fleet{scenario: s, link: rand.New(rand.NewPCG(s.Seed, 0x11c4)), words: rand.New(rand.NewPCG(s.Seed, 0x4ead)),
		end: mono.Time(s.Duration), open: len(s.Groups),
		mostCost: s.Server.least()}
	f.server = newQuotaServer(&f.scenario.Server)
	f.store.start(f)
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

// Advance runs what happens until an instant, counted from the beginning. It returns true if the
// run is over: its duration has passed, or all requests that there were to make are done.
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
	case looked:
		f.server.look(now, e.who)
		f.loop.At(now.Add(f.scenario.Server.Headers.Stale), e)
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
	case called:
		f.store.call(e.who)
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

// arrive has the server decide about a thread's request.
func (f *Fleet) arrive(now mono.Time, who int32) {
	t := &f.threads[who]
	first := !f.server.started
	passed := f.server.arrive(now, t.cost)
	if first {
		f.replicate(now)
	}
	t.told = f.server.tell(now, t.cost, !passed, f.words)
	f.m.arrival(f, now, who)
	f.store.arrival(now, t.cost, !passed)
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

// replicate starts the replicas. All know what remained at the first request, and then ask one after another.
func (f *Fleet) replicate(now mono.Time) {
	for i := range f.server.replicas {
		f.server.look(now, int32(i))
		first := f.scenario.Server.Headers.Stale / time.Duration(len(f.server.replicas)) * time.Duration(i+1)
		f.loop.At(now.Add(first), event{what: looked, who: int32(i)})
	}
}
