package fleet

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

type groupState struct {
	threads   span32 // the group's part of Fleet.threads
	processes span32
	todo      int // requests of Total that no thread has taken yet
	doing     int // requests that a thread has taken and that are not served yet
	gone      bool
	gaveUp    int
	delay     delays
	fair      time.Duration // the fair interval between two sendings of a client at the end; 0: it cannot be told
}

type span32 struct{ from, to int32 }

// delays are the times from when a request was at hand until it was served.
type delays struct {
	sum     time.Duration
	longest time.Duration
	n       int
}

func (d *delays) add(t time.Duration) {
	d.sum += t
	d.longest = max(d.longest, t)
	d.n++
}

// processState drives the limiter of a process as a Gate does: first come, first served.
type processState struct {
	member     *member       // that limiter, where the process shares it by the store
	waiting    int           // threads in the line
	limiter    limit.Limiter // nil if its threads decide for themselves
	sleeper    strategy.Sleeper
	skew       time.Duration
	wake       mono.Time // when the latest readied event will happen; 0: there is none
	head, tail int32     // first and last thread in the line; head −1: the line is empty
	gen        uint32
}

type threadState struct {
	thread  strategy.Thread // nil if the process has a limiter
	group   int32
	process int32
	behind  int32 // the next thread in the line
	busy    bool  // it has a request
	waiting bool  // it sleeps, or stands in the line
	told    told  // the answer that is on its way

	lease limit.Sent // of the request at hand, if the process has a limiter
	cost  int64      // cost of the request at hand; 0: there is none
	since mono.Time  // when the request at hand came
	asked mono.Time  // when the current try of it began
	sent  mono.Time

	served, refused int
	longest, last   time.Duration // longest and last sleep
	lately          time.Duration // longest sleep since the instant before in the series
	longestWait     time.Duration // longest time from a request's coming until it was served
	taken           taken
	pace            pace
	demand          *demand    // for Light demand
	costs           *rand.Rand // draws the costs if they are Exponential
}

// demand are the requests that come to a thread.
type demand struct {
	rng   rand.Rand
	queue []mono.Time // when the requests came that have not begun
}

// populate makes the clients.
func (f *Fleet) populate() error {
	for i := range f.scenario.Groups {
		g := &f.scenario.Groups[i]
		group := groupState{todo: g.Demand.Total,
			threads: span32{from: int32(len(f.threads))}, processes: span32{from: int32(len(f.processes))}}
		for range g.Processes {
			p := processState{head: -1, tail: -1}
			rng := rand.New(rand.NewPCG(f.scenario.Seed, 0xc1<<32+uint64(len(f.processes))))
			process, limiter, err := g.process(rng)
			if err != nil {
				return fmt.Errorf("fleet: strategy %q makes one process but not another: %w", g.Strategy.Name, err)
			}
			if g.shares() {
				p.member = f.store.join(f, i, int32(len(f.processes)))
				limiter = p.member
			}
			p.limiter = limiter
			p.sleeper, _ = limiter.(strategy.Sleeper)
			if skew := f.scenario.Server.Headers.Skew; skew > 0 {
				own := rand.New(rand.NewPCG(f.scenario.Seed, 0x5c<<32+uint64(len(f.processes))))
				p.skew = time.Duration(own.Int64N(2*int64(skew)+1)) - skew
			}
			for range g.Threads {
				t := threadState{group: int32(i), process: int32(len(f.processes)), behind: -1}
				if process != nil {
					t.thread = process.Thread(rng)
				}
				if g.Demand.Kind == Light {
					// The generator is its own, so that every strategy meets the same demand.
					t.demand = &demand{rng: *rand.New(rand.NewPCG(f.scenario.Seed, 0xde<<32+uint64(len(f.threads))))}
				}
				if g.Costs.Exponential {
					t.costs = rand.New(rand.NewPCG(f.scenario.Seed, 0xc0<<32+uint64(len(f.threads))))
				}
				f.threads = append(f.threads, t)
			}
			f.processes = append(f.processes, p)
		}
		group.threads.to, group.processes.to = int32(len(f.threads)), int32(len(f.processes))
		f.groups = append(f.groups, group)
	}
	return nil
}

