package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A strangeClient is a client of a server that answers as no real server does. Its figures are of
// every kind and in any order, and the kind changes every few answers. Worlds that are closer to
// life, as lab/sim/fleet has them, visit few corners of a law.
//
// It sends whenever its limiter lets it, and hears the answers in any order.
type strangeClient struct {
	Limiter limit.Limiter
	Rng     *rand.Rand
	Now     mono.Time
	// Burst is what the server's bucket or window holds, and Rate what comes back in a second.
	Burst, Rate float64
	// Costs are what requests cost, one as good as another. If nil, limit.One.
	Costs []limit.Cost
	// Unit is what the server tells of.
	Unit limit.Unit
	// Say, if not nil, adds what else the limiter says after an answer.
	Say func(b *strings.Builder)

	// Sent and Refused are counts; Said is a line per answer, with when the next may go.
	Sent, Refused int
	Said          strings.Builder

	level       float64
	asOf, ends  mono.Time
	mood, lasts int
	open        []limit.Sent
}

// Step sends up to four requests and has some of those in flight be answered, each within 0.2 s or, seldom, much later.
func (c *strangeClient) Step() {
	if c.Costs == nil {
		c.Costs = []limit.Cost{limit.One}
	}
	for range 1 + c.Rng.IntN(4) {
		cost := c.Costs[c.Rng.IntN(len(c.Costs))]
		at := c.Limiter.Ready(c.Now, cost)
		if at >= limit.AfterSettle {
			break
		}
		c.Now = max(c.Now, at)
		c.Sent++
		sent := limit.Sent{At: c.Now, Number: uint64(c.Sent), Cost: cost}
		c.Limiter.Admit(&sent)
		c.open = append(c.open, sent)
		if c.Rng.IntN(2) == 0 {
			break
		}
	}
	c.Now = c.Now.Add(time.Duration(c.Rng.IntN(200)) * time.Millisecond)
	if c.Rng.IntN(50) == 0 {
		c.Now = c.Now.Add(time.Duration(c.Rng.Float64() * 3 * c.Burst / c.Rate * 1e9))
	}
	for len(c.open) > 0 && (c.Rng.IntN(4) > 0 || len(c.open) > 8) {
		k := c.Rng.IntN(len(c.open))
		r := c.open[k]
		c.open = append(c.open[:k], c.open[k+1:]...)
		o := c.answer(&r)
		c.Limiter.Settle(c.Now, &r, &o)
		fmt.Fprintf(&c.Said, "%d", c.Limiter.Ready(c.Now, c.Costs[0]))
		if s, ok := c.Limiter.(interface{ Sleep() time.Duration }); ok {
			fmt.Fprintf(&c.Said, ";%d", s.Sleep())
		}
		if c.Say != nil {
			c.Say(&c.Said)
		}
		c.Said.WriteByte('\n')
	}
}

// Restart has the client go on with another limiter, and hear no answer to what it had sent.
func (c *strangeClient) Restart(l limit.Limiter) { c.Limiter, c.open = l, nil }

// The moods of a server. In one that is not listed it tells the truth of a bucket.
const (
	mute     = iota
	same     // always the same is left
	limits   // all that there can be is left, more, less than nothing, or nothing
	anything // is left
	plenty   // is left, truly
	elsewhere
	refusing
	window // a reset is told, that stands still
	filling
	rounding // that of a window in whole seconds, up, down or not at all, and what was left before
	moods    = rounding + 4
)

func (c *strangeClient) answer(r *limit.Sent) limit.Outcome {
	if c.lasts--; c.lasts < 0 {
		c.mood, c.lasts = c.Rng.IntN(moods), c.Rng.IntN(40)
	}
	length := time.Duration(c.Burst / c.Rate * 1e9)
	c.level = min(c.Burst, c.level+c.Rate*c.Now.Sub(c.asOf).Seconds())
	if (c.mood == window || c.mood == rounding) && c.Now > c.ends {
		c.ends, c.level = c.Now.Add(length), c.Burst
	}
	c.asOf = c.Now
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << c.Unit}
	cost := float64(max(r.Cost[c.Unit], 0))
	if c.level < cost || c.mood == refusing && c.Rng.IntN(2) == 0 {
		c.refuse(&o)
	} else {
		c.level -= cost + float64(c.Rng.IntN(3))*c.Rng.Float64() // others take some
	}
	c.level = max(c.level, 0)
	c.tell(&o, length)
	if c.Rng.IntN(2) == 0 {
		o.RTT = min(time.Duration(c.Rng.IntN(200))*time.Millisecond, c.Now.Sub(r.At))
	}
	if c.Rng.IntN(8) == 0 {
		o.Metered, o.Actual = true, r.Cost
		o.Actual[c.Unit] = c.Rng.Int64N(2*max(1, r.Cost[c.Unit]) + 1)
	}
	return o
}

func (c *strangeClient) refuse(o *limit.Outcome) {
	c.Refused++
	o.Result = limit.Limited
	if c.Rng.IntN(2) == 0 {
		o.RetryAfter = []time.Duration{-time.Second, 0, time.Millisecond, 3 * time.Second, time.Hour}[c.Rng.IntN(5)]
		o.Sure = c.Rng.IntN(4) == 0
	}
	if c.Rng.IntN(3) > 0 {
		o.Known = 0
	}
}

// tell has the answer say what is left and until when.
func (c *strangeClient) tell(o *limit.Outcome, length time.Duration) {
	left, reset := &o.Remaining[c.Unit], &o.Reset[c.Unit]
	*left = int64(c.level)
	switch c.mood {
	case mute:
		o.Known = 0
	case same:
		*left = 20
	case limits:
		*left = []int64{int64(c.Burst), int64(c.Burst) + 1, -1, 0}[c.Rng.IntN(4)]
	case anything:
		*left = c.Rng.Int64N(int64(c.Burst))
		*reset = time.Duration(c.Rng.Int64N(int64(length)))
	case plenty:
		c.level = max(c.level, c.Burst/2)
	case elsewhere:
		if c.Rng.IntN(3) == 0 {
			o.Result = []limit.Result{limit.Failed, limit.Unsent, limit.Unknown}[c.Rng.IntN(3)]
		}
		o.Elsewhere = c.Rng.IntN(6) == 0
	case window:
		*reset = c.ends.Sub(c.Now)
	case filling: // until the bucket is full
		*reset = time.Duration((c.Burst - c.level) / c.Rate * 1e9)
	case rounding:
		*left = int64(min(c.level+1, c.Burst))
		*reset = c.ends.Sub(c.Now).Truncate(time.Second) + time.Duration(c.Rng.IntN(4)-1)*time.Second
	}
}
