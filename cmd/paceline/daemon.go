//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/text"
)

const daemonLong = `Run the process that this user's runs share. It remembers what was sent, from run to run.

A daemon of this command stays until Ctrl-C, or paceline daemon stop. It listens at a Unix socket, which this
user alone reaches.`

// endsIn is how long a daemon may take to end.
const endsIn = 10 * time.Second

// daemonFlags are the flags of paceline daemon.
type daemonFlags struct {
	json, now bool
	forRuns   bool // a run has started it
	logLevel  string
	limits    limitFlags
}

func newDaemon() *cobra.Command {
	var d daemonFlags
	c := &cobra.Command{
		Use: "daemon", Short: "Run the process that this user's runs share; show or stop it", Long: daemonLong,
		Example: "  paceline daemon\n  paceline daemon --limit orders=50/s --limit mail=14/s\n  paceline daemon status --json\n  paceline daemon stop",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return d.run(cmd) },
	}
	d.limits.add(c.Flags())
	c.Flags().StringVar(&d.logLevel, "log-level", "warn", "level of messages: debug, info, warn or error")
	c.Flags().BoolVar(&d.forRuns, "for-runs", false, "of a run; for paceline itself")
	_ = c.Flags().MarkHidden("for-runs")
	status := &cobra.Command{
		Use: "status", Short: "Show whether a daemon of this user runs, and what it serves", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.status(cmd) },
	}
	status.Flags().BoolVar(&d.json, "json", false, "print all of it as JSON")
	stop := &cobra.Command{
		Use: "stop", Short: "Stop the daemon of this user, of whatever version", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), endsIn, errors.New("the daemon does not end"))
			defer cancel()
			err := daemon.End(ctx, d.now)
			if refused, ok := errors.AsType[*daemon.RefusalError](err); ok {
				err = fmt.Errorf("%w; --now stops it all the same, and their connections are refused", refused)
			}
			return err
		},
	}
	stop.Flags().BoolVar(&d.now, "now", false, "stop it also while it serves programs")
	c.AddCommand(status, stop)
	return c
}

// run is the daemon: in the foreground, or that of runs.
func (d *daemonFlags) run(cmd *cobra.Command) error {
	if d.limits.schema {
		_, err := io.WriteString(cmd.OutOrStdout(), permit.Schema)
		return err
	}
	if err := d.limits.check(cmd); err != nil {
		return cli.Usage(err)
	}
	if d.forRuns {
		launch.LeaveAll()
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(d.logLevel)); err != nil {
		return cli.Usage(fmt.Errorf("--log-level %q, expected debug, info, warn or error", d.logLevel))
	}
	log := logOf(cmd, "text", level)
	for {
		s, err := d.open(cmd.Context())
		switch {
		case err == nil:
			return d.serve(cmd, s, log)
		case d.forRuns && errors.Is(err, daemon.ErrRuns): // that of another run was quicker
			return launch.Ready(launch.Made{})
		case errors.Is(err, daemon.ErrRuns) && len(d.limits.limits) > 0:
			if err = d.limits.join(cmd); err == nil {
				return nil
			}
			again, err := endsSoon(err)
			if !again {
				return err
			}
		default:
			return d.fails(err)
		}
	}
}

func (d *daemonFlags) open(ctx context.Context) (*daemon.Server, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, endsIn, errors.New("the daemon does not begin"))
	defer cancel()
	return daemon.Open(ctx)
}

// fails reports an error of the beginning.
func (d *daemonFlags) fails(err error) error {
	if d.forRuns {
		launch.Fail(err, cli.ExitConfig)
	}
	return cli.Exit(cli.ExitConfig, err)
}

// serve is the daemon, until a signal or a stop.
func (d *daemonFlags) serve(cmd *cobra.Command, s *daemon.Server, log *slog.Logger) error {
	cli.Ballast()
	defer s.Close() // after all files are closed that one daemon alone may have open
	signals, stop := notified()
	defer stop()
	ctx, cancel := closed(cmd.Context(), signals)
	defer cancel()
	over, endRuns := context.WithCancel(ctx)
	defer endRuns()
	runs := mountRuns(over, s, proxy.Config{Log: log})
	end, err := d.limits.mount(cmd.Context(), s, runs, cli.Harmless(cmd.ErrOrStderr(), "text"))
	if err != nil {
		return d.fails(err)
	}
	defer helmOf(daemonKnobs{runs.keeper, runs.permits}, "daemon", "of this user", "", func(said string) { log.Warn(said) }).open(
		func(err error) { log.Info("paceline ctl does not reach this daemon", "err", err) })()
	if d.forRuns {
		s.EndIdle(runs.counts)
		err = launch.Ready(launch.Made{})
	} else {
		_, err = fmt.Fprintf(cli.Harmless(cmd.ErrOrStderr(), "text"), "listening at %s\n", s.Place().Socket())
	}
	if err == nil {
		err = s.Serve(ctx)
	}
	endRuns()
	end()
	return errors.Join(err, runs.close())
}

func (d *daemonFlags) status(cmd *cobra.Command) error {
	said, err := daemon.Ask(cmd.Context())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if d.json {
		b, err := json.MarshalIndent(said, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", b)
		return err
	}
	out = cli.Harmless(out, "text")
	fmt.Fprintf(out, "paceline %s runs as process %d since %s\nsocket %s\nlog %s\n", said.Version, said.PID,
		said.Began.Local().Format(time.DateTime), said.Socket, said.Log)
	if len(said.Held) > 0 {
		fmt.Fprintf(out, "serving %s: %s\n", text.Count(len(said.Held), "program", "programs"), strings.Join(said.Held, ", "))
	}
	return nil
}

// leads is set for the programs of paceline exec: to captures if also connections to this machine are led.
const leads, captures = launch.Leads, launch.Captures

// recentFolder is where runs note what they send.
func recentFolder() (string, error) {
	place, err := daemon.Find()
	if err != nil {
		return "", err
	}
	return filepath.Join(place.State, "recent"), nil
}
