package nodesim_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/lab/parallel"
)

// troubles are what befalls, by name.
var troubles = []struct {
	name string
	nodesim.Trouble
}{
	{"none", nodesim.Trouble{}},
	{"kills", nodesim.Trouble{Kill: 5 * time.Second}},
	{"pauses", nodesim.Trouble{Pause: 4 * time.Second}},
	{"short pauses", nodesim.Trouble{Pause: time.Second, Short: true}},
	{"outages", nodesim.Trouble{Outage: 3 * time.Second}},
	{"lost and doubled", nodesim.Trouble{Lose: 0.03}},
	{"clock set", nodesim.Trouble{Set: 7 * time.Second}},
	{"forgets", nodesim.Trouble{Forget: 20 * time.Second}},
	{"kills and pauses", nodesim.Trouble{Kill: 8 * time.Second, Pause: 5 * time.Second}},
	{"clock set, outages", nodesim.Trouble{Set: 5 * time.Second, Outage: 3 * time.Second}},
	{"clock set, kills, on and off", nodesim.Trouble{Set: 4 * time.Second, Kill: 5 * time.Second, OnOff: 3 * time.Second}},
	{"forgets, pauses", nodesim.Trouble{Forget: 15 * time.Second, Pause: 5 * time.Second}},
	{"restarts, on and off", nodesim.Trouble{Restart: 12 * time.Second, OnOff: 4 * time.Second}},
	{"doom", nodesim.Trouble{Doom: 10 * time.Second}},
	{"doom, lost and doubled, on and off", nodesim.Trouble{Doom: 10 * time.Second, Lose: 0.1, OnOff: 4 * time.Second}},
	{"siege of two", nodesim.Trouble{Siege: 10 * time.Second, Inside: 2}},
	{"siege of an heir, on and off", nodesim.Trouble{Siege: 10 * time.Second, Inside: 1, Heir: true, OnOff: 4 * time.Second}},
	{"restarts at kills and stops", nodesim.Trouble{Crew: 3 * time.Second, Struck: true}},
	{"written after a pause", nodesim.Trouble{Stall: 0.003, Slow: 200 * ms}},
	{"all", nodesim.Trouble{Kill: 9 * time.Second, Pause: 6 * time.Second, Outage: 6 * time.Second, Lose: 0.03, Set: 7 * time.Second, Forget: 40 * time.Second, OnOff: 8 * time.Second}},
}

var ways = map[string]func(*rand.Rand) time.Duration{"even": even, "sharp": sharp}

// runs are hostile: every trouble with every kind and path, and so many seeds.
func runs(seeds int, kinds []kind) (all []nodesim.Config, names []string) {
	// A sample: this has nothing in common with how many there are of each, and every trouble is met.
	step := need.Fewer(11, 5)
	id := 0
	for seed := range uint64(seeds) {
		for _, tr := range troubles {
			for _, k := range kinds {
				for _, way := range []string{"even", "sharp"} {
					path := ways[way]
					if id++; !long && id%step != 0 {
						continue
					}
					if k.phased && (tr.Set > 0 || tr.Forget > 0) {
						continue // a phase is no better known than the clock that it is told by
					}
					nodes := []int{1, 2, 3, 8, 8, 24, 64}[(seed+uint64(len(all)))%7]
					c := base(k, nodes, seed*1000+uint64(len(all)))
					c.Way, c.StoreWay, c.Trouble = path, path, tr.Trouble
					if seed%3 == 1 {
						c.Demand, c.Rate = 0, k.full/float64(nodes)*0.7
					}
					if c.Length = 30 * time.Second; long {
						c.Length = time.Minute
					}
					if seed%2 == 1 {
						c.Poll = 80 * ms
					}
					all = append(all, c)
					names = append(names, fmt.Sprintf("%s, %s, %s path, %d nodes, seed %d", k.name, tr.name, way, nodes, c.Seed))
				}
			}
		}
	}
	return all, names
}

var hostile = []kind{rolling(20, time.Second), rolling(300, time.Second), calendar(100, 5*time.Second), bucket(100, 20, time.Second),
	weighted(50, time.Second), tokens(5 * time.Second)}

// each runs all of them on all cores, and calls f with one report at a time.
func each(all []nodesim.Config, f func(i int, r *nodesim.Report)) {
	onAll(len(all), func(i int) func() {
		r := nodesim.Run(all[i])
		return func() { f(i, r) }
	})
}

// onAll runs the jobs 0 to n-1 on all cores, and what each returns one at a time.
func onAll(n int, run func(i int) (keep func())) {
	_ = parallel.OnAll(context.Background(), n, func() func(int) (func(), error) {
		return func(i int) (func(), error) { return run(i), nil }
	})
}

// Every arrival is judged. PACELINE_LONG=1 has ten million.
func TestNothingIsRefused(t *testing.T) {
	seeds := 1
	if long {
		seeds = 24
	}
	all, names := runs(seeds, hostile)
	sent, beyond := 0, 0
	each(all, func(i int, r *nodesim.Report) {
		sent += r.Sent
		if r.Beyond {
			beyond++
		}
		if r.Refused > 0 {
			t.Errorf("%s: %d of %d refused", names[i], r.Refused, r.Sent)
		}
	})
	t.Logf("%d runs, %d permits; %d runs ended at what is trusted not to happen", len(all), sent, beyond)
	if beyond > len(all)/4 {
		t.Errorf("%d of %d runs ended early", beyond, len(all))
	}
}
