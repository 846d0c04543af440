package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/tally"
)

// A row whose request is a dead letter is in it. When all of them are done at last, the run says so.
func TestRunRowsOfDeadLetters(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	fails.Store(true)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if fails.Load() {
			http.NotFound(w, q)
		}
	}))
	defer srv.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", write(t, "in.csv", "order,customer\n17,ann\n18,bob\n"),
		"--url", srv.URL + "/{row.order}", "--limit", "none", "--out", out}
	code, _, stderr := paceline("", args...)
	dead := strings.TrimSuffix(out, ".jsonl") + ".dead.jsonl"
	if letters := read(t, dead); code != cli.ExitSomeFailed || !strings.Contains(letters,
		`"columns":{"customer":"ann","order":"17"}`) || !strings.Contains(letters, `"customer":"bob"`) {
		t.Fatalf("exit %d: %s\n%s", code, stderr, letters)
	}
	fails.Store(false)
	const want = "no dead letters are left: all of "
	if code, _, stderr = paceline("", append(args, "--retry-dead")...); code != 0 || !strings.HasSuffix(stderr,
		want+dead+" are done now, and it keeps their lines\n") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr = paceline("", append(args, "--retry-dead")...); code != 0 || strings.Contains(stderr, want) {
		t.Errorf("with nothing to send, exit %d: %s", code, stderr)
	}
}

// A plan for nonces names the keys, and says that the time of answers bounds the rate.
func TestRunPlanOfNonces(t *testing.T) {
	t.Setenv("PL_NONCE_A", "s3cret-Of-9a7Kq")
	t.Setenv("PL_NONCE_B", "s3cret-Of-8b6Lp")
	in := write(t, "in.jsonl", numbered(100, "http://127.0.0.1:1/"))
	args := []string{"run", in, "--limit", "20/s", "--key-env", "PL_NONCE_A,PL_NONCE_B", "--query", "key={key}", "--dry-run"}
	const bound = "nonces one request at a time per key: its answer time, which is not known here, bounds the rate"
	for nonce, wants := range map[string]bool{"nonce={nonce}": true, "nonce=1": false} {
		code, stdout, stderr := paceline("", append(args, "--query", nonce)...)
		if got := squeezed(stdout); code != 0 || !strings.Contains(got, " keys 2 ") ||
			strings.Contains(got, bound) != wants || strings.Contains(got, "time at least 2s") != wants {
			t.Errorf("%s: exit %d: %s%s", nonce, code, stdout, stderr)
		}
	}
	_, stdout, _ := paceline("", append(args, "--query", "nonce={nonce}", "--nonce-gap", "5ms")...)
	if strings.Contains(squeezed(stdout), bound) {
		t.Errorf("with a gap: %s", stdout)
	}
}

// The summary says what part of the limit was used, and what bound the run if the limit did not.
func TestUsedOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		percent, ofLimit float64
		gap              time.Duration
		want             string
	}{
		{99.2, 99.2, 0, "99.2 % of the limit"},
		{99.2, 39, 0, "39.0 % of the limit (bound by the order of nonces: see --nonce-gap)"},
		{99.2, 0, 0, "bound by the order of nonces"},
		{99.2, 99.2, 50 * time.Millisecond, "99.2 % of the limit"},
		{99.2, 39, 50 * time.Millisecond, "39.0 % of the limit (bound by --nonce-gap 50ms)"},
		{99.2, 0, 50 * time.Millisecond, "bound by --nonce-gap 50ms"},
	} {
		if got := usedOf(c.percent, c.ofLimit, "the limit", c.gap); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
		k := tally.KeyTotals{Key: "A", Percent: c.percent, OfLimit: c.ofLimit}
		if got := keyText(&k, c.gap); !strings.HasSuffix(got, strings.Replace(c.want, "the limit", "its limit", 1)) {
			t.Errorf("%v: %s", c, got)
		}
	}
}

// A key that the server does not take makes the exit code one of failure, unless workers of a backlog share the work.
func TestRunEndsWithAKeyOutOfUse(t *testing.T) {
	t.Parallel()
	f := newRunFlags()
	totals := tally.Totals{OutOfUse: []string{"ACME_1"}}
	if err := f.end(totals, nil, nil); cli.Code(err) != cli.ExitSomeFailed ||
		fmt.Sprint(err) != "the server refused key ACME_1 for good, and the run went on without" {
		t.Errorf("exit %d, %v", cli.Code(err), err)
	}
	f.backlog.store = "sqlite:b.db"
	if err := f.end(totals, nil, nil); err != nil {
		t.Errorf("of a backlog: %v", err)
	}
}

