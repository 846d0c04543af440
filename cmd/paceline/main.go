// Command paceline sends requests at the highest rate a server's limits allow, with no rejects and nothing lost, and
// measures that it does.
//
// Each verb has a file of its own. Exit codes are in exit.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text/sanitize"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootTo(stdout)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetErr(stderr)
	began := false // an error from before a verb began is a wrong command line
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := fromEnvironment(cmd.Flags()); err != nil {
			return err
		}
		began = true
		return nil
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if msg := err.Error(); msg != "" {
		screen.New(stderr, screen.Config{}).Ours("paceline: " + sanitize.Lines(msg))
	}
	if !began {
		return exitUsage
	}
	return exitCode(err)
}

// fromEnvironment sets flags that are missing on the command line from environment variables, such as --key-env from PACELINE_KEY_ENV.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || isHelp(f) || f.Name == "version" || err != nil {
			return
		}
		name := "PACELINE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && v != "" {
			if bad := flags.Set(f.Name, v); bad != nil {
				err = fmt.Errorf("%s: %w", name, bad)
				if invalid := new(pflag.InvalidValueError); errors.As(bad, &invalid) {
					err = fmt.Errorf("%s%w", name, badValue(invalid))
				}
			}
		}
	})
	return err
}

func newRoot() *cobra.Command { return newRootTo(os.Stdout) }

// newRootTo returns the root command, which prints to stdout. The command for completions needs stdout when it is made.
func newRootTo(stdout io.Writer) *cobra.Command {
	root := family(&cobra.Command{
		Use:   "paceline",
		Short: "Send at the highest rate a server allows, with zero rejects, losing nothing",
		Long: "Send at the highest rate a server allows, with zero rejects, losing nothing.\n\n" +
			"A flag that is not given is read from the environment, of any command that has it: --key-env from PACELINE_KEY_ENV, " +
			"--log-level from PACELINE_LOG_LEVEL; what can be given more than once, once. PACELINE_RUNS is the folder of stored runs of sim. " +
			"NO_COLOR and CLICOLOR_FORCE are heeded, and HTTPS_PROXY where requests are sent.\n\n" +
			"Exit codes: 0 done; 1 failure; 2 a wrong command line; 3 finished, and some requests failed; 4 bad configuration or input; " +
			"5 a deadline, an outage or a budget; 6 every key is banned; 130 interrupted.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}, newVersion(), newRun(), newProxy(), newShare(), newBench(), newSim(), newChart(), newServe(), newExplain(), newModels())
	addVersionFlag(root)
	root.SetOut(stdout)
	root.SetFlagErrorFunc(flagError)
	addHelp(root)
	addCompletions(root)
	return root
}

// family makes c a verb that only has verbs below it. An unknown verb below it is an error; cobra alone would print the help instead.
func family(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.Use += " COMMAND"
	c.DisableFlagsInUseLine = true
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(verbs...)
	return c
}
