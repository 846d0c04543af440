package nodesim_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/lab/nodesim"
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
func runs(seeds int, kinds []kind, fault node.Fault) (all []nodesim.Config, names []string) {
	id := 0
	for seed := range uint64(seeds) {
		for _, tr := range troubles {
			for _, k := range kinds {
				for _, way := range []string{"even", "sharp"} {
					path := ways[way]
					if id++; !long && id%5 != 0 {
						continue // a sample: five has nothing in common with how many there are of each
					}
					if k.phased && (tr.Set > 0 || tr.Forget > 0) {
						continue // a phase is no better known than the clock that it is told by
					}
					nodes := []int{1, 2, 3, 8, 8, 24, 64}[(seed+uint64(len(all)))%7]
					c := base(k, nodes, seed*1000+uint64(len(all)))
					c.Way, c.StoreWay, c.Trouble, c.Fault = path, path, tr.Trouble, fault
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

// each runs all of them on all cores.
func each(all []nodesim.Config, f func(i int, r *nodesim.Report)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				r := nodesim.Run(all[i])
				mu.Lock()
				f(i, r)
				mu.Unlock()
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
}

// Every arrival is judged. PACELINE_LONG=1 has ten million.
func TestNothingIsRefused(t *testing.T) {
	seeds := 1
	if long {
		seeds = 24
	}
	all, names := runs(seeds, hostile, node.NoFault)
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

// slow is a path on which one in thirty takes up to 4.9 s: less than Late.
func slow(rng *rand.Rand) time.Duration {
	if rng.IntN(30) > 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(4900 * ms)))
}

// doomed has the store forget when that is worst.
func doomed(c *nodesim.Config) {
	c.Length, c.Trouble = 960*time.Second, nodesim.Trouble{Doom: 10 * time.Second}
}

// besieged has few of the nodes tell what no other knows when the store forgets.
func besieged(c *nodesim.Config, k kind, nodes, inside int) {
	*c = base(k, nodes, c.Seed)
	c.Way, c.StoreWay, c.Rested, c.Length = sharp, near, true, 480*time.Second
	c.Trouble = nodesim.Trouble{Siege: 10 * time.Second, Inside: inside}
}

// aims are runs at which a fault shows, and in which nothing is refused without it.
var aims = map[node.Fault]func(c *nodesim.Config){
	node.KeepsGrants: func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Pause: 3 * time.Second} },
	node.NotFresh:    func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Stall: 0.01} },
	node.LapsedFresh: func(c *nodesim.Config) {
		c.Trouble, c.Length = nodesim.Trouble{Stall: 0.01, Slow: 200 * ms}, 480*time.Second
	},
	node.ToldTwice: func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Lose: 0.03} },
	// Races are lost where the store is far away; near it, nodes that keep apart lose none.
	node.ForgetsAnswers: func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Lose: 0.03}; c.StoreWay = even },
	node.BoundsSwapped:  func(c *nodesim.Config) { c.StoreWay = even },
	node.ShiftAhead:     func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Set: 2 * time.Second}; c.StoreWay = even },
	node.NoSlack:        func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Set: 2 * time.Second}; c.StoreWay = even },
	node.NoQuiet:        func(c *nodesim.Config) { c.Trouble = nodesim.Trouble{Remove: 10 * time.Second} },
	node.TrustsClock: func(c *nodesim.Config) {
		c.Rested, c.Trouble = true, nodesim.Trouble{Kill: 2 * time.Second, Newborn: true}
	},
	node.EraKept: func(c *nodesim.Config) {
		c.Nodes, c.Length = 3, 240*time.Second
		c.Trouble = nodesim.Trouble{Kill: 8 * time.Second, Newborn: true, OnOff: 12 * time.Second}
	},
	node.GivesUpEarly: func(c *nodesim.Config) {
		c.Way, c.Length = slow, 240*time.Second
		c.Trouble = nodesim.Trouble{Pause: 4 * time.Second}
	},
	node.QuickAnswers: func(c *nodesim.Config) {},
	node.GrantsAtOnce: func(c *nodesim.Config) {},
	node.SplitsEarly:  func(c *nodesim.Config) { *c = splitting(rolling(20, 5*time.Second), c.Nodes, c.Seed) },
	node.SplitsUnknown: func(c *nodesim.Config) {
		*c = splitting(rolling(20, time.Second), c.Nodes, c.Seed)
		c.Pause = 5 * time.Second
	},
	node.SplitUnseen: func(c *nodesim.Config) {
		*c = splitting(rolling(20, 5*time.Second), c.Nodes, c.Seed)
		c.Kill = 5 * time.Second
	},
	node.SplitsStopped: func(c *nodesim.Config) {
		*c = splitting(rolling(20, time.Second), c.Nodes, c.Seed)
		c.Pause, c.Nodes, c.Length = 4*time.Second, 6, 960*time.Second
	},
	node.MostUnseen:    func(c *nodesim.Config) { doomed(c); c.OnOff = 4 * time.Second },
	node.UnseenAlike:   func(c *nodesim.Config) { doomed(c); c.Nodes = 2 },
	node.TellsAhead:    func(c *nodesim.Config) { besieged(c, rolling(100, 2*time.Second), 8, 5); c.Hush = true },
	node.RecallsLate:   func(c *nodesim.Config) { doomed(c); c.Nodes, c.OnOff = 2, 4*time.Second },
	node.RecallsOpen:   doomed,
	node.RecallsUntold: func(c *nodesim.Config) { besieged(c, rolling(200, 4*time.Second), 2, 1) },
	node.RecallsSeen:   func(c *nodesim.Config) { doomed(c); c.Nodes = 2 },
	node.RecallsUnsure: func(c *nodesim.Config) { doomed(c); c.Nodes, c.Deaf = 2, true },
	node.RecallsLeft: func(c *nodesim.Config) {
		*c = base(rolling(60, 2*time.Second), 2, c.Seed)
		c.Way, c.StoreWay = sharp, near
		doomed(c)
		c.Deaf, c.OnOff = true, 2*time.Second
	},
	node.ReturnsUnseen: doomed,
	node.ReturnsUnwarned: func(c *nodesim.Config) {
		*c = base(rolling(60, 2*time.Second), 3, c.Seed)
		c.Way, c.StoreWay, c.Rested = sharp, near, true
		doomed(c)
		c.Pause, c.Short = 4*time.Second, true
	},
	node.AbsentSoon:      doomed,
	node.GathersOlder:    doomed,
	node.GathersFew:      func(c *nodesim.Config) { besieged(c, rolling(200, 4*time.Second), 2, 1) },
	node.TellsMore:       func(c *nodesim.Config) { besieged(c, rolling(200, 4*time.Second), 8, 1) },
	node.TellsUnseen:     func(c *nodesim.Config) { besieged(c, rolling(60, 4*time.Second), 8, 1); c.Heir = true },
	node.SplitEndsAtOnce: func(c *nodesim.Config) { *c = splitting(rolling(20, 5*time.Second), c.Nodes, c.Seed) },
}

