package fairshare_test

import (
	"fmt"
	"testing"

	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Where neither the kind is known nor a reset is told, a crowd uses up a window, or what a bucket holds, and goes by what comes of that.
// These are the worst of three seeds, from the third window on.
func TestFairFindsAKindThatNobodyTells(t *testing.T) {
	hourly := fleet.Quota{Kind: fleet.Calendar, Limit: 5000, Window: hour}
	for _, c := range []struct {
		name                string
		quota               fleet.Quota
		silent              bool
		n                   int
		refused, cv, unused float64 // %
	}{
		{"windows", hourly, false, 1, 0.1, 0, 1},
		{"windows", hourly, false, 10, 0.1, 20, 1},
		{"windows", hourly, false, 50, 1, 40, 1},
		{"silent windows", hourly, true, 1, 0.1, 0, 1},
		{"silent windows", hourly, true, 10, 0.3, 2, 1},
		{"silent windows", hourly, true, 50, 1.5, 3, 1},
		{"a silent window of a minute, alone", fleet.Quota{Kind: fleet.Calendar, Limit: 75, Window: minute}, true, 1, 2, 0, 3},
		{"a silent window of a minute", fleet.Quota{Kind: fleet.Calendar, Limit: 75, Window: minute}, true, 10, 6, 200, 80},
		{"rolling windows", fleet.Quota{Kind: fleet.Rolling, Limit: 4500, Window: hour}, false, 10, 0.5, 150, 10},
		{"a bucket that was full", fleet.Quota{Full: true}, false, 50, 0.1, 1, 1},
		{"a bucket that was full", fleet.Quota{Full: true}, false, 200, 0.1, 25, 1},
		{"a silent bucket that was full", fleet.Quota{Full: true}, true, 10, 1, 30, 1},
	} {
		if testing.Short() && c.n > 10 {
			continue
		}
		c.quota.Silent = c.silent
		length := c.quota.Window
		if length == 0 {
			length = hour
		}
		for seed := range uint64(3) {
			f := must(fleet.New(fleet.Scenario{Duration: 6 * length, Seed: 1001 + seed, Server: c.quota, Groups: []fleet.Group{sharers(c.n, nil)}}))
			f.Advance(6 * length)
			r := f.Report()
			got := fmt.Sprintf("%s, %d, seed %d: %.3f %% refused, CV of shares %.2f %%, %.2f %% unused", c.name, c.n, 1001+seed, r.Steady.Percent, r.SharesSteady.CV, r.Windows.Unused.Median)
			if t.Log(got); r.Steady.Percent > c.refused || r.SharesSteady.CV > c.cv || r.Windows.Unused.Median > c.unused {
				t.Errorf("%s; want at most %v, %v and %v", got, c.refused, c.cv, c.unused)
			}
		}
	}
}
