package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/screen"
)

func unpainted(_, text string) string { return text }

func TestRunLine(t *testing.T) {
	of37000 := run.Progress{Totals: tally.Totals{Input: 37000, Done: 12003, Latency: &tally.LatencyMS{P50: 51.7}}, Total: 37000, ToGo: 24997, InFlight: 2, Waiting: 1000,
		Lasting: 9.92, Allowed: 10, ETA: 41*time.Minute + 40*time.Second, Why: "limit 10/s of key A", WaitLeft: 300 * time.Millisecond}
	long := of37000
	long.WaitLeft = 12 * time.Second
	piped := of37000
	piped.Total, piped.ETA, piped.ToGo = 0, 0, 1002
	down := of37000
	down.Rejected, down.Dead, down.Why = 3, 1, "answers"
	down.Down = []string{"nothing arrives at api.a-very-long-name.example.com for 5s: connection refused", "b.test for 1s: i/o timeout"}
	rounds := piped
	rounds.Rounds, rounds.Skipped, rounds.Age = 1206, 18, &tally.AgesMS{P50: 2941, P99: 6020.4}
	resumed := of37000
	resumed.SkippedDone, resumed.SkippedDead, resumed.Input = 17000, 6, 37000+17006
	paged := of37000
	paged.Paged, paged.Pages, paged.Done = true, 1500, 1530
	paged.Input = 400 + paged.Pages // of the lines, 370 have not ended
	for _, c := range []struct {
		name    string
		p       run.Progress
		columns int
		want    string
	}{
		{"all of it", of37000, 0, "[###-------]  12,003/37,000  9.9/s of 10  0 rejected  ETA 41m40s  waiting: 10/s of key A  answers in 51 ms  2 in flight"},
		{"100", of37000, 100, "[###-------]  12,003/37,000  9.9/s of 10  0 rejected  ETA 41m40s  waiting: 10/s of key A"},
		{"80", of37000, 80, "[###-------]  12,003/37,000  9.9/s of 10  0 rejected  ETA 41m40s  waiting: 10/s…"},
		{"a long wait", long, 100, "[###-------]  12,003/37,000  9.9/s of 10  0 rejected  ETA 41m40s  waiting: 10/s of key A, 12s"},
		{"60", of37000, 60, "12,003/37,000  9.9/s of 10  0 rejected  ETA 41m40s"},
		{"30", of37000, 30, "12003/37000  9.9/s  ETA 41m40s"},
		{"no total", piped, 0, "12,003 done, of how many is not known yet  9.9/s of 10  0 rejected  ETA not known  waiting: 10/s of key A  answers in 51 ms  at least 1,002 to go  2 in flight"},
		{"no total, 60", piped, 60, "12,003 of ?  9.9/s of 10  0 rejected  ETA ?  waiting: 10/s…"},
		{"rounds", rounds, 0, "round 1,206: 12,003 done  age 2.94 s, p99 6.02 s  18 skipped  9.9/s of 10  0 rejected  waiting: 10/s of key A  answers in 51 ms  2 in flight"},
		{"rounds, 80", rounds, 80, "round 1206  age 2.94 s, p99 6.02 s  18 skipped  9.9/s of 10  0 rejected"},
		{"down", down, 110, "[###-------]  12,003/37,000  9.9/s of 10  3 rejected  ETA 41m40s  1 failed  nothing arrives at api.a-very-lon…"},
		{"resumed", resumed, 250, "[#####-----]  29,003/54,006  9.9/s of 10  0 rejected  ETA 41m40s  waiting: 10/s of key A  answers in 51 ms  2 in flight  17,000 done before"},
		{"pages", paged, 90, "[----------]  30/400 lines  1,530 pages  9.9/s of 10  0 rejected  ETA at least 41m40s"},
		{"pages, 30", paged, 30, "30/400  9.9/s  ETA >41m40s"},
	} {
		if got := runLine(&c.p).Fit(c.columns, unpainted); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	for _, c := range []struct {
		rate, allowed float64
		want          string
	}{
		{9.92, 10, "9.9/s of 10"}, {4.9, 5, "4.9/s of 5"}, {16.5, 1000. / 60, "16.5/s of 16.7"}, {0.05, 1. / 15, "3.0/min of 4"},
		{0.0010, 4. / 3600, "3.6/h of 4"}, {64, 5000. / 3600, "1.4/s of 1.4"}, {3, 0, "3.0/s"}, {0, 0, "0.0/s"}, {0.5, 0, "30.0/min"},
	} {
		if text, of := rates(c.rate, c.allowed); text+of != c.want {
			t.Errorf("%v of %v: %s, want %s", c.rate, c.allowed, text+of, c.want)
		}
	}
}

// Without a terminal, as under nohup, systemd or in CI, a line comes now and then, and none if nobody wants one.
func TestProgressWithoutTerminal(t *testing.T) {
	for _, c := range []struct {
		progress string
		quiet    bool
		want     int // lines within ten minutes
	}{
		{"auto", false, 10 + 5}, {"auto", true, 0}, {"off", false, 0}, {"2m", false, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newRunFlags()
			f.progress, f.console.quiet, f.out = c.progress, c.quiet, "results.jsonl"
			s, err := newScreen(io.Discard, &f)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			stop := s.Follow(runLines(func() run.Progress { n++; return run.Progress{} }))
			time.Sleep(10*time.Minute + time.Second)
			stop()
			if n != c.want {
				t.Errorf("--progress %s, quiet %v: %d lines, want %d", c.progress, c.quiet, n, c.want)
			}
		})
	}
}

