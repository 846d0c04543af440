package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/lab/chart"
	"github.com/paceline-go/paceline/lab/sim/compare"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/sim/scenario"
	"github.com/paceline-go/paceline/lab/strategy"
)

const simLong = `Run clients that share a quota, as a scenario file describes them, in virtual time: a day of 25 clients takes a fraction
of a second. The same file and seed give the same bytes.

A whole scenario; --init FILE writes one with comments:

  version: 1
  duration: 30m
  server:
    kind: bucket
    quota: 4500/h
  groups:
    - name: workers
      strategy: fair
      processes: 2
      threads: 5
      link: uniform:20ms-40ms     # latency each way

A strategy may be formulas in place of a name: what is slept after a refusal, and after an answer that serves, in seconds.

      strategy:
        on_limited: sleep*1.2 + min_sleep
        on_ok: sleep -= sleep*remaining/limit

They know sleep, remaining, limit, tries, retry_after, reset, now, random and min_sleep. docs/fair.md explains them.

With expect the file is a check. Each line is held or missed, with the figure; one that is missed is exit code 1:

  expect: [limited < 3 %, cv < 10 %, throughput >= 98 %]

It prints for each group what its clients met: how many of the requests were limited, the longest sleep, how many
requests each made; and of all: fairness, what of the quota was not used, and how long it took to settle after a change.

Ctrl-C ends it early; what has run until then is reported.`

type simRun struct {
	strategy, output, chart string
	seed                    uint64
	sample                  time.Duration
	instead                 cli.Initial
}

func newSim() *cobra.Command {
	s := simRun{instead: simInit()}
	c := &cobra.Command{
		Use:   "sim SCENARIO.yaml",
		Short: "Simulate clients that share a quota",
		Long:  simLong,
		Example: `  paceline-lab sim --init shared.yaml
  paceline-lab sim shared.yaml
  paceline-lab sim shared.yaml --strategy exponential-backoff --seed 3 -o json`,
		Args: s.arguments,
		RunE: interruptible(func(cmd *cobra.Command, args []string) error {
			if s.instead.Wanted() {
				return s.instead.Run(cmd, args)
			}
			return s.run(cmd.Context(), cmd, args[0])
		}),
	}
	f := c.Flags()
	f.StringVar(&s.strategy, "strategy", "",
		"have all groups follow this strategy, with its own defaults, instead of the file's: "+
			strings.Join(strategy.Names(), ", ")+"; share: all share one exact limit by a simulated store")
	f.Uint64Var(&s.seed, "seed", 0, "seed to use instead of the file's")
	f.DurationVar(&s.sample, "sample", 0,
		"time between two values of the series in the JSON, instead of the file's; 0: none")
	cli.OutputFlag(c, &s.output, "text", "json")
	f.StringVar(&s.chart, "chart", "", "draw the run in this file: .svg, .png or .html")
	s.instead.Add(f)
	c.AddCommand(newSimThrottle())
	return c
}

// arguments checks the arguments and flags of the command line.
func (s *simRun) arguments(c *cobra.Command, args []string) error {
	switch {
	case s.instead.Wanted():
		return s.instead.Check(args)
	case len(args) == 0:
		return errors.New("want one scenario file; paceline-lab sim --init shared.yaml writes one to begin with; see " +
			"paceline-lab sim --help")
	case len(args) > 1:
		return fmt.Errorf("want one scenario file, got %d arguments; see paceline-lab sim --help", len(args))
	}
	if _, err := os.Stat(args[0]); err != nil && args[0] != "-" {
		var verbs []string
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() {
				verbs = append(verbs, below.Name())
			}
		}
		if meant := text.Suggest(args[0], verbs); len(meant) > 0 {
			return fmt.Errorf("%s is neither a file nor a command; did you mean %s %s?", args[0], c.CommandPath(), meant[0])
		}
	}
	return nil
}

// checkChart returns an error before a run if it could not be drawn in that file.
func checkChart(file string) error {
	if file == "" {
		return nil
	}
	if err := chart.CheckPath(file); err != nil {
		return cli.Usage(fmt.Errorf("--chart: %w", err))
	}
	if err := cli.FolderOf(file); err != nil {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("--chart %w", err))
	}
	return nil
}

// samples is how many instants of a run a chart has, if the run does not say how many.
const samples = 360

// draw draws a run in the file, if one is named.
func draw[Run any](file string, run Run, page func(Run) (report.Page, error)) error {
	if file == "" {
		return nil
	}
	p, err := page(run)
	if err != nil {
		return err
	}
	return chart.WriteFile(file, p)
}

