package nodesim_test

import (
	"math/rand/v2"
	"sort"
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

// undone is a store that goes back to any of the latest hundred puts, while nodes come and go. No node can tell a copy that is younger than
// its last turn from the present, nor one of a time when nobody was there.
func undone(seed uint64) nodesim.Config {
	rng := rand.New(rand.NewPCG(seed, 53))
	c := base(rolling(40, time.Second), 3, seed)
	c.Demand = []int{3, 40, 200}[rng.IntN(3)]
	c.OnOff = []time.Duration{0, 500 * ms, 3 * time.Second}[rng.IntN(3)]
	c.Steady = rng.IntN(2) == 0
	c.Rested, c.Length, c.Undo = true, 60*time.Second, 20
	return c
}

// What is sent above the limit after a return to the very latest puts is rare, and no more than the limit. PACELINE_LONG=1 has 10,000 runs.
func TestReturnToTheLatestPuts(t *testing.T) {
	many := uint64(200)
	if long {
		many = 10_000
	}
	var all []nodesim.Config
	for seed := range many {
		all = append(all, undone(seed))
	}
	backs, over, sum, most := 0, 0, 0, 0
	each(all, func(i int, r *nodesim.Report) {
		backs += len(r.Faults)
		sum += r.Refused
		after := map[int]int{}
		for _, at := range r.Refusals {
			after[sort.Search(len(r.Faults), func(k int) bool { return r.Faults[k] > at })]++
		}
		over += len(after)
		for _, n := range after {
			most = max(most, n)
		}
	})
	t.Logf("%d returns, after %d of them %d refused, at most %d", backs, over, sum, most)
	if over*100 > backs || most > 40 {
		t.Errorf("%d of %d returns have refusals, one of them %d", over, backs, most)
	}
}
