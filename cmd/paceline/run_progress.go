package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
)

// newScreen returns the screen on standard error, as --progress, --color and --tui want it.
func newScreen(w io.Writer, f *runFlags) (*screen.Screen, error) {
	c := screen.Config{Color: f.color}
	// If results and the rewritten line shared a terminal, they would mix.
	mixed := f.out == "-" && f.nowhere == "" && screen.IsTerminal(os.Stdout)
	switch f.progress {
	case "off":
		c.Plain = true
	case "auto":
		if c.Plain = mixed; !mixed && !f.console.quiet {
			c.Every = screen.Rarely
		}
	default:
		d, err := time.ParseDuration(f.progress)
		if err != nil || d <= 0 {
			return nil, cli.Usage(fmt.Errorf("--progress %q, expected auto, off, or a time such as 5s", f.progress))
		}
		c.Every = d
	}
	s := screen.New(w, c)
	if f.console.tui && !f.llm.dryRun {
		if err := f.console.wholeScreen(s, mixed && f.backlog.store == ""); err != nil {
			return nil, cli.Usage(err)
		}
	}
	return s, nil
}

// runLines returns what makes the lines about a run: one of progress, and one of recent failures.
func runLines(progress func() run.Progress) func() []screen.Line {
	progress = usually(progress)
	return func() []screen.Line {
		p := progress()
		return []screen.Line{runLine(&p), failedLine(p.Lately)}
	}
}

// usually returns progress with the most frequent reason of the last looks.
func usually(progress func() run.Progress) func() run.Progress {
	var why reasons
	var limits []string
	return func() run.Progress {
		p := progress()
		if !slices.Equal(limits, p.Limits) { // the earlier reasons have names of limits that no longer hold
			why, limits = reasons{}, p.Limits
		}
		if usual := why.usual(p.Why); usual != p.Why {
			p.Why, p.WaitLeft = usual, 0
		}
		return p
	}
}

// reasons keeps why requests waited at the last looks. At a limit of 20/s the reason changes many times a second, and a
// line that shows each cannot be read.
type reasons [10]string

// usual adds a reason, and returns the most frequent of the last looks.
func (r *reasons) usual(why string) (most string) {
	copy(r[1:], r[:])
	r[0] = why
	count := map[string]int{}
	for _, text := range r {
		count[text]++
	}
	delete(count, "")
	for _, text := range slices.Backward(r[:]) { // of two that are as frequent, the earlier
		if count[text] > count[most] {
			most = text
		}
	}
	return most
}

// lines returns what makes the lines of a run, and one about all processes of a backlog.
func (in *runInput) lines(own func() []screen.Line) func() []screen.Line {
	if in.whole == nil {
		return own
	}
	return func() []screen.Line {
		lines := own()
		if text := in.whole(); text != "" {
			lines = append(lines, screen.Line{{Keep: true, Forms: []string{text}}})
		}
		return lines
	}
}

// Parts with a higher rank matter less, and go first if there is little room.
const (
	rankDone = iota
	rankETA
	rankAge
	rankRate
	rankRejected
	rankBar
	rankFailed
	rankDown
	rankWhy
	rankAnswers
	rankToGo
	rankInFlight
	rankBefore
)

// barCells is the length of the bar of a line.
const barCells = 10

func runLine(p *run.Progress) (l screen.Line) {
	keep := func(rank int, color string, forms ...string) {
		l = append(l, screen.Part{Rank: rank, Keep: true, Color: color, Forms: forms})
	}
	add := func(rank int, color, format string, args ...any) {
		l = append(l, screen.Part{Rank: rank, Color: color, Forms: []string{fmt.Sprintf(format, args...)}})
	}
	done := text.Thousands(int64(p.Done))
	if p.Total > 0 {
		served, ended, all := p.Ended()
		add(rankBar, "", "%s", bar(ended, all, barCells))
		of, what := text.Thousands(int64(served))+"/"+text.Thousands(int64(all)), ""
		if p.Pages > 0 {
			what = " lines"
		}
		keep(rankDone, "", of+what, of+what, fmt.Sprintf("%d/%d", served, all))
		if p.Pages > 0 {
			add(rankFailed, "", "%s pages", text.Thousands(int64(p.Done+p.SkippedDone)))
		}
	} else if p.Age != nil {
		keep(rankDone, "", fmt.Sprintf("round %s: %s done", text.Thousands(int64(p.Rounds)), done), fmt.Sprintf("round %d", p.Rounds))
		keep(rankAge, "", ageText(p.Age))
		if p.Skipped > 0 {
			add(rankFailed, "", "%s skipped", text.Thousands(int64(p.Skipped)))
		}
	} else {
		keep(rankDone, "", done+" done, of how many is not known yet", done+" of ?", fmt.Sprintf("%d/?", p.Done))
	}
	rate, of := rates(p.Lasting, p.Allowed)
	keep(rankRate, "", rate+of, rate+of, rate)
	color := screen.Green
	if p.Rejected > 0 {
		color = screen.Red
	}
	rejected := fmt.Sprintf("%d rejected", p.Rejected)
	keep(rankRejected, color, rejected, rejected, fmt.Sprintf("%d rej", p.Rejected))
	switch {
	case p.ETA > 0 && p.Paged: // only answers name the further pages
		least := screen.Length(p.ETA)
		keep(rankETA, "", "ETA at least "+least, "ETA at least "+least, "ETA >"+least)
	case p.ETA > 0:
		l = append(l, screen.ETA(p.ETA))
	case p.Age != nil:
	case p.Total == 0 || p.ToGo > 0:
		keep(rankETA, "", "ETA not known", "ETA ?")
	}
	if failed := p.Dead + p.Expired; failed > 0 {
		add(rankFailed, screen.Red, "%d failed", failed)
	}
	if len(p.Down) > 0 {
		text := text.Sanitize(p.Down[0])
		if more := len(p.Down) - 1; more > 0 {
			text += fmt.Sprintf(" (and %d hosts more)", more)
		}
		l = append(l, screen.Part{Rank: rankDown, Color: screen.Red, Forms: []string{text}, Least: 24})
	}
	if p.Why != "" {
		l = append(l, screen.Part{Rank: rankWhy, Forms: []string{"waiting: " + waitText(p)}, Least: 12})
	}
	if p.Latency != nil {
		add(rankAnswers, "", "answers in %s", text.Span(max(time.Duration(p.Latency.P50), 1)*time.Millisecond))
	}
	if p.Total == 0 && p.Age == nil {
		add(rankToGo, "", "at least %s to go", text.Thousands(int64(p.ToGo)))
	}
	add(rankInFlight, "", "%d in flight", p.InFlight)
	if p.SkippedDone > 0 {
		add(rankBefore, "", "%s done before", text.Thousands(int64(p.SkippedDone)))
	}
	return l
}

