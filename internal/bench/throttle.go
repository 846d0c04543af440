package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

// Throttles is what `paceline sim throttle -o json` prints. Fields are only ever added to.
type Throttles struct {
	Ours string `json:"ours"` // the name of our strategy, which is compared with the others
	// Strategies has a row per scenario and strategy, the strategies of a scenario together.
	Strategies   []ThrottleRow `json:"strategies"`
	VirtualHours float64       `json:"virtual_hours"` // of all runs together
	Interrupted  bool          `json:"interrupted,omitempty"`
	Wall         float64       `json:"wall_seconds"`
}

// ThrottleRow is a strategy in a scenario: the median and the worst of its runs, one per seed. What the measures are is said
// at the fields of fleet.Report.
type ThrottleRow struct {
	Name     string  `json:"name"`
	Scenario string  `json:"scenario"`
	Clients  int     `json:"clients"`
	Minutes  float64 `json:"minutes"`
	Seeds    int     `json:"seeds"` // that were run

	RetryPercent Spread  `json:"retry_percent"`
	LimitedLate  Spread  `json:"limited_late"`
	MaxSleep     Spread  `json:"max_sleep_s"`
	P99Sleep     Spread  `json:"p99_sleep_s"`
	Optimum      float64 `json:"optimum_sleep_s"` // the most it was at any time
	RequestSD    Spread  `json:"request_sd"`
	Jain         Spread  `json:"jain"` // the worst is the smallest
	Unused       Spread  `json:"unused_percent"`
	Concurrent   Spread  `json:"peak_concurrent"`
	// Clear and Settle are there where they are measured. Null in them: it never did, which is later than any time.
	Clear  *Spread `json:"clear_s"`
	Settle *Spread `json:"settle_s"`

	// First is what each client did with the first seed, as the published simulations print it.
	First Clients `json:"first_seed"`
	// Series is of the first seed, where it was asked for.
	Series *fleet.Series `json:"series,omitempty"`
}

// Clients has a value per client in each list.
type Clients struct {
	MaxSleep   []float64 `json:"max_sleep_val"`
	RetryRatio []float64 `json:"retry_ratio"`
	Requests   []int     `json:"request_count"`
}

// Spread is over the seeds.
type Spread struct {
	Median *float64 `json:"median"`
	Worst  *float64 `json:"worst"`
}

// ThrottleRuns says what to run: every strategy in every scenario with seeds 1 to Seeds.
type ThrottleRuns struct {
	Ours       string
	Strategies []throttle.Strategy
	Scenarios  func(throttle.Strategy) []fleet.Scenario
	Seeds      int
	// Sampled, if not nil, says of which scenarios the first seed is to have a series.
	Sampled func(fleet.Scenario) bool
}

// RunThrottles runs them on all cores. progress, if not nil, is told how many of the runs are finished. If ctx ends, what has
// finished by then is returned.
func RunThrottles(ctx context.Context, what ThrottleRuns, progress func(done, all int)) (Throttles, error) {
	began := time.Now()
	type job struct {
		scenario fleet.Scenario
		row      int
	}
	var jobs []job
	var rows []ThrottleRow
	byStrategy := make([][]fleet.Scenario, len(what.Strategies))
	for i, s := range what.Strategies {
		byStrategy[i] = what.Scenarios(s)
	}
	for k := range byStrategy[0] {
		for i, s := range what.Strategies {
			scenario := byStrategy[i][k]
			for seed := range what.Seeds {
				scenario.Seed = uint64(seed + 1)
				scenario.Sample = 0
				if seed == 0 && what.Sampled != nil && what.Sampled(scenario) {
					scenario.Sample = scenario.Duration / 360
				}
				jobs = append(jobs, job{scenario, len(rows)})
			}
			rows = append(rows, ThrottleRow{Name: s.Name, Scenario: scenario.Name, Minutes: scenario.Duration.Minutes()})
		}
	}
	// The longest first, so that none is left to run alone at the end.
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(effort(b.scenario), effort(a.scenario)) })

	done, hours := 0, 0.0
	reports := make([][]fleet.Report, len(rows))
	err := onAllCores(ctx, len(jobs), each(func(i int) (func(), error) {
		j := jobs[i]
		report, err := RunFleet(ctx, j.scenario, nil)
		if !report.Complete {
			return nil, err
		}
		return func() {
			hours += report.Seconds / 3600
			if report.Seed != 1 {
				report.Groups = nil // long, and not needed
			}
			reports[j.row] = append(reports[j.row], report)
			if done++; progress != nil {
				progress(done, len(jobs))
			}
		}, err
	}))
	if err != nil {
		return Throttles{}, err
	}
	t := Throttles{Ours: what.Ours, Strategies: []ThrottleRow{}, VirtualHours: hours, Interrupted: done < len(jobs)}
	for i := range rows {
		if len(reports[i]) > 0 {
			rows[i].sum(reports[i])
			t.Strategies = append(t.Strategies, rows[i])
		}
	}
	t.Wall = time.Since(began).Seconds()
	return t, nil
}

// effort is roughly how long a scenario takes to run.
func effort(s fleet.Scenario) float64 {
	clients := 0
	for _, g := range s.Groups {
		clients += g.Processes * g.Threads
	}
	return s.Duration.Seconds() * float64(clients+10)
}

