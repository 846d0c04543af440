package fleet

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Standard returns the scenarios by which strategies are compared; all clients follow the same one.
// Unless the list says otherwise, the quota is that of the published simulations: a bucket of 4,500
// per hour that is empty when the first request arrives, and a request takes 60 ms on average.
// Clients are processes of one thread each, except in clear and the scenarios named 2x5: two
// processes of five threads, as published.
//
//	cold     everybody starts at once at an empty bucket: 30 minutes of 1, 2, 10, 25, 100, 1000 clients
//	full     10 clients, three hours from a full bucket
//	day      25 clients, a day
//	jump     after an hour clients come or go, and another hour
//	quota    after an hour the quota is halved or doubled, and nobody is told
//	hetero   half the clients start with a sleep of 4 s, half with 20 s
//	mixed    saturating, on-off and light clients
//	spread   10 clients that start within 1, 3, 10, 60 s or an hour
//	fixed    10 and 50 clients, four hours of 5,000 per hour that are there at once, and a reset told in whole seconds
//	rounded  10 of those who are told in tens what remains; noisy: with an error of sd 10; stale: as of up to 5 s before
//	silent   the same of which nothing is told: 10 clients are only refused
//	minute   10 clients, half an hour of 75 per minute
//	daily    10 clients, three days of 100,000 per day from midnight on, of which the first begins at 14 h with half of it left
//	rolling  10 clients, four hours of 4,500 in any hour; of what kind these two are is told
//	latency  as cold with 10, at round trips of 0 (and 1 ms of work), 50 ms, 500 ms, 2 s
//	clear    10 clients do 4,500 requests that are there, starting with sleeps of 1 s and 10 s, and of 1 s where nothing comes back.
//	         A request takes 167 ms, which is what the published times to clear imply: no strategy is faster than 75 s
func Standard(law strategy.Strategy) []Scenario {
	const hour = time.Hour
	link := latency.Uniform(20*time.Millisecond, 40*time.Millisecond)
	group := func(processes, threads int) Group {
		return Group{Name: "clients", Strategy: law, Processes: processes, Threads: threads, Link: link}
	}
	named := func(g Group, name string) Group {
		g.Name = name
		return g
	}
	starting := func(g Group, sleep time.Duration) Group {
		g.Params.Start = sleep
		return g
	}
	over := func(g Group, law latency.Law) Group {
		g.Link = law
		return g
	}
	run := func(name string, d time.Duration, q Quota, groups ...Group) Scenario {
		return Scenario{Name: name, Duration: d, Server: q, Groups: groups}
	}
	var empty Quota
	var all []Scenario
	for _, n := range []int{1, 2, 10, 25, 100, 1000} {
		all = append(all, run(fmt.Sprintf("cold-%d", n), hour/2, empty, group(n, 1)))
	}
	all = append(all,
		run("cold-2x5", hour/2, empty, group(2, 5)),
		run("full-10", 3*hour, Quota{Full: true}, group(10, 1)),
		run("full-2x5", 3*hour, Quota{Full: true}, group(2, 5)),
		run("day-25", 24*hour, empty, group(25, 1)),
	)
	for _, jump := range []struct{ from, to int }{{10, 20}, {20, 5}, {10, 100}} {
		stay, other := named(group(min(jump.from, jump.to), 1), "stay"),
			group(max(jump.from, jump.to)-min(jump.from, jump.to), 1)
		if jump.to > jump.from {
			other.Name, other.Join = "join", hour
		} else {
			other.Name, other.Leave = "leave", hour
		}
		all = append(all, run(fmt.Sprintf("jump-%d-%d", jump.from, jump.to), 2*hour, empty, stay, other))
	}
	for _, change := range []struct {
		name   string
		factor float64
	}{{"quota-half", 0.5}, {"quota-double", 2}} {
		all = append(all, run(change.name, 2*hour, Quota{Changes: []Change{{At: hour, Factor: change.factor}}}, group(10, 1)))
	}
	all = append(all,
		run("hetero-4-20", hour, empty, named(starting(group(5, 1), 4*time.Second), "4 s"),
			named(starting(group(5, 1), 20*time.Second), "20 s")),
		mixed(named(group(5, 1), "always"), named(group(5, 1), "on-off"), named(group(10, 1), "light")),
	)
	for _, l := range []struct {
		name string
		law  latency.Law
	}{
		{"latency-0", latency.Law{}},
		{"latency-50ms", latency.Uniform(15*time.Millisecond, 35*time.Millisecond)},
		{"latency-500ms", latency.Uniform(200*time.Millisecond, 300*time.Millisecond)},
		{"latency-2s", latency.Uniform(800*time.Millisecond, 1200*time.Millisecond)},
	} {
		all = append(all, run(l.name, hour/2, empty, over(group(10, 1), l.law)))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"1s", time.Second}, {"3s", 3 * time.Second}, {"10s", 10 * time.Second}, {"60s", time.Minute}, {"1h", hour}} {
		late := group(10, 1)
		late.Spread = d.d
		all = append(all, run("spread-"+d.name, max(hour/2, 2*d.d), empty, late))
	}
	all = append(all, windowed(run, func(n int) Group { return group(n, 1) })...)
	todo := over(group(2, 5), latency.Constant(83500*time.Microsecond))
	todo.Demand.Total = 4500
	return append(all,
		run("clear-1s", 8*hour, Quota{Full: true}, starting(todo, time.Second)),
		run("clear-10s", 8*hour, Quota{Full: true}, starting(todo, 10*time.Second)),
		run("clear-decrease-only", 8*hour, Quota{Kind: DecreaseOnly}, starting(todo, time.Second)),
	)
}

