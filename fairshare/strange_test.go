package fairshare_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
)

// Processes of two versions share a quota, so each law must do what it did before, under any
// answers: a line for all plans of a client.
func TestLawsDoWhatTheyDidWhateverIsSaid(t *testing.T) {
	var b strings.Builder
	for seed := range uint64(160) {
		c := strangeClient{Rng: rand.New(rand.NewPCG(seed, 7))}
		about := [...]func(*strangeClient) string{anyFair, anyFair, anyAuto, anyHints}[seed%4](&c)
		for range 300 {
			c.Step()
		}
		fmt.Fprintf(&b, "%3d %s: %d were sent and %d refused in %.6g s, all it said: %s\n", seed, about, c.Sent, c.Refused, c.Now.Sub(0).Seconds(), golden.Sum(c.Said.String()))
	}
	golden.CompareFloats(t, "strange.golden", b.String())
}

// chosen is one of some, by chance.
func chosen[T any](rng *rand.Rand, some ...T) T { return some[rng.IntN(len(some))] }

func anyCosts(c *strangeClient) {
	c.Unit = chosen(c.Rng, limit.Requests, limit.Requests, limit.Input)
	c.Costs = []limit.Cost{limit.One}
	if c.Unit == limit.Input {
		for range 4 {
			c.Costs = append(c.Costs, limit.Cost{limit.Requests: 1, limit.Input: c.Rng.Int64N(int64(c.Burst/8) + 2)})
		}
		c.Costs[0] = c.Costs[1]
	}
}

func anyFair(c *strangeClient) string {
	f := fairshare.FairConfig{
		Kind:    fairshare.Kind(c.Rng.IntN(4)),
		Limit:   chosen[int64](c.Rng, 15, 60, 900, 20_000),
		Window:  chosen(c.Rng, time.Second, time.Minute, time.Minute, time.Hour),
		Weight:  chosen(c.Rng, 0, 0, 3, 0.1, 40),
		Sharers: chosen(c.Rng, 0, 0, 0, 3.5, 20),
		Rng:     c.Rng,
	}
	if c.Rng.IntN(3) == 0 {
		f.Capacity = 1 + c.Rng.Int64N(2*f.Limit)
	}
	if c.Rng.IntN(3) == 0 {
		f.MaxWait = time.Duration(1+c.Rng.IntN(40)) * time.Second
	}
	if c.Rng.IntN(4) == 0 {
		f.Start = time.Duration(1+c.Rng.IntN(20_000)) * time.Millisecond
	}
	c.Burst, c.Rate = float64(max(f.Capacity, f.Limit)), float64(f.Limit)/f.Window.Seconds()
	anyCosts(c)
	if f.Unit = c.Unit; f.Unit == limit.Input && c.Rng.IntN(2) == 0 {
		f.MeanCost = 1 + c.Rng.Float64()*float64(f.Limit)/50
	}
	c.Limiter = must(fairshare.NewFair(f))
	return "fair of a " + f.Kind.String()
}

// anyAuto gets a stated limit now and then, and now and then goes on in another process.
func anyAuto(c *strangeClient) string {
	c.Burst = chosen[float64](c.Rng, 15, 60, 900)
	c.Rate = c.Burst / chosen[float64](c.Rng, 1, 60, 3600)
	anyCosts(c)
	a := fairshare.AutoConfig{Unit: c.Unit, Weight: chosen[float64](c.Rng, 0, 0, 3), Sharers: chosen[float64](c.Rng, 0, 0, 5), Alone: c.Rng.IntN(2) == 0, Rng: c.Rng}
	if c.Rng.IntN(3) == 0 {
		a.MaxWait = time.Duration(1+c.Rng.IntN(40)) * time.Second
	}
	auto := must(fairshare.NewAuto(a))
	c.Limiter = auto
	learns := c.Rng.IntN(2) == 0
	c.Say = func(b *strings.Builder) {
		fmt.Fprintf(b, ";%+v %d", auto.Found(), auto.News())
		if learns && c.Rng.IntN(40) == 0 {
			auto.State(c.Now, anyStated(c))
		}
		if c.Rng.IntN(10) == 0 {
			var written []byte
			auto, written = resumed(c, auto, a)
			c.Restart(auto)
			fmt.Fprintf(b, ";%x", written)
		}
	}
	return "auto"
}

func anyStated(c *strangeClient) (all []limit.Rule) {
	for range c.Rng.IntN(3) {
		all = append(all, limit.Rule{
			Unit: c.Unit, N: c.Rng.Int64N(int64(2 * c.Burst)), Per: time.Duration(c.Burst / c.Rate * 1e9),
			Counts: limit.Counting(c.Rng.IntN(4)),
			Burst:  c.Rng.Int64N(3) * int64(c.Burst),
		})
	}
	return all
}

// resumed is an Auto that goes on from auto's memory, a few seconds later, after some requests that
// are not in it.
func resumed(c *strangeClient, auto *fairshare.Auto, a fairshare.AutoConfig) (next *fairshare.Auto, written []byte) {
	written = auto.AppendMemory(nil, c.Now)
	next = must(fairshare.NewAuto(a))
	at := c.Now
	var sent []limit.Past
	for range c.Rng.IntN(4) {
		sent = append(sent, limit.Past{Sent: at.Add(time.Duration(c.Rng.IntN(3000)-500) * time.Millisecond), Cost: c.Costs[0]})
	}
	c.Now = c.Now.Add(4 * time.Second)
	if err := next.Recall(c.Now, at, written, sent); err != nil {
		panic(err)
	}
	return next, written
}

// anyHints are beside a limit of a window, or of a bucket, or of none.
func anyHints(c *strangeClient) string {
	c.Burst = chosen[float64](c.Rng, 15, 60, 900)
	per := chosen(c.Rng, 0.7, 1.5, 2, 60)
	c.Rate = c.Burst / per
	anyCosts(c)
	h := fairshare.HintsConfig{Longest: chosen(c.Rng, 0, time.Minute)}
	about := "hints"
	switch c.Rng.IntN(3) {
	case 0:
		h.Capacity[c.Unit] = int64(c.Burst)
		about += " of a bucket"
	case 1:
		window := time.Duration(per * 1e9)
		rolling := func(n int64, d time.Duration) limit.Limiter {
			return must(limit.NewRolling(limit.RollingConfig{Limit: n, Window: d, Unit: c.Unit}))
		}
		h.Own = limit.NewAll(rolling(int64(c.Burst), window), rolling(int64(c.Burst)/2, window), rolling(int64(c.Burst)/4, window/4))
		about += " beside a limit"
	}
	hints := must(fairshare.NewHints(h))
	c.Limiter = hints
	c.Say = func(b *strings.Builder) {
		fmt.Fprintf(b, ";%d %d", hints.ReadyAfter(c.Now, limit.One, c.Costs[0]), hints.NotBefore(c.Now, 3, limit.Cost{5, 5, 5, 5}, c.Costs[0]))
	}
	return about
}
