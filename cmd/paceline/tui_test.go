//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/observe"
)

// busyView is a run with all that a screen can show.
func busyView() *runView {
	at := time.Date(2026, 7, 1, 8, 30, 0, 0, time.Local)
	of := func(key string) observe.Whose { return observe.Whose{Key: key} }
	v := &runView{title: "paceline run requests.jsonl", began: at.Add(-192 * time.Second), now: at, most: 64,
		limits: []string{"20/s", "600/m"}, chosen: 1}
	v.p = run.Progress{Totals: tally.Totals{Input: 37000, Done: 12003, Dead: 3, Rejected: 2, Latency: &tally.LatencyMS{Mean: 51.8, P50: 50.1, P99: 120}},
		Total: 37000, ToGo: 24994, InFlight: 5, Waiting: 1000, Lasting: 9.92, Allowed: 10, ETA: 2500 * time.Second,
		Why: "limit 20/s of key KEY_A", WaitLeft: 12 * time.Second,
		Lately: []tally.Failure{{What: "503", Attempts: 12, Open: 4, Example: "answered 503 Service Unavailable: \x1b[31mtry later"},
			{What: "timeout", Attempts: 3, Dead: 3, Example: "no answer in 30s"}}}
	s := observe.Snapshot{Waiting: 1000, InFlight: 5}
	for _, key := range []string{"KEY_A", "KEY_B", "KEY_C", "KEY_D"} {
		s.Limits = append(s.Limits,
			observe.LimitState{Whose: of(key), Name: "requests", Unit: "requests", Used: 18, Allowed: 20, PerWindow: 20, Window: time.Second},
			observe.LimitState{Whose: of(key), Name: "tokens", Unit: "input tokens", Used: 12500, Allowed: 30000, PerWindow: 30000,
				Window: time.Minute, Fits: 25000, Next: at.Add(4 * time.Second)})
	}
	s.Limits[0].Waiting, s.Limits[0].Used = 1000, 20
	s.Limits[2].NextUnknown, s.Limits[2].Why = true, text.ByUser
	s.Limits[4].NextUnknown = true
	s.Keys = []observe.KeyState{
		{Name: "KEY_A", State: observe.KeyOK, InFlight: 3, Counts: observe.Counts{Accepted: 9000, Limited: 2}},
		{Name: "KEY_B", State: observe.KeyPaused, Why: text.ByUser, Counts: observe.Counts{Accepted: 3003}},
		{Name: "KEY_C", State: observe.KeyPaused, Until: at.Add(time.Hour), Why: "refused, 2 in a row", InFlight: 2},
		{Name: "KEY_D", State: observe.KeyBanned, Why: "answered 401 Unauthorized"},
	}
	s.Upstream = []observe.UpstreamTimes{
		{Host: "https://api.example.com", P50: 50 * time.Millisecond, P99: 1204 * time.Millisecond, Max: 2 * time.Second, Times: observe.Times{Count: 12000}},
		{Host: "https://b.example.com", P50: 700 * time.Microsecond, P99: 5 * time.Millisecond, Max: 5 * time.Millisecond, Times: observe.Times{Count: 6}},
	}
	v.parts = []observe.Snapshot{s, {Name: "small-model", Waiting: 7, InFlight: 1}}
	v.keys = keysOf([]observe.Snapshot{s})
	for i := range 30 {
		v.said = append(v.said, fmt.Sprintf("message %d", i+1))
	}
	return v
}

// marked shows colours in a golden file.
func marked(color, text string) string {
	return map[string]string{bold: "*", yellow: "~", screen.Green: "+", screen.Red: "!"}[color] + text
}

// The screen of a busy run, of one without keys that has just begun, and of a question, as a person sees them.
func TestScreenOfARun(t *testing.T) {
	asked, typed := busyView(), "20/s 5"
	asked.typed = &typed
	refused := busyView()
	refused.answer, refused.refused = `no limit "2/s", expected 20/s or 600/m`, true
	begun := &runView{title: "paceline run standard input", began: refused.now, now: refused.now, most: 64, keyless: true,
		keys: []ctlKey{{State: observe.KeyOK}}, parts: []observe.Snapshot{{Keys: []observe.KeyState{{Name: "key", State: observe.KeyOK, InFlight: 3}},
			Limits: []observe.LimitState{{Whose: observe.Whose{Key: "key"}, Name: "requests", Unit: "requests", Used: 3, Allowed: 20, PerWindow: 20, Window: time.Second}}}}}
	var b strings.Builder
	for _, c := range []struct {
		name          string
		v             *runView
		columns, rows int
	}{
		{"busy", busyView(), 80, 24}, {"busy", refused, 120, 40}, {"a question", asked, 80, 24}, {"begun", begun, 80, 24},
		{"narrow", busyView(), 40, 10},
	} {
		fmt.Fprintf(&b, "%s, %d × %d\n", c.name, c.columns, c.rows)
		for _, line := range c.v.draw(c.columns, c.rows, marked) {
			b.WriteString("  |" + line + "\n")
		}
	}
	file := filepath.Join("testdata", "tui.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || b.String() != string(want) {
		t.Errorf("%s: %v; now it is\n%s", file, err, &b)
	}
}

