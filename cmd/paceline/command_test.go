package main

import (
	"context"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

func TestCommandLine(t *testing.T) {
	race.Without(t)
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
