package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
)

const workLong = `Send the requests of a backlog, beside any number of other processes that do the same. All of them keep to the limits together.
Each request has one result. What may have been sent twice is named (possible_repeat), and nothing else is.

A process that dies or is suspended loses nothing: others send what it had, 15 s later. The first Ctrl-C waits for the requests in
flight, and gives the others back.

Exit codes are those of paceline run.`

func newWork() *cobra.Command {
	f := newRunFlags()
	untilEmpty := false
	c := &cobra.Command{
		Use: "work", Short: "Send the requests of a backlog, with others, within one limit", Long: workLong,
		Example: "  paceline work --backlog sqlite:jobs.db --limit 20/s --until-empty\n" +
			"  paceline work --backlog postgres://db/jobs --backlog-name mails --limit 200/s\n" +
			"  paceline work --backlog sqlite:j.db --preset openai:tier1 --key-env KEY --key-host api.openai.com",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.work(cmd, untilEmpty) },
	}
	f.add(c)
	c.Flag("concurrency").Usage = "most requests in flight; unset: 64" // other workers are there for what is slow
	c.Flags().BoolVar(&untilEmpty, "until-empty", false, "end when each request of the backlog has a result (default: wait for more)")
	for _, all := range []refusals{notWithBacklog, notAtWork, ofOneRun} {
		for _, r := range all {
			hide(c, r.flags)
		}
	}
	return c
}

// work is the verb work.
func (f *runFlags) work(cmd *cobra.Command, untilEmpty bool) error {
	if f.backlog.store == "" {
		return cli.Usage(errors.New("--backlog is required, expected sqlite:FILE or postgres://…"))
	}
	if err := errors.Join(refuses(cmd, append(notAtWork, ofOneRun...), "paceline work"), f.backlog.check(cmd)); err != nil {
		return cli.Usage(err)
	}
	c, err := f.config(cmd)
	if err != nil {
		return err
	}
	if err := f.backlog.suits(&c); err != nil {
		return cli.Usage(err)
	}
	if err := f.atBase(&c); err != nil {
		return cli.Usage(fmt.Errorf("--base-url: %w", err))
	}
	errs, err := newScreen(f.console.screen(cmd), f)
	if err != nil {
		return err
	}
	c.Notice = errs.Line
	c.Log = f.logger(cmd, errs)
	o, err := f.backlog.open(cmd.Context(), true)
	if err != nil {
		return err
	}
	defer o.close()
	note, err := work.ReadNote(cmd.Context(), o.Backlog)
	if err != nil {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", o.shown, err))
	}
	if err := f.suits(cmd, &runInput{name: "the backlog", note: &note}, &c); err != nil {
		return err
	}
	if what := cmp.Or(templateOf(&c, "key"), templateOf(&c, "token")); what != "" && len(c.KeyHosts) == 0 {
		return cli.Usage(fmt.Errorf("%s without --key-host: a backlog has requests of any origin, and keys go only to servers that are "+
			"named; expected --key-host HOST", what))
	}
	signals, stop := notified()
	defer stop()
	return f.drain(cmd, c, o, untilEmpty, signals, errs)
}

// atBase lets the keys go to the host of --base-url, if no --key-host names another.
func (f *runFlags) atBase(c *run.Config) error {
	if f.llm.baseURL == "" || len(c.KeyHosts) > 0 {
		return nil
	}
	u, err := format.ParseBase(f.llm.baseURL)
	if err == nil {
		c.KeyHosts = secret.Places{secret.PlaceOf(u)}
	}
	return err
}

// drain sends requests of a backlog until it is empty, or a signal comes. When requests to another model come, it
// begins again with limits for that one, too.
func (f *runFlags) drain(cmd *cobra.Command, c run.Config, o *opened, untilEmpty bool, signals <-chan os.Signal, errs *screen.Screen) error {
	if l, is := c.Format.(*format.LLM); is {
		c.Meter = l.Meter
	}
	failed := false
	for {
		grown, err := f.drainKnown(cmd, c, o, untilEmpty, signals, errs)
		switch code := cli.Code(err); {
		case grown && (code == cli.ExitOK || code == cli.ExitSomeFailed):
			failed = failed || code == cli.ExitSomeFailed
			errs.Line("requests to another model are in the backlog: this process begins again, with limits for it")
		case code == cli.ExitOK && failed:
			return cli.Exit(cli.ExitSomeFailed, nil)
		default:
			return err
		}
	}
}

