package run

import (
	"github.com/paceline-go/paceline/internal/app/run/dead"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	for from, to := range map[string]string{"link": "there", "dangling": "folder/new", "absolute": in("new"), "circle": "circle", "second": "dangling", "same": "folder"} {
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
		{"out", "dead", "out.journal.new", false, "--summary out.journal.new and the journal out.journal.new are one file"},
		{os.DevNull, os.DevNull, "", false, ""},
	} {
		at := func(name string) string {
			if name == "" || filepath.IsAbs(name) {
				return name
			}
			return in(name)
		}
		config := Config{Out: at(c.out), Dead: at(c.dead), Summary: at(c.summary), InputInfo: info, Format: format.Plain{}}
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

// The forms of a template, and the values in it.
func TestParsedTemplates(t *testing.T) {
	for line, want := range map[string]string{
		"A: {key}-{token}-{nonce}-{id}-{attempt}-{row.a b}-{{key}}": `A=k-t-7-i-3-<a b>-{k}`,
		" a :  x{y ": "a=x{y", "A:": "A=", "A: {}": "A={}", "A: {KEY}": "A={KEY}",
		"A: {secret}": `"A: {secret}": unknown {secret}, expected {key}, {token}, {nonce}, {id}, {attempt} or {row.COLUMN}`,
		"A b: c":      `"A b: c": "A b" is no header name, expected "Name: value"`,
		"A":           `"A", expected "Name: value"`,
		"A: \x01":     `"A: \x01": the value has a control character, expected "Name: value"`,
		"host: x":     "",
	} {
		all, err := format.ParseHeaders([]string{line})
		if err != nil {
			if err.Error() != want {
				t.Errorf("%q: %v, expected %s", line, err, want)
			}
			continue
		}
		v := &format.Values{Key: "k", Token: "t", Nonce: 7, ID: "i", Attempt: 3, Cells: func(column string) string { return "<" + column + ">" }}
		if got := all[0].Name() + "=" + all[0].Fill(v); got != want && want != "" {
			t.Errorf("%q: %q, expected %q", line, got, want)
		}
		v.IsShown = true
		if got := all[0].Fill(v); strings.Contains(line, "{nonce}") != strings.Contains(got, "{nonce}") {
			t.Errorf("%q is shown as %q", line, got)
		}
	}
	for line, want := range map[string]string{
		"a=b=c": "", "a=1&b=2": `"a=1&b=2": a second parameter needs a --query of its own, expected "name=value"`, "=b": `"=b": the name is empty, expected "name=value"`, "a": `"a", expected "name=value"`,
	} {
		all, err := format.ParseQuery([]string{line})
		if got := ""; err != nil {
			if got = err.Error(); got != want {
				t.Errorf("%q: %s, expected %s", line, got, want)
			}
		} else if want != "" || all[0].Name() != "a" || all[0].Fill(&format.Values{}) != "b=c" {
			t.Errorf("%q: %+v, expected %s", line, all, want)
		}
	}
	all, err := format.ParseHeaders([]string{"A: {row.x}{row.y}{id}", "B: {row.x}{nonce}", "C: c"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(format.Columns(all...), " "); got != "x y" {
		t.Errorf("columns %q", got)
	}
	for word, want := range map[string]bool{"id": true, "nonce": true, "key": false, "c": false, "C: c": false} {
		if format.Uses(all, word) != want {
			t.Errorf("%s is used: %v", word, !want)
		}
	}
	if _, err := dead.Parse("outage,none"); err == nil || err.Error() != `"none", expected all, or some of outage, failed, limited, nonce, expired, refused, invalid, redirect, held, model, loop, partly` {
		t.Error(err)
	}
	if _, err := dead.Parse(""); err == nil {
		t.Error("the empty set is taken")
	}
}
