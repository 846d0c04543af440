package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/batch"
	"github.com/paceline-go/paceline/internal/shown"
)

// interruption is the error of a run that a signal ended.
func (f *runFlags) interruption(t batch.Totals) error {
	how := "interrupted"
	if t.Left > 0 {
		how += ": " + leftText(t.Left)
		if f.out != "-" {
			how += "; the same command again resumes"
		}
	}
	return exitError{exitInterrupted, errors.New(how)}
}

// end is the error of a run that ended by itself, by what came of sending, of closing, and of the requests.
func (f *runFlags) end(t batch.Totals, sending, closing error) error {
	switch {
	case errors.Is(sending, batch.ErrOutput) && f.out != "-":
		return exitError{exitFailure, fmt.Errorf("%w; then nothing more was sent, and the same command again resumes", sending)}
	case errors.Is(sending, batch.ErrHost), errors.Is(sending, batch.ErrOutage), errors.Is(sending, batch.ErrEnough), errors.Is(sending, dispatch.ErrExhausted):
		how := leftText(t.Left) + ", and nothing is lost"
		if f.out != "-" {
			how += "; the same command again resumes"
		}
		return codeOf(fmt.Errorf("%w; %s", sending, how))
	case sending != nil:
		return codeOf(sending)
	case closing != nil:
		return exitError{exitFailure, closing}
	case t.Lost > 0:
		return exitError{exitSomeFailed, fmt.Errorf("%s no end state in %s", shown.Count(t.Lost, "request is lost: it has", "requests are lost: they have"), f.out)}
	case t.Dead+t.Expired+t.SkippedDead+t.Invalid+t.Appended > 0:
		return exitError{code: exitSomeFailed}
	}
	return nil
}

func leftText(n int) string { return shown.Count(n, "request is left", "requests are left") }

// codeOf gives an error of package batch its exit code.
func codeOf(err error) error {
	switch {
	case errors.Is(err, errInterrupted):
		return exitError{exitInterrupted, err}
	case errors.Is(err, batch.ErrConfig):
		return exitError{exitConfig, err}
	case errors.Is(err, batch.ErrOutput) && errors.Is(err, batch.ErrUnsent):
		return exitError{exitFailure, err}
	case errors.Is(err, batch.ErrOutput):
		return exitError{exitFailure, fmt.Errorf("%w; then nothing more was sent", err)}
	case errors.Is(err, dispatch.ErrExhausted):
		return exitError{exitExhausted, err}
	case errors.Is(err, batch.ErrOutage), errors.Is(err, batch.ErrEnough):
		return exitError{exitBudget, err}
	case errors.Is(err, batch.ErrUnsent):
		return exitError{exitConfig, err}
	case errors.Is(err, batch.ErrInput):
		return exitError{exitSomeFailed, err}
	}
	return err
}

// report prints the summary.
func (f *runFlags) report(s *screen, t batch.Totals, wall time.Duration) error {
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
		s.line(string(line))
		return nil
	}
	var parts []string
	add := func(n int, what, color string) {
		text := fmt.Sprintf("%d %s", n, what)
		if n > 0 && color != "" {
			text = s.paint(color, text)
		}
		parts = append(parts, text)
	}
	add(t.Offered, "offered", "")
	add(t.Done, "done", "")
	rejected := red
	if t.Rejected == 0 {
		rejected = green
	}
	parts = append(parts, s.paint(rejected, fmt.Sprintf("%d rejected", t.Rejected)))
	add(t.Expired, "expired", red)
	add(t.Dead, "dead", red)
	add(t.Lost, "lost", red)
	for _, v := range []struct {
		n           int
		what, color string
	}{
		{t.SkippedDone, "done before", ""}, {t.SkippedDead, "dead before (--retry-dead)", red}, {t.Invalid, "invalid lines", red},
		{t.Left, "left", red}, {t.Appended, "lines appended meanwhile", red}, {t.Unwritten, "of them answered but not written", red}, {t.Repeats, "possible repeats", red},
	} {
		if v.n > 0 {
			add(v.n, v.what, v.color)
		}
	}
	text := strings.Join(parts, ", ")
	if t.Rate > 0 {
		text += fmt.Sprintf("; %.1f/s", t.Rate)
		if t.Ceiling > 0 {
			text += fmt.Sprintf(", %.1f %% of %s", t.Percent, f.sharing.ceiling())
		}
	}
	text += usedText(&t)
	if f.budget > 0 {
		text += fmt.Sprintf("; $%.2f of $%.2f spent", t.USD, float64(f.budget))
	}
	if l := t.Latency; l != nil {
		text += "; answers in " + l.String()
	}
	if len(t.Models) > 1 {
		for _, m := range t.Models {
			s.ours(modelText(&m))
		}
	}
	const mostKeys = 20
	if len(t.Keys) > 1 {
		for _, k := range t.Keys[:min(len(t.Keys), mostKeys)] {
			s.ours(keyText(&k))
		}
	}
	s.ours(fmt.Sprintf("%s; %v", text, wall.Round(10*time.Millisecond)))
	return nil
}

// usedText is what all models have used; empty: nothing.
func usedText(t *batch.Totals) string {
	if t.InputTokens+t.OutputTokens == 0 {
		return ""
	}
	text := fmt.Sprintf("; %s tokens in, %s out", grouped(t.InputTokens), grouped(t.OutputTokens))
	usd, unknown := 0.0, []string(nil)
	for _, m := range t.Models {
		if m.USD == nil {
			unknown = append(unknown, m.Model)
			continue
		}
		usd += *m.USD
	}
	if len(unknown) == len(t.Models) {
		return text
	}
	text += ", " + moneyText(usd)
	if len(unknown) > 0 {
		text += " without " + shown.Some(unknown, 3)
	}
	if t.PricesAsOf != "" {
		text += " by prices as of " + t.PricesAsOf
	}
	return text
}

// modelText is the figures of a model.
func modelText(m *batch.ModelTotals) string {
	text := fmt.Sprintf("model %s: %s done, %s tokens in, %s out", m.Model, grouped(int64(m.Done)), grouped(m.InputTokens), grouped(m.OutputTokens))
	if m.USD != nil {
		text += ", " + moneyText(*m.USD)
	}
	return text
}

// keyText is the figures of a key.
func keyText(k *batch.KeyTotals) string {
	text := fmt.Sprintf("key %s: %d sent, %d done, %d rejected", k.Key, k.Sends, k.Done, k.Rejected)
	if k.Percent > 0 {
		text += fmt.Sprintf(", %.1f %% of its ceiling", k.Percent)
	}
	if k.Latency.Mean > 0 {
		text += "; answers in " + k.Latency.String()
	}
	return text
}
