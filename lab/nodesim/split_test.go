package nodesim_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
)

// splitting is nodes that go on with their parts while the store is away for all, again and again.
func splitting(k kind, nodes int, seed uint64) nodesim.Config {
	c := base(k, nodes, seed)
	c.Split, c.Length = true, 240*time.Second
	c.Away = 30 * time.Second
	return c
}

// Where the store is away for all, what their parts come to is no more than the limit: before, meanwhile and after, with nodes that are
// killed, stopped and begin meanwhile, and of which some may wait instead.
func TestSplitIsExact(t *testing.T) {
	seeds := uint64(1)
	if long {
		seeds = 12
	}
	var all []nodesim.Config
	var names []string
	id := 0
	for seed := range seeds {
		for _, tr := range troubles {
			switch tr.name {
			case "none", "kills", "pauses", "short pauses", "kills and pauses":
			default:
				continue
			}
			for _, k := range []kind{rolling(20, time.Second), rolling(300, time.Second), bucket(100, 20, time.Second), weighted(50, time.Second), tokens(5 * time.Second)} {
				for _, way := range []string{"even", "sharp"} {
					path := ways[way]
					if id++; !long && id%need.Fewer(7, 3) != 0 {
						continue // a sample: ten are of each trouble
					}
					c := splitting(k, []int{1, 3, 8}[len(all)%3], seed*100+uint64(len(all)))
					away := c.Away
					c.Trouble, c.Way, c.StoreWay = tr.Trouble, path, path
					c.Wait = id / 3 % 2 * (c.Nodes / 2)
					c.Away = away
					all = append(all, c)
					names = append(names, k.name+", "+tr.name+", "+way)
				}
			}
		}
	}
	sent := 0
	each(all, func(i int, r *nodesim.Report) {
		sent += r.Sent
		if r.Refused > 0 {
			t.Errorf("%s, %d nodes of which %d wait, seed %d: %d of %d refused", names[i], all[i].Nodes, all[i].Wait, all[i].Seed, r.Refused, r.Sent)
		}
	})
	t.Logf("%d runs, %d sent", len(all), sent)
}

// Where only some are cut off, the others have all of the limit, and those that are cut off their parts besides: what is sent is 1 + k/n of
// the limit at most, which docs/machines.md says.
func TestSplitExcess(t *testing.T) {
	kinds, cuts := []kind{rolling(200, time.Second)}, []int{2, 8}
	if long {
		kinds, cuts = append(kinds, rolling(600, 10*time.Second)), []int{0, 1, 2, 4, 7, 8}
	}
	for _, k := range kinds {
		for _, cut := range cuts {
			c := base(k, 8, 1)
			c.Split, c.Trouble = true, nodesim.Trouble{Cut: cut, CutFrom: 30 * time.Second}
			c.Warm, c.Length = 90*time.Second, 150*time.Second
			r := nodesim.Run(c)
			c.Split = false
			waits := nodesim.Run(c)
			sent, limit := float64(r.Sent)/60, k.full
			t.Logf("%-18s %d of 8 cut off: %3.0f%% of the limit is sent, %2.0f%% of that refused; waiting %3.0f%%, %d refused", k.name, cut,
				100*sent/limit, 100*float64(r.Refused)/float64(r.Sent), 100*float64(waits.Sent)/60/limit, waits.Refused)
			most := 1 + float64(cut)/8
			if cut == 8 {
				most = 1
			}
			if sent > 1.01*most*limit || cut > 0 && sent < 0.9*most*limit || waits.Refused > 0 || (r.Refused > 0) != (cut > 0 && cut < 8) {
				t.Errorf("%s, %d of 8 cut off: %.1f a second of %.0f, %d refused, %d refused of those who wait", k.name, cut, sent, limit, r.Refused, waits.Refused)
			}
		}
	}
}
