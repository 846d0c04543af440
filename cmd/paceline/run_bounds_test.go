package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// How the server counts is heeded for published limits, too.
func TestRunPresetHeedsRule(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", prompts(700))
	for _, c := range []struct{ rule, limit string }{
		{"", "limit 500/m requests 700: 24s"}, // a bucket, as OpenAI documents it: 200 more than it holds
		{"--rule bucket", "limit 500/m requests 700: 24s"},
		{"--rule rolling", "limit 500/m requests 700: 1m0s"}, // a second window
	} {
		args := append(strings.Fields("run --preset openai:tier1 --tpm 10000000 --base-url http://h --dry-run "+c.rule), in)
		if code, stdout, stderr := paceline("", args...); code != 0 || !strings.Contains(squeezed(stdout), c.limit) {
			t.Errorf("%q: exit %d, expected %q in\n%s%s", c.rule, code, c.limit, stdout, stderr)
		}
	}
	anchored := write(t, "plain.jsonl", numbered(100, "http://127.0.0.1:1/"))
	for _, c := range []struct{ rule, limit string }{
		{"", "limit 60/h requests 100: 1h0m0s"}, {"--rule bucket", "limit 60/h requests 100: 40m0s"},
	} {
		args := append(strings.Fields("run --preset github:unauthenticated --dry-run "+c.rule), anchored)
		if _, stdout, stderr := paceline("", args...); !strings.Contains(squeezed(stdout), c.limit) {
			t.Errorf("%q: expected %q in\n%s%s", c.rule, c.limit, stdout, stderr)
		}
	}
}

// squeezed has one blank between words.
func squeezed(s string) string { return strings.Join(strings.Fields(s), " ") }

