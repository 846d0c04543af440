package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Adversary is the other half of the proof. The servers and the client are the same, but no path
// draws the latencies: somebody who knows the server's state decides for each request when it
// arrives and when its answer does, within what is promised of them. A Path that draws cannot wait
// for the worst instant; an Adversary does nothing else.
//
// After every send it asks the servers whether everything that is still under way would pass if it
// arrived now. If not, it arrives now. Otherwise a mood decides what becomes of the request: it is
// answered late; or it arrives together with its answer; or it is aimed at an instant at which the
// server forgets something (just before, at it, or a tick after); or it is held until no more can
// be sent, and all that are held arrive together, in the order of sending or the reverse; or it is
// lost and arrives when the client has just stopped counting it. A mood lasts for some windows; the
// one that left the least room comes back.
//
// It shares no code with limit.
type Adversary struct {
	Limiter limit.Limiter
	Servers []ProofServer
	// Window is the server's window, Tick the unit of its clock, and Phase when its intervals begin, if it has any.
	Window, Tick time.Duration
	Phase        mono.Time
	Costs        []limit.Cost
	Requests     int
	Seed         uint64
	// Late is how long after an unknown outcome a request may arrive. If zero, 5 s.
	Late time.Duration
	// OneWayMax, if positive, is the longest time that a request takes to arrive: the client was promised that.
	OneWayMax time.Duration
	// Change, if not nil, is called now and then. It may change the limiter to anything that is as strict as the servers.
	Change func(now mono.Time, rng *rand.Rand)
	Stop   func() bool
}

// AdversaryTally is what came of it.
type AdversaryTally struct {
	ProofTally
	// Asked is after how many sends the servers were asked how much more would pass together with all
	// that was under way; Tight is after how many of those the answer was nothing.
	Asked, Tight int
}

// A mood is how the requests of some windows are treated.
type mood uint8

const (
	prompt    mood = iota // arrives and is answered at once
	slowBack              // arrives at once, is answered late
	slowThere             // arrives late, is answered at once
	aimed                 // arrives about where the server forgets something, is answered at once
	together              // all wait until no more can be sent, and arrive in order
	reversed              // the same, the last sent first
	split                 // the first of those that wait arrives and is answered at once, the others as aimed
	lost                  // no answer comes, and it arrives as late as it can
	moods
)

type adversaryEvent struct {
	kind adversaryEventKind
	i    int32
	plan uint32 // number of the decision that the event follows: if the flight has a newer one, the event is void
}

type adversaryEventKind uint8

const (
	adversaryWakes adversaryEventKind = iota
	adversaryArrives
	adversaryAnswered
	adversaryReleases
)

type adversaryFlight struct {
	limit.Sent
	plan    uint32
	arrived bool
	settled bool
	refused bool
	lost    bool
	used    bool // whether the slot is used
}

// Run returns what came of it.
func (a Adversary) Run() AdversaryTally {
	if len(a.Costs) == 0 {
		a.Costs = []limit.Cost{limit.One}
	}
	a.Late = cmp.Or(a.Late, 5*time.Second)
	x := adversary{Adversary: a, rng: rand.New(rand.NewPCG(a.Seed, 8)), wake: limit.Never, next: a.Costs[0]}
	for m := range moods {
		x.room[m] = -1 // not tried
	}
	x.turn()
	for {
		x.send()
		if x.blocked && len(x.held) > 0 && !x.releasing {
			x.releasing = true
			x.loop.At(x.loop.Now().Add(x.pause()), adversaryEvent{kind: adversaryReleases})
		}
		e, ok := x.loop.Next(limit.Never)
		if !ok {
			return x.tally
		}
		x.happen(e)
	}
}

type adversary struct {
	Adversary
	tally   AdversaryTally
	rng     *rand.Rand
	loop    Loop[adversaryEvent]
	flights []adversaryFlight
	outcome limit.Outcome
	free    []int32
	under   limit.Cost // the cost of what is under way: it has not arrived, and still may
	held    []int32    // flights that wait to be let go
	recent  []mono.Time
	next    limit.Cost
	wake    mono.Time
	blocked bool

	mood      mood
	until     mono.Time
	room      [moods]float64 // what was left after a send, on average
	sum, n    float64
	releasing bool
}

