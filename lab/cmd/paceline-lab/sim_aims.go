package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/lab/targets"
)

// runAims runs paceline-lab sim throttle --aims.
func (s *simThrottle) runAims(ctx context.Context, cmd *cobra.Command) error {
	name := oursName()
	if len(s.strategies) == 1 {
		name = s.strategies[0]
	}
	law, err := strategy.Named(name)
	if err != nil {
		return cli.Usage(fmt.Errorf("--strategies: %w", err))
	}
	if len(targets.Chosen(s.only)) == 0 {
		return cli.Usage(fmt.Errorf("--only %q: no scenario with an aim has a name that begins with it; without --only all "+
			"are shown", s.only))
	}
	runs, told := cli.Computing(cmd.ErrOrStderr(), "runs")
	result, err := targets.Run(ctx,
		targets.Config{Strategy: law, First: s.first, Last: s.last, Only: s.only, Progress: runs.Count})
	told()
	if err != nil {
		return err
	}
	err = printReport(cmd.OutOrStdout(), s.output, &result, result.WriteText, result.Interrupted, "")
	if err == nil && s.check {
		err = result.Check()
	}
	return err
}
