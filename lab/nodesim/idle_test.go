package nodesim_test

import (
	"math/rand/v2"
	"sort"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
)

// idleReturn is a store that goes back to copies of 3 to 30 s, while one or two nodes are busy. Others come late, or have demand now and then.
// Those are not in the book in between, and one of them is often the first to come after a return.
func idleReturn(seed uint64, busy, nodes int, onOff time.Duration, steady bool) nodesim.Config {
	rng := rand.New(rand.NewPCG(seed, 52))
	kinds := []kind{rolling(40, time.Second), rolling(200, 4*time.Second), bucket(100, 20, time.Second), rolling(600, time.Minute)}
	c := base(kinds[rng.IntN(len(kinds))], nodes, seed)
	c.Demand = []int{3, 40, 200}[rng.IntN(3)]
	c.Busy, c.OnOff, c.Steady = busy, onOff, steady
	c.Later, c.LaterAt = rng.IntN(nodes-busy+1), time.Duration(rng.IntN(30))*time.Second
	c.Rested, c.Length, c.Rewind, c.Waken = true, 40*time.Second, 6*time.Second, true
	return c
}

// An idle node that comes first to an old copy does not take it for the present. PACELINE_LONG=1 has 100,000 histories.
func TestIdleNodeComesFirst(t *testing.T) {
	many := need.Fewer[uint64](60, 200)
	if long {
		many = 100_000
	}
	var all []nodesim.Config
	for seed := range many {
		rng := rand.New(rand.NewPCG(seed, 54))
		nodes := 2 + rng.IntN(7)
		onOff := []time.Duration{time.Second, 3 * time.Second, 20 * time.Second, time.Hour}[rng.IntN(4)]
		all = append(all, idleReturn(seed, 1+rng.IntN(min(2, nodes-1)), nodes, onOff, rng.IntN(2) == 0))
	}
	sent, backs, refused := 0, 0, 0
	each(all, func(i int, r *nodesim.Report) {
		sent, backs, refused = sent+r.Sent, backs+len(r.Faults), refused+r.Refused
		if r.Refused > 0 {
			t.Errorf("seed %d, %s, %d nodes, steady %v: %d of %d refused", all[i].Seed, limit.Configuration(all[i].Limit()), all[i].Nodes, all[i].Steady, r.Refused, r.Sent)
		}
	})
	t.Logf("%d sent, %d returns, %d refused", sent, backs, refused)
}

// FuzzIdleNodeComesFirst looks for a return that an idle node takes for the present.
func FuzzIdleNodeComesFirst(f *testing.F) {
	f.Add(uint64(1), uint8(1), uint8(3), uint16(1000), true)
	f.Add(uint64(2), uint8(2), uint8(8), uint16(20_000), false)
	f.Fuzz(func(t *testing.T, seed uint64, busy, others uint8, onOff uint16, steady bool) {
		few, more := 1+int(busy%4), 1+int(others%6)
		c := idleReturn(seed, few, few+more, max(time.Duration(onOff)*ms, 100*ms), steady)
		if r := nodesim.Run(c); r.Refused > 0 {
			t.Errorf("%d of %d refused: %d nodes, %+v", r.Refused, r.Sent, c.Nodes, c.Trouble)
		}
	})
}

// undone is a store that goes back to one of the latest hundred puts, while nodes come and go.
func undone(seed uint64, young bool) nodesim.Config {
	rng := rand.New(rand.NewPCG(seed, 53))
	c := base(rolling(40, time.Second), 3, seed)
	c.Demand = []int{3, 40, 200}[rng.IntN(3)]
	c.OnOff = []time.Duration{0, 500 * ms, 3 * time.Second}[rng.IntN(3)]
	c.Steady = rng.IntN(2) == 0
	c.Rested, c.Length, c.Undo = true, 60*time.Second, 20
	c.Young = young
	return c
}

// A store goes back again and again to puts of 1.2 s to some seconds ago, and none is refused. It goes back to the very latest puts, too, and
// to those of a time when nobody was there: no node can tell these from the present. Then what is sent above the limit is rare, and no more
// than the limit. PACELINE_LONG=1 has 10,000 runs.
func TestUndone(t *testing.T) {
	many := need.Fewer[uint64](25, 100)
	if long {
		many = 10_000
	}
	for _, young := range []bool{false, true} {
		var all []nodesim.Config
		for seed := range many {
			all = append(all, undone(seed, young))
		}
		backs, over, sum, most := 0, 0, 0, 0
		each(all, func(i int, r *nodesim.Report) {
			backs, sum = backs+len(r.Faults), sum+r.Refused
			after := map[int]int{} // the faults before: how many were refused
			for _, at := range r.Refusals {
				after[sort.Search(len(r.Faults), func(k int) bool { return r.Faults[k] > at })]++
			}
			over += len(after)
			for _, n := range after {
				most = max(most, n)
			}
			if !young && r.Refused > 0 {
				t.Errorf("seed %d, steady %v: %d of %d refused", all[i].Seed, all[i].Steady, r.Refused, r.Sent)
			}
		})
		t.Logf("young %v: %d returns, after %d of them %d refused, at most %d", young, backs, over, sum, most)
		if over*100 > backs || most > 40 {
			t.Errorf("%d of %d returns have refusals, one of them %d", over, backs, most)
		}
	}
}