// turn chooses a mood for some windows: mostly the one that left the least room, otherwise any.
func (x *adversary) turn() {
	if x.n > 0 {
		was := &x.room[x.mood]
		if mean := x.sum / x.n; *was < 0 {
			*was = mean
		} else {
			*was += 0.3 * (mean - *was)
		}
	}
	x.sum, x.n = 0, 0
	x.until = x.loop.Now().Add(x.upTo(5 * x.Window))
	best := mood(0)
	for m := range moods {
		if x.room[m] < x.room[best] { // −1: not tried yet
			best = m
		}
	}
	if x.mood = best; x.rng.IntN(2) == 0 {
		x.mood = mood(x.rng.IntN(int(moods)))
	}
}

func (x *adversary) upTo(d time.Duration) time.Duration {
	return time.Duration(x.rng.Int64N(int64(max(d, 0)) + 1))
}

// pause returns how long the held requests wait after no more can be sent.
func (x *adversary) pause() time.Duration {
	if x.rng.IntN(3) == 0 {
		return 0
	}
	return x.aim().Sub(x.loop.Now())
}

// aim returns an instant, now or later, close to one at which a server forgets something: just
// before it, at it, or just after the tick that contains it.
func (x *adversary) aim() mono.Time {
	now := x.loop.Now()
	at := now.Add(x.upTo(x.Window))
	switch r := x.rng.IntN(8); {
	case r < 3:
		s := &x.Servers[x.rng.IntN(len(x.Servers))]
		if timed, ok := s.Server.(rule.Timed); ok {
			left := rule.Left(timed, now, limit.MaxCost, 0)
			if next, ok := timed.Ready(now, left+1+x.rng.Int64N(2)*left); ok {
				at = next
			}
		}
	case r < 5 && len(x.recent) > 0: // what arrived may be forgotten one or two windows later
		at = x.recent[x.rng.IntN(len(x.recent))].Add(time.Duration(1+x.rng.IntN(2)) * x.Window)
	case r < 7: // an interval begins
		in := now.Sub(x.Phase) % x.Window
		if in < 0 {
			in += x.Window
		}
		at = now.Add(x.Window - in)
	}
	tick := mono.Time(x.Tick)
	switch x.rng.IntN(6) {
	case 0:
		at--
	case 1:
		at += tick - 1
	case 2:
		at += tick
	case 3:
		at += tick - at%tick // the beginning of the next tick, and
	case 4:
		at += tick - at%tick - 1 // the last instant of this tick
	}
	return max(at, now)
}

// send sends what may go, and checks after each request whether everything under way would pass.
func (x *adversary) send() {
	for now := x.loop.Now(); x.tally.Requests < x.Requests; {
		if now >= x.until {
			x.turn()
		}
		ready := x.Limiter.Ready(now, x.next)
		if x.blocked = ready >= limit.AfterSettle; ready > now {
			if !x.blocked && ready != x.wake {
				x.wake = ready
				x.loop.At(ready, adversaryEvent{kind: adversaryWakes})
			}
			// Nothing can go for a long time, so holding requests for longer only wastes time.
			x.blocked = x.blocked || ready.Sub(now) > x.Window/2
			return
		}
		i := x.open(adversaryFlight{Sent: limit.Sent{At: now, Number: uint64(x.tally.Requests + 1), Cost: x.next}, used: true})
		x.Limiter.Admit(&x.flights[i].Sent)
		for u, n := range x.next {
			x.under[u] += n
		}
		x.tally.Requests++
		x.tally.End = now
		if x.Stop != nil && x.tally.Requests%256 == 0 && x.Stop() {
			x.Requests = x.tally.Requests
		}
		if len(x.Costs) > 1 {
			x.next = x.Costs[x.rng.IntN(len(x.Costs))]
		}
		if x.strike(now) {
			continue
		}
		x.plan(now, i)
	}
	x.blocked = true
}

func (x *adversary) open(f adversaryFlight) int32 {
	if n := len(x.free); n > 0 {
		i := x.free[n-1]
		x.free = x.free[:n-1]
		f.plan = x.flights[i].plan + 1
		x.flights[i] = f
		return i
	}
	x.flights = append(x.flights, f)
	return int32(len(x.flights) - 1)
}

// strike lets everything under way arrive now if the servers would refuse some of it.
func (x *adversary) strike(now mono.Time) bool {
	refused, least := false, int64(limit.MaxCost)
	ask := x.tally.Requests%4 == 0
	for _, s := range x.Servers {
		under := x.under[s.Unit]
		r, ok := s.Server.(rule.Rule)
		if !ok || under == 0 {
			continue
		}
		if !r.Fits(now, under) {
			refused = true
		} else if ask {
			least = min(least, rule.Left(r, now, under+64, under)-under)
		}
	}
	if !refused {
		if ask && least < limit.MaxCost {
			x.sum += float64(least)
			x.n++
			if x.tally.Asked++; least == 0 {
				x.tally.Tight++
			}
		}
		return false
	}
	x.held = x.held[:0]
	for i := range x.flights {
		f := &x.flights[i]
		if !f.used || f.arrived || x.OneWayMax > 0 && now.Sub(f.At) > x.OneWayMax {
			continue
		}
		x.arrive(now, f)
		if !f.settled && !f.lost {
			f.plan++
			x.loop.At(now, adversaryEvent{adversaryAnswered, int32(i), f.plan})
		}
	}
	return true
}

