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

// Proof is a client that always has a request at hand and sends it the moment its limiter lets it,
// to servers that refuse whatever is over their rule, over a path as hostile as one likes. A
// limiter that keeps its promise is never refused.
type Proof struct {
	Limiter limit.Limiter
	// Servers all judge every request, each by its own Unit.
	Servers []ProofServer
	Path    Path
	// Costs are what requests may cost, each equally likely. If empty, limit.One.
	Costs []limit.Cost
	// Requests is how many requests are sent.
	Requests int
	// Lost is the share of requests without an answer: after Timeout the client gives up and knows
	// nothing of them. If Timeout is zero, 1 s.
	Lost    float64
	Timeout time.Duration
	// Aside is the share of requests that never reach the servers: half of them are answered by
	// something in front of the servers, the others do not leave the client.
	Aside float64
	// Idle is the chance, before each request, that the client has nothing to send for a while, up to 3 s.
	Idle float64
	Seed uint64
	// Know, if not nil, adds to the outcome of an answer what else the client could know of the request.
	Know func(o *limit.Outcome, sent, arrived, now mono.Time)
	// Stop, if not nil, is called now and then; once it returns true no more is sent.
	Stop func() bool
	// OnSend, if not nil, is told of every request: its cost, and how long after the sending the
	// client knew that it had arrived. If no answer comes, that is Timeout and the 5 s after which it
	// cannot arrive any more.
	OnSend func(cost limit.Cost, known time.Duration)
}

// ProofServer is a server that reads one unit of the cost.
type ProofServer struct {
	rule.Server
	Unit limit.Unit
}

// ProofTally is what came of a Proof.
type ProofTally struct {
	Requests int
	Rejected int
	First    string    // describes the first request that was rejected
	End      mono.Time // when the last request was sent
}

type proofEvent struct {
	kind proofEventKind
	i    int32
}

type proofEventKind uint8

const (
	proofWakes proofEventKind = iota
	proofArrives
	proofAnswered
)

type proofFlight struct {
	limit.Sent
	arrived mono.Time
	lost    bool
	refused bool
	aside   limit.Result // Failed or Unsent; 0: none
	pending uint8        // how many of its events are to come
}

// Run returns what came of it.
func (p Proof) Run() ProofTally {
	if len(p.Costs) == 0 {
		p.Costs = []limit.Cost{limit.One}
	}
	p.Timeout = cmp.Or(p.Timeout, time.Second)
	x := proof{Proof: p, rng: rand.New(rand.NewPCG(p.Seed, 4)), wake: limit.Never, next: p.Costs[0]}
	for {
		x.send()
		e, ok := x.loop.Next(limit.Never)
		if !ok {
			return x.ProofTally
		}
		x.happen(e)
	}
}

type proof struct {
	Proof
	ProofTally
	rng     *rand.Rand
	loop    Loop[proofEvent]
	flights []proofFlight
	free    []int32
	next    limit.Cost
	wake    mono.Time
	idle    mono.Time // it has nothing to send until then
	sent    limit.Sent
	outcome limit.Outcome
}

// send sends the requests that may go.
func (x *proof) send() {
	for now := x.loop.Now(); x.ProofTally.Requests < x.Proof.Requests; {
		ready := x.Limiter.Ready(now, x.next)
		if ready < limit.AfterSettle {
			ready = max(ready, x.idle)
		}
		if ready > now {
			if ready < limit.AfterSettle && ready != x.wake {
				x.wake = ready
				x.loop.At(ready, proofEvent{kind: proofWakes})
			}
			return
		}
		f := proofFlight{Sent: limit.Sent{At: now, Number: uint64(x.ProofTally.Requests + 1), Cost: x.next}, pending: 2}
		x.sent = f.Sent
		x.Limiter.Admit(&x.sent)
		forward, back := x.Path.Draw(now, x.rng)
		took := forward + back
		known := took
		if f.lost = x.Lost > 0 && x.rng.Float64() < x.Lost; f.lost {
			took = x.Timeout
			known = took + 5*time.Second
		}
		if x.Aside > 0 && !f.lost {
			switch r := x.rng.Float64(); {
			case r < x.Aside/2:
				f.aside = limit.Failed
			case r < x.Aside:
				f.aside, took, known = limit.Unsent, 0, 0
			}
		}
		i := place(&x.flights, &x.free, f)
		x.loop.At(now.Add(forward), proofEvent{proofArrives, i})
		x.loop.At(now.Add(took), proofEvent{proofAnswered, i})
		x.ProofTally.Requests++
		x.End = now
		if x.Stop != nil && x.ProofTally.Requests%1024 == 0 && x.Stop() {
			x.Proof.Requests = x.ProofTally.Requests
		}
		if x.OnSend != nil {
			x.OnSend(f.Cost, known)
		}
		if x.Idle > 0 && x.rng.Float64() < x.Idle {
			x.idle = now.Add(time.Duration(x.rng.Int64N(int64(3 * time.Second))))
		}
		if len(x.Costs) > 1 {
			x.next = x.Costs[x.rng.IntN(len(x.Costs))]
		}
	}
}

func (x *proof) happen(e proofEvent) {
	now := x.loop.Now()
	f := (*proofFlight)(nil)
	if e.kind != proofWakes {
		f = &x.flights[e.i]
		if f.pending--; f.pending == 0 {
			x.free = append(x.free, e.i)
		}
	}
	switch e.kind {
	case proofWakes:
		if now == x.wake {
			x.wake = limit.Never
		}
	case proofArrives:
		f.arrived = now
		if f.aside != 0 {
			return
		}
		for _, s := range x.Servers {
			if !s.Arrive(now, f.Cost[s.Unit]) {
				f.refused = true
			}
		}
		if f.refused {
			if x.Rejected++; x.First == "" {
				x.First = fmt.Sprintf("number %d, cost %v, sent at %v, arrived at %v", x.ProofTally.Requests, f.Cost, f.At, now)
			}
		}
	case proofAnswered:
		o := &x.outcome
		*o = limit.Outcome{RTT: now.Sub(f.At), Result: limit.Accepted}
		switch {
		case f.lost:
			*o = limit.Outcome{}
		case f.aside != 0:
			o.Result = f.aside
		case f.refused:
			o.Result = limit.Limited
		}
		if x.Know != nil && !f.lost {
			x.Know(o, f.At, f.arrived, now)
		}
		x.Limiter.Settle(now, &f.Sent, o)
	}
}