// A plan refuses what the run would refuse: another selection than that of the results.
func TestRunPlanOfAnotherSelection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"name":"x"}`)
	}))
	defer srv.Close()
	args := []string{"run", write(t, "in.jsonl", numbered(2, srv.URL)),
		"--limit", "none", "--out", filepath.Join(t.TempDir(), "out.csv")}
	if code, _, stderr := paceline("", append(args, "--select", "name=.body.name")...); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for selection, want := range map[string]int{"name=.body.name": 0, "title=.body.name": cli.ExitConfig} {
		if code, stdout, stderr := paceline("", append(args, "--dry-run", "--select", selection)...); code != want ||
			strings.Contains(stderr, "was begun with") != (want > 0) {
			t.Errorf("%s: exit %d: %s%s", selection, code, stdout, stderr)
		}
	}
}

// A backlog knows which requests are its own.
func TestAppendIsForFiles(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"run in.jsonl --limit 1/s", "work --limit 1/s"} {
		args := append(strings.Fields(verb), "--append", "--backlog", "sqlite:"+filepath.Join(t.TempDir(), "b.db"))
		if code, _, stderr := paceline("", args...); code != cli.ExitUsage || !strings.Contains(stderr,
			"a backlog knows its own requests") {
			t.Errorf("%s: exit %d, %s", verb, code, stderr)
		}
	}
}

// A trial sends the first requests of any form of input, whatever is in the rest. The same command then sends the others.
func TestRunFirst(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"in.csv": "id\n0\n1\n2\n3\n4\n", "in.jsonl": "{\"id\":0}\n\n{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n", "in.json": `[{"id":0},{"id":1},{"id":2},{"id":3},{"id":4}]`,
	} {
		lib := newLibrary(t, func(http.ResponseWriter, *http.Request) {})
		in, out := write(t, name, text), filepath.Join(t.TempDir(), "out.jsonl")
		args := []string{"run", in, "--limit", "none", "--url", lib.URL + "/?id={row.id}", "--out", out}
		trial := append(slices.Clone(args), "--first", "2")
		if code, stdout, _ := paceline("", append(trial, "--dry-run")...); code != 0 ||
			!strings.HasPrefix(squeezed(stdout), "requests 2 to send") {
			t.Errorf("%s: the plan: %d %s", name, code, stdout)
		}
		for _, step := range []struct {
			args      []string
			code, all int
			says      string
		}{
			{trial, 0, 2, "2 to send, 2 done"}, {trial, 0, 2, "0 to send, 0 done"}, {args, 0, 5, "3 to send, 3 done"},
			{trial, 0, 5, "0 to send, 0 done"},
		} {
			code, _, stderr := paceline("", step.args...)
			if code != step.code || lib.count() != step.all || !strings.Contains(stderr, step.says) ||
				strings.Contains(stderr, "appended") || strings.Contains(stderr, "not in") {
				t.Errorf("%s, %v: exit %d, %d asked: %s", name, step.args, code, lib.count(), stderr)
			}
		}
	}
	lib := newLibrary(t, func(http.ResponseWriter, *http.Request) {})
	if code, _, stderr := paceline(numbered(9, lib.URL)+"}\n", "run", "-", "--limit", "none",
		"--first", "4"); code != 0 || lib.count() != 4 {
		t.Errorf("a pipe: exit %d, %d asked: %s", code, lib.count(), stderr)
	}
	for _, args := range []string{"--first 0", "--first -3", "--first 5 --backlog sqlite:b.db"} {
		if code, _, stderr := paceline("", append([]string{"run", "x.jsonl", "--limit", "none"},
			strings.Fields(args)...)...); code != cli.ExitUsage || !strings.Contains(stderr, "--first") {
			t.Errorf("%s: exit %d: %s", args, code, stderr)
		}
	}
}

// Of two things that are missing, the key and the input, both are named.
func TestRunNeitherKeyNorFile(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "absent.csv")
	code, _, stderr := paceline("", "run", absent, "--limit", "none", "--url", "http://127.0.0.1:1/", "--key-env",
		"PL_NOT_THERE", "--header", "X: {key}")
	if code != cli.ExitConfig || !strings.Contains(stderr, absent) || !strings.Contains(stderr, "PL_NOT_THERE") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A plan whose reader goes away ends without a word, as with other programs.
func TestRunPlanToHead(t *testing.T) {
	t.Parallel()
	gone, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	defer to.Close()
	var stderr bytes.Buffer
	c := program(t, "run", "--dry-run", "--limit", "none", write(t, "in.jsonl", numbered(9, "http://127.0.0.1:1/")))
	c.Stdout, c.Stderr = to, &stderr
	if err := c.Run(); err == nil || stderr.Len() > 0 || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("%v, told %s", err, &stderr)
	}
}

// The plan says which tokens count, and shows the text before the prompts as it reads.
func TestRunPlanOfLabels(t *testing.T) {
	t.Parallel()
	table, schema := write(t, "q.csv", "text\nWhy?\n"), write(t, "s.json", `{"type":"object"}`)
	args := []string{"run", table, "--dry-run", "--prompt-column", "text", "--model", "gpt-4o", "--max-tokens", "5", "--system", `Answer {"label": "x"}, with \u007b`,
		"--base-url", "http://127.0.0.1:1", "--tpm", "30k"}
	const unknown, bySchema = "the provider at this address is not known", "the JSON schema goes with each request"
	for _, c := range []struct {
		more        []string
		is, schemas bool
	}{
		{nil, true, false}, {[]string{"--count", "sum"}, false, false}, {[]string{"--count", "reserved"}, false, false},
		{[]string{"--preset", "openai:tier1", "--json-schema", schema}, false, true},
		{[]string{"--base-url", "https://api.openai.com"}, false, false}, {[]string{"--preset", "azure-openai"}, false, false},
	} {
		code, stdout, stderr := paceline("", append(slices.Clone(args), c.more...)...)
		text := squeezed(stdout)
		if code != 0 || strings.Contains(text, unknown) != c.is || strings.Contains(text, bySchema) != c.schemas ||
			!strings.Contains(text, "limit 30000/m tokens") {
			t.Errorf("%v: exit %d: %s%s", c.more, code, stdout, stderr)
		}
		if !strings.Contains(stdout, `Answer {\"label\": \"x\"}, with \\u007b`) {
			t.Errorf("%v: no readable text in %s", c.more, stdout)
		}
	}
}