// plan decides what becomes of a request that was just sent.
func (x *adversary) plan(now mono.Time, i int32) {
	far := x.upTo(x.Window / time.Duration(1+x.rng.IntN(8)))
	switch x.mood {
	case prompt:
		x.decide(i, now, now)
	case slowBack:
		x.decide(i, now, now.Add(far))
	case slowThere:
		at := now.Add(far)
		x.decide(i, at, at)
	case aimed:
		at := x.aim()
		x.decide(i, at, at)
	case together, reversed, split:
		x.held = append(x.held, i)
		if x.OneWayMax > 0 { // it must arrive by then; what may be held back is the answer
			x.loop.At(now.Add(x.OneWayMax), adversaryEvent{adversaryArrives, i, x.flights[i].plan})
		}
	case lost:
		if x.rng.IntN(4) > 0 { // otherwise nothing would be left to send
			x.decide(i, now, now.Add(far))
			return
		}
		f := &x.flights[i]
		f.lost = true
		gone := now.Add(max(x.upTo(x.Window), x.OneWayMax))
		at := gone.Add(x.Late)
		if x.rng.IntN(2) == 0 {
			at = min(at, x.aim())
		}
		x.decide(i, at, gone)
	}
}

// decide sets when a request arrives and when its client hears of it, within the promise.
func (x *adversary) decide(i int32, arrives, hears mono.Time) {
	f := &x.flights[i]
	if x.OneWayMax > 0 {
		arrives = min(arrives, f.At.Add(x.OneWayMax))
	}
	if !f.lost {
		hears = max(hears, arrives)
	}
	x.loop.At(arrives, adversaryEvent{adversaryArrives, i, f.plan})
	x.loop.At(hears, adversaryEvent{adversaryAnswered, i, f.plan})
}

// release lets go what was held.
func (x *adversary) release(now mono.Time) {
	at := now
	for k := range x.held {
		i := x.held[k]
		if x.mood == reversed {
			i = x.held[len(x.held)-1-k]
		}
		switch {
		case x.mood == split && k == 0:
			x.decide(i, now, now)
			at = x.aim()
		default:
			x.decide(i, at, at)
		}
	}
	x.held = x.held[:0]
}

func (x *adversary) happen(e adversaryEvent) {
	now := x.loop.Now()
	switch e.kind {
	case adversaryWakes:
		if now == x.wake {
			x.wake = limit.Never
		}
		if x.Change != nil && x.rng.IntN(16) == 0 {
			x.Change(now, x.rng)
		}
		return
	case adversaryReleases:
		x.releasing = false
		x.release(now)
		return
	}
	f := &x.flights[e.i]
	if f.plan != e.plan {
		return
	}
	switch e.kind {
	case adversaryArrives:
		if !f.arrived {
			x.arrive(now, f)
		}
	case adversaryAnswered:
		if f.settled {
			break
		}
		f.settled = true
		o := &x.outcome
		*o = limit.Outcome{Result: limit.Accepted, RTT: now.Sub(f.At)}
		switch {
		case f.lost:
			*o = limit.Outcome{}
		case f.refused:
			o.Result = limit.Limited
		}
		x.Limiter.Settle(now, &f.Sent, o)
	}
	if f.used && f.arrived && f.settled {
		f.used = false
		x.free = append(x.free, e.i)
	}
}

func (x *adversary) arrive(now mono.Time, f *adversaryFlight) {
	f.arrived = true
	for u, n := range f.Cost {
		x.under[u] -= n
	}
	for _, s := range x.Servers {
		if !s.Server.Arrive(now, f.Cost[s.Unit]) {
			f.refused = true
		}
	}
	if f.refused {
		if x.tally.Rejected++; x.tally.First == "" {
			x.tally.First = fmt.Sprintf("number %d, cost %v, sent at %v, arrived at %v", x.tally.Requests, f.Cost, f.At, now)
		}
	}
	if len(x.recent) < 64 {
		x.recent = append(x.recent, now)
	} else {
		x.recent[x.rng.IntN(len(x.recent))] = now
	}
}
