package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/app/cli/clitest"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// prompts is a batch of n requests, custom_id p0, p1, …
func prompts(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"p%d","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","max_tokens":%d,"messages":[{"role":"user","content":"What is %d?"}]}}`+"\n", i, 50+i%7*25, i)
	}
	return b.String()
}

func newLLM(t *testing.T, c llm.Config) *llm.Server {
	t.Helper()
	l, err := llm.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestRunBatchRefuses(t *testing.T) {
	good := write(t, "good.jsonl", prompts(3))
	plain := write(t, "plain.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	bad := write(t, "bad.jsonl", strings.Replace(prompts(3), `"custom_id":"p1"`, `"custom_id":"p0"`, 1)+
		`{"custom_id":"big","method":"POST","url":"/v1/responses","body":{"model":"gpt-4o","max_output_tokens":40000,"input":"x"}}`+"\n"+
		`{"method":"POST","url":"/v1/responses","body":{}}`+"\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--preset openai:tier9 " + good, 2, `--preset "openai:tier9": no limits are published by that name; did you mean openai:tier1 or openai:tier2? `},
		{"--rpm 0 " + good, 2, "--rpm 0, expected 1 to 17592186044416\n"},
		{"--rpm 5 --format csv " + good, 2, `--format "csv", expected auto or jsonl or openai-batch or anthropic-batch` + "\n"},
		{"--rpm 5 --count nix " + good, 2, `--count "nix", expected documented or reserved or sum or used or produced or input` + "\n"},
		{"--rpm 5 --rule nix " + good, 2, `--rule "nix", expected bucket or rolling` + "\n"},
		{"--rpm 5 --estimate 1 " + good, 2, "--estimate 1, expected a share from 0 to 1\n"},
		{"--rpm 5 --estimate 0.05 --base-url http://h " + good, 2, "an estimate of the output helps only where the server counts the output that was used, not with sum\n"},
		{"--rpm 5 --base-url localhost:9999 " + good, 2, `base URL "localhost:9999": http:// or https:// is missing in front` + "\n"},
		{"--rpm 5 --base-url ftp://h " + good, 2, `base URL "ftp://h", expected http:// or https://, a host and perhaps a path` + "\n"},
		{"--rpm 5 --price-input 1 " + good, 2, "--price-input and --price-output, expected both or neither\n"},
		{"--rpm 5 --per-second --rule rolling " + good, 2, "--per-second, expected limits per minute that are buckets: --preset, --rpm, --tpm, and not --rule rolling\n"},
		{"--preset anthropic:start --per-second " + good, 2, "--per-second with --preset anthropic:start: Anthropic does not say that limits per minute also hold per second\n"},
		{"--rpm 5 --errors e --dead d " + good, 2, "--errors and --dead are the same, expected one of them\n"},
		{"--tpm 30x " + good, 2, `--tpm "30x", expected a whole number, such as 30000, 30k or 1.5M; see paceline run --help` + "\n"},
		{"--tpm 5000 " + plain, 2, "--tpm: the tokens of GET / cannot be counted, expected POST to a path that ends in /chat/completions, /responses, "},
		{"--rpm 5 " + good, 4, "https://api.openai.com asks for a key: name its environment variable with --key-env, or another server with --base-url\n"},
		{"--tpm 30000 --base-url http://127.0.0.1:1 " + bad, 4, bad + `:2:14: id "p0" is already on line 1, expected each id once
` + bad + `:4:14: custom_id "big" can never go: it counts 40014 tokens (8 in, at most 40000 out), and limit 30000/m tokens allows 30000 at once
` + bad + `:5:1: there is no custom_id, expected custom_id, method, url, body
paceline: invalid input: ` + bad + ": 3 of 5 lines; nothing was sent (--skip-invalid sends the others)\n"},
	} {
		code, stdout, stderr := paceline("", append([]string{"run"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.HasPrefix(strings.TrimPrefix(stderr, "paceline: "), c.want) || stdout != "" {
			t.Errorf("run %s\n got %d %s%s\nwant %d %s", c.args, code, stderr, stdout, c.code, c.want)
		}
	}
}

// The first line with a recognizable form decides the form of a file, not a broken first line.
func TestRunFormatOfBroken(t *testing.T) {
	good := prompts(2)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(good))
	_ = z.Close()
	for _, c := range []struct {
		name, text, args string
		code             int
		want             string // of stdout or stderr
	}{
		{"broken", `{"custom_id":"a",,}` + "\n" + good, "--tpm 5000", 4, `broken:1:18: invalid character ',' looking for beginning of object key string, expected one JSON object on the line
paceline: invalid input: broken: 1 of 3 lines; `},
		{"broken2", `{"custom_id":"a",,}` + "\n" + good, "--rpm 5", 4, "broken2:1:18: invalid character ',' looking for beginning of object key string, expected one JSON object on the line\npaceline: invalid input: broken2: 1 of 3 lines; "},
		{"misspelt", `{"custom":"a","body":{}}` + "\n" + good, "--rpm 5", 4, "misspelt:1:2: unknown field \"custom\", expected custom_id, method, url, body\npaceline: invalid input: misspelt: 1 of 3 lines; "},
		{"empty", "", "--tpm 5", 0, "requests          0 to send\n"},
		{"blank", "\n \n\r\n", "--tpm 5", 0, "requests          0 to send\n"},
		{"packed", packed.String(), "--tpm 5000", 0, "requests             2 to send\n"},
		{"packed2", packed.String(), "--rpm 5", 0, "requests            2 to send\n"},
		{"plain", `{"url":"http://127.0.0.1:1/"}` + "\n", "--rpm 5", 0, "requests            1 to send\n"},
		{"plain2", "}\n" + `{"url":"http://127.0.0.1:1/"}` + "\n", "--rpm 5", 4, "plain2:1:1: invalid character '}' looking for beginning of value, expected one JSON object on the line\npaceline: invalid input: plain2: 1 of 2 lines; "},
	} {
		path := write(t, c.name, c.text)
		code, stdout, stderr := paceline("", append(append([]string{"run", "--dry-run", "--base-url", "http://h"}, strings.Fields(c.args)...), path)...)
		if got := strings.ReplaceAll(stdout+stderr, path, c.name); code != c.code || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got %d %s\nwant %d %s", c.name, code, got, c.code, c.want)
		}
	}
}

