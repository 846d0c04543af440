package fleet_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
)

// Who had how much of what was served, by hand. Clients without a link send every second or so, and all are served.
func TestShares(t *testing.T) {
	plenty := fleet.Quota{Limit: 360_000, Full: true}
	every := func(n int, d time.Duration) fleet.Group {
		return fleet.Group{Strategy: spaced(d), Processes: n, Work: time.Microsecond}
	}
	with := func(g fleet.Group, change func(*fleet.Group)) fleet.Group {
		change(&g)
		return g
	}
	weighing := func(w float64) func(*fleet.Group) { return func(g *fleet.Group) { g.Params.Weight = w } }
	for _, c := range []struct {
		name          string
		groups        []fleet.Group
		shares        [][]float64 // by group
		cv, processes float64
		least, most   float64
	}{
		// 30 and 10 requests in 30 s: shares of 1.5 and 0.5, whose standard deviation is √(2·¼).
		{"one has three times what another has", []fleet.Group{every(1, time.Second), every(1, 3*time.Second)},
			[][]float64{{1.5}, {0.5}}, 100 * math.Sqrt(0.5), 100 * math.Sqrt(0.5), 0.5, 1.5},
		{"by its weight", []fleet.Group{with(every(1, time.Second), weighing(3)), every(1, 3*time.Second)},
			[][]float64{{1}, {1}}, 0, 0, 1, 1},
		{"two weigh as much as one", []fleet.Group{with(every(1, time.Second), weighing(2)), every(2, 2*time.Second)},
			[][]float64{{1}, {1, 1}}, 0, 0, 1, 1},
		{"threads of a process have its part", []fleet.Group{every(1, time.Second), with(every(1, time.Second), func(g *fleet.Group) { g.Threads = 3 })},
			[][]float64{{1}, {1, 1, 1}}, 0, 0, 1, 1},
		{"costs count", []fleet.Group{every(1, time.Second), with(every(1, 3*time.Second), func(g *fleet.Group) { g.Costs.Mean = 9 })},
			[][]float64{{0.5}, {1.5}}, 100 * math.Sqrt(0.5), 100 * math.Sqrt(0.5), 0.5, 1.5},
		{"with its like alone", []fleet.Group{every(1, time.Second), with(every(1, 10*time.Second), func(g *fleet.Group) { g.Join = 10 * time.Second })},
			[][]float64{{1}, {1}}, 0, 0, 1, 1},
		{"light demand is not compared", []fleet.Group{every(1, time.Second), with(every(1, time.Second), func(g *fleet.Group) {
			g.Demand = fleet.Demand{Kind: fleet.Light, PerSecond: 0.1}
		})}, [][]float64{{1}, {}}, 0, 0, 1, 1},
	} {
		r := ran(t, fleet.Scenario{Duration: 30*time.Second - ms, Server: plenty, Groups: c.groups})
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		for i, want := range c.shares {
			if got := r.Groups[i].Share; !slices.EqualFunc(got, want, near) {
				t.Errorf("%s: group %d has the shares %v, want %v", c.name, i, got, want)
			}
			if mean := r.Groups[i].MeanShare; len(want) > 0 && !near(mean, want[0]) || len(want) == 0 && mean != 0 {
				t.Errorf("%s: group %d has a share of %v", c.name, i, mean)
			}
		}
		if s := r.Shares; !near(s.CV, c.cv) || !near(s.Processes, c.processes) || !near(s.Least, c.least) || !near(s.Most, c.most) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// One has all of the first third, both have the same afterwards; one is refused in the first third, the other later.
func TestSteady(t *testing.T) {
	r := ran(t, fleet.Scenario{Duration: 90*time.Second - ms, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
		{Name: "a", Strategy: spaced(time.Second), Work: time.Microsecond},
		{Name: "b", Strategy: scripted(false, 30*time.Second, time.Second-time.Microsecond), Work: time.Microsecond},
	}})
	if r.SharesSteady.CV != 0 || r.Shares.CV < 25 || r.Groups[0].ShareSteady[0] != 1 || r.Groups[0].Share[0] <= 1.1 {
		t.Errorf("in all %+v, steady %+v", r.Shares, r.SharesSteady)
	}
	// Fifteen pass, of arrivals at 0, 1, 2 … s. The sixteenth request comes with the answer to the fifteenth, at 14 s.
	r = ran(t, fleet.Scenario{Duration: 30*time.Second - ms, Server: fleet.Quota{Kind: fleet.DecreaseOnly, Limit: 15}, Groups: []fleet.Group{
		{Strategy: spaced(time.Second), Work: time.Microsecond}}})
	if r.Steady.Requests != 20 || r.Steady.Limited != 15 || r.Steady.Percent != 75 || r.Limited != 15 {
		t.Errorf("%d limited; steady %+v", r.Limited, r.Steady)
	}
	if r.LongestWait < 15.9 || r.LongestWait > 16 || r.Groups[0].LongestWait[0] != r.LongestWait {
		t.Errorf("the sixteenth request waits for %v s when the run ends", r.LongestWait)
	}
}

// Windows of a minute: each has what it has, whole or not.
func TestWindowShares(t *testing.T) {
	for _, c := range []struct {
		name   string
		quota  fleet.Quota
		groups []fleet.Group
		d      time.Duration
		want   string
	}{
		// Three take 20 of 80 each, from the first window on.
		{"even", fleet.Quota{Limit: 80}, []fleet.Group{{Processes: 3, Strategy: spaced(3 * time.Second)}}, 5 * time.Minute,
			"first 0, 4 windows of CV {0 0}, unused {25 25}, 100 even"},
		// 8 and 7 of 15 in turn: every 8 s is 8 in a window and 7 in the next.
		{"rounded", fleet.Quota{Limit: 15}, []fleet.Group{{Strategy: scripted(false, 8*time.Second)}, {Strategy: scripted(false, 4*time.Second, 8*time.Second)}}, 6 * time.Minute,
			"first 9.43, 4 windows of CV {9.43 9.43}, unused {0 0}, 100 even"},
		// The first has 40 of 120; the other, which comes after a minute, 40 from then on, and is compared with nobody.
		{"who comes later", fleet.Quota{Limit: 120}, []fleet.Group{{Strategy: spaced(1500 * ms)}, {Strategy: spaced(1500 * ms), Join: time.Minute}}, 4 * time.Minute,
			"first 0, 3 windows of CV {0 0}, unused {33.3 33.3}, 100 even"},
		{"one takes twice as much", fleet.Quota{Limit: 60}, []fleet.Group{{Strategy: spaced(1500 * ms)}, {Strategy: spaced(3 * time.Second)}}, 4 * time.Minute,
			"first 47.1, 3 windows of CV {47.1 47.1}, unused {0 0}, 0 even"},
		{"the first began before, and the quota doubles", fleet.Quota{Limit: 40, Into: 30 * time.Second, Changes: []fleet.Change{{At: 80 * time.Second, Factor: 2}}},
			[]fleet.Group{{Strategy: spaced(3 * time.Second)}}, 210 * time.Second, "first 0, 3 windows of CV {0 0}, unused {75 75}, 100 even"},
	} {
		c.quota.Kind, c.quota.Window = fleet.Calendar, time.Minute
		for i := range c.groups {
			c.groups[i].Work = time.Nanosecond
		}
		w := ran(t, fleet.Scenario{Duration: c.d, Server: c.quota, Groups: c.groups}).Windows
		got := fmt.Sprintf("first %.3g, %d windows of CV {%.3g %.3g}, unused {%.3g %.3g}, %.3g even", w.FirstCV, w.Windows, w.CV.Median, w.CV.Worst, w.Unused.Median, w.Unused.Worst, w.EvenPercent)
		if got != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, got, c.want)
		}
	}
	if w := ran(t, fleet.Scenario{Duration: time.Minute, Groups: []fleet.Group{{Strategy: spaced(time.Second)}}}).Windows; w != nil {
		t.Errorf("no window is over, and yet there is %+v", w)
	}
}

