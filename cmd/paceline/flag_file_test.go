package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// A flag of the command line counts more than its environment variable, and both count more than the file.
func TestFlagFile(t *testing.T) {
	l := listenTo(t, func(w http.ResponseWriter, q *http.Request, _ string) { fmt.Fprint(w, `{"ok":true}`) })
	dir := t.TempDir()
	flags := write(t, "run.yaml", fmt.Sprintf(`
limit: [1000/s, 900/10s] # both
header: "X-Row: file"
query:
  - from=file
  - name=a b
key-env: PL_A,PL_B
organization: {PL_A: acme, PL_B: acme}
url: %s/{row.line}?k={row.line}
input-format: lines
out: %s
progress: off
attempts: 1
success: .ok
skip-invalid: true
`, l.URL, filepath.Join(dir, "file.jsonl")))
	t.Setenv("PL_A", "key-a-Va7ueQ9xx")
	t.Setenv("PL_B", "key-b-Va7ueQ9xx")
	t.Setenv("PACELINE_HEADER", "X-Row: environment {key}")
	in := write(t, "in.txt", "17\n")
	code, _, stderr := paceline("", "run", "--flags", flags, "--query", "from=line", "--out", filepath.Join(dir, "line.jsonl"), in)
	if got, want := l.heard(), "GET /17?k=17&from=line X-Row: environment key-"; code != cli.ExitOK || len(got) != 1 || !strings.HasPrefix(got[0], want) {
		t.Errorf("exit %d, %q, want %q\n%s", code, got, want, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "file.jsonl")); err == nil {
		t.Error("--out of the file is used beside that of the command line")
	}
	t.Setenv("PACELINE_HEADER", "")
	os.Unsetenv("PACELINE_HEADER")
	code, _, stderr = paceline("", "run", "--flags", flags, "--without", "header,key-env,organization,query,success",
		"--out", filepath.Join(dir, "without.jsonl"), in)
	if got, want := l.heard(), "GET /17?k=17"; code != cli.ExitOK || len(got) != 2 || !slices.Contains(got, want) {
		t.Errorf("--without: exit %d, %q, want %q\n%s", code, got, want, stderr)
	}
	for want, args := range map[string][]string{
		"--without retry-dead: " + flags + " has no such flag": {"--flags", flags, "--without", "retry-dead"},
		"expected --flags FILE beside it":                      {"--without", "limit", "--limit", "1/s"},
	} {
		code, _, stderr := paceline("", append(append([]string{"run"}, args...), in)...)
		if code == cli.ExitOK || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s", args, code, stderr)
		}
	}
	t.Setenv("PACELINE_HEADER", "X-Row: environment {key}")
	code, plan, stderr := paceline("", "run", "--flags", flags, "--dry-run", "-o", "json", in)
	if code != cli.ExitOK || !strings.Contains(plan, "from=file\\u0026name=a+b") || !strings.Contains(plan, "900/10s") || !strings.Contains(plan, "1000/s") {
		t.Errorf("exit %d, the plan is %s\n%s", code, plan, stderr)
	}
}

