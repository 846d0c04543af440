package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/text"
)

const backlogLong = `Look at backlogs, and change them. A backlog is a list of requests that many processes send together (paceline enqueue, paceline
work, paceline run --backlog). A STORE is sqlite:FILE or postgres://…. Without a NAME it is the backlog "default".
For ls, show, pause and resume, PACELINE_BACKLOG may have the STORE.`

func newBacklog() *cobra.Command {
	return cli.Family(&cobra.Command{Use: "backlog", Short: "Look at lists of requests that many processes send together", Long: backlogLong},
		&cobra.Command{
			Use: "ls STORE", Short: "List the backlogs of a store, with how much of each is left", Args: cobra.MaximumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				args, err := withStoreOf(args)
				if err != nil {
					return err
				}
				s, err := openBacklogs(cmd.Context(), args[0], true)
				if err != nil {
					return err
				}
				defer s.Close()
				return failed(listBacklogs(cmd.Context(), s, cli.Harmless(cmd.OutOrStdout(), "text")))
			},
		},
		backlogVerb("show", "Show how far a backlog is, and its workers", showBacklog),
		backlogVerb("pause", "Let nothing more of a backlog go, within a second", func(ctx context.Context, o *opened, out io.Writer) error {
			if err := o.Pause(ctx); err != nil {
				return err
			}
			return sayOf(out, o, "paused: what is in flight is still answered, and workers wait")
		}),
		backlogVerb("resume", "Let a backlog go on after a pause", func(ctx context.Context, o *opened, out io.Writer) error {
			if err := o.Resume(ctx); err != nil {
				return err
			}
			return sayOf(out, o, "goes on within a second")
		}),
		newBacklogCancel(), newBacklogRetry(), newBacklogResults(), newBacklogRemove())
}

// backlogVerb is a verb for one backlog that is there.
func backlogVerb(name, short string, f func(context.Context, *opened, io.Writer) error) *cobra.Command {
	return &cobra.Command{Use: name + " STORE [NAME]", Short: short, Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := withStoreOf(args)
			if err != nil {
				return err
			}
			return withBacklog(cmd, args, f)
		}}
}

// withStoreOf returns the arguments STORE [NAME]. Without a STORE, the variable of --backlog has it, as for enqueue.
func withStoreOf(args []string) ([]string, error) {
	if len(args) > 0 && (len(args) == 2 || isStoreAddress(args[0])) {
		return args, nil
	}
	store := os.Getenv("PACELINE_BACKLOG")
	if store == "" && len(args) == 0 {
		return nil, cli.Usage(errors.New("no STORE, expected sqlite:FILE or postgres://…, or one in PACELINE_BACKLOG"))
	}
	if store == "" {
		return args, nil
	}
	return append([]string{store}, args...), nil
}

// withBacklog calls f with the backlog of STORE and NAME, whatever program it is of.
func withBacklog(cmd *cobra.Command, args []string, f func(context.Context, *opened, io.Writer) error) error {
	return withBacklogOf(cmd, args, true, f)
}

// withBacklogOf is withBacklog, for one of run or of any program.
func withBacklogOf(cmd *cobra.Command, args []string, any bool, f func(context.Context, *opened, io.Writer) error) error {
	flags := backlogFlags{store: args[0], name: defaultBacklog, any: any}
	if len(args) > 1 {
		flags.name = args[1]
	}
	o, err := flags.open(cmd.Context(), true)
	if err != nil {
		return err
	}
	defer o.close()
	return failed(f(cmd.Context(), o, cli.Harmless(cmd.OutOrStdout(), "text")))
}

func failed(err error) error {
	if err == nil || cli.Code(err) != cli.ExitFailure {
		return err
	}
	return cli.Exit(cli.ExitFailure, err)
}

func sayOf(out io.Writer, o *opened, line string) error {
	_, err := fmt.Fprintf(out, "%s: %s\n", text.Sanitize(o.Name()), line)
	return err
}

func listBacklogs(ctx context.Context, s backlog.Store, out io.Writer) error {
	all, err := s.List(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "there is no backlog yet: paceline enqueue makes one")
		return err
	}
	var rows screen.Table
	rows.Head("name", "state", "requests", "left", "dead", "workers")
	for _, info := range all {
		n, err := s.Count(ctx, info.ID)
		if err != nil {
			return err
		}
		workers, err := s.Workers(ctx, info.ID)
		if err != nil {
			return err
		}
		rows.Row(shortName(info.Name), stateOf(&info, &n), text.Thousands(n.Total), text.Thousands(n.Left()),
			text.Thousands(n.Dead), strconv.Itoa(len(livingOf(workers))))
	}
	return rows.Write(out, screen.TableWidth)
}

