//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newExec() *cobra.Command {
	return &cobra.Command{
		Use:                "exec [flags] -- PROGRAM [ARGUMENT...]",
		Short:              "Run a program as it is, within the limits of the servers that it calls (not on Windows)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("paceline exec is not for Windows, where a process cannot become another program; expected paceline proxy " +
				"--forward, and HTTPS_PROXY in the program's environment")
		},
	}
}
