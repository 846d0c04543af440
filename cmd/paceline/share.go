package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/share"
)

const shareLong = `List the limits that processes share in a store (--share of run and proxy), remove one, or let a new one begin.

A STORE is sqlite:FILE, postgres://… or redis://…. It is safe to remove a limit. Its users then send nothing until no
earlier grant counts (7 s and a window). The first of them sets the limit anew, and may set another one.`

func newShare() *cobra.Command {
	return cli.Family(&cobra.Command{Use: "share", Short: "List, begin and remove limits that processes share in a store",
		Long: shareLong},
		&cobra.Command{
			Use: "ls STORE", Short: "List the limits in a store, with how many processes share each", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return withStore(cmd, args[0], listShares) },
		},
		&cobra.Command{
			Use: "show STORE [NAME]", Short: "Show who shares a limit, all of a --share-name or each, how much is used, and the grants",
			Args: cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withStore(cmd, args[0], func(ctx context.Context, s share.Lister, out io.Writer) error {
					return showShares(ctx, s, out, first(args[1:]))
				})
			},
		},
		&cobra.Command{
			Use: "new STORE [NAME]", Short: "State that nothing was sent lately, so that new limits begin at once",
			Long: shareNewLong, Args: cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error { return stateNew(cmd, args) },
		},
		&cobra.Command{
			Use: "forget STORE NAME", Short: "Remove a limit from a store", Args: cobra.ExactArgs(2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withStore(cmd, args[0], func(ctx context.Context, s share.Lister, out io.Writer) error {
					return forgetShare(ctx, s, out, args[1])
				})
			},
		})
}

const shareNewLong = `A limit that is new in its STORE sends nothing for 7 s and a window: of 5000/h, an hour. The reason is that a new store
looks like one that has lost its data. If nothing was sent to the server for at least that long, by any process, state it by this
command. For ten minutes, limits that are not there yet begin at once, if a process knows them at its start.

NAME is the --share-name of the limits (default "` + sharestore.DefaultName + `"). Limits that are there stay as they are.`

func stateNew(cmd *cobra.Command, args []string) error {
	name := sharestore.DefaultName
	if len(args) > 1 {
		name = args[1]
	}
	s, err := openStore(cmd.Context(), args[0])
	if err != nil {
		return cli.Exit(cli.ExitConfig, err)
	}
	defer s.Close()
	if err := sharestore.StateNew(cmd.Context(), s, name); err != nil {
		return cli.Exit(cli.ExitFailure, err)
	}
	_, err = fmt.Fprintf(cli.Harmless(cmd.OutOrStdout(), "text"), "limits of %s that are not there yet begin at once, until %s\n",
		text.Sanitize(name), time.Now().Add(sharestore.NewFor).Format(time.TimeOnly))
	return err
}

// first is the first of some arguments; "": there is none.
func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// withStore calls f with the store of an address.
func withStore(cmd *cobra.Command, address string, f func(context.Context, share.Lister, io.Writer) error) error {
	if file, ok := storeFile(address); ok && !isFile(file) {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: there is no such file", address))
	}
	s, err := openStore(cmd.Context(), address)
	if err != nil {
		return cli.Exit(cli.ExitConfig, err)
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
	defer cancel()
	if err := f(ctx, s.(share.Lister), cli.Harmless(cmd.OutOrStdout(), "text")); err != nil {
		return cli.Exit(cli.ExitFailure, err)
	}
	return nil
}

// longestName is the width of a name in a table, in columns. Of a longer name the end is shown,
// since names differ there.
const longestName = 48

// shortName is a name in the form of ls.
func shortName(name string) string { return screen.Tail(text.Sanitize(name), longestName) }

func listShares(ctx context.Context, s share.Lister, out io.Writer) error {
	all, err := lookAtAll(ctx, s, "")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return sayNone(out)
	}
	var rows screen.Table
	rows.Head("name", "limit", "nodes", "last turn")
	for _, seen := range all {
		is, nodes, turn := seen.Row()
		rows.Row(shortName(seen.Name), text.Sanitize(is), nodes, turn)
	}
	return rows.Write(out, screen.TableWidth)
}

