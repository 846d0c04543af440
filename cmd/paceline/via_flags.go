package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	for _, name := range []string{"dry-run", "budget", "select", "ordered", "out-format", "out-dir", "share", "auth-command", "oauth-token-url"} {
		if l := cmd.Flags().Lookup(name); l != nil && l.Changed {
			return fmt.Errorf("--%s with --via batch, expected one of the two", name)
		}
	}
	return nil
}

// run gives the requests of a batch file to the provider's batch API, and waits for its results.
func (f *viaFlags) run(ctx context.Context, in *runInput, c *run.Config, signals <-chan os.Signal) error {
	if f.via != "batch" {
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
	files := output.Config{Out: c.Out, Dead: c.Dead, Format: c.Format}
	files.Name()
	b := viabatch.Config{Format: l, Input: in.name, Limits: c.Input, Out: files.Out, Dead: files.Dead, Header: c.Header,
		Enqueued: f.enqueued, Poll: f.poll, Notice: c.Notice}
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
	var err error
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
