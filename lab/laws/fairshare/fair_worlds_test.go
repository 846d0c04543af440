package fairshare_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// fairWorld is clients that share a quota, and what the law promises there.
type fairWorld struct {
	name    string
	length  time.Duration
	server  fleet.Quota
	clients []fleet.Group
	// The promise, in percent, 0 where there is none: by how much shares differ at most in the last two thirds of the time, and then nobody
	// is refused who was there for two minutes; and how much goes unused.
	cv, unused float64
}

const (
	ms     = time.Millisecond
	minute = time.Minute
	hour   = time.Hour
)

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

var (
	near    = latency.Uniform(20*ms, 40*ms)
	far     = latency.Uniform(700*ms, 1100*ms)
	inWhole = fleet.Headers{Reset: fleet.WholeSeconds, RetryAfter: fleet.WholeSeconds}
	told    = fleet.Headers{Reset: fleet.Exact}
)

// sharers are n processes of the law.
func sharers(n int, change func(g *fleet.Group)) fleet.Group {
	g := fleet.Group{Name: "fair", Strategy: must(strategy.Named("fair")), Processes: n, Link: near}
	if change != nil {
		change(&g)
	}
	return g
}

func knows(k fairshare.Kind) func(*fleet.Group) {
	return func(g *fleet.Group) { g.Params.Kind = k }
}

// greedy ask again at once.
func greedy(n int, pause time.Duration) fleet.Group {
	return fleet.Group{Name: "greedy", Strategy: must(strategy.Named("retry-only")), Processes: n, Link: near, Work: pause}
}

