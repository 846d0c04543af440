package nodesim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
)

// Who has all the demand of eight gets what one process would, and those without any call nobody.
func TestOnlyOneWants(t *testing.T) {
	c := base(rolling(20, time.Second), 8, 1)
	c.Only, c.Warm, c.Length = 1, 20*time.Second, 320*time.Second // in a minute, 1.3 % are the ends of it
	one, r := nodesim.Alone(c), nodesim.Run(c)
	t.Logf("%.1f%% of one process, %.1f turns/s", 100*r.Rate/one.Rate, float64(r.Turns)/(c.Length-c.Warm).Seconds())
	if r.Refused > 0 || r.Rate < 0.995*one.Rate || float64(r.Turns) > 5*(c.Length-c.Warm).Seconds() {
		t.Errorf("%.2f/s of %.2f, %d turns, %d refused", r.Rate, one.Rate, r.Turns, r.Refused)
	}
	c.Only, c.Demand = 0, 0
	c.Rate = 1e-9
	if r := nodesim.Run(c); r.Turns+r.Lost > 0 {
		t.Errorf("without demand there were %d turns", r.Turns+r.Lost)
	}
}

// Where there is more than enough, a permit is there when it is asked for, and the store is asked at most four times a
// second and node.
func TestLightLoad(t *testing.T) {
	c := base(rolling(1000, time.Second), 8, 1)
	c.Demand, c.Rate, c.Warm, c.Length = 0, 2, 20*time.Second, 120*time.Second
	r := nodesim.Run(c)
	slices.Sort(r.Waits)
	median, turns := r.Waits[len(r.Waits)/2], float64(r.Turns)/100/8
	t.Logf("%d waits, median %v, 90%% %v; %.2f turns a second and node", len(r.Waits), median, r.Waits[len(r.Waits)*9/10], turns)
	if r.Refused > 0 || median > ms/10 || turns > 4 {
		t.Errorf("median %v, %.2f turns a second and node, %d refused", median, turns, r.Refused)
	}
}

// A newcomer beside others who take all has its first permit within half a second. It does not matter how many were
// killed just before, of which others keep what they held, nor how far those who send a lot look ahead. Those that come
// while a new store is quiet are not meant.
func TestNewcomer(t *testing.T) {
	const most = time.Second / 2
	// 9, 74 and 75 found newcomers for whom nothing was free before their next turn.
	for _, seed := range need.Fewer([]uint64{9, 74, 75}, []uint64{1, 2, 9, 74, 75}) {
		c := base(rolling(20, time.Second), 9, seed)
		c.Trouble = nodesim.Trouble{Kill: 20 * time.Second}
		c.Rested, c.Length = true, 300*time.Second
		r := nodesim.Run(c)
		var firsts []time.Duration
		for i, came := range r.Came {
			if came > 3*time.Second {
				firsts = append(firsts, r.Firsts[i])
			}
		}
		slices.Sort(firsts)
		t.Logf("first permits of %d newcomers: median %v, latest %v", len(firsts), firsts[len(firsts)/2], firsts[len(firsts)-1])
		if r.Refused > 0 || len(firsts) < 5 || firsts[len(firsts)-1] > most {
			t.Errorf("first permits %v, %d refused", firsts, r.Refused)
		}
		c = base(rolling(1000, time.Second), 8, seed)
		c.Rested, c.Later, c.LaterAt, c.Length = true, 3, 5*time.Second, 10*time.Second
		r = nodesim.Run(c)
		t.Logf("of three at 1,000 a second: %v", r.Firsts)
		if r.Refused > 0 || len(r.Firsts) != 3 || slices.Max(r.Firsts) > most {
			t.Errorf("first permits of three at 1,000 a second %v, %d refused", r.Firsts, r.Refused)
		}
	}
}

