package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/realserver"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// paceline runs the command in this process and returns what a shell would see.
func paceline(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = execute(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// program returns the command as a process of its own.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(os.Environ(), asProgram+"=1")
	return c
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// numbered is an input of n requests to url?id=0, 1, …
func numbered(n int, url string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":\"%d\",\"url\":\"%s?id=%d\"}\n", i, url, i)
	}
	return b.String()
}

func results(t *testing.T, path string) []format.Result {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []format.Result
	for line := range strings.Lines(string(text)) {
		var r format.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v in %q", path, err, line)
		}
		all = append(all, r)
	}
	return all
}

// Every message as a user sees it, and the exit code.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	good := write(t, "good.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	bad := write(t, "bad.jsonl", `{"url":"http://127.0.0.1:1/","id":"x"}
{"url":"http://127.0.0.1:1/","uri":1}
{"url":"http://127.0.0.1:1/","id":"x"}
{"url":"http://127.0.0.1:1/","cost":21}
`)
	notes := write(t, "notes.txt", "notes of mine\n")
	absent := filepath.Join(t.TempDir(), "absent", "out.jsonl")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{good, 2, "--limit, --preset or --rpm is required: what the server allows cannot be guessed; expected " + rate.Forms + ", auto to have it found out, or --limit none, as behind paceline proxy, which keeps the limit itself"},
		{"--limit 20 " + good, 2, `--limit "20" does not say per what time, expected ` + rate.Forms},
		{"--limit 20/s --limit none " + good, 2, "--limit none is beside --limit 20/s, and says that there is no limit; expected one of the two"},
		{"--limit none --rpm 5 " + good, 2, "--limit none is beside --rpm 5, and says that there is no limit; expected one of the two"},
		{"--limit 20/s --concurrency 0 " + good, 2, "--concurrency 0, expected at least 1"},
		{"--limit 20/s --timeout -1s " + good, 2, "--timeout -1s, expected at least 1"},
		{"--limit 20/s --backoff-base 1m " + good, 2, "--backoff-base 1m0s is above --backoff-max 30s"},
		{"--limit 20/s --header nonsense " + good, 2, `--header "nonsense", expected "Name: value"`},
		{"--limit 20/s --query k={secret} " + good, 2, `--query "k={secret}": unknown {secret}, expected {key}, {token}, {nonce}, {id}, {attempt} or {row.COLUMN}`},
		{"--limit 20/s --query a={id}&b={nonce} " + good, 2, `--query "a={id}&b={nonce}": a second parameter needs a --query of its own, expected "name=value"`},
		{"--limit 20/s --unanswered maybe " + good, 2, `--unanswered "maybe", expected resend or hold`},
		{"--limit 20/s --progress often " + good, 2, `--progress "often", expected auto, off, or a time such as 5s`},
		{"--limit 20/s --max-line 3XB " + good, 2, `--max-line "3XB", expected a whole number of bytes below 2 GiB such as 65536, 64KiB or 16MiB; see paceline run --help`},
		{"--limit 20/s --ban-status 200 " + good, 2, "--ban-status 200, expected 400 to 599"},
		{"--limit 20/s --retry-dead " + good, 2, "--retry-dead without --out FILE or --dead FILE: there are no dead letters of a run before"},
		{"--limit 20/s --lmit 3/s " + good, 2, "unknown flag: --lmit; did you mean --limit?; see paceline run --help"},
		{"--limit 20/s --out o --retry-dead outage,limited " + good, 2, "--retry-dead outage,limited, expected --retry-dead=outage,limited, with = in place of the space"},
		{"--limit 20/s --key-env PL_TEST_KEY --header X:{id} " + good, 2, "--key-env without {key} in --header or --query: no request would have a key, expected such as --header 'Authorization: Bearer {key}'"},
		{"--limit 20/s a b", 2, "2 files, expected one, or - for standard input; all of them: cat a b | paceline run … -"},
		{"--limit 20/s --key-env PL_TEST_NONE " + good, 4, "--key-env: the environment variable PL_TEST_NONE is not set; expected: export PL_TEST_NONE=…"},
		{"--limit 20/s --key-env PL_TEST_EMPTY " + good, 4, "--key-env: the environment variable PL_TEST_EMPTY is empty"},
		{"--limit 20/s --key-env PL_TEST_KEY,PL_TEST_SAME " + good, 4, "--key-env: PL_TEST_KEY and PL_TEST_SAME have the same value: as two keys they would be allowed twice the limit"},
		{"--limit auto --key-env PL_TEST_KEY --header X:{key} --organization PL_TEST_KEY=a " + good, 2,
			"--organization with --limit auto alone: each key finds a limit for itself, and none is shared; " +
				"expected --limit N/U or --preset beside it"},
		{"--limit 20/s --query k={key} " + good, 4, "bad configuration: --query has {key}, but there are no keys: name their environment variables with --key-env"},
		{"--limit 20/s " + absent, 4, "open " + absent + ": no such file or directory, expected a file of requests, or - for standard input"},
		{"--limit 20/s " + filepath.Dir(good), 4, filepath.Dir(good) + " is a folder, expected a file"},
		{"--limit 20/s " + bad, 4, bad + `:2:30: unknown field "uri", expected id, method, url, headers, body, cost, priority, deadline, created
