package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/lab/chart"
)

const chartLong = `Draw the results of a paceline run, or the log of a paceline serve, as paceline chart does: rates, refusals, waits,
answers, and limits over time. The first sentence of the page is printed. A run of sim is drawn by its --chart.

The kind of picture is that of the file's suffix: .svg, .png, or .html, one file that needs no network.`

func newChart() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "chart FILE",
		Short:   "Draw the results of a paceline run as a picture",
		Long:    chartLong,
		Example: `  paceline-lab chart results.jsonl --chart run.png`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("want one file of results, got %d arguments", len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkChart(out); err != nil {
				return err
			}
			log, err := report.Read(args[0], "")
			if err != nil {
				return cli.Exit(cli.ExitConfig, cli.NoSuchFile(args[0], err))
			}
			page := log.Page(text.Sanitize(filepath.Base(args[0])))
			if err := chart.WriteFile(out, page); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s drawn in %s: %s\n", text.Sanitize(args[0]), text.Sanitize(out), page.Text)
			return nil
		},
	}
	c.Flags().StringVar(&out, "chart", "chart.html", "file to write: .svg, .png or .html")
	return c
}