func stateOf(info *backlog.Info, n *backlog.Counts) string {
	switch {
	case info.Paused:
		return "paused"
	case n.Left() == 0:
		return "finished"
	}
	return "open"
}

func requestsOf(n int64) string {
	if n == 1 {
		return "1 request"
	}
	return text.Thousands(n) + " requests"
}

func livingOf(all []backlog.WorkerStatus) []backlog.WorkerStatus {
	return slices.DeleteFunc(slices.Clone(all), func(w backlog.WorkerStatus) bool { return w.Dead })
}

func showBacklog(ctx context.Context, o *opened, out io.Writer) error {
	info, err := o.Info(ctx)
	if err != nil {
		return err
	}
	n, err := o.Count(ctx)
	if err != nil {
		return err
	}
	all, err := o.Workers(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s\n", text.Sanitize(info.Name), stateOf(&info, &n))
	counts := []string{requestsOf(n.Total)}
	for _, c := range []struct {
		n    int64
		what string
	}{
		{n.Done, "done"}, {n.Dead, "dead"}, {n.Expired, "expired"}, {n.Cancelled, "cancelled"},
		{n.Ready, "ready"}, {n.Held, "with workers"}, {n.Later, "later"}, {n.Repeats, "possible repeats"},
	} {
		if c.n > 0 {
			counts = append(counts, text.Thousands(c.n)+" "+c.what)
		}
	}
	fmt.Fprintln(out, screen.Fit("  "+strings.Join(counts, ", "), screen.TableWidth))
	if len(all) == 0 {
		_, err := fmt.Fprintln(out, "  no worker was there yet")
		return err
	}
	var rows screen.Table
	rows.Head("worker", "process", "has", "may have sent", "results", "")
	for _, w := range all {
		is, sending := "", w.Sending
		if w.Dead {
			is, sending = work.End(&w), 0
		}
		rows.Row(strconv.FormatInt(w.ID, 10), fmt.Sprintf("%d on %s", w.PID, text.Sanitize(w.Host)), text.Thousands(w.Held),
			text.Thousands(sending), text.Thousands(w.Results), is)
	}
	return rows.Write(out, screen.TableWidth)
}

func newBacklogCancel() *cobra.Command {
	all := false
	c := &cobra.Command{Use: "cancel STORE NAME ID…", Short: "Cancel requests that no worker has", Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids := args[2:]
			if all == (len(ids) > 0) {
				return cli.Usage(errors.New("expected the ids of requests, or --all"))
			}
			return withBacklog(cmd, args[:2], func(ctx context.Context, o *opened, out io.Writer) error {
				n, err := o.Cancel(ctx, ids...)
				if all {
					n, err = o.CancelAll(ctx)
				}
				if err != nil {
					return err
				}
				text := text.Count(n, "request is cancelled", "requests are cancelled")
				if n < len(ids) {
					text += "; the others are with a worker, have a result, or are not there"
				}
				return sayOf(out, o, text)
			})
		}}
	c.Flags().BoolVar(&all, "all", false, "all requests that no worker has and that have no result")
	return c
}

func newBacklogRetry() *cobra.Command {
	classes := ""
	c := &cobra.Command{Use: "retry-dead STORE [NAME]", Short: "Send dead requests again", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := format.ParseDead(classes)
			if err != nil || set.Has(format.DeadUnselected) {
				all := (format.AllDead | 1<<format.DeadLength).Names()
				return cli.Usage(fmt.Errorf("--class %s, expected all, or some of %s", classes, strings.Join(all, ", ")))
			}
			names := set.Names()
			if classes == "all" {
				names = nil
			}
			return withBacklog(cmd, args, func(ctx context.Context, o *opened, out io.Writer) error {
				n, err := o.RetryDead(ctx, names...)
				if err != nil {
					return err
				}
				return sayOf(out, o, text.Count(n, "request waits again", "requests wait again"))
			})
		}}
	c.Flags().StringVar(&classes, "class", "all", "classes of the dead: outage, limited and others (see docs/results.md)")
	return c
}

func newBacklogRemove() *cobra.Command {
	force := false
	c := &cobra.Command{Use: "rm STORE NAME", Short: "Remove a backlog, with all its requests and results", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withBacklog(cmd, args, func(ctx context.Context, o *opened, out io.Writer) error {
				all, err := o.Workers(ctx)
				if err != nil {
					return err
				}
				if n := len(livingOf(all)); n > 0 && !force {
					return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %s there, and would lose what is in flight; expected it without them, "+
						"or --force", o.Name(), text.Count(n, "worker is", "workers are")))
				}
				if err := o.Remove(ctx); err != nil {
					return err
				}
				return sayOf(out, o, "removed")
			})
		}}
	c.Flags().BoolVar(&force, "force", false, "also while workers are there: they end, and what they have in flight is lost")
	return c
}
