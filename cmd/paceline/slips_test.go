package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// What a new user mistypes or leaves out gets the line that mends it, and the same kind of slip the same exit code.
func TestSlips(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(srv.Close)
	urls, ttl := write(t, "urls.txt", srv.URL+"/a\n"), write(t, "ttl.jsonl", `{"url":"`+srv.URL+`","ttl":"90s"}`)
	t.Setenv("KEY", "secret")
	for _, c := range []struct {
		name, env string // NAME=VALUE
		args      []string
		code      int
		want      string
	}{
		{"no credential", "", []string{"run", urls, "--limit", "5/s", "--out", "OUT/1.jsonl"}, cli.ExitSomeFailed, "1 had no credential; --key-env NAME"},
		{"a key", "", []string{"run", urls, "--limit", "5/s", "--key-env", "KEY", "--header", "Authorization: Bearer {key}", "--out", "OUT/2.jsonl"}, cli.ExitOK, "1 done"},
		{"a secret for a backlog", "", []string{"enqueue", urls, "--backlog", "sqlite:OUT/1.db", "-H", "Authorization: Bearer abcdefgh12345"}, cli.ExitUsage, "--header Authorization is a secret, which a backlog does not keep; expected at paceline work"},
		{"a secret parameter for a backlog", "", []string{"enqueue", urls, "--backlog", "sqlite:OUT/1.db", "--query", "api_key=abcdefgh12345"}, cli.ExitUsage, "--query api_key is a secret"},
		{"a key for a backlog", "", []string{"enqueue", urls, "--backlog", "sqlite:OUT/1.db", "-H", "X-K: {key}"}, cli.ExitUsage, "--header X-K has {key}, which is filled in when a request is sent; expected at paceline work"},
		{"a field for a backlog of requests", "", []string{"enqueue", ttl, "--backlog", "sqlite:OUT/1.db", "-H", "X-A: 1"}, cli.ExitUsage, "--header X-A: a backlog keeps requests in JSONL as they are"},
		{"a field for a backlog", "", []string{"enqueue", urls, "--backlog", "sqlite:OUT/1.db", "-H", "X-A: 1"}, cli.ExitOK, "1 of 1 requests added"},
		{"a sheet", "", []string{"run", urls, "--limit", "5/s", "--out", "OUT/x.xlsx"}, cli.ExitUsage, "expected such as --out results.parquet"},
		{"a variable", "PACELINE_LIMIT=fast", []string{"run", urls}, cli.ExitUsage, "(--limit is from PACELINE_LIMIT in the environment)"},
		{"a flag beside a variable", "PACELINE_LIMIT=5/s", []string{"run", urls, "--rate", "5/q"}, cli.ExitUsage, "--rate"},
		{"a deadline as flag", "", []string{"run", urls, "--deadline", "5s"}, cli.ExitUsage, "did you mean --ttl or --until?"},
		{"a ttl as field", "", []string{"run", ttl, "--limit", "5/s"}, cli.ExitConfig, "did you mean deadline"},
		{"no input", "", []string{"run", "nosuch.txt", "--limit", "5/s"}, cli.ExitConfig, "no such file or directory, expected a file of requests, or - for standard input"},
		{"no configuration", "", []string{"proxy", "check", "nosuch.yaml"}, cli.ExitConfig, "no such file or directory, expected a configuration of the proxy"},
		{"a proxy to no URL", "", []string{"proxy", "--to", "127.0.0.1:9999", "--limit", "5/s"}, cli.ExitUsage, "--to 127.0.0.1:9999: http:// or https:// is missing in front, expected such as"},
		{"nothing to draw", "", []string{"chart", "nosuch.jsonl"}, cli.ExitConfig, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if name, value, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(name, value)
			}
			dir := t.TempDir()
			for i := range c.args {
				c.args[i] = strings.Replace(c.args[i], "OUT/", dir+string(filepath.Separator), 1)
			}
			code, stdout, stderr := paceline("", c.args...)
			if code != c.code || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("exit %d, want %d with %q: %s%s", code, c.code, c.want, stdout, stderr)
			}
			if c.env != "" && strings.Contains(c.name, "beside") && strings.Contains(stderr, "environment") {
				t.Errorf("the flag of the command line is said to be from a variable: %s", stderr)
			}
		})
	}
}
