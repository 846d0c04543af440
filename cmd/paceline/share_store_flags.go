package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/share"
)

// storeFlags are the flags of limits that the user's processes share through a store.
type storeFlags struct {
	Address, Name, Fallback string
	Weight, Least           float64
}

// storeForms are the forms of an address of a store.
const storeForms = "sqlite:FILE, postgres://… or redis://…"

// countingKinds are the words of flags for the ways in which a server counts.
var countingKinds = map[string]fairshare.Kind{
	"auto": fairshare.UnknownKind, "bucket": fairshare.TokenBucket,
	"fixed": fairshare.FixedWindow, "rolling": fairshare.RollingWindow,
}

// Add adds the flags that name the limits. also continues the text of --share.
func (f *storeFlags) Add(p *pflag.FlagSet, also string) {
	p.StringVar(&f.Address, "share", "", "a store. All processes with the same store keep to the limits together: "+
		"sqlite:FILE on one machine, postgres://USER@HOST/NAME or redis://HOST"+also)
	p.StringVar(&f.Name, "share-name", "", "name of the limits in the store: one name for each server (default \""+sharestore.DefaultName+"\")")
	p.StringVar(&f.Fallback, "share-fallback", "wait", "while the store is away: wait, or split: go on with 1/n of the "+
		"limit that n processes shared last. Split is not exact if only some of them are cut off")
}

// AddPart adds the flags for this process's part of the limits.
func (f *storeFlags) AddPart(p *pflag.FlagSet) {
	p.Float64Var(&f.Weight, "share-weight", 1, "this process' part if demand is larger than the limit: of weights 1 "+
		"and 3, the second has three quarters")
	partVar(p, &f.Least, "share-least", "least part of the whole for this process, for any weights and numbers of "+
		"the others: 20% of 500/m is 100 a minute")
}

// isStoreAddress reports whether a text is meant as the address of a store.
func isStoreAddress(address string) bool { return strings.Contains(address, ":") }

// Check checks the flags alone: the other ones need a store.
func (f *storeFlags) Check(cmd *cobra.Command) error {
	if f.Address == "" {
		for _, name := range []string{"share-name", "share-fallback", "share-weight", "share-least"} {
			if flag := cmd.Flag(name); flag != nil && flag.Changed {
				return fmt.Errorf("--%s without --share, expected %s", name, storeForms)
			}
		}
		return nil
	}
	if _, err := share.ParseFallback(f.Fallback); err != nil {
		return fmt.Errorf("--share-fallback %w", err)
	}
	if err := node.CheckWeight(cmp.Or(f.Weight, 1)); err != nil || f.Weight == 0 && cmd.Flag("share-weight") != nil {
		return fmt.Errorf("--share-weight %w", node.CheckWeight(f.Weight))
	}
	if err := node.CheckLeast(f.Least); err != nil {
		return fmt.Errorf("--share-least %w", err)
	}
	if strings.ContainsFunc(f.Name, func(r rune) bool { return r < ' ' }) || len(f.Name) > 100 {
		return fmt.Errorf("--share-name %q, expected up to 100 characters", f.Name)
	}
	return nil
}

// Open opens the store and returns its limits, nil if no store is named. After an error no request
// was sent.
func (f *storeFlags) Open(ctx context.Context, log *slog.Logger) (l *sharestore.Limits, err error) {
	if f.Address == "" {
		return nil, nil
	}
	fallback, _ := share.ParseFallback(f.Fallback) // Check has validated it
	s, err := openStore(ctx, f.Address)
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("--share %w", err))
	}
	l = sharestore.New(sharestore.Config{
		Store: s, Address: redactedStore(f.Address), Closer: s, Name: f.Name,
		Fallback: fallback, Weight: f.Weight, Least: f.Least, Logger: log,
	})
	if err := l.Check(ctx, l.Name(sharestore.Place{}), nil); err != nil {
		return nil, cli.Exit(cli.ExitConfig, errors.Join(fmt.Errorf("--share: %w", err), s.Close()))
	}
	return l, nil
}
