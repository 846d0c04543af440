package sim

import (
	"cmp"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// LLMGates is a published client with two gates that every prompt passes, one after the other. Each
// gate is a sliding window of its own: while the last window has Requests sends, the prompt sleeps
// until the oldest of them has left it, and then looks again; the other gate does the same for the
// tokens of the answers received. Nothing is reserved: a prompt counts as a request when it is
// sent, and as tokens when its answer is there. All that sleep wake at the same time.
type LLMGates struct {
	// Requests and Tokens are the limits that the gates know. If zero, the server's.
	Requests, Tokens int64
	// Concurrency is how many prompts may be under way at once. The others wait behind the gates, and
	// a prompt counts as sent only when its turn here has come. If zero, there is no bound, and it
	// counts as sent when it has passed the gates.
	Concurrency int
	// Attempts is how often a prompt that is refused is sent, without asking the gates again, after
	// pauses of 1 s, then of 1 s to 2 s, 4 s and so on up to 60 s. If zero, 2. After the last attempt
	// its send is taken out of the window again.
	Attempts int
	// Again has the caller repeat a call that failed, through the gates, until it is answered, after
	// pauses that grow in the same way. Otherwise the prompt is lost.
	Again bool
}

// llmLate is how late a sleeping task wakes. It asks whether an instant is before the window, so
// exactly at the window's end it would ask in vain.
const llmLate = 100 * time.Microsecond

type llmGates struct {
	LLMGates
	x        *llm
	sent     []llmMark
	used     []llmMark
	inFlight int
	queue    []int32
	usedSum  int64
	tries    []uint8
	calls    []uint8
}

type llmMark struct {
	at mono.Time
	i  int32
	n  int64
}

func (c LLMGates) start(x *llm) (llmClient, error) {
	c.Attempts = cmp.Or(c.Attempts, 2)
	c.Requests = cmp.Or(c.Requests, x.Requests)
	c.Tokens = cmp.Or(c.Tokens, x.Tokens)
	return &llmGates{LLMGates: c, x: x, tries: make([]uint8, len(x.Work)), calls: make([]uint8, len(x.Work))}, nil
}

const (
	gateAsk = iota
	gateRetry
)

func (g *llmGates) made(now mono.Time, i int32) { g.ask(now, i) }

func (g *llmGates) wakes(now mono.Time, e llmEvent) {
	g.x.WakeUps++
	if e.seq == gateRetry {
		g.attempt(now, e.i)
		return
	}
	g.ask(now, e.i)
}

// ask has prompt i try the gates, from the first to the last, until one of them makes it sleep.
func (g *llmGates) ask(now mono.Time, i int32) {
	cut := now.Add(-g.x.Window)
	for len(g.sent) > 0 && g.sent[0].at < cut {
		g.sent = g.sent[1:]
	}
	for len(g.used) > 0 && g.used[0].at < cut {
		g.usedSum -= g.used[0].n
		g.used = g.used[1:]
	}
	var oldest mono.Time
	switch {
	case int64(len(g.sent)) >= g.Requests:
		oldest = g.sent[0].at
	case g.usedSum >= g.Tokens:
		oldest = g.used[0].at
	default:
		if g.Concurrency > 0 && g.inFlight == g.Concurrency {
			g.queue = append(g.queue, i)
			return
		}
		g.begin(now, i)
		return
	}
	g.x.loop.At(oldest.Add(g.x.Window+llmLate), llmEvent{kind: llmWakes, i: i, seq: gateAsk})
}

func (g *llmGates) begin(now mono.Time, i int32) {
	g.inFlight++
	g.sent = append(g.sent, llmMark{at: now, i: i})
	g.tries[i] = 0
	g.calls[i] = min(g.calls[i]+1, 20)
	g.attempt(now, i)
}

func (g *llmGates) attempt(now mono.Time, i int32) {
	g.tries[i]++
	g.x.send(now, i)
}

func (g *llmGates) answered(now mono.Time, f *llmFlight) {
	i, ok := f.i, f.ok
	if !ok && int(g.tries[i]) < g.Attempts {
		g.x.loop.At(now.Add(randomBackoff(g.x.rng, g.tries[i])), llmEvent{kind: llmWakes, i: i, seq: gateRetry})
		return
	}
	g.inFlight--
	n := int64(0)
	if ok {
		n = g.x.Work[i].Tokens()
	} else {
		for k, m := range g.sent {
			if m.i == i {
				g.sent = append(g.sent[:k:k], g.sent[k+1:]...)
				break
			}
		}
	}
	g.used = append(g.used, llmMark{now, i, n})
	g.usedSum += n
	if len(g.queue) > 0 {
		next := g.queue[0]
		g.queue = g.queue[1:]
		g.x.WakeUps++
		g.begin(now, next)
	}
	if !ok && g.Again {
		g.x.loop.At(now.Add(randomBackoff(g.x.rng, g.calls[i])), llmEvent{kind: llmWakes, i: i, seq: gateAsk})
	}
}

// randomBackoff draws evenly between 1 s and 2^(n−1) s, at most 60 s.
func randomBackoff(rng *rand.Rand, n uint8) time.Duration {
	high := min(time.Second<<min(n-1, 10), time.Minute)
	return time.Second + time.Duration(rng.Float64()*float64(high-time.Second))
}

// LLMBucket is the client of a well-known cookbook: one loop that wakes every millisecond, with a
// token bucket for requests and one for tokens, both full at the start and refilled evenly to the
// limit per minute. A prompt goes when both buckets have what it takes, its input and MaxTokens,
// which is never corrected; one prompt goes per turn of the loop. After a refusal the loop pauses
// until 15 s have passed, and refused prompts go before the others.
type LLMBucket struct {
	// Attempts is how often a prompt is sent before it is given up. If zero, 5.
	Attempts int
}

const (
	bucketPoll  = time.Millisecond
	bucketPause = 15 * time.Second
)

type llmBucket struct {
	LLMBucket
	x        *llm
	requests float64
	tokens   float64
	updated  mono.Time
	line     []int32
	again    []int32
	current  int32 // −1: none
	refused  mono.Time
	awake    bool // the event of its next turn is scheduled
}

func (c LLMBucket) start(x *llm) (llmClient, error) {
	c.Attempts = cmp.Or(c.Attempts, 5)
	return &llmBucket{LLMBucket: c, x: x, requests: float64(x.Requests), tokens: float64(x.Tokens), current: -1,
		refused: mono.Time(0).Add(-bucketPause)}, nil
}

func (b *llmBucket) made(now mono.Time, i int32) {
	b.line = append(b.line, i)
	b.stir(now)
}

// stir schedules a turn of the loop if none is: idle turns, in which there is nothing to send, are left out.
func (b *llmBucket) stir(now mono.Time) {
	if !b.awake {
		b.awake = true
		b.x.loop.At(now, llmEvent{kind: llmWakes})
	}
}

func (b *llmBucket) wakes(now mono.Time, _ llmEvent) {
	b.awake = false
	b.x.WakeUps++
	if resume := b.refused.Add(bucketPause); now < resume { // the refusal came while it slept a millisecond
		b.awake = true
		b.x.loop.At(resume, llmEvent{kind: llmWakes})
		return
	}
	if b.current < 0 {
		switch {
		case len(b.again) > 0:
			b.current, b.again = b.again[0], b.again[1:]
		case len(b.line) > 0:
			b.current, b.line = b.line[0], b.line[1:]
		default:
			return
		}
	}
	passed := float64(now.Sub(b.updated)) / float64(b.x.Window)
	b.updated = now
	b.requests = min(b.requests+float64(b.x.Requests)*passed, float64(b.x.Requests))
	b.tokens = min(b.tokens+float64(b.x.Tokens)*passed, float64(b.x.Tokens))
	p := &b.x.Work[b.current]
	n := float64(p.Input + p.MaxTokens)
	turns := time.Duration(1)
	if b.requests >= 1 && b.tokens >= n {
		b.requests--
		b.tokens -= n
		b.x.send(now, b.current)
		b.current = -1
	} else { // turns before that are in vain, unless something is refused meanwhile
		short := max((1-b.requests)/float64(b.x.Requests), (n-b.tokens)/float64(b.x.Tokens))
		turns = max(1, time.Duration(short*float64(b.x.Window)/float64(bucketPoll)))
		b.x.WakeUps += int(turns - 1)
	}
	b.awake = true
	b.x.loop.At(now.Add(turns*bucketPoll), llmEvent{kind: llmWakes})
}

func (b *llmBucket) answered(now mono.Time, f *llmFlight) {
	if f.ok {
		return
	}
	b.refused = now
	if b.x.attempts[f.i] < b.Attempts {
		b.again = append(b.again, f.i)
		b.stir(now)
	}
}