func sayNone(out io.Writer) error {
	_, err := fmt.Fprintln(out, "there is no limit yet: the first run or proxy with --share makes one")
	return err
}

// lookUp is Look by the name on the command line: the whole name, or the end of a long one, as in
// ls.
func lookUp(ctx context.Context, s share.Lister, name string) (*sharestore.Seen, error) {
	seen, ok, err := sharestore.Look(ctx, s, name)
	if err != nil || ok {
		return seen, err
	}
	names, err := s.Names(ctx)
	if err != nil {
		return nil, err
	}
	like := slices.DeleteFunc(slices.Clone(names), func(is string) bool { return shortName(is) != name })
	if len(like) > 1 {
		return nil, fmt.Errorf("%d limits end like %q: expected the whole name of one, such as %q", len(like), name, like[0])
	}
	if len(like) == 1 {
		if seen, ok, err = sharestore.Look(ctx, s, like[0]); err != nil || ok {
			return seen, err
		}
	}
	names = slices.DeleteFunc(names, sharestore.IsStatement)
	for i := range names {
		names[i] = text.Sanitize(names[i])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%q is not there: the store has no limit", name)
	}
	return nil, fmt.Errorf("%q is not there: expected a --share-name, or one of: %s", name, text.Some(names, 10))
}

// writeFitted writes a line with text of strangers. A long line is broken; of a long word the end
// is shown.
func writeFitted(out io.Writer, indent, line string) {
	words := strings.Split(text.Sanitize(line), " ")
	for i := range words {
		words[i] = screen.Tail(words[i], screen.TableWidth-2*len("  "))
	}
	fmt.Fprintln(out, screen.Fit(indent+strings.Join(words, " "), screen.TableWidth))
}

// lookAtAll is Look of each limit. With a name it is of the limits below that --share-name, or else lookUp.
func lookAtAll(ctx context.Context, s share.Lister, name string) (all []*sharestore.Seen, err error) {
	names, err := s.Names(ctx)
	if err != nil {
		return nil, err
	}
	for _, is := range slices.DeleteFunc(names, sharestore.IsStatement) {
		if name != "" && is != name && !strings.HasPrefix(is, name+"/") {
			continue
		}
		seen, ok, err := sharestore.Look(ctx, s, is)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, seen)
		}
	}
	if name != "" && len(all) == 0 {
		seen, err := lookUp(ctx, s, name)
		return []*sharestore.Seen{seen}, err
	}
	return all, nil
}

// looked is the time between the two looks that give a rate.
const looked = time.Second

func showShares(ctx context.Context, s share.Lister, out io.Writer, name string) error {
	all, err := lookAtAll(ctx, s, name)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return sayNone(out)
	}
	if slices.ContainsFunc(all, func(seen *sharestore.Seen) bool { return seen.Active() > 0 }) {
		time.Sleep(looked)
	}
	for _, seen := range all {
		var later *sharestore.Seen
		if seen.Active() > 0 {
			if later, _, err = sharestore.Look(ctx, s, seen.Name); err != nil {
				return err
			}
		}
		writeFitted(out, "", seen.Name)
		for _, line := range seen.Words(later) {
			writeFitted(out, "  ", line)
		}
	}
	return nil
}

// forget removes a limit, and each statement that new limits may begin at once: of this one it is not true.
func forget(ctx context.Context, s share.Lister, name string) error {
	names, err := s.Names(ctx)
	if err != nil {
		return err
	}
	for _, key := range names {
		if sharestore.IsStatement(key) {
			err = errors.Join(err, s.Forget(ctx, key))
		}
	}
	return errors.Join(err, s.Forget(ctx, name))
}

func forgetShare(ctx context.Context, s share.Lister, out io.Writer, name string) error {
	seen, err := lookUp(ctx, s, name)
	if err == nil {
		err = forget(ctx, s, seen.Name)
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
