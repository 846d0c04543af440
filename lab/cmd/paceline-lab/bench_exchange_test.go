package main

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/bench"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Help has every row that --row takes, once, below its group.
func TestBenchExchangeHelpHasRows(t *testing.T) {
	var out, errs strings.Builder
	if code := execute(t.Context(), []string{"bench", "exchange", "--help"}, strings.NewReader(""), &out, &errs); code != cli.ExitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	groups := map[string][]string{}
	group := ""
	for line := range strings.SplitSeq(out.String(), "\n") {
		switch {
		case strings.HasPrefix(line, "               ") && group != "": // goes on
		case strings.HasPrefix(line, "  ") && len(line) > 15:
			group, line, _ = strings.Cut(strings.TrimSpace(line), " ")
		default:
			group = ""
		}
		for name := range strings.SplitSeq(line, ";") {
			if name = strings.TrimSpace(name); group != "" && name != "" {
				groups[group] = append(groups[group], name)
			}
		}
	}
	for _, r := range (bench.Exchange{Latency: latency.Constant(0)}).Rows() {
		n := 0
		for _, name := range groups[r.Group] {
			if name == r.Name {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s of group %s: %d times in\n%s", r.Name, r.Group, n, out.String())
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
