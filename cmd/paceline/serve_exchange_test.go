package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// written is a writer that can be read while it is written to.
type written struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	line chan string // the first line, when it is there
}

func (o *written) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.buf.Len() == 0
	o.buf.Write(p)
	if first {
		o.line <- string(p)
	}
	return len(p), nil
}

// serve runs the exchange, sends requests to it (the queries), interrupts it and returns its stdout.
func serve(t *testing.T, queries []string, wantCodes []int, args ...string) string {
	t.Helper()
	return serveVerb(t, queries, wantCodes, append([]string{"exchange", "--latency", "constant:1ms"}, args...)...)
}

func serveVerb(t *testing.T, queries []string, wantCodes []int, args ...string) string {
	t.Helper()
	url, end := startServe(t, args...)
	for i, q := range queries {
		r, err := http.Get(url + "?" + q)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		if r.StatusCode != wantCodes[i] {
			t.Errorf("%s: %d, want %d", q, r.StatusCode, wantCodes[i])
		}
	}
	return end()
}

// startServe runs a verb of serve on a free port until end, which returns its report.
func startServe(t *testing.T, args ...string) (url string, end func() string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	t.Cleanup(interrupt)
	var stdout bytes.Buffer
	stderr := &written{line: make(chan string, 1)}
	root := newServe()
	root.SetArgs(append(args, "--addr", "127.0.0.1:0"))
	root.SetOut(&stdout)
	root.SetErr(stderr)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	select {
	case line := <-stderr.line:
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/[a-z/]*`).FindString(line)
		if url == "" {
			t.Fatalf("no address in %q", line)
		}
	case err := <-done:
		t.Fatalf("ended: %v", err)
	}
	return url, func() string {
		t.Helper()
		interrupt()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return stdout.String()
	}
}

func TestServeExchange(t *testing.T) {
	log := filepath.Join(t.TempDir(), "arrivals.jsonl")
	queries := []string{"api_key=alice&nonce=5&req_id=1", "api_key=alice&nonce=5", "api_key=alice&nonce=6", "api_key=alice&nonce=6",
		"api_key=bob&nonce=1", "api_key=eve&nonce=1", "api_key=bob"}
	codes := []int{200, 400, 429, 403, 200, 401, 400}
	flags := []string{"--keys", "alice,bob", "--limit", "2", "--window", "1m", "--ban-after", "1", "--log", log}

	out := serve(t, queries, codes, append(flags, "-o", "json")...)
	var got exchangeReport
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := []exchangeKeyReport{
		{Key: "alice", Accepted: 1, BadNonce: 1, Limited: 1, Banned: true, AfterBan: 1, Worst: 2, WorstSent: 3},
		{Key: "bob", Accepted: 1, Worst: 1, WorstSent: 1},
	}
	if fmt.Sprint(got.Keys) != fmt.Sprint(want) || got.Accepted != 2 || got.UnknownKey != 1 || got.Malformed != 1 || got.Faults != 0 || got.ElapsedSeconds <= 0 {
		t.Errorf("%+v", got)
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(lines, []byte("\n")); n != len(queries) || !bytes.Contains(lines, []byte(`"key":"alice","nonce":"5","req_id":"1","verdict":"accepted","status":200,"at":"20`)) {
		t.Errorf("%d lines:\n%s", n, lines)
	}
	if bytes.Contains(lines, []byte("eve")) {
		t.Errorf("the log has a key that is not ours:\n%s", lines)
	}

	out = serve(t, queries, codes, append(flags, "-o", "csv")...)
	if want := "alice,1,1,1,true,1,2,3\nbob,1,0,0,false,0,1,1\n"; !strings.HasSuffix(out, want) {
		t.Errorf("%s", out)
	}
	out = serve(t, queries, codes, flags...)
	if !regexp.MustCompile(`(?m)^ *alice +1 +1 +1 +1 +yes +2 of 2 +3$`).MatchString(out) || !strings.Contains(out, "2 accepted in ") {
		t.Errorf("%s", out)
	}
}

func TestServeExchangeWithoutNoncesOrBans(t *testing.T) {
	var queries []string
	var codes []int
	for n := range 13 {
		queries = append(queries, "api_key=key5")
		codes = append(codes, map[bool]int{true: 200, false: 429}[n == 0])
	}
	serve(t, queries, codes, "--nonces=false", "--ban-after", "0", "--limit", "1", "--window", "1m")
}

func TestServeExchangeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("of the server that runs\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := taken.Addr().String()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"exchange", "--addr", addr, "--log", log}, cli.ExitFailure, addr + " is in use"},
		{[]string{"exchange", "--addr", "nowhere"}, cli.ExitUsage, `--addr "nowhere", expected HOST:PORT`},
		{[]string{"exchange", "--addr", "127.0.0.1:0", "--log", filepath.Join(log, "x")}, cli.ExitConfig, log + " is a file, expected a folder"},
		{[]string{"exchange", "--latency", "unifrom:0-50ms"}, cli.ExitUsage, `--latency: "unifrom:0-50ms"`},
		{[]string{"exchange", "--latency-after", "constant:50"}, cli.ExitUsage, `--latency-after: "constant:50"`},
		{[]string{"exchange", "--latency", "recorded:" + log}, cli.ExitUsage, log + `:1: "of the server that runs"`},
		{[]string{"exchange", "--limit", "0"}, cli.ExitUsage, "--limit 0"},
		{[]string{"exchange", "--limit", "x"}, cli.ExitUsage, "--limit"},
		{[]string{"exchange", "--window", "1.5ms"}, cli.ExitUsage, "--window 1.5ms"},
		{[]string{"exchange", "--ban-after", "-1"}, cli.ExitUsage, "--ban-after -1"},
		{[]string{"exchange", "--keys", "a,a"}, cli.ExitUsage, `--keys: "a"`},
		{[]string{"exchange", "--keys", ""}, cli.ExitUsage, "--keys: want"},
		{[]string{"exchange", "-o", "xml"}, cli.ExitUsage, `--output "xml"`},
		{[]string{"exchange", "9999"}, cli.ExitUsage, "9999"},
		{[]string{"exchnage"}, cli.ExitUsage, `"exchnage"`},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what starts all the same ends at once
		var says strings.Builder
		code := execute(ctx, append([]string{"serve"}, c.args...), strings.NewReader(""), io.Discard, &says)
		if code != c.code || !strings.Contains(says.String(), c.says) {
			t.Errorf("%v: exit code %d, %s; want %d, %q", c.args, code, &says, c.code, c.says)
		}
	}
	if text, _ := os.ReadFile(log); string(text) != "of the server that runs\n" {
		t.Errorf("the log of another server was overwritten: %q", text)
	}
}
