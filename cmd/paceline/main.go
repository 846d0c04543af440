// Command paceline sends requests at the highest rate that a server's limits allow. If the command
// knows the limits, the server rejects no request for a limit. No request is lost: each ends with a
// result or as a dead letter. The verb try shows this: it sends requests to a strict server that it
// starts itself, and counts what that server rejected.
//
// The command has verbs, such as run and proxy. The names of most files begin with the name of
// their verb. Package internal/app/cli has the common parts of a command line, such as exit codes.
//
// # Files
//
//	main.go              the list of verbs
//	try.go               try: run against a server of its own
//	run*.go              run: flags, input, output, plan and report
//	by_upstream.go       run: --upstream, with the settings of an upstream in a file of the proxy
//	enqueue.go           enqueue: puts the requests of a file into a backlog
//	work.go              work: sends the requests of a backlog
//	backlog*.go          backlog: shows what is in a store; --backlog of run and others
//	given.go             run: inputs in forms that are not paceline's own
//	progress_run.go      run: the live line
//	watch_page.go        run: the page on which a run can be watched
//	success.go           run: --success, a jq expression
//	poll_flags.go        run: --every, requests that are asked again and again
//	via_flags.go         run: --via batch
//	token_flags.go       run: where {token} comes from
//	prompt_flags.go      run: a prompt of each row
//	meter_flags.go       run: the tokens that a server counts
//	signals.go           run: what the first Ctrl-C does, and the second
//	proxy*.go            proxy: flags, files, check, forward proxy and metrics
//	targets_in_words.go  proxy check: what targets an upstream has, in words
//	takeover.go          proxy: the next process takes over
//	forward_ca.go        proxy ca: the certificate of a forward proxy
//	minute_flags.go      run and proxy: --rpm and the flags like it
//	permit*.go           permit: a command that waits for its turn
//	exec*.go             exec: flags, and the proxy of a run
//	daemon*.go           daemon: the process that runs share; status and stop
//	serve*.go            serve: servers to test clients against
//	share*.go            share: limits that processes share through a store
//	explain*.go          explain: the meaning of an answer
//	models.go            models: the models that paceline knows, and their prices
//	provider_names.go    names for --provider and --preset
//	chart.go             chart: a page about a run
//	flag_values.go       values of flags, for completions
//	byte_size.go         flags for numbers of bytes
//	part_flag.go         flags for a part of a whole: 75%
//	notify_*.go          SIGUSR1, by system
//	help_flags.go        groups of flags, for help
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
		Groups: groupTable, Values: flagValues, Meant: meant, Reads: "run", Alike: groupProviders,
	}
}

func verbs() []cli.Verb {
	return []cli.Verb{
		{Name: "try", New: newTry}, {Name: "run", New: newRun}, {Name: "enqueue", New: newEnqueue}, {Name: "work", New: newWork},
		{Name: "backlog", New: newBacklog}, {Name: "proxy", New: newProxy},
		{Name: "exec", New: newExec}, {Name: "daemon", New: newDaemon}, {Name: "permit", New: newPermit},
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
