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

	"github.com/spf13/cobra"
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
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(stderr, "paceline:", msg)
	}
	if !began {
		return exitUsage
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "paceline",
		Short:         "Send at the highest rate a server allows, with zero rejects, losing nothing",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newVersion(), newRun(), newBench(), newServe())
	return root
}

// family is a verb that only has verbs below it. One that is not there is an error, where cobra would print the help.
func family(c *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q for \"paceline %s\"; see paceline %s --help", args[0], c.Name(), c.Name())
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	c.AddCommand(verbs...)
	return c
}