// The last line says how to go on with what is dead.
func TestRunRetryDeadFlag(t *testing.T) {
	away := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.URL.Query().Get("id") == "0":
			w.WriteHeader(http.StatusNotFound)
		case away:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer srv.Close()
	in, out := write(t, "in.jsonl", numbered(3, srv.URL)), filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "none", "--attempts", "1", "--out", out, in}
	code, _, stderr := paceline("", args...)
	if want := "3 dead: 2 outage, 1 invalid; --retry-dead=outage sends those again\n"; code != 3 || !strings.HasSuffix(stderr, "\n"+want) {
		t.Errorf("exit %d, expected 3 and as the last line %s%s", code, want, stderr)
	}
	away = false
	if code, _, stderr = paceline("", append(args, "--retry-dead=outage")...); code != 3 || !strings.Contains(stderr, "2 to send, 2 done") ||
		!strings.HasSuffix(stderr, "\n1 dead: 1 invalid; --retry-dead=invalid sends those again, once the cause that their errors name is gone\n") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if code, _, stderr = paceline("", append(args, "--retry-dead", "-o", "json")...); code != 3 || !strings.HasSuffix(stderr, "}\n") || !strings.Contains(stderr, `"offered":1`) {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if code, _, stderr = paceline("", append(args, "--retry-dead=outage,nix")...); code != 2 ||
		!strings.Contains(stderr, `"nix", expected all, or some of outage, failed, limited, nonce, expired, refused, invalid, redirect, held`) {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// Requests that expired in an earlier run stay undone. The same command reports that, also in a dry
// run, until they are sent again.
func TestRunExpiredBefore(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	in := write(t, "in.jsonl", fmt.Sprintf(`{"id":"a","url":"%s"}`+"\n"+`{"id":"b","url":"%s","deadline":"1s","created":"2020-01-01T00:00:00Z"}`+"\n", srv.URL, srv.URL))
	args := []string{"run", "--limit", "none", "--out", filepath.Join(t.TempDir(), "out.jsonl"), in}
	for _, c := range []struct {
		flags []string
		code  int
		says  string
	}{
		{nil, 3, "2 to send, 1 done, 0 rejected, 1 expired, "},
		{[]string{"--dry-run"}, 0, "0 to send, 1 done before, 1 expired before (--retry-dead=expired)\n"},
		{nil, 3, ", 0 expired, 0 dead, 0 lost, 1 done before, 1 expired before (--retry-dead=expired); "},
		{[]string{"-o", "json"}, 3, `"skipped_done":1,"skipped_dead":0,"offered":0,`},
		{[]string{"-q"}, 3, "paceline: 1 request failed\n"},
		{[]string{"--retry-dead=expired", "--renew"}, 0, "1 to send, 1 done, 0 rejected, 0 expired, 0 dead, 0 lost, 1 done before; "},
		{nil, 0, ", 0 expired, 0 dead, 0 lost, 2 done before; "},
	} {
		if code, stdout, stderr := paceline("", append(slices.Clone(args), c.flags...)...); code != c.code || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%v: exit %d\n%s%s\nexpected %d and %s", c.flags, code, stdout, stderr, c.code, c.says)
		}
	}
}

// A terminal that goes away ends a run as Ctrl-C does, and however often it says so, what is in
// flight is waited for.
func TestRunHangup(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer srv.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	c := program(t, "run", "--limit", "none", "--concurrency", "2", "--out", out, write(t, "in.jsonl", numbered(6, srv.URL)))
	var stderr syncBuffer
	c.Stderr = &stderr
	heard := make(chan os.Signal, 1) // or a nohup of the tests would be one of the program's
	signal.Notify(heard, syscall.SIGHUP)
	defer signal.Stop(heard)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	<-arrived
	for range 3 {
		_ = c.Process.Signal(syscall.SIGHUP)
		for !strings.Contains(stderr.String(), "interrupted: waiting for 2 answers") && c.Process.Signal(syscall.Signal(0)) == nil {
			time.Sleep(time.Millisecond)
		}
	}
	close(release)
	_ = c.Wait()
	if got := c.ProcessState.ExitCode(); got != cli.ExitInterrupted || len(results(t, out)) != 2 || strings.Contains(stderr.String(), "breaking off") {
		t.Errorf("exit %d\n%s", got, stderr.String())
	}
}

// At its time a run sends no more, waits for what is in flight, and can be resumed.
func TestRunUntil(t *testing.T) {
	t.Parallel()
	var args []string
	var code int
	var stderr string
	for until, sent := time.Second, int32(0); sent < 2 && until < patient; until *= 2 { // on a busy machine a second may be too little to send two
		began := time.Now()
		var arrived atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			arrived.Add(1)
			time.Sleep(time.Until(began.Add(2 * until))) // it is answered when it is over
		}))
		defer srv.Close()
		args = []string{"run", "--limit", "none", "--concurrency", "2", "--out", filepath.Join(t.TempDir(), "out.jsonl"), write(t, "in.jsonl", numbered(3, srv.URL))}
		code, _, stderr = paceline("", append(args, "--until", until.String())...)
		sent = arrived.Load()
	}
	if code != 5 || !strings.Contains(stderr, "2 done") || !strings.Contains(stderr, "1 left") || !strings.Contains(stderr, "(--until); 1 request is left, and nothing is lost; the same command again resumes\n") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if code, _, stderr = paceline("", append(args, "--until", "2020-01-01T00:00:00Z")...); code != 2 || stderr != "paceline: --until 2020-01-01T00:00:00Z is past, expected an instant to come\n" {
		t.Errorf("it is past: exit %d\n%s", code, stderr)
	}
	at := time.Now().Add(time.Hour) // which may be tomorrow
	code, stdout, stderr := paceline("", append(args, "--dry-run", "--until", at.Format("15:04:05"))...)
	if want := at.Format("Mon 2 Jan 2006 15:04:05 MST"); code != 0 || !strings.Contains(stdout, want+", and then no more is sent (--until)\n") {
		t.Errorf("the plan: exit %d, want %s\n%s%s", code, want, stdout, stderr)
	}
	if code, _, stderr = paceline("", append(args, "--until", "10s")...); code != 0 || !strings.Contains(stderr, "1 to send, 1 done") {
		t.Errorf("nothing is left: exit %d\n%s", code, stderr)
	}
	if code, _, stderr = paceline("", append(args, "--until", "soon")...); code != 2 || !strings.Contains(stderr, `--until "soon", expected a time of day (09:00), an instant`) {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

func TestParseUntil(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 2, 28, 22, 30, 0, 0, zone)
	for s, want := range map[string]string{
		"": "0001-01-01T00:00:00Z", "23:00": "2026-02-28T23:00:00+01:00", "22:30": "2026-03-01T22:30:00+01:00", "09:00:30": "2026-03-01T09:00:30+01:00",
		"8h": "2026-03-01T06:30:00+01:00", "2026-07-03T14:00:00Z": "2026-07-03T14:00:00Z",
		"24:00": "", "9": "", "-1h": "", "0s": "", "tomorrow": "", "2026-02-28T21:29:59Z": "", "2026-02-28T21:30:00Z": "",
	} {
		at, err := parseUntil(s, now)
		if got := at.Format(time.RFC3339); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q: %s, %v, expected %s", s, got, err, want)
		}
	}
}

