package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const benchExchangeLong = `Run exchange clients, ours and the published ones, against a strict exchange: by default five API keys with 20
requests per second each, nonces that must rise, and a ban after ten refusals. Nobody who published a client had a ban:
--ban-after 0 is without. Each row runs in a simulator with the exchange's rule: 20 seeds of 600 seconds.

The rows by group, separated by semicolons:
%s

circular is a window kept by send times (+50ms: that much longer), original a fixed gap between requests beside it,
adaptive a window with a margin, which follows the delays where it is as described: these were published. lease is ours
and knows nothing of the network, lease-bounded is told the largest latency.

ceiling: of what theory allows this load and this knowledge. in time: of the requests made, answered within their TTL.

The published clients reached 74, 85, 84 and 77 requests/s; docs/published.md has what they claim, and our reruns.`

// rowsByGroup has a line for each group of the table, with the names of its rows. A long line goes on below.
func rowsByGroup(rows []bench.Row) string {
	const most, indent = 96, 15
	var b strings.Builder
	var seen []string
	group, column := "", 0
	for i := range rows {
		r := &rows[i]
		if slices.Contains(seen, r.Name) {
			continue
		}
		seen = append(seen, r.Name)
		switch {
		case r.Group != group:
			fmt.Fprintf(&b, "\n  %-*s", indent-2, r.Group)
			group, column = r.Group, indent
		case column+len(r.Name)+4 > most:
			fmt.Fprintf(&b, ";\n%*s", indent, "")
			column = indent
		default:
			b.WriteString("; ")
			column += 2
		}
		b.WriteString(r.Name)
		column += len(r.Name)
	}
	return strings.TrimPrefix(b.String(), "\n")
}

type benchExchange struct {
	rows          string
	seconds       int
	seeds         int
	law           string
	output        string
	limit         string
	retries, ban  int // as given in flags; in Exchange a negative number stands for 0 here
	exchange      bench.Exchange
	out, progress io.Writer
}

func newBenchExchange() *cobra.Command {
	var b benchExchange
	c := &cobra.Command{
		Use:   "exchange",
		Short: "Five API keys against a strict exchange: rate, rejects, bans, delays",
		Long:  fmt.Sprintf(benchExchangeLong, rowsByGroup(bench.Exchange{Latency: latency.Constant(0)}.Rows())),
		Example: `  paceline-lab bench exchange
  paceline-lab bench exchange --ban-after 0 --row circular
  paceline-lab bench exchange --keys 3 --limit 100/10s --ttl 5s --latency exponential:20ms`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			b.out, b.progress = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if err := b.check(cmd.Flags().Changed("retries")); err != nil {
				return err
			}
			return b.run(cmd.Context())
		}),
	}
	f := c.Flags()
	f.Bool("virtual", true, "no effect: each run is in virtual time")
	_ = f.MarkHidden("virtual") // it was the way to ask for this
	f.StringVar(&b.rows, "row", "",
		"run the rows with this name or name/load/nonce, or if none has, those that contain it")
	f.IntVar(&b.seconds, "seconds", 600, "length of a run in virtual seconds")
	f.IntVar(&b.seeds, "seeds", 20, "how many runs of each row")
	f.StringVar(&b.law, "latency", "uniform:0-50ms", "latency before and after the server's check: "+latency.Forms)
	f.StringVar(&b.limit, "limit", "20/s", "what the exchange lets through per key: "+rate.Forms)
	f.IntVar(&b.exchange.Keys, "keys", 5, "how many keys there are")
	f.DurationVar(&b.exchange.TTL, "ttl", time.Second, "how long a request is worth sending")
	f.IntVar(&b.retries, "retries", 5,
		"how often a request that failed is tried again, by the rows that do so; if not given, 5 times as published and 4 "+
			"by ours")
	f.IntVar(&b.ban, "ban-after", 10, "the refusals after which a key is banned; 0: never")
	cli.OutputFlag(c, &b.output, "text", "json")
	return c
}

// check checks the flags and reads what they name, before anything runs.
func (b *benchExchange) check(retriesGiven bool) error {
	x := &b.exchange
	var err error
	if x.Latency, err = latency.Parse(b.law, openFile); err != nil {
		return cli.Usage(fmt.Errorf("--%w", err)) // it begins with "latency: "
	}
	r, err := rate.Parse(b.limit)
	if err != nil {
		return cli.Usage(fmt.Errorf("--limit: %w", err))
	}
	x.Limit, x.Window = int(min(r.N, math.MaxInt32)), r.Per
	switch {
	case b.seconds <= 0 || b.seeds <= 0:
		return cli.Usage(errors.New("--seconds and --seeds must be positive"))
	case x.Keys < 1:
		return cli.Usage(fmt.Errorf("--keys %d is not 1 or more", x.Keys))
	case x.TTL <= 0:
		return cli.Usage(fmt.Errorf("--ttl %v is not positive", x.TTL))
	case b.retries < 0 || b.retries > math.MaxInt32:
		return cli.Usage(fmt.Errorf("--retries %d is not 0 or more", b.retries))
	case b.ban < 0:
		return cli.Usage(fmt.Errorf("--ban-after %d is not 0 or more", b.ban))
	}
	if x.BanAfter = b.ban; b.ban == 0 {
		x.BanAfter = -1
	}
	if retriesGiven {
		if x.Retries = b.retries; b.retries == 0 {
			x.Retries = -1
		}
	}
	if err := x.Check(); err != nil {
		return cli.Usage(fmt.Errorf("--keys and --limit: %w", err))
	}
	return nil
}

func (b *benchExchange) run(ctx context.Context) error {
	rows := b.chosen()
	if len(rows) == 0 {
		return cli.Usage(b.noRow())
	}
	report := &bench.Report{Seeds: b.seeds, Seconds: float64(b.seconds), Latency: b.exchange.Latency.String(),
		Exchange: b.exchange.String(), Virtual: true}
	began, cpu := time.Now(), cli.CPUSeconds()
	runs, told := cli.Computing(b.progress, "runs")
	var err error
	report.Policies, err = bench.Virtual(ctx, rows, b.exchange.Latency, b.seeds, time.Duration(b.seconds)*time.Second,
		runs.Count)
	told()
	if err != nil {
		if ctx.Err() != nil {
			return cli.Exit(cli.ExitInterrupted, errors.New("interrupted"))
		}
		return err
	}
	report.Wall, report.CPU = time.Since(began).Seconds(), cli.CPUSeconds()-cpu
	return printReport(b.out, b.output, report, report.WriteText, false, "")
}

// noRow is the error for a --row that no row has. It names the rows.
func (b *benchExchange) noRow() error {
	var names []string
	for _, r := range b.exchange.Rows() {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return fmt.Errorf("--row %q: there is no such row%s; the rows are %s", b.rows, text.DidYouMean(b.rows, names),
		strings.Join(names, "; "))
}

// chosen returns the rows to run.
func (b *benchExchange) chosen() []bench.Row {
	all := b.exchange.Rows()
	choose := func(f func(*bench.Row) bool) (rows []bench.Row) {
		for i := range all {
			if f(&all[i]) {
				rows = append(rows, all[i])
			}
		}
		return rows
	}
	if b.rows == "" {
		return all
	}
	if rows := choose(func(r *bench.Row) bool { return r.Name == b.rows || r.ID() == b.rows }); rows != nil {
		return rows
	}
	return choose(func(r *bench.Row) bool { return strings.Contains(r.ID(), b.rows) })
}
