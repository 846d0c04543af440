package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
)

const enqueueLong = `Add the requests of FILE to a backlog: a list that many processes send together, with paceline work. FILE has any of the
forms that paceline run reads. The whole file is checked before its first request is added. Requests whose ids are there already
are passed over, so the same command may run again.

Keys stay out of the backlog: paceline work fills {key} in when it sends.`

// enqueueFlags are the flags of enqueue.
type enqueueFlags struct {
	runFlags
	priority int
	at       string
	secrets  bool
}

func newEnqueue() *cobra.Command {
	f := enqueueFlags{runFlags: newRunFlags()}
	f.limits, f.llm.count, f.llm.stores = []string{"none"}, "documented", true
	c := &cobra.Command{
		Use: "enqueue [FILE|-]", Short: "Add a file of HTTP requests to a backlog", Long: enqueueLong,
		Example: "  paceline enqueue requests.jsonl --backlog sqlite:jobs.db\n" +
			"  paceline enqueue people.csv --url 'https://h.example/{row.email}' --backlog postgres://db/jobs\n" +
			"  paceline enqueue q.csv --prompt-column q --model gpt-5 --preset openai:tier1 --backlog sqlite:j.db",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().NFlag() == 0 {
				return cli.Usage(errors.New("expected a FILE of requests (- is standard input) and --backlog sqlite:FILE or postgres://…"))
			}
			return f.run(cmd, append(args, "-")[0])
		},
	}
	p := c.Flags()
	f.backlog.add(p)
	f.given.add(p)
	f.prompt.add(p)
	p.StringVar(&f.llm.format, "format", "auto", "format of the input: jsonl, openai-batch, anthropic-batch; auto: by the first line")
	p.StringVar(&f.llm.baseURL, "base-url", "", "address for the requests of a batch, or for prompts (default: the provider's own)")
	p.StringVar(&f.llm.preset, "preset", "", "with --prompt-column: whose API it is, such as openai:tier1. Limits are for paceline work")
	p.StringArrayVarP(&f.headers, "header", "H", nil, "'Name: value' with {row.COLUMN} for every request, kept in the backlog; repeatable")
	p.StringArrayVar(&f.query, "query", nil, "'name=value' with {row.COLUMN} for the query of every request, likewise; repeatable")
	p.IntVar(&f.priority, "priority", 0, "added to the priority of each request: a step puts it a minute before others")
	p.DurationVar(&f.ttl, "ttl", 0, "deadline of requests without their own, as a duration from now, or from their field created (default: for ever)")
	p.StringVar(&f.at, "at", "", "nothing goes before: a time of day (22:00), an instant as in RFC 3339, or a duration")
	p.BoolVar(&f.secrets, "store-secrets", false, "keep requests that have secrets of their own, such as an Authorization. All who read the store see them")
	p.BoolVar(&f.skipInvalid, "skip-invalid", false, "leave out invalid lines instead of adding nothing")
	p.Var(&f.maxLine, "max-line", "longest line of the input")
	p.Var(&f.maxHeader, "max-header", "largest headers of a request")
	p.Var(&f.maxBody, "max-body", "largest body of a request")
	return c
}

func (f *enqueueFlags) run(cmd *cobra.Command, name string) error {
	if f.backlog.store == "" {
		return cli.Usage(errors.New("--backlog is required, expected sqlite:FILE or postgres://…"))
	}
	if f.ttl < 0 {
		return cli.Usage(fmt.Errorf("--ttl %v, expected at least 0s", f.ttl))
	}
	if err := errors.Join(f.llm.known(), f.prompts(cmd)); err != nil {
		return cli.Usage(err)
	}
	due, err := parseUntil(f.at, time.Now())
	if err != nil {
		return cli.Usage(fmt.Errorf("--at %w", err))
	}
	c := run.Config{SkipInvalid: f.skipInvalid, TTL: f.ttl,
		Input:  format.InputLimits{Line: int(f.maxLine), Header: int(f.maxHeader), Body: int(f.maxBody)},
		Notice: func(s string) { fmt.Fprintln(cmd.ErrOrStderr(), s) }}
	if c.Header, err = format.ParseHeaders(f.headers); err != nil {
		return cli.Usage(fmt.Errorf("--header %w", err))
	}
	if c.Query, err = format.ParseQuery(f.query); err != nil {
		return cli.Usage(fmt.Errorf("--query %w", err))
	}
	if err := f.prompt.config(&f.runFlags, &c); err != nil {
		return err
	}
	in, err := openRunInput(cmd, name)
	if err != nil {
		return err
	}
	defer in.close()
	if err := f.format(cmd, in, &c); err != nil {
		return err
	}
	if err := kept(&c); err != nil {
		return cli.Usage(err)
	}
	signals, stop := notified()
	defer stop()
	r, err := newUnsent(c)
	if err != nil {
		return err
	}
	if err := f.check(r, in, signals); err != nil {
		return err
	}
	a := &work.Adder{Priority: f.priority, Due: due, Counted: in.isMetered, Storing: format.Storing{Read: time.Now(), TTL: f.ttl, Secrets: f.secrets}}
	o, err := f.adding(cmd.Context(), a, r, in, signals)
	if err != nil {
		return err
	}
	defer o.close()
	_, err = fmt.Fprintln(cmd.OutOrStdout(), addedWords(a, o))
	return err
}

