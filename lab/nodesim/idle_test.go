package nodesim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/nodesim"
)

// idleReturn is a store that goes back to copies of 3 to 40 s, while one or two nodes are busy and up to six others have demand now and then.
// Those are not in the book in between, and one of them is often the first to come after a return.
func idleReturn(seed uint64) nodesim.Config {
	rng := rand.New(rand.NewPCG(seed, 52))
	kinds := []kind{rolling(40, time.Second), rolling(200, 4*time.Second), bucket(100, 20, time.Second), rolling(600, time.Minute)}
	c := base(kinds[rng.IntN(len(kinds))], 2+rng.IntN(7), seed)
	c.Busy = 1 + rng.IntN(min(2, c.Nodes-1))
	c.Demand = []int{3, 40, 200}[rng.IntN(3)]
	c.OnOff = []time.Duration{time.Second, 3 * time.Second, 20 * time.Second}[rng.IntN(3)]
	c.Steady = rng.IntN(2) == 0
	c.Rested, c.Length, c.Rewind, c.Waken = true, 180*time.Second, 8*time.Second, true
	return c
}

// An idle node that comes first to an old copy does not take it for the present. PACELINE_LONG=1 has 10,000 runs.
func TestIdleNodeComesFirst(t *testing.T) {
	many := uint64(32)
	if long {
		many = 10_000
	}
	var all []nodesim.Config
	for seed := range many {
		all = append(all, idleReturn(seed))
	}
	sent, backs, refused := 0, 0, 0
	each(all, func(i int, r *nodesim.Report) {
		sent, backs, refused = sent+r.Sent, backs+len(r.Faults), refused+r.Refused
		if r.Refused > 0 {
			t.Errorf("seed %d, %s, %d nodes, steady %v: %d of %d refused", all[i].Seed, all[i].Limit().Configuration(), all[i].Nodes, all[i].Steady, r.Refused, r.Sent)
		}
	})
	t.Logf("%d sent, %d returns, %d refused", sent, backs, refused)
}
