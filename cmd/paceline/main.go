// Command paceline sends requests at the highest rate a server's limits allow, with no rejects and nothing lost, and
// measures that it does.
//
// Each verb has a file of its own. Package internal/app/cli has what a command line is made of, exit codes too.
package main

import (
	"context"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newProgram().Execute(ctx, args, stdin, stdout, stderr)
}

func newRoot() *cobra.Command { return newProgram().Command(os.Stdout) }

func newProgram() cli.Program {
	return cli.Program{
		Root:   newProgramRoot,
		Verbs:  verbs(),
		Groups: groupTable, Values: flagValues, Meant: meant, Reads: "run", Alike: groupProviders,
	}
}

func verbs() []cli.Verb {
	return []cli.Verb{
		{Name: "try", New: newTry}, {Name: "run", New: newRun}, {Name: "proxy", New: newProxy}, {Name: "share", New: newShare},
		{Name: "chart", New: newChart}, {Name: "serve", New: newServe}, {Name: "explain", New: newExplain},
		{Name: "models", New: newModels},
		{Name: "sim", New: func() *cobra.Command { return newMoved("sim") }},
		{Name: "bench", New: func() *cobra.Command { return newMoved("bench") }},
	}
}

func newProgramRoot() *cobra.Command {
	return &cobra.Command{
		Use:   "paceline",
		Short: "Send at the highest rate a server allows, with zero rejects, losing nothing",
		Long: "Send at the highest rate a server allows, with zero rejects, losing nothing.\n\n" +
			"A flag that is not given is read from the environment, of any command that has it: --key-env from PACELINE_KEY_ENV, " +
			"--log-level from PACELINE_LOG_LEVEL; what can be given more than once, once. " +
			"NO_COLOR and CLICOLOR_FORCE are heeded, and HTTPS_PROXY where requests are sent.\n\n" +
			"Exit codes: 0 done; 1 failure; 2 a wrong command line; 3 finished, and some requests failed; 4 bad configuration or input; " +
			"5 a deadline, an outage or a budget; 6 every key is banned; 130 interrupted.",
	}
}
