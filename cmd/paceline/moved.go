package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// newMoved is a verb that is now in paceline-lab, for one release. It prints the new command line.
func newMoved(verb string) *cobra.Command {
	const where = "paceline %s is a command of paceline-lab, the second program of a release:\n  %s\n" +
		"in a clone:\n  go run ./lab/cmd/%[2]s"
	return &cobra.Command{
		Use:    verb,
		Short:  "Moved to paceline-lab " + verb,
		Long:   fmt.Sprintf(where, verb, "paceline-lab "+verb),
		Hidden: true,
		// All flags are those of the other program, --help too.
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			words := append([]string{"paceline-lab", verb}, args...)
			if verb == "bench" && len(args) > 0 && args[0] == "proof" { // bench has no verb proof any more
				words = append([]string{"paceline-lab"}, args...)
			}
			for i := range words {
				words[i] = cli.Quoted(words[i])
			}
			return cli.Usage(fmt.Errorf(where, verb, strings.Join(words, " ")))
		},
	}
}