var fairWorlds = []fairWorld{
	{"a bucket: ten begin at nothing", hour / 2, fleet.Quota{}, []fleet.Group{sharers(10, nil)}, 4, 6},
	{"a bucket: a hundred begin at nothing", hour / 2, fleet.Quota{}, []fleet.Group{sharers(100, nil)}, 0, 0},
	{"a bucket: one of four threads begins at plenty", hour, fleet.Quota{Full: true, Capacity: 1500}, []fleet.Group{sharers(1, func(g *fleet.Group) { g.Threads = 4 })}, 0, 6},
	{"a bucket: two far away, of eight threads each", hour, fleet.Quota{Level: 400}, []fleet.Group{sharers(2, func(g *fleet.Group) { g.Threads, g.Link = 8, far })}, 0, 8},
	{"a small bucket, that says when it is full", hour / 2, fleet.Quota{Capacity: 40, Level: 20, Headers: told}, []fleet.Group{sharers(6, nil)}, 8, 8},
	{"a bucket of five: ten begin at nothing", 2 * hour, fleet.Quota{Capacity: 5}, []fleet.Group{sharers(10, nil)}, 1, 2},
	{"a bucket: weights and starts", hour / 2, fleet.Quota{Level: 30}, []fleet.Group{
		sharers(2, func(g *fleet.Group) { g.Params.Weight, g.Params.Start = 5, 4*time.Second }),
		sharers(3, func(g *fleet.Group) { g.Params.Start = 20 * time.Second }),
		sharers(1, func(g *fleet.Group) { g.Params.Weight = 0.5 })}, 0, 0},
	{"a bucket: half as much, and then twice", hour, fleet.Quota{Changes: []fleet.Change{{At: 20 * minute, Factor: 0.5}, {At: 40 * minute, Factor: 2}}}, []fleet.Group{sharers(10, nil)}, 0, 3},
	{"a bucket: who comes, goes, idles and asks now and then", hour, fleet.Quota{}, []fleet.Group{
		sharers(4, nil),
		sharers(5, func(g *fleet.Group) { g.Join, g.Spread = 15*minute, minute }),
		sharers(2, func(g *fleet.Group) { g.Leave = 30 * minute }),
		sharers(2, func(g *fleet.Group) { g.Demand = fleet.Demand{Kind: fleet.OnOff, On: 2 * minute, Off: 3 * minute} }),
		sharers(3, func(g *fleet.Group) { g.Demand = fleet.Demand{Kind: fleet.Light, PerSecond: 0.02} })}, 0, 0},
	{"a bucket of tokens: costs as they come", hour / 2, fleet.Quota{Unit: limit.Tokens, Limit: 90_000}, []fleet.Group{
		sharers(3, func(g *fleet.Group) { g.Costs = fleet.Costs{Mean: 40, Exponential: true} }),
		sharers(2, func(g *fleet.Group) { g.Costs, g.Threads = fleet.Costs{Mean: 40, Exponential: true}, 4 })}, 0, 0},
	{"a bucket: what remains is late, rounded and wrong", hour, fleet.Quota{Headers: fleet.Headers{Stale: 5 * time.Second, Replicas: 2, Noise: 8, Rounded: 5}}, []fleet.Group{sharers(5, nil)}, 0, 0},
	{"a bucket: one entitled to a fifth beside a greedy one", hour / 2, fleet.Quota{Headers: inWhole}, []fleet.Group{
		sharers(1, func(g *fleet.Group) { g.Params.Sharers = 5 }), greedy(1, 2*time.Second)}, 0, 0},
	{"nothing flows in", hour / 2, fleet.Quota{Kind: fleet.DecreaseOnly, Limit: 600}, []fleet.Group{sharers(3, knows(fairshare.TokenBucket))}, 0, 0},
	{"a window: ten find out", 2 * hour, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 1200, Headers: inWhole}, []fleet.Group{sharers(10, nil)}, 6, 3},
	{"a window of a minute: five find out", hour / 2, fleet.Quota{Kind: fleet.Calendar, Window: minute, Limit: 75, Headers: inWhole}, []fleet.Group{sharers(5, nil)}, 6, 5},
	{"a window that begins with a request: four join late", hour, fleet.Quota{Kind: fleet.Anchored, Window: 10 * minute, Limit: 500, Headers: told}, []fleet.Group{
		sharers(3, knows(fairshare.FixedWindow)), sharers(4, func(g *fleet.Group) { g.Join, g.Spread, g.Link = 25*minute, 5*minute, far })}, 0, 8},
	{"a window that is nearly used up: they go slower until it ends", 50 * minute, fleet.Quota{Kind: fleet.Calendar, Window: hour / 2, Limit: 1200, Level: 150, Into: 10 * minute, Headers: inWhole}, []fleet.Group{sharers(6, knows(fairshare.FixedWindow))}, 0, 6},
	{"a window of which no reset is told", 115 * minute, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 1200, Into: 5 * minute}, []fleet.Group{sharers(5, knows(fairshare.FixedWindow))}, 6, 6},
	{"a window of which neither kind nor reset is told", 2 * hour, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 1200}, []fleet.Group{sharers(5, nil)}, 0, 0},
	{"a window: one entitled to a quarter beside a greedy one", hour, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 1200, Headers: inWhole}, []fleet.Group{
		sharers(1, func(g *fleet.Group) { g.Params.Sharers = 4 }), greedy(1, 300*ms)}, 0, 0},
	{"a window of tokens: two threads, and costs as they come", hour, fleet.Quota{Kind: fleet.Calendar, Unit: limit.Tokens, Window: hour / 4, Limit: 60_000, Headers: told}, []fleet.Group{
		sharers(4, func(g *fleet.Group) { g.Costs, g.Threads = fleet.Costs{Mean: 50, Exponential: true}, 2 })}, 0, 0},
	{"a rolling window: six", hour, fleet.Quota{Kind: fleet.Rolling, Window: hour / 4, Limit: 900}, []fleet.Group{sharers(6, knows(fairshare.RollingWindow))}, 6, 0},
	{"a rolling window: one, then another, and a pause", hour, fleet.Quota{Kind: fleet.Rolling, Window: hour / 4, Limit: 900}, []fleet.Group{
		sharers(1, knows(fairshare.RollingWindow)),
		sharers(1, func(g *fleet.Group) {
			g.Params.Kind, g.Join, g.Demand = fairshare.RollingWindow, 20*minute, fleet.Demand{Kind: fleet.OnOff, On: 6 * minute, Off: 4 * minute}
		})}, 0, 0},
	{"a silent window that tells when to come again", hour, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 900, Silent: true, Headers: inWhole}, []fleet.Group{sharers(6, nil)}, 0, 0},
	{"a silent window of which the kind is known", 2 * hour, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 900, Silent: true, Into: 4 * minute}, []fleet.Group{sharers(6, knows(fairshare.FixedWindow))}, 0, 0},
	{"a silent window of few requests", 2 * hour, fleet.Quota{Kind: fleet.Calendar, Window: 5 * minute, Limit: 60, Silent: true}, []fleet.Group{sharers(5, knows(fairshare.FixedWindow))}, 0, 0},
	{"a silent window of which nothing is known", 2 * hour, fleet.Quota{Kind: fleet.Calendar, Window: hour / 4, Limit: 900, Silent: true}, []fleet.Group{sharers(4, nil)}, 0, 0},
	{"a silent bucket: eight begin at nothing", 2 * hour, fleet.Quota{Silent: true, Capacity: 200}, []fleet.Group{sharers(8, nil)}, 0, 0},
	{"a silent bucket: three of two threads begin at plenty, with a start", hour, fleet.Quota{Silent: true, Capacity: 100, Full: true}, []fleet.Group{
		sharers(3, func(g *fleet.Group) { g.Threads, g.Params.Start, g.Params.Kind = 2, time.Second, fairshare.TokenBucket })}, 0, 0},
}

