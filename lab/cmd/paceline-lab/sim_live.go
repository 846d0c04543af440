package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/cli/shareflags"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/internal/text/table"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// simLive runs paceline-lab sim --live.
type simLive struct {
	on                 bool
	scale              float64
	processes, threads int
	duration           time.Duration
	limit              int64
	level              cli.Level
	window             time.Duration
	latency            string
	quiet              bool
	url                string
	kind               string
	params             strategy.Params // as given in flags
	store              shareflags.Flags
}

func (l *simLive) flags(f *pflag.FlagSet) {
	f.BoolVar(&l.on, "live", false,
		"run real HTTP clients in processes of their own against a server here, instead of a scenario")
	f.Float64Var(&l.scale, "scale", 1,
		"live: how many times faster clocks run than ours; a server of --url has to do so, too")
	f.IntVar(&l.processes, "processes", 2, "live: processes of clients, which know nothing of each other")
	f.IntVar(&l.threads, "threads", 5, "live: threads of a process, which share what it knows")
	f.DurationVar(&l.duration, "duration", 30*time.Minute, "live: how long, by the scaled clock")
	f.Int64Var(&l.limit, "limit", 4500, "live: requests that the quota refills in a window, and holds at most")
	f.DurationVar(&l.window, "window", time.Hour, "live: the window")
	f.Var(&l.level, "level", "live: requests in the quota at the start, or full")
	f.StringVar(&l.latency, "latency", "constant:30ms",
		"live: latency each way, by the scaled clock, as of paceline serve gcra")
	f.StringVar(&l.url, "url", "",
		"live: send to this server instead of starting one; it has to say 2xx or 429 (see --scale)")
	f.StringVar(&l.kind, "kind", "",
		"live: how the server of --url counts, where it tells no reset: bucket, fixed (windows) or rolling, as --strangers "+
			"of paceline run says it")
	f.Float64Var(&l.params.Multiplier, "multiplier", 0,
		"live: by what a limit multiplies the sleep, of strategies that do; 0: their own")
	f.DurationVar(&l.params.Start, "start", 0, "live: sleep to begin with, by the scaled clock; 0: the strategy's own")
	f.Float64Var(&l.params.Divisor, "divisor", 0, "live: divisor of proportional decreases; 0: the limit")
	f.Float64Var(&l.params.Jitter, "jitter", 0,
		"live: largest share of a sleep that is added to it; 0: 0.1; negative: none")
	f.BoolVarP(&l.quiet, "quiet", "q", false, "live: no line per request")
	l.store.Add(f, "; live: the processes keep to the quota by it, instead of by a strategy")
}

// mostScale is the scale beyond which it matters that a timer is late by a millisecond.
const mostScale = 10

// follow shows how far a run that begins now has come, until told is called.
func (l *simLive) follow(errs *screen.Screen) (told func()) {
	return cli.Following(errs, func(elapsed time.Duration) screen.Share {
		return cli.OfTime(time.Duration(float64(elapsed)*l.scale), l.duration, elapsed)
	})
}

func (l *simLive) run(cmd *cobra.Command, following string, seed uint64, output, file string) error {
	if err := errors.Join(l.store.Check(cmd), l.instead(following)); err != nil {
		return cli.Usage(err)
	}
	fleet, err := l.fleet(following, seed)
	if err != nil {
		return cli.Usage(err)
	}
	if err := l.shares(cmd, fleet); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if l.scale > mostScale {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"warning: at --scale %v a timer that is 1 ms late is %v late by the clients' clock: figures blur beyond %d\n",
			l.scale, time.Duration(l.scale*1e6), mostScale)
	}
	errs := screen.New(cmd.ErrOrStderr(), screen.Config{}) // without a terminal, the lines of requests tell how far it is
	if !l.quiet {
		fleet.Tell = func(l loadgen.Line) { errs.Line(fmt.Sprint(l)) }
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	fleet.Command = func(ctx context.Context) *exec.Cmd {
		c := exec.CommandContext(ctx, self, "sim", "client")
		// Ctrl-C would reach the whole process group. In a group of their own the clients are stopped once, by us.
		c.SysProcAttr = cli.OwnGroup()
		return c
	}
	told := l.follow(errs)
	report, err := fleet.Run(ctx)
	told()
	if report.Clients == 0 {
		return err
	}
	err = errors.Join(draw(file, &report, livePage), err)
	report.Series = nil
	write := writeLive
	if output == "json" {
		write = func(w io.Writer, r *loadgen.Report) error { return cli.WriteJSON(w, r) }
	}
	err = errors.Join(write(cli.Harmless(cmd.OutOrStdout(), output), &report), err)
	if err == nil && !report.Complete {
		err = cli.Exit(cli.ExitInterrupted, errors.New("interrupted: what has run is printed"))
	}
	return err
}