// A batch may be one array of JSON, from a file or standard input, named or not. A run goes on with the
// lines of the same requests.
func TestRunBatchOfAnArray(t *testing.T) {
	t.Parallel()
	asked := atomic.Int32{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"usage":{"prompt_tokens":5,"completion_tokens":2}}`)
	}))
	defer srv.Close()
	lines := prompts(3)
	array := "[" + strings.Join(strings.Split(strings.TrimSpace(lines), "\n"), ",\n ") + "]\n"
	in, same := write(t, "in.json", array), write(t, "in.jsonl", lines)
	for _, args := range []string{in, "--format openai-batch " + in, "-", "--tpm 90000 " + in} {
		dir, stdin := t.TempDir(), ""
		if args == "-" {
			stdin = array
		}
		run := func(stdin, args string) (int, string) {
			code, _, stderr := paceline(stdin, append([]string{"run", "--rpm", "6000", "--base-url", srv.URL, "--out", dir + "/out.jsonl"}, strings.Fields(args)...)...)
			return code, stderr
		}
		before := asked.Load()
		code, stderr := run(stdin, args)
		out, _ := os.ReadFile(dir + "/out.jsonl")
		if code != 0 || asked.Load()-before != 3 || strings.Count(string(out), `"custom_id":`) != 3 {
			t.Errorf("%s: %d, %d asked, %s\n%s", args, code, asked.Load()-before, stderr, out)
		}
		if code, stderr := run("", same); code != 0 || asked.Load()-before != 3 || !strings.Contains(stderr, "3 done before") {
			t.Errorf("%s, as lines: %d, %d asked, %s", args, code, asked.Load()-before, stderr)
		}
	}
	code, _, stderr := paceline("", "run", "--format", "anthropic-batch", "--rpm", "5", "--base-url", srv.URL, "--dry-run", in)
	if code != 4 || !strings.Contains(stderr, `in.json:1:20: unknown field "method", expected custom_id, params`) {
		t.Errorf("of another provider: %d %s", code, stderr)
	}
}

// A file that cannot take the results is refused before the input is read, which may have a million
// lines.
func TestRunResultsElsewhere(t *testing.T) {
	in := write(t, "in.jsonl", prompts(3)+"}\n")
	plain := write(t, "plain.jsonl", `{"id":"a","state":"done","attempts":1}`+"\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--out " + in, 1, "--out " + in + " is the input; nothing was sent\n"},
		{"--errors " + in, 1, "--errors " + in + " is the input; nothing was sent\n"},
		{"--out " + plain, 1, plain + ":1: not a result of paceline: is this the right file?; nothing was sent\n"},
		{"--out " + plain + "/out.jsonl", 4, plain + "/out.jsonl: " + plain + " is a file, expected a folder; nothing was sent\n"},
	} {
		code, stdout, stderr := paceline("", append([]string{"run", "--rpm", "5", "--base-url", "http://h", in}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" || stderr != "paceline: "+c.want {
			t.Errorf("%s\n got %d %s%s\nwant %d %s", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}

// Servers' answers to every request, their report, and the written results.
func TestRunBatchAnswers(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", prompts(3))
	for _, c := range []struct {
		name        string
		status      int
		header      [2]string
		body        string
		code        int
		want        string // in what is said
		out, errors string // in the first line
	}{
		{"a typing error in the model", 404, [2]string{}, `{"error":{"message":"The model 'gpt-9'\n does not exist"}}`, 3,
			"3 dead letters in DIR/out.errors.jsonl, 2 of them because: not sent: answered 404 Not Found: The model 'gpt-9' does not exist, to another request of model gpt-4o\n", "", `"status_code":404,`},
		{"a wrong key", 401, [2]string{}, `{"error":{"message":"Incorrect API key provided: h1dden-Va7ueQ9"}}`, 6,
			"key A_KEY is denied: answered 401 Unauthorized: Incorrect API key provided: [A_KEY]; it is not used any more\n", "", ""},
		{"a wrong key in a long text", 401, [2]string{}, `{"error":{"message":"` + strings.Repeat("x", 192) + `h1dden-Va7ueQ9"}}`, 6,
			"xxx[A_KEY]; it is", "", ""},
		{"a wrong address", 302, [2]string{"Location", "http://elsewhere.example/?k=h1dden-Va7ueQ9"}, "", 3,
			"because: answered 302 Found to http://elsewhere.example/?k=[A_KEY] (--base-url, --redirects)\n", "", `"status_code":302,`},
		{"an error with status 200", 200, [2]string{}, `{"error":{"message":"upstream timed out"},"id":"x"}`, 3,
			"because: answered 200 OK: upstream timed out\n", "", `"message":"answered 200 OK: upstream timed out"`},
		{"no UTF-8", 200, [2]string{}, "{\"a\":\"b\xffc\",\n\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}", 0, "3 done", "{\"a\":\"b\ufffdc\",\"usage\"", ""},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.header[0] != "" {
				w.Header().Set(c.header[0], c.header[1])
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		dir := t.TempDir()
		code, _, stderr := paceline("", "run", "--rpm", "60", "--attempts", "1", "--base-url", srv.URL, "--key-env", "A_KEY", "--out", dir+"/out.jsonl", in)
		srv.Close()
		out, _ := os.ReadFile(dir + "/out.jsonl")
		errs, _ := os.ReadFile(dir + "/out.errors.jsonl")
		journal, _ := os.ReadFile(dir + "/out.jsonl.journal")
		all := stderr + string(out) + string(errs) + string(journal)
		if code != c.code || !strings.Contains(strings.ReplaceAll(stderr, dir, "DIR"), c.want) {
			t.Errorf("%s: %d %s\nwant %d %s", c.name, code, stderr, c.code, c.want)
		}
		if !strings.Contains(string(out), c.out) || (len(out) > 0) != (c.out != "") || !strings.Contains(string(errs), c.errors) || (len(errs) > 0) != (c.errors != "") {
			t.Errorf("%s: results %s\nerrors %s", c.name, out, errs)
		}
		if strings.Contains(all, "s3cret") || !utf8.ValidString(all) {
			t.Errorf("%s: a secret, or no UTF-8, in %s", c.name, all)
		}
	}
}

// If a server asks for a pause of three days, the user gets one notice, and one more in the next
// run.
func TestRunBatchHeld(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "259200")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"Rate limit reached on requests per day","code":"rate_limit_exceeded"}}`)
	}))
	defer srv.Close()
	in, out := write(t, "in.jsonl", prompts(20)), filepath.Join(t.TempDir(), "out.jsonl")
	for _, want := range []string{"the server asks to stay away for 72h0m0s, until ", "the server asks to stay away for "} {
		cmd := program(t, "run", "--rpm", "60", "--base-url", srv.URL, "--out", out, "--progress", "100ms", in)
		var stderr syncBuffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 600 { // until the answer is there the ETA is another
			if time.Sleep(50 * time.Millisecond); strings.Contains(stderr.String(), "ETA 3d") {
				break
			}
		}
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		text := stderr.String()
		if strings.Count(text, want) != 1 || !strings.Contains(text, "ETA 3d0h") {
			t.Errorf("want once %q, and three days as the ETA:\n%s", want, text)
		}
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestRunDryRun(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", prompts(700)+`{"custom_id":"other","method":"POST","url":"/v1/responses","body":{"model":"o1","input":"x"}}`+"\n")
	out := filepath.Join(t.TempDir(), "out.jsonl")
	l := newLLM(t, llm.Config{})
	args := []string{"run", "--preset", "openai:tier1", "--tpm", "20000", "--max-output", "500", "--base-url", l.URL(), "--dry-run", "--out", out,
		"--price-input", "2", "--price-output", "10", in}
	code, stdout, stderr := paceline("", args...)
	// Lines that depend on the clock are removed.
	text := regexp.MustCompile(`last answer: .*|(?m)^read .*`).ReplaceAllString(stdout, "")
	clitest.Fits(t, stdout)
	want := `requests              701 to send
  gpt-4o              700, 8,400 tokens in, at most 87,500 out, at most $0.89
  o1                  1, 8 tokens in, at most 500 out, at most $0.0050
input                 8,408 tokens
output                at most 88,000 tokens; how many is not known before the first answers
money                 at most $0.90
largest               other on line 701: 500 tokens as counted
counted               the larger of input and max_tokens, whatever is used (--count reserved)
limit 500/m requests  701: 24s, for gpt-4o
limit 20000/m tokens  88,000: 3m23s, for gpt-4o  <- binds
time                  3m23s and the 
in flight             64 at first, and then as many as the limits and the answers need (--concurrency)

note                  OpenAI has limits of each model, and so has the run: gpt-4o 3m23s (20000/m tokens binds), o1 0s
note                  openai:tier1 has the limits of gpt-4o, tier 1, as published 2024-07. The run uses them for o1, too, which may be wrong: --rpm and --tpm set the limits of your account
`
	if code != 0 || stderr != "" || squeezed(text) != squeezed(want) {
		t.Errorf("%d %s\n%s\nwant\n%s", code, stderr, text, want)
	}
	// One is done, one is dead; from standard input too, and as JSON.
	_ = os.WriteFile(out, []byte(`{"id":"batch_req_1","custom_id":"p0","response":{"status_code":200,"request_id":"","body":{"usage":{"completion_tokens":40}}},"error":null}`+"\n"), 0o644)
	_ = os.WriteFile(strings.TrimSuffix(out, ".jsonl")+".errors.jsonl", []byte(`{"id":"batch_req_2","custom_id":"p1","response":null,"error":{"code":"batch_expired","message":""}}`+"\n"), 0o644)
	code, stdout, stderr = paceline(prompts(700), append(args[:len(args)-1:len(args)-1], "-o", "json", "-")...)
	var p run.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != 0 || p.Requests != 698 || p.DoneBefore != 1 || p.DeadBefore != 1 ||
		p.Expected == nil || *p.Expected != 698*40 || p.USDMax == nil || p.USDExpected == nil || *p.USDExpected >= *p.USDMax || !p.Limits[1].Binds || p.Seconds < 200 {
		t.Errorf("%v, %d %s%s", err, code, stdout, stderr)
	}
	expected := 0.0
	for _, m := range p.Models {
		expected += *m.USDExpected
	}
	if math.Abs(expected-*p.USDExpected) > 1e-9 {
		t.Errorf("the models come to %v USD, and all to %v", expected, *p.USDExpected)
	}
	if r := l.Report(); len(r.Verdicts) != 0 {
		t.Errorf("something was sent: %v", r.Verdicts)
	}
	if files, _ := filepath.Glob(out + ".*"); len(files) != 0 {
		t.Errorf("a dry run has left %v", files)
	}
}

// The process is killed again and again, at random. In the end every custom_id is there once, and
// over all processes the server has refused nothing: the tokens of the dead ones still count.
func TestRunBatchKilled(t *testing.T) {
	killed(t, 1, func(int) string { return "gpt-4o" })
}

// So it is where each model has its limits for itself: what two models use would not fit into those
// of one.
func TestRunBatchOfModelsKilled(t *testing.T) {
	race.Without(t) // TestRunBatchKilled is as this with it
	need.NotShort(t, "TestRunBatchKilled kills a run with a batch")
	killed(t, 2, func(i int) string { return [...]string{"gpt-4o", "gpt-4.1"}[i/56] }, "--preset", "openai:tier1", "--rpm", "5000")
}

// killed sends 56 requests for each of some models, and is killed.
func killed(t *testing.T, models int, model func(i int) string, flags ...string) {
	t.Parallel()
	const kills, each = 3, 4000 // 60 at once, and one a second
	n := 56 * models
	l := newLLM(t, llm.Config{Limits: llm.Limits{Requests: 5000, Tokens: 60 * each}, Before: latency.Uniform(0, 5*time.Millisecond), First: latency.Uniform(0, 40*time.Millisecond)})
	count := func() (n int) {
		for _, c := range l.Report().Verdicts {
			n += c
		}
		return n
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	var in strings.Builder
	for i := range n {
		fmt.Fprintf(&in, `{"custom_id":"p%d","method":"POST","url":"/v1/responses","body":{"model":%q,"max_output_tokens":%d,"input":"%d"}}`+"\n", i, model(i), each, i)
	}
	flags = append([]string{"run", "--tpm", fmt.Sprint(60 * each), "--base-url", l.URL(), "--key-env", "PL_BATCH_KEY", "--concurrency", "4", "--out", out}, flags...)
	c := program(t, append(flags, write(t, "in.jsonl", in.String()))...)
	began := time.Now()
	args, env := c.Args, append(c.Env, "PL_BATCH_KEY=h1dden-Va7ueQ9")
	var stderr bytes.Buffer
	for kill := 0; ; kill++ {
		c := exec.Command(args[0], args[1:]...)
		c.Env, c.Stderr = env, &stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if kill == kills {
			if err := c.Wait(); err != nil {
				t.Fatalf("%v: %s", err, stderr.String())
			}
			break
		}
		for target, deadline := count()+1+rand.IntN(10), time.Now().Add(patient); count() < target; {
			if time.Now().After(deadline) {
				t.Fatalf("stuck: %s", stderr.String())
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(rand.N(10 * time.Millisecond))
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	ids := map[string]int{}
	for _, path := range []string{out, strings.TrimSuffix(out, ".jsonl") + ".errors.jsonl"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var r struct {
				ID string `json:"custom_id"`
			}
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			ids[r.ID]++
		}
	}
	for i := range n {
		if id := fmt.Sprint("p", i); ids[id] != 1 {
			t.Errorf("%s has %d lines", id, ids[id])
		}
	}
	// Of 4 in flight, as many again may have been answered and not yet written.
	r := l.Report()
	if accepted := r.Verdicts["accepted"]; len(ids) != n || accepted < n || accepted > n+8*kills || len(r.Verdicts) != 1 || r.Accounts[0].Key != "key 1" {
		t.Errorf("%d ids; the server: %v", len(ids), r.Verdicts)
	}
	if strings.Contains(stderr.String(), "h1dden") {
		t.Errorf("a key is shown: %s", stderr.String())
	}
	if !strings.Contains(stderr.String(), fmt.Sprintf("plan: %d requests, ", n)) {
		t.Errorf("no plan: %s", stderr.String())
	}
	t.Logf("%d sends of %d requests over %d crashes in %v", r.Verdicts["accepted"], n, kills, time.Since(began))
}
