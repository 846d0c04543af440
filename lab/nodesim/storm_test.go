package nodesim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
)

// storm is a run of what befalls at worst when a store forgets, with all that may befall besides, by chance.
func storm(seed uint64) nodesim.Config {
	rng := rand.New(rand.NewPCG(seed, 99))
	kinds := append([]kind{rolling(200, 4*time.Second), rolling(20, 5*time.Second)}, hostile...)
	k := kinds[rng.IntN(len(kinds))]
	for k.phased {
		k = kinds[rng.IntN(len(kinds))]
	}
	nodes := []int{2, 3, 4, 5, 8, 12}[rng.IntN(6)]
	c := base(k, nodes, seed)
	c.Way, c.StoreWay, c.Rested, c.Length = sharp, near, true, 240*time.Second
	often := func(part float64, d time.Duration) time.Duration {
		if rng.Float64() < part {
			return d
		}
		return 0
	}
	c.Siege = often(0.6, 10*time.Second)
	c.Inside, c.Heir, c.Hush = 1+rng.IntN(nodes-1), rng.IntN(3) == 0, rng.IntN(5) == 0
	c.Doom, c.Restart, c.Forget = often(0.4, 10*time.Second), often(0.3, 8*time.Second), often(0.2, 6*time.Second)
	c.Crew, c.Struck = often(0.2, 3*time.Second), true
	c.Kill, c.Pause, c.Outage = often(0.2, 6*time.Second), often(0.2, 4*time.Second), often(0.2, 4*time.Second)
	c.Short, c.Set = rng.IntN(2) == 0, often(0.15, 7*time.Second)
	c.OnOff = often(0.3, time.Duration(1+rng.IntN(6))*time.Second)
	if rng.IntN(3) == 0 {
		c.Lose = 0.05
	}
	if rng.IntN(5) == 0 {
		c.Mute = 0.05
	}
	if rng.IntN(5) == 0 {
		c.Demand, c.Rate = 0, 6
	}
	c.Poll = often(0.2, 80*ms)
	return c
}

// Whatever befalls together, none is refused. PACELINE_LONG=1 has 600 runs.
func TestStorm(t *testing.T) {
	many := need.Fewer(6, 16)
	if long {
		many = 600
	}
	var all []nodesim.Config
	for seed := range uint64(many) {
		all = append(all, storm(seed))
	}
	sent := 0
	each(all, func(i int, r *nodesim.Report) {
		sent += r.Sent
		if r.Refused > 0 {
			t.Errorf("seed %d: %d of %d refused: %d nodes, %+v", i, r.Refused, r.Sent, all[i].Nodes, all[i].Trouble)
		}
	})
	t.Logf("%d runs, %d permits", many, sent)
}