` + bad + `:3:35: id "x" is already on line 1, expected each id once
` + bad + `:4:37: cost 21 can never go: the limits allow at most 20 at once
paceline: invalid input: ` + bad + `: 3 of 4 lines; nothing was sent (--skip-invalid sends the others)`},
		{"--limit 20/s --out " + good + "/x/out.jsonl " + good, 4, good + "/x/out.jsonl: " + good + " is a file, expected a folder; nothing was sent"},
		{"--limit 20/s --dead " + good + "/dead.jsonl " + good, 4, good + "/dead.jsonl: " + good + " is a file, expected a folder; nothing was sent"},
		{"--limit 20/s --summary " + good + "/summary.json " + good, 4, good + "/summary.json: " + good + " is a file, expected a folder; nothing was sent"},
		{"--limit 20/s --out-dir " + good + "/x " + good, 4, good + "/x/results.jsonl: " + good + " is a file, expected a folder; nothing was sent"},
		{"--limit 20/s --dry-run --out " + good + "/x/out.jsonl " + good, 4, good + "/x/out.jsonl: " + good + " is a file, expected a folder; nothing was sent"},
		{"--limit 20/s --auth-command= " + good, 2, "--auth-command is empty, expected what gives tokens"},
		{"--limit 20/s --oauth-token-url= " + good, 2, "--oauth-token-url is empty, expected what gives tokens"},
		{"--limit 20/s --out-dir " + good + " " + good, 4, "--out-dir " + good + " is a file, expected a folder"},
		{"--limit 20/s --out-dir x --out y " + good, 2, "--out-dir with --out: the results without their bodies are in x/results.jsonl"},
		{"--limit 20/s --out-dir x --ordered " + good, 2, "--out-dir with --ordered: files have no order"},
		{"--limit 20/s --out-dir x --select .id " + good, 2, "--out-dir with --select: a file has all of an answer, a table some of it; expected one of them"},
		{"--limit 20/s --out x.csv " + good, 2, "--out x.csv without --select: a table needs columns, expected such as --select 'id=.id, name=.body.name'; --out-format jsonl writes whole results there"},
		{"--limit 20/s --out-format tsv " + good, 2, "--out-format tsv without --select: a table needs columns, expected such as --select 'id=.id, name=.body.name'"},
		{"--limit 20/s --out-format xls --select .id " + good, 2, `--out-format "xls", expected jsonl, csv, tsv, sqlite or parquet`},
		{"--limit 20/s --out x.TSV --select .id " + good, 2, `--select ".id" has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'`},
		{"--limit 20/s --out-format csv --select {id} " + good, 2, "--out-format csv on standard output has no place for dead letters, expected --dead FILE"},
		{"--limit 20/s --max-file 1MiB " + good, 2, "--max-file is for the files of --out-dir; without it, --max-response bounds what is kept of a body"},
		{"--limit 20/s --out " + notes + " " + good, 1, notes + ":1: not a result of paceline: is this the right file?; nothing was sent"},
		{"--limit 20/s --out " + good + " " + good, 1, "--out " + good + " is the input; nothing was sent"},
	} {
		code, stdout, stderr := paceline("", append([]string{"run"}, strings.Fields(c.args)...)...)
		want := c.want + "\n"
		if !strings.Contains(c.want, "\npaceline:") {
			want = "paceline: " + want
		}
		if code != c.code || stderr != want || stdout != "" {
			t.Errorf("run %s\n got %d %s%s\nwant %d %s", c.args, code, stderr, stdout, c.code, want)
		}
		if strings.Contains(stderr, "h1dden") {
			t.Errorf("run %s shows a key", c.args)
		}
	}
	if text, _ := os.ReadFile(notes); string(text) != "notes of mine\n" {
		t.Errorf("somebody's notes have become %q", text)
	}
}

