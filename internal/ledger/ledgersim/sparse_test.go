package ledgersim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/ledger/ledgersim"
)

// Who has all the demand of eight gets what one process would, and those without any call nobody.
func TestOnlyOneWants(t *testing.T) {
	c := base(rolling(20, time.Second), 8, 1)
	c.Only, c.Warm = 1, 20*time.Second
	one, r := ledgersim.Alone(c), ledgersim.Run(c)
	t.Logf("%.1f%% of one process, %.1f turns/s", 100*r.Rate/one.Rate, float64(r.Turns)/(c.Length-c.Warm).Seconds())
	if r.Refused > 0 || r.Rate < 0.985*one.Rate || float64(r.Turns) > 5*(c.Length-c.Warm).Seconds() {
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

// A newcomer beside others who take all has its first permit within half a second. Those that come while a new store is quiet are not meant, nor
// those before whom three were killed within 7 s, of which others keep what they held.
func TestNewcomer(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		c := base(rolling(20, time.Second), 9, seed)
		c.Trouble = ledgersim.Trouble{Kill: 20 * time.Second}
		c.Rested, c.Length = true, 300*time.Second
		r := ledgersim.Run(c)
		var firsts []time.Duration
		for i, came := range r.Came {
			lately := 0
			for _, kill := range r.Faults {
				if kill < came && came-kill < 7*time.Second {
					lately++
				}
			}
			if lately <= 2 {
				firsts = append(firsts, r.Firsts[i])
			}
		}
		r.Firsts = firsts
		slices.Sort(r.Firsts)
		t.Logf("first permits of %d newcomers: median %v, latest %v", len(r.Firsts), r.Firsts[len(r.Firsts)/2], r.Firsts[len(r.Firsts)-1])
		if r.Refused > 0 || len(r.Firsts) < 5 || r.Firsts[len(r.Firsts)-1] > time.Second/2 {
			t.Errorf("first permits %v, %d refused", r.Firsts, r.Refused)
		}
	}
}
