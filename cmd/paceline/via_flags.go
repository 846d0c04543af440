package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/viabatch"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/tokens"
)

// viaFlags have the provider's own batch API send what it can.
type viaFlags struct {
	via      string
	file     string // for a batch of rows
	enqueued int64
	poll     time.Duration

	brought viabatch.Brought
}

func (f *viaFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.via, "via", "requests", "how prompts go: requests, one by one; batch: through the provider's own batch API, at half the price, within a day. The same command again goes on with its batches. What they do not serve is sent one by one")
	p.StringVar(&f.file, "batch-file", "", "with --prompt-column: FILE to write the prompts of rows to, as a batch file for "+
		"--via batch; nothing is sent")
	p.Var((*countValue)(&f.enqueued), "enqueued", "with --via batch: most tokens of input, such as 30M, in batches of a model that have not ended (default: no bound)")
	p.DurationVar(&f.poll, "poll", 30*time.Second, "with --via batch: time between two looks at the batches")
}

// notByBatch are the flags that batches of the provider do not obey, and the way on.
var notByBatch = []struct{ flags, how string }{
	{"out-dir", "answers of a batch come in one file; expected --out FILE, and --select for some of their fields"},
	{"query", "a request of a batch has no address of its own; expected the command without --query"},
	{"budget", "what a batch costs is known when it has ended; expected --dry-run, whose row \"batch API\" has the most that it can cost"},
	{"share", "batches have limits of their own, which no store counts; expected the command without --share"},
	{"auth-command oauth-token-url", "a batch takes longer than a token is valid; expected --key-env"},
}

// check returns why the flags do not go together.
func (f *viaFlags) check(cmd *cobra.Command, of *runFlags) error {
	if others := givenOf(cmd, "via dry-run"); f.file != "" && len(others) > 0 {
		return fmt.Errorf("--batch-file with %s, expected one of the two", others[0])
	}
	switch {
	case f.via != "requests" && f.via != "batch":
		return fmt.Errorf("--via %q, expected requests or batch", f.via)
	case f.via != "batch":
		for _, name := range []string{"enqueued", "poll"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is for --via batch, expected that beside it", name)
			}
		}
		return nil
	case f.enqueued < 0:
		return fmt.Errorf("--enqueued %d, expected a number of tokens of 0 or more", f.enqueued)
	case f.poll <= 0:
		return fmt.Errorf("--poll %v, expected a time above 0s", f.poll)
	}
	for _, no := range notByBatch {
		for name := range strings.FieldsSeq(no.flags) {
			if l := cmd.Flags().Lookup(name); l != nil && l.Changed {
				return fmt.Errorf("--%s with --via batch: %s", name, no.how)
			}
		}
	}
	if of.out == "-" || of.nowhere != "" {
		return errors.New("--via batch takes hours, and the next command goes on where this one ended: " +
			"expected --out FILE")
	}
	return nil
}

