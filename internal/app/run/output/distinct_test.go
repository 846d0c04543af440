package output

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// No two files of a run are the same, whatever their names, and none is the input. Terminals and
// devices may be the same.
func TestDistinct(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"there", "input"} {
		if err := os.WriteFile(in(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(in("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"link": "there", "dangling": "folder/new", "absolute": in("new"),
		"circle": "circle", "second": "dangling", "same": "folder"} {
		if err := os.Symlink(to, in(from)); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Link(in("there"), in("hard")); err != nil {
		t.Skip(err)
	}
	info, err := os.Stat(in("input"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		out, dead, summary string
		llm                bool
		want               string
	}{
		{"out", "dead", "summary", false, ""},
		{"there", "hard", "", false, "--out there and --dead hard are one file"},
		{"there", "link", "", true, "--out there and --errors link are one file"},
		{"there", "dead", "link", false, "--out there and --summary link are one file"},
		{"out", "dead", "dead", false, "--dead dead and --summary dead are one file"},
		{"dangling", "folder/new", "", false, "--out dangling and --dead folder/new are one file"},
		{"second", "same/new", "", false, "--out second and --dead same/new are one file"},
		{"absolute", "new", "", false, "--out absolute and --dead new are one file"},
		{"circle", "dead", "", false, ""},
		{"out", "input", "", false, "--dead input is the input"},
		{"out", "dead", "input", false, "--summary input is the input"},
		{"out", "out.journal", "", false, "--dead out.journal and the journal out.journal are one file"},
		{"out", "dead", "out.journal.new", false,
			"--summary out.journal.new and the journal out.journal.new are one file"},
		{os.DevNull, os.DevNull, "", false, ""},
	} {
		at := func(name string) string {
			if name == "" || filepath.IsAbs(name) {
				return name
			}
			return in(name)
		}
		config := Config{Out: at(c.out), Dead: at(c.dead), Summary: at(c.summary), InputInfo: info,
			Format: format.Plain{}}
		if c.llm {
			config.Format = &format.LLM{}
		}
		got := ""
		if err := config.distinct(); err != nil {
			got = strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
		}
		if got != c.want {
			t.Errorf("%s, %s, %s: %q, expected %q", c.out, c.dead, c.summary, got, c.want)
		}
	}
	// A view is made of the rows, which have a file of their own.
	view := Config{Out: in("table.rows"), view: in("table"), Dead: in("table.rows"), Format: format.Plain{}}
	if err := view.distinct(); err == nil || !strings.Contains(err.Error(), "the rows ") {
		t.Errorf("rows and dead letters in one file: %v", err)
	}
	// The file behind standard output counts.
	f, err := os.OpenFile(in("there"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for out, want := range map[string]string{"-": "standard output and --dead link are one file", "other": ""} {
		config := Config{Out: out, Dead: in("link"), Stdout: f, Format: format.Plain{}}
		got := ""
		if err := config.distinct(); err != nil {
			got = strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
		}
		if got != want {
			t.Errorf("%s: %q, expected %q", out, got, want)
		}
	}
}