// A rate is taken as people write it, and named so that it can be given again.
func TestRunRates(t *testing.T) {
	in := write(t, "in.jsonl", numbered(3, "http://127.0.0.1:1/"))
	for text, want := range map[string]string{"5 requests per second": "5/s", "10rps": "10/s", "300/5m": "300/5m", "100/min": "100/min", "7 per 90 seconds": "7/1m30s"} {
		code, stdout, stderr := paceline("", "run", "--limit", text, "--dry-run", in)
		if code != 0 || !strings.Contains(stdout, "\nlimit "+want+" ") {
			t.Errorf("%s: %d %s%s", text, code, stdout, stderr)
		}
	}
}

func TestRunCommand(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/missing" {
			w.WriteHeader(http.StatusNotFound)
		}
		if q.URL.Path == "/broken" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, q.Header.Get("Authorization") == "Bearer h1dden-Va7ueQ9")
	}))
	defer srv.Close()
	summary := filepath.Join(t.TempDir(), "summary.json")
	code, stdout, stderr := paceline(fmt.Sprintf("{\"id\":\"a\",\"url\":\"%s\"}\n", srv.URL), "run", "--limit", "20/s", "--limit", "500/m",
		"--key-env", "PL_TEST_KEY", "--header", "Authorization: Bearer {key}", "-o", "json", "--summary", summary, "-")
	var r format.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.ID != "a" || *r.Body != "true" || r.Key != "PL_TEST_KEY" {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	var a, b tally.Totals
	text, _ := os.ReadFile(summary)
	if err := errors.Join(json.Unmarshal([]byte(stderr), &a), json.Unmarshal(text, &b)); err != nil || !reflect.DeepEqual(a, b) || a.Done != 1 {
		t.Errorf("summaries: %v, %s, %s", err, stderr, text)
	}
	if info, err := os.Stat(summary); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("the summary: %v, %v", info.Mode(), err)
	}
	// Dead letters among the results.
	in := write(t, "in.jsonl", fmt.Sprintf("{\"id\":\"m\",\"url\":\"%s/missing\"}\n{\"id\":\"n\",\"url\":\"%s/broken\"}\n", srv.URL, srv.URL))
	code, stdout, stderr = paceline("", "run", "--limit", "none", "--backoff-base", "1ms", "--log-level", "debug", in)
	if code != 3 || strings.Count(stdout, `"state":"dead"`) != 2 || !strings.Contains(stdout, "answered 500 Internal Server Error") || !strings.Contains(stdout, `"attempts":5`) {
		t.Errorf("%d %s", code, stdout)
	}
	if !strings.Contains(stderr, "2 to send, 0 done, 0 rejected, 0 expired, 2 dead, 0 lost") || !strings.Contains(stderr, "level=DEBUG msg=answer id=m attempt=1") {
		t.Errorf("%s", stderr)
	}
	// A stream that has something wrong in it.
	code, stdout, stderr = paceline(fmt.Sprintf("{\"id\":\"a\",\"url\":\"%s\"}\n{]\n", srv.URL), "run", "--limit", "none", "-")
	if code != 3 || strings.Count(stdout, `"state":"done"`) != 1 || !strings.Contains(stderr,
		"paceline: invalid input: standard input:2:2: invalid character ']' looking for beginning of object key string, expected one JSON object on the line; reading stops here, what was read before is finished\n") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
	// Every key banned.
	ban := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer ban.Close()
	out := filepath.Join(t.TempDir(), "out.jsonl")
	code, _, stderr = paceline("", "run", "--limit", "20/s", "--key-env", "PL_TEST_KEY", "--query", "k={key}", "--out", out, write(t, "in.jsonl", numbered(3, ban.URL)))
	if code != 6 || !strings.Contains(stderr, "3 left") || !strings.Contains(stderr, "paceline: every key is out of use: key PL_TEST_KEY: answered 418 I'm a teapot; 3 requests are left, and nothing is lost; the same command again resumes\n") {
		t.Errorf("%d %s", code, stderr)
	}
	// The only key denied, until it is not any more.
	var mended atomic.Bool
	deny := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !mended.Load() {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer deny.Close()
	out = filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "50/s", "--key-env", "PL_TEST_KEY", "--query", "k={key}", "--max-outage", "0s", "--out", out, write(t, "in.jsonl", numbered(20, deny.URL))}
	code, _, stderr = paceline("", args...)
	if code != 6 || !strings.Contains(stderr, "2 dead, 0 lost, 18 left") || !strings.Contains(stderr, "paceline: key PL_TEST_KEY denies all for ") || !strings.Contains(stderr, "s: answered 403 Forbidden; 18 requests are left, and nothing is lost; the same command again resumes\n") {
		t.Errorf("%d %s", code, stderr)
	}
	mended.Store(true)
	if code, _, stderr = paceline("", append(args, "--retry-dead")...); code != 0 || !strings.Contains(stderr, "20 done") {
		t.Errorf("%d %s", code, stderr)
	}
}

