package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
)

const simThrottleLong = `Compare strategies by which clients share a quota that strangers use too, most often a bucket of 4,500 requests per hour:
each strategy in each of the standard scenarios, in virtual time, once per seed. --only chooses among the scenarios.

cold (everybody starts at once at an empty bucket), full, day, jump (clients come or go), quota (it changes and nobody is
told), hetero (different sleeps to begin with), mixed (some have little to do), spread (starts within a second to an hour),
fixed, minute and daily (windows, which tell resets), rounded, noisy and stale (fixed, and what remains is told so), silent (a
window that tells nothing), rolling, latency, clear (do 4,500 requests). Clients of several strategies at once are in --aims.

limited: of the requests of a client, averaged over the clients. sd: of the clients' numbers of requests. CV: of the
clients' shares of what was served. unused: of what the quota let pass. settle: how long after the change as many requests
are sent as the quota lets pass, give or take 10 %. -o json has all that is measured.

With --aims one strategy runs in the scenarios that it should do well in, over seeds that no law was tuned on, and each
figure is beside what is aimed at. A strategy of your own is a Go type: package lab/sim/compare has the table for it.`

// best is the best of the published laws. Charts show its sleep beside that of ours.
const best = "exponential-increase-proportional-remaining-decrease"

// floods are the strategies that run only when they are named: they send hundreds of times what the quota lets pass,
// so simulating them takes minutes.
var floods = []string{"null", "retry-only", "cubic"}

// simThrottle runs paceline-lab sim throttle.
type simThrottle struct {
	strategies          []string
	only, output, chart string
	seeds               string
	first, last         uint64 // seeds
	aims, check         bool
}

func newSimThrottle() *cobra.Command {
	var s simThrottle
	c := &cobra.Command{
		Use:   "throttle",
		Short: "Compare throttling strategies in the standard scenarios",
		Long:  simThrottleLong,
		Example: `  paceline-lab sim throttle
  paceline-lab sim throttle --strategies fair,exponential-backoff --only cold --seeds 200
  paceline-lab sim throttle -o json
  paceline-lab sim throttle --aims`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			if err := s.parse(); err != nil {
				return cli.Usage(err)
			}
			if s.aims {
				return s.runAims(cmd.Context(), cmd)
			}
			return s.run(cmd.Context(), cmd)
		}),
	}
	f := c.Flags()
	f.StringSliceVar(&s.strategies, "strategies", nil,
		"strategies to run: "+strings.Join(strategy.Names(), ", ")+"; if not given, all but "+strings.Join(floods, ", "))
	f.StringVar(&s.only, "only", "", "run the scenario of this name, or if none has it, those whose names begin with it")
	f.StringVar(&s.seeds, "seeds", "",
		"how many runs of each, or their seeds such as 1001-1020; if not given, 20, and with --aims those seeds")
	f.StringVar(&s.chart, "chart", "", "draw the comparison in this file: .svg, .png or .html")
	cli.OutputFlag(c, &s.output, "text", "json")
	f.BoolVar(&s.aims, "aims", false,
		"measure one strategy, ours if none is named, against what is aimed at, and say which aims hold")
	f.BoolVar(&s.check, "check", false, "aims: exit with 1 if one is missed that is not known to be open")
	return c
}

// parse checks the flags. Its error is one of usage.
func (s *simThrottle) parse() error {
	switch {
	case s.aims && s.chart != "":
		return errors.New("--aims and --chart: there is no chart of aims")
	case s.aims && len(s.strategies) > 1:
		return fmt.Errorf("--aims measures one strategy, --strategies names %d", len(s.strategies))
	case s.check && !s.aims:
		return errors.New("--check is for --aims")
	}
	first, last, err := parseSeeds(s.seeds)
	if err != nil {
		return err
	}
	if s.seeds == "" && s.aims {
		first, last = 1001, 1020 // seeds that no law was tuned on
	}
	s.first, s.last = first, last
	return checkChart(s.chart)
}

const mostSeeds = 1_000_000

// parseSeeds reads 20, which means seeds 1 to 20, or a range such as 1001-1020.
func parseSeeds(text string) (first, last uint64, err error) {
	if text == "" {
		return 1, 20, nil
	}
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		from, to = "1", text
	}
	first, err = strconv.ParseUint(strings.TrimSpace(from), 10, 64)
	last, err2 := strconv.ParseUint(strings.TrimSpace(to), 10, 64)
	switch {
	case err != nil || err2 != nil:
		return 0, 0, fmt.Errorf("--seeds %q: want how many, such as 20, or seeds such as 1001-1020", text)
	case first == 0 || last < first || last-first >= mostSeeds:
		return 0, 0, fmt.Errorf("--seeds %s is not from 1 to %d, or a range of as many that begins above 0", text, mostSeeds)
	}
	return first, last, nil
}

func (s *simThrottle) run(ctx context.Context, cmd *cobra.Command) error {
	chosen, err := chooseStrategies(s.strategies)
	if err != nil {
		return cli.Usage(fmt.Errorf("--strategies: %w", err))
	}
	runs, told := cli.Computing(cmd.ErrOrStderr(), "runs")
	defer told()
	first, shown := "", []string{chosen[0].Name, best}
	result, err := compare.Run(ctx,
		compare.Config{Ours: oursName(), Strategies: chosen, Only: s.only, FirstSeed: s.first,
			Seeds: int(s.last - s.first + 1),
			Sampled: func(s fleet.Scenario) bool { // a chart shows a series of the first scenario only
				first = cmp.Or(first, s.Name)
				return s.Name == first && slices.Contains(shown, s.Groups[0].Strategy.Name)
			},
			Progress: runs.Count})
	told()
	if unknown, ok := errors.AsType[*compare.NoScenarioError](err); ok {
		return cli.Usage(fmt.Errorf("--only %q: no scenario's name begins with it: there are %s", s.only,
			strings.Join(unknown.Names, ", ")))
	}
	if err != nil {
		return err
	}
	drawn := draw(s.chart, &result, throttlesPage)
	if len(result.Strategies) == 0 {
		drawn = nil
	}
	err = printReport(cmd.OutOrStdout(), s.output, &result, result.WriteText, result.Interrupted, "")
	return errors.Join(err, drawn)
}

// chooseStrategies returns the named strategies or, without names, the usual ones with ours first.
func chooseStrategies(names []string) (chosen []strategy.Strategy, err error) {
	if len(names) == 0 {
		for _, s := range strategy.All() {
			if !slices.Contains(floods, s.Name) {
				chosen = append(chosen, s)
			}
		}
		ours := oursName()
		if i := slices.IndexFunc(chosen, func(s strategy.Strategy) bool { return s.Name == ours }); i > 0 {
			chosen = slices.Insert(slices.Delete(slices.Clone(chosen), i, i+1), 0, chosen[i])
		}
		if len(chosen) == 0 {
			return nil, errors.New("there are none that throttle; name one")
		}
		return chosen, nil
	}
	for _, name := range names {
		s, err := strategy.Named(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, s)
	}
	return chosen, nil
}

// oursName is the name of the first strategy that is no baseline.
func oursName() string {
	for _, s := range strategy.All() {
		if !s.Baseline {
			return s.Name
		}
	}
	return ""
}