// At no size a line is too long or there are too many, and the key that is chosen is there where 24 lines are.
func TestScreenFits(t *testing.T) {
	v := busyView()
	for i := range 150 {
		name := fmt.Sprintf("KEY_%d", i)
		v.keys = append(v.keys, ctlKey{Name: name, State: observe.KeyOK})
	}
	for v.chosen = 0; v.chosen < len(v.keys); v.chosen += 7 {
		lines := v.draw(80, 24, unpainted)
		want := "> " + v.keys[v.chosen].Name + " "
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, want) }) {
			t.Errorf("%q is not shown:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if foot := v.foot()[1]; screen.Width(foot) > 80 {
		t.Errorf("%q has %d columns", foot, screen.Width(foot))
	}
	for columns := 1; columns < 140; columns += 1 + columns/8 {
		for rows := 1; rows < 60; rows += 1 + rows/16 {
			lines := v.draw(columns, rows, unpainted)
			if len(lines) > rows {
				t.Fatalf("%d × %d: %d lines", columns, rows, len(lines))
			}
			for _, line := range lines {
				if screen.Width(line) > columns || strings.ContainsAny(line, "\n\x1b") {
					t.Fatalf("%d × %d: %q", columns, rows, line)
				}
			}
		}
	}
}

// Each key makes the change that it is for, with words about it; other keys make none.
func TestKeysOfTheScreen(t *testing.T) {
	type turn = daemon.Turn
	ok, paused := ctlKey{Name: "A", State: observe.KeyOK}, ctlKey{Name: "A", State: observe.KeyPaused, Why: text.ByUser}
	refused := ctlKey{Name: "B", State: observe.KeyPaused, Why: "refused, 2 in a row"}
	banned := ctlKey{Name: "C", State: observe.KeyBanned, Why: "answered 401"}
	for _, c := range []struct {
		keys string // those that are pressed
		of   []ctlKey
		want []turn
	}{
		{"p", []ctlKey{ok, refused}, []turn{{Knob: "pause"}}},
		{"p", []ctlKey{paused, refused}, []turn{{Knob: "pause"}}},
		{"p", []ctlKey{paused, banned}, []turn{{Knob: "resume"}}},
		{"space", []ctlKey{ok, refused}, []turn{{Knob: "pause", Name: "A"}}},
		{"space", []ctlKey{paused, refused}, []turn{{Knob: "resume", Name: "A"}}},
		{"tab space", []ctlKey{paused, refused}, []turn{{Knob: "pause", Name: "B"}}},
		{"up space", []ctlKey{paused, refused}, []turn{{Knob: "pause", Name: "B"}}},
		{"down down space", []ctlKey{paused, refused}, []turn{{Knob: "resume", Name: "A"}}},
		{"space", nil, nil},
		{"+ - 0", []ctlKey{ok}, []turn{{Knob: "concurrency", Value: "70"}, {Knob: "concurrency", Value: "58"}, {Knob: "concurrency", Value: "0"}}},
		{"l 1 0 / s enter", []ctlKey{ok}, []turn{{Knob: "limit", Value: "10/s"}}},
		{"l 6 0 0 / m space 5 backspace 3 0 0 / m enter", []ctlKey{ok}, []turn{{Knob: "limit", Name: "600/m", Value: "300/m"}}},
		{"l p q esc p", []ctlKey{ok}, []turn{{Knob: "pause"}}},
		{"l backspace enter l space enter", []ctlKey{ok}, nil},
		{"x left enter esc", []ctlKey{ok}, nil},
		{"l 1 ctrl+c", []ctlKey{ok}, []turn{{Knob: "interrupted"}}},
	} {
		var got []turn
		m := &runScreen{look: func(*runView) {},
			change: func(t turn) (string, error) { got = append(got, t); return "changed", nil }}
		m.stop = func() { got = append(got, turn{Knob: "interrupted"}) }
		m.keys, m.most, m.limits = c.of, 64, []string{"20/s", "600/m"}
		for key := range strings.FieldsSeq(c.keys) {
			if key == "space" {
				key = " "
			}
			if !m.press(key) {
				t.Errorf("%s: %s closes the screen", c.keys, key)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.keys, got, c.want)
		}
	}
	m := &runScreen{look: func(*runView) {}, change: func(daemon.Turn) (string, error) { return "", errors.New("no limit \x1b") }}
	if m.press("0"); m.answer != `no limit \x1b` || !m.refused {
		t.Errorf("an error is %q", m.answer)
	}
	if m.press("q") {
		t.Error("q does not close the screen")
	}
}

// Looks that take long come rarely.
func TestLooksOfTheScreen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, takes := 0, time.Duration(0)
		m := &runScreen{look: func(*runView) { looks++; time.Sleep(takes) }}
		for _, c := range []struct {
			ago, takes time.Duration
			want       int // looks so far
		}{
			{149 * time.Millisecond, 0, 0}, {150 * time.Millisecond, 20 * time.Millisecond, 1}, {999 * time.Millisecond, 0, 1},
			{time.Second, 0, 2}, {200 * time.Millisecond, 0, 3},
		} {
			takes = c.takes
			if m.lookIfDue(c.ago); looks != c.want {
				t.Errorf("%v ago: %d looks, want %d", c.ago, looks, c.want)
			}
		}
	})
}
