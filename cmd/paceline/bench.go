package main

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	return family(&cobra.Command{
		Use:   "bench",
		Short: "Measure what Paceline does against servers that enforce their limits",
	}, newBenchExchange(), newBenchProof(), newBenchLLM(), newBenchProxy())
}
