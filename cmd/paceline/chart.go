package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/text"
)

const chartLong = `Draw a page of a run. FILE has the results of paceline run (--out), or the log of paceline serve (--log).
The page has rates, refusals, waits, answers, and limits over time: the ceiling of a run, or the rest of
each limit of a server. Dead letters beside FILE are drawn, too. For a table of --select, the rows beside
the table are drawn.

The page is one HTML file that needs no network. Its first sentence is printed. paceline run --report
writes the same page when a run ends.

Runs of the simulator are drawn by paceline-lab sim --chart. paceline-lab chart draws any of these as SVG or PNG.`

// simulator is the error for runs of the simulator, which paceline-lab draws.
const simulator = "runs of the simulator are drawn by paceline-lab sim --chart"

func newChart() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "chart FILE",
		Short: "Draw the results of a paceline run, or the log of a paceline serve",
		Long:  chartLong,
		Example: `  paceline chart results.jsonl
  paceline chart results.jsonl --chart run.html`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(fmt.Errorf("%d files, expected one: results of paceline run, or a log of paceline serve; "+
					simulator, len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch err := report.Check(out); {
			case errors.Is(err, report.ErrName):
				return cli.Usage(fmt.Errorf("--chart %w; SVG and PNG are drawn by paceline-lab chart", err))
			case err != nil:
				return cli.Exit(cli.ExitConfig, fmt.Errorf("--chart %w", err))
			}
			log, err := report.Read(args[0], "")
			switch {
			case errors.Is(err, report.ErrNotLog):
				return cli.Exit(cli.ExitConfig, fmt.Errorf("%w; "+simulator, err))
			case errors.Is(err, fs.ErrNotExist):
				return cli.Exit(cli.ExitConfig, cli.NoSuchFile(args[0], err))
			case err != nil:
				return cli.Exit(cli.ExitConfig, err)
			}
			name := text.Sanitize(filepath.Base(args[0]))
			page := log.Page(name)
			if err := page.WriteFile(out); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%s drawn in %s: %s\n", name, text.Sanitize(out), page.Text)
			return nil
		},
	}
	c.Flags().StringVar(&out, "chart", "chart.html", "file to write: FILE.html")
	return c
}
