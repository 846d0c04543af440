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
		About: "Strategies by which ten clients share a bucket of 4,500 requests that refills 4,500 an hour, from bare " +
			"retries to the author's winner. " +
			"Each figure of theirs is one run, of an earlier code than the gem's; ours are the 5th, 50th and 95th percentile " +
			"over the seeds, of the gem's own " +
			"steps, at 60 ms a request. A run is confirmed where all of its figures lie within ours, in part where some do."}
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
	const setup = "one client, a full bucket, a sleep of 10 s to begin with, 35 ms each way"
	return []Claim{{
		Claim: fmt.Sprintf("4,500 requests that are there take backoff, which keeps no sleep, %.0f s", clearBackoff),
		Setup: setup,
		Rerun: backoff.text(0) + " s", Verdict: judge(near(backoff.P50, clearBackoff, 0.05)), written: Confirmed,
		Why: "It never sleeps: 4,500 round trips, one after the other.",
	}, {
		Claim: fmt.Sprintf("the winner, from a sleep of 10 s, clears them in %.0f s", clearRemaining), Setup: setup,
		Rerun: remaining.text(0) + " s", Verdict: judge(near(remaining.P50, clearRemaining, 0.05)), written: Confirmed,
		Why: "With all of the bucket left the first answer takes the whole sleep back. Counted from its first request.",
	}}
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
	return []Claim{{
		Claim: "proportional-decrease takes nearly 7 hours to use up what there is, and to find a new steady state",
		Setup: "2 × 5 threads, a full bucket that goes on to fill, a sleep of 10 s to begin with",
		Rerun: ours.text(1) + " h", Verdict: judge(near(ours.P50, emptyHours, 0.1)), written: Confirmed,
		Why: "It comes down by a 4,500th of its sleep with each request, however much is left.",
	}, {
		Claim: "from 10 s it comes down by 1 s in 500 requests, 83 minutes", Setup: "one client",
		Rerun:   fmt.Sprintf("%d requests, %.0f minutes", requests, minutes),
		Verdict: judge(near(float64(requests), 500, 0.1) && near(minutes, 83, 0.1)), written: Confirmed,
		Why: "The text counts 500 steps of 0.002 s at 10 s each; the steps are 0.0022 s and the sleeps a little shorter as " +
			"it comes down.",
	}}, err
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
	return []Claim{{
		Claim: "backoff × 2, 30 minutes: clients make from 93 to 935 requests",
		Setup: "2 × 5 threads, an empty bucket, one run",
		Rerun: fmt.Sprintf("least %s, most %s", least.text(0), most.text(0)), Verdict: judge(least.has(93), most.has(935)),
		written: Confirmed,
		Why:     "Both lie within ours; the list beside that sentence has 1,242 as its largest.",
	}, {
		Claim:   "it gets worse: after two hours the deviation is three times as large, and the longest sleep nearly an hour",
		Setup:   "the same, 30 and 120 minutes",
		Rerun:   fmt.Sprintf("%.1f times as large, %.0f s (medians)", later.SD.P50/two.SD.P50, later.MaxSleep.P50),
		Verdict: judge(near(later.SD.P50/two.SD.P50, 3, 0.25), near(later.MaxSleep.P50, 3600, 0.15)), written: Confirmed,
		Why: "Who sleeps long is seldom served, and doubles again with the chance that everybody has.",
	}, {
		Claim: "a multiplier of 1.2 has more refusals and shorter sleeps, one of 3 fewer refusals (60 to 56 %) and longer " +
			"sleeps", Setup: "backoff, 30 minutes, × 1.2, 2 and 3",
		Rerun: fmt.Sprintf("%.0f, %.0f and %.0f %%; %.0f, %.0f and %.0f s (medians)", lower.Retry.P50, two.Retry.P50,
			higher.Retry.P50, lower.MaxSleep.P50, two.MaxSleep.P50, higher.MaxSleep.P50),
		Verdict: judge(lower.Retry.P50 > two.Retry.P50 && lower.MaxSleep.P50 < two.MaxSleep.P50,
			higher.Retry.P50 < two.Retry.P50 && higher.MaxSleep.P50 > two.MaxSleep.P50),
		written: Confirmed, Why: "One is bought with the other, as the text says.",
	}, {
		Claim:   "gradual-decrease: one client rides the floor, with 3,720 of 4,135 requests",
		Setup:   "2 × 5 threads, 30 minutes, one run",
		Rerun:   "the busiest makes " + busiest.text(0) + " % of them",
		Verdict: judge(busiest.P50 > 50, busiest.has(busiestPublished)), written: InPart,
		Why: "It does, in nearly every run. As large a share as published was not seen: the earlier code was refused more " +
			"often, too.",
	}, {
		Claim: "the best sleep for ten clients is 8 s", Setup: "4,500 an hour, ten clients",
		Rerun:   fmt.Sprintf("%v s", optimum),
		Verdict: judge(optimum == 8), written: Confirmed, Why: "0.8 s a request, times ten.",
	}}
}

func divided(divisors []float64, runs ...[]fleet.Report) Claim {
	var q []Quantiles
	for i := range divisors {
		q = append(q, of(runs[i], retry))
	}
	return Claim{
		Claim:   "proportional-decrease: a divisor above 4,500 has fewer refusals, one below more",
		Setup:   "2 × 5 threads, 30 minutes; divided by 450, 4,500 and 45,000",
		Rerun:   fmt.Sprintf("%s; %s; %s %%", q[0].text(1), q[1].text(1), q[2].text(1)),
		Verdict: judge(q[0].P50 > 1.1*q[1].P50, q[2].P50 < 0.9*q[1].P50), written: InPart,
		Why: "One below does: clients come back sooner to where they are refused. Above, what is refused in half an hour " +
			"is refused at the start, before anything is divided.",
	}
}

func floods(runs []fleet.Report) Claim {
	ours := of(runs, retry)
	return Claim{
		Claim: "retrying alone has an extremely high share of refusals (no figure)",
		Setup: "2 × 5 threads, an empty bucket, two minutes",
		Rerun: ours.text(1) + " %", Verdict: judge(ours.P50 > 90), written: Confirmed,
		Why: "Ten clients ask 165 times a second for what comes back 1.25 times.",
	}
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
	return Claim{
		Claim: "threads that race for the one sleep of their process share more evenly than with a sleep each (no figure)",
		Setup: "2 × 5 threads, 30 minutes, the winner, jitter 10 %, each way 10 ms and 40 ms of work",
		Rerun: fmt.Sprintf("deviation %.0f by a race, %.0f with a sleep each, %.0f where no update is lost (medians)",
			race.SD, local.SD, shared.SD),
		Verdict: judge(race.SD < local.SD, race.SD <= shared.SD), written: InPart,
		Why: "More evenly than with a sleep each: sharing does that. Losing updates does not: without a race it is more " +
			"even yet.",
	}
}

func jitterTable(rows []GemJitter) Table {
	t := Table{Title: "The winner by its jitter, and by how the threads of a process share its sleep (medians)",
		Heading: []string{"jitter %", "sleep is", "refused %", "longest sleep s", "deviation of requests", "most at once"}}
	for _, j := range rows {
		t.Rows = append(t.Rows,
			[]string{fmt.Sprint(j.Jitter), j.Sharing, fmt.Sprintf("%.2f", j.Retry), fmt.Sprintf("%.1f", j.MaxSleep),
				fmt.Sprintf("%.0f", j.SD), fmt.Sprintf("%.0f", j.Concurrent)})
	}
	return t
}
