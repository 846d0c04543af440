package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// interruptible has the first signal end the context of a verb.
func interruptible(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		cmd.SetContext(ctx)
		return run(cmd, args)
	}
}

// printReport writes a report to out, as JSON or by text. Its error is that of writing, or it says that
// something was interrupted, or what failed.
func printReport(out io.Writer, output string, report any, text func(io.Writer) error, interrupted bool, failed string) error {
	err := error(nil)
	if output == "json" {
		err = cli.WriteJSON(out, report)
	} else {
		err = text(out)
	}
	switch {
	case err != nil:
		return err
	case interrupted:
		return cli.Exit(cli.ExitInterrupted, errors.New("interrupted: what was finished is printed"))
	case failed != "":
		return cli.Exit(cli.ExitFailure, errors.New(failed))
	}
	return nil
}
