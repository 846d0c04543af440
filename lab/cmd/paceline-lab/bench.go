package main

import (
	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func newBench() *cobra.Command {
	return cli.Family(&cobra.Command{
		Use:   "bench",
		Short: "Measure what Paceline does against servers that enforce their limits",
	}, newBenchExchange(), newBenchLLM())
}
