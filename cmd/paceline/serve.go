package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const (
	groupOwn       = "own"
	groupProviders = "providers"
)

func newServe() *cobra.Command {
	exchange, gcra, verbs := newServeExchange(), newServeGCRA(),
		append(newServeProviders(), newServeOpenAI(), newServeAnthropic())
	for _, c := range verbs {
		c.GroupID = groupProviders
	}
	exchange.GroupID, gcra.GroupID = groupOwn, groupOwn
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a rate-limited server to test clients against",
	}
	c.AddGroup(&cobra.Group{ID: groupOwn, Title: "Rules:"}, &cobra.Group{ID: groupProviders, Title: "Providers:"})
	return cli.Family(c, append(verbs, exchange, gcra)...)
}

// server has the common methods of package ratetest's servers.
type server interface {
	StartListener(net.Listener)
	URL() string
	Close() error
}

// serving has the common flags of all servers.
type serving struct {
	addr, log, output string
	clients           int // of a virtual clock; 0: the clock is real
	given             *pflag.FlagSet
	out, progress     io.Writer
}

func (s *serving) flags(c *cobra.Command, outputs ...string) {
	f := c.Flags()
	f.StringVar(&s.addr, "addr", "127.0.0.1:9999", "address to listen on; port 0 is any free one")
	f.StringVar(&s.log, "log", "", "write a line of JSON per request to this file")
	cli.OutputFlag(c, &s.output, outputs...)
	c.Args = cli.NoArguments
}

// latencies are the flags for the time that requests take before and after the check of a server.
type latencies struct{ before, after string }

func (l *latencies) flags(f *pflag.FlagSet, usual, clock string) {
	f.StringVar(&l.before, "latency", usual, "latency before the check"+clock+": "+latency.Forms)
	f.StringVar(&l.after, "latency-after", "", "latency after the check (default as --latency)")
}

func (l *latencies) laws() (before, after latency.Law, err error) {
	if before, err = openLaw(l.before); err != nil {
		return before, after, fmt.Errorf("--latency: %w", err)
	}
	if after, err = openLaw(cmp.Or(l.after, l.before)); err != nil {
		return before, after, fmt.Errorf("--latency-after: %w", err)
	}
	return before, after, nil
}

func openLaw(name string) (latency.Law, error) {
	law, err := latency.Parse(name, func(file string) (io.ReadCloser, error) { return os.Open(file) })
	if err != nil { // the flag's name is in front
		err = errors.New(strings.TrimPrefix(err.Error(), "latency: "))
	}
	return law, err
}

// until runs f with a context that the first signal ends; the second ends the process.
func (s *serving) until(f func(ctx context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		s.out, s.progress = cli.Harmless(cmd.OutOrStdout(), s.output), cmd.ErrOrStderr()
		defer cli.Overhear(func(line string) { fmt.Fprintln(s.progress, text.Sanitize(line)) })()
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		return f(ctx)
	}
}

// attend runs the server that open makes, until ctx is done, and then reports on it. log is nil if
// there is no log. An error of open is the user's mistake.
func attend[S server](ctx context.Context, s *serving, open func(log io.Writer) (S, error),
	greet func(x S, url string) greeting, report func(x S) error) error {
	var x S
	opened := false
	err := s.serve(ctx, func(log io.Writer) (server, error) {
		made, err := open(log)
		x, opened = made, err == nil
		return x, err
	}, func(url string) greeting { return s.clocked(greet(x, url), url) })
	if !opened {
		return err
	}
	return errors.Join(report(x), err)
}

// verdicts is the error for a server with faults. An independent judge found them, so the server
// has a bug.
func verdicts(wrong int, first []string) error {
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d verdicts were against the rule: %s", wrong, strings.Join(first, "; "))
}

// serve runs the server that open makes, until ctx is done. log is nil if there is no log.
func (s *serving) serve(ctx context.Context, open func(log io.Writer) (server, error),
	greet func(url string) greeting) (err error) {
	// The address is taken before the log is opened. So a second server on the same address does
	// not empty the log of the first.
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return cannotListen("--addr", s.addr, "paceline serve", err)
	}
	defer l.Close()
	var log io.Writer
	if s.log != "" {
		file, err := os.Create(s.log)
		if err != nil {
			return cli.Exit(cli.ExitConfig, fmt.Errorf("--log %w", cmp.Or(cli.FolderOf(s.log), err)))
		}
		defer file.Close()
		log = file
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	x, err := open(log)
	if err != nil {
		return cli.Usage(err)
	}
	x.StartListener(l)
	fmt.Fprint(s.progress, greet(reachable(x.URL())).text())
	<-ctx.Done()
	fmt.Fprintln(s.progress, "closing: answering the requests under way, for up to 5s; Ctrl-C again aborts")
	return x.Close()
}

// cannotListen says why the address of a flag cannot be listened at.
func cannotListen(flag, addr, verb string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		host, port, _ := net.SplitHostPort(addr)
		return fmt.Errorf("%s is in use, maybe by another %s (lsof -i :%s says by whom): stop it, or choose another "+
			"address: %s %s, which is any free port",
			addr, verb, port, flag, net.JoinHostPort(host, "0"))
	}
	if _, _, bad := net.SplitHostPort(addr); bad != nil {
		return cli.Usage(fmt.Errorf("%s %q, expected HOST:PORT such as 127.0.0.1:9999; port 0 is any free one", flag, addr))
	}
	return fmt.Errorf("%s: %w", flag, err)
}
