package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const ms = time.Millisecond

func begun(t testing.TB, s fleet.Scenario) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ran(t testing.TB, s fleet.Scenario) fleet.Report {
	t.Helper()
	f := begun(t, s)
	if !f.Advance(s.Duration) {
		t.Errorf("not done after all of %v", s.Duration)
	}
	return f.Report()
}

func text(t testing.TB, r fleet.Report) string {
	t.Helper()
	var b strings.Builder
	if err := json.NewEncoder(&b).Encode(r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// traced is a strategy whose threads tell what they are told, and send when they are told to.
func traced(log *[]string, givesUp bool, sleeps ...time.Duration) strategy.Strategy {
	s := scripted(givesUp, sleeps...)
	inner := s.New
	s.New = func(p strategy.Params) (strategy.Process, error) {
		process, err := inner(p)
		return tracedProcess{process, log}, err
	}
	return s
}

type tracedProcess struct {
	strategy.Process
	log *[]string
}

func (p tracedProcess) Thread(rng *rand.Rand) strategy.Thread {
	return tracedThread{p.Process.Thread(rng), p.log}
}

type tracedThread struct {
	strategy.Thread
	log *[]string
}

func (t tracedThread) Answer(now mono.Time, a strategy.Answer) {
	said := "served"
	if a.Limited {
		said = "limited"
	}
	if a.Known {
		said += fmt.Sprintf(", %v left", a.Remaining)
	}
	if a.Reset > 0 {
		said += fmt.Sprintf(", more in %v", a.Reset)
	}
	if a.RetryAfter > 0 {
		said += fmt.Sprintf(", again in %v", a.RetryAfter)
	}
	*t.log = append(*t.log, fmt.Sprintf("%v: sent at %v, %s", now, a.Sent, said))
	t.Thread.Answer(now, a)
}

// One client, one token per second, 100 ms there and back: what it is told, and when.
func TestFleetTimeline(t *testing.T) {
	second := fleet.Quota{Limit: 3600, Capacity: 3, Level: 2}
	with := func(change func(*fleet.Quota)) fleet.Quota {
		q := second
		change(&q)
		return q
	}
	perSecond := func(kind fleet.QuotaKind, q fleet.Quota) fleet.Quota {
		q.Kind, q.Window = kind, time.Second
		return q
	}
	for _, c := range []struct {
		name    string
		quota   fleet.Quota
		sleeps  []time.Duration
		givesUp bool
		want    []string
	}{
		{"a bucket of 3 with 2 in it", second, []time.Duration{0, 0, 0, 0, 5 * time.Second}, false, []string{
			"200ms: sent at 0s, served, 1 left",
			"400ms: sent at 200ms, served, 0 left",
			"600ms: sent at 400ms, limited, 0 left", // at 500 ms: its clock began with the first arrival, at 100 ms
			"800ms: sent at 600ms, limited, 0 left",
			"6s: sent at 5.8s, served, 2 left", // full, less this one
		}},
		{"it starts empty", with(func(q *fleet.Quota) { q.Level = 0 }), []time.Duration{0, 700 * ms, 100 * ms, time.Minute}, false, []string{
			"200ms: sent at 0s, limited, 0 left",
			"1.1s: sent at 900ms, limited, 0 left", // arrives 900 ms after the first
			"1.4s: sent at 1.2s, served, 0 left",
		}},
		{"it starts full", with(func(q *fleet.Quota) { q.Full = true }), []time.Duration{0, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 2 left",
		}},
		{"GCRA", with(func(q *fleet.Quota) { q.Kind = fleet.GCRA }), []time.Duration{0, 0, 0, 700 * ms, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 1 left",
			"400ms: sent at 200ms, served, 0 left",
			"600ms: sent at 400ms, limited, 0 left",
			"1.5s: sent at 1.3s, served, 0 left",
		}},
		{"nothing comes back", with(func(q *fleet.Quota) { q.Kind = fleet.DecreaseOnly }), []time.Duration{0, time.Second}, false, []string{
			"200ms: sent at 0s, served, 1 left",
			"1.4s: sent at 1.2s, served, 0 left",
			"2.6s: sent at 2.4s, limited, 0 left",
			"3.8s: sent at 3.6s, limited, 0 left",
		}},
		{"a log of the last second", perSecond(fleet.Rolling, fleet.Quota{Limit: 2}), []time.Duration{0, 300 * ms, 100 * ms, 199 * ms, 1 * ms, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 1 left",
			"700ms: sent at 500ms, served, 0 left", // arrivals at 100 and 600 ms
			"1s: sent at 800ms, limited, 0 left",
			"1.399s: sent at 1.199s, served, 0 left", // at 1299
			"1.6s: sent at 1.4s, limited, 0 left",
		}},
		{"a count per second from the first arrival on", perSecond(fleet.Calendar, fleet.Quota{Limit: 2, Level: 1}), []time.Duration{0, 100 * ms, 450 * ms, 0, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 0 left",
			"500ms: sent at 300ms, limited, 0 left", // at 400 ms
			"1.15s: sent at 950ms, limited, 0 left", // at 1.05 s
			"1.35s: sent at 1.15s, served, 1 left",  // at 1.25 s: the next interval began at 1.1 s
		}},
		{"two counts", perSecond(fleet.Weighted, fleet.Quota{Limit: 2}), []time.Duration{0, 0, 700 * ms, 400 * ms, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 1 left",
			"400ms: sent at 200ms, served, 0 left", // arrivals at 100 and 300 ms
			"1.3s: sent at 1.1s, limited, 0 left",  // at 1.2 s: 90 % of two
			"1.9s: sent at 1.7s, served, 0 left",   // at 1.8 s: 30 % of two, and this one
		}},
		{"a silent server", with(func(q *fleet.Quota) { q.Silent = true }), []time.Duration{0, time.Minute}, false, []string{
			"200ms: sent at 0s, served",
		}},
		{"half a second of work", with(func(q *fleet.Quota) { q.Service = latency.Constant(500 * ms) }), []time.Duration{0, time.Minute}, false, []string{
			"700ms: sent at 0s, served, 1 left",
		}},
		{"a level outlives a change", with(func(q *fleet.Quota) {
			q.Capacity, q.Changes = 100, []fleet.Change{{At: 150 * ms, Factor: 3}}
		}), []time.Duration{0, 0, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 1 left",
			"400ms: sent at 200ms, served, 0 left", // three per second since 150 ms
		}},
		{"the quota doubles in secret, then is a third", with(func(q *fleet.Quota) {
			q.Changes = []fleet.Change{{At: 50 * ms, Factor: 2}, {At: 3 * time.Second, Factor: 1. / 3}}
		}), []time.Duration{0, 0, 300 * ms, 3 * time.Second, 0, time.Minute}, false, []string{
			"200ms: sent at 0s, served, 1 left", // unlike a level of 2, a capacity of 6 needs time
			"400ms: sent at 200ms, served, 0 left",
			"900ms: sent at 700ms, served, 0 left", // two per second since 100 ms
			"4.1s: sent at 3.9s, served, 0 left",   // at 3 s the capacity became 1
			"4.3s: sent at 4.1s, limited, 0 left",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log []string
			f := begun(t, fleet.Scenario{Duration: 7 * time.Second, Server: c.quota, Groups: []fleet.Group{
				{Strategy: traced(&log, c.givesUp, c.sleeps...), Link: latency.Constant(100 * ms)}}})
			f.Advance(time.Hour)
			if n := min(len(log), len(c.want)); !slices.Equal(log[:n], c.want) || len(log) > n && c.sleeps[len(c.sleeps)-1] == time.Minute {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(log, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// A rolling quota that becomes smaller still counts what it let pass.
func TestFleetChangeOfCount(t *testing.T) {
	for _, c := range []struct {
		kind fleet.QuotaKind
		at   time.Duration // of the first served request after the change
	}{{fleet.Rolling, 10*time.Second + 900*ms}, {fleet.Calendar, 10 * time.Second}} {
		r := ran(t, fleet.Scenario{Duration: 12 * time.Second, Sample: 50 * ms,
			Server: fleet.Quota{Kind: c.kind, Limit: 10, Window: 10 * time.Second, Changes: []fleet.Change{{At: 2 * time.Second, Factor: 0.2}}},
			Groups: []fleet.Group{{Strategy: spaced(100 * ms)}}})
		// Ten pass from 0 to 0.9 s. The quota of 2 has room when but one of the ten is within the last 10 s, or in a new interval.
		i := slices.IndexFunc(r.Series.Served, func(n int) bool { return n > 10 })
		if i < 0 || math.Abs(r.Series.At[i]-c.at.Seconds()) > 0.2 {
			t.Errorf("%v: served %d of %d; the eleventh by sample %d, want it at %v", c.kind, r.Served, r.Requests, i, c.at)
		}
	}
}

func scenario(groups ...fleet.Group) fleet.Scenario {
	return fleet.Scenario{Name: "test", Duration: 30 * time.Minute, Seed: 7, Groups: groups}
}

func TestFleetReplays(t *testing.T) {
	t.Run("a bucket", func(t *testing.T) { replays(t, fleet.Quota{}) })
	t.Run("windows whose headers are wrong", func(t *testing.T) {
		replays(t, fleet.Quota{Kind: fleet.Calendar, Limit: 75, Window: time.Minute, Into: 20 * time.Second, Headers: fleet.Headers{
			Reset: fleet.WholeSeconds, RetryAfter: fleet.Exact, Skew: time.Second, Stale: 5 * time.Second, Replicas: 3, Noise: 3, Rounded: 5, Factor: 2}})
	})
}

func replays(t *testing.T, q fleet.Quota) {
	s := scenario(
		fleet.Group{Name: "threads", Strategy: proportional, Processes: 2, Threads: 5, Link: around30ms},
		fleet.Group{Name: "limiters", Strategy: spaced(9 * time.Second), Processes: 3, Threads: 2, Link: around30ms, Join: 3 * time.Minute, Leave: 20 * time.Minute},
		fleet.Group{Name: "light", Strategy: proportional, Threads: 3, Link: around30ms, Demand: fleet.Demand{Kind: fleet.Light, PerSecond: 0.01}},
		fleet.Group{Name: "dear", Strategy: proportional, Processes: 2, Threads: 2, Link: around30ms, Spread: time.Minute, Stagger: time.Second, Costs: fleet.Costs{Mean: 3, Exponential: true}},
		fleet.Group{Name: "on and off", Strategy: proportional, Spread: time.Second, Demand: fleet.Demand{Kind: fleet.OnOff, On: time.Minute, Off: 2 * time.Minute}},
	)
	s.Sample, s.Server = 10*time.Second, q
	s.Server.Service = latency.Exponential(5*ms, 5*ms)
	s.Server.Changes = []fleet.Change{{At: 5 * time.Minute, Factor: 0.5}}
	whole := text(t, ran(t, s))
	if again := text(t, ran(t, s)); again != whole {
		t.Error("the same scenario has another report")
	}
	f := begun(t, s)
	for step := range 100_000 {
		if f.Advance(f.Now() + time.Duration(step%977)*ms) {
			break
		}
		if step%1000 == 0 {
			text(t, f.Report()) // to look changes nothing
		}
	}
	if steps := text(t, f.Report()); steps != whole {
		t.Errorf("step by step it has another report: got\n%s\nwant\n%s", steps, whole)
	}
	links := scenario(fleet.Group{Strategy: spaced(time.Second), Processes: 2, Link: around30ms}) // nothing else is random
	here := ran(t, links)
	if links.Seed++; fmt.Sprint(ran(t, links).Groups) == fmt.Sprint(here.Groups) {
		t.Error("another seed has the same latencies")
	}
	s.Seed++
	if other := text(t, ran(t, s)); other == strings.Replace(whole, `"seed": 7`, `"seed": 8`, 1) {
		t.Error("another seed has the same report")
	}
}

// What is in a report, by hand.
func TestFleetReport(t *testing.T) {
	bucket := fleet.Quota{Limit: 3600, Capacity: 10}
	link := latency.Constant(50 * ms)
	clear := 900*ms + 100*ms
	for _, c := range []struct {
		name string
		s    fleet.Scenario
		want map[string]float64
	}{
		// Arrivals at 0.05 (limited: empty), 1.15, 2.25, ... 9.95 s; the last but one answer at 9 s, the last at 10.0.
		{"one client, a request every 1.1 s", fleet.Scenario{Duration: 10 * time.Second, Server: bucket, Groups: []fleet.Group{
			{Strategy: scripted(false, 0, time.Second), Link: link}}}, map[string]float64{
			"requests": 10, "limited": 1, "retry": 10, "pooled": 10, "offered": 9.95, "unused": 100 - 900/9.95,
			"max sleep": 1, "median": 1, "optimum": 1, "peak": 1, "jain": 1, "sd": 0, "level": 0}},
		// One asks every 2 s and the other every 0.2 s: 5 and 50, the last of both answered at the very end.
		{"two that are not alike", fleet.Scenario{Duration: 10 * time.Second, Server: fleet.Quota{Limit: 3600, Capacity: 100, Level: 100}, Groups: []fleet.Group{
			{Name: "a", Strategy: scripted(false, 1900*ms), Link: link}, {Name: "b", Strategy: scripted(false, 100*ms), Link: link}}}, map[string]float64{
			"requests": 55, "limited": 0, "offered": 109.85, "sd": 45 / math.Sqrt2, "jain": 55. * 55 / (2 * (5*5 + 50*50))}},
		// The first finds the only request that there is, then sleeps; the second is refused five times.
		{"averaged over clients, and pooled", fleet.Scenario{Duration: 10 * time.Second, Server: fleet.Quota{Kind: fleet.DecreaseOnly, Limit: 1}, Groups: []fleet.Group{
			{Name: "a", Strategy: scripted(false, 0, time.Hour), Link: link}, {Name: "b", Strategy: scripted(false, 1900*ms), Link: link}}}, map[string]float64{
			"requests": 6, "limited": 5, "retry": 50, "pooled": 500. / 6}},
		{"a sleep beyond the end counts as planned", fleet.Scenario{Duration: 10 * time.Second, Groups: []fleet.Group{
			{Strategy: scripted(false, 0, 1000*time.Second), Link: link}}}, map[string]float64{"max sleep": 1000, "requests": 1, "limited": 1}},
		{"so does the wait of a limiter", fleet.Scenario{Duration: 10 * time.Second, Groups: []fleet.Group{
			{Strategy: spaced(1000 * time.Second), Link: link}}}, map[string]float64{"max sleep": 999.9, "requests": 1, "limited": 1}},
		{"what was offered before and after changes", fleet.Scenario{Duration: 10 * time.Second, Server: fleet.Quota{Limit: 3600, Level: 7,
			Changes: []fleet.Change{{At: 5 * time.Second, Factor: 2}, {At: 8 * time.Second, Factor: 0.5}}}, Groups: []fleet.Group{
			{Strategy: scripted(false, 400*ms), Link: link}}}, map[string]float64{"offered": 7 + 4.55 + 3*2 + 2*0.5}},
		{"a path without latency", fleet.Scenario{Duration: time.Second, Groups: []fleet.Group{{Strategy: scripted(false, 0)}}}, map[string]float64{
			"requests": 1001}}, // a try every millisecond
		{"late refusals", fleet.Scenario{Duration: 3 * time.Minute, Server: fleet.Quota{Kind: fleet.DecreaseOnly, Limit: 1}, Groups: []fleet.Group{
			{Strategy: spaced(time.Second), Link: link}}}, map[string]float64{"requests": 180, "limited": 179, "late": 59, "optimum": 0, "unused": 0}},
		{"the optimum of 20, then 5", fleet.Scenario{Duration: time.Minute, Groups: []fleet.Group{
			{Name: "stay", Strategy: spaced(time.Minute), Processes: 5}, {Name: "go", Strategy: spaced(time.Minute), Processes: 3, Threads: 5, Leave: 20 * time.Second}}}, map[string]float64{
			"optimum": 4, "most optimum": 16}},
		{"concurrent at a server that works for a second", fleet.Scenario{Duration: 10 * time.Second,
			Server: fleet.Quota{Service: latency.Constant(time.Second)}, Groups: []fleet.Group{
				{Name: "a", Strategy: spaced(time.Minute), Processes: 3}, {Name: "b", Strategy: spaced(time.Minute), Processes: 4, Join: 900 * ms},
				{Name: "c", Strategy: spaced(time.Minute), Processes: 5, Join: 1100 * ms}}}, map[string]float64{"peak": 9}},
		{"concurrent at one that works for no time", fleet.Scenario{Duration: 10 * time.Second, Groups: []fleet.Group{
			{Name: "a", Strategy: spaced(time.Minute), Processes: 3}, {Name: "b", Strategy: spaced(time.Minute), Processes: 2, Join: time.Second}}}, map[string]float64{"peak": 3}},
		{"ten requests to do, by two", fleet.Scenario{Duration: time.Hour, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
			{Strategy: scripted(false, 900*ms), Threads: 2, Link: link, Demand: fleet.Demand{Total: 10}}}}, map[string]float64{
			"requests": 10, "clear": 5*clear.Seconds() - 0.9, "seconds": 5}},
		{"who gives up leaves it to the others", fleet.Scenario{Duration: time.Hour, Server: fleet.Quota{Limit: 3600}, Groups: []fleet.Group{
			{Strategy: scripted(true, 400*ms), Link: link, Demand: fleet.Demand{Total: 3}}}}, map[string]float64{
			"requests": 7, "given up": 4, "clear": 3.1}}, // arrivals every half second from 0.45 s on; tokens from 1.45 s on
		{"a group that has no end", fleet.Scenario{Duration: time.Minute, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
			{Name: "a", Strategy: spaced(time.Second), Demand: fleet.Demand{Total: 3}}, {Name: "b", Strategy: spaced(time.Second)}}}, map[string]float64{
			"requests": 3 + 61, "seconds": 60, "clear": math.NaN()}},
		{"two on, three off", fleet.Scenario{Duration: 10 * time.Second, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
			{Strategy: scripted(false, 400*ms), Link: link, Demand: fleet.Demand{Kind: fleet.OnOff, On: 2 * time.Second, Off: 3 * time.Second}}}}, map[string]float64{
			"requests": 8}},
		{"a light load", fleet.Scenario{Duration: 10 * time.Hour, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
			{Strategy: scripted(false, 0), Link: link, Threads: 4, Demand: fleet.Demand{Kind: fleet.Light, PerSecond: 0.1}}}}, map[string]float64{
			"requests": 14_400, "optimum": 0, "clear": math.NaN(), "settle": math.NaN()}},
		{"joins and leaves", fleet.Scenario{Duration: 10 * time.Second, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{
			{Strategy: spaced(time.Second), Join: 3 * time.Second, Leave: 6500 * ms}}}, map[string]float64{"requests": 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ran(t, c.s)
			optional := func(p *float64) float64 {
				if p == nil {
					return math.NaN()
				}
				return *p
			}
			got := map[string]float64{"requests": float64(r.Requests), "limited": float64(r.Limited), "retry": r.RetryPercent,
				"pooled": r.RetryPercentPooled, "late": float64(r.LimitedLate), "max sleep": r.Sleep.Max, "median": r.Sleep.Median,
				"optimum": r.OptimumSleep, "most optimum": r.OptimumSleepMost, "sd": r.RequestSD, "jain": r.Jain, "offered": r.Offered,
				"unused": r.UnusedPercent, "level": r.Level.Mean, "peak": float64(r.PeakConcurrent), "clear": optional(r.Clear),
				"settle": optional(r.Settle), "given up": float64(r.GivenUp), "seconds": r.Seconds}
			for what, want := range c.want {
				near := 0.01 * math.Abs(want)
				if what == "requests" && want > 1000 { // random
					near = 3 * math.Sqrt(want)
				}
				have, ok := got[what]
				if !ok || math.IsNaN(have) != math.IsNaN(want) || math.Abs(have-want) > near {
					t.Errorf("%s: %v, want %v", what, have, want)
				}
			}
			if t.Failed() {
				t.Log(text(t, r))
			}
		})
	}
}

// Clients that take this long after a change to send as fast as they should: the report says when they did.
func TestFleetSettles(t *testing.T) {
	for _, c := range []struct {
		last time.Duration // after the change, of those that have not noticed
		slow time.Duration // sleep of the five that stay while the others are there, and until they notice
		fast time.Duration
		want float64
	}{
		{16 * time.Second, 15900 * ms, 3900 * ms, 16},
		{1000 * time.Second, 15900 * ms, 3900 * ms, 1000},
		{16 * time.Second, 15900 * ms, 5900 * ms, math.NaN()},   // too slow
		{16 * time.Second, 15900 * ms, 2900 * ms, math.NaN()},   // too fast
		{2300 * time.Second, 15900 * ms, 3900 * ms, math.NaN()}, // too late to be believed
	} {
		sleeps := []time.Duration{}
		for at := time.Duration(0); at < 20*time.Minute+c.last; at += c.slow + 100*ms {
			sleeps = append(sleeps, c.slow)
		}
		stay := fleet.Group{Name: "stay", Strategy: scripted(false, append(sleeps, c.fast)...), Processes: 5, Link: latency.Constant(50 * ms), Spread: 4 * time.Second}
		leave := stay
		leave.Name, leave.Processes, leave.Leave = "leave", 15, 20*time.Minute
		r := ran(t, fleet.Scenario{Duration: time.Hour, Server: fleet.Quota{Level: 20}, Groups: []fleet.Group{stay, leave}})
		got := math.NaN()
		if r.Settle != nil {
			got = *r.Settle
		}
		if math.IsNaN(got) != math.IsNaN(c.want) || math.Abs(got-c.want) > 8 {
			t.Errorf("sleeping %v, %v after the change %v: settled after %v s, want %v", c.slow, c.last, c.fast, got, c.want)
		}
	}
}

// The driver of a limiter does as a Gate does.
func TestFleetDrivesLimiters(t *testing.T) {
	var log []string
	var now mono.Time
	law := strategy.Strategy{Name: "test", NewLimiter: func(strategy.Params, *rand.Rand) (limit.Limiter, error) {
		return &moody{log: &log, now: &now}, nil
	}}
	f := begun(t, fleet.Scenario{Duration: 4 * time.Second, Server: fleet.Quota{Limit: 3600, Capacity: 10, Level: 1}, Groups: []fleet.Group{
		{Strategy: law, Threads: 3, Link: latency.Constant(100 * ms)}}})
	f.Advance(4 * time.Second)
	want := []string{
		"0s: admitted", // then AfterSettle: the other two stand in line
		"200ms: accepted, 0 left, took 200ms",
		"700ms: admitted", // Settle said 500 ms
		"900ms: limited, 0 left, took 200ms",
		"1.4s: admitted",
		"1.6s: accepted, 0 left, took 200ms", // a token at 1.1 s
		"2.1s: admitted",
		"2.3s: accepted, 0 left, took 200ms",
		"2.8s: admitted",
		"3s: limited, 0 left, took 200ms",
		"3.5s: admitted",
		"3.7s: accepted, 0 left, took 200ms",
	}
	if !slices.Equal(log, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(log, "\n\t"), strings.Join(want, "\n\t"))
	}
	// First come first served: of six tries the three threads have two each, the refused one at the end of the line.
	if r := f.Report(); !slices.Equal(r.Groups[0].Requests, []int{2, 2, 2}) || !slices.Equal(r.Groups[0].Limited, []int{0, 2, 0}) {
		t.Errorf("requests %v, limited %v", r.Groups[0].Requests, r.Groups[0].Limited)
	}
}

// moody has one in flight, and waits half a second after each answer. It changes its mind: until the answer is there it
// does not know.
type moody struct {
	log  *[]string
	now  *mono.Time
	open bool
	free mono.Time
}

func (m *moody) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if m.open {
		return limit.AfterSettle
	}
	return max(now, m.free)
}

func (m *moody) Admit(s *limit.Sent) {
	m.open = true
	*m.log = append(*m.log, fmt.Sprintf("%v: admitted", s.At))
}

func (m *moody) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
	m.open, m.free = false, now.Add(500*ms)
	left := "?"
	if o.Known&(1<<limit.Requests) != 0 {
		left = fmt.Sprint(o.Remaining[limit.Requests])
	}
	*m.log = append(*m.log, fmt.Sprintf("%v: %v, %s left, took %v", now, o.Result, left, o.RTT))
}

func TestFleetSeries(t *testing.T) {
	// a arrives at every even second, after the sample; b from 0.95 to 4.95 s, with answers 50 ms later.
	r := ran(t, fleet.Scenario{Duration: 10 * time.Second, Sample: 2 * time.Second, Server: fleet.Quota{Limit: 3600, Capacity: 10, Level: 4}, Groups: []fleet.Group{
		{Name: "a", Strategy: spaced(2 * time.Second)}, {Name: "b", Strategy: scripted(false, 900*ms), Link: latency.Constant(50 * ms), Leave: 5 * time.Second}}})
	want := fleet.Series{At: []float64{0, 2, 4, 6, 8, 10}, Level: []int64{4, 3, 2, 2, 3, 4}, Served: []int{0, 2, 5, 8, 9, 10},
		ServedBy: [][]int{{0, 1, 2, 3, 4, 5}, {0, 1, 3, 5, 5, 5}}, Sleep: [][]float64{{2, 2, 2, 2, 2, 2}, {0.9, 0.9, 0.9, 0, 0, 0}},
		// b sleeps until 5 s, and had slept by the sample after it left.
		Slept: [][]float64{{0, 1.999, 1.999, 1.999, 1.999, 1.999}, {0, 0.9, 0.9, 0.9, 0, 0}}}
	if got := fmt.Sprint(*r.Series); got != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if r := ran(t, scenario(fleet.Group{Strategy: spaced(time.Second)})); r.Series != nil {
		t.Error("a series that nobody asked for")
	}
}

func TestFleetErrors(t *testing.T) {
	good := fleet.Group{Strategy: proportional}
	of := func(change func(*fleet.Scenario)) fleet.Scenario {
		s := scenario(good)
		change(&s)
		return s
	}
	group := func(change func(*fleet.Group)) fleet.Scenario {
		return of(func(s *fleet.Scenario) { change(&s.Groups[0]) })
	}
	changes := func(c ...fleet.Change) fleet.Scenario {
		return of(func(s *fleet.Scenario) { s.Server.Changes = c })
	}
	for _, c := range []struct {
		s    fleet.Scenario
		want []string // field, and what else is said
	}{
		{of(func(s *fleet.Scenario) { s.Duration = 0 }), []string{"Duration", "0s is not from 1ns to 8784h0m0s"}},
		{of(func(s *fleet.Scenario) { s.Sample = -1 }), []string{"Sample", "-1ns"}},
		{of(func(s *fleet.Scenario) { s.Sample = 1 }), []string{"Sample", "1ns makes series of more than 50000000 values"}},
		{of(func(s *fleet.Scenario) { s.Groups = nil }), []string{"Groups", "is empty"}},
		{of(func(s *fleet.Scenario) { s.Server.Kind = 9 }), []string{"Server.Kind", "kind 9 is none of bucket, gcra, decrease-only, rolling, calendar, weighted"}},
		{of(func(s *fleet.Scenario) { s.Server.Limit = -4500 }), []string{"Server.Limit", "-4500 is not from 1 to"}},
		{of(func(s *fleet.Scenario) { s.Server.Level = 4501 }), []string{"Server.Level", "4501 is not from 0 to the capacity of 4500"}},
		{of(func(s *fleet.Scenario) { s.Server.Kind, s.Server.Capacity = fleet.Rolling, 9 }), []string{"Server.Capacity", "9 of a rolling quota"}},
		{of(func(s *fleet.Scenario) { s.Server.Window = -time.Hour }), []string{"Server.Window", "-1h0m0s is not from 1ms"}},
		{changes(fleet.Change{At: 2 * time.Minute, Factor: 2}, fleet.Change{At: time.Minute, Factor: 1}), []string{"Server.Changes[1].At", "1m0s is not after the change before at 2m0s"}},
		{changes(fleet.Change{At: time.Hour, Factor: 2}), []string{"Server.Changes[0].At", "1h0m0s is not after the beginning at 0s and before the end at 30m0s"}},
		{changes(fleet.Change{At: time.Minute, Factor: -1}), []string{"Server.Changes[0].Factor", "-1 is not above 0"}},
		{changes(fleet.Change{At: time.Minute, Factor: math.NaN()}), []string{"Server.Changes[0].Factor", "NaN"}},
		{group(func(g *fleet.Group) { g.Processes = -3 }), []string{"Groups[0].Processes", "-3 is not from 1 to 1000000"}},
		{group(func(g *fleet.Group) { g.Threads = 1 << 40 }), []string{"Groups[0].Threads", "is not from 1 to"}},
		{group(func(g *fleet.Group) { g.Processes, g.Threads = 10_000, 10_000 }), []string{"Groups", "100000000 clients in all"}},
		{group(func(g *fleet.Group) { g.Strategy = strategy.Strategy{Name: "nix"} }), []string{"Groups[0].Strategy", `"nix" has neither`}},
		{group(func(g *fleet.Group) { g.Join, g.Leave = 2*time.Minute, time.Minute }), []string{"Groups[0].Leave", "1m0s is not after Join 2m0s"}},
		{group(func(g *fleet.Group) { g.Join = -1 }), []string{"Groups[0].Join", "-1ns is not from 0s"}},
		{group(func(g *fleet.Group) { g.Demand.Kind = 7 }), []string{"Groups[0].Demand.Kind", "none of always, on-off, light"}},
		{group(func(g *fleet.Group) { g.Demand.Kind = fleet.Light }), []string{"Groups[0].Demand.PerSecond", "light wants a rate above 0"}},
		{group(func(g *fleet.Group) { g.Demand = fleet.Demand{Kind: fleet.OnOff, On: time.Second} }), []string{"Groups[0].Demand.Off", "on-off wants a period"}},
		{group(func(g *fleet.Group) { g.Demand.PerSecond = 1 }), []string{"Groups[0].Demand.PerSecond", "for other kinds of demand than always"}},
		{group(func(g *fleet.Group) { g.Demand.Total = -1 }), []string{"Groups[0].Demand.Total", "-1 is not from 0"}},
		{group(func(g *fleet.Group) { g.Strategy = spaced(-1) }), []string{"Groups[0].Params", `strategy "test-spaced"`, "gap -1ns"}},
	} {
		_, err := fleet.New(c.s)
		var field *fleet.FieldError
		if !errors.As(err, &field) || field.Field != c.want[0] || !strings.Contains(err.Error(), c.want[1]) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %v", err, c.want)
		}
	}
	bad := scenario(good)
	bad.Duration, bad.Server.Limit, bad.Groups[0].Join = -1, -1, -1
	if _, err := fleet.New(bad); err == nil || strings.Count(err.Error(), "fleet: ") != 3 {
		t.Errorf("want three errors, got %v", err)
	}
}

