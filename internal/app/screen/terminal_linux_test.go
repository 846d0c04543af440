package screen

import (
	"os"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A terminal is as large as it says, at any time; one that does not say it is taken for the usual one.
func TestSizeOfATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	terminal := need.OpenTerminal(t)
	file, resize := terminal.File, terminal.Resize
	s := New(file, Config{})
	for _, c := range [][4]uint16{{132, 50, 132, 50}, {60, 20, 60, 20}, {1, 1, 1, 1}, {0, 20, 80, 24}, {60, 0, 80, 24}, {0, 0, 80, 24}} {
		resize(c[0], c[1])
		if columns, rows := s.size(); columns != int(c[2]) || rows != int(c[3]) {
			t.Errorf("%d × %d is taken for %d × %d", c[0], c[1], columns, rows)
		}
	}
	asked := make(chan struct{}, 100)
	stop := s.Follow(func() []Line { asked <- struct{}{}; return nil })
	<-asked // however rarely a line would be written elsewhere
	stop()
	if ordinary, err := os.Create(t.TempDir() + "/f"); err != nil || IsTerminal(ordinary) || !IsTerminal(file) {
		t.Errorf("a file is no terminal, and a terminal is: %v", err)
	} else {
		_ = ordinary.Close()
	}
	if s := New(file, Config{Plain: true}); s.rewrites || s.size == nil {
		t.Error("lines are rewritten where they must not be, or notices not broken")
	}
	t.Setenv("TERM", "dumb")
	if New(file, Config{}).rewrites {
		t.Error("lines are rewritten on a terminal that cannot")
	}
}

// Colours are shown where they are asked for, and otherwise on a terminal that has them, or as the environment has it.
func TestColors(t *testing.T) {
	file := need.OpenTerminal(t).File
	for _, c := range []struct {
		color, env string
		piped, on  bool // whether there are colours
	}{
		{"", "TERM=xterm", false, true},
		{"", "TERM=dumb", false, false},
		{"", "TERM=xterm NO_COLOR=1", false, false},
		{"", "TERM=xterm CLICOLOR_FORCE=1", true, true},
		{"", "TERM=dumb CLICOLOR_FORCE=1", true, true},
		{"", "TERM=xterm CLICOLOR_FORCE=0", false, true},
		{"", "TERM=xterm CLICOLOR_FORCE=1 NO_COLOR=1", false, false},
		{"always", "TERM=dumb NO_COLOR=1", true, true},
		{"never", "TERM=xterm CLICOLOR_FORCE=1", false, false},
	} {
		for _, name := range []string{"TERM", "NO_COLOR", "CLICOLOR_FORCE"} {
			t.Setenv(name, "")
		}
		for set := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(set, "=")
			t.Setenv(name, value)
		}
		for what, is := range map[string]bool{
			New(new(strings.Builder), Config{Color: c.color}).Paint(Red, "x"): c.piped,
			New(file, Config{Color: c.color}).Paint(Red, "x") + " ":           c.on,
		} {
			if strings.HasPrefix(what, "\x1b[31m") != is {
				t.Errorf("color %q, %s: %q", c.color, c.env, what)
			}
		}
	}
}
