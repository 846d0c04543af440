package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/viabatch"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/tokens"
)

// writeBatch writes the prompts of rows as a batch file, which --via batch reads.
func (f *runFlags) writeBatch(in *runInput, c run.Config, signals <-chan os.Signal, errs *screen.Screen) error {
	if f.prompt.api == tokens.NoAPI {
		return cli.Usage(errors.New("--batch-file is for prompts, a row each: expected --prompt-column with the column that has them"))
	}
	if !in.isFile {
		return cli.Usage(errors.New("--batch-file checks the input before it writes: expected a file, and not a pipe"))
	}
	r, err := newUnsent(c)
	if err != nil {
		return err
	}
	if err := f.check(r, in, signals); err != nil {
		return err
	}
	file, err := os.OpenFile(f.via.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return cli.Exit(cli.ExitConfig,
			fmt.Errorf("--batch-file %s is there already, and is not overwritten: remove it, or choose another name", f.via.file))
	case err != nil:
		return cli.Exit(cli.ExitConfig, fmt.Errorf("--batch-file: %w", err))
	}
	n, to := 0, bufio.NewWriter(file)
	err = interruptible(signals, func() error {
		return r.Each(in.name, in.reader, func(q *format.Request) error {
			n++
			_, err := to.Write(append(viabatch.Line(f.prompt.format(), q), '\n'))
			return err
		})
	})
	if err = errors.Join(err, to.Flush(), file.Close()); err != nil {
		_ = os.Remove(f.via.file) // half a batch is none
		return codeOf(err)
	}
	errs.Line(fmt.Sprintf("%s in %s; --via batch with this file sends them at half the price", text.Count(n, "prompt is", "prompts are"), f.via.file))
	return nil
}