// Ten of fair intervals of 8 s: all but one send every 8 s from the beginning; one every 4 s for a minute, and then as the others.
func TestSettleByClient(t *testing.T) {
	quick := make([]time.Duration, 16, 17)
	for i := range quick {
		quick[i] = 4 * time.Second
	}
	quick[0] = 0
	groups := []fleet.Group{{Strategy: scripted(false, 8*time.Second), Processes: 9}, {Strategy: scripted(false, append(quick, 8*time.Second)...)}}
	run := func(change func(*fleet.Scenario)) *float64 {
		s := fleet.Scenario{Duration: 10 * time.Minute, Server: fleet.Quota{Full: true}, Groups: slices.Clone(groups)}
		if change != nil {
			change(&s)
		}
		return ran(t, s).SettleClients
	}
	for _, c := range []struct {
		name   string
		change func(*fleet.Scenario)
		want   float64
	}{
		{"from the beginning", nil, 56}, // 4 + 8 + 8 are within a quarter of 24
		{"of weight 2", func(s *fleet.Scenario) { s.Groups[1].Params.Weight = 2 }, math.NaN()},
		{"one whose sleep is twice as long has half of the weight", func(s *fleet.Scenario) {
			s.Groups[1] = fleet.Group{Strategy: scripted(false, 16*time.Second), Params: strategy.Params{Weight: 0.5}}
		}, 16}, // its first sending
		{"after 40 s some leave that nobody misses", func(s *fleet.Scenario) {
			s.Groups = append(s.Groups, fleet.Group{Strategy: scripted(false, time.Second), Processes: 3, Leave: 40 * time.Second})
		}, 16},
		{"one stops", func(s *fleet.Scenario) {
			s.Groups[1].Strategy = scripted(false, 8*time.Second, 8*time.Second, 8*time.Second, 8*time.Second, 20*time.Minute)
		}, math.NaN()},
		{"light demand", func(s *fleet.Scenario) { s.Groups[1].Demand = fleet.Demand{Kind: fleet.Light, PerSecond: 1. / 8} }, math.NaN()},
		{"a cost of 2 doubles what is fair", func(s *fleet.Scenario) {
			s.Server.Unit = limit.Tokens
			s.Groups = []fleet.Group{{Strategy: scripted(false, 16*time.Second), Processes: 10, Costs: fleet.Costs{Mean: 2}}}
		}, 16},
	} {
		got := run(c.change)
		if got == nil != math.IsNaN(c.want) || got != nil && math.Abs(*got-c.want) > 0.1 {
			if got == nil {
				t.Errorf("%s: never, want %v", c.name, c.want)
			} else {
				t.Errorf("%s: %v, want %v", c.name, *got, c.want)
			}
		}
	}
}
