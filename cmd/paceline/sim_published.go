package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/bench"
)

const simPublishedLong = `Run again, in virtual time and with many seeds, the runs that the author of the rate_throttle_client gem published, and
say where each published value falls in the spread of ours. Each published one is a single run, of an earlier code than
the gem's. Then compare shares of jitter, and ways in which the threads of a process share a sleep.`

func newSimPublished() *cobra.Command {
	var output string
	var seeds int
	c := &cobra.Command{
		Use:   "published",
		Short: "Rerun the published runs of the strategies that others wrote",
		Long:  simPublishedLong,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output %q: want text or json", output)}
			}
			if seeds < 1 || seeds > 1_000_000 {
				return usageError{fmt.Errorf("--seeds %d is not from 1 to 1000000", seeds)}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			p, err := bench.RunPublished(ctx, seeds, throttleProgress(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			write := p.WriteText
			if output == "json" {
				write = p.WriteJSON
			}
			if err := write(cmd.OutOrStdout()); err != nil {
				return err
			}
			if p.Interrupted {
				return exitError{exitInterrupted, errors.New("interrupted: what was finished is printed")}
			}
			return nil
		},
	}
	c.Flags().IntVar(&seeds, "seeds", 100, "how many runs of each")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}
