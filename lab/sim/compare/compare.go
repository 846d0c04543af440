package compare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/lab/parallel"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

// Config says what to run. Only Strategies or Against must be set.
type Config struct {
	// Strategies are compared, and after them those that Against names. Those names are of the
	// published strategies and of this module's: see `paceline-lab sim throttle --help`.
	Strategies []strategy.Strategy
	Against    []string
	// Ours is the name of the strategy that the others are compared with. If empty, the first.
	Ours string
	// Scenarios returns what a strategy runs in: as many scenarios, in the same order, for each
	// strategy. If nil, fleet.Standard.
	Scenarios func(strategy.Strategy) []fleet.Scenario
	// Only, if not empty, chooses the scenario of this name or, if there is none, those whose names begin with it.
	Only string
	// Seeds is how many runs there are of each scenario. If zero, 20.
	Seeds int
	// FirstSeed is the first seed; the others follow it. If zero, 1. Compare a law by seeds that it was not tuned on.
	FirstSeed uint64
	// Sampled, if not nil, reports whether the run of a scenario with the first seed is to have a series.
	Sampled func(fleet.Scenario) bool
	// Progress, if not nil, is told how many of the runs are finished, by one goroutine at a time.
	Progress func(done, all int)
}

const samples = 360 // in a series

type job struct {
	scenario fleet.Scenario
	row      int
}

// Run runs all of them, on all cores. If ctx ends, it returns what has finished by then. The error
// says which strategy or scenario is impossible.
func Run(ctx context.Context, c Config) (Table, error) {
	began := time.Now()
	jobs, rows, err := c.jobs()
	if err != nil {
		return Table{}, err
	}
	done, hours := 0, 0.0
	reports := make([][]fleet.Report, len(rows))
	err = parallel.OnAll(ctx, len(jobs), parallel.Each(func(i int) (func(), error) {
		j := jobs[i]
		report, err := RunScenario(ctx, j.scenario, nil)
		if !report.Complete {
			return nil, err
		}
		return func() {
			hours += report.Seconds / 3600
			if report.Seed != cmp.Or(c.FirstSeed, 1) {
				report.Groups = nil // they are long, and not needed
			}
			reports[j.row] = append(reports[j.row], report)
			if done++; c.Progress != nil {
				c.Progress(done, len(jobs))
			}
		}, err
	}))
	if err != nil {
		return Table{}, err
	}
	t := Table{Ours: cmp.Or(c.Ours, rows[0].Name), Strategies: []Row{}, VirtualHours: hours,
		Interrupted: done < len(jobs)}
	for i := range rows {
		if len(reports[i]) > 0 {
			rows[i].sum(reports[i])
			t.Strategies = append(t.Strategies, rows[i])
		}
	}
	t.Wall = time.Since(began).Seconds()
	return t, nil
}

// jobs returns what to run, the longest first so that no long one runs alone at the end, and the rows for the results.
func (c *Config) jobs() (jobs []job, rows []Row, err error) {
	laws := slices.Clone(c.Strategies)
	for _, name := range c.Against {
		law, err := strategy.Named(name)
		if err != nil {
			return nil, nil, fmt.Errorf("compare: Against: %w", err)
		}
		laws = append(laws, law)
	}
	if len(laws) == 0 {
		return nil, nil, errors.New("compare: Strategies and Against are empty: want a strategy to compare")
	}
	if c.Seeds < 0 {
		return nil, nil, fmt.Errorf("compare: Seeds %d is negative", c.Seeds)
	}
	byLaw := make([][]fleet.Scenario, len(laws))
	for i, law := range laws {
		if byLaw[i], err = c.scenarios(law); err != nil {
			return nil, nil, err
		}
		if len(byLaw[i]) != len(byLaw[0]) {
			return nil, nil, fmt.Errorf("compare: Scenarios returns %d scenarios for strategy %q and %d for %q", len(byLaw[0]),
				laws[0].Name, len(byLaw[i]), law.Name)
		}
	}
	for k := range byLaw[0] {
		for i, law := range laws {
			s := byLaw[i][k]
			for seed := range cmp.Or(c.Seeds, 20) {
				s.Seed, s.Sample = cmp.Or(c.FirstSeed, 1)+uint64(seed), 0
				if seed == 0 && c.Sampled != nil && c.Sampled(s) {
					s.Sample = s.Duration / samples
				}
				jobs = append(jobs, job{s, len(rows)})
			}
			rows = append(rows, Row{Name: law.Name, Scenario: s.Name, Minutes: s.Duration.Minutes()})
		}
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(effort(b.scenario), effort(a.scenario)) })
	return jobs, rows, nil
}

// scenarios returns those scenarios of a strategy that were chosen.
func (c *Config) scenarios(law strategy.Strategy) ([]fleet.Scenario, error) {
	all := fleet.Standard
	if c.Scenarios != nil {
		all = c.Scenarios
	}
	there := all(law)
	var names []string
	for _, s := range there {
		names = append(names, s.Name)
	}
	if i := slices.Index(names, c.Only); i >= 0 && c.Only != "" {
		return there[i : i+1], nil
	}
	chosen := slices.DeleteFunc(there, func(s fleet.Scenario) bool { return !strings.HasPrefix(s.Name, c.Only) })
	if len(chosen) == 0 {
		return nil, &NoScenarioError{Only: c.Only, Names: names}
	}
	return chosen, nil
}

// NoScenarioError says that no scenario has the name in Config.Only.
type NoScenarioError struct {
	Only  string
	Names []string // the names that there are
}

func (e *NoScenarioError) Error() string {
	return fmt.Sprintf("compare: Only %q: no scenario's name begins with it: there are %s", e.Only,
		strings.Join(e.Names, ", "))
}

// effort estimates roughly how long a scenario takes to run.
func effort(s fleet.Scenario) float64 {
	clients := 0
	for _, g := range s.Groups {
		clients += max(g.Processes, 1) * max(g.Threads, 1)
	}
	return s.Duration.Seconds() * float64(clients+10)
}

// RunScenario runs a scenario to its end, or until ctx ends. progress, if not nil, is called now
// and then with how far it is.
func RunScenario(ctx context.Context, s fleet.Scenario, progress func(f *fleet.Fleet)) (fleet.Report, error) {
	f, err := fleet.New(s)
	if err != nil {
		return fleet.Report{}, err
	}
	// A step takes some 20 ms, so that the end of ctx is noticed. A flood of requests takes that long
	// for little virtual time.
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
