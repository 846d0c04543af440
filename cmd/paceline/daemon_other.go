//go:build !unix

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

func newDaemon() *cobra.Command {
	return &cobra.Command{
		Use:                "daemon",
		Short:              "Run the process that this user's runs share (not on Windows)",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("paceline daemon is not for Windows; expected paceline proxy, which many programs may share")
		},
	}
}

// leads is no variable here: there is no exec.
const leads, captures = "PACELINE_EXEC", "capture"

// recentFolder is empty: runs note nothing here.
func recentFolder() (string, error) { return "", nil }
