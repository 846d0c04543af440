package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
)

// consoleFlags say how much a run prints on standard error.
type consoleFlags struct{ quiet, verbose, tui bool }

func (f *consoleFlags) add(p *pflag.FlagSet) {
	p.BoolVarP(&f.quiet, "quiet", "q", false, "no progress, no notices and no summary, but errors")
	p.BoolVarP(&f.verbose, "verbose", "v", false, "a line per answer and expiry on standard error, as --log-level debug")
	p.BoolVar(&f.tui, "tui", false, "the whole terminal shows limits, keys, failures and messages, and keys change the run; at the end the summary stands there")
}

// wholeScreen says why --tui cannot be; nil: it can. mixed says that results go to a terminal.
func (f *consoleFlags) wholeScreen(s *screen.Screen, mixed bool) error {
	if f.quiet {
		return errors.New("-q and --tui: one asks for nothing and the other for all, expected one of them")
	}
	if mixed {
		return errors.New("--tui: the results go to the terminal, too; expected --out FILE")
	}
	if err := canFill(s); err != nil {
		return fmt.Errorf("--tui: %w; expected a terminal, or --page for a page in a browser", err)
	}
	return nil
}

// setLevel sets --log-level for -v or -q.
func (f *consoleFlags) setLevel(cmd *cobra.Command, level *string) error {
	given := cmd.Flag("log-level").Changed
	switch {
	case f.quiet && f.verbose:
		return errors.New("-q and -v: one asks for less and the other for more, expected one of them")
	case f.verbose && given && *level != "debug":
		return fmt.Errorf("-v is --log-level debug, and there is --log-level %s, too; expected one of them", *level)
	case f.verbose:
		*level = "debug"
	case f.quiet && !given:
		*level = "error"
	}
	return nil
}

// screen returns the writer for notices, the progress and the summary.
func (f *consoleFlags) screen(cmd *cobra.Command) io.Writer {
	if f.quiet {
		return io.Discard
	}
	return cmd.ErrOrStderr()
}

// log returns the writer for the log, which prints above the progress if there is one.
func (f *consoleFlags) log(cmd *cobra.Command, screen io.Writer) io.Writer {
	if f.quiet {
		return cmd.ErrOrStderr()
	}
	return screen
}

// ended adds to the error of a quiet run the number of failed requests, and the reason. Other runs
// print them in the summary.
func (f *consoleFlags) ended(err error, t *tally.Totals, because string) error {
	var e cli.Error
	if !f.quiet || !errors.As(err, &e) || e.Code != cli.ExitSomeFailed || e.Err != nil {
		return err
	}
	failed := t.Dead + t.Expired + t.SkippedDead + t.SkippedExpired
	what := text.Count(failed, "request failed", "requests failed")
	if more := t.Invalid + t.Appended; more > 0 {
		what += fmt.Sprintf(", %s passed over", text.Count(more, "line was", "lines were"))
	}
	if because != "" {
		what += ": " + because
	}
	return cli.Exit(e.Code, errors.New(what))
}

// outputIsFile reads -o FILE as --out FILE, as in curl and other programs, with a notice. For
// paceline -o is the format of the summary.
func (f *runFlags) outputIsFile(cmd *cobra.Command) (notice string, err error) {
	file := f.output
	if file == "text" || file == "json" {
		return "", nil
	}
	if strings.HasSuffix(file, "/") {
		return "", fmt.Errorf("-o %s is no format of the summary, expected text or json; a folder for the bodies of "+
			"answers is --out-dir %s", file, file)
	}
	if !cli.LooksLikeFile(file) {
		return "", fmt.Errorf("-o %s is no format of the summary, expected text or json; a file for the results is --out "+
			"(-O), such as --out ./%s", file, cmp.Or(file, "results.jsonl"))
	}
	for _, other := range []string{"out", "out-dir"} {
		if flag := cmd.Flag(other); flag != nil && flag.Changed {
			return "", fmt.Errorf("-o %s is no format of the summary, expected text or json; and as a file for the results it "+
				"is beside --%s %s, expected one of them", file, other, flag.Value)
		}
	}
	f.out, f.output = file, "text"
	if file == "-" {
		return "", nil
	}
	return fmt.Sprintf("-o %s is taken as --out %s: a file for the results (-o text and -o json are the form of the "+
		"summary)", file, file), nil
}
