package main

import (
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

	"github.com/paceline-go/paceline/internal/shown"
)

const (
	groupOwn       = "own"
	groupProviders = "providers"
)

func newServe() *cobra.Command {
	exchange, gcra, verbs := newServeExchange(), newServeGCRA(), append(newServeProviders(), newServeOpenAI(), newServeAnthropic())
	for _, c := range verbs {
		c.GroupID = groupProviders
	}
	exchange.GroupID, gcra.GroupID = groupOwn, groupOwn
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run a rate-limited server to test clients against",
	}
	c.AddGroup(&cobra.Group{ID: groupOwn, Title: "Rules:"}, &cobra.Group{ID: groupProviders, Title: "Providers:"})
	return family(c, append(verbs, exchange, gcra)...)
}

// server is what package ratetest has.
type server interface {
	StartListener(net.Listener)
	URL() string
	Close() error
}

// serving is what the servers have in common.
type serving struct {
	addr, log, output string
	out, progress     io.Writer
}

func (s *serving) flags(c *cobra.Command, outputs string) {
	f := c.Flags()
	f.StringVar(&s.addr, "addr", "127.0.0.1:9999", "address to listen on; port 0 is any free one")
	f.StringVar(&s.log, "log", "", "write a line of JSON per request to this file")
	f.StringVarP(&s.output, "output", "o", "text", outputs)
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// until runs f with a context that the first signal ends; the second ends the process.
func (s *serving) until(f func(ctx context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		s.out, s.progress = harmless(cmd.OutOrStdout(), s.output), cmd.ErrOrStderr()
		defer overhear(func(text string) { fmt.Fprintln(s.progress, shown.Text(text)) })()
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		return f(ctx)
	}
}

// attend runs the server that open makes with the log, which is nil if there is none, until ctx is done, and then reports on
// it. What open refuses is the user's.
func attend[S server](ctx context.Context, s *serving, open func(log io.Writer) (S, error), greeting func(x S, url string) string, report func(x S) error) error {
	var x S
	opened := false
	err := s.serve(ctx, func(log io.Writer) (server, error) {
		made, err := open(log)
		x, opened = made, err == nil
		return x, err
	}, func(url string) string { return greeting(x, url) })
	if !opened {
		return err
	}
	return errors.Join(report(x), err)
}

// verdicts is the error of a server whose judge disagrees with it: it has a bug.
func verdicts(wrong int, first []string) error {
	if wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d verdicts were against the rule: %s", wrong, strings.Join(first, "; "))
}

// serve runs the server that open makes with the log, which is nil if there is none, until ctx is done.
func (s *serving) serve(ctx context.Context, open func(log io.Writer) (server, error), greeting func(url string) string) (err error) {
	// Whoever has the address has the log: a second server must not empty that of the first.
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return s.cannotListen(err)
	}
	defer l.Close()
	var log io.Writer
	if s.log != "" {
		file, err := os.Create(s.log)
		if err != nil {
			return fmt.Errorf("--log: %w", err)
		}
		defer file.Close()
		log = file
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	x, err := open(log)
	if err != nil {
		return usageError{err}
	}
	x.StartListener(l)
	fmt.Fprintln(s.progress, greeting(x.URL())+"; Ctrl-C ends it")
	<-ctx.Done()
	fmt.Fprintln(s.progress, "closing: answering the requests under way, for up to 5s; Ctrl-C again aborts")
	return x.Close()
}

func (s *serving) cannotListen(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use: stop the server there, or choose another address with --addr", s.addr)
	}
	return fmt.Errorf("--addr: %w", err)
}