// judge is a server that keeps when which request arrived.
type judge struct {
	*httptest.Server
	mu       sync.Mutex
	arrivals []time.Time
	seen     map[string]int
}

func newJudge(t *testing.T, serve http.HandlerFunc) *judge {
	j := &judge{seen: map[string]int{}}
	j.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		j.mu.Lock()
		j.arrivals = append(j.arrivals, time.Now())
		j.seen[q.URL.Query().Get("id")]++
		j.mu.Unlock()
		serve(w, q)
	}))
	t.Cleanup(j.Close)
	return j
}

func (j *judge) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.arrivals)
}

// The process is killed again and again, at random. In the end every id is there once. Every
// request that was sent twice is reported as a possible repeat. Over all processes no window holds
// more than the limit.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	const n, limit, window, kills = 240, 50, 200 * time.Millisecond, 5
	j := newJudge(t, func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) })
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", fmt.Sprintf("%d/%v", limit, window), "--concurrency", "6", "--out", out, "--progress", "off", write(t, "in.jsonl", numbered(n, j.URL))}
	var named strings.Builder
	for kill := 0; ; kill++ {
		var stderr bytes.Buffer
		c := program(t, args...)
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if kill < kills {
			// At some request, and some moment of it.
			for target, deadline := j.count()+1+rand.IntN(n/kills-10), time.Now().Add(patient); j.count() < target; {
				if time.Now().After(deadline) {
					t.Fatalf("stuck after %d arrivals: %s", j.count(), stderr.String())
				}
				time.Sleep(100 * time.Microsecond)
			}
			time.Sleep(rand.N(6 * time.Millisecond))
			_ = c.Process.Kill()
			_ = c.Wait()
			named.Write(stderr.Bytes())
			continue
		}
		err := c.Wait()
		named.Write(stderr.Bytes())
		if err != nil {
			t.Fatalf("%v: %s", err, stderr.String())
		}
		break
	}
	count := map[string]int{}
	repeats := map[string]bool{}
	for _, r := range results(t, out) {
		count[r.ID]++
		repeats[r.ID] = r.PossibleRepeat
		if r.State != "done" || r.Status != 200 {
			t.Errorf("%s: %+v", r.ID, r)
		}
	}
	var unanswered []string
	for line := range strings.Lines(named.String()) {
		if list, is := strings.CutPrefix(line, "  unanswered: "); is {
			unanswered = append(unanswered, strings.Split(strings.TrimSuffix(list, "\n"), ", ")...)
		}
	}
	twice := 0
	for i := range n {
		id := strconv.Itoa(i)
		if count[id] != 1 {
			t.Errorf("%s has %d results", id, count[id])
		}
		if j.seen[id] != 1 {
			twice++
			if !repeats[id] || !slices.Contains(unanswered, id) {
				t.Errorf("%s arrived %d times, and is not reported as a possible repeat", id, j.seen[id])
			}
		}
	}
	if len(count) != n {
		t.Errorf("%d ids in the results, want %d", len(count), n)
	}
	for i := limit; i < len(j.arrivals); i++ {
		if d := j.arrivals[i].Sub(j.arrivals[i-limit]); d <= window {
			t.Errorf("arrivals %d to %d are within %v: more than %d in %v", i-limit, i, d, limit, window)
		}
	}
	t.Logf("%d arrivals of %d requests over %d crashes, %d of them arrived twice", len(j.arrivals), n, kills, twice)
}

