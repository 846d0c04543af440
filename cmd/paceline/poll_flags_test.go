package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// --every ends well after its rounds, and names the flags that it does not go with.
func TestRunEvery(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) }))
	t.Cleanup(srv.Close)
	urls := write(t, "urls.txt", srv.URL+"/a\n"+srv.URL+"/b\n")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--every 20ms --rounds 1", cli.ExitOK, "2 done"},
		{"--every 20ms --rounds 1", cli.ExitOK, "1 round, 0 turns skipped; age "},
		{"--every 1h --until 1s", cli.ExitOK, "2 done"},
		{"--rounds 3", cli.ExitUsage, "--rounds is for --every, which is not given"},
		{"--every 0s", cli.ExitUsage, "--every 0s, expected at least 1ms, such as 5s"},
		{"--every 5s --rounds 0", cli.ExitUsage, "--rounds 0, expected at least 1"},
		{"--every 5s --via batch --out x.jsonl", cli.ExitUsage, "--via with --every"},
		{"--every 5s --backlog sqlite:x.db", cli.ExitUsage, "--every with --backlog"},
		{"--every 5s --next link", cli.ExitUsage, "--next with --every"},
		{"--every 5s --ordered", cli.ExitUsage, "--ordered with --every"},
		{"--every 5s --select .id", cli.ExitUsage, "--select with --every"},
		{"--every 5s --out-dir x", cli.ExitUsage, "--out-dir with --every"},
		{"--every 5s --retry-dead=all --out x.jsonl", cli.ExitUsage, "--retry-dead with --every"},
		{"--every 5s --unanswered hold", cli.ExitUsage, "--unanswered with --every"},
		{"--every 3s --dry-run", cli.ExitOK, "this is one round, and --every 3s begins one so often"},
		{"--every 5ms --rounds 9 --dry-run --limit 1/s", cli.ExitOK, " so turns are skipped"},
		{"--every 5s --dry-run --by 09:00", cli.ExitUsage, "--by with --every"},
	} {
		code, stdout, stderr := paceline("", append([]string{"run", urls},
			strings.Fields("--limit 100/s "+c.args)...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit %d, want %d with %q: %s%s", c.args, code, c.code, c.want, stdout, stderr)
		}
		if c.code == cli.ExitOK && !strings.Contains(c.args, "--dry-run") && strings.Count(stdout, `"round":1,`) != 2 {
			t.Errorf("%s: %s", c.args, stdout)
		}
	}
}
