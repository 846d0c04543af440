package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// newScreen returns the screen on standard error, as --progress and --color want it.
func newScreen(w io.Writer, f *runFlags) (*screen.Screen, error) {
	c := screen.Config{Color: f.color}
	switch f.progress {
	case "off":
		c.Plain = true
	case "auto":
		// If results and the rewritten line shared a terminal, they would mix.
		c.Plain = f.out == "-" && f.nowhere == "" && screen.IsTerminal(os.Stdout)
	default:
		d, err := time.ParseDuration(f.progress)
		if err != nil || d <= 0 {
			return nil, cli.Usage(fmt.Errorf("--progress %q, expected auto, off, or a time such as 5s", f.progress))
		}
		c.Every = d
	}
	return screen.New(w, c), nil
}

// runLines are the lines about the progress of a run: one of progress, and one of recent failures.
func runLines(p run.Progress) []screen.Line {
	return []screen.Line{runLine(&p), failedLine(p.Lately)}
}

// Parts with a higher rank matter less, and go first if there is little room.
const (
	rankDone = iota
	rankETA
	rankRate
	rankRejected
	rankFailed
	rankDown
	rankToGo
	rankWhy
	rankInFlight
	rankNone // failed
	rankBefore
)

func runLine(p *run.Progress) (l screen.Line) {
	keep := func(rank int, color string, forms ...string) {
		l = append(l, screen.Part{Rank: rank, Keep: true, Color: color, Forms: forms})
	}
	add := func(rank int, color, format string, args ...any) {
		l = append(l, screen.Part{Rank: rank, Color: color, Forms: []string{fmt.Sprintf(format, args...)}})
	}
	atLeast := ""
	if p.Total > 0 {
		keep(rankDone, "", fmt.Sprintf("%d of %d done", p.Done, p.Total), fmt.Sprintf("%d/%d done", p.Done, p.Total),
			fmt.Sprintf("%d/%d", p.Done, p.Total))
	} else {
		atLeast = "at least "
		keep(rankDone, "", fmt.Sprintf("%d done, of how many is not known yet", p.Done),
			fmt.Sprintf("%d of ? done", p.Done), fmt.Sprintf("%d/?", p.Done))
	}
	if rate := fmt.Sprintf("%.1f/s", p.Rate); p.Ceiling > 0 {
		keep(rankRate, "", fmt.Sprintf("%s (%.0f %% of the ceiling)", rate, p.Percent),
			fmt.Sprintf("%s (%.0f %%)", rate, p.Percent), fmt.Sprintf("%s %.0f%%", rate, p.Percent))
	} else {
		keep(rankRate, "", rate)
	}
	color := screen.Green
	if p.Rejected > 0 {
		color = screen.Red
	}
	keep(rankRejected, color, fmt.Sprintf("%d rejected", p.Rejected), fmt.Sprintf("%d rejected", p.Rejected),
		fmt.Sprintf("%d rej", p.Rejected))
	switch {
	case p.ETA > 0:
		l = append(l, screen.ETA(p.ETA))
	case p.Total == 0 || p.ToGo > 0:
		keep(rankETA, "", "ETA not known", "ETA ?")
	}
	if failed := p.Dead + p.Expired; failed > 0 {
		add(rankFailed, screen.Red, "%d failed", failed)
	} else {
		add(rankNone, "", "0 failed")
	}
	if len(p.Down) > 0 {
		text := "nothing arrives at " + sanitize.Text(p.Down[0])
		if more := len(p.Down) - 1; more > 0 {
			text += fmt.Sprintf(" (and at %d more)", more)
		}
		l = append(l, screen.Part{Rank: rankDown, Color: screen.Red, Forms: []string{text}, Least: 24})
	}
	add(rankToGo, "", "%s%d to go", atLeast, p.ToGo)
	if p.Why != "" {
		l = append(l, screen.Part{Rank: rankWhy, Forms: []string{"waiting for " + sanitize.Text(p.Why)}, Least: 20})
	}
	add(rankInFlight, "", "%d in flight", p.InFlight)
	if p.SkippedDone > 0 {
		add(rankBefore, "", "%d done before", p.SkippedDone)
	}
	return l
}

// failedLine shows the recent failures; it is empty if there were none.
func failedLine(all []tally.Failure) (l screen.Line) {
	for i, f := range all {
		text := fmt.Sprintf("%d × %s", f.Attempts, sanitize.Text(f.What))
		if i == 0 {
			text = "last errors: " + text
		}
		fate := "retrying"
		switch {
		case f.Dead == f.Attempts:
			fate = "dead"
		case f.Dead > 0:
			fate = fmt.Sprintf("%d dead", f.Dead)
		}
		l = append(l, screen.Part{Rank: i, Keep: i == 0, Forms: []string{fmt.Sprintf("%s (%s)", text, fate), text}})
	}
	return l
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
			fate = sanitize.Count(f.Dead, "dead letter", "dead letters")
		case f.Dead > 0:
			fate = fmt.Sprintf("%d of them the last of a dead letter", f.Dead)
		}
		lines = append(lines, fmt.Sprintf("failed attempts: %d × %s, %s, such as: %s", f.Attempts, f.What, fate, f.Example))
	}
	if more := len(t.Failed) - mostFailures; more > 0 {
		lines = append(lines, fmt.Sprintf("failed attempts: %s (-o json has all)",
			sanitize.Count(more, "more kind", "more kinds")))
	}
	return lines
}