// The first Ctrl-C waits for what is in flight, the second breaks it off; both say so, and a run
// later resumes.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 100), make(chan struct{})
	j := newJudge(t, func(_ http.ResponseWriter, q *http.Request) {
		arrived <- q.URL.Query().Get("id")
		select {
		case <-release:
		case <-q.Context().Done():
		}
	})
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "none", "--concurrency", "2", "--out", out, write(t, "in.jsonl", numbered(6, j.URL))}
	start := func() (*exec.Cmd, *bufio.Reader) {
		c := program(t, args...)
		pipe, err := c.StderrPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c, bufio.NewReader(pipe)
	}
	expect := func(r *bufio.Reader, want string) {
		t.Helper()
		var all strings.Builder
		for !strings.Contains(all.String(), want) {
			line, err := r.ReadString('\n')
			all.WriteString(line)
			if err != nil {
				t.Fatalf("%q is not in:\n%s", want, all.String())
			}
		}
	}
	code := func(c *exec.Cmd) int { _ = c.Wait(); return c.ProcessState.ExitCode() }

	c, stderr := start()
	<-arrived
	<-arrived
	_ = c.Process.Signal(os.Interrupt)
	expect(stderr, "interrupted: waiting for 2 answers; once more breaks them off")
	_ = c.Process.Signal(os.Interrupt)
	expect(stderr, "interrupted again: breaking off what is in flight")
	expect(stderr, "6 left")
	expect(stderr, "paceline: interrupted: 6 requests are left; the same command again resumes")
	if got := code(c); got != cli.ExitInterrupted || len(results(t, out)) != 0 {
		t.Errorf("broken off: exit %d", got)
	}

	c, stderr = start()
	<-arrived
	<-arrived
	_ = c.Process.Signal(os.Interrupt)
	expect(stderr, "interrupted: waiting for 2 answers")
	close(release)
	expect(stderr, "2 done")
	if got := code(c); got != cli.ExitInterrupted || len(results(t, out)) != 2 {
		t.Errorf("drained: exit %d, %d results", got, len(results(t, out)))
	}

	c, stderr = start()
	expect(stderr, "4 to send, 4 done, 0 rejected, 0 expired, 0 dead, 0 lost, 2 done before")
	if got := code(c); got != 0 || len(results(t, out)) != 6 {
		t.Errorf("resumed: exit %d, %d results", got, len(results(t, out)))
	}
	for _, r := range results(t, out) {
		if want := j.seen[r.ID] > 1; r.PossibleRepeat != want {
			t.Errorf("%s arrived %d times, possible repeat: %v", r.ID, j.seen[r.ID], r.PossibleRepeat)
		}
	}
}

