package fairshare_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Some begin at 4,500 that are there. Where nothing flows in they have used up all of it soon, and where a bucket refills nobody takes it
// for one that does not: that would cost a few minutes' sleep. It is so whether answers come in the order of their requests or not, but
// then many do not keep their turns, and some of them hear nothing.
func TestFairAtPlenty(t *testing.T) {
	for _, c := range []struct {
		processes, threads int
		later, disordered  float64 // how much later all is used up than requests take, where nothing flows in
		longest            float64 // the longest sleep where it does
	}{
		{1, 10, 5, 5, 10}, {2, 1, 5, 5, 4}, {2, 5, 5, 5, 10}, {3, 1, 5, 5, 4}, {5, 1, 5, 5, 6}, {5, 2, 260, 260, 10}, {10, 1, 5, 320, 10}, {12, 1, 5, 290, 12}, {10, 5, 240, 240, 45},
	} {
		for _, link := range []struct {
			name        string
			law         latency.Law
			trip, later float64
		}{{"constant", latency.Constant(80 * ms), 0.16, c.later}, {"in any order", latency.Uniform(20*ms, 40*ms), 0.06, c.disordered}} {
			sharing := func(requests int) []fleet.Group {
				return []fleet.Group{sharers(c.processes, func(g *fleet.Group) {
					g.Threads, g.Link, g.Params.Kind, g.Demand.Total = c.threads, link.law, fairshare.TokenBucket, requests
				})}
			}
			name := fmt.Sprintf("%d × %d, %s", c.processes, c.threads, link.name)
			for seed := range uint64(2) {
				f := must(fleet.New(fleet.Scenario{Duration: hour / 2, Seed: 1 + seed, Server: fleet.Quota{Kind: fleet.DecreaseOnly}, Groups: sharing(4500)}))
				f.Advance(hour / 2)
				least := 4500 * link.trip / float64(c.processes*c.threads)
				if r := f.Report(); r.Clear == nil || *r.Clear > least+link.later {
					t.Errorf("%s: all is used up after %v, and requests take %.0f s", name, deref(r.Clear), least)
				}
				f = must(fleet.New(fleet.Scenario{Duration: 10 * time.Minute, Seed: 1 + seed, Server: fleet.Quota{Full: true}, Groups: sharing(0)}))
				f.Advance(10 * time.Minute)
				if r := f.Report(); r.Sleep.Max > c.longest || r.Limited > 0 {
					t.Errorf("%s, it refills: the longest sleep is %.1f s, %d were refused", name, r.Sleep.Max, r.Limited)
				}
			}
		}
	}
}

// company is who shares a full bucket with busy processes of one thread each. What the light ones use together may be just what comes.
var company = []struct {
	name   string
	change func(*fleet.Group)
	never  bool // nobody who drains the bucket beside these takes it for one that does not refill, by any of few seeds
}{
	{"one that sends now and then", light(1, 1), true},
	{"one of five threads", func(g *fleet.Group) { g.Threads = 5 }, true},
	{"one of twenty threads", func(g *fleet.Group) { g.Threads = 20 }, true},
	{"three that are far away", func(g *fleet.Group) { g.Processes, g.Link = 3, latency.Uniform(280*ms, 320*ms) }, true},
	{"two of weight 3", func(g *fleet.Group) { g.Processes, g.Threads, g.Params.Weight = 2, 3, 3 }, true},
	{"five that come later", func(g *fleet.Group) { g.Processes, g.Join = 5, 3*time.Second }, false},
	{"ten that send every 10 s", light(10, 0.1), false},
	{"twenty that send every 20 s", light(20, 0.05), false},
	{"three that send every 2 s", light(3, 0.5), false},
	{"three that send every 5 s", light(3, 0.2), false},
	{"five that send every 50 s", light(5, 0.02), false},
	{"nobody", func(g *fleet.Group) { g.Join, g.Leave = time.Hour, 2*time.Hour }, false},
}

func light(n int, perSecond float64) func(*fleet.Group) {
	return func(g *fleet.Group) { g.Processes, g.Demand = n, fleet.Demand{Kind: fleet.Light, PerSecond: perSecond} }
}

// Who drains a full bucket in company of another kind does not take it for one that does not refill either: what the others take is not the
// same in all rounds. With PACELINE_LONG=1 it is said in how many starts somebody does.
func TestFairAtPlentyInCompany(t *testing.T) {
	sizes, seeds, long := []int{10}, uint64(4), need.Long()
	if long {
		sizes, seeds = []int{2, 5, 10, 12, 14, 20}, 12
	}
	starts, wrong, refused := 0, 0, 0
	for _, c := range company {
		for _, n := range sizes {
			for seed := range seeds {
				if !long && !c.never {
					continue
				}
				f := must(fleet.New(fleet.Scenario{Duration: 10 * time.Minute, Seed: 1 + seed, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
					sharers(n, func(g *fleet.Group) { g.Link, g.Params.Kind = latency.Uniform(20*ms, 40*ms), fairshare.TokenBucket }),
					sharers(1, func(g *fleet.Group) {
						g.Name, g.Link, g.Params.Kind = "company", latency.Uniform(20*ms, 40*ms), fairshare.TokenBucket
						c.change(g)
					}),
				}}))
				f.Advance(10 * time.Minute)
				r := f.Report()
				if starts++; r.Limited == 0 {
					continue
				}
				wrong, refused = wrong+1, refused+r.Limited
				t.Logf("%d and %s, seed %d: %d were refused, and the longest sleep is %.0f s", n, c.name, 1+seed, r.Limited, r.Sleep.Max)
			}
		}
	}
	t.Logf("%d were refused in %d of %d starts", refused, wrong, starts)
	if wrong > starts/200 {
		t.Errorf("%d starts of %d are wrong", wrong, starts)
	}
}

// Nobody listens where it would take long, or where what is under way takes longer than a share to come. All that there is above a reserve
// is used at once there.
func TestFairListensBriefly(t *testing.T) {
	for _, c := range []struct {
		name    string
		window  time.Duration
		trip    time.Duration
		threads int
	}{{"ten a minute", 4 * time.Hour, 60 * ms, 1}, {"ten a second, and answers take half a second", 4 * time.Minute, 500 * ms, 20}} {
		f := must(fleet.New(fleet.Scenario{Duration: 10 * time.Minute, Server: fleet.Quota{Full: true, Limit: 2400, Window: c.window}, Groups: []fleet.Group{
			sharers(1, func(g *fleet.Group) { g.Threads, g.Link, g.Demand.Total = c.threads, latency.Constant(c.trip/2), 1000 })}}))
		f.Advance(10 * time.Minute)
		least := 1000 * c.trip.Seconds() / float64(c.threads)
		if r := f.Report(); r.Clear == nil || *r.Clear > least+2 {
			t.Errorf("%s: 1,000 of 2,400 took %v s, and requests take %.0f s", c.name, deref(r.Clear), least)
		}
	}
}

func deref(p *float64) any {
	if p == nil {
		return "never"
	}
	return *p
}
