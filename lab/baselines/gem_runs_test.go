package baselines

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// GemRun compares a published run with ours. Each published run is a single one, of older code than the gem's.
type GemRun struct {
	Strategy   string
	Multiplier float64
	Minutes    int
	Clients    string // processes × threads

	Retry    GemValue
	MaxSleep GemValue
	SD       GemValue
	Clear    *GemValue
}

// GemValue is a published value, with the quantiles of our runs.
type GemValue struct {
	Published *float64
	Quantiles
}

// GemJitter is a run of the gem's best strategy: ten clients in two processes for half an hour, at
// a server that works 40 ms on each request. Values are medians.
type GemJitter struct {
	Jitter     float64
	Sharing    string
	Retry      float64
	MaxSleep   float64
	SD         float64
	Concurrent float64
}

const (
	backoffName      = "exponential-backoff"
	gradualName      = "exponential-increase-gradual-decrease"
	proportionalName = "exponential-increase-proportional-decrease"
	remainingName    = "exponential-increase-proportional-remaining-decrease"
)

// gemRun is a published run. retry is the mean of the published ratios in percent. sd is the sample
// deviation of requests, as the text has it where it gives one.
type gemRun struct {
	strategy           string
	multiplier         float64
	minutes            int
	processes, threads int
	retry, sleep, sd   float64
	written            Verdict
	why                string
}

// gemRuns has the published runs in the order of the text.
var gemRuns = []gemRun{
	{backoffName, 2, 30, 2, 5, 63.0, 854.89, 387, Confirmed, "Rebuilt step by step, the published run is one of ours."},
	{backoffName, 2, 120, 2, 5, 60.8, 3370.67, 1043, Confirmed, "The same."},
	{backoffName, 1.2, 30, 2, 5, 80.2, 134.88, 275, InPart,
		"The published ratio is half a point below all of ours, and the deviation is above: the code was an earlier " +
			"one."},
	{backoffName, 3, 30, 2, 5, 56.4, 1847.50, 325, Confirmed, "The same as × 2."},
	{gradualName, 1.2, 30, 2, 5, 51.6, 208.81, 1161, InPart,
		"One client has almost no sleep, as described. The published run was refused more often and shared less evenly " +
			"than any of ours, by an earlier code."},
	{proportionalName, 1.2, 30, 2, 5, 3.7, 17.27, 91, Confirmed, "The published run is one of ours."},
	{proportionalName, 1.2, 120, 2, 5, 0.8, 19.68, 273, Confirmed, "The same."},
	{remainingName, 1.2, 30, 2, 5, 4.9, 17.18, 46.8, InPart,
		"None of 300 runs of ours was as even as 46.8. The cause is luck, or the earlier code."},
	{remainingName, 1.2, 180, 2, 5, 1.3, 35.71, 524, Confirmed, "The published run is one of ours."},
	{remainingName, 1.2, 720, 2, 5, 1.0, 36.63, 1642, InPart,
		"Refusals are printed in whole percents, and 1 % is more than in any of our runs. The other figures lie within " +
			"ours."},
	{remainingName, 1.2, 300, 5, 5, 1.04, 80.58, 893, InPart,
		"The figures are from a comment in the gem's code; the text has only the chart. Our runs are refused more " +
			"often, and are more even."},
}

// around60ms is the law of one way of a request that takes around 60 ms there and back.
var around60ms = latency.Uniform(20*time.Millisecond, 40*time.Millisecond)

func named(name string) strategy.Strategy {
	s, err := strategy.Named(name)
	if err != nil {
		panic(err) // the package's own names are wrong, which is a bug
	}
	return s
}

func (c *gemRun) scenario() fleet.Scenario {
	return fleet.Scenario{Duration: time.Duration(c.minutes) * time.Minute, Groups: []fleet.Group{{
		Strategy: named(c.strategy), Params: strategy.Params{Multiplier: c.multiplier}, Processes: c.processes,
		Threads: c.threads, Link: around60ms}}}
}

func (c *gemRun) claim(ours GemRun) Claim {
	return Claim{
		Claim: fmt.Sprintf("%s × %v, %d minutes: %v %% refused, longest sleep %.1f s, deviation of requests %v",
			short(c.strategy), c.multiplier,
			c.minutes, c.retry, c.sleep, c.sd),
		Setup:   fmt.Sprintf("%d × %d threads, an empty bucket, one run", c.processes, c.threads),
		Rerun:   fmt.Sprintf("%s %%, %s s, %s", ours.Retry.text(1), ours.MaxSleep.text(0), ours.SD.text(0)),
		Verdict: judge(ours.Retry.has(c.retry), ours.MaxSleep.has(c.sleep), ours.SD.has(c.sd)),
		Why:     c.why, written: c.written,
	}
}

// short is a strategy's name without the prefix that many share.
func short(strategy string) string { return strings.TrimPrefix(strategy, "exponential-increase-") }

// jitters are scenarios of the gem's best strategy, by the share of jitter and by how threads share a sleep.
func jitters() (scenarios []fleet.Scenario) {
	for _, jitter := range []float64{-1, 0.01, 0.1} {
		for _, sharing := range []strategy.Sharing{strategy.Racing, strategy.Shared, strategy.Local} {
			scenarios = append(scenarios,
				fleet.Scenario{Duration: 30 * time.Minute, Server: fleet.Quota{Service: latency.Constant(40 * time.Millisecond)},
					Groups: []fleet.Group{{Strategy: named(remainingName), Params: strategy.Params{Jitter: jitter, Sharing: sharing},
						Processes: 2, Threads: 5,
						Stagger: time.Minute, Link: latency.Uniform(5*time.Millisecond, 15*time.Millisecond)}}})
		}
	}
	return scenarios
}

func jitterOf(s fleet.Scenario, runs []fleet.Report) GemJitter {
	params := s.Groups[0].Params
	peak := func(r *fleet.Report) float64 { return float64(r.PeakConcurrent) }
	return GemJitter{Jitter: 100 * max(params.Jitter, 0), Sharing: params.Sharing.String(),
		Retry: of(runs, retry).P50, MaxSleep: of(runs, sleep).P50, SD: of(runs, sd).P50, Concurrent: of(runs, peak).P50}
}
