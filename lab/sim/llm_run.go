package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// LLM is a client of a language model that limits requests and tokens, each in a rolling window.
//
// The server's rule: a request counts when it arrives, as one request and with the tokens that it
// really has, input and output together. It is refused, and then counts nowhere, if either closed
// window would hold more than its limit. So only the server knows the truth: no client can know the
// output before it has the answer. For a server that counts max_tokens at the arrival instead, a
// client reserves just that, as LLMLine does with Bounded.
type LLM struct {
	// Work is the prompts, in the order of At.
	Work []Prompt
	// Requests and Tokens are the server's limits in any Window. If zero, 500, 30,000 and one minute.
	Requests, Tokens int64
	Window           time.Duration
	// Latency is the time from the sending of a request to its answer. Forward is the part of it on
	// the way to the server, which counts at the arrival, and Back the part on the way back. The rest
	// is the server's work; there is none if the parts are longer. A refusal takes no work. A prompt
	// meets the same latencies whatever the client does.
	Latency, Forward, Back latency.Law
	// Documented makes the server the one that OpenAI documents: it has a bucket of requests and one
	// of tokens, full at first and refilled evenly. When a request arrives it takes the larger of its
	// input and its MaxTokens, and gives nothing back.
	Documented bool
	// Stated has each answer say for how many whole milliseconds the server worked on it, as
	// openai-processing-ms does: the request had arrived before that.
	Stated bool
	// Client decides when what is sent.
	Client LLMClient
	Seed   uint64
}

// Prompt is a request to a language model.
type Prompt struct {
	At            mono.Time // when it is made
	Input, Output int64     // tokens, as the server counts them
	MaxTokens     int64     // the most output that it asks for; Output or more
}

// Tokens is what a prompt really costs.
func (p *Prompt) Tokens() int64 { return p.Input + p.Output }

// Documented returns what a prompt costs at a server that is LLM.Documented.
func (p *Prompt) Documented() int64 { return max(p.Input, p.MaxTokens) }

// counted returns what the server counts for a prompt.
func (c *LLM) counted(p *Prompt) int64 {
	if c.Documented {
		return p.Documented()
	}
	return p.Tokens()
}

// rule returns the server's rule for one of its limits.
func (c *LLM) rule(n int64) (rule.Rule, error) {
	if c.Documented {
		return rule.NewBucket(rule.BucketConfig{Limit: n, Window: c.Window})
	}
	return rule.NewRolling(rule.RollingConfig{Limit: n, Window: c.Window})
}

// Trip has the times that an attempt takes: on its way, at the server, and on its way back.
type Trip struct{ Forward, Work, Back time.Duration }

// Trip returns the times of an attempt at Work[i], if it is not refused. The first attempt is 1.
func (c *LLM) Trip(i, attempt int) Trip {
	rng := rand.New(rand.NewPCG(c.Seed<<32|uint64(i), uint64(attempt)))
	t := Trip{Forward: c.Forward.Draw(rng), Back: c.Back.Draw(rng)}
	t.Work = max(0, c.Latency.Draw(rng)-t.Forward-t.Back)
	return t
}

// LLMClient is how the client of an LLM keeps to the limits, and so what a simulation compares:
// LLMLine, LLMGates or LLMBucket.
type LLMClient interface {
	start(x *llm) (llmClient, error)
}

// llmClient is a client at work. It calls send and give of its llm.
type llmClient interface {
	made(now mono.Time, i int32)
	// wakes is called when a timer ends that the client set.
	wakes(now mono.Time, e llmEvent)
	// answered is called at the end of an attempt.
	answered(now mono.Time, f *llmFlight)
}

// LLMTally is what came of a run.
type LLMTally struct {
	Prompts  int
	Sent     int // attempts
	Rejected int // attempts that the server refused
	Lost     int // prompts never answered
	// Last is when the last prompt that was served arrived at the server. End is when the last answer was read.
	Last, End mono.Time
	// WorstRequests and WorstTokens are the most that arrived in any closed window, including what was refused.
	WorstRequests, WorstTokens int64
	// WakeUps is how often something that waited was woken: by a timer of the client, or because a
	// caller's turn came. Answers are not counted.
	WakeUps int
	// Waits has a value for each prompt, in the order of Work: the time from its making to its last
	// sending, or −1 if it was lost.
	Waits []time.Duration
	// Overruns is how many answers had more tokens than were reserved, OverrunTokens how many more in
	// all, and Overrun how many more at most. Only LLMLine reserves.
	Overruns               int
	OverrunTokens, Overrun int64
	// Overtaken is the most tokens of later prompts that went ahead of one prompt.
	Overtaken int64
}

type llmEvent struct {
	kind llmEventKind
	i    int32 // the index of a prompt or of a flight
	seq  uint32
}

type llmEventKind uint8

const (
	llmMade llmEventKind = iota
	llmArrives
	llmAnswered
	llmWakes
)

type llmFlight struct {
	i    int32
	sent mono.Time
	trip Trip
	ok   bool
}

type llm struct {
	LLM
	LLMTally
	loop     Loop[llmEvent]
	client   llmClient
	requests rule.Rule
	tokens   rule.Rule
	flights  []llmFlight
	free     []int32
	attempts []int
	arrivals []llmArrival
	rng      *rand.Rand // the client's
}

type llmArrival struct {
	at     mono.Time
	tokens int64
}