// Once everybody has had a turn, nothing allocates.
func TestFleetAllocates(t *testing.T) {
	s := scenario(fleet.Group{Strategy: proportional, Processes: 5, Threads: 5, Link: around30ms}, fleet.Group{Name: "b", Strategy: spaced(time.Minute), Processes: 5, Link: around30ms})
	s.Duration = 24 * time.Hour
	f := begun(t, s)
	f.Advance(time.Hour)
	if n := testing.AllocsPerRun(20, func() { f.Advance(f.Now() + time.Minute) }); n > 0 {
		t.Errorf("a minute allocates %v times", n)
	}
}

// Whatever the scenario: nothing is served that was not there, what is counted adds up, and it replays.
func FuzzFleet(f *testing.F) {
	f.Add(uint64(1), uint8(0), uint16(100), uint16(10), uint8(0), uint8(3), uint8(2), uint16(0), uint8(20))
	f.Add(uint64(2), uint8(1), uint16(1), uint16(1), uint8(1), uint8(1), uint8(1), uint16(40), uint8(200))
	f.Add(uint64(3), uint8(2), uint16(50), uint16(50), uint8(2), uint8(5), uint8(1), uint16(0), uint8(0))
	f.Add(uint64(4), uint8(3), uint16(30), uint16(0), uint8(0), uint8(2), uint8(3), uint16(50), uint8(5))
	f.Add(uint64(5), uint8(4), uint16(30), uint16(7), uint8(1), uint8(4), uint8(4), uint16(150), uint8(50))
	f.Add(uint64(6), uint8(5), uint16(90), uint16(0), uint8(2), uint8(9), uint8(1), uint16(20), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8, perMinute, level uint16, demand, processes, threads uint8, factor uint16, latencyMS uint8) {
		q := fleet.Quota{Kind: fleet.QuotaKind(kind % 6), Limit: int64(perMinute%1000) + 1, Window: time.Minute, Service: latency.Exponential(3*ms, 0)}
		q.Level = int64(level) % (q.Limit + 1)
		if q.Kind != fleet.DecreaseOnly && factor > 0 {
			q.Changes = []fleet.Change{{At: 2*time.Minute + 1, Factor: float64(factor) / 50}, {At: 4 * time.Minute, Factor: 1}}
		}
		s := fleet.Scenario{Duration: 6 * time.Minute, Seed: seed, Server: q, Groups: []fleet.Group{
			{Strategy: proportional, Processes: int(processes%8) + 1, Threads: int(threads%4) + 1, Link: latency.Uniform(0, time.Duration(latencyMS)*ms), Leave: 5 * time.Minute},
			{Strategy: spaced(time.Second), Threads: int(threads%4) + 1, Join: time.Minute},
		}}
		switch demand % 3 {
		case 1:
			s.Groups[0].Demand = fleet.Demand{Kind: fleet.OnOff, On: 10 * time.Second, Off: time.Second}
		case 2:
			s.Groups[0].Demand = fleet.Demand{Kind: fleet.Light, PerSecond: 0.5, Total: 30}
		}
		r := ran(t, s)
		requests, limited := 0, 0
		for _, g := range r.Groups {
			for i := range g.Requests {
				requests += g.Requests[i]
				limited += g.Limited[i]
			}
		}
		if requests != r.Requests || limited != r.Limited || r.Served+r.Limited != r.Requests {
			t.Errorf("%d requests, %d served, %d limited; the clients count %d and %d", r.Requests, r.Served, r.Limited, requests, limited)
		}
		if float64(r.Served) > r.Offered+1 {
			t.Errorf("%d served of %v", r.Served, r.Offered)
		}
		if r.UnusedPercent < 0 || r.UnusedPercent > 100 || r.Jain < 0 || r.Jain > 1+1e-9 || r.Sleep.Median > r.Sleep.P99 || r.Sleep.P99 > r.Sleep.Max {
			t.Errorf("unused %v %%, Jain %v, sleeps %v", r.UnusedPercent, r.Jain, r.Sleep)
		}
		if r.Level.Least < 0 || float64(r.Level.Least) > r.Level.Mean || r.PeakConcurrent > r.Clients {
			t.Errorf("level %v, %d concurrent of %d clients", r.Level, r.PeakConcurrent, r.Clients)
		}
		if a, b := text(t, r), text(t, ran(t, s)); a != b {
			t.Error("it does not replay")
		}
	})
}