func (s *simRun) run(ctx context.Context, cmd *cobra.Command, file string) error {
	if err := checkChart(s.chart); err != nil {
		return err
	}
	read, err := load(file, cmd.InOrStdin())
	if err != nil {
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return cli.Exit(cli.ExitConfig, cli.NoSuchFile(file, err))
		}
		return cli.Exit(cli.ExitConfig, err)
	}
	if s.strategy != "" {
		named, err := strategyOf(s.strategy)
		if err != nil {
			return cli.Usage(err)
		}
		for i := range read.Groups {
			read.Groups[i].Strategy = named
			params := &read.Groups[i].Params // the other constants belong to the law that was replaced
			if named.Name == fleet.Share().Name {
				*params = strategy.Params{Weight: params.Weight}
			} else {
				*params, read.Store = strategy.Params{Start: params.Start}, fleet.Store{}
			}
		}
	}
	if cmd.Flags().Changed("seed") {
		read.Seed = s.seed
	}
	sampled := read.Sample > 0
	if cmd.Flags().Changed("sample") {
		read.Sample = s.sample
	} else if read.Sample == 0 {
		read.Sample = read.Duration / samples
	}
	told := read.Sample // the JSON has a series only if the user asked for it
	if !cmd.Flags().Changed("sample") && !sampled {
		told = 0
	}
	var at atomic.Int64
	progress := cli.Following(screen.New(cmd.ErrOrStderr(), screen.Config{Every: cli.Every, After: time.Second}),
		func(elapsed time.Duration) screen.Share {
			return cli.OfTime(time.Duration(at.Load()), read.Duration, elapsed)
		})
	result, err := compare.RunScenario(ctx, read, func(f *fleet.Fleet) { at.Store(int64(f.Now())) })
	progress()
	if err != nil {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", file, err))
	}
	drawn := draw(s.chart, &result, scenarioPage)
	if told == 0 {
		result.Series = nil
	}
	out := cli.Harmless(cmd.OutOrStdout(), s.output)
	if s.output == "json" {
		err = cli.WriteJSON(out, &result)
	} else {
		err = writeFleet(out, &result)
	}
	err = errors.Join(err, drawn)
	if err == nil {
		err = result.Missed()
	}
	if err == nil && !result.Complete {
		err = cli.Exit(cli.ExitInterrupted, errors.New("interrupted: what has run is printed"))
	}
	return err
}

// strategyOf is a strategy of a scenario by its name.
func strategyOf(name string) (strategy.Strategy, error) {
	if name == fleet.Share().Name {
		return fleet.Share(), nil
	}
	named, err := strategy.Named(name)
	if err != nil {
		return named, fmt.Errorf("--strategy: %w", err)
	}
	return named, nil
}

func load(file string, stdin io.Reader) (fleet.Scenario, error) {
	if file == "-" {
		return scenario.Read("stdin", stdin, openFile)
	}
	return scenario.Load(file)
}

// openFile opens a file that a scenario or a law of latencies names.
func openFile(name string) (io.ReadCloser, error) { return os.Open(name) }

