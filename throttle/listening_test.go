package throttle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
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
					g.Threads, g.Link, g.Params.Kind, g.Demand.Total = c.threads, link.law, throttle.TokenBucket, requests
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

// Who drains a full bucket in company of another kind does not take it for one that does not refill either: what the others take is not the
// same in all rounds.
func TestFairAtPlentyInCompany(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*fleet.Group)
	}{
		{"one that sends now and then", func(g *fleet.Group) { g.Demand.Kind, g.Demand.PerSecond = fleet.Light, 1 }},
		{"one of five threads", func(g *fleet.Group) { g.Threads = 5 }},
		{"one of twenty threads", func(g *fleet.Group) { g.Threads = 20 }},
		{"one that is far away", func(g *fleet.Group) { g.Link = latency.Uniform(280*ms, 320*ms) }},
		{"two of weight 3", func(g *fleet.Group) { g.Processes, g.Threads, g.Params.Weight = 2, 3, 3 }},
	} {
		for seed := range uint64(4) {
			f := must(fleet.New(fleet.Scenario{Duration: 10 * time.Minute, Seed: 1 + seed, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
				sharers(10, func(g *fleet.Group) { g.Params.Kind = throttle.TokenBucket }),
				sharers(1, func(g *fleet.Group) { g.Name, g.Params.Kind = "company", throttle.TokenBucket; c.change(g) }),
			}}))
			f.Advance(10 * time.Minute)
			if r := f.Report(); r.Limited > 0 {
				t.Errorf("ten and %s, seed %d: %d were refused, and the longest sleep is %.0f s", c.name, 1+seed, r.Limited, r.Sleep.Max)
			}
		}
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