// Where eight others send all of a window in one burst, as where the path is quick, a newcomer has its first permit
// within half a second all the same: they keep one free until the next will be free soon. Of 30,000 tokens a minute
// that holds for requests that are not much larger than most.
func TestNewcomerBetweenBursts(t *testing.T) {
	few := need.Fewer(3, 8)
	if long {
		few = 40
	}
	for i, c := range []struct {
		limit  kind
		way    string
		after  time.Duration
		median time.Duration
		soon   float64 // of all
	}{
		{rolling(20, time.Second), "even", 25 * time.Second, 350 * ms, 1},
		{rolling(20, time.Second), "sharp", 25 * time.Second, 350 * ms, 1},
		{rolling(50, time.Second), "sharp", 25 * time.Second, 350 * ms, 1},
		{rolling(200, time.Second), "sharp", 25 * time.Second, 300 * ms, 1},
		{calendar(20, time.Second), "even", 25 * time.Second, 350 * ms, 1},
		{rolling(100, 10*time.Second), "even", 25 * time.Second, 200 * ms, 1},
		{rolling(600, 10*time.Second), "even", 25 * time.Second, 200 * ms, 1},
		{calendar(600, 10*time.Second), "sharp", 25 * time.Second, 200 * ms, 1},
		{tokens(time.Minute), "even", 145 * time.Second, 200 * ms, 0.825}, // 33 of 40
	} {
		if need.Fewer(i%2 == 1, false) {
			continue // each kind and each way is among the others
		}
		var firsts []time.Duration
		soon, seeds := 0, few
		if c.soon < 1 && need.Whole() { // of eight, luck decides
			seeds = 40
		}
		for seed := range uint64(seeds) {
			s := base(c.limit, 9, seed)
			s.Way, s.Rested, s.Later = ways[c.way], true, 1
			s.LaterAt = c.after + time.Duration(seed)*limit.Span(c.limit.limit())/time.Duration(seeds)
			s.Length = s.LaterAt + 5*time.Second
			r := nodesim.Run(s)
			if r.Refused > 0 {
				t.Errorf("%s: %d refused", c.limit.name, r.Refused)
			}
			if len(r.Firsts) == 0 {
				r.Firsts = append(r.Firsts, 5*time.Second)
			}
			if firsts = append(firsts, r.Firsts...); r.Firsts[0] <= 500*ms {
				soon++
			}
		}
		slices.Sort(firsts)
		t.Logf("%s, %s: first permits of newcomers: median %v, 90%% %v, latest %v; %d of %d within half a second", c.limit.name, c.way, firsts[seeds/2], firsts[seeds*9/10], firsts[seeds-1], soon, seeds)
		if len(firsts) != seeds || firsts[seeds/2] > c.median || float64(soon) < c.soon*float64(seeds) {
			t.Errorf("%s, %s: first permits %v", c.limit.name, c.way, firsts)
		}
	}
}

// What is kept free for newcomers costs nothing in the long run, or is not kept: where all is free again in half a
// second, where even requests are far apart, where requests take long to count, and where some cost much of the limit.
func TestKeptFree(t *testing.T) {
	away := func(least time.Duration) func(*rand.Rand) time.Duration {
		return func(rng *rand.Rand) time.Duration { return least + time.Duration(rng.Int64N(int64(least))) }
	}
	some := rolling(50, time.Second)
	some.name += ", one in thirty costs 25"
	some.cost = func(rng *rand.Rand) limit.Cost { return limit.Cost{limit.Requests: 1 + 24*(rng.Int64N(30)/29)} }
	for i, x := range []struct {
		kind
		way    func(*rand.Rand) time.Duration
		length time.Duration
		least  float64
	}{
		{rolling(2, 300*ms), even, time.Minute, 0.97},
		{rolling(5, time.Second), even, 2 * time.Minute, 0.98},
		{calendar(5, time.Second), even, 2 * time.Minute, 0.99},
		{rolling(20, time.Minute), even, 680 * time.Second, 0.99},
		{calendar(5, time.Second), away(100 * ms), 2 * time.Minute, 0.99},
		{calendar(10, time.Second), away(500 * ms), 5 * time.Minute, 0.98},
		{bucket(10, 12, time.Second), away(500 * ms), 10 * time.Minute, 0.96},
		{some, even, 10 * time.Minute, 0.98},
	} {
		if need.Fewer(i%2 == 1, false) {
			continue // each kind is among the others
		}
		for _, nodes := range need.Fewer([]int{8}, []int{2, 8}) {
			c := base(x.kind, nodes, 1)
			c.Rested, c.Warm, c.Length, c.Way = true, min(x.length/3, 80*time.Second), x.length, x.way
			one, r := nodesim.Alone(c), nodesim.Run(c)
			of := float64(r.Units[limit.Requests]) / float64(one.Units[limit.Requests])
			t.Logf("%s, %d nodes: %.1f %% of one process", x.name, nodes, 100*of)
			if r.Refused > 0 || of < x.least {
				t.Errorf("%s, %d nodes: %.3f of one process, %d refused", x.name, nodes, of, r.Refused)
			}
		}
	}
}