// draw returns the cost of a request. An exponential cost is 1 plus the number of trials that fail
// before one succeeds, Mean − 1 on average.
func (c *Costs) draw(rng *rand.Rand, most int64) int64 {
	if rng == nil || c.Mean == 1 {
		return int64(math.Round(c.Mean))
	}
	return 1 + int64(min(rng.ExpFloat64()/-math.Log1p(-1/c.Mean), float64(most-1)))
}

// process returns a process of a group, whose threads decide for themselves, or the limiter that decides for them.
func (g *Group) process(rng *rand.Rand) (strategy.Process, limit.Limiter, error) {
	if g.shares() {
		return nil, nil, nil
	}
	if g.Strategy.NewLimiter != nil {
		l, err := g.Strategy.NewLimiter(g.Params, rng)
		return nil, l, err
	}
	p, err := g.Strategy.New(g.Params)
	return p, nil, err
}

// join has the threads of a group begin. Threads of one process begin together, but for Stagger.
func (f *Fleet) join(now mono.Time, who int32) {
	g := &f.scenario.Groups[who]
	at, process := now, int32(-1)
	for t := f.groups[who].threads.from; t < f.groups[who].threads.to; t++ {
		if g.Spread > 0 && f.threads[t].process != process {
			process = f.threads[t].process
			at = now.Add(time.Duration(f.link.Uint64N(uint64(g.Spread))))
		}
		begin := at
		if g.Stagger > 0 {
			begin = begin.Add(time.Duration(f.link.Uint64N(uint64(g.Stagger))))
		}
		f.loop.At(begin, event{what: entered, who: t})
	}
}

// leave removes a group from the run.
func (f *Fleet) leave(who int32) {
	g := &f.groups[who]
	g.gone = true
	for i := g.processes.from; i < g.processes.to; i++ {
		p := &f.processes[i]
		p.head, p.tail, p.waiting = -1, -1, 0
		p.gen++
		if p.member != nil {
			p.member.leave()
		}
	}
}

func (f *Fleet) enter(now mono.Time, who int32) {
	if f.threads[who].demand != nil {
		f.awaitDemand(now, who)
		return
	}
	f.next(now, who)
}

func (f *Fleet) awaitDemand(now mono.Time, who int32) {
	t := &f.threads[who]
	interval := t.demand.rng.ExpFloat64() / f.scenario.Groups[t.group].Demand.PerSecond
	f.loop.At(now.Add(time.Duration(min(interval*1e9, 1e18))), event{what: wanted, who: who})
}

// want takes in a request that comes to a thread.
func (f *Fleet) want(now mono.Time, who int32) {
	t := &f.threads[who]
	t.demand.queue = append(t.demand.queue, now)
	f.awaitDemand(now, who)
	if !t.busy {
		f.next(now, who)
	}
}

// next has a thread take its next request, if there is one.
func (f *Fleet) next(now mono.Time, who int32) {
	t := &f.threads[who]
	g, d := &f.groups[t.group], &f.scenario.Groups[t.group]
	t.busy, t.cost = false, 0
	switch d.Demand.Kind {
	case OnOff:
		period := d.Demand.On + d.Demand.Off
		if in := now.Sub(mono.Time(d.Join)) % period; in >= d.Demand.On {
			t.busy = true // it has nothing to do until then
			f.loop.At(now.Add(period-in), event{what: idled, who: who})
			return
		}
	case Light:
		if len(t.demand.queue) == 0 {
			return
		}
	}
	if d.Demand.Total > 0 {
		if g.todo == 0 {
			return
		}
		g.todo--
		g.doing++
	}
	t.since, t.cost = now, d.Costs.draw(t.costs, f.mostCost)
	if t.demand != nil {
		t.since = t.demand.queue[0]
		t.demand.queue = t.demand.queue[1:]
	}
	t.busy = true
	f.try(now, who)
}

