//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newPermit() *cobra.Command {
	return &cobra.Command{
		Use:                "permit [flags] NAME -- COMMAND [ARGUMENT...]",
		Short:              "Wait for the turn at a limit of the daemon, and run a command (not on Windows)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("paceline permit is not for Windows, where the daemon has no socket; expected a paceline.Gate in Go")
		},
	}
}
