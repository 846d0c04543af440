package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/proxy"
)

// addService adds the flags of a proxy that is a service.
func (f *proxyFlags) addService(p *pflag.FlagSet) {
	p.StringVar(&f.c.Metrics.Listen, "metrics", "",
		"address of /metrics, /livez and /readyz alone, for other machines, such as 0.0.0.0:9090")
	p.BoolVar(&f.c.Metrics.Names, "metrics-names", false, "there, labels name clients, keys, hosts and upstreams")
	p.StringVar(&f.metricsToken, "metrics-token-env", "",
		"environment variable with the token that readers of /metrics send there: Authorization: Bearer TOKEN")
	p.StringVar(&f.c.Handover, "handover", "",
		"Unix socket by which the next process takes over without a drop (default: --state and .sock); off: none")
	p.BoolVar(&f.recent, "recent", true,
		"count what runs and exec of this user sent a moment ago with the same keys to the same servers, and note for them what "+
			"the proxy sends. A store, of --share, counts it anyway")
	p.BoolVar(&f.takeover, "takeover", false, "take over from the process that runs with the same settings, without a drop")
}

// takesOver is in the environment of a process that is to take over from its parent.
const takesOver = "PACELINE_TAKEOVER"

// takeWithin is how long a process may take to hand over.
const takeWithin = 20 * time.Second

// takeOver takes the sockets of the process that runs with the same configuration. It returns nil if
// that is not wanted, or if no process runs.
func (f *proxyFlags) takeOver(cmd *cobra.Command, c *proxy.Config) (*daemon.Predecessor, error) {
	child := os.Getenv(takesOver) != ""
	_ = os.Unsetenv(takesOver)
	if !f.takeover && !child {
		return nil, nil
	}
	path, _ := c.HandoverPath()
	if path == "" {
		return nil, cli.Usage(errors.New("--takeover without --state and --handover, expected the socket of the process that " +
			"runs"))
	}
	ctx, stop := context.WithTimeout(cmd.Context(), takeWithin)
	defer stop()
	from, err := daemon.TakeOver(ctx, path)
	if errors.Is(err, daemon.ErrNoPredecessor) && !child {
		f.teller(cmd)(fmt.Sprintf("--takeover: no process listens at %s, so this one takes nothing over", path))
		return nil, nil
	}
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("--takeover: %w", err))
	}
	return from, nil
}

// listening returns the listener of a use: the one of the process before, or a new one.
func listening(c *proxy.Config, use, address, flag string) (net.Listener, error) {
	if c.Taken != nil {
		if l, err := c.Taken.Listener(use, address); l != nil || err != nil {
			return l, err
		}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		if !c.Flags { // no flag goes with a file
			flag = strings.TrimPrefix(flag, "--")
		}
		return nil, cannotListen(flag, address, "paceline proxy", err)
	}
	return l, nil
}

// passOn makes a server ready for the next process. If the server takes over itself, it does so now.
func passOn(c *proxy.Config, s *proxy.Server, h proxy.Handover) (err error) {
	defer func() { placeBundle(c, err == nil) }()
	if path, chosen := c.HandoverPath(); path != "" {
		var err error
		h.Path = path
		h.Socket, err = daemon.ListenForHandover(path)
		if err == nil {
			if err = s.PassOn(h); err != nil {
				h.Socket.Close()
			}
		}
		switch {
		case err != nil && (chosen || c.Taken != nil):
			return cli.Exit(cli.ExitConfig, fmt.Errorf("--handover: %w", err))
		case err != nil:
			c.Log.Info("no other process can take over without a drop", "err", err)
		}
	}
	return nil
}

// bundleOf is the file in which a forward proxy writes its bundle. Until a takeover has succeeded, programs
// need the bundle of the former process.
func bundleOf(c *proxy.Config) string {
	if c.Taken != nil {
		return c.Forward.Bundle + ".next"
	}
	return c.Forward.Bundle
}

// placeBundle puts the bundle in its place, in which programs read it; or, after a takeover that failed, removes it.
func placeBundle(c *proxy.Config, serves bool) {
	next := bundleOf(c)
	switch {
	case c.Forward.Listen == "" || next == c.Forward.Bundle:
	case !serves:
		_ = os.Remove(next)
	default:
		if err := os.Rename(next, c.Forward.Bundle); err != nil {
			c.Log.Error("programs do not trust this process: its certificate is not where they read it", "err", err)
		}
	}
}

// staysBehind says which changes by a user end with this process: the next one has the file or the flags alone.
func staysBehind(p *proxy.Proxy, tell func(string)) {
	if all := settingLines(p); len(all) > 0 {
		tell("the next process does not have: " + strings.Join(all, "; "))
	}
}

// goingOver are the listeners that go over to the next process.
func (from listeners) goingOver(c *proxy.Config) (all []proxy.Passed) {
	for _, l := range []struct {
		use, address string
		net.Listener
	}{{"main", c.Listen, from.main}, {"admin", c.Admin, from.admin}, {"forward", c.Forward.Listen, from.forward},
		{"metrics", c.Metrics.Listen, from.metrics}} {
		if l.Listener != nil {
			all = append(all, proxy.Passed{NamedSocket: daemon.NamedSocket{Use: l.use, Address: l.address}, Listener: l.Listener})
		}
	}
	return all
}

// startNext starts the program that is now in this one's place, to take over. ended gets how it ended, whenever
// that is.
func startNext(ended func(error)) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	next := exec.Command(path, os.Args[1:]...)
	next.Args[0] = cmp.Or(os.Args[0], path)
	next.Env = append(os.Environ(), takesOver+"=1")
	next.Stdout, next.Stderr = os.Stdout, os.Stderr
	if err := next.Start(); err != nil {
		return err
	}
	go func() { ended(next.Wait()) }()
	return nil
}