// Every standard scenario runs, and has the measures it is there for.
func TestStandard(t *testing.T) {
	names := map[string]bool{}
	kinds := []string{"cold", "full", "day", "jump", "quota", "hetero", "mixed", "spread", "fixed", "rounded", "noisy", "stale", "silent", "minute", "daily", "rolling", "latency", "clear"}
	for _, s := range fleet.Standard(proportional) {
		kind, _, _ := strings.Cut(s.Name, "-")
		if names[s.Name] || !slices.Contains(kinds, kind) {
			t.Errorf("%q is there twice, or begins with none of %v", s.Name, kinds)
		}
		names[s.Name] = true
		f := begun(t, s)
		for !f.Advance(f.Now() + time.Minute) {
		}
		r := f.Report()
		if r.Requests == 0 || r.UnusedPercent >= 100 || r.RetryPercent == 0 && kind != "clear" && kind != "full" {
			t.Errorf("%s: %d requests, %.1f %% limited, %.1f %% unused", s.Name, r.Requests, r.RetryPercent, r.UnusedPercent)
		}
		if (r.Clear != nil) != (kind == "clear") || r.Clear != nil && *r.Clear < 75 {
			t.Errorf("%s: cleared in %v", s.Name, r.Clear)
		}
		if (kind == "cold" || kind == "latency" || kind == "mixed") && r.Settle != nil {
			t.Errorf("%s: settled without a change", s.Name)
		}
		if s.Duration != time.Duration(r.Seconds*1e9) && kind != "clear" || !r.Complete {
			t.Errorf("%s: ran for %v s of %v", s.Name, r.Seconds, s.Duration)
		}
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(names)), func(name string) bool { return strings.HasPrefix(name, kind) }) {
			t.Errorf("no scenario of %s", kind)
		}
	}
}
