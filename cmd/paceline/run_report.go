package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/report"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/pool"
)

// drawnFlags name the file for a page with charts of the run.
type drawnFlags struct {
	file string
	log  *report.Log // nil: no page is written
}

func (f *drawnFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.file, "report", "",
		"file to write a page with charts of the run to when it ends, FILE.html, as paceline chart does")
}

// config makes the run note the data for the charts. The page begins with the results of earlier
// runs.
func (f *drawnFlags) config(of *runFlags, c *run.Config) error {
	if f.file == "" {
		return nil
	}
	switch err := report.Check(f.file); {
	case errors.Is(err, report.ErrName):
		return fmt.Errorf("--report %w", err)
	case err != nil && !errors.Is(err, fs.ErrNotExist): // the run makes its folders
		return cli.Exit(cli.ExitConfig, fmt.Errorf("--report %w", err))
	}
	if of.llm.dryRun {
		return nil
	}
	log, err := report.Read(of.out, of.dead)
	if err != nil { // no results, or none with times
		log = &report.Log{}
	}
	f.log, c.Report, c.Ended = log, f.file, log.Result
	return nil
}

// write writes the page. name is the file of the results.
func (f *drawnFlags) write(name string) error {
	if f.log == nil {
		return nil
	}
	if err := f.log.Page(text.Sanitize(filepath.Base(name))).WriteFile(f.file); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

// resumes reports whether the same command again goes on.
func (f *runFlags) resumes() bool { return f.out != "-" || f.backlog.store != "" }

// interruption is the error of a run that a signal ended.
func (f *runFlags) interruption(t tally.Totals) error {
	how := "interrupted"
	switch {
	case f.backlog.store != "":
		how += ": what was not sent is back in the backlog"
	case t.Left > 0:
		how += ": " + leftText(t.Left)
		if f.resumes() {
			how += "; the same command again resumes"
		}
	}
	return cli.Exit(cli.ExitInterrupted, errors.New(how))
}

// end is the error of a run that ended by itself: an error of sending or closing, or failed
// requests.
func (f *runFlags) end(t tally.Totals, sending, closing error) error {
	switch {
	case errors.Is(sending, run.ErrOutput) && f.out != "-":
		return cli.Exit(cli.ExitFailure,
			fmt.Errorf("%w; then nothing more was sent, and the same command again resumes", sending))
	case errors.Is(sending, run.ErrHost), errors.Is(sending, run.ErrOutage), errors.Is(sending, run.ErrEnough),
		errors.Is(sending, pool.ErrExhausted):
		how := leftText(t.Left) + ", and nothing is lost"
		if f.resumes() {
			how += "; the same command again resumes"
		}
		return codeOf(fmt.Errorf("%w; %s", sending, how))
	case sending != nil:
		return codeOf(sending)
	case closing != nil:
		return cli.Exit(cli.ExitFailure, closing)
	case t.Lost > 0:
		return cli.Exit(cli.ExitSomeFailed,
			fmt.Errorf("%s no end state in %s",
				text.Count(t.Lost, "request is lost: it has", "requests are lost: they have"), f.out))
	case t.Dead+t.Expired+t.SkippedDead+t.SkippedExpired+t.Invalid+t.Appended+t.Partly+t.SelectFailed > 0, t.Cut > 0 && !f.pages.asked:
		return cli.Exit(cli.ExitSomeFailed, nil)
	case len(t.OutOfUse) > 0 && f.backlog.store == "":
		return cli.Exit(cli.ExitSomeFailed, fmt.Errorf("the server refused %s %s for good, and the run went on without",
			map[bool]string{true: "key", false: "keys"}[len(t.OutOfUse) == 1], text.Some(t.OutOfUse, 5)))
	}
	return nil
}

func leftText(n int) string { return text.Count(n, "request is left", "requests are left") }

// codeOf returns the exit code for an error of package run.
func codeOf(err error) error {
	switch {
	case errors.Is(err, errInterrupted):
		return cli.Exit(cli.ExitInterrupted, err)
	case errors.Is(err, run.ErrConfig):
		return cli.Exit(cli.ExitConfig, err)
	case errors.Is(err, run.ErrOutput) && errors.Is(err, run.ErrUnsent):
		return cli.Exit(cli.ExitFailure, err)
	case errors.Is(err, run.ErrOutput):
		return cli.Exit(cli.ExitFailure, fmt.Errorf("%w; then nothing more was sent", err))
	case errors.Is(err, pool.ErrExhausted):
		return cli.Exit(cli.ExitExhausted, err)
	case errors.Is(err, run.ErrOutage), errors.Is(err, run.ErrEnough):
		return cli.Exit(cli.ExitBudget, err)
	case errors.Is(err, run.ErrUnsent):
		return cli.Exit(cli.ExitConfig, err)
	case errors.Is(err, run.ErrInput):
		return cli.Exit(cli.ExitSomeFailed, err)
	}
	return err
}

// report prints the summary.
func (f *runFlags) report(s *screen.Screen, t tally.Totals, wall time.Duration) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if f.summary != "" {
		if err := os.WriteFile(f.summary, append(line, '\n'), 0o600); err != nil {
			return fmt.Errorf("--summary: %w", err)
		}
	}
	if f.output == "json" {
		_, err := fmt.Fprintln(s, text.Sanitize(string(line)))
		return err
	}
	if f.via.brought.Told && t.Input == t.Before() && t.Invalid == 0 { // their summary is the whole story
		return nil
	}
	var parts []string
	add := func(n int, what, color string) {
		text := fmt.Sprintf("%d %s", n, what)
		if n > 0 && color != "" {
			text = s.Paint(color, text)
		}
		parts = append(parts, text)
	}
	add(t.Input-t.Before(), "to send", "")
	add(t.Done, "done", "")
	rejected := screen.Red
	if t.Rejected == 0 {
		rejected = screen.Green
	}
	parts = append(parts, s.Paint(rejected, fmt.Sprintf("%d rejected", t.Rejected)))
	add(t.Expired, "expired", screen.Red)
	add(t.Dead, "dead", screen.Red)
	add(t.Lost, "lost", screen.Red)
	for _, v := range []struct {
		n           int
		what, color string
	}{
		{t.Late, "of them answered after their deadline", screen.Red}, {t.Pages, "of them further pages", ""},
		{t.Cut, "with more pages (--max-pages)", screen.Red}, {t.SkippedDone, "done before", ""},
		{t.SkippedDead, "dead before (--retry-dead)", screen.Red},
		{t.SkippedExpired, "expired before (--retry-dead=expired)", screen.Red},
		{t.Invalid, noun(t.Invalid, "invalid line", "invalid lines"), screen.Red},
		{t.Left, "left", screen.Red}, {t.Appended, "lines appended meanwhile", screen.Red},
		{t.Unwritten, "of them answered but not written", screen.Red}, {t.Repeats, "possible repeats", screen.Red},
		{t.Partly, "of them served in part (--partly)", screen.Red}, {t.Length, "of them cut (--retry-dead=length)", screen.Red},
		{t.SelectFailed, noun(t.SelectFailed, "answer", "answers") + " of which --select failed (--retry-dead=unselected)",
			screen.Red},
		{t.ClientError, noun(t.ClientError, "other answer", "other answers") + " 4xx: the server calls the request wrong",
			screen.Red},
	} {
		if v.n > 0 {
			add(v.n, v.what, v.color)
		}
	}
	about := strings.Join(parts, ", ")
	atOnce := t.AtOnce && t.Percent <= t.OfLimit
	if t.Rate > 0 {
		about += fmt.Sprintf("; %.1f/s", t.Rate)
		switch {
		case atOnce:
			about += ", and " + f.sharing.ceiling() + " lets all of it go at once"
		case t.Ceiling > 0:
			about += ", " + usedOf(t.Percent, t.OfLimit, f.sharing.ceiling(), f.nonceGap)
		}
	}
	about += roundsText(&t) + usedText(&t)
	if f.budget > 0 {
		about += fmt.Sprintf("; %s of %s spent", text.Dollars(t.USD), text.Dollars(float64(f.budget)))
	}
	if l := t.Latency; l != nil {
		about += "; answers in " + l.String()
	}
	for _, line := range failedText(&t) {
		s.Line(line)
	}
	if len(t.Models) > 1 {
		for _, m := range t.Models {
			s.Ours(modelText(&m))
		}
	}
	const mostKeys = 20
	for _, found := range t.Found[:min(len(t.Found), mostKeys)] {
		s.Ours(foundText(&found, len(t.Found) > 1))
	}
	if len(t.Keys) > 1 {
		for _, k := range t.Keys[:min(len(t.Keys), mostKeys)] {
			if atOnce {
				k.Percent = 0
			}
			s.Ours(keyText(&k, f.nonceGap))
		}
	}
	s.Ours(fmt.Sprintf("%s; %v", about, wall.Round(10*time.Millisecond)))
	return nil
}

