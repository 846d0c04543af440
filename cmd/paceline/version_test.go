package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// The verb and the flag say the same, and -v is not taken for them.
func TestVersionAndFlag(t *testing.T) {
	say := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := execute(t.Context(), args, strings.NewReader(""), &out, &errs)
		return code, out.String()
	}
	verb, said := say("version")
	flag, same := say("--version")
	if verb != cli.ExitOK || flag != cli.ExitOK || said != same || !strings.HasPrefix(said, "paceline devel go1.") || strings.Count(said, "\n") != 1 {
		t.Errorf("version: %d, %q; --version: %d, %q", verb, said, flag, same)
	}
	if code, out := say("-v"); code != cli.ExitUsage || out != "" {
		t.Errorf("-v: %d, %q", code, out)
	}
}