// writeFleet writes a report for people, with the lists that the published simulations have.
func writeFleet(w io.Writer, r *fleet.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d clients, %s, seed %d\n\n", cmp.Or(r.Scenario, "scenario"), r.Clients,
		time.Duration(r.Seconds*1e9).Round(time.Millisecond), r.Seed)
	fmt.Fprintf(&b, "requests        %d: %d served, %d limited\n", r.Requests, r.Served, r.Limited)
	fmt.Fprintf(&b, "limited         %.2f %% on average over the clients, %.2f %% of all requests; %d after the first "+
		"two minutes\n", r.RetryPercent, r.RetryPercentPooled, r.LimitedLate)
	fmt.Fprintf(&b, "sleep           %s", sleepText(r.Sleep))
	if r.OptimumSleepMost > 0 {
		fmt.Fprintf(&b, "; optimum %.1f s", r.OptimumSleep)
		if r.OptimumSleepMost != r.OptimumSleep {
			fmt.Fprintf(&b, " at the end, up to %.1f s before", r.OptimumSleepMost)
		}
	}
	fmt.Fprintf(&b, "\nfairness        standard deviation of the clients' requests %.1f, Jain's index %.4f\n",
		r.RequestSD, r.Jain)
	alike := ""
	if len(r.Groups) > 1 {
		alike = ", among those with the same demand and times"
	}
	fmt.Fprintf(&b, "shares          CV %.1f %%, the poorest client has %.2f and the richest %.2f of a fair one%s\n",
		r.Shares.CV, r.Shares.Least, r.Shares.Most, alike)
	fmt.Fprintf(&b, "last 2 thirds   %.2f %% of %d requests limited; CV of shares %.1f %%, %.2f to %.2f of a fair one\n",
		r.Steady.Percent, r.Steady.Requests, r.SharesSteady.CV, r.SharesSteady.Least, r.SharesSteady.Most)
	if w := r.Windows; w != nil && w.Windows > 0 {
		fmt.Fprintf(&b, "windows         %d: median and worst CV of shares %.1f and %.1f %%, of what was not used %.1f and "+
			"%.1f %%; the first's CV %.1f %%\n",
			w.Windows, w.CV.Median, w.CV.Worst, w.Unused.Median, w.Unused.Worst, w.FirstCV)
	}
	fmt.Fprintf(&b, "waits           %.1f s at most until a request is served\n", r.LongestWait)
	fmt.Fprintf(&b, "quota           %.1f %% of %.0f requests not used; level %.1f on average, %d at least, %d at the "+
		"end\n", r.UnusedPercent, r.Offered, r.Level.Mean, r.Level.Least, r.Level.Last)
	fmt.Fprintf(&b, "at the server   %s at once at most\n", text.Count(r.PeakConcurrent, "request", "requests"))
	if r.Clear != nil {
		fmt.Fprintf(&b, "cleared         in %.1f s\n", *r.Clear)
	}
	switch {
	case r.Settle != nil:
		fmt.Fprintf(&b, "settled         %.0f s after the change at %.0f s\n", *r.Settle, *r.Change)
	case r.Change != nil:
		fmt.Fprintf(&b, "settled         not by the end, after the change at %.0f s\n", *r.Change)
	}
	if r.SettleClients != nil {
		fmt.Fprintf(&b, "every client    has its share %.0f s after that, or the beginning\n", *r.SettleClients)
	}
	writeStore(&b, r.Store)
	for i := range r.Groups {
		g := &r.Groups[i]
		title := cmp.Or(g.Name, fmt.Sprintf("group %d", i+1))
		fmt.Fprintf(&b, "\n%s: %s, %d × %d; a request is served %.1f s after it comes, %.1f s at most\n", title, g.Strategy,
			g.Processes, g.Threads, g.Delay.Mean, g.Delay.Max)
		sent, refused := sum(g.Requests), sum(g.Limited)
		fmt.Fprintf(&b, "%d sent, %d refused (%.1f %%); %.1f served to a client on average\n", sent, refused,
			100*float64(refused)/float64(max(sent, 1)), float64(sent-refused)/float64(max(len(g.Requests), 1)))
		if len(r.Groups) > 1 && len(g.Share) > 0 {
			fmt.Fprintf(&b, "mean share: %.2f of a fair one among those with the same demand and times, %.2f in the last two "+
				"thirds\n", g.MeanShare, g.MeanShareSteady)
		}
		whole := func(n int) string { return strconv.Itoa(n) }
		hundredths := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
		fmt.Fprintf(&b, "max_sleep_s: %s\nretry_ratio: %s\nrequest_count: %s\n", listed(g.MaxSleep, hundredths),
			listed(g.RetryRatio, hundredths), listed(g.Requests, whole))
	}
	writeExpected(&b, r.Expected)
	_, err := io.WriteString(w, screen.Fit(b.String(), screen.TableWidth))
	return err
}

// writeExpected has a line for each expectation, with the figure of the run.
func writeExpected(b *strings.Builder, all []fleet.Expected) {
	if len(all) > 0 {
		b.WriteByte('\n')
	}
	for _, e := range all {
		outcome, value := "held", "never"
		if !e.Held {
			outcome = "missed"
		}
		if e.Value != nil {
			value = strings.TrimSpace(strconv.FormatFloat(*e.Value, 'g', 6, 64) + " " + e.Unit)
		}
		fmt.Fprintf(b, "%-15s %s: %s\n", outcome, e.Expect, value)
	}
}

// writeStore says what became of those who share by the simulated store, if any do.
func writeStore(b *strings.Builder, r *fleet.StoreReport) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "store           %s, %.1f a second, %.2f statements per request; %d lost\n",
		text.Count(r.Turns, "turn", "turns"), r.PerSecond, r.PerRequest, r.Lost)
	for i := range r.Outages {
		o := &r.Outages[i]
		fmt.Fprintf(b, "outage          at %.0f s for %.0f s, %d of %d cut off: %.0f %% of the quota sent", o.At, o.Seconds,
			o.Cut, o.Of, o.SentPercent)
		if o.From != nil {
			fmt.Fprintf(b, " from %.0f s on, when the first went on with its part (%s by parts)", *o.From,
				text.Count(o.Parts, "request", "requests"))
		}
		fmt.Fprintf(b, ", %d limited\n", o.Limited)
	}
}

// listed prints one value for each client. Those of a larger fleet than people read one by one are summed up.
func listed[T int | float64](values []T, text func(T) string) string {
	const most = 25
	if len(values) > most {
		sorted := slices.Sorted(slices.Values(values))
		return fmt.Sprintf("of %d from %s to %s, median %s (-o json has all)", len(sorted), text(sorted[0]),
			text(sorted[len(sorted)-1]), text(sorted[(len(sorted)-1)/2]))
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = text(v)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func sum(all []int) (n int) {
	for _, v := range all {
		n += v
	}
	return n
}
