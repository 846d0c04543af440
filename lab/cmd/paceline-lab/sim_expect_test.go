package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// A scenario with expect is a check: a line for each, and an exit code.
func TestSimExpect(t *testing.T) {
	const scenario = "version: 1\nduration: 1h\ngroups: [{strategy: fair, processes: 2, link: 'uniform:20ms-40ms'}]\nexpect: ["
	for _, c := range []struct {
		expect, want string
		code         int
	}{
		{"limited < 3 %, throughput >= 90 %]\n", "\nheld            limited < 3 %: ", cli.ExitOK},
		{"limited < 3 %, served < 10]\n", "\nmissed          served < 10: 4", cli.ExitFailure},
		{"settle < 10 s]\n", "\nmissed          settle < 10 s: never\n", cli.ExitFailure},
		{"limited < 3 %, lmited < 3 %]\n", `stdin:4:25: expect: "lmited" is no figure`, cli.ExitConfig},
	} {
		var out, errs strings.Builder
		code := execute(t.Context(), []string{"sim", "-"}, strings.NewReader(scenario+c.expect), &out, &errs)
		if code != c.code || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%s: exit %d, want %d and %q in\n%s%s", c.expect, code, c.code, c.want, out.String(), errs.String())
		}
	}
}
