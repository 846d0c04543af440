package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text"
)

// pollFlags ask the requests of a file again and again.
type pollFlags struct {
	every  time.Duration
	rounds int
}

func (f *pollFlags) add(p *pflag.FlagSet) {
	p.DurationVar(&f.every, "every", 0, "ask all requests of the input again and again, in rounds that begin so often, until --rounds, --until or Ctrl-C. A turn is skipped while the one before it still waits or has no answer")
	p.IntVar(&f.rounds, "rounds", 0, "with --every: how many rounds this run has (default: no end)")
}

// notPolled are the flags of run that do not go with --every.
var notPolled = refusals{
	{"via", "a batch has its answers within a day"},
	{"next", "pages follow each other only once"},
	{"ordered", "results of rounds come as they end"},
	{"select out-format", "rows do not say their round; expected whole results, such as for jq"},
	{"out-dir", "a file would have the body of one round only"},
	{"retry-dead unanswered", "the next round asks again anyway"},
	{"decay", "a turn is as fresh as its round, and skipped when it is stale"},
	{"by", "nobody knows how many requests there will be"},
}

// config sets the rounds, and refuses what does not go with them.
func (f *pollFlags) config(cmd *cobra.Command, c *run.Config) error {
	switch {
	case !cmd.Flag("every").Changed && cmd.Flag("rounds").Changed:
		return errors.New("--rounds is for --every, which is not given")
	case !cmd.Flag("every").Changed:
		return nil
	case f.every < time.Millisecond:
		return fmt.Errorf("--every %v, expected at least 1ms, such as 5s", f.every)
	case cmd.Flag("rounds").Changed && f.rounds < 1:
		return fmt.Errorf("--rounds %d, expected at least 1", f.rounds)
	}
	c.Every, c.Rounds = f.every, f.rounds
	return refuses(cmd, notPolled, "--every")
}

// ageText says how old the latest answers are.
func ageText(a *tally.AgesMS) string {
	if a.P99 == 0 {
		return "no answer yet"
	}
	ms := func(n float64) string {
		return text.Span(time.Duration(n * float64(time.Millisecond)).Round(10 * time.Millisecond))
	}
	return fmt.Sprintf("age %s, p99 %s", ms(a.P50), ms(a.P99))
}

// roundsText is about the rounds, at the end of a run.
func roundsText(t *tally.Totals) string {
	if t.Age == nil {
		return ""
	}
	line := fmt.Sprintf("; %s, %s skipped; %s", text.Count(t.Rounds, "round", "rounds"), text.Count(t.Skipped, "turn", "turns"), ageText(t.Age))
	if t.Age.Never > 0 {
		line += fmt.Sprintf(", %s never answered", text.Count(t.Age.Never, "request", "requests"))
	}
	return line
}

// roundsNote says of a plan that it is of one round, and what the limits make of the others.
func roundsNote(p *run.Plan, every time.Duration) string {
	note := fmt.Sprintf("this is one round, and --every %v begins one so often", every)
	if p.Seconds > every.Seconds() {
		note += fmt.Sprintf(". The limits let a round go in %s, so turns are skipped", lasts(p.Seconds))
	}
	return note
}