// Two runs on one file of results refuse each other.
func TestRunLocked(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	j := newJudge(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-release })
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "20/s", "--out", out, write(t, "in.jsonl", numbered(1, j.URL))}
	c := program(t, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-arrived
	code, _, stderr := paceline("", args...)
	if code != 1 || !strings.Contains(stderr, out+" is in use by another run") {
		t.Errorf("%d %s", code, stderr)
	}
	close(release)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// startNginx starts a bucket of 20 that refills 20 a second, and nothing of ours.
func startNginx(t *testing.T) *realserver.Server {
	t.Helper()
	return realserver.Nginx{Rate: "20r/s", Burst: 19, NoDelay: true}.Start(t)
}

// nginxSize is 400 requests, 19 s, with PACELINE_LONG=1, which then also holds the run to its rate.
// Without, the rate is only logged: for a few seconds a shared machine may be too busy.
func nginxSize() (requests int, least float64) {
	if need.Long() {
		return 400, 98
	}
	return 80, 0
}

func TestRunNginx(t *testing.T) {
	t.Parallel()
	size, least := nginxSize()
	n := startNginx(t)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	c := program(t, "run", "--limit", "20/s", "--out", out, write(t, "in.jsonl", numbered(size, n.URL)))
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	arrivals := n.Arrivals(t)
	for _, a := range arrivals {
		if a.Status != http.StatusOK || a.Verdict != "PASSED" {
			t.Errorf("nginx answered %+v", a)
		}
	}
	done := 0
	for _, r := range results(t, out) {
		if r.State == "done" && r.Status == 200 && r.Attempts == 1 {
			done++
		}
	}
	if len(arrivals) != size || done != size {
		t.Fatalf("%d arrivals and %d answers 200, want %d", len(arrivals), done, size)
	}
	// The first window takes 20 at once; from then on 20/s is all there is.
	after := arrivals[len(arrivals)-1].At.Sub(arrivals[0].At).Seconds()
	percent := 100 * float64(size-20) / after / 20
	if percent < least {
		t.Errorf("%.2f %% of 20/s after the first window, want at least %v %%", percent, least)
	}
	t.Logf("%d of %d answered 200, 0 refused, %.2f %% of 20/s after the first window (%.3f s)", done, size, percent, after)
}

func TestRunNginxKilled(t *testing.T) {
	t.Parallel()
	size, _ := nginxSize()
	n := startNginx(t)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	args := []string{"run", "--limit", "20/s", "--out", out, write(t, "in.jsonl", numbered(size, n.URL))}
	c := program(t, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patient); ; time.Sleep(200 * time.Microsecond) {
		if text, _ := os.ReadFile(out); bytes.Count(text, []byte("\n")) >= size/2+5 { // in the midst of a burst
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not get half way")
		}
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	c = program(t, args...)
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	seen := map[string]int{}
	for _, a := range n.Arrivals(t) {
		seen[a.ID]++
		if a.Status != http.StatusOK || a.Verdict != "PASSED" {
			t.Errorf("nginx answered %+v", a)
		}
	}
	count, repeats := map[string]int{}, 0
	for _, r := range results(t, out) {
		count[r.ID]++
		if r.PossibleRepeat {
			repeats++
		}
		if r.State != "done" || r.Status != 200 || seen[r.ID] != 1 && !r.PossibleRepeat {
			t.Errorf("%s arrived %d times: %+v", r.ID, seen[r.ID], r)
		}
	}
	for i := range size {
		if id := strconv.Itoa(i); count[id] != 1 {
			t.Errorf("%s has %d results", id, count[id])
		}
	}
	t.Logf("every id of %d once, %d possible repeats, 0 refused; %s", size, repeats, text)
}
