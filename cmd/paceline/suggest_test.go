package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// TestFileThatIsNotThere: the one that is meant is often beside it.
func TestFileThatIsNotThere(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"requests.jsonl", "saved.txt", ".requests.json"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"run --limit 20/s request.jsonl", cli.ExitConfig, "open request.jsonl: no such file or directory, expected a file of requests, or - for standard input; did you mean requests.jsonl?\n"},
		{"run --limit 20/s ./reqeusts.jsonl", cli.ExitConfig, "did you mean requests.jsonl?"},
		{"run --limit 20/s nosuch", cli.ExitConfig, "open nosuch: no such file or directory, expected a file of requests, or - for standard input\n"},
		{"explain save.txt", cli.ExitConfig, "did you mean saved.txt?"},
	} {
		if code, _, stderr := paceline("", strings.Fields(c.args)...); code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("paceline %s: exit %d with %q, want %d with %q", c.args, code, stderr, c.code, c.says)
		}
	}
}

func TestWrongCommandLinesSayWhatWouldDo(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("urls.txt", []byte("https://api.example.com/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, says string }{
		{"rnu", `unknown command "rnu" for "paceline"; did you mean run?; see paceline --help`},
		{"rnu --limit 20/s", `unknown command "rnu"`},
		{"urls.txt", `did you mean paceline run urls.txt?`},
		{"exchange", "did you mean paceline serve exchange?"},
		{"--limit 20/s urls.txt", "unknown flag: --limit; --limit is a flag of daemon, exec, proxy, run and 3 more"},
		{"help nosuch", `unknown command "nosuch" for "paceline"; see paceline --help`},
		{"help serve githb", `unknown command "githb" for "paceline serve"; did you mean github?; see paceline serve --help`},
		{"serve githb", `unknown command "githb" for "paceline serve"; did you mean github?; see paceline serve --help`},
		{"serve forget", "did you mean paceline share forget?"},
		{"run --limt 20/s", "unknown flag: --limt; did you mean --limit?; see paceline run --help"},
		{"run --rate 5/s", "unknown flag: --rate; did you mean --limit?"},
		{"run --keys a", "did you mean --key-env? --keys is a flag of serve exchange"},
		{"run --nonces", "unknown flag: --nonces; --nonces is a flag of serve exchange; see paceline run --help"},
		{"run -limit 20/s", "unknown flag: -limit; did you mean --limit, with two dashes?"},
		{"run -j 4", "unknown flag: -j in -j; did you mean --concurrency?"},
		{"serve exchange --port 80", "did you mean --addr?"},
		{"serve github -p 80", "did you mean --addr?"},
		{"run --limit", "--limit needs a value: the server's limit, per key"},
		{"run --timeout 3", `--timeout "3", expected a time such as 500ms, 30s or 1h30m; see paceline run --help`},
		{"run --concurrency many", `--concurrency "many", expected a whole number; see`},
		{"run --budget much", `--budget "much", expected dollars such as 20USD`},
		{"run --ban-status x", `--ban-status "x", expected whole numbers, separated by commas`},
		{"run --renew=no", `--renew "no", expected true or false`},
		{"run", "such as: paceline run --limit 20/s requests.jsonl; see paceline run --help"},
		{"run a.jsonl b.jsonl --limit 20/s", "2 files, expected one, or - for standard input; all of them: cat a.jsonl b.jsonl | paceline run … -"},
		{"run --strangers bucket urls.txt", "--strangers bucket, expected --strangers=bucket, with = in place of the space"},
		{"completion fsh", `unknown command "fsh" for "paceline completion"; did you mean fish or zsh?`},
		{"version -x", "unknown flag: -x in -x; see paceline version --help"},
	} {
		var out, errs strings.Builder
		if code := execute(context.Background(), strings.Fields(c.args), strings.NewReader(""), &out, &errs); code != cli.ExitUsage || out.Len() > 0 {
			t.Errorf("paceline %s: exit %d and %d bytes on standard output, want %d and none", c.args, code, out.Len(), cli.ExitUsage)
		}
		if !strings.Contains(errs.String(), c.says) {
			t.Errorf("paceline %s says %q, not %q", c.args, errs.String(), c.says)
		}
	}
}
