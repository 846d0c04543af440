package main

import (
	"strings"
	"testing"
)

// TestExitCodesOfWrongCommandLines: what nothing came of is 2, whoever finds it; what a file says is 4, and so is a file
// in the place of a folder. Each is found before anything is sent or computed.
func TestExitCodesOfWrongCommandLines(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	broken := write(t, "broken.jsonl", "{\n")
	yaml := write(t, "broken.yaml", "version: 2\n")
	folder := t.TempDir()
	for args, code := range map[string]int{
		"nosuch": exitUsage, "help nosuch": exitUsage, "help run nosuch": exitUsage, "serve nosuch": exitUsage, "bench nosuch": exitUsage, "completion nosuch": exitUsage,
		"--nosuch": exitUsage, "run --nosuch": exitUsage, "run": exitUsage, "run --limit 20 " + in: exitUsage, "run " + in: exitUsage, "run --limit 20/s --attempts x " + in: exitUsage,
		"run --limit 20/s " + in + " " + in: exitUsage, "run --limit 20/s -o csv " + in: exitUsage, "run --limit 20/s nosuch": exitConfig, "run --limit 20/s " + broken: exitConfig,
		"run --limit 20/s --organization K1=acme " + in: exitUsage, "run --limit 20/s --key-env PL_TEST_KEY --organization PL_TEST_KEY= " + in: exitUsage,
		"run --limit 20/s --key-env PL_TEST_NO_SUCH_KEY " + in: exitConfig, "run --limit 20/s --budget 1USD " + in: exitUsage,
		"explain --provider nosuch": exitUsage, "explain a b": exitUsage, "explain -o xml": exitUsage, "explain nosuch": exitConfig, "explain " + broken: exitConfig, "explain " + folder: exitConfig,
		"sim " + folder: exitUsage, "sim --init " + in + "/s.yaml": exitConfig, "proxy --init " + folder + "/none/p.yaml": exitConfig, "sim throttle --chart " + folder + "/none/x.svg": exitConfig,
		"bench exchange --virtual --chart " + in + "/x.svg": exitConfig, "serve exchange --addr 127.0.0.1:0 --log " + in + "/log": exitConfig, "serve gcra --addr 127.0.0.1:0 --log " + folder: exitConfig,
		"run --limit 20/s --out-dir " + in + " " + in: exitConfig, "run --limit 20/s --out " + in + "/x.jsonl " + in: exitConfig, "run --limit 20/s --summary " + in + "/s.json " + in: exitConfig,
		"proxy check " + folder: exitConfig, "proxy check " + broken: exitConfig, "share ls sqlite:" + folder + "/none": exitConfig, "share ls sqlite:" + in: exitConfig,
		"models nosuch": exitUsage, "models -o xml": exitUsage, "chart nosuch": exitUsage, "chart a b": exitUsage, "chart --chart x.txt": exitUsage, "version x": exitUsage,
		"sim": exitUsage, "sim nosuch.yaml": exitUsage, "sim " + yaml: exitConfig, "sim throttle --only nosuch": exitUsage, "sim --live x": exitUsage, "sim published x": exitUsage,
		"serve exchange x": exitUsage, "serve exchange --keys ,": exitUsage, "serve github --preset nosuch": exitUsage, "serve openai --fault 500": exitUsage, "serve gcra --limit 0": exitUsage,
		"serve exchange --addr 99": exitUsage, "bench exchange --row nosuch": exitUsage, "bench llm --arrivals nosuch": exitUsage, "bench proof --requests x": exitUsage,
		"help": exitOK, "help run": exitOK, "run --help": exitOK, "run --limit x --help": exitOK, "serve": exitOK, "sim --help-all": exitOK, "--version": exitOK, "": exitOK,
	} {
		got, stdout, stderr := paceline("", strings.Fields(args)...)
		if got != code {
			t.Errorf("paceline %s: exit %d, want %d\n%s", args, got, code, stderr)
		}
		if code == exitOK && stderr != "" || code != exitOK && (stderr == "" || stdout != "") {
			t.Errorf("paceline %s says %q on standard output and %q on standard error", args, stdout, stderr)
		}
	}
	for _, code := range []string{"0 done", "1 failure", "2 a wrong command line", "3 finished", "4 bad configuration", "5 a deadline", "6 every key", "130 interrupted"} {
		if help := strings.Join(strings.Fields(printed(t, "--help")), " "); !strings.Contains(help, code) {
			t.Errorf("paceline --help does not say %q", code)
		}
	}
}
