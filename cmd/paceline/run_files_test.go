package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// Files of a run that are one file, by whatever name, are refused before anything is written.
func TestRunOneFile(t *testing.T) {
	dir := t.TempDir()
	line := `{"id":"a","url":"http://127.0.0.1:1/"}` + "\n"
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"in": line, "old": "", "in.journal": line} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink("in", at("link-in")), os.Link(at("in"), at("hard-in")), os.Symlink("old", at("link-old")), os.Mkdir(at("folder"), 0o700),
		os.Symlink("new", at("link-new")), os.Symlink(dir, at("link-folder")),
	} {
		if err != nil {
			noLinks(t, err)
		}
	}
	before := tree(t, dir)
	for _, c := range []struct{ args, want string }{
		{"--out link-in in", "--out link-in is the input"},
		{"--out hard-in in", "--out hard-in is the input"},
		{"--dead in in", "--dead in is the input"},
		{"--summary in --out x in", "--summary in is the input"},
		{"--summary hard-in in", "--summary hard-in is the input"},
		{"--out in in.journal", "the journal in.journal is the input"},
		{"--out old --dead old in", "--out old and --dead old are one file"},
		{"--out old --dead link-old in", "--out old and --dead link-old are one file"},
		{"--out old --summary link-old in", "--out old and --summary link-old are one file"},
		{"--out x --dead old --summary old in", "--dead old and --summary old are one file"},
		{"--dead old --summary old in", "--dead old and --summary old are one file"},
		{"--out new --dead new in", "--out new and --dead new are one file"},
		{"--out new --dead folder/../new in", "--out new and --dead folder/../new are one file"},
		{"--out new --dead link-new in", "--out new and --dead link-new are one file"},
		{"--out new --summary link-folder/new in", "--out new and --summary link-folder/new are one file"},
		{"--out x --dead x.journal in", "--dead x.journal and the journal x.journal are one file"},
		{"--out x --summary x.journal in", "--summary x.journal and the journal x.journal are one file"},
		{"--out x --dead x.journal.new in", "--dead x.journal.new and the journal x.journal.new are one file"},
		{"--out x.jsonl --summary x.dead.jsonl in", "--dead x.dead.jsonl and --summary x.dead.jsonl are one file"},
	} {
		t.Chdir(dir)
		code, _, stderr := paceline("", append([]string{"run", "--limit", "20/s", "--max-outage", "0s"}, strings.Fields(c.args)...)...)
		if want := c.want + "; nothing was sent"; code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d %swant %s", c.args, code, stderr, want)
		}
		if after := tree(t, dir); after != before {
			t.Fatalf("%s: the files are\n%s, and were\n%s", c.args, after, before)
		}
	}
}

// noLinks ends a test where a link could not be made: on Windows that takes a right that not
// everybody has.
func noLinks(t *testing.T, err error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// An output that is no file is refused at once. Opening a pipe without a reader waits for ever, and
// beside a device there is no place for other files.
func TestRunNoFile(t *testing.T) {
	dir := t.TempDir()
	in := write(t, "in", `{"id":"a","url":"http://127.0.0.1:1/"}`+"\n")
	t.Chdir(dir)
	if err := errors.Join(os.Mkdir("folder", 0o700), os.Symlink("ff", "link")); err != nil {
		noLinks(t, err)
	}
	if err := exec.Command(need.Program(t, "mkfifo"), "ff", "x.dead.jsonl").Run(); err != nil {
		t.Fatal(err)
	}
	const file, orOutput = ", expected a file", ", expected a file, or - for standard output"
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--out ff", 2, "--out ff is a named pipe" + orOutput},
		{"--out link", 2, "--out link is a named pipe" + orOutput},
		{"--dry-run --out ff", 2, "--out ff is a named pipe" + orOutput},
		{"--out folder", 2, "--out folder is a folder" + orOutput},
		{"--out /dev/full", 2, "--out /dev/full is a device" + orOutput},
		{"--out y --dead ff", 2, "--dead ff is a named pipe" + orOutput},
		{"--dead /dev/full", 2, "--dead /dev/full is a device" + orOutput},
		{"--summary ff", 2, "--summary ff is a named pipe" + file},
		{"--out x", 1, "x.dead.jsonl is a named pipe" + file + "; nothing was sent"},
	} {
		if _, err := os.Stat("/dev/full"); err != nil && strings.Contains(c.args, "/dev/") {
			continue
		}
		code, _, stderr := paceline("", append([]string{"run", "--limit", "20/s", "--max-outage", "0s", in}, strings.Fields(c.args)...)...)
		if code != c.code || stderr != "paceline: "+c.want+"\n" {
			t.Errorf("%s: %d %swant %d %s", c.args, code, stderr, c.code, c.want)
		}
	}
}

