package bench

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/paceline-go/paceline/internal/strategy"
	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

// Published is what `paceline sim published -o json` prints: the published runs of the rate_throttle_client gem and its
// predecessor, rerun with many seeds. Fields are only ever added to.
type Published struct {
	Seeds int            `json:"seeds"`
	Runs  []PublishedRun `json:"runs"`
	// Jitter compares shares of jitter and ways in which threads share a sleep, by the gem's best strategy.
	Jitter      []PublishedJitter `json:"jitter"`
	Interrupted bool              `json:"interrupted,omitempty"`
}

// PublishedRun is one published run and ours. Each published one is a single run, of an earlier code than the gem's.
type PublishedRun struct {
	Strategy   string  `json:"strategy"`
	Multiplier float64 `json:"multiplier"`
	Minutes    int     `json:"minutes"`
	Clients    string  `json:"clients"` // processes × threads

	Retry    PublishedValue  `json:"retry_percent"`
	MaxSleep PublishedValue  `json:"max_sleep_s"`
	SD       PublishedValue  `json:"request_sd"`
	Clear    *PublishedValue `json:"clear_s,omitempty"`
}

// PublishedValue is a published value and the quantiles of ours.
type PublishedValue struct {
	Published *float64 `json:"published"`
	P5        float64  `json:"p5"`
	P50       float64  `json:"p50"`
	P95       float64  `json:"p95"`
}

// Place says where the published value falls in the spread of ours.
func (v PublishedValue) Place() string {
	switch {
	case v.Published == nil:
		return ""
	case *v.Published < v.P5:
		return "below"
	case *v.Published > v.P95:
		return "above"
	}
	return "within"
}

// PublishedJitter is the gem's best strategy, ten clients in two processes, for half an hour, with a server that works 40 ms
// on each request. Values are medians.
type PublishedJitter struct {
	Jitter     float64 `json:"jitter_percent"`
	Sharing    string  `json:"sharing"`
	Retry      float64 `json:"retry_percent"`
	MaxSleep   float64 `json:"max_sleep_s"`
	SD         float64 `json:"request_sd"`
	Concurrent float64 `json:"peak_concurrent"`
}

const (
	backoffName      = "exponential-backoff"
	gradualName      = "exponential-increase-gradual-decrease"
	proportionalName = "exponential-increase-proportional-decrease"
	remainingName    = "exponential-increase-proportional-remaining-decrease"
)

// reruns are the published runs in the order of the text. Retry is the mean of the published ratios, SD their sample deviation of
// requests, as the text has it where it has one.
var reruns = []struct {
	strategy           string
	multiplier         float64
	minutes            int
	processes, threads int
	retry, sleep, sd   float64
}{
	{backoffName, 2, 30, 2, 5, 63.0, 854.89, 387},
	{backoffName, 2, 120, 2, 5, 60.8, 3370.67, 1043},
	{backoffName, 1.2, 30, 2, 5, 80.2, 134.88, 275},
	{backoffName, 3, 30, 2, 5, 56.4, 1847.50, 325},
	{gradualName, 1.2, 30, 2, 5, 51.6, 208.81, 1161},
	{proportionalName, 1.2, 30, 2, 5, 3.7, 17.27, 91},
	{proportionalName, 1.2, 120, 2, 5, 0.8, 19.68, 273},
	{remainingName, 1.2, 30, 2, 5, 4.9, 17.18, 46.8},
	{remainingName, 1.2, 180, 2, 5, 1.3, 35.71, 524},
	{remainingName, 1.2, 720, 2, 5, 1.0, 36.63, 1642},
	{remainingName, 1.2, 300, 5, 5, 1.04, 80.58, 893}, // the arrays in the gem's own comment
}

// cleared are the published times to do 4,500 requests that are there, from a sleep of 10 s; nearly 7 hours for the second.
var cleared = []struct {
	strategy string
	seconds  float64
}{{backoffName, 321.75}, {proportionalName, 7 * 3600}, {remainingName, 314.28}}

