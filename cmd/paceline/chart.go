package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/lab/chart"
)

const chartLong = `Draw a run of paceline sim again. Runs are kept in paceline/runs of the user's cache folder, the latest 50, or in the folder
that PACELINE_RUNS names. RUN is the name of one of them, or a file; without it the latest is drawn.

The results of paceline run (--out) and what paceline serve logs (--log) are drawn, too: rates, refusals, waits, answers, and limits
over time (the ceiling of a run, and what was left of each limit of a server). What is printed is the picture's caption.

The kind of picture is that of the file's suffix: .svg, .png, or .html, one file that needs no network.`

func newChart() *cobra.Command {
	var out string
	var list bool
	c := &cobra.Command{
		Use:   "chart [RUN]",
		Short: "Draw a run of paceline sim or run, or the log of a paceline serve",
		Long:  chartLong,
		Example: `  paceline chart
  paceline chart --list
  paceline chart 20260314-150926-cold-10 --chart cold.svg
  paceline chart results.jsonl --chart run.png`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("want one run at most, got %d arguments", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				names, err := storedRuns()
				if err != nil {
					return err
				}
				for _, name := range names {
					fmt.Fprintln(cmd.OutOrStdout(), sanitize.Text(name))
				}
				return nil
			}
			if err := chart.CheckPath(out); err != nil {
				return usageError{fmt.Errorf("--chart: %w", err)}
			}
			if err := folderOf(out); err != nil {
				return exitError{exitConfig, fmt.Errorf("--chart %w", err)}
			}
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			figure, isLog, err := loadLog(name)
			if !isLog && err == nil {
				var run *storedRun
				if run, name, err = loadRun(name); err == nil {
					figure, err = run.figure()
				}
			}
			if err != nil {
				return err
			}
			if err := chart.WriteFile(out, figure); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s drawn in %s: %s\n", sanitize.Text(name), sanitize.Text(out), figure.Caption)
			return nil
		},
	}
	c.Flags().StringVar(&out, "chart", "chart.html", "file to write: .svg, .png or .html")
	c.Flags().BoolVar(&list, "list", false, "list the stored runs, the latest first")
	return c
}
