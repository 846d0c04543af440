package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/bench"
	"github.com/paceline-go/paceline/internal/strategy"
	"github.com/paceline-go/paceline/sim/fleet"
	"github.com/paceline-go/paceline/throttle"
)

const simThrottleLong = `Compare strategies by which clients share a quota of 4,500 requests per hour that strangers use too: each strategy in
each of the standard scenarios, in virtual time, once per seed.

cold (everybody starts at once at an empty bucket), full, day, jump (clients come or go), quota (it changes and nobody is
told), hetero (different sleeps to begin with), mixed (some have little to do), latency, clear (do 4,500 requests).

limited: of the requests of a client, averaged over the clients. sd: of the clients' numbers of requests. unused: of what
the quota let pass. settle: how long after the change as many requests are sent as the quota lets pass, give or take 10 %.`

// best is the best that was published: charts show its sleep beside ours.
const best = "exponential-increase-proportional-remaining-decrease"

// floods are the strategies that only run when they are asked for: they send hundreds of times what the quota lets pass, and
// to simulate that takes minutes.
var floods = []string{"null", "retry-only", "cubic"}

func newSimThrottle() *cobra.Command {
	var (
		strategies   []string
		only, output string
		file         string
		seeds        int
	)
	c := &cobra.Command{
		Use:   "throttle",
		Short: "Compare throttling strategies in the standard scenarios",
		Long:  simThrottleLong,
		Example: `  paceline sim throttle
  paceline sim throttle --strategies slot,exponential-backoff --only cold --seeds 200
  paceline sim throttle -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output %q: want text or json", output)}
			}
			if seeds < 1 || seeds > 1_000_000 {
				return usageError{fmt.Errorf("--seeds %d is not from 1 to 1000000", seeds)}
			}
			if err := checkChart(file); err != nil {
				return err
			}
			chosen, err := chooseStrategies(strategies)
			if err != nil {
				return usageError{fmt.Errorf("--strategies: %w", err)}
			}
			scenarios := func(law throttle.Strategy) []fleet.Scenario { return chooseScenarios(fleet.Standard(law), only) }
			if len(scenarios(chosen[0])) == 0 {
				var names []string
				for _, s := range fleet.Standard(chosen[0]) {
					names = append(names, s.Name)
				}
				return usageError{fmt.Errorf("--only %q: no scenario's name begins with it: there are %s", only, strings.Join(names, ", "))}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			shown := []string{chosen[0].Name, best}
			first := scenarios(chosen[0])[0].Name
			runs := bench.ThrottleRuns{Ours: oursName(), Strategies: chosen, Scenarios: scenarios, Seeds: seeds,
				Sampled: func(s fleet.Scenario) bool {
					return s.Name == first && slices.Contains(shown, s.Groups[0].Strategy.Name)
				}}
			result, err := bench.RunThrottles(ctx, runs, throttleProgress(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			drawn := keep(storedRun{Throttles: &result}, "throttle "+only, file, cmd.ErrOrStderr())
			if len(result.Strategies) == 0 {
				drawn = nil
			}
			write := result.WriteText
			if output == "json" {
				write = result.WriteJSON
			}
			if err := errors.Join(write(cmd.OutOrStdout()), drawn); err != nil {
				return err
			}
			if result.Interrupted {
				return exitError{exitInterrupted, errors.New("interrupted: what was finished is printed")}
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringSliceVar(&strategies, "strategies", nil, "strategies to run: "+strings.Join(strategyNames(), ", ")+"; if not given, all but "+strings.Join(floods, ", "))
	f.StringVar(&only, "only", "", "run the scenario of this name, or if none has it, those whose names begin with it")
	f.IntVar(&seeds, "seeds", 20, "how many runs of each")
	f.StringVar(&file, "chart", "", "draw the comparison in this file: .svg, .png or .html")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

// chooseScenarios returns the one of that name, or those whose names begin with it.
func chooseScenarios(all []fleet.Scenario, only string) []fleet.Scenario {
	if i := slices.IndexFunc(all, func(s fleet.Scenario) bool { return s.Name == only }); i >= 0 {
		return all[i : i+1]
	}
	return slices.DeleteFunc(all, func(s fleet.Scenario) bool { return !strings.HasPrefix(s.Name, only) })
}

// chooseStrategies returns those of the names, or the usual ones, ours first.
func chooseStrategies(names []string) (chosen []throttle.Strategy, err error) {
	if len(names) == 0 {
		for _, s := range strategy.All() {
			if !slices.Contains(floods, s.Name) {
				chosen = append(chosen, s)
			}
		}
		ours := oursName()
		slices.SortStableFunc(chosen, func(a, b throttle.Strategy) int {
			return cmp.Compare(rank(b.Name == ours), rank(a.Name == ours))
		})
		if len(chosen) == 0 {
			return nil, errors.New("there are none that throttle; name one")
		}
		return chosen, nil
	}
	for _, name := range names {
		s, err := strategy.Named(strings.TrimSpace(name))
		if err != nil {
			return nil, errors.New(strings.TrimPrefix(err.Error(), "throttle: "))
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

func rank(first bool) int {
	if first {
		return 1
	}
	return 0
}

// oursName is that of the first strategy that is no baseline.
func oursName() string {
	for _, s := range strategy.All() {
		if !s.Baseline {
			return s.Name
		}
	}
	return ""
}

func throttleProgress(w io.Writer) func(done, all int) {
	began, told := time.Now(), time.Now()
	return func(done, all int) {
		if time.Since(told) < 5*time.Second {
			return
		}
		told = time.Now()
		fmt.Fprintf(w, "%4.0fs  %d of %d runs\n", time.Since(began).Seconds(), done, all)
	}
}
