package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// The exit code is 2 for a command line that leads to nothing, whichever check finds it. It is 4
// for the content of a file, and for a file in the place of a folder. Each error comes before the
// first request or computation.
func TestExitCodesOfWrongCommandLines(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	broken := write(t, "broken.jsonl", "{\n")
	folder := t.TempDir()
	for args, code := range map[string]int{
		"nosuch": cli.ExitUsage, "help nosuch": cli.ExitUsage, "help run nosuch": cli.ExitUsage, "serve nosuch": cli.ExitUsage, "completion nosuch": cli.ExitUsage,
		"--nosuch": cli.ExitUsage, "run --nosuch": cli.ExitUsage, "run": cli.ExitUsage, "run --limit 20 " + in: cli.ExitUsage, "run " + in: cli.ExitUsage, "run --limit 20/s --attempts x " + in: cli.ExitUsage,
		"run --limit 20/s " + in + " " + in: cli.ExitUsage, "run --limit 20/s -o csv " + in: cli.ExitUsage, "run --limit 20/s nosuch": cli.ExitConfig, "run --limit 20/s " + broken: cli.ExitConfig,
		"run --limit 20/s --organization K1=acme " + in: cli.ExitUsage, "run --limit 20/s --key-env PL_TEST_KEY --organization PL_TEST_KEY= " + in: cli.ExitUsage,
		"run --limit 20/s --key-env PL_TEST_NO_SUCH_KEY " + in: cli.ExitConfig, "run --limit 20/s --budget 1USD " + in: cli.ExitUsage,
		"explain --provider nosuch": cli.ExitUsage, "explain a b": cli.ExitUsage, "explain -o xml": cli.ExitUsage, "explain nosuch": cli.ExitConfig, "explain " + broken: cli.ExitConfig, "explain " + folder: cli.ExitConfig,
		"proxy --init " + folder + "/none/p.yaml":                cli.ExitConfig,
		"serve exchange --addr 127.0.0.1:0 --log " + in + "/log": cli.ExitConfig, "serve gcra --addr 127.0.0.1:0 --log " + folder: cli.ExitConfig,
		"run --limit 20/s --out-dir " + in + " " + in: cli.ExitConfig, "run --limit 20/s --out " + in + "/x.jsonl " + in: cli.ExitConfig, "run --limit 20/s --summary " + in + "/s.json " + in: cli.ExitConfig, "run --limit 20/s --report " + in + "/x.html " + in: cli.ExitConfig,
		"proxy check " + folder: cli.ExitConfig, "proxy check " + broken: cli.ExitConfig, "share ls sqlite:" + folder + "/none": cli.ExitConfig, "share ls sqlite:" + in: cli.ExitConfig,
		"models nosuch": cli.ExitUsage, "models -o xml": cli.ExitUsage, "chart nosuch": cli.ExitConfig, "chart": cli.ExitUsage, "chart a b": cli.ExitUsage, "chart --chart x.txt " + in: cli.ExitUsage, "version x": cli.ExitUsage,
		"serve exchange x": cli.ExitUsage, "serve exchange --keys ,": cli.ExitUsage, "serve github --preset nosuch": cli.ExitUsage, "serve openai --fault 500": cli.ExitUsage, "serve gcra --limit 0": cli.ExitUsage,
		"serve exchange --addr 99": cli.ExitUsage,
		"help":                     cli.ExitOK, "help run": cli.ExitOK, "run --help": cli.ExitOK, "run --limit x --help": cli.ExitOK, "serve": cli.ExitOK, "--version": cli.ExitOK, "": cli.ExitOK,
	} {
		got, stdout, stderr := paceline("", strings.Fields(args)...)
		if got != code {
			t.Errorf("paceline %s: exit %d, want %d\n%s", args, got, code, stderr)
		}
		if code == cli.ExitOK && stderr != "" || code != cli.ExitOK && (stderr == "" || stdout != "") {
			t.Errorf("paceline %s says %q on standard output and %q on standard error", args, stdout, stderr)
		}
	}
	for _, code := range []string{"0 done", "1 failure", "2 a wrong command line", "3 finished", "4 bad configuration", "5 a deadline", "6 every key", "130 interrupted"} {
		if help := strings.Join(strings.Fields(printed(t, "--help")), " "); !strings.Contains(help, code) {
			t.Errorf("paceline --help does not say %q", code)
		}
	}
}
