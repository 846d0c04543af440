package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/proxybench"
)

const benchProxyLong = `Measure paceline proxy beside Go's ReverseProxy. Each is a process of its own before the same server; they take turns, and
the figures are medians of rounds.

How much later an answer comes, what processor time a request takes, how many a second get through, when the first
event of a stream is there. No limit is in the way.

It needs Linux. It ends with exit code 1 if something could not be measured.`

func newBenchProxy() *cobra.Command {
	var output string
	config := proxybench.Config{Peer: []string{"bench", "proxy", "peer"}}
	paceline := ""
	c := &cobra.Command{
		Use:   "proxy",
		Short: "paceline proxy beside ReverseProxy: latency, CPU, requests a second",
		Long:  benchProxyLong,
		Example: `  paceline-lab bench proxy
  paceline-lab bench proxy --rounds 1 --requests 500 -o json`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) (err error) {
			if err := config.Check(); err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			if config.Self, err = os.Executable(); err != nil {
				return err
			}
			if config.Paceline, err = findPaceline(paceline, config.Self); err != nil {
				return cli.Exit(cli.ExitConfig, err)
			}
			rows, told := cli.Computing(cmd.ErrOrStderr(), "rounds")
			config.Told = func(done, all int) { rows.Set(done, all) }
			report, err := proxybench.Run(cmd.Context(), config)
			told()
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), output, report, report.WriteText, report.Interrupted, report.Failed())
		}),
	}
	f := c.Flags()
	f.StringVar(&paceline, "paceline", "",
		"the program paceline that is measured; if not given, the one beside this program, or else of PATH")
	f.IntVar(&config.Rounds, "rounds", 5, "how often each is measured; figures are medians")
	f.IntVar(&config.Requests, "requests", 3000, "requests one after the other in a round, and ten times as many at once")
	cli.OutputFlag(c, &output, "text", "json")
	c.AddCommand(newBenchPeer())
	return c
}

// findPaceline returns the path of the program paceline: the file that is named, or the one beside self, or that of
// PATH.
func findPaceline(named, self string) (string, error) {
	if named != "" {
		if info, err := os.Stat(named); err != nil || info.IsDir() {
			folder := fmt.Errorf("%s is a folder, expected a program", named)
			return "", fmt.Errorf("--paceline: %w", cmp.Or(err, folder))
		}
		return filepath.Abs(named)
	}
	beside := filepath.Join(filepath.Dir(self), "paceline"+filepath.Ext(self))
	if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
		return beside, nil
	}
	if path, err := exec.LookPath("paceline"); err == nil {
		return filepath.Abs(path)
	}
	return "", errors.New("no program paceline is beside this one or in PATH; " +
		"in a clone: go build ./cmd/paceline, and then --paceline ./paceline")
}

// newBenchPeer is the verb that bench proxy runs as a process to compare with.
func newBenchPeer() *cobra.Command {
	return &cobra.Command{
		Use:    "peer ADDRESS URL",
		Short:  "A process of paceline-lab bench proxy: a ReverseProxy before URL",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return proxybench.Serve(args[0], args[1])
		},
	}
}
