package ledgersim_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/ledger/ledgersim"
	"github.com/paceline-go/paceline/limit"
)

// Who has all the demand of eight gets what one process would, and those without any call nobody.
func TestOnlyOneWants(t *testing.T) {
	c := base(rolling(20, time.Second), 8, 1)
	c.Only, c.Warm, c.Length = 1, 20*time.Second, 320*time.Second // in a minute, 1.3 % are the ends of it
	one, r := ledgersim.Alone(c), ledgersim.Run(c)
	t.Logf("%.1f%% of one process, %.1f turns/s", 100*r.Rate/one.Rate, float64(r.Turns)/(c.Length-c.Warm).Seconds())
	if r.Refused > 0 || r.Rate < 0.995*one.Rate || float64(r.Turns) > 5*(c.Length-c.Warm).Seconds() {
		t.Errorf("%.2f/s of %.2f, %d turns, %d refused", r.Rate, one.Rate, r.Turns, r.Refused)
	}
	c.Only, c.Demand = 0, 0
	c.Rate = 1e-9
	if r := ledgersim.Run(c); r.Turns+r.Lost > 0 {
		t.Errorf("without demand there were %d turns", r.Turns+r.Lost)
	}
}

// Where there is more than enough, a permit is there when it is asked for, and the store is asked at most four times a second and node.
func TestLightLoad(t *testing.T) {
	c := base(rolling(1000, time.Second), 8, 1)
	c.Demand, c.Rate, c.Warm, c.Length = 0, 2, 20*time.Second, 120*time.Second
	r := ledgersim.Run(c)
	slices.Sort(r.Waits)
	median, turns := r.Waits[len(r.Waits)/2], float64(r.Turns)/100/8
	t.Logf("%d waits, median %v, 90%% %v; %.2f turns a second and node", len(r.Waits), median, r.Waits[len(r.Waits)*9/10], turns)
	if r.Refused > 0 || median > ms/10 || turns > 4 {
		t.Errorf("median %v, %.2f turns a second and node, %d refused", median, turns, r.Refused)
	}
}

// A newcomer beside others who take all has its first permit within half a second, however many were killed just before, of which others keep
// what they held, and however far those who send a lot look ahead. Those that come while a new store is quiet are not meant.
func TestNewcomer(t *testing.T) {
	const most = time.Second / 2
	for _, seed := range []uint64{1, 2, 9, 74, 75} { // 9, 74 and 75 found newcomers for whom nothing was free before their next turn
		c := base(rolling(20, time.Second), 9, seed)
		c.Trouble = ledgersim.Trouble{Kill: 20 * time.Second}
		c.Rested, c.Length = true, 300*time.Second
		r := ledgersim.Run(c)
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
		r = ledgersim.Run(c)
		t.Logf("of three at 1,000 a second: %v", r.Firsts)
		if r.Refused > 0 || len(r.Firsts) != 3 || slices.Max(r.Firsts) > most {
			t.Errorf("first permits of three at 1,000 a second %v, %d refused", r.Firsts, r.Refused)
		}
	}
}

// Where eight others send all of a window in one burst, as where the path is quick, a newcomer has its first permit within half a second all the
// same: they keep one free until the next will be free soon. Of 30,000 tokens a minute that holds for requests that are not much larger than most.
func TestNewcomerBetweenBursts(t *testing.T) {
	seeds := 8
	if long {
		seeds = 40
	}
	for _, c := range []struct {
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
		{tokens(time.Minute), "even", 145 * time.Second, 200 * ms, 0.75},
	} {
		var firsts []time.Duration
		soon := 0
		for seed := range uint64(seeds) {
			s := base(c.limit, 9, seed)
			s.Way, s.Rested, s.Later = ways[c.way], true, 1
			s.LaterAt = c.after + time.Duration(seed)*c.limit.limit().Span()/time.Duration(seeds)
			s.Length = s.LaterAt + 5*time.Second
			r := ledgersim.Run(s)
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

// Where all is free again in half a second nothing is kept free: of so little it would be much.
func TestShortWindow(t *testing.T) {
	for _, nodes := range []int{2, 8} {
		c := base(rolling(2, 300*ms), nodes, 1)
		c.Warm = 20 * time.Second
		one, r := ledgersim.Alone(c), ledgersim.Run(c)
		t.Logf("%d nodes: %.1f %% of one process", nodes, 100*r.Rate/one.Rate)
		if r.Refused > 0 || r.Rate < 0.97*one.Rate {
			t.Errorf("%d nodes: %.2f a second of %.2f, %d refused", nodes, r.Rate, one.Rate, r.Refused)
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
		r := ledgersim.Run(c)
		all, alone = all+r.Units[limit.Requests], alone+ledgersim.Alone(c).Units[limit.Requests]
		if r.Refused > 0 {
			t.Errorf("%d refused", r.Refused)
		}
	}
	if t.Logf("%d, one process alone %d", all, alone); float64(all) < 0.9*float64(alone) {
		t.Errorf("%d, one process alone %d", all, alone)
	}
}