// What is wrong in a file has its line.
func TestFlagFileRefuses(t *testing.T) {
	in := write(t, "in.txt", "http://127.0.0.1:1/\n")
	for _, c := range []struct {
		text, want string
	}{
		{"limit: 20/s\nlimt: 1\n", "FILE:2:1: \"limt\" is not known; did you mean limit?\n"},
		{"xyzzyxyzzy: 1\n", `FILE:1:1: "xyzzyxyzzy" is not known: want `},
		{"limit: 20/s\nquery: {api_key: x}\n", `FILE:2:8: query: a mapping is no text: expected as on the command line, such as ["api_key=VALUE"]`},
		{"limit: 20/s\nlimit: 1\n", `FILE:2:1: "limit" is there already, in line 1`},
		{"flags: x\n", `FILE:1:1: "flags" is not known`},
		{"help: true\n", `FILE:1:1: "help" is not known`},
		{"limit: 20/s\nconcurrency: many\n", `FILE:2:14: --concurrency "many", expected a whole number`},
		{"limit: 20/s\ntimeout: [1s, 2s]\n", `FILE:2:10: timeout: a list is no text`},
		{"limit: 20/s\nheader: {X: y}\n", `FILE:2:9: header: a mapping is no text: expected as on the command line, such as ["X: VALUE"]`},
		{"limit: [20/s, [1/s]]\n", `FILE:1:15: limit: a list is no text`},
		{"limit:\n", `FILE:1:7: limit: nothing is no text`},
		{"limit: 20\n", "--limit \"20\""},
		{"attempts: 3\n\nlimit: [1/s]\nbackoff-base: 2h\n", "--backoff-base 2h0m0s is above --backoff-max 30s (--backoff-base is from FILE:4)"},
		{"- limit\n", "FILE:1:1: a list is no file of flags"},
		{"", "FILE: is empty: want"},
		{"a: b: c", "FILE: no YAML"},
	} {
		flags := write(t, "run.yaml", c.text)
		code, stdout, stderr := paceline("", "run", "--flags", flags, in)
		if want := "paceline: " + strings.ReplaceAll(c.want, "FILE", flags); code != cli.ExitConfig || stdout != "" || !strings.HasPrefix(stderr, want) {
			t.Errorf("%q: exit %d, %s\nwant %s", c.text, code, stderr, want)
		}
	}
	if code, _, stderr := paceline("", "run", "--flags", "no/such.yaml", in); code != cli.ExitConfig || !strings.HasPrefix(stderr, "paceline: --flags: ") || !strings.Contains(stderr, "no/such.yaml") {
		t.Errorf("a file that is not there: exit %d, %s", code, stderr)
	}
	// A mistake of the command line is none of the file's.
	flags := write(t, "run.yaml", "limit: 20/s\n")
	if code, _, stderr := paceline("", "run", "--flags", flags, "--limit", "20", in); code != cli.ExitUsage || strings.Contains(stderr, "is from") {
		t.Errorf("a mistake of the command line: exit %d, %s", code, stderr)
	}
}

// What --init writes is right, as it is and with each of its examples. The schema has each flag once.
func TestFlagFileInit(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, stdout, stderr := paceline("", "run", "--init", "run.yaml"); code != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "next: paceline run --flags run.yaml --dry-run requests.jsonl") {
		t.Fatalf("exit %d with %q and %q", code, stdout, stderr)
	}
	if code, _, stderr := paceline("", "run", "--init", "run.yaml"); code != cli.ExitUsage || !strings.Contains(stderr, "is there already") {
		t.Errorf("a second time: exit %d, %s", code, stderr)
	}
	in := write(t, "in.txt", "http://127.0.0.1:1/\n")
	if code, plan, stderr := paceline("", "run", "--flags", "run.yaml", "--dry-run", in); code != cli.ExitOK || !strings.Contains(plan, "20/s") {
		t.Errorf("as it is: exit %d, %s%s", code, plan, stderr)
	}
	example := regexp.MustCompile(`(?m)^( *)# ([a-z-]+: .*|- .*|header:)$`)
	all := example.ReplaceAllString(string(initialFlags), "$1$2")
	all = strings.ReplaceAll(all, "\n#   - ", "\n  - ")
	if n := strings.Count(all, "\n#"); n > 20 || strings.Contains(all, "# budget") {
		t.Fatalf("examples are still commented out:\n%s", all)
	}
	c := newRunWithFile()
	f := &flagFile{name: write(t, "all.yaml", all), cmd: c, lines: map[string]int{}}
	if err := f.read(); err != nil || len(f.lines) < 15 {
		t.Errorf("with all examples: %d flags, %v", len(f.lines), err)
	}
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	_, text, _ := paceline("", "run", "--schema")
	if err := json.Unmarshal([]byte(text), &schema); err != nil || len(schema.Properties) < 90 || schema.Properties["limit"].Description == "" {
		t.Errorf("the schema has %d flags, %v", len(schema.Properties), err)
	}
	for _, name := range []string{"flags", "init", "schema", "help"} {
		if _, ok := schema.Properties[name]; ok {
			t.Errorf("the schema has %s", name)
		}
	}
}
