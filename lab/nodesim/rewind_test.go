package nodesim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
)

// A store goes back to what it had 3 to 40 s before, with or without its clock, in its own life or in that of an earlier server. None is refused,
// as long as a node that knows a later state is there and comes as often as one that wants to send. PACELINE_LONG=1 has 40 times as many runs.
func TestStoreGoesBack(t *testing.T) {
	seeds := uint64(1)
	if long {
		seeds = 40
	}
	var all []nodesim.Config
	for seed := range seeds {
		for _, k := range []kind{rolling(50, time.Second), rolling(200, 4*time.Second), bucket(100, 20, time.Second), rolling(600, time.Minute)} {
			for _, trouble := range []nodesim.Trouble{
				{},
				{Lose: 0.03},
				{Kill: 8 * time.Second},
				{Outage: 8 * time.Second},
				{Forget: 15 * time.Second, Set: 20 * time.Second},
			} {
				nodes := []int{1, 2, 3, 8}[(len(all)+int(seed))%4]
				if trouble.Kill > 0 {
					nodes = 8 // one that knows a later state is there
				}
				c := base(k, nodes, seed*1000+uint64(len(all)))
				c.Rested, c.Length, c.Trouble = true, need.Fewer(60*time.Second, 180*time.Second), trouble
				c.Rewind = 12 * time.Second
				all = append(all, c)
			}
		}
	}
	sent, backs := 0, 0
	each(all, func(i int, r *nodesim.Report) {
		sent += r.Sent
		backs += len(r.Faults)
		if r.Refused > 0 {
			t.Errorf("seed %d, %s, %d nodes, %+v: %d of %d refused", all[i].Seed, limit.Configuration(all[i].Limit()), all[i].Nodes, all[i].Trouble, r.Refused, r.Sent)
		}
	})
	t.Logf("%d sent, %d faults", sent, backs)
}
