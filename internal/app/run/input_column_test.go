package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
)

// A line that would take a key to another host is named with the column of its URL.
func TestColumnOfAURL(t *testing.T) {
	b := newBench(t)
	b.config.Keys = []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}}
	b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
	b.config.KeyHosts = secret.Places{placeOf(t, "http://home.test")}
	got := b.run(`{"id":"x", "url":"http://away.test/"}`)
	if want := "in:1:18: a key is not sent to http://away.test, only to http://home.test"; !strings.Contains(got.notices, want) {
		t.Errorf("it says %q, want %q", got.notices, want)
	}
}

// Folders of all files that a run writes are made, and that is said.
func TestFoldersAreMade(t *testing.T) {
	for name, set := range map[string]func(c *Config, path string){
		"out": func(c *Config, path string) { c.Out = path }, "dead": func(c *Config, path string) { c.Dead = path },
		"summary": func(c *Config, path string) { c.Summary = path }, "report": func(c *Config, path string) { c.Report = path },
	} {
		b, notices := newBench(t), ""
		dir := filepath.Join(filepath.Dir(b.config.Out), "new", name)
		set(&b.config, filepath.Join(dir, "file.jsonl"))
		b.config.Notice = func(s string) { notices += s }
		r := b.made(b.config)
		err := r.Open()
		if err == nil {
			_, err = r.Close()
		}
		if info, serr := os.Stat(dir); err != nil || serr != nil || !info.IsDir() || !strings.Contains(notices, "the folder "+dir+" was not there, and is made") {
			t.Errorf("%s: %v, %v, %q", name, err, serr, notices)
		}
	}
}

// A file in the place of a folder is an error before anything is sent.
func TestFileForAFolder(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(filepath.Dir(b.config.Out), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.config.Out = filepath.Join(file, "x", "out.jsonl")
	if err := b.run(request("x", "http://home.test")).err; err == nil || !strings.Contains(err.Error(), file+" is a file, expected a folder") {
		t.Errorf("%v", err)
	}
}
