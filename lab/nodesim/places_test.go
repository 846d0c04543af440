package nodesim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
)

// places is a run of nodes that share a bound on requests at once. Their requests take so long on the average.
func places(most int64, nodes int, long time.Duration, seed uint64) nodesim.Config {
	return nodesim.Config{Seed: seed, Nodes: nodes, Places: most, Rested: true, Way: even, StoreWay: near, Demand: 1000,
		Limit:  func() limit.Limiter { return must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: most})) },
		Server: func() map[limit.Unit]rule.Server { return nil },
		Holds:  func(rng *rand.Rand) time.Duration { return time.Duration(rng.ExpFloat64() * float64(long)) },
		Length: 60 * time.Second, Warm: 10 * time.Second}
}

// inUse is the part of the places that requests had, and the part of each node of those.
func inUse(c *nodesim.Config, r *nodesim.Report) (used float64, parts []float64) {
	sum := time.Duration(0)
	for _, d := range r.InFlight {
		sum += d
	}
	for _, d := range r.InFlight {
		parts = append(parts, float64(d)/float64(max(sum, 1)))
	}
	return sum.Seconds() / (c.Length - c.Warm).Seconds() / float64(c.Places), parts
}

// All nodes want all places: most of these are in use, and each node has its part.
func TestPartsOfPlaces(t *testing.T) {
	for _, a := range []struct {
		most  int64
		nodes int
		long  time.Duration
		used  float64
	}{
		{1, 2, time.Second, 0.8}, {1, 2, 100 * ms, 0.8}, {4, 3, time.Second, 0.85}, {4, 3, 10 * time.Second, 0.85},
		{64, 8, 2 * time.Second, 0.95}, {2, 8, 500 * ms, 0.7}, {256, 5, time.Second, 0.95},
	} {
		t.Run(fmt.Sprintf("%d places, %d nodes, %v", a.most, a.nodes, a.long), func(t *testing.T) {
			c := places(a.most, a.nodes, a.long, 1)
			c.Length = 130 * time.Second
			r := nodesim.Run(c)
			used, parts := inUse(&c, r)
			t.Logf("%.3f in use, parts %.2f, %d requests, %.1f turns a second", used, parts, r.Sent, float64(r.Turns)/120)
			if r.Refused > 0 || used < a.used {
				t.Errorf("%d refused, %.3f in use, want 0 and %.2f", r.Refused, used, a.used)
			}
			for i, part := range parts {
				if even := 1 / float64(a.nodes); part < even/2 || part > even*2 {
					t.Errorf("node %d has %.2f, want about %.2f", i, part, even)
				}
			}
		})
	}
}

// placesStorm is a run of what befalls processes, the store and its clock. The store loses its state only where no
// process is away from it for 7 s: see docs/machines.md.
func placesStorm(seed uint64) nodesim.Config {
	rng := rand.New(rand.NewPCG(seed, 101))
	c := places([]int64{1, 2, 4, 7, 32}[rng.IntN(5)], []int{2, 3, 4, 5, 8}[rng.IntN(5)],
		[]time.Duration{50 * ms, time.Second, 10 * time.Second}[rng.IntN(3)], seed)
	often := func(part float64, d time.Duration) time.Duration {
		if rng.Float64() < part {
			return d
		}
		return 0
	}
	c.Steady, c.Seen = rng.IntN(3) == 0, rng.IntN(2) == 0
	c.Kill, c.Pause, c.Outage = often(0.4, 20*time.Second), often(0.3, 5*time.Second), often(0.3, 4*time.Second)
	c.Apart, c.OnOff, c.Crash = often(0.4, 20*time.Second), often(0.4, time.Duration(1+rng.IntN(6))*time.Second), often(0.2, 10*time.Second)
	if !c.Steady {
		c.Set = often(0.3, 7*time.Second)
	}
	if rng.IntN(4) == 0 {
		c.Stall = 0.01
	}
	if rng.IntN(3) == 0 {
		c.Apart, c.Outage, c.Pause, c.Stall = 0, 0, 0, 0
		c.Forget, c.Rewind, c.Restart = often(0.4, 10*time.Second), often(0.4, 10*time.Second), often(0.4, 10*time.Second)
		c.Siege, c.Inside = often(0.3, 10*time.Second), 1
	}
	if rng.IntN(3) == 0 {
		c.Lose = 0.05
	}
	if rng.IntN(4) == 0 {
		c.Mute = 0.05
	}
	if rng.IntN(4) == 0 {
		c.Demand, c.Rate = 0, 6
	}
	if rng.IntN(4) == 0 { // what leaves a part free comes beside what does not
		c.Rate = 6
		for range c.Nodes {
			c.Leaves = append(c.Leaves, []float64{0, 0.25, 0.5}[rng.IntN(3)])
		}
	}
	return c
}

