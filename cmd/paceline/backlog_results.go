package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/text"
)

func newBacklogResults() *cobra.Command {
	var states []string
	var selection, form string
	c := &cobra.Command{Use: "results STORE [NAME]", Short: "Write the results, in the order of the input, also while workers are there",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r := work.Results{}
			var err error
			if r.States, err = work.States(states); err != nil {
				return cli.Usage(fmt.Errorf("--state %w", err))
			}
			if r.Format, err = batchForm(form); err != nil {
				return cli.Usage(err)
			}
			if r.Format != nil {
				if selection != "" {
					return cli.Usage(fmt.Errorf("--format %s with --select: the form of a batch has all of an answer; expected one of them", form))
				}
				form = string(output.JSONL)
			}
			switch shape, err := selected(selection, form, cmd.Flag("select").Changed); {
			case err != nil:
				return cli.Usage(err)
			case shape != nil:
				r.Shape = shape
				if len(states) == 0 {
					r.States = []backlog.State{backlog.Done}
				}
			}
			return withBacklogOf(cmd, args, false, func(ctx context.Context, o *opened, _ io.Writer) error {
				return writeResults(ctx, cmd, o, &r)
			})
		}}
	p := c.Flags()
	p.StringSliceVar(&states, "state", nil, "only results of these states: done, dead, expired, cancelled (default: all; with --select: done)")
	p.StringVar(&selection, "select", "", "fields to write instead of whole results, as jq expressions: 'id=.id, name=.body.name'")
	p.StringVar(&form, "format", string(output.JSONL), "with --select: jsonl, csv or tsv; without: jsonl, or openai-batch or anthropic-batch for prompts")
	return c
}

// batchForm is the form of a provider's batch; nil: another form is wanted.
func batchForm(form string) (format.Results, error) {
	for _, p := range []format.Provider{format.OpenAI, format.Anthropic} {
		if form == p.String() {
			return format.NewLLM(format.LLMConfig{Provider: p})
		}
	}
	return nil, nil
}

// selected is the shape of rows; nil: whole results are wanted.
func selected(selection, form string, given bool) (*output.Shape, error) {
	switch f := output.RowFormat(form); {
	case f != output.JSONL && f != output.CSV && f != output.TSV:
		return nil, fmt.Errorf("--format %q, expected jsonl, csv, tsv, %v or %v", form, format.OpenAI, format.Anthropic)
	case selection == "" && given:
		return nil, errors.New("--select is empty, expected such as 'id=.id, name=.body.name'")
	case selection == "" && f != output.JSONL:
		return nil, fmt.Errorf("--format %s without --select: a table needs columns, expected such as --select 'id=.id, "+
			"name=.body.name'", form)
	case selection == "":
		return nil, nil
	}
	shape, err := output.CompileShape(selection, output.RowFormat(form))
	if err != nil {
		return nil, fmt.Errorf("--select %w", err)
	}
	return shape, nil
}

// writeResults writes results to standard output, and says on standard error what is not there yet.
func writeResults(ctx context.Context, cmd *cobra.Command, o *opened, r *work.Results) error {
	errs := cli.Harmless(cmd.ErrOrStderr(), "text")
	out := bufio.NewWriterSize(text.SanitizeJSONTo(cmd.OutOrStdout()), 64<<10)
	r.Backlog, r.Out = o.Backlog, out
	r.Failed = func(id string, err error) {
		fmt.Fprintf(errs, "--select %v, of the answer to %q: that is null\n", err, id)
	}
	_, err := r.Write(ctx)
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		return err
	}
	n, err := o.Count(ctx)
	if err == nil && n.Left() > 0 {
		fmt.Fprintf(errs, "%s of %s requests have no result yet: paceline backlog show %s %s says why\n", text.Thousands(n.Left()),
			text.Thousands(n.Total), o.shown, text.Sanitize(o.Name()))
	}
	return err
}
