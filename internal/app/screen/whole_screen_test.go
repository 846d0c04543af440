package screen

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPressed(t *testing.T) {
	for _, c := range []struct {
		sent string
		want []string
	}{
		{"p", []string{"p"}},
		{"10/s\r", []string{"1", "0", "/", "s", "enter"}},
		{"\x1b[A\x1b[B\x1bOA\x1bOB", []string{"up", "down", "up", "down"}},
		{"\t\x1b[Z", []string{"tab", "backtab"}},
		{"\x1b", []string{"esc"}},
		{"a\x1b", []string{"a", "esc"}},
		{"\x7f\b", []string{"backspace", "backspace"}},
		{"\x03", []string{"ctrl+c"}},
		{"\x1b[1;5A\x1b[15~q", []string{"q"}}, // ctrl with an arrow, and F5
		{"\x1b[", nil},
		{"\x1bq+", []string{"+"}}, // alt
		{"ä€\x00\x1a\xff ", []string{" "}},
		{"", nil},
	} {
		if got := pressed([]byte(c.sent)); !slices.Equal(got, c.want) {
			t.Errorf("%q is %q, want %q", c.sent, got, c.want)
		}
	}
}

// shownBy returns a Whole on a terminal of that size, and what it wrote since the last call.
func shownBy(columns, rows *int, c Whole) (w *whole, wrote func() string) {
	var b strings.Builder
	s := &Screen{w: &b, size: func() (int, int) { return *columns, *rows }}
	s.whole = &whole{Whole: c, screen: s}
	return s.whole, func() string {
		defer b.Reset()
		return b.String()
	}
}

// Only lines that are new are written. A terminal with another size, or that has lost its lines, has all of them again.
func TestWholeDraws(t *testing.T) {
	columns, rows, lines := 80, 3, []string{"a", "b"}
	w, wrote := shownBy(&columns, &rows, Whole{Draw: func(c, r int, said []string) []string {
		if c != columns || r != rows {
			t.Errorf("drawn for %d × %d", c, r)
		}
		return append(slices.Clone(lines), said...)
	}})
	for _, c := range []struct {
		what string
		do   func()
		want string
	}{
		{"the first", func() {}, "\x1b[2J\x1b[1;1H\x1b[2Ka\x1b[2;1H\x1b[2Kb"},
		{"the same", func() {}, ""},
		{"another line", func() { lines[1] = "c" }, "\x1b[2;1H\x1b[2Kc"},
		{"said", func() { w.screen.Line("m\x1b[31m") }, `\x1b`},
		{"said in colours", func() { w.said = nil; w.screen.Ours("\x1b[31mred\x1b[0m") }, "\x1b[3;1H\x1b[2Kred"},
		{"more than rows", func() { w.screen.Line("below") }, ""},
		{"fewer", func() { w.said, lines = nil, lines[:1] }, "\x1b[2;1H\x1b[2K\x1b[3;1H\x1b[2K"},
		{"resized", func() { columns, rows = 40, 2 }, "\x1b[2J\x1b[1;1H\x1b[2Ka"},
		{"lost", func() { w.stale = true }, "\x1b[2J\x1b[1;1H\x1b[2Ka"},
	} {
		c.do()
		w.draw()
		if got := wrote(); got != c.want && (c.want != `\x1b` || !strings.HasSuffix(got, `m\x1b[31m`)) {
			t.Errorf("%s: wrote %q, want %q", c.what, got, c.want)
		}
	}
}

// Not one line is lost: what does not fit into the memory stands on the terminal already.
func TestWholeHolds(t *testing.T) {
	columns, rows := 80, 24
	w, wrote := shownBy(&columns, &rows, Whole{})
	var all, shown strings.Builder
	for i := range 3 * mostHeld / 1000 {
		line := fmt.Sprintf("%d %s", i, strings.Repeat("x", 990))
		all.WriteString(line + "\n")
		w.screen.Write([]byte(line + "\n"))
		if len(w.held) > mostHeld || len(w.said) > mostSaid {
			t.Fatalf("%d bytes and %d lines are kept", len(w.held), len(w.said))
		}
		if now := wrote(); now != "" {
			if !strings.HasPrefix(now, leaves) || !strings.HasSuffix(now, enters) || !w.stale {
				t.Fatalf("in the midst it wrote %q…", now[:20])
			}
			now = strings.TrimSuffix(strings.TrimPrefix(now, leaves), enters)
			shown.WriteString(strings.ReplaceAll(now, "\r\n", "\n"))
		}
	}
	if n := shown.Len(); n < 2*mostHeld {
		t.Errorf("%d bytes were shown in the midst", n)
	}
	if shown.WriteString(string(w.held)); shown.String() != all.String() {
		t.Errorf("%d bytes of %d are left", shown.Len(), all.Len())
	}
	w.screen.whole = nil
	if w.screen.Line("after"); wrote() != "after\n" {
		t.Error("a line after it does not go to the terminal")
	}
}

// Lines that are rewritten would stand in the midst of what fills the terminal.
func TestNoLinesInWhole(t *testing.T) {
	columns, rows := 80, 24
	w, wrote := shownBy(&columns, &rows, Whole{})
	w.screen.rewrites = true
	w.screen.show([]Line{{{Forms: []string{"progress"}}}})
	if got := wrote(); got != "" || !w.screen.isFilled() {
		t.Errorf("wrote %q", got)
	}
}