// A reason that lasts is shown within a second; one that comes and goes is not.
func TestReasons(t *testing.T) {
	var r reasons
	for i := range 40 {
		why, want := "limit 20/s", "limit 20/s"
		if i%4 == 1 {
			why = "nonce order"
		}
		if i%5 == 2 {
			why = ""
		}
		if i >= 30 {
			why = "the pause that the server asked for"
		}
		if i >= 35 {
			want = why
		}
		if got := r.usual(why); (i < 30 || i >= 35) && got != want {
			t.Errorf("look %d: %q, want %q", i, got, want)
		}
	}
	for range len(r) {
		r.usual("")
	}
	if got := r.usual(""); got != "" {
		t.Errorf("nothing waits: %q", got)
	}
}

// After a change of a limit the line has the new name at once, and the old one never again.
func TestReasonsAfterAChangeOfALimit(t *testing.T) {
	p := run.Progress{Totals: tally.Totals{Input: 1000}, Waiting: 50}
	lines := runLines(func() run.Progress { return p })
	for _, limit := range []string{"10/s", "20/s"} {
		p.Limits, p.Why = []string{limit}, limit+" of key K2"
		for look := range 30 {
			if text := fmt.Sprint(lines()[0]); !strings.Contains(text, "waiting: "+limit+" of key K2") {
				t.Fatalf("look %d at %s: %s", look, limit, text)
			}
		}
	}
}

// The most important parts are there at every width, for all figures, and no line is wider than the
// terminal.
func TestRunLineFitsEveryWidth(t *testing.T) {
	t.Parallel()
	long := run.Progress{Totals: tally.Totals{Input: 9876548, Done: 1234567, Rejected: 12345, Dead: 999, SkippedDone: 5}, Total: 9876543,
		Lasting: 1234.5, Allowed: 2000, ToGo: 8640000, InFlight: 64, ETA: 26 * time.Hour, Why: "limit 2000/s of key 鍵鍵鍵鍵鍵鍵鍵鍵鍵鍵鍵", Down: []string{"nothing arrives at 日本語のとても長い名前.example for 5s: connection refused"}}
	for wide := 60; wide <= 250; wide++ {
		line := runLine(&long).Fit(wide, unpainted)
		if n := screen.Width(line); n > wide {
			t.Errorf("%d columns take %d: %s", wide, n, line)
		}
		for _, want := range []string{"1234572/9876548", "1234.5/s", "12345 rej", "ETA 1d2h"} {
			if !strings.Contains(strings.ReplaceAll(line, ",", ""), want) {
				t.Errorf("%d columns do not say %s: %s", wide, want, line)
			}
		}
	}
}

func TestRunLineColours(t *testing.T) {
	paint := func(color, text string) string { return "\x1b[" + color + "m" + text + "\x1b[0m" }
	p := run.Progress{Totals: tally.Totals{Input: 2, Done: 1}, Total: 2, ToGo: 1}
	if got := runLine(&p).Fit(79, paint); !strings.Contains(got, "\x1b[32m0 rejected\x1b[0m") {
		t.Errorf("%q", got)
	}
	p.Rejected, p.Dead = 1, 1
	if got := runLine(&p).Fit(79, paint); !strings.Contains(got, "\x1b[31m1 rejected\x1b[0m") || !strings.Contains(got, "\x1b[31m1 failed\x1b[0m") {
		t.Errorf("%q", got)
	}
}

func TestFailedLine(t *testing.T) {
	all := []tally.Failure{{What: "503", Attempts: 12, Open: 3}, {What: "timeout", Attempts: 3, Dead: 1}, {What: "400", Attempts: 2, Dead: 2}}
	for wide, want := range map[int]string{
		0:  "last errors: 12 × 503 (retrying)  3 × timeout (1 dead)  2 × 400 (dead)",
		60: "last errors: 12 × 503 (retrying)  3 × timeout  2 × 400",
		40: "last errors: 12 × 503  3 × timeout",
		24: "last errors: 12 × 503",
	} {
		if got := failedLine(all).Fit(wide, unpainted); got != want {
			t.Errorf("%d: %s, want %s", wide, got, want)
		}
	}
	if got, want := failedLine([]tally.Failure{{What: "503", Attempts: 12}}).Fit(0, unpainted), "last errors: 12 × 503 (answered since)"; got != want {
		t.Errorf("%s, want %s", got, want)
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