// Run runs it to the end: until nothing waits and nothing is in flight.
func (c LLM) Run() (LLMTally, error) {
	c.fill()
	if c.Client == nil {
		return LLMTally{}, errors.New("sim: LLM: Client is nil")
	}
	x := &llm{LLM: c, attempts: make([]int, len(c.Work)), rng: rand.New(rand.NewPCG(c.Seed, 5))}
	x.Prompts = len(c.Work)
	x.Waits = make([]time.Duration, len(c.Work))
	var err error
	if x.requests, err = c.rule(c.Requests); err != nil {
		return LLMTally{}, err
	}
	if x.tokens, err = c.rule(c.Tokens); err != nil {
		return LLMTally{}, err
	}
	for i, p := range c.Work {
		if p.Input < 0 || p.Output < 0 || p.MaxTokens < p.Output || p.Input+p.MaxTokens > c.Tokens {
			return LLMTally{}, fmt.Errorf("sim: LLM: Work[%d] %+v: want Output from 0 to MaxTokens, and Input + MaxTokens of "+
				"at most %d", i, p, c.Tokens)
		}
		if i > 0 && p.At < c.Work[i-1].At {
			return LLMTally{}, fmt.Errorf("sim: LLM: Work[%d] is made at %v, before the one before it", i, p.At)
		}
		x.Waits[i] = -1
		x.loop.At(p.At, llmEvent{kind: llmMade, i: int32(i)})
	}
	if x.client, err = c.Client.start(x); err != nil {
		return LLMTally{}, err
	}
	for {
		e, ok := x.loop.Next(mono.Max)
		if !ok {
			break
		}
		x.happen(x.loop.Now(), e)
	}
	for _, w := range x.Waits {
		if w < 0 {
			x.Lost++
		}
	}
	x.WorstRequests, x.WorstTokens = x.worst()
	return x.LLMTally, nil
}

func (x *llm) happen(now mono.Time, e llmEvent) {
	switch e.kind {
	case llmMade:
		x.client.made(now, e.i)
	case llmWakes:
		x.client.wakes(now, e)
	case llmArrives:
		f := &x.flights[e.i]
		n := x.counted(&x.Work[f.i])
		// Both are asked, so that both hear of the time.
		r, t := x.requests.Fits(now, 1), x.tokens.Fits(now, n)
		f.ok = r && t
		x.requests.Count(now, 1, f.ok)
		x.tokens.Count(now, n, f.ok)
		x.arrivals = append(x.arrivals, llmArrival{now, n})
		if f.ok {
			x.Last = now
		} else {
			x.Rejected++
			f.trip.Work = 0
		}
		x.loop.At(now.Add(f.trip.Work+f.trip.Back), llmEvent{kind: llmAnswered, i: e.i})
	case llmAnswered:
		f := x.flights[e.i]
		x.free = append(x.free, e.i)
		if f.ok {
			x.Waits[f.i] = f.sent.Sub(x.Work[f.i].At)
			x.End = now
		}
		x.client.answered(now, &f)
	}
}

// send starts an attempt at prompt i.
func (x *llm) send(now mono.Time, i int32) {
	x.Sent++
	x.attempts[i]++
	f := llmFlight{i: i, sent: now, trip: x.Trip(int(i), x.attempts[i])}
	x.loop.At(now.Add(f.trip.Forward), llmEvent{kind: llmArrives, i: place(&x.flights, &x.free, f)})
}

// worst searches the log for the fullest closed windows. It shares nothing with the server but the tick of its clock.
func (x *llm) worst() (requests, tokens int64) {
	first, sum := 0, int64(0)
	for last := range x.arrivals {
		sum += x.arrivals[last].tokens
		for x.arrivals[last].at/tick-x.arrivals[first].at/tick > mono.Time(x.Window)/tick {
			sum -= x.arrivals[first].tokens
			first++
		}
		requests = max(requests, int64(last-first+1))
		tokens = max(tokens, sum)
	}
	return requests, tokens
}

// tick is the unit of the servers' clocks.
const tick = mono.Time(time.Millisecond)

// Ideal returns the shortest time in which anyone could have had those prompts counted for which
// served is true (all of them if it is nil), from instant 0 to the last arrival: somebody who knows
// everything beforehand, sends in any order, and meets no latency. It is a lower bound, which no
// order beats:
//
// Cut the time from an instant r to the last arrival at T into windows of W. There are ⌊(T − r)/W⌋
// + 1 of them, each holds at most N, and together they hold what is made at r or later. So for
// every r at which something is made, for requests and for tokens alike,
//
//	T ≥ r + (⌈what is made at r or later / N⌉ − 1)·W
//
// For a server that is Documented, a bucket holds N at r and gets N more in every W: T ≥ r + (what
// is made at r or later − N)/N·W.
//
// It is close where all is made at once: a packing into k windows, each sent together and a tick
// more than W after the one before, takes (k − 1)·(W + tick), and with many small prompts first fit
// decreasing finds the least k or one more.
func (c LLM) Ideal(served func(i int) bool) (least time.Duration) {
	c.fill()
	var requests, tokens int64
	for i := len(c.Work) - 1; i >= 0; i-- {
		if served != nil && !served(i) {
			continue
		}
		p := &c.Work[i]
		requests++
		tokens += c.counted(p)
		if c.Documented {
			needs := func(n, limit int64) time.Duration {
				return time.Duration(float64(n-limit) / float64(limit) * float64(c.Window))
			}
			least = max(least, time.Duration(p.At)+max(0, needs(requests, c.Requests), needs(tokens, c.Tokens)))
			continue
		}
		windows := max((requests-1)/c.Requests, (tokens-1)/c.Tokens) // those before the last one
		least = max(least, time.Duration(p.At)+time.Duration(windows)*c.Window)
	}
	return least
}

func (c *LLM) fill() {
	c.Requests = cmp.Or(c.Requests, 500)
	c.Tokens = cmp.Or(c.Tokens, 30_000)
	c.Window = cmp.Or(c.Window, time.Minute)
}
