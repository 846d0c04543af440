//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/proxy"
)

// keep is the proxy of one run, in a process of its own.
func (x *execFlags) keep(cmd *cobra.Command) error {
	launch.Leave()
	flags, err := launch.Flags()
	if err == nil {
		err = cmd.Flags().Parse(flags)
	}
	var c proxy.Config
	var k *keeper.Keeper
	var r *keeper.Run
	if err == nil {
		c, err = x.configured(cmd)
	}
	if err == nil {
		err = openProxyShare(cmd.Context(), &c)
	}
	if err == nil && !x.apart {
		c.Beside = besideExec()
		c.Beside.Way = nil // it serves this run alone
	}
	if err == nil {
		k, r = keeper.New(c), x.runOf(c, "program", x.keeper)
		if err = k.Join(r); err != nil {
			err = errors.Join(cli.Usage(inFlags(err)), k.Close())
		}
	}
	if c.Shared != nil {
		defer c.Shared.Close()
	}
	if err != nil {
		launch.Fail(err, cli.Code(err))
		return cli.Exit(cli.Code(err), nil)
	}
	ready := launch.Ready(r.Made())
	signals, stop := notified()
	defer stop()
	ctx, cancel := closed(cmd.Context(), signals)
	defer cancel()
	if ready == nil {
		launch.Ended(ctx, x.keeper)
	}
	figures := k.Leave(cmd.Context(), r)
	return errors.Join(ready, k.Close(), x.report(cmd.ErrOrStderr(), figures))
}

// runOf is the run of a configuration.
func (x *execFlags) runOf(c proxy.Config, program string, pid int) *keeper.Run {
	r := &keeper.Run{Program: program, PID: pid, Upstreams: c.Upstreams, Client: x.client, Log: c.Log,
		Temp: os.TempDir(), Sent: x.sent}
	r.Client.MaxWait, r.Capture = c.MaxWait, x.capture
	for _, port := range x.local {
		r.Local = append(r.Local, uint16(port))
	}
	r.Getenv = func(name string) string { value, _ := x.lookup()(name); return value }
	return r
}

// report writes the figures of a run's end.
func (x *execFlags) report(to io.Writer, f keeper.Figures) error {
	if !x.quiet {
		fmt.Fprintln(cli.Harmless(to, "text"), f.Words())
	}
	if x.summary == "" {
		return nil
	}
	b, _ := json.Marshal(f)     // cannot fail
	half := x.summary + ".half" // a reader sees all of it or nothing
	return errors.Join(os.WriteFile(half, append(b, '\n'), 0o600), os.Rename(half, x.summary))
}