// What is planted is found, by runs that are aimed at it, in which nothing is wrong without it. Without PACELINE_LONG the first find ends it.
func TestFaultsAreFound(t *testing.T) {
	for _, fault := range node.Faults() {
		wrong := func(r *nodesim.Report) bool {
			return r.Refused > 0 || fault == node.ToldTwice && r.Told > r.Answered
		}
		runs, found, refused := 0, 0, 0
		for seed := uint64(0); seed < 12 && (found == 0 || long); seed += 2 {
			var all []nodesim.Config
			for _, s := range []uint64{seed, seed + 1} {
				c := base(rolling(20, time.Second), 3+int(s%4), 7000+s)
				c.Way, c.StoreWay = sharp, near
				aims[fault](&c)
				all = append(all, c)
				c.Fault = fault
				all = append(all, c)
			}
			each(all, func(i int, r *nodesim.Report) {
				if i%2 == 0 && wrong(r) {
					t.Errorf("%v: without it %d of %d are refused, and of %d answers %d are told, seed %d", fault, r.Refused, r.Sent, r.Answered, r.Told, all[i].Seed)
				} else if wrong(r) {
					found++
					refused += r.Refused
				}
			})
			runs += 2
		}
		t.Logf("%-30v found in %d of %d runs, %d refused", fault, found, runs, refused)
		if found == 0 {
			t.Errorf("%v: not found", fault)
		}
	}
}