// Results for /dev/null are discarded, with a notice and without files beside it. A run with
// discarded results cannot be resumed.
func TestRunNowhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no name there that files can be told by")
	}
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if asked++; strings.HasSuffix(q.URL.Path, "/1") {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	dir := t.TempDir()
	in := write(t, "in.jsonl", fmt.Sprintf("{\"id\":\"a\",\"url\":\"%[1]s/0\"}\n{\"id\":\"b\",\"url\":\"%[1]s/1\"}\n", srv.URL))
	t.Chdir(dir)
	if err := os.Symlink(os.DevNull, "link"); err != nil {
		noLinks(t, err)
	}
	for _, c := range []struct {
		args  string
		says  string
		asked int // also by the runs before
		files string
	}{
		{"--out " + os.DevNull, "results are thrown away (--out /dev/null), so there is nothing to go on from", 2, "link"},
		{"--out link", "results are thrown away (--out link), so there", 4, "link"},
		{"--out link --dead " + os.DevNull + " --summary link", "1 done", 6, "link"},
		{"--out x --dead link", "dead letters are thrown away (--dead link), so the same command again sends them again", 8, "link x x.journal"},
		{"--out x --dead link", "1 done before", 9, "link x x.journal"},
	} {
		code, stdout, stderr := paceline("", append([]string{"run", "--limit", "200/s", "--concurrency", "1", in}, strings.Fields(c.args)...)...)
		if code != 3 || stdout != "" || !strings.Contains(stderr, c.says) || !strings.Contains(stderr, "1 dead") || strings.Contains(stderr, "--retry-dead") || strings.Contains(stderr, "lost: ") {
			t.Errorf("%s: %d %q %s", c.args, code, stdout, stderr)
		}
		all, err := os.ReadDir(dir)
		var files []string
		for _, f := range all {
			files = append(files, f.Name())
		}
		if err != nil || strings.Join(files, " ") != c.files || asked != c.asked {
			t.Errorf("%s: asked %d times, want %d; files %v, %v", c.args, asked, c.asked, files, err)
		}
	}
}

// Folders that are not there are made, for the owner's eyes, when something is sent: not for a
// plan.
func TestRunMakesFolders(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	in := write(t, "in.jsonl", numbered(1, srv.URL))
	t.Chdir(t.TempDir())
	args := []string{"run", "--limit", "200/s", "--out", "a/b/r.jsonl", "--dead", "c/d.jsonl", "--summary", "e/s.json", in}
	if code, _, stderr := paceline("", append(args, "--dry-run")...); code != 0 || tree(t, ".") != "" {
		t.Errorf("%d %s%s", code, stderr, tree(t, "."))
	}
	code, _, stderr := paceline("", args...)
	if code != 0 || len(results(t, "a/b/r.jsonl")) != 1 || read(t, "e/s.json") == "" {
		t.Errorf("%d %s", code, stderr)
	}
	for _, dir := range []string{"a", "a/b", "c", "e"} {
		if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info, err)
		}
	}
	for _, dir := range []string{filepath.Join("a", "b"), "c", "e"} {
		if !strings.Contains(stderr, "the folder "+dir+" was not there, and is made\n") {
			t.Errorf("%s: %s", dir, stderr)
		}
	}
}

// tree is what a folder has.
func tree(t *testing.T, dir string) string {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range all {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		b.WriteString(e.Name() + ": " + string(text) + "\n")
	}
	return b.String()
}

// Redirected output is checked, too: a run that reads its own output would never end.
func TestRunRedirected(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", `{"id":"a","url":"http://127.0.0.1:1/"}`+"\n")
	f, err := os.OpenFile(in, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		name          string
		stdin, stdout bool
		args          []string
		want          string
	}{
		{"results into the input", false, true, []string{in}, "standard output is the input"},
		{"the input as results", true, false, []string{"--out", in, "-"}, "--out " + in + " is the input"},
		{"both", true, true, []string{"-"}, "standard output is the input"},
		{"dead letters into the results", false, true, []string{"--dead", in, write(t, "b.jsonl", "")}, "standard output and --dead " + in + " are one file"},
	} {
		cmd := program(t, append([]string{"run", "--limit", "20/s", "--max-outage", "0s"}, c.args...)...)
		if c.stdin {
			cmd.Stdin = f
		}
		if c.stdout {
			cmd.Stdout = f
		}
		var errs strings.Builder
		cmd.Stderr = &errs
		_ = cmd.Run()
		if !strings.Contains(errs.String(), c.want+"; nothing was sent") {
			t.Errorf("%s: %swant %s", c.name, errs.String(), c.want)
		}
	}
}
