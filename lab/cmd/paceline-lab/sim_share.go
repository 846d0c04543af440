package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/cli/shareflags"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/lab/loadgen"
	"github.com/paceline-go/paceline/limit"
)

// instead checks that clients who share by a store are not told to do anything else.
func (l *simLive) instead(following string) error {
	switch {
	case l.store.Address == "":
		return nil
	case following != "":
		return fmt.Errorf("--share with --strategy %s: who shares a quota by a store keeps to it, and follows no strategy; "+
			"expected one of the two", following)
	case l.store.Fallback != "wait":
		return errors.New("--share-fallback with --live, where nobody goes on without the store; expected none")
	}
	return nil
}

// shares has the clients of a fleet share the quota by a store, which is reached first. The server begins with what
// they take it to have: a window's worth.
func (l *simLive) shares(cmd *cobra.Command, fleet *loadgen.Fleet) error {
	if l.store.Address == "" {
		return nil
	}
	c := &fleet.Client
	c.Share = loadgen.Share{Store: l.store.Address, Name: l.store.Name}
	c.Strategy, fleet.Strategies = loadgen.SharedStrategy, nil
	if !cmd.Flag("level").Changed {
		fleet.Server.Level = l.limit
	}
	own, err := c.Quota()
	if err != nil {
		return cli.Usage(err)
	}
	_, store, err := openSimShare(cmd.Context(), c.Share, func() limit.Limiter {
		own, _ := c.Quota() // it was made before
		return own
	})
	if err != nil {
		return err
	}
	if quiet, lasts := limit.Span(own)+node.DefaultLate+2*time.Second,
		time.Duration(float64(l.duration)/l.scale); quiet >= lasts {
		fmt.Fprintf(cmd.ErrOrStderr(),
			"warning: a store that is new to this quota is quiet for %s, and the run takes %s: a shorter --window or a longer "+
				"--duration has clients send something\n",
			humanize.Span(quiet.Round(time.Second)), humanize.Span(lasts.Round(time.Second)))
	}
	return store.Close()
}

// openSimShare opens the store of a client process.
func openSimShare(ctx context.Context, s loadgen.Share, own func() limit.Limiter) (limit.Limiter, io.Closer, error) {
	f := shareflags.Flags{Address: s.Store, Name: s.Name, Fallback: "wait"}
	all, err := f.Open(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	l, err := all.Join(ctx, all.Name(sharestore.Place{}), func() limit.Limiter { return own() })
	if err != nil {
		return nil, nil, cli.Exit(cli.ExitConfig, errors.Join(fmt.Errorf("--share: %w", err), all.Close()))
	}
	return l, all, nil
}
