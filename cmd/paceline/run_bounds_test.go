package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// How the server counts is heeded for published limits, too.
func TestRunPresetHeedsRule(t *testing.T) {
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
	if code, _, stderr = paceline("", append(args, "--retry-dead=outage")...); code != 3 || !strings.Contains(stderr, "2 offered, 2 done") ||
		!strings.HasSuffix(stderr, "\n1 dead: 1 invalid; --retry-dead=invalid sends those again, once that is mended\n") {
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