func bar(ended, total, cells int) string {
	full := min(ended*cells/max(total, 1), cells)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", cells-full) + "]"
}

// waitText is why a request waits, and how long if a reader can see the time pass.
func waitText(p *run.Progress) string {
	text := strings.TrimPrefix(text.Sanitize(p.Why), "limit ")
	if p.WaitLeft >= 2*time.Second {
		text += ", " + screen.Length(p.WaitLeft)
	}
	return text
}

// rates writes how many requests end and, if a limit binds, how many it allows in the long run, by the second, minute
// or hour. A window that began full may be ahead of that for a while: no more than the limit lasts.
func rates(rate, allowed float64) (text, of string) {
	each, unit := 1.0, "/s"
	switch slow := cmp.Or(allowed, rate); {
	case slow == 0 || slow >= 1:
	case slow*60 >= 1:
		each, unit = 60, "/min"
	default:
		each, unit = 3600, "/h"
	}
	if allowed == 0 {
		return strconv.FormatFloat(rate*each, 'f', 1, 64) + unit, ""
	}
	text = strconv.FormatFloat(min(rate, allowed)*each, 'f', 1, 64) + unit
	return text, " of " + strconv.FormatFloat(math.Round(allowed*each*10)/10, 'f', -1, 64)
}

// failedLine shows the recent failures; it is empty if there were none.
func failedLine(all []tally.Failure) (l screen.Line) {
	for i, f := range all {
		text := fmt.Sprintf("%d × %s", f.Attempts, text.Sanitize(f.What))
		if i == 0 {
			text = "last errors: " + text
		}
		l = append(l, screen.Part{Rank: i, Keep: i == 0, Forms: []string{fmt.Sprintf("%s (%s)", text, fate(&f)), text}})
	}
	return l
}

// fate says what became of the requests whose attempts failed.
func fate(f *tally.Failure) string {
	switch {
	case f.Dead == f.Attempts:
		return "dead"
	case f.Dead > 0:
		return fmt.Sprintf("%d dead", f.Dead)
	case f.Open == 0:
		return "answered since"
	}
	return "retrying"
}

// mostFailures is how many kinds of failed attempts the summary lists.
const mostFailures = 5

// failedText lists the reasons of failed attempts, a line for each, with one example. It is empty
// if none failed, or if the dead letters already have it.
func failedText(t *tally.Totals) (lines []string) {
	if len(t.Failed) == 0 || len(t.Failed) == 1 && t.Failed[0].Dead == t.Failed[0].Attempts {
		return nil
	}
	for _, f := range t.Failed[:min(len(t.Failed), mostFailures)] {
		fate := "sent again"
		switch {
		case f.Dead == f.Attempts:
			fate = text.Count(f.Dead, "dead letter", "dead letters")
		case f.Dead > 0:
			fate = fmt.Sprintf("%d of them the last of a dead letter", f.Dead)
		}
		lines = append(lines, fmt.Sprintf("failed attempts: %d × %s, %s, such as: %s", f.Attempts, f.What, fate, f.Example))
	}
	if more := len(t.Failed) - mostFailures; more > 0 {
		lines = append(lines, fmt.Sprintf("failed attempts: %s (-o json has all)",
			text.Count(more, "more kind", "more kinds")))
	}
	return lines
}
