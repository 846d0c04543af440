package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// The chart has a bar for each row but those of more keys, and they are those that ran.
func TestBenchExchangeChart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rates.svg")
	var out, errs strings.Builder
	args := "bench exchange --virtual --seeds 1 --seconds 20 --row circular --ban-after 0 --chart " + file
	if code := execute(t.Context(), strings.Fields(args), strings.NewReader(""), &out, &errs); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"circular, original, nonces", "circular, saturating", "no ban", "Rate", "In time"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the chart does not say %q", want)
		}
	}
}

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
