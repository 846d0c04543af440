package main

import "github.com/spf13/cobra"

func newServe() *cobra.Command {
	return family(&cobra.Command{
		Use:   "serve",
		Short: "Run a rate-limited server to test clients against",
	}, newServeExchange())
}