// try has a thread wait until it may send.
func (f *Fleet) try(now mono.Time, who int32) {
	t := &f.threads[who]
	t.asked, t.waiting = now, true
	if t.thread != nil {
		at := max(t.thread.Send(now), now)
		// The sleep counts as planned, even if it ends after the run: that is how long the thread was throttled.
		f.m.slept(t, at.Sub(now))
		if at == now {
			f.send(now, who)
		} else {
			f.loop.At(at, event{what: slept, who: who})
		}
		return
	}
	p := &f.processes[t.process]
	t.behind = -1
	if p.head < 0 {
		p.head = who
	} else {
		f.threads[p.tail].behind = who
	}
	p.tail = who
	p.waiting++
	if p.head == who {
		f.ask(now, t.process)
	}
}

// ask asks the limiter for the threads in the line, and sends for as many as may go, in order.
func (f *Fleet) ask(now mono.Time, process int32) {
	p := &f.processes[process]
	if p.member != nil {
		defer p.member.turns.Plan()
	}
	for p.head >= 0 {
		who := p.head
		t := &f.threads[who]
		cost := f.scenario.Server.costs(t.cost)
		if p.member != nil {
			p.member.Line(p.waiting, cost, 0)
		}
		at := p.limiter.Ready(now, cost)
		if at > now {
			if at < limit.AfterSettle && at != p.wake {
				p.gen++
				p.wake = at
				f.loop.At(at, event{what: readied, who: process, gen: p.gen})
			}
			return
		}
		p.head = t.behind
		p.waiting--
		f.m.slept(t, now.Sub(t.asked))
		f.number++
		t.lease = limit.Sent{At: now, Number: f.number, Cost: cost}
		p.limiter.Admit(&t.lease)
		f.send(now, who)
	}
}

// send puts a thread's request on its way.
func (f *Fleet) send(now mono.Time, who int32) {
	t := &f.threads[who]
	t.sent, t.waiting = now, false
	f.m.sending(f, now, who)
	f.loop.At(now.Add(f.scenario.Groups[t.group].Link.Draw(f.link)), event{what: arrived, who: who})
}

// answer tells a thread what became of its request.
func (f *Fleet) answer(now mono.Time, who int32) {
	t := &f.threads[who]
	g, c := &f.groups[t.group], &f.scenario.Groups[t.group]
	if t.told.limited {
		t.refused++
	} else {
		t.served++
	}
	f.m.answered(t.told.limited)
	if f.scenario.Server.Headers.Reset != Untold {
		t.told.skewed(f.processes[t.process].skew)
	}
	if t.thread != nil {
		t.thread.Answer(now, f.scenario.Server.answer(&t.told, t.sent))
	} else {
		o := f.scenario.Server.outcome(&t.told)
		if f.processes[t.process].member != nil { // what a node tells others is that it arrived
			o = limit.Outcome{Result: o.Result}
		}
		o.RTT = now.Sub(t.sent)
		f.outcome = o
		f.processes[t.process].limiter.Settle(now, &t.lease, &f.outcome)
		f.ask(now, t.process) // threads in the line go before this one, which comes again
	}
	again := t.told.limited && !c.Strategy.GivesUp
	switch {
	case again:
	case t.told.limited:
		g.gaveUp++
		if c.Demand.Total > 0 {
			g.doing--
			g.todo++
		}
	default:
		g.delay.add(now.Sub(t.since))
		t.longestWait = max(t.longestWait, now.Sub(t.since))
		if c.Demand.Total > 0 {
			if g.doing--; g.todo == 0 && g.doing == 0 {
				f.open--
				f.ended = f.open == 0
				f.m.cleared = now
			}
		}
	}
	switch {
	case g.gone:
	case c.Work > 0 && again:
		f.loop.At(now.Add(c.Work), event{what: retried, who: who})
	case c.Work > 0:
		f.loop.At(now.Add(c.Work), event{what: idled, who: who})
	case again:
		f.try(now, who)
	default:
		f.next(now, who)
	}
}
