package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// twoTargets is a proxy's file with two targets, each with a limit and a key of its own.
func twoTargets(large, small string) string {
	return `version: 1
upstreams:
  - name: things
    path: /things
    header: {X-Key: "{key}"}
    targets:
      - {name: large, to: "` + large + `", limits: [20/s], keys: [{name: a, env: KEY_A}]}
      - {name: small, to: "` + small + `", limits: [10/s], keys: [{name: b, env: KEY_B}]}
  - {name: other, path: /other, to: "http://127.0.0.1:9", limits: [1/s]}
`
}

// most returns the largest number of arrivals in any span of a second.
func (j *judge) most() (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.arrivals {
		k := i
		for k < len(j.arrivals) && j.arrivals[k].Sub(j.arrivals[i]) < time.Second {
			k++
		}
		n = max(n, k-i)
	}
	return n
}

// A run goes by the targets of a proxy's file: to each with its key and within its limit, also over two
// runs. The host of a line does not matter, and path and query do.
func TestRunByUpstream(t *testing.T) {
	t.Parallel()
	serve := func(key string) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) {
			if q.Header.Get("X-Key") != key || q.URL.EscapedPath() != "/v1/a%2Fb" {
				w.WriteHeader(http.StatusBadRequest)
			}
			fmt.Fprintf(w, `{"id":%q,"key":%q}`, q.URL.Query().Get("id"), q.Header.Get("X-Key"))
		}
	}
	large, small := newJudge(t, serve("sk-large-5f0c81b97d2e")), newJudge(t, serve("sk-small-91d27ab6c03f"))
	file := write(t, "proxy.yaml", twoTargets(large.URL, small.URL))
	out := filepath.Join(t.TempDir(), "out.jsonl")
	const first, then = 45, 30
	before := 0
	for _, n := range []int{first, first + then} { // the second time at once, while all of the first still counts
		in := write(t, "in.jsonl", numbered(n, "https://api.test/v1/a%2Fb"))
		code, _, stderr := paceline("", "run", "--upstream", file+"#things", "--out", out, in)
		if code != 0 || !strings.Contains(stderr, fmt.Sprintf("%d to send, %d done, 0 rejected, 0 expired, 0 dead", n-before, n-before)) {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		before = n
	}
	waited, quick := 0, 0 // requests of the second run wait for a second, and are answered at once
	for _, r := range results(t, out) {
		if r.WaitedMS >= 500 {
			waited++
			if r.LatencyMS < r.WaitedMS/2 {
				quick++
			}
		}
		if r.Body == nil || !strings.HasPrefix(*r.Body, fmt.Sprintf(`{"id":%q,`, r.ID)) || strings.Contains(*r.Body, "sk-") {
			t.Errorf("%s %q", r.ID, *r.Body)
		}
	}
	if quick == 0 { // a busy machine may be late with most
		t.Errorf("of %d that waited, none was answered in half of the time, so the wait for a turn is in it", waited)
	}
	if large.count()+small.count() != first+then || large.most() > 20 || small.most() > 10 || large.count() < 25 || small.count() < 12 {
		t.Errorf("%d and %d requests came, %d and %d within a second", large.count(), small.count(), large.most(), small.most())
	}
	state, err := os.ReadFile(out + sentName)
	if err != nil || strings.Contains(string(state), "sk-") {
		t.Errorf("%v: %s", err, state)
	}
}