// RunPublished reruns the published runs on all cores. If ctx ends, what has finished by then is returned.
func RunPublished(ctx context.Context, seeds int, progress func(done, all int)) (Published, error) {
	p := Published{Seeds: seeds, Runs: []PublishedRun{}, Jitter: []PublishedJitter{}}
	var scenarios []fleet.Scenario
	link := latency.Uniform(20*time.Millisecond, 40*time.Millisecond)
	for _, r := range reruns {
		s, err := strategy.Named(r.strategy)
		if err != nil {
			return p, err
		}
		scenarios = append(scenarios, fleet.Scenario{Duration: time.Duration(r.minutes) * time.Minute, Groups: []fleet.Group{{
			Strategy: s, Params: throttle.Params{Multiplier: r.multiplier}, Processes: r.processes, Threads: r.threads, Link: link}}})
	}
	for _, c := range cleared {
		s, err := strategy.Named(c.strategy)
		if err != nil {
			return p, err
		}
		standard := fleet.Standard(s)
		i := slices.IndexFunc(standard, func(s fleet.Scenario) bool { return s.Name == "clear-10s" })
		scenarios = append(scenarios, standard[i])
	}
	best, err := strategy.Named(remainingName)
	if err != nil {
		return p, err
	}
	for _, jitter := range []float64{-1, 0.01, 0.1} {
		for _, sharing := range []throttle.Sharing{throttle.Racing, throttle.Shared, throttle.Local} {
			scenarios = append(scenarios, fleet.Scenario{Duration: 30 * time.Minute, Server: fleet.Quota{Service: latency.Constant(40 * time.Millisecond)},
				Groups: []fleet.Group{{Strategy: best, Params: throttle.Params{Jitter: jitter, Sharing: sharing}, Processes: 2, Threads: 5, Stagger: time.Minute,
					Link: latency.Uniform(5*time.Millisecond, 15*time.Millisecond)}}})
		}
	}
	reports, err := runSeeds(ctx, scenarios, seeds, progress)
	if err != nil {
		return p, err
	}
	p.Interrupted = ctx.Err() != nil
	for i, r := range reports {
		if len(r) == 0 {
			continue
		}
		of := func(value func(*fleet.Report) float64) (v PublishedValue) {
			v.P5, v.P50, v.P95 = middle90(r, value)
			return v
		}
		retry := of(func(r *fleet.Report) float64 { return r.RetryPercent })
		sleep := of(func(r *fleet.Report) float64 { return r.Sleep.Max })
		sd := of(func(r *fleet.Report) float64 { return r.RequestSD })
		switch n := i - len(reruns); {
		case n < 0:
			c := &reruns[i]
			retry.Published, sleep.Published, sd.Published = &c.retry, &c.sleep, &c.sd
			p.Runs = append(p.Runs, PublishedRun{Strategy: c.strategy, Multiplier: c.multiplier, Minutes: c.minutes,
				Clients: fmt.Sprintf("%d × %d", c.processes, c.threads), Retry: retry, MaxSleep: sleep, SD: sd})
		case n < len(cleared):
			clear := of(func(r *fleet.Report) float64 { return min(orNever(r.Clear), r.Seconds) })
			clear.Published = &cleared[n].seconds
			p.Runs = append(p.Runs, PublishedRun{Strategy: cleared[n].strategy, Multiplier: 1.2, Clients: "2 × 5", Retry: retry, MaxSleep: sleep, SD: sd, Clear: &clear})
		default:
			params := scenarios[i].Groups[0].Params
			_, peak, _ := middle90(r, func(r *fleet.Report) float64 { return float64(r.PeakConcurrent) })
			p.Jitter = append(p.Jitter, PublishedJitter{Jitter: 100 * max(params.Jitter, 0), Sharing: params.Sharing.String(),
				Retry: retry.P50, MaxSleep: sleep.P50, SD: sd.P50, Concurrent: peak})
		}
	}
	return p, nil
}

// runSeeds runs each scenario with seeds 1 to n on all cores, and returns the reports of those that were finished.
func runSeeds(ctx context.Context, scenarios []fleet.Scenario, n int, progress func(done, all int)) ([][]fleet.Report, error) {
	reports := make([][]fleet.Report, len(scenarios))
	done, all := 0, n*len(scenarios)
	err := OnAllCores(ctx, all, Each(func(i int) (func(), error) {
		s := scenarios[i/n]
		s.Seed = uint64(i%n + 1)
		r, err := RunFleet(ctx, s, nil)
		if !r.Complete {
			return nil, err
		}
		return func() {
			reports[i/n] = append(reports[i/n], r)
			if done++; progress != nil {
				progress(done, all)
			}
		}, err
	}))
	return reports, err
}

// middle90 returns the 5th, 50th and 95th percentile, the nearest of the values at or below.
func middle90(runs []fleet.Report, of func(*fleet.Report) float64) (p5, p50, p95 float64) {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = of(&runs[i])
	}
	slices.Sort(values)
	at := func(q float64) float64 { return values[int(math.Floor(q*float64(len(values)-1)))] }
	return at(0.05), at(0.5), at(0.95)
}

// WriteJSON writes it as one JSON object.
func (p *Published) WriteJSON(w io.Writer) error { return writeJSON(w, p) }

// WriteText writes two tables.
func (p *Published) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "published values (one run each, of an earlier code), and p5 / p50 / p95 of %d seeds\n\n", p.Seeds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "strategy\t×\tminutes\tclients\tlimited %\t\tmax sleep s\t\tsd of requests\t\t\n")
	for _, r := range p.Runs {
		if r.Clear == nil {
			fmt.Fprintf(t, "%s\t%v\t%d\t%s\t%s\t%s\t%s\t\n", r.Strategy, r.Multiplier, r.Minutes, r.Clients, r.Retry.text(1), r.MaxSleep.text(1), r.SD.text(0))
		}
	}
	fmt.Fprint(t, "\nstrategy\ttime to do 4,500 from a sleep of 10 s\t\t\n")
	for _, r := range p.Runs {
		if r.Clear != nil {
			fmt.Fprintf(t, "%s\t%s\t\n", r.Strategy, r.Clear.text(0))
		}
	}
	fmt.Fprintf(t, "\n%s, medians\t\t\t\t\t\t\njitter %%\tsleep is\tlimited %%\tmax sleep s\tsd of requests\tmost at once\t\n", remainingName)
	for _, j := range p.Jitter {
		fmt.Fprintf(t, "%v\t%s\t%.2f\t%.1f\t%.0f\t%.0f\t\n", j.Jitter, j.Sharing, j.Retry, j.MaxSleep, j.SD, j.Concurrent)
	}
	return t.Flush()
}

func (v PublishedValue) text(digits int) string {
	s := fmt.Sprintf("%s / %s / %s", fixed(v.P5, digits), fixed(v.P50, digits), fixed(v.P95, digits))
	if v.Published != nil {
		s = fixed(*v.Published, digits) + "\t" + s + " " + v.Place()
	}
	return s
}
