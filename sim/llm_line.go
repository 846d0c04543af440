package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Reserve is what LLMLine admits a prompt with. Its input is always counted; what differs is the output.
type Reserve uint8

const (
	// Exact knows the output beforehand, as nobody can: what the limiters themselves cost.
	Exact Reserve = iota
	// Bounded takes MaxTokens: never less than what comes.
	Bounded
	// Estimated takes a quantile of the share of MaxTokens that earlier answers used.
	Estimated
)

func (r Reserve) String() string { return [...]string{"exact", "bounded", "estimated"}[r] }

// LLMLine is a line before one limit.All of a Rolling of requests and a Rolling of tokens, as a Gate has it: the head of
// the line is admitted as soon as the limiters let it, and every answer settles what was reserved with what was used. A
// prompt that is refused takes a place at the end of the line again.
type LLMLine struct {
	Reserve Reserve
	// Quantile is for Estimated. If zero, 0.95.
	Quantile float64
	// Seen are shares of MaxTokens, from 0 to 1, that were used before the run began, for Estimated to start with.
	Seen []float64
	// Fill lets those of the next Fill behind the head of the line go ahead of it that do not delay it, and nobody be
	// overtaken more often than that: as paceline.GateConfig.Fill. If zero, none: first come, first served.
	Fill int
}

type llmLine struct {
	LLMLine
	x       *llm
	all     limit.Limiter
	line    []llmWaiter
	leases  []limit.Lease
	costs   []limit.Cost
	ratio   usage
	wake    mono.Time
	wakeSeq uint32
}

type llmWaiter struct {
	i         int32
	here      bool  // came in this instant: no one is woken for it
	passed    int   // how often it was overtaken
	overtaken int64 // by how many tokens
	cost      limit.Cost
}

func (c LLMLine) start(x *llm) (llmClient, error) {
	if c.Quantile == 0 {
		c.Quantile = 0.95
	}
	if !(c.Quantile > 0 && c.Quantile <= 1) {
		return nil, fmt.Errorf("sim: LLMLine: Quantile %v is not between 0 and 1", c.Quantile)
	}
	requests, err := limit.NewRolling(limit.RollingConfig{Limit: x.Requests, Window: x.Window})
	if err != nil {
		return nil, err
	}
	tokens, err := limit.NewRolling(limit.RollingConfig{Limit: x.Tokens, Window: x.Window, Unit: limit.Tokens})
	if err != nil {
		return nil, err
	}
	l := &llmLine{LLMLine: c, x: x, all: limit.NewAll(requests, tokens), wake: limit.Never,
		leases: make([]limit.Lease, len(x.Work)), costs: make([]limit.Cost, len(x.Work))}
	for _, r := range c.Seen {
		if !(r >= 0 && r <= 1) {
			return nil, fmt.Errorf("sim: LLMLine: Seen has %v, which is not from 0 to 1", r)
		}
		l.ratio.learn(r)
	}
	return l, nil
}

func (l *llmLine) made(now mono.Time, i int32) {
	p := &l.x.Work[i]
	n := p.Tokens()
	switch l.Reserve {
	case Bounded:
		n = p.Input + p.MaxTokens
	case Estimated:
		n = p.Input + int64(math.Ceil(l.ratio.quantile(l.Quantile)*float64(p.MaxTokens)))
	}
	l.line = append(l.line, llmWaiter{i: i, here: true, cost: limit.Cost{limit.Requests: 1, limit.Tokens: n}})
	if k := len(l.line); k <= l.Fill+1 { // otherwise it cannot go, and nothing has changed for the others
		l.serve(now)
	}
	if k := len(l.line); k > 0 {
		l.line[k-1].here = false
	}
}

func (l *llmLine) wakes(now mono.Time, e llmEvent) {
	if e.seq != l.wakeSeq {
		return // set anew
	}
	l.wake = limit.Never
	l.x.WakeUps++
	l.serve(now)
}

func (l *llmLine) answered(now mono.Time, f *llmFlight) {
	p := &l.x.Work[f.i]
	o := limit.Outcome{Result: limit.Limited, RTT: now.Sub(f.sent)}
	if l.x.Stated {
		o.ArrivedAgo = f.trip.Work.Truncate(time.Millisecond)
	}
	if f.ok {
		o.Result, o.Metered = limit.Accepted, true
		o.Actual = limit.Cost{limit.Requests: 1, limit.Tokens: p.Tokens()}
		if over := p.Tokens() - l.costs[f.i][limit.Tokens]; over > 0 {
			l.x.Overruns++
			l.x.OverrunTokens += over
			l.x.Overrun = max(l.x.Overrun, over)
		}
		if p.MaxTokens > 0 {
			l.ratio.learn(float64(p.Output) / float64(p.MaxTokens))
		}
	}
	l.all.Settle(now, l.leases[f.i], o)
	l.serve(now)
	if !f.ok {
		l.made(now, f.i)
	}
}

// serve sends what may go.
func (l *llmLine) serve(now mono.Time) {
	for len(l.line) > 0 {
		ready := l.all.Ready(now, l.line[0].cost)
		if ready <= now {
			l.take(now, 0)
			continue
		}
		if ready = l.fill(now, ready); ready <= now {
			continue
		}
		if ready != l.wake {
			l.wake = ready
			l.wakeSeq++
			if ready < limit.AfterSettle {
				l.x.loop.At(ready, llmEvent{kind: llmWakes, seq: l.wakeSeq})
			}
		}
		return
	}
}

// fill sends what may go ahead of the head, which may go at ready, and returns when it may go now.
func (l *llmLine) fill(now, ready mono.Time) mono.Time {
	k := 1
	for n := l.Fill; n > 0 && k < len(l.line) && l.line[0].passed < l.Fill; n-- {
		if limit.MayPass(l.all, now, l.line[k].cost, l.line[0].cost, ready) {
			l.take(now, k)
			ready = l.all.Ready(now, l.line[0].cost)
		} else {
			k++
		}
	}
	return ready
}

func (l *llmLine) take(now mono.Time, k int) {
	w := l.line[k]
	for j := range k {
		l.line[j].passed++
		l.line[j].overtaken += w.cost[limit.Tokens]
		l.x.Overtaken = max(l.x.Overtaken, l.line[j].overtaken)
	}
	copy(l.line[1:k+1], l.line[:k])
	l.line = l.line[1:]
	if !w.here {
		l.x.WakeUps++
	}
	l.costs[w.i] = w.cost
	l.leases[w.i] = l.all.Admit(now, w.cost)
	l.x.send(now, w.i)
}

// usage learns what share of MaxTokens answers use: counts in hundredths, rounded up, of which older ones fade.
type usage struct {
	counts [101]float64
	total  float64
}

// learn takes the next share. The weight of an answer halves every 500 answers.
func (u *usage) learn(share float64) {
	const fade = 0.99861466 // 2^(−1/500)
	for i := range u.counts {
		u.counts[i] *= fade
	}
	u.total = u.total*fade + 1
	u.counts[min(int(math.Ceil(share*100)), 100)]++
}

// quantile returns a share that q of the answers do not exceed, or 1 as long as there are fewer than 20.
func (u *usage) quantile(q float64) float64 {
	if u.total < 19 {
		return 1
	}
	sum := 0.0
	for i, n := range u.counts {
		if sum += n; sum >= q*u.total {
			return float64(i) / 100
		}
	}
	return 1
}