// drainKnown is drain, until there are other models than it knew at its beginning: grown.
func (f *runFlags) drainKnown(cmd *cobra.Command, c run.Config, o *opened, untilEmpty bool, signals <-chan os.Signal,
	errs *screen.Screen) (grown bool, err error) {
	ctx := cmd.Context()
	watch, err := f.watch.listen()
	if err != nil {
		return false, err
	}
	defer watch.close()
	if c.Share, err = f.sharing.store.Open(ctx, c.Log); err != nil {
		return false, err
	}
	defer c.Share.Close()
	before, err := beforeWords(ctx, o)
	var note work.Note
	if err == nil {
		err = o.agrees(ctx, c.Division(), sending.ToMoney(c.Budget))
	}
	if err == nil {
		note, err = work.ReadNote(ctx, o.Backlog)
	}
	if err != nil {
		return false, cli.Exit(cli.ExitConfig, fmt.Errorf("%s: %w", o.shown, err))
	}
	source, err := work.NewSource(ctx, f.session(o, untilEmpty, errs), len(note.Models), max(leastAhead, min(cmp.Or(c.Concurrency, run.AtFirst)/2, c.Queue)))
	if err != nil {
		return false, err
	}
	c.Backlog, c.Models, c.Queue = source, note.Models, max(c.Queue, leastAhead)
	c.Format, c.Shape, c.Out, c.Dead, c.Stdout, c.InputInfo = nil, nil, "-", "", io.Discard, nil
	c.Header, c.Query = format.WithoutRows(c.Header), format.WithoutRows(c.Query)
	defer func() { err = errors.Join(err, givenBack(source, o)) }()
	r, err := run.New(c)
	if err != nil {
		return false, codeOf(err)
	}
	defer cli.Overhear(r.Tell)()
	if err := r.Open(); err != nil {
		return false, codeOf(err)
	}
	errs.Line(before)
	whole := work.Watch(ctx, o.Backlog, func(s backlog.WorkerStatus) { errs.Line(work.Name(&s) + ": " + work.End(&s)) })
	defer whole.Stop()
	in := &runInput{reader: source, name: "the backlog", note: &note, whole: whole.Words}
	h, letGo := f.control(r, in, errs.Line)
	defer letGo()
	if err := watch.serve("paceline work "+o.Name(), r, whole.Lines, errs.Line, h); err != nil {
		return false, err
	}
	source.Follow(r.Drain)
	if err := errors.Join(f.send(ctx, r, in, signals, errs), unspentBack(r, o)); err != nil {
		return source.Grown(), err
	}
	return source.Grown(), source.Err()
}

// session describes the session of a process, with a line for each trouble of the store.
func (f *runFlags) session(o *opened, untilEmpty bool, errs *screen.Screen) backlog.SessionConfig {
	return backlog.SessionConfig{Backlog: o.Backlog, UntilEmpty: untilEmpty, Notice: func(err error) {
		switch {
		case err == nil:
			errs.Line(o.shown + " answers again")
		case errors.Is(err, backlog.ErrWentBack):
			errs.Line(fmt.Sprintf("%s: %v. What this process sent since may go again, and is named. What a process sent that died in "+
				"that time may go again, and nothing names it", o.shown, err))
		default:
			errs.Line(fmt.Sprintf("%s: %v; nothing new is sent until it answers", o.shown, err))
		}
	}}
}

// leastAhead is how many requests may wait in the process for their turn at the highest rate, whatever --concurrency is.
const leastAhead = 4

// closing is how long the end of a process waits for the store.
const closing = 20 * time.Second

// givenBack gives back what was not sent.
func givenBack(s *work.Source, o *opened) error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%s: %w; what it does not know is sent again by others, and named", o.shown, err))
	}
	return nil
}

// unspentBack gives back what the process took of the budget and did not spend.
func unspentBack(r *run.Run, o *opened) error {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	rest := r.Unspent()
	if err := work.GiveBack(ctx, o.Backlog, rest); err != nil {
		err = fmt.Errorf("%s: %w; %v of the budget count as spent, and are not", o.shown, err, rest)
		return cli.Exit(cli.ExitFailure, err)
	}
	return nil
}

// beforeWords say how far a backlog is.
func beforeWords(ctx context.Context, o *opened) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	n, err := o.Count(ctx)
	if err != nil {
		return "", err
	}
	all, err := o.Workers(ctx)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("backlog %s: %s, %s ended before; %s here before this one", text.Sanitize(o.Name()), requestsOf(n.Total),
		text.Thousands(n.Total-n.Left()), text.Count(len(livingOf(all)), "worker", "workers"))
	info, err := o.Info(ctx)
	if err == nil && info.Paused {
		text += "; it is paused (paceline backlog resume)"
	}
	return text, err
}

// logger is the log on standard error.
func (f *runFlags) logger(cmd *cobra.Command, errs *screen.Screen) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.logLevel)) // config has checked it
	f.log = slog.New(slog.NewTextHandler(f.console.log(cmd, errs), &slog.HandlerOptions{Level: level}))
	return f.log
}