func (w *fairWorld) run() fleet.Report {
	f := must(fleet.New(fleet.Scenario{Duration: w.length, Seed: 17, Server: w.server, Groups: w.clients, Sample: w.length / 30}))
	f.Advance(w.length)
	return f.Report()
}

// Processes of two versions share one quota, so the law is to do what it did, in every kind of world: what remained, what was served and
// what the first clients of each group planned, as it was. Who changes the law on purpose writes the file anew, and reads what became of
// each world.
func TestFairDoesWhatItDid(t *testing.T) {
	var b strings.Builder
	for _, w := range fairWorlds {
		r := w.run()
		fmt.Fprintf(&b, "\n%s\n", w.name)
		for i, at := range r.Series.At {
			fmt.Fprintf(&b, "%5.0f s: %5d left, %5d served, sleep", at, r.Series.Level[i], r.Series.Served[i])
			first := 0
			for _, g := range r.Groups {
				for c := range min(2, g.Processes) {
					fmt.Fprintf(&b, " %.7g", r.Series.Sleep[first+c*g.Threads][i])
				}
				first += g.Processes * g.Threads
			}
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  refused %v\n", limited(&r))
		if w.unused > 0 && r.UnusedPercent > w.unused {
			t.Errorf("%s: %.1f %% unused", w.name, r.UnusedPercent)
		}
		if w.cv > 0 && r.SharesSteady.CV > w.cv {
			t.Errorf("%s: the shares differ by %.1f %%", w.name, r.SharesSteady.CV)
		}
		if w.cv > 0 && r.LimitedLate > 0 {
			t.Errorf("%s: %d of them were refused after two minutes", w.name, r.LimitedLate)
		}
	}
	golden.CompareFloats(t, "worlds.golden", b.String())
}

func limited(r *fleet.Report) (by []int) {
	for _, g := range r.Groups {
		n := 0
		for _, k := range g.Limited {
			n += k
		}
		by = append(by, n)
	}
	return by
}

// In a window that is short or holds little nobody is refused, either: what is to be left at its end is less than all of it.
func TestFairInShortWindows(t *testing.T) {
	for _, c := range []struct {
		limit  int64
		window time.Duration
	}{{2, minute}, {10, 500 * ms}, {100, 500 * ms}, {20, time.Second}} {
		w := fairWorld{"short", 300 * c.window, fleet.Quota{Kind: fleet.Calendar, Window: c.window, Limit: c.limit, Headers: told}, []fleet.Group{sharers(3, knows(fairshare.FixedWindow))}, 0, 0}
		if r := w.run(); r.Limited > 0 || r.Served < 100 {
			t.Errorf("three share %d per %v: %d were served and %d refused", c.limit, c.window, r.Served, r.Limited)
		}
	}
}