// RunFleet runs a scenario until its end or that of ctx. progress, if not nil, is told every now and then how far it is.
func RunFleet(ctx context.Context, s fleet.Scenario, progress func(f *fleet.Fleet)) (fleet.Report, error) {
	f, err := fleet.New(s)
	if err != nil {
		return fleet.Report{}, err
	}
	// As much at a time as takes some 20 ms, so that ctx is heard of. A flood of requests takes that long for little time.
	step, told := 10*time.Millisecond, time.Now()
	for ctx.Err() == nil && !f.Advance(f.Now()+step) {
		now := time.Now()
		switch took := now.Sub(told); {
		case took > 40*time.Millisecond:
			step = max(step/4, time.Microsecond)
		case took < 10*time.Millisecond:
			step = min(step*2, 24*time.Hour)
		}
		told = now
		if progress != nil {
			progress(f)
		}
	}
	return f.Report(), nil
}

// sum makes a row of its runs. Their order does not matter.
func (r *ThrottleRow) sum(runs []fleet.Report) {
	r.Seeds, r.Clients, r.Optimum = len(runs), runs[0].Clients, runs[0].OptimumSleepMost
	for i := range runs {
		for _, g := range runs[i].Groups { // of the first seed alone
			r.First.MaxSleep = append(r.First.MaxSleep, g.MaxSleep...)
			r.First.RetryRatio = append(r.First.RetryRatio, g.RetryRatio...)
			r.First.Requests = append(r.First.Requests, g.Requests...)
		}
		if runs[i].Series != nil {
			r.Series = runs[i].Series
		}
	}
	over := func(of func(*fleet.Report) float64) Spread {
		values := make([]float64, len(runs))
		for i := range runs {
			values[i] = of(&runs[i])
		}
		return spread(values)
	}
	r.RetryPercent = over(func(r *fleet.Report) float64 { return r.RetryPercent })
	r.LimitedLate = over(func(r *fleet.Report) float64 { return float64(r.LimitedLate) })
	r.MaxSleep = over(func(r *fleet.Report) float64 { return r.Sleep.Max })
	r.P99Sleep = over(func(r *fleet.Report) float64 { return r.Sleep.P99 })
	r.RequestSD = over(func(r *fleet.Report) float64 { return r.RequestSD })
	r.Unused = over(func(r *fleet.Report) float64 { return r.UnusedPercent })
	r.Concurrent = over(func(r *fleet.Report) float64 { return float64(r.PeakConcurrent) })
	r.Jain = over(func(r *fleet.Report) float64 { return -r.Jain }) // so that the worst is the smallest
	*r.Jain.Median, *r.Jain.Worst = -*r.Jain.Median, -*r.Jain.Worst
	if strings.HasPrefix(r.Scenario, "clear") {
		s := over(func(r *fleet.Report) float64 { return orNever(r.Clear) })
		r.Clear = &s
	}
	if runs[0].Change != nil {
		s := over(func(r *fleet.Report) float64 { return orNever(r.Settle) })
		r.Settle = &s
	}
}

func orNever(p *float64) float64 {
	if p == nil {
		return math.Inf(1)
	}
	return *p
}

// spread returns the median, the lower one of two, and the largest of values; nil where that is infinite.
func spread(values []float64) Spread {
	slices.Sort(values)
	finite := func(v float64) *float64 {
		if math.IsInf(v, 1) {
			return nil
		}
		return &v
	}
	return Spread{finite(values[(len(values)-1)/2]), finite(values[len(values)-1])}
}

// WriteJSON writes the rows as one JSON object.
func (t *Throttles) WriteJSON(w io.Writer) error { return writeJSON(w, t) }

// WriteText writes a block per scenario, a line per strategy.
func (t *Throttles) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "clients that share a quota of 4500/h; median and worst of the seeds; our strategy is %q\n", t.Ours)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	scenario := ""
	for i := range t.Strategies {
		r := &t.Strategies[i]
		if r.Scenario != scenario {
			scenario = r.Scenario
			fmt.Fprintf(table, "\n%s: %d clients, %s min, %d seeds", r.Scenario, r.Clients, fixed(r.Minutes, 0), r.Seeds)
			if r.Optimum > 0 {
				fmt.Fprintf(table, ", optimum sleep %s s", fixed(r.Optimum, 1))
			}
			fmt.Fprint(table, "\n  strategy\tlimited %\tmax sleep s\tsd of requests\tJain\tunused %\tclear s\tsettle s\t\n")
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, r.RetryPercent.text(2), r.MaxSleep.text(1), r.RequestSD.text(1),
			r.Jain.text(3), r.Unused.text(1), r.Clear.text(1), r.Settle.text(0))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s virtual hours in %s s\n", fixed(t.VirtualHours, 1), fixed(t.Wall, 1))
	return err
}

func (s *Spread) text(digits int) string {
	if s == nil {
		return "-"
	}
	number := func(p *float64) string {
		if p == nil {
			return "never"
		}
		return fixed(*p, digits)
	}
	return number(s.Median) + " / " + number(s.Worst)
}