func (l *simLive) fleet(following string, seed uint64) (*loadgen.Fleet, error) {
	switch {
	case !(l.scale > 0 && l.scale <= 1000):
		return nil, fmt.Errorf("--scale %v: want more than 0 and at most 1000", l.scale)
	case l.processes < 1 || l.processes > 1000:
		return nil, fmt.Errorf("--processes %d: want 1 to 1000", l.processes)
	case l.threads < 1 || l.threads > 1000:
		return nil, fmt.Errorf("--threads %d: want 1 to 1000", l.threads)
	case l.duration <= 0:
		return nil, fmt.Errorf("--duration %v: want more than 0", l.duration)
	case l.limit < 1:
		return nil, fmt.Errorf("--limit %d: want 1 or more", l.limit)
	case l.window <= 0:
		return nil, fmt.Errorf("--window %v: want more than 0", l.window)
	}
	level, ok := l.level.Of(l.limit)
	if !ok {
		return nil, fmt.Errorf("--level %v: want 0 to the limit of %d, or full", &l.level, l.limit)
	}
	if err := l.checkURL(); err != nil {
		return nil, err
	}
	if following == "" {
		following = oursName()
	}
	strategies := strings.Split(following, ",")
	for i := range strategies {
		strategies[i] = strings.TrimSpace(strategies[i])
		if _, err := strategy.Named(strategies[i]); err != nil {
			return nil, fmt.Errorf("--strategy: %s", strings.TrimPrefix(err.Error(), "fairshare: "))
		}
	}
	if len(strategies) > l.processes {
		return nil, fmt.Errorf("--strategy names %d strategies for --processes %d: each process follows one, in turn",
			len(strategies), l.processes)
	}
	kind, known := shareflags.Kinds[cmp.Or(l.kind, "auto")]
	if !known {
		return nil, fmt.Errorf("--kind %s, expected %s", l.kind,
			strings.Join(slices.Sorted(maps.Keys(shareflags.Kinds)), ", "))
	}
	if l.kind != "" && l.url == "" {
		return nil, errors.New("--kind is of a server of --url; the one that is started here is a bucket, and known to be one")
	}
	params := l.params
	if params.Kind = kind; l.url == "" {
		params.Kind = fairshare.TokenBucket
	}
	params.Rate, params.Burst, params.Window = float64(l.limit)/l.window.Seconds(), float64(l.limit), l.window
	link, err := latency.ParseOpen(l.latency, openFile)
	if err != nil {
		return nil, fmt.Errorf("--latency: %w", err)
	}
	return &loadgen.Fleet{
		Client: loadgen.Config{
			URL: l.url, Strategy: strategies[0], Params: params,
			Threads: l.threads, Scale: l.scale, Duration: l.duration, Seed: seed,
		},
		Strategies: strategies,
		Processes:  l.processes,
		Sample:     l.duration / samples,
		Server: ratetest.GCRAConfig{Limit: l.limit, Window: l.window, Level: level, Before: link, After: link,
			Seed: seed},
	}, nil
}

// newSimClient is the verb that sim --live runs in client processes.
func newSimClient() *cobra.Command {
	return &cobra.Command{
		Use: "client",
		Short: "A process of clients of paceline-lab sim --live: configured by JSON on stdin, a line of JSON per request " +
			"on stdout",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return loadgen.Serve(ctx, cmd.InOrStdin(), cmd.OutOrStdout(), openSimShare)
		},
	}
}

// checkURL refuses a --url that is no address of a server.
func (l *simLive) checkURL() error {
	if l.url == "" {
		return nil
	}
	u, err := url.Parse(l.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("--url %q: want one such as http://127.0.0.1:9999/", l.url)
	}
	return nil
}

func writeLive(w io.Writer, r *loadgen.Report) error {
	hundredths := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	server := "quota           nobody knows: the server is not ours\n"
	if s := r.Server; s != nil {
		server = fmt.Sprintf("quota           %.0f lost to a full bucket; %d left at the end\nat the server   %s at once "+
			"at most\n", s.Unused, s.Left, sanitize.Count(s.Peak, "request", "requests"))
	}
	text := fmt.Sprintf(`%s, live: %d clients, %s at scale %v

requests        %d: %d served, %d limited
limited         %.2f %% on average over the clients, %.2f %% of all requests; %d after the first two minutes
sleep           %s; optimum %.1f s
fairness        standard deviation of the clients' requests %.1f, Jain's index %.4f
%smax_sleep_s: %s
retry_ratio: %s
request_count: %s
`, r.Strategy, r.Clients, time.Duration(r.Seconds*1e9).Round(time.Second), r.Scale,
		r.Requests, r.Served, r.Limited, r.RetryPercent, r.RetryPercentPooled, r.LimitedLate,
		sleepText(r.Sleep), r.OptimumSleep, r.RequestSD, r.Jain,
		server, listed(r.MaxSleep, hundredths), listed(r.RetryRatio, hundredths), listed(r.RequestCount, strconv.Itoa))
	_, err := io.WriteString(w, table.Fit(text, table.Width))
	return err
}
