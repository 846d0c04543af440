package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/baselines"
)

const simPublishedLong = `What five published systems claim of themselves, and what comes of it when it is run again in their own set-up: an
exchange client, the README of the rate_throttle_client gem, the demo before it, gates for language models, and rolling
counters for trading. Each claim is printed with our rerun, a verdict (confirmed, in part, refuted) and why.

All is in virtual time, and takes some seconds; docs/published.md is the same as a page. With --seeds other than 20 a
verdict may be another one than that which its why explains.`

func newSimPublished() *cobra.Command {
	var output string
	var seeds int
	c := &cobra.Command{
		Use:   "published",
		Short: "Rerun what published systems claim, and say what comes of it",
		Long:  simPublishedLong,
		Example: `  paceline-lab sim published
  paceline-lab sim published --seeds 100 -o json`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			if seeds < 1 || seeds > 1_000_000 {
				return cli.Usage(fmt.Errorf("--seeds %d is not from 1 to 1000000", seeds))
			}
			runs, told := cli.Computing(cmd.ErrOrStderr(), "runs of a document")
			p, err := baselines.Run(cmd.Context(), seeds, runs.Count)
			told()
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), output, p, p.WriteText, p.Interrupted, "")
		}),
	}
	c.Flags().IntVar(&seeds, "seeds", publishedSeeds, "how many runs of each; those of the exchange a tenth")
	cli.OutputFlag(c, &output, "text", "json")
	return c
}

// publishedSeeds is the number of seeds behind docs/published.md.
const publishedSeeds = 20
