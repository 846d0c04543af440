package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/lab/chart"
)

const chartLong = `Draw a run of paceline-lab sim again. Runs are kept in paceline/runs of the user's cache
folder, the latest 50, or in the folder that PACELINE_RUNS names. RUN is the name of one of them, or a file;
without it the latest is drawn.

The results of a paceline run and the log of a paceline serve are drawn, too, as paceline chart does: rates,
refusals, waits, answers, and limits over time. The first sentence of the page is printed.

The kind of picture is that of the file's suffix: .svg, .png, or .html, one file that needs no network.`

func newChart() *cobra.Command {
	var out string
	var list bool
	c := &cobra.Command{
		Use:   "chart [RUN]",
		Short: "Draw a run of sim again, or the results of a paceline run",
		Long:  chartLong,
		Example: `  paceline-lab chart
  paceline-lab chart --list
  paceline-lab chart 20260314-150926-cold-10 --chart cold.svg
  paceline-lab chart results.jsonl --chart run.png`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("want one run at most, got %d arguments", len(args)))
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
				return cli.Usage(fmt.Errorf("--chart: %w", err))
			}
			if err := cli.FolderOf(out); err != nil {
				return cli.Exit(cli.ExitConfig, fmt.Errorf("--chart %w", err))
			}
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			page, name, err := loadPage(name)
			if err != nil {
				return err
			}
			if err := chart.WriteFile(out, page); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s drawn in %s: %s\n", sanitize.Text(name), sanitize.Text(out), page.Text)
			return nil
		},
	}
	c.Flags().StringVar(&out, "chart", "chart.html", "file to write: .svg, .png or .html")
	c.Flags().BoolVar(&list, "list", false, "list the stored runs, the latest first")
	return c
}

// loadPage draws a stored run, or a log as paceline chart does. It also returns the name of the
// run.
func loadPage(name string) (report.Page, string, error) {
	log, err := report.Read(name, "")
	if err == nil {
		return log.Page(sanitize.Text(filepath.Base(name))), name, nil
	}
	if name != "" && !errors.Is(err, report.ErrNotLog) && !errors.Is(err, fs.ErrNotExist) {
		return report.Page{}, "", cli.Exit(cli.ExitConfig, err)
	}
	run, name, err := loadRun(name)
	if err != nil {
		return report.Page{}, "", err
	}
	page, err := run.page()
	return page, name, err
}
