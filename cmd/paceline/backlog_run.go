package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/work"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
)

// viaBacklog is run FILE --backlog: it adds the requests of FILE, sends those of the backlog beside others,
// and writes the results.
func (f *runFlags) viaBacklog(cmd *cobra.Command, in *runInput, c run.Config, signals <-chan os.Signal, errs *screen.Screen) error {
	if err := f.backlog.suits(&c); err != nil {
		return cli.Usage(err)
	}
	results := resultFiles(&c)
	if err := results.check(&c); err != nil {
		return cli.Exit(cli.ExitConfig, err)
	}
	r, err := newUnsent(c)
	if err != nil {
		return err
	}
	if err := f.check(r, in, signals); err != nil {
		return err
	}
	if f.llm.dryRun {
		p := f.plan(r, &c)
		if note, err := f.backlog.leftWords(cmd.Context(), &p, &c); err != nil {
			return err
		} else if note != "" {
			p.Notes = append(p.Notes, note)
		}
		return f.llm.printPlan(cli.Harmless(cmd.OutOrStdout(), f.output), p, f.output)
	}
	a := &work.Adder{Counted: in.isMetered, Storing: format.Storing{Read: time.Now(), TTL: f.ttl}}
	o, err := f.adding(cmd.Context(), a, r, in, signals)
	if err != nil {
		return err
	}
	defer o.close()
	errs.Line(addedWords(a, o))
	if c.Meter == nil && c.Format == nil { // others may have added prompts
		note, err := work.ReadNote(cmd.Context(), o.Backlog)
		if err == nil {
			err = f.meter(cmd, &runInput{note: &note}, &c)
		}
		if err != nil {
			return err
		}
	}
	if home := r.Home(); len(c.KeyHosts) == 0 && home != nil {
		c.KeyHosts = secret.Places{*home}
	}
	err = f.drain(cmd, c, o, true, signals, errs)
	if code := cli.Code(err); code != cli.ExitOK && code != cli.ExitSomeFailed {
		return err
	}
	return results.write(cmd.Context(), o, errs)
}

// leftWords say what of a backlog is left before the requests of a plan, and how long the limits make all of it take.
// They are empty if there is no backlog yet.
func (f *backlogFlags) leftWords(ctx context.Context, p *run.Plan, c *run.Config) (string, error) {
	o, err := f.open(ctx, true)
	if errors.Is(err, backlog.ErrNoStore) || errors.Is(err, backlog.ErrNoBacklog) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer o.close()
	n, err := o.Count(ctx)
	if err != nil || n.Left() == 0 {
		return "", err
	}
	line := fmt.Sprintf("%s of %s requests of the backlog have no result yet, and are sent, too (those of the file may be among them)",
		text.Thousands(n.Left()), text.Thousands(n.Total))
	slowest := time.Duration(0)
	for _, l := range c.Limits {
		if l.Unit == limit.Requests && l.Model == "" && !l.EachModel {
			slowest = max(slowest, time.Duration(float64(n.Left()+int64(p.Requests))/l.Speed()*float64(time.Second)))
		}
	}
	if slowest > 0 {
		line += "; all of them take " + text.Span(slowest) + " at the limits of one key"
	}
	return line, nil
}

// backlogResults are the files of the results of run --backlog.
type backlogResults struct {
	out, dead string
	format    format.Format
	shape     *output.Shape
	stdout    io.Writer
}

func resultFiles(c *run.Config) *backlogResults {
	f := format.Format(format.Plain{})
	if l, is := c.Format.(*format.LLM); is {
		f = l
	}
	names := output.Config{Out: c.Out, Dead: c.Dead, Format: f}
	names.Name()
	return &backlogResults{names.Out, names.Dead, f, c.Shape, c.Stdout}
}

// check refuses to write over files that are not results.
func (r *backlogResults) check(c *run.Config) error {
	for _, path := range []string{r.out, r.dead} {
		if path == "-" {
			continue
		}
		file, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		info, err := file.Stat()
		line, rerr := bufio.NewReaderSize(file, 1<<20).ReadSlice('\n')
		file.Close()
		switch _, is := r.format.Entry(line, path == r.dead); {
		case err != nil:
			return err
		case c.InputInfo != nil && os.SameFile(info, c.InputInfo):
			return fmt.Errorf("%s is the input, and results would replace it", path)
		case rerr == io.EOF && len(line) == 0, is:
		case bytes.HasPrefix(line, []byte(`{"id":"`)) && bytes.Contains(line, []byte(`","state":"cancelled"`)):
		case r.shape != nil && path == r.out && (len(r.shape.Head()) == 0 && bytes.HasPrefix(line, []byte("{")) ||
			len(r.shape.Head()) > 0 && bytes.Equal(line, r.shape.Head())):
		default:
			return fmt.Errorf("%s is there, and has no results of paceline: is this the right file?", path)
		}
	}
	return nil
}

// write writes the results of the whole backlog, and returns the error of a run that has finished.
func (r *backlogResults) write(ctx context.Context, o *opened, errs *screen.Screen) error {
	n, err := o.Count(ctx)
	if err != nil {
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%s: %w", o.shown, err))
	}
	w := work.Results{Backlog: o.Backlog, Shape: r.shape, Failed: func(id string, err error) {
		errs.Line(fmt.Sprintf("--select %v, of the answer to %q: that is null", err, id))
	}}
	if l, is := r.format.(*format.LLM); is {
		w.Format = l
	}
	out, err := replacing(r.out, text.SanitizeJSONTo(r.stdout))
	if err == nil && r.dead != r.out {
		var letters *atOnceFile
		if letters, err = replacing(r.dead, text.SanitizeJSONTo(r.stdout)); err == nil {
			w.Dead = letters
			defer letters.drop()
		}
	}
	if err == nil {
		defer out.drop()
		w.Out = out
		_, err = w.Write(ctx)
	}
	if letters, is := w.Dead.(*atOnceFile); err == nil && is {
		err = letters.done()
	}
	if err == nil {
		err = out.done()
	}
	switch {
	case err != nil:
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%w; the results are in %s, backlog %s (paceline backlog results)", err, o.shown, o.Name()))
	case n.Left() > 0:
		errs.Line(text.Count(int(n.Left()), "request has", "requests have") + " no result yet; the same command again goes on")
		return cli.Exit(cli.ExitFailure, nil)
	case n.Dead+n.Expired+n.Cancelled > 0:
		return cli.Exit(cli.ExitSomeFailed, nil)
	}
	return nil
}

// atOnceFile is a file that takes the place of another one once it is complete, or a stream.
type atOnceFile struct {
	*bufio.Writer
	file *os.File // nil: a stream
	path string
}

func replacing(path string, stream io.Writer) (*atOnceFile, error) {
	if path == "-" || output.IsNowhere(path) {
		return &atOnceFile{Writer: bufio.NewWriter(stream)}, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	return &atOnceFile{bufio.NewWriterSize(file, 256<<10), file, path}, nil
}

func (r *atOnceFile) done() error {
	err := r.Flush()
	if r.file == nil {
		return err
	}
	if err == nil {
		err = r.file.Sync()
	}
	if cerr := r.file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(r.file.Name(), r.path)
	}
	if err == nil {
		r.file = nil
	}
	return err
}

// drop removes what was not completed.
func (r *atOnceFile) drop() {
	if r.file != nil {
		_ = r.file.Close()
		_ = os.Remove(r.file.Name())
	}
}
