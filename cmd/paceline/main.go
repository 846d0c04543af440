// Command paceline sends requests at the highest rate a server's limits allow, with no rejects and nothing lost, and
// measures that it does.
//
// Each verb has a file of its own. Exit codes are in exit.go.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/near"
	"github.com/paceline-go/paceline/internal/shown"
)

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// execute runs a command line and returns its exit code.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	began := false // what fails before a verb began is the command line
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
		fmt.Fprintln(stderr, "paceline:", shown.Lines(msg))
	}
	if !began {
		return exitUsage
	}
	return exitCode(err)
}

// fromEnvironment sets the flags that the command line leaves out: --key-env from PACELINE_KEY_ENV.
func fromEnvironment(flags *pflag.FlagSet) (err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || err != nil {
			return
		}
		name := "PACELINE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && v != "" {
			if bad := flags.Set(f.Name, v); bad != nil {
				err = fmt.Errorf("%s: %w", name, bad)
			}
		}
	})
	return err
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "paceline",
		Short: "Send at the highest rate a server allows, with zero rejects, losing nothing",
		Long: "Send at the highest rate a server allows, with zero rejects, losing nothing.\n\n" +
			"A flag that is not given is read from the environment: --key-env from PACELINE_KEY_ENV.",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newVersion(), newRun(), newBench(), newSim(), newChart(), newServe(), newExplain(), newModels())
	return root
}

// family is a verb that only has verbs below it. One that is not there is an error, where cobra would print the help.
func family(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			var names []string
			for _, verb := range c.Commands() {
				names = append(names, verb.Name())
			}
			return fmt.Errorf("unknown command %q for \"paceline %s\"%s; see paceline %s --help", args[0], c.Name(), near.Or(args[0], names), c.Name())
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(verbs...)
	return c
}
