package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/ratetest"
)

const serveGCRALong = `Serve one quota for all clients together: a bucket that is refilled evenly, as that of Heroku's platform API. Every answer has the
remaining requests in RateLimit-Remaining.

  200 {"status":"OK"}
  429 {"id":"rate_limit","message":"..."}   none is left; this one uses none, and there is no Retry-After

The bucket starts at --level when the first request comes. With --scale 10, the server's clock runs ten times faster.

Ctrl-C ends the server: it answers the requests under way, and prints a report. A second Ctrl-C aborts.`

type serveGCRA struct {
	serving
	latencies
	config ratetest.GCRAConfig
	level  cli.Level
}

func newServeGCRA() *cobra.Command {
	var s serveGCRA
	c := &cobra.Command{
		Use:   "gcra",
		Short: "One quota that strangers share, refilled evenly, with what is left in each answer",
		Long:  serveGCRALong,
		Example: `  paceline serve gcra
  paceline serve gcra --limit 100 --window 1m --level 100 --log requests.jsonl
  curl -i http://127.0.0.1:9999/`,
	}
	c.RunE = s.until(s.run)
	s.serving.flags(c, "text", "json")
	f := c.Flags()
	f.Int64Var(&s.config.Limit, "limit", 4500, "requests that are refilled in a window")
	f.DurationVar(&s.config.Window, "window", time.Hour, "the window")
	f.Int64Var(&s.config.Capacity, "capacity", 0, "most requests that the bucket holds (default as --limit)")
	f.Var(&s.level, "level", "requests in the bucket at the start, or full")
	f.Float64Var(&s.config.Scale, "scale", 1, "how many times faster its clock runs than ours")
	s.latencies.flags(f, "constant:0s", ", by its clock")
	f.Uint64Var(&s.config.Seed, "seed", 1, "seed of the latencies")
	s.clockFlag(c)
	return c
}

func (s *serveGCRA) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return cli.Usage(err)
	}
	return attend(ctx, &s.serving, func(log io.Writer) (*ratetest.GCRA, error) {
		s.config.LogTo = log
		return ratetest.NewGCRA(s.config)
	}, func(_ *ratetest.GCRA, url string) greeting {
		return s.greeting(url)
	}, func(g *ratetest.GCRA) error { return s.write(g.Report()) })
}

func (s *serveGCRA) greeting(url string) greeting {
	what := fmt.Sprintf("serving %s/: %d requests per %v for all, %d at the start", url, s.config.Limit,
		s.config.Window, s.config.Level)
	if s.clients == 0 { // a virtual clock has no speed
		what += fmt.Sprintf(", clock × %v", s.config.Scale)
	}
	// A client that sends one at a time, evenly, passes at any level of the bucket.
	evenly := (s.config.Window / time.Duration(s.config.Limit)).Truncate(time.Millisecond) + time.Millisecond
	return greeting{what, []string{
		"curl -i " + url + "/",
		urls(5, url+"/?id=") + "paceline run " + limitFlag(1, evenly) + " -",
	}}
}

func (s *serveGCRA) check() (err error) {
	c := &s.config
	c.Capacity = cmp.Or(c.Capacity, c.Limit)
	switch {
	case c.Limit < 1:
		return fmt.Errorf("--limit %d: want 1 or more", c.Limit)
	case c.Window <= 0:
		return fmt.Errorf("--window %v: want more than 0", c.Window)
	case c.Capacity < 1:
		return fmt.Errorf("--capacity %d: want 1 or more", c.Capacity)
	case !(c.Scale > 0 && c.Scale <= 1000):
		return fmt.Errorf("--scale %v: want more than 0 and at most 1000", c.Scale)
	}
	level, ok := s.level.Of(c.Capacity)
	if c.Level = level; !ok {
		return fmt.Errorf("--level %v: want 0 to the capacity of %d, or full", &s.level, c.Capacity)
	}
	if err := s.checkClock(); err != nil {
		return err
	}
	c.VirtualClients = s.clients
	c.Before, c.After, err = s.laws()
	return err
}

func (s *serveGCRA) write(r ratetest.GCRAReport) error {
	if s.output == "json" {
		return cli.WriteJSON(s.out, r)
	}
	total := r.Accepted + r.Limited
	percent := 0.0
	if total > 0 {
		percent = 100 * float64(r.Limited) / float64(total)
	}
	_, err := fmt.Fprintf(s.out,
		"%d accepted and %d limited (%.2f %%) in %v; %d left, %.0f lost to a full bucket; up to %d under way at once\n",
		r.Accepted, r.Limited, percent, r.Elapsed.Round(time.Millisecond), r.Left, r.Unused, r.Peak)
	return err
}