// Who has little because others have larger weights is no newcomer: it does not take what is kept free for these.
func TestFewForLight(t *testing.T) {
	c := base(rolling(20, time.Second), 32, 1)
	c.Rested, c.Warm, c.Length = true, 20*time.Second, need.Fewer(80*time.Second, 170*time.Second)
	c.Weights = []float64{100}
	for len(c.Weights) < c.Nodes {
		c.Weights = append(c.Weights, 1)
	}
	r := nodesim.Run(c)
	all, light := 0.0, 0.0
	for i, n := range r.ByNode {
		if all += n; i > 0 {
			light += n
		}
	}
	t.Logf("%.3f of all is for those of weight 1, 31/131 by weights", light/all)
	if part := light / all * 131 / 31; r.Refused > 0 || part < 0.95 || part > 1.05 {
		t.Errorf("those of weight 1 have %.2f of their part, %d refused", part, r.Refused)
	}
}

// Where some requests cost most of the limit, who holds a part of what such a one needs, and never is least, gets the
// rest: all go on.
func TestLargeHeads(t *testing.T) {
	for _, k := range []kind{rolling(50, time.Second), bucket(50, 50, time.Second)} {
		for seed := range uint64(6) {
			c := base(k, 2+6*int(seed%2), seed)
			c.Rested, c.Length, c.Demand = true, 150*time.Second, 50
			c.Cost = func(rng *rand.Rand) limit.Cost { return limit.Cost{limit.Requests: 1 + 39*(rng.Int64N(30)/29)} } // one in thirty costs 40
			r := nodesim.Run(c)
			late := 0
			for _, n := range r.Seconds[120:150] {
				late += n
			}
			if r.Refused > 0 || late < 200 {
				t.Errorf("%s, %d nodes: %d in the last 30 s, %d refused", k.name, c.Nodes, late, r.Refused)
			}
		}
	}
}

// What costs the whole limit goes as soon as it would in one process, although nothing can be kept free beside it.
func TestAllAtOnce(t *testing.T) {
	all, alone := int64(0), int64(0)
	for seed := range uint64(10) {
		c := base(rolling(50, time.Second), 2, seed)
		c.Rested, c.Demand = true, 10
		c.Cost = func(rng *rand.Rand) limit.Cost { return limit.Cost{limit.Requests: 1 + 49*(rng.Int64N(30)/29)} } // one in thirty costs 50
		r := nodesim.Run(c)
		all, alone = all+r.Units[limit.Requests], alone+nodesim.Alone(c).Units[limit.Requests]
		if r.Refused > 0 {
			t.Errorf("%d refused", r.Refused)
		}
	}
	if t.Logf("%d, one process alone %d", all, alone); float64(all) < 0.9*float64(alone) {
		t.Errorf("%d, one process alone %d", all, alone)
	}
}
