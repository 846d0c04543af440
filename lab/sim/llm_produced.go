package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// LLMProduced is a client of a language model whose server counts output as it is produced. The
// server has a bucket that is full at first. A request is refused if, when it arrives, there is not
// even one token, its own first; requests under way go on. All prompts are made at instant 0, and
// those that are refused go to the end of the line.
type LLMProduced struct {
	// Prompts is how many prompts there are. If zero, 40.
	Prompts int
	// Limit is how much is refilled per Window, and how much the bucket holds. If zero, 8,000 and one minute.
	Limit  int64
	Window time.Duration
	// MaxTokens is the most output of each prompt, and the cost at which it is admitted. If zero, 4,096.
	MaxTokens int64
	// Outputs says how much output the prompts really have.
	Outputs LLMOutputs
	// PerSecond is how many tokens of an answer are produced in a second. If zero, 150. Way is the latency each way.
	PerSecond int64
	Way       time.Duration
	// Limiter is the client's limiter.
	Limiter limit.Limiter
	Seed    uint64
}

// LLMOutputs says how much output prompts have.
type LLMOutputs uint8

const (
	Short   LLMOutputs = iota // 300 tokens
	Longest                   // as much as they may have
	Bimodal                   // half of them 20, the others as much as they may have
	Growing                   // the first 20, and each 40 more than the one before
)

func (o LLMOutputs) String() string { return [...]string{"short", "longest", "bimodal", "growing"}[o] }

func (c *LLMProduced) output(rng *rand.Rand, i int) int64 {
	n := c.MaxTokens
	switch c.Outputs {
	case Short:
		n = 300
	case Bimodal:
		if rng.IntN(2) == 0 {
			n = 20
		}
	case Growing:
		n = 20 + 40*int64(i)
	}
	return min(n, c.MaxTokens)
}

// LLMProducedTally is what came of a run.
type LLMProducedTally struct {
	Sent, Rejected int
	Tokens         int64
	// End is when the last answer was read. Ideal is when it could have been, with no latency and a
	// bucket that is never overdrawn.
	End, Ideal time.Duration
	// Steady is the part of the refill that was used from the first window on, judging by the answers;
	// 1 is all of it. It is 0 if the run took no longer than that.
	Steady float64
}

type producedRun struct {
	LLMProduced
	LLMProducedTally
	loop    Loop[producedEvent]
	server  rule.Amendable
	line    *scheduler.Scheduler
	lane    *scheduler.Lane
	tickets []producedTicket
	wake    mono.Time
	wakeSeq uint32
	steady  int64
}

type producedTicket struct {
	scheduler.Ticket
	output, done int64
}

type producedEvent struct {
	kind producedKind
	i    int32
	seq  uint32
}

type producedKind uint8

const (
	producedArrives producedKind = iota
	producedMore
	producedAnswered
	producedRefused
	producedWakes
)

// producedAtATime is how many tokens of an answer are counted at a time.
const producedAtATime = 10

// Run runs it to the end.
func (c LLMProduced) Run() (LLMProducedTally, error) {
	if c.Limiter == nil {
		return LLMProducedTally{}, errors.New("sim: LLMProduced: Limiter is nil")
	}
	c.fill()
	x := &producedRun{LLMProduced: c, line: scheduler.New(scheduler.Config{}),
		tickets: make([]producedTicket, c.Prompts), wake: limit.Never}
	var err error
	if x.server, err = rule.NewBucket(rule.BucketConfig{Limit: c.Limit, Window: c.Window}); err != nil {
		return LLMProducedTally{}, err
	}
	x.lane = x.line.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{x.line.Limit(c.Limiter, scheduler.Sharing{})})
	rng := rand.New(rand.NewPCG(c.Seed, 27))
	for i := range x.tickets {
		t := &x.tickets[i]
		t.output = c.output(rng, i)
		x.Tokens += t.output
		t.Of = int32(i)
		if err := x.enter(0, int32(i)); err != nil {
			return LLMProducedTally{}, err
		}
	}
	for e, ok := x.loop.Next(mono.Max); ok; e, ok = x.loop.Next(mono.Max) {
		if err := x.happen(x.loop.Now(), e); err != nil {
			return LLMProducedTally{}, err
		}
	}
	last := time.Duration(x.tickets[len(x.tickets)-1].output) * time.Second / time.Duration(c.PerSecond)
	x.Ideal = max(time.Duration(float64(x.Tokens-c.Limit)/float64(c.Limit)*float64(c.Window)), 0) + last
	if over := x.End - c.Window; over > 0 {
		x.Steady = float64(x.steady) / (float64(c.Limit) * over.Seconds() / c.Window.Seconds())
	}
	return x.LLMProducedTally, nil
}

