package baselines

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// The times to do 4,500 requests that are at hand, in seconds. They are those of one client alone:
// at 35 ms each way 4,500 round trips of 70 ms take 315 s. Ten clients at twice that latency would
// take 75 s, which is no published figure.
const (
	clearBackoff   = 321.75
	clearRemaining = 314.28
	eachWay        = 35 * time.Millisecond
	emptyHours     = 7.0 // about: until ten clients that start at a sleep of 10 s have used up a full bucket
)

// cleared is a scenario of one client with 4,500 requests to make, for which a full bucket is
// enough. It starts at a sleep of 10 s.
func cleared(name string) fleet.Scenario {
	return fleet.Scenario{Duration: 14 * time.Hour, Server: fleet.Quota{Full: true}, Groups: []fleet.Group{{
		Strategy: named(name), Params: strategy.Params{Start: 10 * time.Second}, Link: latency.Constant(eachWay),
		Demand: fleet.Demand{Total: 4500}}}}
}

// emptied returns after how many hours two processes of five threads, which start at a sleep of 10
// s, have used up a full bucket that keeps filling. That is when the first of them is refused.
func emptied(name string, seed uint64) (hours float64, err error) {
	f, err := fleet.New(fleet.Scenario{Duration: 12 * time.Hour, Seed: seed, Server: fleet.Quota{Full: true},
		Groups: []fleet.Group{{
			Strategy: named(name), Params: strategy.Params{Start: 10 * time.Second}, Processes: 2, Threads: 5,
			Link: around60ms}}})
	if err != nil {
		return 0, err
	}
	for done := false; !done; {
		done = f.Advance(f.Now() + time.Minute)
		if r := f.Report(); r.Limited > 0 {
			break
		}
	}
	return f.Now().Hours(), nil
}

// comesDown returns how long, and how many requests, it takes one client to come from a sleep of 10
// s down to 9 s. Its bucket is full, so it is always served.
func comesDown(name string) (minutes float64, requests int, err error) {
	p, err := named(name).New(strategy.Params{Rate: 1.25, Burst: 4500, Start: 10 * time.Second})
	if err != nil {
		return 0, 0, err
	}
	t, now := p.Thread(rand.New(rand.NewPCG(1, 1))), mono.Time(0)
	for ; t.Sleep() > 9*time.Second; requests++ {
		now = t.Send(now)
		t.Answer(now, strategy.Answer{Known: true, Remaining: 4500, Sent: now})
	}
	return now.Sub(0).Minutes(), requests, nil
}

// byDivisor is a scenario of half an hour of the proportional strategy with another divisor.
func byDivisor(divisor float64) fleet.Scenario {
	s := (&gemRun{strategy: proportionalName, multiplier: 1.2, minutes: 30, processes: 2, threads: 5}).scenario()
	s.Groups[0].Params.Divisor = divisor
	return s
}

// gem is the README of the gem: strategies by which clients share a bucket, compared with one another.
func gem(r *run, p *Page) (Document, error) {
	d := Document{Name: "the gem's README",
		About: "A gem is a package of Ruby. This one has strategies by which ten clients share a bucket of 4,500 " +
			"requests that refills 4,500 an hour. They go from bare retries to the author's winner. Each published " +
			"figure is of one run, by an earlier version of the code. Ours are the 5th, 50th and 95th percentile " +
			"over the seeds, by the gem's own steps, at 60 ms a request. A run is confirmed if all of its figures " +
			"lie within ours, and confirmed in part if some do."}
	divisors := []float64{450, 4500, 45000}
	var scenarios []fleet.Scenario
	for i := range gemRuns {
		scenarios = append(scenarios, gemRuns[i].scenario())
	}
	for _, name := range []string{backoffName, remainingName} {
		scenarios = append(scenarios, cleared(name))
	}
	for _, v := range divisors {
		scenarios = append(scenarios, byDivisor(v))
	}
	flood := (&gemRun{strategy: "retry-only", minutes: 2, processes: 2, threads: 5}).scenario()
	scenarios = slices.Concat(scenarios, []fleet.Scenario{flood}, jitters(), seen())
	reports, err := r.fleets(scenarios)
	if err != nil {
		return d, err
	}
	next := func() []fleet.Report {
		first := reports[0]
		reports = reports[1:]
		return first
	}
	runs := reports[:len(gemRuns)]
	for i := range gemRuns {
		c, ours := &gemRuns[i], next()
		p.Runs = append(p.Runs,
			GemRun{Strategy: c.strategy, Multiplier: c.multiplier, Minutes: c.minutes,
				Clients: fmt.Sprintf("%d × %d", c.processes, c.threads),
				Retry:   GemValue{&c.retry, of(ours, retry)}, MaxSleep: GemValue{&c.sleep, of(ours, sleep)},
				SD: GemValue{&c.sd, of(ours, sd)}})
		d.Claims = append(d.Claims, c.claim(p.Runs[i]))
	}
	backoff, remaining := of(next(), clear), of(next(), clear)
	d.Claims = append(d.Claims, p.clearing(backoff, remaining)...)
	slow, err := proportionalIsSlow(min(r.seeds, 5))
	if err != nil {
		return d, err
	}
	d.Claims = append(d.Claims, slow...)
	d.Claims = append(d.Claims, trends(p.Runs, runs)...)
	d.Claims = append(d.Claims, divided(divisors, next(), next(), next()), floods(next()))
	for _, s := range jitters() {
		p.Jitter = append(p.Jitter, jitterOf(s, next()))
	}
	d.Claims = append(d.Claims, racing(p.Jitter), jumpsDown())
	d.Claims = append(d.Claims, seenClaims(reports)...)
	d.Tables = append(d.Tables, jitterTable(p.Jitter))
	return d, nil
}

