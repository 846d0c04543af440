package main

import (
	"context"
	"io"
	"os"
	_ "time/tzdata" // zones of --limit, also where the machine has none

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newProgram().Execute(ctx, args, stdin, stdout, stderr)
}

func newProgram() cli.Program {
	return cli.Program{
		Root:   newProgramRoot,
		Verbs:  verbs(),
		Groups: groupTable, Values: completions, Meant: meant, Reads: "run", Alike: groupProviders,
		AsJSON: logsJSON,
	}
}

func verbs() []cli.Verb {
	return []cli.Verb{
		{Name: "try", New: newTry}, {Name: "run", New: newRunWithFile}, {Name: "enqueue", New: newEnqueue}, {Name: "work", New: newWork},
		{Name: "backlog", New: newBacklog}, {Name: "proxy", New: newProxy},
		{Name: "exec", New: newExec}, {Name: "daemon", New: newDaemon}, {Name: "ctl", New: newCtl}, {Name: "permit", New: newPermit},
		{Name: "share", New: newShare}, {Name: "chart", New: newChart}, {Name: "serve", New: newServe}, {Name: "explain", New: newExplain},
		{Name: "models", New: newModels},
	}
}

func newProgramRoot() *cobra.Command {
	return &cobra.Command{
		Use:   "paceline",
		Short: "Send at the highest rate a server allows, with zero rejects, losing nothing",
		Long: "Send at the highest rate a server allows, with zero rejects, losing nothing.\n\n" +
			"Each flag has an environment variable, which holds if the flag is not given: PACELINE_KEY_ENV for " +
			"--key-env, PACELINE_LOG_LEVEL for --log-level. A repeatable flag has one value there. The program " +
			"follows NO_COLOR and CLICOLOR_FORCE. To send requests, it uses HTTP_PROXY, HTTPS_PROXY and " +
			"ALL_PROXY.\n\n" +
			"Exit codes: 0 done; 1 failure; 2 a wrong command line; 3 finished, and some requests failed; 4 bad configuration " +
			"or input; " +
			"5 a deadline, an outage or a budget; 6 every key is out of use; 130 interrupted.",
	}
}
