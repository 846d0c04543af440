package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRunAutoFlags(t *testing.T) {
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--limit auto", "", 0},
		{"--limit auto --strangers --share 2 --sharers 10", "", 0},
		{"--limit auto --limit 20/s", "a tighter limit is found out (--limit auto)", 0},
		{"--limit auto --preset github", "a tighter limit is found out (--limit auto)", 0},
		{"--limit auto --preset twilio", "nobody knows the limit: the run finds it out (--limit auto)", 0},
		{"--limit 20/s --limit auto --strangers", "", 0},
		{"--limit auto --preset github --use 50%", "--use with --limit auto, which finds its own part", 2},
		{"--limit auto --preset github --share store.db", "--share with --limit auto: what is to be found out cannot be kept in a store", 2},
		{"--limit auto --limit-model gpt-4o=rpm:5", "--limit auto with --limit-model", 2},
		{"--limit auto --limit none", "--limit auto is beside --limit none", 2},
		{"--limit auto --strangers=bucket", "--strangers=bucket with --limit auto, which finds out how the server counts; expected --strangers", 2},
		{"--limit auto --sharers 10", "--sharers is for limits that others use, too: it needs --strangers", 2},
		{"--limit auto --strangers --share 2e6", "--limit auto: fairshare: Auto", 4},
	} {
		code, stdout, stderr := paceline("", append(append([]string{"run", "--dry-run"}, strings.Fields(c.args)...), in)...)
		if said := stdout + stderr; code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("%s: %d, want %d and %q in\n%s", c.args, code, c.code, c.want, said)
		}
	}
}

// The summary has the findings, for people and as JSON: limits that the server states, and limits
// that only refusals show.
func TestRunAutoFinds(t *testing.T) {
	t.Parallel()
	var asked, refusing atomic.Int64
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
		by    string
		text  string
	}{
		{"stated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("RateLimit-Policy", `"default";q=6000;w=60`)
			w.Header().Set("RateLimit", `"default";r=5999;t=60`)
		}, "server", "found: 6000 requests per 1m0s, as the server says"},
		{"nothing", func(http.ResponseWriter, *http.Request) {}, "nobody", "found: no limit: nothing was refused, and no answer told of one"},
		{"refusals", func(w http.ResponseWriter, _ *http.Request) {
			// All that are in flight at the first refusal are refused. More after the pause that it asks for would
			// double it, and double it again.
			if asked.Add(1) == 11 {
				refusing.Store(time.Now().Add(300 * time.Millisecond).UnixNano())
			}
			if time.Now().UnixNano() < refusing.Load() {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}, "refusals", "found: about "},
	} {
		asked.Store(0)
		srv := httptest.NewServer(c.serve)
		sum := filepath.Join(t.TempDir(), "sum.json")
		code, _, stderr := paceline("", "run", "--limit", "auto", "--progress", "off", "--summary", sum, write(t, "in.jsonl", numbered(15, srv.URL)))
		srv.Close()
		var got struct {
			Found []struct{ Key, By, Text string }
		}
		b, err := os.ReadFile(sum)
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || code != 0 || len(got.Found) != 1 || got.Found[0].By != c.by || !strings.Contains(stderr, c.text) {
			t.Errorf("%s: %d, %v, %+v, want by %s and %q in\n%s", c.name, code, err, got, c.by, c.text, stderr)
		}
		if strings.Contains(stderr, "would fit") {
			t.Errorf("%s: advice for a limit that nobody gave:\n%s", c.name, stderr)
		}
	}
}