// The plan divides the requests among the targets of the upstream, by their limits.
func TestRunByUpstreamPlan(t *testing.T) {
	t.Parallel()
	const targets = `version: 1
upstreams:
  - name: things
    targets:
      - name: large
        to: http://127.0.0.1:9
        limits: [20/s]
        header: {X-Key: "{key}"}
        keys: [{name: a, env: KEY_A}, {name: b, env: KEY_B}]
      - {name: small, to: "http://127.0.0.1:8", limits: [10/s]}
      - {name: spare, to: "http://127.0.0.1:7", limits: [99/s], after: never}
  - {name: half, path: /half, use: 50%, to: "http://127.0.0.1:9", limits: [10/s, {limit: 1/h, route: GET /x}]}
  - {name: auto, path: /auto, to: "http://127.0.0.1:9", limits: auto}
  - {name: none, path: /none, to: "http://127.0.0.1:9", limits: none}
  - {name: published, path: /published, to: "http://127.0.0.1:9", preset: notion}
`
	file, in := write(t, "proxy.yaml", targets), write(t, "in.jsonl", numbered(400, "https://a.test/"))
	for _, c := range []struct {
		name, want string
	}{
		{"things", `^requests +400 to send
limit large, 20/s +320: 7s +<- binds
limit small, 10/s +80: 7s
time +7s and`},
		{"half", `^requests +400 to send
limit 10/s +400: 1m19s +<- binds
(?s:.*)
note +limits of one key, model, route or resource in the file are not in the plan`},
		{"auto", `^requests +400 to send
time +nobody knows the limit`},
		{"none", `^requests +400 to send
time +there is no limit`},
		{"published", `limit 180/m requests +400: 2m0s`},
	} {
		code, stdout, stderr := paceline("", "run", "--dry-run", "--upstream", file+"#"+c.name, in)
		if code != 0 || !regexp.MustCompile(c.want).MatchString(stdout) {
			t.Errorf("%s: exit %d: %s %s", c.name, code, stdout, stderr)
		}
	}
}

// What does not go with an upstream is said before anything is sent.
func TestRunByUpstreamRefuses(t *testing.T) {
	t.Parallel()
	j := newJudge(t, func(http.ResponseWriter, *http.Request) {})
	file := write(t, "proxy.yaml", twoTargets(j.URL, j.URL))
	in := write(t, "in.jsonl", numbered(2, "https://a.test/")+`{"id":"b","url":"https://b.test/"}`+"\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--upstream", file}, cli.ExitUsage, "#NAME with one of things, other"},
		{[]string{"--upstream", file + "#else"}, cli.ExitUsage, "#NAME with one of things, other"},
		{[]string{"--upstream", file + "#things", "--limit", "5/s"}, cli.ExitUsage, "--limit with --upstream: the file says it"},
		{[]string{"--upstream", file + "#things", "--key-env", "KEY_A"}, cli.ExitUsage, "--key-env with --upstream"},
		{[]string{"--upstream", file + ".none"}, cli.ExitConfig, "none"},
		{[]string{"--upstream", file + "#things"}, cli.ExitConfig, "https://b.test is another server than https://a.test of the first request"},
	} {
		code, _, stderr := paceline("", append(append([]string{"run"}, c.args...), in)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, stderr)
		}
	}
	if n := j.count(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// Ctrl-C ends the waits for a turn at once. What waited is sent by the next run.
func TestRunByUpstreamIsInterrupted(t *testing.T) {
	j := newJudge(t, func(http.ResponseWriter, *http.Request) {})
	file := write(t, "proxy.yaml", "version: 1\nupstreams:\n  - {to: \""+j.URL+"\", limits: [2/1h]}\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	c := program(t, "run", "--upstream", file, "--out", out, write(t, "in.jsonl", numbered(9, "https://a.test/")))
	var stderr strings.Builder
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patient); j.count() < 2 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	began := time.Now()
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != cli.ExitInterrupted || !strings.Contains(stderr.String(), "2 done") || !strings.Contains(stderr.String(), "7 left") {
		t.Errorf("exit %d after %v: %s", code, time.Since(began), &stderr)
	}
	if took := time.Since(began); took > patient/2 {
		t.Errorf("it took %v", took)
	}
}

// The limits of a file with a store are those of all who share them. The store has what was sent, so the
// run leaves no file of its own.
func TestRunByUpstreamShares(t *testing.T) {
	t.Parallel()
	server := newJudge(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") })
	folder := t.TempDir()
	file := write(t, "proxy.yaml", fmt.Sprintf(`version: 1
share: {store: "sqlite:%s"}
upstreams: [{name: api, to: %q, limits: [20/s]}]
`, filepath.Join(folder, "shares.db"), server.URL))
	out := filepath.Join(folder, "out.jsonl")
	code, _, stderr := paceline("", "run", "--upstream", file, "--out", out, write(t, "in.jsonl", numbered(5, "https://api.test/a")))
	if code != 0 || !strings.Contains(stderr, "5 done, 0 rejected") {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if _, err := os.Stat(out + sentName); !os.IsNotExist(err) {
		t.Errorf("%s%s: %v", out, sentName, err)
	}
}