// knowing returns the group with the kind of the quota made known to it, where no reset tells that.
func knowing(kind fairshare.Kind, g Group) Group {
	g.Params.Kind = kind
	return g
}

// windowed returns scenarios with quotas that are not buckets.
func windowed(run func(string, time.Duration, Quota, ...Group) Scenario, group func(int) Group) []Scenario {
	const hour = time.Hour
	fixed := Quota{Kind: Calendar, Limit: 5000, Headers: Headers{Reset: WholeSeconds}}
	silent := Quota{Kind: Calendar, Limit: 5000, Silent: true}
	minute := Quota{Kind: Calendar, Limit: 75, Window: time.Minute, Headers: fixed.Headers}
	daily := Quota{Kind: Calendar, Limit: 100_000, Window: 24 * hour, Into: 14 * hour, Level: 50_000,
		Headers: fixed.Headers}
	return []Scenario{
		run("fixed-10", 4*hour, fixed, group(10)),
		run("fixed-50", 4*hour, fixed, group(50)),
		run("rounded-10", 4*hour, telling(fixed, Headers{Rounded: 10}), group(10)),
		run("noisy-10", 4*hour, telling(fixed, Headers{Noise: 10}), group(10)),
		run("stale-10", 4*hour, telling(fixed, Headers{Stale: 5 * time.Second}), group(10)),
		run("silent-10", 4*hour, silent, knowing(fairshare.FixedWindow, group(10))),
		run("minute-10", hour/2, minute, group(10)),
		run("daily-10", 3*24*hour, daily, group(10)),
		run("rolling-10", 4*hour, Quota{Kind: Rolling}, knowing(fairshare.RollingWindow, group(10))),
	}
}

// telling returns a quota of which answers tell less well what remains, and in whole seconds when it resets.
func telling(q Quota, h Headers) Quota {
	q.Headers = h
	q.Headers.Reset = WholeSeconds
	return q
}

func mixed(always, onOff, light Group) Scenario {
	onOff.Demand = Demand{Kind: OnOff, On: 5 * time.Minute, Off: 10 * time.Minute}
	light.Demand = Demand{Kind: Light, PerSecond: 30.0 / 3600}
	return Scenario{Name: "mixed", Duration: 2 * time.Hour, Groups: []Group{always, onOff, light}}
}