func TestRunBudget(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	in, out := write(t, "in.jsonl", numbered(5, srv.URL)), filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "none", "--out", out, in}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--budget 2", 2, "--budget without a price: --price, in USD per attempt of cost 1"},
		{"--budget lots --price 1", 2, `"lots", expected dollars such as 20USD or 0.5`},
		{"--budget 1.2USD --price 0.5", 5, "$1.00 of the budget of $1.20 are spent, and the next request may cost more than the rest (--budget); 3 requests are left, and nothing is lost; the same command again resumes\n"},
		{"--budget 20USD --price 0.5", 0, "; $2.50 of $20.00 spent"},
	} {
		if code, _, stderr := paceline("", append(args, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit %d\n%s", c.args, code, stderr)
		}
	}
	batch := write(t, "batch.jsonl", chats("a", "gpt-9", 1))
	if code, _, stderr := paceline("", "run", "--rpm", "5", "--base-url", srv.URL, "--budget", "2", batch); code != 4 || !strings.Contains(stderr, "no price is known of gpt-9, and --budget needs it") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// A rule that nothing is counted by is not passed over in silence.
func TestARuleIsOfSomething(t *testing.T) {
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`)
	for args, code := range map[string]int{
		"run --dry-run --limit 20/s --rule bucket":                  cli.ExitUsage,
		"proxy --to http://127.0.0.1:1 --limit 20/s --rule rolling": cli.ExitUsage,
		"run --dry-run --limit 20/s --rpm 60 --rule rolling":        cli.ExitOK,
		"run --dry-run --preset github --rule bucket":               cli.ExitOK,
	} {
		words := strings.Fields(args)
		if words[0] == "run" {
			words = append(words, in)
		}
		got, _, stderr := paceline("", words...)
		if got != code || code == cli.ExitUsage && !strings.Contains(stderr, "and none is given") {
			t.Errorf("%s: exit code %d, expected %d: %s", args, got, code, stderr)
		}
	}
}

// A dry run with --next says that it knows nothing of further pages, and one with nothing to send names no time.
func TestDryRunOfPages(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"next":null}`) }))
	defer srv.Close()
	in := write(t, "in.jsonl", numbered(1, srv.URL))
	args := []string{"run", "--limit", "20/s", "--out", filepath.Join(t.TempDir(), "out.jsonl"), in}
	const pages, nothing, once = "is without further pages", "there is nothing to send", "go at once"
	says := func(want string, not []string, flags ...string) {
		t.Helper()
		code, stdout, stderr := paceline("", append(slices.Clone(args), flags...)...)
		has := func(text string) bool { return strings.Contains(stdout+stderr, text) }
		if code != 0 || !has(want) || slices.ContainsFunc(not, has) {
			t.Errorf("%v: exit %d\n%s%s\nexpected %q, and none of %q", flags, code, stdout, stderr, want, not)
		}
	}
	says(pages, []string{nothing}, "--dry-run", "--next", "/next")
	says(once, []string{nothing, pages}, "--dry-run")
	says("1 done", nil)
	says(nothing, []string{once}, "--dry-run")
}