// kept finds what --header and --query say and the backlog would not keep.
func kept(c *run.Config) error {
	const instead = "; expected at paceline work, which sends"
	for _, of := range []struct {
		flag    string
		all     []format.Template
		private func(format.Template) bool
	}{
		{"header", c.Header, func(t format.Template) bool { return secret.PrivateField(t.Name()) }},
		{"query", c.Query, func(t format.Template) bool {
			return secret.PrivateParameter(t.Name(), t.Fill(&format.Values{}))
		}},
	} {
		for _, t := range of.all {
			_, fixed := t.Fixed()
			for _, word := range []string{"key", "token", "nonce", "attempt"} {
				if t.Has(word) {
					return fmt.Errorf("--%s %s has {%s}, which is filled in when a request is sent%s", of.flag, t.Name(), word,
						instead)
				}
			}
			switch {
			case fixed && of.private(t):
				return fmt.Errorf("--%s %s is a secret, which a backlog does not keep%s", of.flag, t.Name(), instead)
			case c.Format == nil:
				return fmt.Errorf("--%s %s: a backlog keeps requests in JSONL as they are; expected in the requests, or at "+
					"paceline work, which sends", of.flag, t.Name())
			}
		}
	}
	return nil
}

// newUnsent returns a run that only reads its input.
func newUnsent(c run.Config) (*run.Run, error) {
	c.Out, c.Dead, c.Shape, c.Stdout, c.Backlog, c.Share = "-", "", nil, io.Discard, nil, nil
	r, err := run.New(c)
	if err != nil {
		return nil, codeOf(err)
	}
	return r, nil
}

// adding opens the backlog, and adds the requests of an input. Before that, it checks an input that can be read twice.
func (f *runFlags) adding(ctx context.Context, a *work.Adder, r *run.Run, in *runInput, signals <-chan os.Signal) (o *opened, err error) {
	if in.isFile {
		err = interruptible(signals, func() error { return a.Check(r, in.name, in.reader) })
		if err == nil {
			_, err = in.reader.(io.Seeker).Seek(0, io.SeekStart)
		}
	}
	if err == nil {
		if o, err = f.backlog.open(ctx, false); err != nil {
			return nil, err
		}
		err = interruptible(signals, func() error { return a.From(ctx, o.Backlog, r, in.name, in.reader) })
	}
	switch {
	case err == nil:
		return o, nil
	case errors.Is(err, errInterrupted):
		if o != nil { // the reader is left behind: what it has read is added
			err = a.Flush(ctx, o.Backlog)
		}
		return nil, cli.Exit(cli.ExitInterrupted, errors.Join(fmt.Errorf("interrupted; %s, and the same command again adds the rest",
			addedText(a.Count())), err))
	}
	if o != nil {
		o.close()
	}
	if errors.Is(err, run.ErrInput) || isInputError(err) {
		return nil, cli.Exit(cli.ExitConfig, fmt.Errorf("%w; %s", err, addedText(a.Count())))
	}
	return nil, cli.Exit(cli.ExitFailure, fmt.Errorf("%w; %s, and the same command again adds the rest", err, addedText(a.Count())))
}

func isInputError(err error) bool {
	_, is := errors.AsType[*format.InputError](err)
	return is
}

func addedText(n int) string {
	if n == 0 {
		return "nothing was added"
	}
	return text.Count(n, "was added", "were added")
}

// addedWords say what was added.
func addedWords(a *work.Adder, o *opened) string {
	line := fmt.Sprintf("%s of %s requests added to %s, backlog %s", text.Thousands(int64(a.Added)),
		text.Thousands(int64(a.Read)), o.shown, o.Name())
	if there := a.Read - a.Added; there > 0 {
		line += fmt.Sprintf("; %s were there already", text.Thousands(int64(there)))
	}
	if a.Differing > 0 {
		line += fmt.Sprintf(", %s of them with other content, which stays: the first is %s",
			text.Thousands(int64(a.Differing)), text.Sanitize(a.First))
	}
	return line
}
