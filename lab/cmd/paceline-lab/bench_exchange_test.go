package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// A row that is not there is answered with those that are.
func TestBenchExchangeNamesItsRows(t *testing.T) {
	for _, args := range []string{"bench exchange --row zzz", "bench exchange --row leese"} {
		var out, errs strings.Builder
		code := execute(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &errs)
		if text := errs.String(); code != cli.ExitUsage || !strings.Contains(text, "; the rows are ") || !strings.Contains(text, "circular; ") || !strings.Contains(text, "lease-bounded") {
			t.Errorf("%s: exit %d: %s", args, code, text)
		}
		if strings.Contains(args, "leese") && !strings.Contains(errs.String(), "did you mean lease") {
			t.Errorf("%s: %s", args, errs.String())
		}
	}
}
