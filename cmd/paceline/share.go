package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/shared"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/share"
)

const shareLong = `Look at the limits that processes share by a store (--share of run and proxy), and have it forget one.

A STORE is sqlite:FILE, postgres://… or redis://…. To forget a limit does no harm: whoever uses it sends nothing until what was granted before no
longer counts (7 s and a window), and whoever comes first may say otherwise what it is.`

func newShare() *cobra.Command {
	return family(&cobra.Command{Use: "share", Short: "Look at limits that processes share by a store", Long: shareLong},
		&cobra.Command{
			Use: "ls STORE", Short: "List the limits in a store, with how many processes share each", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return withStore(cmd, args[0], listShares) },
		},
		&cobra.Command{
			Use: "show STORE [NAME]", Short: "Say of a limit, or of all, who shares it and holds what", Args: cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withStore(cmd, args[0], func(ctx context.Context, s share.Lister, out io.Writer) error {
					return showShares(ctx, s, out, args[1:])
				})
			},
		},
		&cobra.Command{
			Use: "forget STORE NAME", Short: "Have a store forget a limit", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withStore(cmd, args[0], func(ctx context.Context, s share.Lister, out io.Writer) error {
					return forgetShare(ctx, s, out, args[1])
				})
			},
		})
}

// withStore calls f with the store of an address.
func withStore(cmd *cobra.Command, address string, f func(context.Context, share.Lister, io.Writer) error) error {
	if file, ok := sqliteFile(address); ok && !isFile(file) {
		return exitError{exitConfig, fmt.Errorf("%s: there is no such file", address)}
	}
	s, err := openShare(cmd.Context(), address)
	if err != nil {
		return exitError{exitConfig, err}
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	if err := f(ctx, s.(share.Lister), harmless(cmd.OutOrStdout(), "text")); err != nil {
		return exitError{exitFailure, err}
	}
	return nil
}

func listShares(ctx context.Context, s share.Lister, out io.Writer) error {
	names, err := s.Names(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		seen, ok, err := shared.Look(ctx, s, name)
		if err != nil {
			return err
		}
		if ok {
			fmt.Fprintln(out, shown.Lines(name+"  "+seen.Line()))
		}
	}
	return nil
}

// looked is the time between the two looks that tell a rate.
const looked = time.Second

func showShares(ctx context.Context, s share.Lister, out io.Writer, names []string) (err error) {
	if len(names) == 0 {
		if names, err = s.Names(ctx); err != nil {
			return err
		}
	}
	var all []*shared.Seen
	busy := false
	for _, name := range names {
		seen, ok, err := shared.Look(ctx, s, name)
		if err == nil && !ok {
			err = fmt.Errorf("%q is not there: paceline share ls says what is", name)
		}
		if err != nil {
			return err
		}
		all, busy = append(all, seen), busy || seen.Active() > 0
	}
	if busy {
		time.Sleep(looked)
	}
	for _, seen := range all {
		var later *shared.Seen
		if seen.Active() > 0 {
			if later, _, err = shared.Look(ctx, s, seen.Name); err != nil {
				return err
			}
		}
		fmt.Fprintln(out, shown.Lines(seen.Name))
		for _, line := range seen.Words(later) {
			fmt.Fprintln(out, "  "+shown.Lines(line))
		}
	}
	return nil
}

func forgetShare(ctx context.Context, s share.Lister, out io.Writer, name string) error {
	seen, ok, err := shared.Look(ctx, s, name)
	if err == nil && !ok {
		err = fmt.Errorf("%q is not there: paceline share ls says what is", name)
	}
	if err == nil {
		err = s.Forget(ctx, name)
	}
	if err != nil {
		return err
	}
	says := "forgotten: whoever comes first says what it is, and waits 7 s and a window"
	if n := seen.Active(); n > 0 {
		says = fmt.Sprintf("forgotten, although %d use it: they send nothing for 7 s and a window", n)
	}
	_, err = fmt.Fprintln(out, says)
	return err
}