func (p *Page) clearing(backoff, remaining Quantiles) []Claim {
	published := []float64{clearBackoff, clearRemaining}
	for i, ours := range []Quantiles{backoff, remaining} {
		p.Runs = append(p.Runs,
			GemRun{Strategy: []string{backoffName, remainingName}[i], Multiplier: 1.2, Clients: "1 × 1",
				Clear: &GemValue{&published[i], ours}})
	}
	return []Claim{
		claim("backoff, which keeps no sleep", judge(near(backoff.P50, clearBackoff, 0.05)), backoff.text(0)),
		claim("the winner, from a sleep", judge(near(remaining.P50, clearRemaining, 0.05)), remaining.text(0)),
	}
}

// proportionalIsSlow reruns what the text says against the strategy that does not look at what remains.
func proportionalIsSlow(seeds int) ([]Claim, error) {
	var hours []float64
	for seed := range seeds {
		h, err := emptied(proportionalName, uint64(seed+1))
		if err != nil {
			return nil, err
		}
		hours = append(hours, h)
	}
	ours := quantiles(hours)
	minutes, requests, err := comesDown(proportionalName)
	return []Claim{
		claim("proportional-decrease takes nearly 7", judge(near(ours.P50, emptyHours, 0.1)),
			ours.text(1)),
		claim("from 10 s it", judge(near(float64(requests), 500, 0.1) && near(minutes, 83, 0.1)),
			requests, minutes),
	}, err
}

// trends are claims that compare one run with another.
func trends(p []GemRun, runs [][]fleet.Report) []Claim {
	two, later, lower, higher := p[0], p[1], p[2], p[3]
	counts := func(pick func(requests []int) float64) func(r *fleet.Report) float64 {
		return func(r *fleet.Report) float64 { return pick(r.Groups[0].Requests) }
	}
	least := of(runs[0], counts(func(n []int) float64 { return float64(slices.Min(n)) }))
	most := of(runs[0], counts(func(n []int) float64 { return float64(slices.Max(n)) }))
	busiest := of(runs[4], counts(func(n []int) float64 {
		sum := 0
		for _, k := range n {
			sum += k
		}
		return 100 * float64(slices.Max(n)) / float64(sum)
	}))
	const busiestPublished = 90.0 // 3,720 of 4,135
	optimum := runs[5][0].OptimumSleep
	return []Claim{
		claim("backoff × 2, 30", judge(least.has(93), most.has(935)), least.text(0), most.text(0)),
		claim("it gets worse: after",
			judge(near(later.SD.P50/two.SD.P50, 3, 0.25), near(later.MaxSleep.P50, 3600, 0.15)),
			later.SD.P50/two.SD.P50, later.MaxSleep.P50),
		claim("a multiplier of 1.2",
			judge(lower.Retry.P50 > two.Retry.P50 && lower.MaxSleep.P50 < two.MaxSleep.P50, higher.Retry.P50 < two.Retry.P50 && higher.MaxSleep.P50 > two.MaxSleep.P50),
			lower.Retry.P50, two.Retry.P50, higher.Retry.P50, lower.MaxSleep.P50, two.MaxSleep.P50,
			higher.MaxSleep.P50),
		claim("gradual-decrease: one client rides",
			judge(busiest.P50 > 50, busiest.has(busiestPublished)),
			"the busiest makes "+busiest.text(0)),
		claim("the best sleep for", judge(optimum == 8), optimum),
	}
}

func divided(divisors []float64, runs ...[]fleet.Report) Claim {
	var q []Quantiles
	for i := range divisors {
		q = append(q, of(runs[i], retry))
	}
	return claim("proportional-decrease: a divisor above",
		judge(q[0].P50 > 1.1*q[1].P50, q[2].P50 < 0.9*q[1].P50),
		q[0].text(1), q[1].text(1), q[2].text(1))
}

func floods(runs []fleet.Report) Claim {
	ours := of(runs, retry)
	return claim("retrying alone has an", judge(ours.P50 > 90), ours.text(1))
}

// racing judges the happy accident by the rows that have the gem's jitter.
func racing(rows []GemJitter) Claim {
	var race, shared, local GemJitter
	for _, j := range rows {
		switch {
		case j.Jitter != 10:
		case j.Sharing == "racing":
			race = j
		case j.Sharing == "shared":
			shared = j
		default:
			local = j
		}
	}
	return claim("threads that race for", judge(race.SD < local.SD, race.SD <= shared.SD),
		race.SD, local.SD, shared.SD)
}

func jitterTable(rows []GemJitter) Table {
	t := Table{Title: "The winner, for each jitter and each way in which the threads of a process share the sleep " +
		"(medians)",
		Heading: []string{"jitter %", "sleep is", "refused %", "longest sleep s", "deviation of requests", "most at once"}}
	for _, j := range rows {
		t.Rows = append(t.Rows,
			[]string{fmt.Sprint(j.Jitter), j.Sharing, fmt.Sprintf("%.2f", j.Retry), fmt.Sprintf("%.1f", j.MaxSleep),
				fmt.Sprintf("%.0f", j.SD), fmt.Sprintf("%.0f", j.Concurrent)})
	}
	return t
}
