package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// TestQuietAndVerbose: the text of a run on standard error, by its flags.
func TestQuietAndVerbose(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Fail") != "" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, `{}`)
	}))
	defer s.Close()
	in := write(t, "in.jsonl", numbered(3, s.URL))
	for _, c := range []struct {
		flags  string
		code   int
		says   []string // all of standard error, or nothing
		silent []string
	}{
		{"", cli.ExitOK, []string{"3 to send, 3 done"}, []string{"level=DEBUG"}},
		{"-q", cli.ExitOK, nil, nil},
		{"--quiet --progress 1ms -o json", cli.ExitOK, nil, nil},
		{"-v", cli.ExitOK, []string{"level=DEBUG msg=answer id=2", "3 done"}, nil},
		{"-q --log-level debug", cli.ExitOK, []string{"level=DEBUG msg=answer id=2"}, []string{"3 done"}},
		{"-q -H X-Fail:1", cli.ExitSomeFailed, []string{"paceline: 3 requests failed: ", "answered 404 Not Found"}, []string{"to send", "--retry-dead"}},
		{"-q -H X-Fail", cli.ExitUsage, []string{`--header "X-Fail", expected "Name: value"`}, nil},
		{"-q -v", cli.ExitUsage, []string{"-q and -v"}, nil},
		{"-v --log-level info", cli.ExitUsage, []string{"-v is --log-level debug, and there is --log-level info, too"}, nil},
		{"-v --log-level debug", cli.ExitOK, []string{"level=DEBUG"}, nil},
	} {
		code, _, stderr := paceline("", append(strings.Fields("run --limit 1000/s "+c.flags), in)...)
		if code != c.code {
			t.Errorf("%s: exit %d, want %d: %s", c.flags, code, c.code, stderr)
		}
		if c.says == nil && stderr != "" {
			t.Errorf("%s says %q", c.flags, stderr)
		}
		for _, want := range c.says {
			if !strings.Contains(stderr, want) {
				t.Errorf("%s says %q, without %q", c.flags, stderr, want)
			}
		}
		for _, not := range c.silent {
			if strings.Contains(stderr, not) {
				t.Errorf("%s says %q, with %q", c.flags, stderr, not)
			}
		}
	}
}

// TestOutputThatIsAFile: -o FILE is meant as curl has it.
func TestOutputThatIsAFile(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer s.Close()
	in := write(t, "in.jsonl", numbered(2, s.URL))
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		flags string
		code  int
		says  string
		file  string
	}{
		{"-o results.jsonl", cli.ExitOK, "-o results.jsonl is taken as --out results.jsonl", "results.jsonl"},
		{"-o ./json", cli.ExitOK, "-o ./json is taken as --out ./json", "json"},
		{"-o -", cli.ExitOK, "2 to send, 2 done", ""},
		{"-o json", cli.ExitOK, `"done":2`, ""},
		{"-o csv", cli.ExitUsage, "-o csv is no format of the summary, expected text or json; a file for the results is --out (-O), such as --out ./csv", ""},
		{"-o people/", cli.ExitUsage, "a folder for the bodies of answers is --out-dir people/", ""},
		{"-o r2.jsonl --out r3.jsonl", cli.ExitUsage, "it is beside --out r3.jsonl, expected one of them", ""},
	} {
		code, _, stderr := paceline("", append(strings.Fields("run --limit 1000/s "+c.flags), in)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d, want %d with %q: %s", c.flags, code, c.code, c.says, stderr)
		}
		if c.file != "" && len(results(t, c.file)) != 2 {
			t.Errorf("%s: %d results", c.flags, len(results(t, c.file)))
		}
	}
	for _, not := range []string{"csv", "r2.jsonl", "r3.jsonl", "-"} {
		if _, err := os.Stat(not); err == nil {
			t.Errorf("there is a file %s", not)
		}
	}
}
