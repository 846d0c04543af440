package fairshare_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Who says rightly how many share a window costs nobody anything where all share fairly: not itself, not the others who say so, and not
// those who say nothing.
func TestSharersCostNothingAmongOurOwn(t *testing.T) {
	law, err := strategy.Named("fair")
	if err != nil {
		t.Fatal(err)
	}
	group := func(n int, sharers float64) fleet.Group {
		return fleet.Group{Strategy: law, Params: strategy.Params{Sharers: sharers}, Processes: n, Link: latency.Uniform(20*time.Millisecond, 40*time.Millisecond)}
	}
	for name, c := range map[string]struct {
		limit   int64
		window  time.Duration
		groups  []fleet.Group
		spread  time.Duration
		cv      float64
		refused float64
	}{
		"ten, hourly":                      {5000, time.Hour, []fleet.Group{group(10, 10)}, 0, 0.5, 0},
		"fifty, hourly":                    {5000, time.Hour, []fleet.Group{group(50, 50)}, 0, 1, 0},
		"five beside five who say nothing": {5000, time.Hour, []fleet.Group{group(5, 10), group(5, 0)}, 0, 0.5, 0},
		"twenty who start within an hour":  {5000, time.Hour, []fleet.Group{group(20, 20)}, time.Hour, 1, 0},
		"ten, each minute":                 {75, time.Minute, []fleet.Group{group(10, 10)}, 0, 1, 0.1},
		"fifty, each minute":               {600, time.Minute, []fleet.Group{group(50, 50)}, 0, 1, 0.5},
	} {
		for i := range c.groups {
			c.groups[i].Spread = c.spread
		}
		f, err := fleet.New(fleet.Scenario{Duration: max(4*c.window, time.Hour), Seed: 1, Groups: c.groups,
			Server: fleet.Quota{Kind: fleet.Calendar, Limit: c.limit, Window: c.window, Headers: fleet.Headers{Reset: fleet.WholeSeconds}}})
		if err != nil {
			t.Fatal(err)
		}
		f.Advance(max(4*c.window, time.Hour))
		r := f.Report()
		if r.SharesSteady.CV > c.cv || r.Steady.Percent > c.refused {
			t.Errorf("%s: CV of shares %.2f %%, refused %.2f %%, want at most %v and %v", name, r.SharesSteady.CV, r.Steady.Percent, c.cv, c.refused)
		}
	}
}