func (c *LLMProduced) fill() {
	c.Prompts = cmp.Or(c.Prompts, 40)
	c.Limit = cmp.Or(c.Limit, 8000)
	c.Window = cmp.Or(c.Window, time.Minute)
	c.MaxTokens = cmp.Or(c.MaxTokens, 4096)
	c.PerSecond = cmp.Or(c.PerSecond, 150)
}

func (x *producedRun) happen(now mono.Time, e producedEvent) error {
	t := &x.tickets[e.i]
	switch e.kind {
	case producedArrives:
		if !x.server.Arrive(now, 1) {
			x.Rejected++
			x.loop.At(now.Add(x.Way), producedEvent{kind: producedRefused, i: e.i})
			return nil
		}
		t.done = 1
		x.produce(now, e.i)
	case producedMore:
		n := min(producedAtATime, t.output-t.done)
		x.server.Amend(now, now, n)
		t.done += n
		x.produce(now, e.i)
	case producedAnswered:
		x.End = now.Sub(0)
		if x.End > x.Window {
			x.steady += t.output
		}
		x.line.Settle(now, t.Pass,
			&limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Output: t.output}})
	case producedRefused:
		x.line.Settle(now, t.Pass, &limit.Outcome{Result: limit.Limited})
		x.serve(now)
		return x.enter(now, e.i)
	case producedWakes:
		if e.seq == x.wakeSeq {
			x.wake = limit.Never
		}
	}
	x.serve(now)
	return nil
}

func (x *producedRun) produce(now mono.Time, i int32) {
	t := &x.tickets[i]
	if t.done == t.output {
		x.loop.At(now.Add(x.Way), producedEvent{kind: producedAnswered, i: i})
		return
	}
	n := min(producedAtATime, t.output-t.done)
	x.loop.At(now.Add(time.Duration(n)*time.Second/time.Duration(x.PerSecond)), producedEvent{kind: producedMore, i: i})
}

func (x *producedRun) enter(now mono.Time, i int32) error {
	t := &x.tickets[i]
	t.Ask(&limit.Cost{limit.Requests: 1, limit.Output: x.MaxTokens})
	t.Place, t.Deadline = now, limit.Never
	switch x.line.Enter(now, x.lane, &t.Ticket) {
	case scheduler.Granted:
		x.send(now, i)
	case scheduler.Never:
		return fmt.Errorf("sim: LLMProduced: MaxTokens %d is more than the Limiter lets go at once", x.MaxTokens)
	}
	x.serve(now)
	return nil
}

func (x *producedRun) serve(now mono.Time) {
	for t := x.line.Next(now); t != nil; t = x.line.Next(now) {
		x.send(now, t.Of.(int32))
	}
	if wake := x.line.Wake(); wake != x.wake {
		x.wake = wake
		x.wakeSeq++
		if wake != limit.Never {
			x.loop.At(wake, producedEvent{kind: producedWakes, seq: x.wakeSeq})
		}
	}
}

func (x *producedRun) send(now mono.Time, i int32) {
	x.Sent++
	x.loop.At(now.Add(x.Way), producedEvent{kind: producedArrives, i: i})
}
