package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// suits checks the flags of a store against those of limits.
func suits(f *storeFlags, cmd *cobra.Command, limits []format.Rate, auto bool) error {
	if err := f.Check(cmd); err != nil || f.Address == "" {
		return err
	}
	switch {
	case auto:
		return errors.New("--share with --limit auto: " +
			"what is to be found out cannot be kept in a store; expected a limit")
	case len(limits) == 0:
		return errors.New("--share with --limit none: there is nothing to share; expected a limit")
	case cmd.Flag("latency-max").Changed:
		return errors.New("--share with --latency-max: what a promise of latencies gains cannot be shared")
	}
	return nil
}

// shareBy is the configuration of a proxy for the flags.
func shareBy(f *storeFlags) proxy.ShareBy {
	if f.Address == "" {
		return proxy.ShareBy{}
	}
	return proxy.ShareBy{
		Store: proxy.Secret(f.Address), Name: f.Name, Fallback: f.Fallback, Weight: f.Weight, Least: f.Least,
	}
}

// shareOf are the flags for a configuration.
func shareOf(by proxy.ShareBy) *storeFlags {
	return &storeFlags{
		Address: string(by.Store), Name: by.Name, Fallback: cmp.Or(by.Fallback, "wait"),
		Weight: by.Weight, Least: by.Least,
	}
}

// openProxyShare opens the store of a configuration.
func openProxyShare(ctx context.Context, c *proxy.Config) (err error) {
	if c.Shared, err = shareOf(c.Share).Open(ctx, c.Log); err != nil {
		return err
	}
	checked, err := c.Checked()
	if err == nil {
		err = checked.CheckShared(ctx)
	}
	if err != nil {
		return cli.Exit(cli.ExitConfig, errors.Join(err, c.Shared.Close()))
	}
	return nil
}