// noun is the word for n things.
func noun(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// usedOf says how much of the limits was sent. percent is that of the ceiling, to which the order of nonces belongs:
// one request at a time, or one each gap.
func usedOf(percent, ofLimit float64, limits string, gap time.Duration) string {
	bound, advice := "bound by the order of nonces", ": see --nonce-gap"
	if gap > 0 {
		bound, advice = fmt.Sprintf("bound by --nonce-gap %v", gap), ""
	}
	switch {
	case percent <= ofLimit:
		return fmt.Sprintf("%.1f %% of %s", ofLimit, limits)
	case ofLimit == 0:
		return bound
	}
	return fmt.Sprintf("%.1f %% of %s (%s%s)", ofLimit, limits, bound, advice)
}

// usedText writes the tokens of all models together. It is empty if they used none.
func usedText(t *tally.Totals) string {
	if t.InputTokens+t.OutputTokens == 0 {
		return ""
	}
	line := fmt.Sprintf("; %s tokens in, %s out", text.Thousands(t.InputTokens), text.Thousands(t.OutputTokens))
	usd, unknown := 0.0, []string(nil)
	for _, m := range t.Models {
		if m.USD == nil {
			unknown = append(unknown, m.Model)
			continue
		}
		usd += *m.USD
	}
	if len(unknown) == len(t.Models) {
		return line
	}
	line += ", " + text.Dollars(usd)
	if len(unknown) > 0 {
		line += " without " + text.Some(unknown, 3)
	}
	if t.PricesAsOf != "" {
		line += " by prices as of " + t.PricesAsOf
	}
	return line
}

// modelText describes a model in figures.
func modelText(m *tally.ModelTotals) string {
	line := fmt.Sprintf("model %s: %s done, %s tokens in, %s out", m.Model, text.Thousands(int64(m.Done)),
		text.Thousands(m.InputTokens), text.Thousands(m.OutputTokens))
	if m.USD != nil {
		line += ", " + text.Dollars(*m.USD)
	}
	return line
}

// foundText writes the findings of --limit auto.
func foundText(f *tally.Found, named bool) string {
	if named {
		return "found for key " + f.Key + ": " + f.Text
	}
	return "found: " + f.Text
}

// keyText describes a key in figures.
func keyText(k *tally.KeyTotals, gap time.Duration) string {
	text := fmt.Sprintf("key %s: %d sent, %d done, %d rejected", k.Key, k.Sends, k.Done, k.Rejected)
	if k.Percent > 0 {
		text += ", " + usedOf(k.Percent, k.OfLimit, "its limit", gap)
	}
	if k.Latency.Mean > 0 {
		text += "; answers in " + k.Latency.String()
	}
	return text
}
