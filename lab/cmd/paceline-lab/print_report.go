package main

import (
	"errors"
	"io"

	"github.com/paceline-go/paceline/internal/app/cli"
)

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
