package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/bench"
	"github.com/paceline-go/paceline/latency"
)

const benchExchangeLong = `Run exchange clients, ours and the published ones, with five API keys against a strict exchange: 20 requests per
second and key, nonces that must rise, and a ban after ten refusals.

Live (the default) a few rows run side by side, each against a server of its own on loopback, for 30 seconds.
With --virtual every row runs in a simulator with the same rule: 20 seeds of 600 seconds.

The published clients reached 74, 85, 84 and 77 requests/s.`

type benchExchange struct {
	virtual, all  bool
	rows          string
	duration      time.Duration
	seconds       int
	seeds         int
	seed          uint64
	law           string
	every         time.Duration
	output        string
	latency       latency.Law
	out, progress io.Writer
}

func newBenchExchange() *cobra.Command {
	var b benchExchange
	c := &cobra.Command{
		Use:   "exchange",
		Short: "Five API keys against a strict exchange: rate, rejects, bans, delays",
		Long:  benchExchangeLong,
		Example: `  paceline bench exchange
  paceline bench exchange --virtual -o json
  paceline bench exchange --row lease --duration 60s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b.out, b.progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return b.run(ctx)
		},
	}
	f := c.Flags()
	f.BoolVar(&b.virtual, "virtual", false, "run in virtual time: all rows, with --seeds seeds of --seconds each")
	f.BoolVar(&b.all, "all", false, "live: run all rows, six at a time, and not just the telling ones")
	f.StringVar(&b.rows, "row", "", "run the rows with this name or name/load/nonce, or if none has, those that contain it")
	f.DurationVar(&b.duration, "duration", 30*time.Second, "live: how long each row runs")
	f.IntVar(&b.seconds, "seconds", 600, "virtual: length of a run in virtual seconds")
	f.IntVar(&b.seeds, "seeds", 20, "virtual: how many runs of each row")
	f.Uint64Var(&b.seed, "seed", 1, "live: seed of latencies and requests")
	f.StringVar(&b.law, "latency", "uniform:0-50ms", "latency before and after the server's check: "+latency.Forms)
	f.DurationVar(&b.every, "every", 5*time.Second, "live: time between two lines of metrics")
	f.StringVarP(&b.output, "output", "o", "text", "text, json or csv")
	return c
}

func (b *benchExchange) run(ctx context.Context) error {
	var err error
	if b.latency, err = openLaw(b.law); err != nil {
		return usageError{fmt.Errorf("--latency: %w", err)}
	}
	switch {
	case b.output != "text" && b.output != "json" && b.output != "csv":
		return usageError{fmt.Errorf("--output %q: want text, json or csv", b.output)}
	case b.duration <= 0 || b.seconds <= 0 || b.seeds <= 0:
		return usageError{errors.New("--duration, --seconds and --seeds must be positive")}
	}
	rows := b.chosen()
	if len(rows) == 0 {
		return usageError{fmt.Errorf("--row %q: there is no such row", b.rows)}
	}
	report := &bench.Report{Seeds: 1, Seconds: b.duration.Seconds(), Latency: b.latency.String(), Virtual: b.virtual}
	began, cpu := time.Now(), cpuSeconds()
	if b.virtual {
		report.Seeds, report.Seconds = b.seeds, float64(b.seconds)
		report.Policies, err = bench.Virtual(ctx, rows, b.latency, b.seeds, time.Duration(b.seconds)*time.Second, b.virtualProgress())
	} else {
		err = b.live(ctx, rows, report)
	}
	if err != nil {
		if ctx.Err() != nil {
			return exitError{exitInterrupted, errors.New("interrupted")}
		}
		return err
	}
	report.Wall, report.CPU = time.Since(began).Seconds(), cpuSeconds()-cpu
	switch b.output {
	case "json":
		return report.WriteJSON(b.out)
	case "csv":
		return report.WriteCSV(b.out)
	}
	return report.WriteText(b.out)
}

// chosen returns the rows to run.
func (b *benchExchange) chosen() []bench.Row {
	slack := bench.LiveSlack
	if b.virtual {
		slack = 0
	}
	all := bench.Rows(b.latency, slack)
	choose := func(f func(*bench.Row) bool) (rows []bench.Row) {
		for i := range all {
			if f(&all[i]) {
				rows = append(rows, all[i])
			}
		}
		return rows
	}
	if b.rows == "" {
		return choose(func(r *bench.Row) bool { return b.virtual || b.all || r.Live })
	}
	if rows := choose(func(r *bench.Row) bool { return r.Name == b.rows || r.ID() == b.rows }); rows != nil {
		return rows
	}
	return choose(func(r *bench.Row) bool { return strings.Contains(r.ID(), b.rows) })
}

// live runs the rows in batches that leave the machine some air: what waits for a processor sends late.
func (b *benchExchange) live(ctx context.Context, rows []bench.Row, report *bench.Report) error {
	const batch = 6
	metric := func(m bench.Metric) {
		fmt.Fprintf(b.progress, "%4.0fs  %-40s  %5d ok  %3d failed  latency %4d ms  %6.1f/s  (last %.0fs: %d ok, %d failed, %.1f/s)\n",
			m.Elapsed.Seconds(), m.Row, m.Successes, m.Failures, m.Mean.Milliseconds(), float64(m.Successes)/m.Elapsed.Seconds(),
			m.Interval.Seconds(), m.SinceLast, m.FailSinceLast, float64(m.SinceLast)/m.Interval.Seconds())
	}
	for len(rows) > 0 {
		n := min(batch, len(rows))
		if !b.all {
			n = len(rows)
		}
		for i := range n {
			if rows[i].Scenario.Server.Keys > 5 { // needs the machine for itself
				n = max(i, 1)
				break
			}
		}
		before := cpuSeconds()
		results, err := bench.Live(ctx, rows[:n], b.latency, b.seed, b.duration, b.every, metric)
		if err != nil {
			return err
		}
		if n == 1 {
			cpu := cpuSeconds() - before // of client and server together
			results[0].CPU = &cpu
		}
		report.Policies = append(report.Policies, results...)
		rows = rows[n:]
	}
	return nil
}

func (b *benchExchange) virtualProgress() func(done, all int) {
	began, told := time.Now(), time.Now()
	return func(done, all int) {
		if time.Since(told) < 5*time.Second {
			return
		}
		told = time.Now()
		fmt.Fprintf(b.progress, "%4.0fs  %d of %d runs\n", time.Since(began).Seconds(), done, all)
	}
}
