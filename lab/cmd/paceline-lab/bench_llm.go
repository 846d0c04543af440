package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/lab/sim"
)

const benchLLMLong = `Run clients of a language model, ours and others, against limits of 500 requests and 30,000 tokens in any minute, in
virtual time: 2,000 prompts with lognormal sizes and latencies, all made at the start, evenly, in bursts, and mixed.

The server counts a request at its arrival with the tokens it really has, which no client knows before the answer; what
would put more than a limit into any minute is refused. The ideal is the shortest time in which any order could have the
same prompts arrive.

Ours are a Gate before both limits, as it is recommended for language models: filled from the next 64 in line. The rows that
end in -strict are first come, first served.

The first row is what a user gets of whom nothing is known but when the answers came. The rows that end in -documented are against the
server that OpenAI documents: a bucket of each, of which a request takes the larger of its input and max_tokens.

A table of its own is about a server that counts output as it is produced, as Anthropic's does: 8,000 tokens a minute, and prompts
of up to 4,096.

It ends with exit code 1 if one of ours loses a prompt, or is refused one (paceline-estimated: more than 0.1 %).`

func newBenchLLM() *cobra.Command {
	var (
		prompts, seeds   int
		arrivals, output string
	)
	c := &cobra.Command{
		Use:   "llm",
		Short: "Requests and tokens per minute of a language model: rejects, losses, share of the ideal",
		Long:  benchLLMLong,
		Example: `  paceline-lab bench llm
  paceline-lab bench llm -o json
  paceline-lab bench llm --arrivals burst --seeds 100`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) error {
			loads := bench.LLMArrivals
			if arrivals != "" {
				loads = nil
				for _, a := range bench.LLMArrivals {
					if a.String() == arrivals {
						loads = []sim.LLMArrivals{a}
					}
				}
			}
			switch {
			case loads == nil:
				return cli.Usage(fmt.Errorf("--arrivals %q: want start, uniform, burst or mixed", arrivals))
			case prompts < 1 || prompts > 1_000_000:
				return cli.Usage(fmt.Errorf("--prompts %d is not from 1 to 1000000", prompts))
			case seeds < 1 || seeds > 10_000:
				return cli.Usage(fmt.Errorf("--seeds %d is not from 1 to 10000", seeds))
			}
			runs, told := cli.Computing(cmd.ErrOrStderr(), "runs")
			report, err := bench.RunLLM(cmd.Context(), prompts, seeds, loads, runs.Count)
			told()
			if cmd.Context().Err() != nil {
				return cli.Exit(cli.ExitInterrupted, errors.New("interrupted"))
			}
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), output, &report, report.WriteText, false, report.Failed())
		}),
	}
	f := c.Flags()
	f.IntVar(&prompts, "prompts", 2000, "how many prompts each run has")
	f.IntVar(&seeds, "seeds", 10, "how many runs of each row")
	f.StringVar(&arrivals, "arrivals", "", "start, uniform, burst or mixed; if not given, all of them")
	cli.OutputFlag(c, &output, "text", "json")
	return c
}
