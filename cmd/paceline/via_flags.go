package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/viabatch"
)

// viaFlags have the provider's own batch API send what it can.
type viaFlags struct {
	via      string
	file     string // for a batch of rows
	enqueued int64
	poll     time.Duration

	told bool // a summary of the batches
}

func (f *viaFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.via, "via", "requests", "how a batch file goes: requests, one by one; batch: through the provider's own batch API, at half the price, within a day. The same command again goes on with its batches. What they do not serve is sent one by one")
	p.StringVar(&f.file, "batch-file", "", "with --prompt-column: FILE to write the prompts of rows to, as a batch file for "+
		"--via batch; nothing is sent")
	p.Int64Var(&f.enqueued, "enqueued", 0, "with --via batch: most tokens of input in batches of a model that have not ended (default: no bound)")
	p.DurationVar(&f.poll, "poll", 30*time.Second, "with --via batch: time between two looks at the batches")
}

// notByBatch are the flags that batches of the provider do not obey, and the way on.
var notByBatch = []struct{ flags, how string }{
	{"select ordered out-format out-dir", "its results are whole lines in the provider's format, in the order in which batches end; " +
		"expected --out FILE.jsonl, and after it jq for columns (docs/batch.md)"},
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
	case of.out == "-" || of.nowhere != "":
		return errors.New("--via batch takes hours, and the next command goes on where this one ended: expected --out FILE")
	}
	for _, no := range notByBatch {
		for name := range strings.FieldsSeq(no.flags) {
			if l := cmd.Flags().Lookup(name); l != nil && l.Changed {
				return fmt.Errorf("--%s with --via batch: %s", name, no.how)
			}
		}
	}
	return nil
}

// run gives the requests of a batch file to the provider's batch API, and waits for its results.
func (f *viaFlags) run(ctx context.Context, of *runFlags, in *runInput, c *run.Config, signals <-chan os.Signal) error {
	if f.via != "batch" || of.llm.dryRun { // the plan has what batches cost
		return nil
	}
	l, is := c.Format.(*format.LLM)
	switch {
	case !is:
		return cli.Usage(errors.New("--via batch is for batch files of OpenAI's or Anthropic's format (custom_id)"))
	case !in.isFile:
		return cli.Usage(errors.New("--via batch reads its input again when it goes on: expected a file"))
	case c.Table != "":
		return cli.Usage(fmt.Errorf("--via batch with --out %s: results of a batch are lines in the provider's "+
			"format; expected a .jsonl file", c.Out))
	case len(c.Keys) > 1:
		return cli.Usage(fmt.Errorf("--via batch with %d keys, expected one: a batch belongs to an account", len(c.Keys)))
	}
	if c.RetryDead != 0 {
		c.Notice("--retry-dead with --via batch: what it sends again goes one by one, at the ordinary price; for half the price, " +
			"make another file of those requests, and send it with another --out")
	}
	files := output.Config{Out: c.Out, Dead: c.Dead, Format: c.Format}
	files.Name()
	b := viabatch.Config{Format: l, Input: in.name, Limits: c.Input, Out: files.Out, Dead: files.Dead, Header: c.Header,
		Enqueued: f.enqueued, Poll: f.poll, Notice: c.Notice}
	judge, err := newUnsent(*c)
	if err != nil {
		return err
	}
	b.Judge = func(q *format.Request, status int, body []byte) viabatch.Verdict {
		return viabatch.Verdict(judge.Judge(q, status, body))
	}
	if len(c.Keys) == 1 {
		b.Key = c.Keys[0]
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	interrupted := make(chan struct{})
	go func() {
		select {
		case <-signals:
			close(interrupted)
			cancel()
		case <-ended:
		}
	}()
	f.told, err = viabatch.Run(ctx, b)
	select {
	case <-interrupted:
		return cli.Exit(cli.ExitInterrupted, fmt.Errorf("interrupted: the provider goes on with the batches that it has; the same command takes in their results (%s.batches)", files.Out))
	default:
	}
	if err != nil {
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%w; the same command goes on", err))
	}
	return nil
}
