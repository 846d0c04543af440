package main

import (
	"context"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func TestCommandLine(t *testing.T) {
	unraced(t)
	t.Parallel()
	for _, c := range []struct {
		args string
		code int
		says string // on stderr, or on stdout if the code is 0
	}{
		{"", cli.ExitOK, "Commands:"},
		{"version", cli.ExitOK, "paceline "},
		{"nix", cli.ExitUsage, `unknown command "nix" for "paceline"`},
		{"version x", cli.ExitUsage, `takes no argument, and there is "x"`},
	} {
		var out, errs strings.Builder
		code := execute(context.Background(), strings.Fields(c.args), strings.NewReader(""), &out, &errs)
		text := &errs
		if c.code == cli.ExitOK {
			text = &out
		}
		if code != c.code || !strings.Contains(squeezed(text.String()), squeezed(c.says)) {
			t.Errorf("paceline %s: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.says, text)
		}
	}
}

// The verbs of paceline-lab say for one release how the same is typed there, whatever their flags.
func TestMovedVerbs(t *testing.T) {
	for args, want := range map[string]string{
		"sim":                            "paceline-lab sim\n",
		"sim --live --url http://a/?b=1": "paceline-lab sim --live --url 'http://a/?b=1'\n",
		"sim --help":                     "paceline-lab sim --help\n",
		"sim throttle --only cold-10":    "paceline-lab sim throttle --only cold-10\n",
		"bench exchange -o json --chart": "paceline-lab bench exchange -o json --chart\n",
		"bench proof --requests 1e7":     "paceline-lab proof --requests 1e7\n",
		"bench":                          "paceline-lab bench\n",
	} {
		code, stdout, stderr := paceline("", strings.Fields(args)...)
		clone := "go run ./lab/cmd/" + want
		if code != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "\n  "+want) || !strings.HasSuffix(stderr, "\n  "+clone) {
			t.Errorf("paceline %s: exit %d, %q on standard output, want %d and %q in\n%s", args, code, stdout, cli.ExitUsage, want, stderr)
		}
	}
	for _, verb := range []string{"sim", "bench"} {
		if help := printed(t, "help", verb); !strings.Contains(help, "go run ./lab/cmd/paceline-lab "+verb) {
			t.Error(help)
		}
	}
}
