package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

func TestModels(t *testing.T) {
	for _, c := range []struct {
		args string
		exit int
		has  string
	}{
		{"", cli.ExitOK, "gpt-4o-mini"},
		{"anthropic", cli.ExitOK, "claude-opus-5"},
		{"gpt-4o", cli.ExitOK, "openai, USD per million tokens, as of 20"},
		{"gpt-4o-mini-2024-07-18", cli.ExitOK, "0.15"},
		{"gemini-3.8", cli.ExitOK, "(twice that from 2027-01-01)"},
		{"openai nobody", cli.ExitUsage, `"nobody": no provider with published models`},
		{"-o xml", cli.ExitUsage, `--output "xml"`},
	} {
		code, stdout, stderr := paceline("", append([]string{"models"}, strings.Fields(c.args)...)...)
		if code != c.exit || !strings.Contains(stdout+stderr, c.has) {
			t.Errorf("models %s: exit %d\n%s%s", c.args, code, stdout, stderr)
		}
		if strings.HasPrefix(c.args, "gpt-4o") && strings.Contains(stdout, "claude") {
			t.Errorf("models %s:\n%s", c.args, stdout)
		}
	}
	_, stdout, _ := paceline("", "models", "groq", "-o", "json")
	var all []providerModels
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all) != 1 || len(all[0].Models) == 0 || all[0].Batch == nil || all[0].AsOf == "" {
		t.Errorf("%v %s", err, stdout)
	}
}
