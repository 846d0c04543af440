package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/eventlog"
	"github.com/paceline-go/paceline/lab/strategy"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newProgram().Execute(ctx, args, stdin, stdout, stderr)
}

const programLong = `The laboratory of Paceline: clients that share a quota in a simulator, benches against servers
that enforce their limits, and the proof that the limiters are never refused.

In a clone of the repository: go run ./lab/cmd/paceline-lab COMMAND. A release has it beside the program paceline.

A flag that is not given is read from the environment, of any command that has it: --seeds from PACELINE_SEEDS.
NO_COLOR and CLICOLOR_FORCE are heeded.

Exit codes: 0 done; 1 failure, or a promise that is not kept; 2 a wrong command line; 3 a log of events
does not keep its limit; 4 bad configuration or input; 130 interrupted.`

func newProgram() cli.Program {
	return cli.Program{
		Root: func() *cobra.Command {
			return &cobra.Command{
				Use: "paceline-lab", Short: "Simulate, measure and prove what Paceline does", Long: programLong,
			}
		},
		Verbs: []cli.Verb{
			{Name: "sim", New: newSim}, {Name: "bench", New: newBench}, {Name: "proof", New: newProof},
			{Name: "chart", New: newChart}, {Name: "check-log", New: newCheckLog},
		},
		Reads: "sim", Groups: groups,
		Values: func() map[string]map[string][]string {
			return map[string]map[string][]string{
				"bench llm":    {"arrivals": {"start", "uniform", "burst", "mixed"}},
				"check-log":    {"unit": eventlog.Units},
				"sim":          {"strategy": strategy.Names()},
				"sim throttle": {"strategies": strategy.Names()},
			}
		},
		Meant: map[string]string{
			"rate": "limit", "rps": "limit", "qps": "limit", "rpm": "limit", "rate-limit": "limit", "throttle": "limit",
			"r": "limit", "l": "limit",
		},
	}
}
