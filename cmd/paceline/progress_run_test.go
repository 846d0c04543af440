package main

import (
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text/width"
)

func unpainted(_, text string) string { return text }

func TestRunLine(t *testing.T) {
	of37000 := run.Progress{Totals: tally.Totals{Done: 12003, Rate: 9.92, Ceiling: 10, Percent: 99.2}, Total: 37000, ToGo: 24997, InFlight: 2, Waiting: 1000,
		ETA: 41*time.Minute + 40*time.Second, Why: "limit 10/s of key A, 0.3 s left"}
	piped := of37000
	piped.Total, piped.ETA, piped.ToGo = 0, 0, 1002
	down := of37000
	down.Rejected, down.Dead, down.Why = 3, 1, "answers"
	down.Down = []string{"api.a-very-long-name.example.com for 5s: connection refused", "b.test for 1s: i/o timeout"}
	resumed := of37000
	resumed.SkippedDone = 17000
	for _, c := range []struct {
		name    string
		p       run.Progress
		columns int
		want    string
	}{
		{"all of it", of37000, 0, "12003 of 37000 done, 9.9/s (99 % of the ceiling), 0 rejected, ETA 41m40s, 0 failed, 24997 to go, waiting for limit 10/s of key A, 0.3 s left, 2 in flight"},
		{"120", of37000, 120, "12003 of 37000 done, 9.9/s (99 %), 0 rejected, ETA 41m40s, 24997 to go, waiting for limit 10/s of key A, 0.3 s left"},
		{"100", of37000, 100, "12003/37000 done, 9.9/s (99 %), 0 rejected, ETA 41m40s, 24997 to go, waiting for limit 10/s of key…"},
		{"80", of37000, 80, "12003/37000 done, 9.9/s (99 %), 0 rejected, ETA 41m40s, 24997 to go, 2 in flight"},
		{"60", of37000, 60, "12003 of 37000 done, 9.9/s (99 %), 0 rejected, ETA 41m40s"},
		{"30", of37000, 30, "12003/37000, 0 rej, ETA 41m40s"},
		{"no total", piped, 0, "12003 done, of how many is not known yet, 9.9/s (99 % of the ceiling), 0 rejected, ETA not known, 0 failed, at least 1002 to go, waiting for limit 10/s of key A, 0.3 s left, 2 in flight"},
		{"no total, 60", piped, 60, "12003 of ? done, 9.9/s (99 %), 0 rejected, ETA ?, 0 failed"},
		{"down", down, 110, "12003/37000 done, 9.9/s (99 %), 3 rejected, ETA 41m40s, 1 failed, nothing arrives at api.a-very-long-name.exa…"},
		{"resumed", resumed, 250, "12003 of 37000 done, 9.9/s (99 % of the ceiling), 0 rejected, ETA 41m40s, 0 failed, 24997 to go, waiting for limit 10/s of key A, 0.3 s left, 2 in flight, 17000 done before"},
	} {
		if got := runLine(&c.p).Fit(c.columns, unpainted); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

// The most important parts are there at every width, for all figures, and no line is wider than the
// terminal.
func TestRunLineFitsEveryWidth(t *testing.T) {
	t.Parallel()
	long := run.Progress{Totals: tally.Totals{Done: 1234567, Rejected: 12345, Dead: 999, Rate: 1234.5, Ceiling: 2000, Percent: 61.7, SkippedDone: 5}, Total: 9876543,
		ToGo: 8640000, InFlight: 64, ETA: 26 * time.Hour, Why: "limit 2000/s of key 鍵鍵鍵鍵鍵鍵鍵鍵鍵鍵鍵, 0.1 s left", Down: []string{"日本語のとても長い名前.example for 5s: connection refused"}}
	for wide := 60; wide <= 250; wide++ {
		line := runLine(&long).Fit(wide, unpainted)
		if n := width.Of(line); n > wide {
			t.Errorf("%d columns take %d: %s", wide, n, line)
		}
		for _, want := range []string{"1234567", "9876543", "1234.5/s", "62", "12345 rej", "ETA 1d2h"} {
			if !strings.Contains(line, want) {
				t.Errorf("%d columns do not say %s: %s", wide, want, line)
			}
		}
	}
}

func TestRunLineColours(t *testing.T) {
	paint := func(color, text string) string { return "\x1b[" + color + "m" + text + "\x1b[0m" }
	p := run.Progress{Totals: tally.Totals{Done: 1}, Total: 2, ToGo: 1}
	if got := runLine(&p).Fit(79, paint); !strings.Contains(got, "\x1b[32m0 rejected\x1b[0m") {
		t.Errorf("%q", got)
	}
	p.Rejected, p.Dead = 1, 1
	if got := runLine(&p).Fit(79, paint); !strings.Contains(got, "\x1b[31m1 rejected\x1b[0m") || !strings.Contains(got, "\x1b[31m1 failed\x1b[0m") {
		t.Errorf("%q", got)
	}
}

func TestFailedLine(t *testing.T) {
	all := []tally.Failure{{What: "503", Attempts: 12}, {What: "timeout", Attempts: 3, Dead: 1}, {What: "400", Attempts: 2, Dead: 2}}
	for wide, want := range map[int]string{
		0:  "last errors: 12 × 503 (retrying), 3 × timeout (1 dead), 2 × 400 (dead)",
		60: "last errors: 12 × 503 (retrying), 3 × timeout, 2 × 400",
		40: "last errors: 12 × 503, 3 × timeout",
		24: "last errors: 12 × 503",
	} {
		if got := failedLine(all).Fit(wide, unpainted); got != want {
			t.Errorf("%d: %s, want %s", wide, got, want)
		}
	}
	if got := failedLine(nil).Fit(0, unpainted); got != "" {
		t.Errorf("nothing failed: %q", got)
	}
}

func TestFailedText(t *testing.T) {
	var many []tally.Failure
	for range 7 {
		many = append(many, tally.Failure{What: "503", Attempts: 12, Dead: 2, Example: "answered 503 Service Unavailable"})
	}
	for _, c := range []struct {
		name string
		all  []tally.Failure
		want []string
	}{
		{"none", nil, nil},
		{"said of the dead letters", []tally.Failure{{What: "404", Attempts: 3, Dead: 3}}, nil},
		{"sent again", []tally.Failure{{What: "timeout", Attempts: 3, Example: "no answer within 30s"}}, []string{"failed attempts: 3 × timeout, sent again, such as: no answer within 30s"}},
		{"some are dead", many[:1], []string{"failed attempts: 12 × 503, 2 of them the last of a dead letter, such as: answered 503 Service Unavailable"}},
	} {
		if got := failedText(&tally.Totals{Failed: c.all}); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := failedText(&tally.Totals{Failed: many}); len(got) != 6 || got[5] != "failed attempts: 2 more kinds (-o json has all)" {
		t.Errorf("%q", got)
	}
}
