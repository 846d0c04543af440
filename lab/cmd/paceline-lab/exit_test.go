package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// A wrong command line is exit code 2, a wrong file is 4, and so is a file in the place of a folder. Each is found
// before anything is computed.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	in := write(t, "in.jsonl", "{}\n")
	yaml := write(t, "broken.yaml", "version: 2\n")
	folder := t.TempDir()
	for args, code := range map[string]int{
		"nosuch": cli.ExitUsage, "help nosuch": cli.ExitUsage, "bench nosuch": cli.ExitUsage, "--nosuch": cli.ExitUsage,
		"sim": cli.ExitUsage, "sim nosuch.yaml": cli.ExitConfig, "sim " + folder: cli.ExitConfig,
		"sim " + yaml:                                    cli.ExitConfig,
		"sim throttle --only nosuch":                     cli.ExitUsage,
		"sim --init " + in + "/s.yaml":                   cli.ExitConfig,
		"sim throttle --chart " + folder + "/none/x.svg": cli.ExitConfig,
		"sim throttle --chart " + in + "/x.svg":          cli.ExitConfig,
		"bench exchange --row nosuch":                    cli.ExitUsage,
		"bench llm --arrivals nosuch":                    cli.ExitUsage,
		"proof --requests x":                             cli.ExitUsage,
		"":                                               cli.ExitOK, "help": cli.ExitOK,
		"sim --help-all": cli.ExitOK, "bench": cli.ExitOK, "--version": cli.ExitOK,
	} {
		got, stdout, stderr := command(strings.Fields(args)...)
		if got != code {
			t.Errorf("paceline-lab %s: exit %d, want %d\n%s", args, got, code, stderr)
		}
		if code == cli.ExitOK && stderr != "" || code != cli.ExitOK && (stderr == "" || stdout != "") {
			t.Errorf("paceline-lab %s says %q on standard output and %q on standard error", args, stdout, stderr)
		}
	}
	help := squeezed(printed(t, "--help"))
	codes := []string{"0 done", "1 failure", "2 a wrong command line", "3 a log of events does not keep its limit", "4 bad configuration", "130 interrupted"}
	for _, code := range codes {
		if !strings.Contains(help, code) {
			t.Errorf("paceline-lab --help does not say %q", code)
		}
	}
}

// Values that a shell offers for flags are offered, and not refused.
func TestCompletions(t *testing.T) {
	for words, want := range map[string]string{
		"bench exchange -o j": "json", "sim --strategy fa": "fair",
		"proof -o j": "json", "pr": "proof",
	} {
		lines := strings.Fields(printed(t, append([]string{"__completeNoDesc"}, strings.Fields(words)...)...))
		if len(lines) == 0 || !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\n"+want+"\n") {
			t.Errorf("paceline-lab %s is completed with %q, want %s", words, lines, want)
		}
	}
	for path, flags := range newProgram().Values() {
		for flag, values := range flags {
			for _, v := range values {
				if text := printed(t, append(strings.Fields(path), "--"+flag+"="+v, "--help")...); text == "" {
					t.Errorf("paceline-lab %s --%s=%s --help prints nothing", path, flag, v)
				}
			}
		}
	}
}

// Escapes of a scenario are shown to a terminal, which does not obey them.
func TestEscapesAreShown(t *testing.T) {
	for _, c := range []struct{ name, output, want string }{
		{`"\e]0;mine\a"`, "text", `\x1b]0;mine\x07: 3 clients`},
		{`"\x9b\u202e"`, "json", `\u009b\u202e`},
	} {
		named := strings.Replace(tenMinutes, "two groups", c.name, 1)
		_, stdout, stderr := simulate(t.Context(), named, "-", "-o", c.output)
		if strings.ContainsAny(stdout+stderr, "\x1b\x07\u009b\u202e") || !strings.Contains(stdout, c.want) {
			t.Errorf("-o %s: %q", c.output, stdout+stderr)
		}
	}
}
