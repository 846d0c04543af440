package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/lab/soak"
)

const soakStrangersLong = `Send through every door of Paceline to a server that behaves as strangers' servers do. It counts strictly. It
compresses its answers, serves in part, refuses within 200 and in words, repeats keys, and fails after it has served.

The doors are paceline run, paceline proxy with clients that ask for any coding, and three Pools that share a limit
through a store that goes back in time.

It counts what the promises forbid: requests above the limit, or before the time that a refusal had said; requests that
were served twice and named nowhere; lost requests; files with a key in them. It ends with exit code 1 if there is one.`

func newSoak() *cobra.Command {
	return cli.Family(&cobra.Command{Use: "soak", Short: "Hours before a server that behaves as strangers' servers do"},
		newSoakStrangers())
}

func newSoakStrangers() *cobra.Command {
	var (
		config                   soak.Config
		paceline, output, folder string
	)
	c := &cobra.Command{
		Use:   "strangers",
		Short: "run, proxy and Pool against a server that compresses, serves in part, and speaks in words",
		Long:  soakStrangersLong,
		Example: `  paceline-lab soak strangers --for 30m
  paceline-lab soak strangers --for 1m --dir soak -o json`,
		Args: cli.NoArguments,
		RunE: interruptible(func(cmd *cobra.Command, _ []string) (err error) {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			if config.Paceline, err = findPaceline(paceline, self); err != nil {
				return cli.Exit(cli.ExitConfig, err)
			}
			if config.Dir = folder; folder == "" {
				if config.Dir, err = os.MkdirTemp("", "paceline-soak"); err != nil {
					return err
				}
				defer os.RemoveAll(config.Dir)
			} else if err := os.Mkdir(folder, 0o700); err != nil {
				return cli.Exit(cli.ExitConfig, err)
			}
			told := cli.Following(screen.New(cmd.ErrOrStderr(), screen.Config{Every: cli.Every, After: time.Second}),
				func(elapsed time.Duration) screen.Share { return cli.OfTime(elapsed, config.For, elapsed) })
			report, err := soak.Run(cmd.Context(), config)
			told()
			if err != nil {
				return err
			}
			return printReport(cmd.OutOrStdout(), output, report, report.WriteText, false, report.Failed())
		}),
	}
	f := c.Flags()
	f.DurationVar(&config.For, "for", 30*time.Minute, "how long requests are made")
	f.Uint64Var(&config.Seed, "seed", 1, "what the server does")
	f.StringVar(&paceline, "paceline", "",
		"the program paceline; if not given, the one beside this program, or else of PATH")
	f.StringVar(&folder, "dir", "", "a new folder for what the programs write; if not given, it is removed at the end")
	cli.OutputFlag(c, &output, "text", "json")
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