// Whatever befalls, no more are in flight than the limit. PACELINE_LONG=1 has 2,000 runs.
func TestPlacesInStorms(t *testing.T) {
	many := need.Fewer(40, 100)
	if long {
		many = 2000
	}
	var all []nodesim.Config
	for seed := range uint64(many) {
		all = append(all, placesStorm(seed))
	}
	sent := 0
	each(all, func(i int, r *nodesim.Report) {
		sent += r.Sent
		if r.Refused > 0 {
			t.Errorf("seed %d: %d of %d beyond %d places, first at %v: %d nodes, %+v", i, r.Refused, r.Sent, all[i].Places,
				r.Refusals[0], all[i].Nodes, all[i].Trouble)
		}
	})
	t.Logf("%d runs, %d requests", many, sent)
}

// FuzzPlaces looks for what befalls, by chance, in which more are in flight than the limit.
func FuzzPlaces(f *testing.F) {
	f.Add(uint64(5000))
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := placesStorm(seed)
		if r := nodesim.Run(c); r.Refused > 0 {
			t.Errorf("%d of %d beyond %d places: %d nodes, %+v", r.Refused, r.Sent, c.Places, c.Nodes, c.Trouble)
		}
	})
}

// A node whose requests are few leaves its places to one whose requests wait, and has one soon when a request comes.
func TestIdlePlacesMove(t *testing.T) {
	c := places(4, 2, time.Second, 3)
	c.Length, c.Demand, c.Rate = 130*time.Second, 1000, 0.2
	c.Leaves = []float64{1e-12, 0} // the first always has requests that wait, and those of the second come
	r := nodesim.Run(c)
	used, parts := inUse(&c, r)
	t.Logf("%.3f in use, parts %.2f, waits %v", used, parts, r.Waits)
	if r.Refused > 0 || used < 0.85 || parts[0] < 0.85 {
		t.Errorf("%d refused, %.3f in use, the part of the busy one is %.2f", r.Refused, used, parts[0])
	}
}

// While one node leaves half of the places free, requests of another wait for a turn at the store, and for no other request.
func TestReserveOfPlaces(t *testing.T) {
	c := places(8, 2, time.Second, 3)
	c.Length, c.Demand, c.Rate = 200*time.Second, 1000, 1
	c.Leaves = []float64{0.5, 0}
	r := nodesim.Run(c)
	used, parts := inUse(&c, r)
	slices.Sort(r.Waits)
	median, most := r.Waits[len(r.Waits)/2], r.Waits[len(r.Waits)*95/100]
	t.Logf("%.3f in use, parts %.2f, they wait %v and %v", used, parts, median, most)
	if r.Refused > 0 || used < 0.5 || median > 20*ms || most > 250*ms {
		t.Errorf("%d refused, %.3f in use, half wait %v and one in twenty %v", r.Refused, used, median, most)
	}
}

// The places of a process that was killed go to the others two seconds later, if they see that, and else after
// eleven minutes.
func TestPlacesOfTheKilled(t *testing.T) {
	for _, a := range []struct {
		seen       bool
		warm       time.Duration // the figures are of a minute from then on
		used, most float64
	}{{true, 20 * time.Second, 0.9, 1}, {false, 5 * time.Minute, 0.4, 0.6}, {false, 12 * time.Minute, 0.9, 1}} {
		c := places(4, 2, time.Second, 1)
		c.Seen, c.Dies, c.Warm, c.Length = a.seen, 10*time.Second, a.warm, a.warm+time.Minute
		r := nodesim.Run(c)
		if used, _ := inUse(&c, r); r.Refused > 0 || used < a.used || used > a.most {
			t.Errorf("it is seen: %v: after %v %.2f are in use, want %.2f to %.2f; %d refused", a.seen, a.warm, used, a.used, a.most,
				r.Refused)
		}
	}
}
