// Command paceline-envoy is an external processor for Envoy: each request in Envoy waits until the
// processor answers, which it does when the limits of the server have room. A request that would
// wait for longer than --max-wait (a minute by default) is refused. The parent folder contains the
// package paceenvoy, and an example of Envoy's configuration.
//
//	paceline-envoy --listen 127.0.0.1:7890 --limit 20/s
//	paceline-envoy --listen unix:/run/paceline/envoy.sock --preset openai:tier1 --tokens
//
// A new process of paceline-envoy does not know which requests passed through the process before
// it. The server still counts these requests. So after one process has ended, wait for the longest
// window of the limits before you start the next. For example, wait a minute with a limit of
// 500/min.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	paceenvoy "github.com/paceline-go/paceline/contrib/envoy"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "paceline-envoy:", err)
		os.Exit(4)
	}
}

// run serves until ctx ends. Streams that are open then have 30 s to end.
func run(ctx context.Context, args []string, out io.Writer) error {
	var limits []rate.Limit
	fs := flag.NewFlagSet("paceline-envoy", flag.ContinueOnError)
	fs.SetOutput(out)
	listen := fs.String("listen", "127.0.0.1:7890", "where Envoy finds the processor: `HOST:PORT` or unix:PATH")
	preset := fs.String("preset", "", "the limits that a provider publishes: `NAME`, as in paceline models and docs/providers.md")
	maxWait := fs.Duration("max-wait", paceenvoy.DefaultMaxWait, "the longest wait of a request; max_message_timeout must be longer")
	counts := fs.Bool("tokens", false, "count tokens of language models; Envoy must send bodies")
	fs.Func("limit", "a limit of each host and key, as `"+rate.CountedForms+"`; may be repeated", func(s string) error {
		l, err := rate.ParseCounted(s)
		limits = append(limits, l)
		return err
	})
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 0 {
		return fmt.Errorf("unexpected %q; expected flags alone", fs.Arg(0))
	}
	c := paceenvoy.Config{Transport: transport.Config{Preset: *preset}, MaxWait: *maxWait}
	if _, err := all(limits); err != nil {
		return err
	}
	c.Transport.Limit = func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Key || len(limits) == 0 {
			return nil
		}
		l, err := all(limits)
		if err != nil {
			panic(err) // cannot fail: it was made before
		}
		return l
	}
	if *counts {
		var err error
		if c.Transport.Tokens, err = tokens.New(tokens.Config{}); err != nil {
			return err
		}
	}
	p, err := paceenvoy.New(c)
	if err != nil {
		return err
	}
	return serve(ctx, p, *listen, out)
}

// all makes the limiter of a host and key.
func all(limits []rate.Limit) (limit.Limiter, error) {
	made := make([]limit.Limiter, len(limits))
	for i, l := range limits {
		m, err := l.Limiter(limit.Arrivals{})
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", l.Text, err)
		}
		made[i] = limit.Named(l.Rule(), m)
	}
	return limit.NewAll(made...), nil
}

// serve answers Envoy until ctx ends.
func serve(ctx context.Context, p *paceenvoy.Processor, listen string, out io.Writer) error {
	network, address := "tcp", listen
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		network, address = "unix", path
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", listen, err)
	}
	srv := grpc.NewServer()
	extprocv3.RegisterExternalProcessorServer(srv, p)
	alive := health.NewServer()
	grpc_health_v1.RegisterHealthServer(srv, alive)
	fmt.Fprintf(out, "paceline-envoy: serving at %s\n", ln.Addr())
	stopped := context.AfterFunc(ctx, func() {
		alive.Shutdown()
		force := time.AfterFunc(30*time.Second, srv.Stop)
		defer force.Stop()
		srv.GracefulStop()
	})
	defer stopped()
	err = srv.Serve(ln)
	s := p.Stats()
	fmt.Fprintf(out, "paceline-envoy: %d requests, %d refused\n", s.Attempts, s.Refused)
	return err
}
