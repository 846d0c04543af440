package sim

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// LLMWork makes prompts.
type LLMWork struct {
	// Prompts is how many prompts to make. If zero, 2000.
	Prompts int
	// Arrivals says when they are made.
	Arrivals LLMArrivals
	// Tokens and Window are the limit that the arrivals are spread over. If zero, 30,000 and one minute.
	Tokens int64
	Window time.Duration
	// Load is the part of that limit that they use over the span of their arrivals. If zero, 0.9. AtOnce does not use it.
	Load float64
	Seed uint64
}

// LLMArrivals says when prompts are made.
type LLMArrivals uint8

const (
	AtOnce  LLMArrivals = iota // all at instant 0
	Uniform                    // each at a random instant of the span
	Bursts                     // tenths of them, at the start of each tenth of the span
	Mixed                      // half of them Uniform, half in Bursts
)

func (a LLMArrivals) String() string {
	return [...]string{"start", "uniform", "burst", "mixed"}[a]
}

// Make returns the prompts in the order of their making. Input tokens are lognormal with a median
// of 300 and a 99th percentile of 4000, and output tokens with 150 and 1500; MaxTokens is drawn
// evenly from the output to one and a half times it. A prompt that, with its MaxTokens, has more
// tokens than a whole window is drawn again: no client could send it.
func (c LLMWork) Make() []Prompt {
	c.Prompts = cmp.Or(c.Prompts, 2000)
	c.Tokens = cmp.Or(c.Tokens, 30_000)
	c.Window = cmp.Or(c.Window, time.Minute)
	c.Load = cmp.Or(c.Load, 0.9)
	rng := rand.New(rand.NewPCG(c.Seed, 6))
	work := make([]Prompt, c.Prompts)
	sum := int64(0)
	for i := range work {
		p := &work[i]
		for {
			p.Input = lognormal(rng, 300, 4000)
			p.Output = lognormal(rng, 150, 1500)
			p.MaxTokens = p.Output + rng.Int64N(p.Output/2+1)
			if p.Input+p.MaxTokens <= c.Tokens {
				break
			}
		}
		sum += p.Tokens()
	}
	span := float64(sum) / float64(c.Tokens) / c.Load * float64(c.Window)
	for i := range work {
		even, burst := mono.Time(rng.Float64()*span), mono.Time(float64(i*10/len(work))*span/10)
		switch c.Arrivals {
		case Uniform:
			work[i].At = even
		case Bursts:
			work[i].At = burst
		case Mixed:
			work[i].At = burst
			if i%2 == 0 {
				work[i].At = even
			}
		}
	}
	slices.SortStableFunc(work, func(a, b Prompt) int { return int(min(max(a.At-b.At, -1), 1)) })
	return work
}

// lognormal draws a number of 1 or more by its median and the value that one in a hundred exceeds.
func lognormal(rng *rand.Rand, median, p99 float64) int64 {
	const z99 = 2.3263478740408408
	return max(1, int64(math.Round(median*math.Exp(math.Log(p99/median)/z99*rng.NormFloat64()))))
}