// run gives the requests of a batch file, or of rows with prompts, to the provider's batch API, and waits for its
// results.
func (f *viaFlags) run(cmd *cobra.Command, of *runFlags, in *runInput, c *run.Config, signals <-chan os.Signal,
	errs *screen.Screen) error {
	if f.via != "batch" || of.llm.dryRun { // the plan has what batches cost
		return nil
	}
	b, err := f.config(of, in, c)
	if err != nil {
		return err
	}
	if c.RetryDead != 0 {
		c.Notice("--retry-dead with --via batch: what it sends again goes one by one, at the ordinary price; for half the price, " +
			"make another file of those requests, and send it with another --out")
	}
	if b.Run, err = run.New(*c); err != nil {
		return codeOf(err)
	}
	if err := of.check(b.Run, in, signals); err != nil || b.API == nil { // nil: there is no request
		return err
	}
	b.Each = func(each func(*format.Request) error) error {
		again, err := openRunInput(cmd, in.name) // one reading may begin within another
		if err != nil {
			return err
		}
		defer again.close()
		if _, err := again.begin(); err != nil {
			return err
		}
		return b.Run.Each(in.name, again.reader, each)
	}
	var at atomic.Pointer[viabatch.Progress]
	b.Progress = func(p viabatch.Progress) { at.Store(&p) }
	stop := errs.Follow(func() []screen.Line { return []screen.Line{nil, batchLine(at.Load())} })
	defer stop()
	ctx, cancel := context.WithCancelCause(cmd.Context())
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-ended:
		}
	}()
	f.brought, err = viabatch.Run(ctx, b)
	no, refused := errors.AsType[*viabatch.Refusal](err)
	switch {
	case errors.Is(err, errInterrupted):
		return cli.Exit(cli.ExitInterrupted, fmt.Errorf("interrupted: the provider goes on with the batches that it "+
			"has; the same command takes in their results (%s)", b.Ledger))
	case refused && (no.Status == http.StatusUnauthorized || no.Status == http.StatusForbidden):
		return cli.Exit(cli.ExitExhausted, fmt.Errorf("%w; expected another key in %s. With that, the same command "+
			"goes on", err, strings.Join(append(of.keyEnv, "--key-env")[:1], "")))
	case refused:
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%w; the same command is refused again until that is mended", err))
	case err != nil:
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%w; the same command goes on", err))
	}
	return nil
}

// config describes the batches of an input.
func (f *viaFlags) config(of *runFlags, in *runInput, c *run.Config) (b viabatch.Config, err error) {
	l, isBatch := c.Format.(*format.LLM)
	switch {
	case !isBatch && of.prompt.api == tokens.NoAPI:
		return b, cli.Usage(errors.New("--via batch is for batch files of OpenAI's or Anthropic's format (custom_id), " +
			"and for rows with --prompt-column"))
	case !in.isFile:
		return b, cli.Usage(errors.New("--via batch reads its input again when it goes on: expected a file"))
	case len(c.Keys) > 1:
		return b, cli.Usage(fmt.Errorf("--via batch with %d keys, expected one: a batch belongs to an account",
			len(c.Keys)))
	case len(format.Columns(c.Header...)) > 0:
		return b, cli.Usage(errors.New("--via batch with {row.COLUMN} in --header: a request of a batch has no header " +
			"of its own"))
	}
	b = viabatch.Config{Rows: !isBatch, Ledger: of.out + ".batches", Header: c.Header, Enqueued: f.enqueued,
		Poll: f.poll, Notice: c.Notice}
	if len(c.Keys) == 1 {
		b.Key = c.Keys[0]
	}
	if isBatch {
		b.Provider, b.Seller = l.Form(), l.Seller()
	} else {
		b.Provider, b.Seller = of.prompt.format(), c.Meter.Seller()
	}
	first, err := in.first(c.Format, c.Input)
	switch {
	case err != nil || first == nil: // nil: the check says what is wrong with the input
		return b, err
	case first.URL != nil:
		b.API = viabatch.Before(first.URL)
	}
	if b.API == nil {
		return b, cli.Usage(fmt.Errorf("--via batch with --url %s: expected /v1/ in its path, beside which the batch "+
			"API is", of.given.url))
	}
	return b, nil
}

// batchLine says how far the batches of a provider are; nil: nothing is known yet.
func batchLine(p *viabatch.Progress) (l screen.Line) {
	if p == nil {
		return nil
	}
	keep := func(rank int, color, format string, args ...any) {
		l = append(l, screen.Part{Rank: rank, Keep: true, Color: color, Forms: []string{fmt.Sprintf(format, args...)}})
	}
	if p.Batches > 0 {
		keep(rankDone, "", "%s of %s in %s done, as the provider counts", text.Thousands(int64(p.Done)),
			text.Count(p.Requests, "request", "requests"), text.Count(p.Batches, "batch", "batches"))
	}
	if p.Silent != "" {
		keep(rankFailed, screen.Red, "no service: %s", p.Silent)
	}
	if !p.Next.IsZero() {
		keep(rankETA, "", "next look at %s", p.Next.Local().Format(time.TimeOnly))
	}
	return l
}
