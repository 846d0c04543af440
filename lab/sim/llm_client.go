package sim

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Reserve says what LLMLine reserves for a prompt. Its input always counts; they differ in the output.
type Reserve uint8

const (
	// Exact reserves the real output, which nobody can know beforehand: it shows what the limiters themselves cost.
	Exact Reserve = iota
	// Bounded reserves MaxTokens, which is never less than the output.
	Bounded
	// Estimated reserves a quantile of the share of MaxTokens that earlier answers used.
	Estimated
	// AsDocumented reserves what a server counts that is LLM.Documented, and gets nothing back.
	AsDocumented
)

func (r Reserve) String() string {
	return [...]string{"exact", "bounded", "estimated", "documented"}[r]
}

// LLMLine is the line of a Gate before one limit.All of a Rolling of requests and a Rolling of
// tokens. The first in line goes as soon as the limiters let it, and each answer settles what was
// reserved with what was used. A prompt that is refused goes to the end of the line.
type LLMLine struct {
	Reserve Reserve
	// Quantile is the one that Estimated uses. If zero, 0.95.
	Quantile float64
	// Seen are shares of MaxTokens, from 0 to 1, that were used before the run began: Estimated starts with them.
	Seen []float64
	// Fill is how many behind the head of the line are looked at for one that may go ahead of it
	// without delaying it, and how often a prompt may be overtaken: see paceline.GateConfig.Fill. If
	// zero, none: first come, first served.
	Fill int
}

type llmLine struct {
	LLMLine
	x       *llm
	line    *scheduler.Scheduler
	lane    *scheduler.Lane
	tickets []llmTicket // one for each prompt
	came    int64       // the tokens of all that ever came to the line, and of all that left it
	went    int64
	ratio   usage
	wake    mono.Time
	wakeSeq uint32
}

type llmTicket struct {
	scheduler.Ticket
	i      int32
	before int64 // tokens that came to the line before it
}

func (c LLMLine) start(x *llm) (llmClient, error) {
	c.Quantile = cmp.Or(c.Quantile, 0.95)
	if !(c.Quantile > 0 && c.Quantile <= 1) {
		return nil, fmt.Errorf("sim: LLMLine: Quantile %v is not between 0 and 1", c.Quantile)
	}
	requests, err := x.limiter(x.Requests, limit.Requests)
	if err != nil {
		return nil, err
	}
	tokens, err := x.limiter(x.Tokens, limit.Tokens)
	if err != nil {
		return nil, err
	}
	l := &llmLine{LLMLine: c, x: x, line: scheduler.New(scheduler.Config{Fill: c.Fill}),
		tickets: make([]llmTicket, len(x.Work)), wake: limit.Never}
	l.lane = l.line.Lane(scheduler.LaneConfig{},
		[]*scheduler.Limit{l.line.Limit(limit.NewAll(requests, tokens), scheduler.Sharing{})})
	for _, r := range c.Seen {
		if !(r >= 0 && r <= 1) {
			return nil, fmt.Errorf("sim: LLMLine: Seen has %v, which is not from 0 to 1", r)
		}
		l.ratio.learn(r)
	}
	return l, nil
}

// limiter returns the client's limiter for one of the server's limits.
func (x *llm) limiter(n int64, u limit.Unit) (limit.Limiter, error) {
	if x.Documented {
		return limit.NewBucket(limit.BucketConfig{Limit: n, Window: x.Window, Unit: u})
	}
	return limit.NewRolling(limit.RollingConfig{Limit: n, Window: x.Window, Unit: u})
}

func (l *llmLine) made(now mono.Time, i int32) {
	p := &l.x.Work[i]
	n := p.Tokens()
	switch l.Reserve {
	case AsDocumented:
		n = p.Documented()
	case Bounded:
		n = p.Input + p.MaxTokens
	case Estimated:
		n = p.Input + int64(math.Ceil(l.ratio.quantile(l.Quantile)*float64(p.MaxTokens)))
	}
	t := &l.tickets[i]
	t.i, t.before = i, l.came
	t.Ask(&limit.Cost{limit.Requests: 1, limit.Tokens: n})
	t.Place, t.Deadline, t.Of = now, limit.Never, t
	l.came += n
	at := l.line.Enter(now, l.lane, &t.Ticket)
	l.serve(now, t)
	if at == scheduler.Granted { // after those who waited
		l.send(now, t)
	}
}

func (l *llmLine) wakes(now mono.Time, e llmEvent) {
	if e.seq != l.wakeSeq {
		return // it is set anew
	}
	l.wake = limit.Never
	l.x.WakeUps++
	l.serve(now, nil)
}

func (l *llmLine) answered(now mono.Time, f *llmFlight) {
	p, t := &l.x.Work[f.i], &l.tickets[f.i]
	o := limit.Outcome{Result: limit.Limited, RTT: now.Sub(f.sent)}
	if l.x.Stated {
		o.ArrivedAgo = f.trip.Work.Truncate(time.Millisecond)
	}
	if f.ok && l.Reserve == AsDocumented {
		o.Result = limit.Accepted
	} else if f.ok {
		o.Result, o.Metered = limit.Accepted, true
		o.Actual = limit.Cost{limit.Requests: 1, limit.Tokens: p.Tokens()}
		if over := p.Tokens() - t.Cost[limit.Tokens]; over > 0 {
			l.x.Overruns++
			l.x.OverrunTokens += over
			l.x.Overrun = max(l.x.Overrun, over)
		}
		if p.MaxTokens > 0 {
			l.ratio.learn(float64(p.Output) / float64(p.MaxTokens))
		}
	}
	l.line.Settle(now, t.Pass, &o)
	l.serve(now, nil)
	if !f.ok {
		l.made(now, f.i)
	}
}

// serve sends the prompts whose turn has come. All of them are woken for it, except the one that has just come.
func (l *llmLine) serve(now mono.Time, here *llmTicket) {
	for t := l.line.Next(now); t != nil; t = l.line.Next(now) {
		t := t.Of.(*llmTicket)
		if t != here {
			l.x.WakeUps++
		}
		l.send(now, t)
	}
	wake := l.line.Wake()
	if l.line.Waiting() == 0 || wake == l.wake {
		return
	}
	l.wake = wake
	l.wakeSeq++
	if wake != limit.Never {
		l.x.loop.At(wake, llmEvent{kind: llmWakes, seq: l.wakeSeq})
	}
}

func (l *llmLine) send(now mono.Time, t *llmTicket) {
	// Whatever came after it and has gone has overtaken it. If one that came earlier still waits, this
	// figure is too small, but that one's is larger.
	l.x.Overtaken = max(l.x.Overtaken, l.went-t.before)
	l.went += t.Cost[limit.Tokens]
	l.x.send(now, t.i)
}

// usage learns what share of MaxTokens answers use: it counts them by hundredths, rounded up, and older ones fade.
type usage struct {
	counts [101]float64
	total  float64
}

// learn takes in a share. The weight of an answer halves with every 500 answers.
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
