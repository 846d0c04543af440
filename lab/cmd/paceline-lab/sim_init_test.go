package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/lab/sim/scenario"
)

// TestSimInit: what --init writes runs as it is, also with each line that is commented out, and the schema knows it.
func TestSimInit(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, stdout, stderr := command("sim", "--init", "shared.yaml"); code != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "next: paceline-lab sim shared.yaml --chart chart.html") {
		t.Fatalf("exit %d with %q and %q", code, stdout, stderr)
	}
	text, err := os.ReadFile("shared.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := command("sim", "--init"); code != cli.ExitOK || stdout != string(text) {
		t.Errorf("--init without a file: exit %d, %d bytes", code, len(stdout))
	}
	if code, stdout, stderr := command("sim", "shared.yaml", "--chart", "chart.html"); code != cli.ExitOK || !strings.Contains(stdout, "12 clients") {
		t.Errorf("it does not run: exit %d\n%s%s", code, stdout, stderr)
	}

	code, schema, stderr := command("sim", "--schema")
	if code != cli.ExitOK || schema != string(scenario.Schema()) {
		t.Fatalf("--schema: exit %d %s", code, stderr)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	known, err := c.Compile("scenario.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	optional := regexp.MustCompile(`(?m)^( *)# ([a-z_]+: )`)
	if n := len(optional.FindAll(text, -1)); n < 5 {
		t.Errorf("%d lines are commented out", n)
	}
	for _, all := range [][]byte{text, optional.ReplaceAll(text, []byte("$1$2"))} {
		if _, err := scenario.Read("init", bytes.NewReader(all), nil); err != nil {
			t.Errorf("%v in\n%s", err, all)
		}
		var v any
		if err := yaml.Unmarshal(all, &v); err != nil {
			t.Fatal(err)
		}
		if err := known.Validate(v); err != nil {
			t.Errorf("%v in\n%s", err, all)
		}
	}
}

func TestSimHelpShowsAScenario(t *testing.T) {
	help := printed(t, "sim", "--help")
	_, shown, ok := strings.Cut(help, "\n  version: 1\n")
	shown, _, _ = strings.Cut(shown, "\n\n")
	if !ok {
		t.Fatalf("--help shows no scenario: have less before or after it\n%s", help)
	}
	s, err := scenario.Read("help", strings.NewReader("  version: 1\n"+shown), nil)
	if err != nil || len(s.Groups) == 0 || s.Groups[0].Processes*s.Groups[0].Threads != 10 {
		t.Errorf("%+v, %v of\n%s", s, err, shown)
	}
}

func TestSimInitRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mine.yaml", []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"--init mine.yaml", cli.ExitUsage, "mine.yaml is there already, and --init overwrites nothing"},
		{"--init gone/mine.yaml", cli.ExitConfig, "gone/mine.yaml: there is no folder gone"},
		{"--init a b", cli.ExitUsage, "--init writes one file, and there are 2"},
		{"--init --schema", cli.ExitUsage, "--init and --schema"},
		{"--schema x.json", cli.ExitUsage, "paceline-lab sim --schema > x.json"},
		{"", cli.ExitUsage, "want one scenario file; paceline-lab sim --init shared.yaml writes one"},
		{"throtle", cli.ExitUsage, "throtle is neither a file nor a command; did you mean paceline-lab sim throttle?"},
		{"mine.yml", cli.ExitConfig, "mine.yml: no such file or directory; did you mean mine.yaml?"},
	} {
		if code, stdout, stderr := command(append([]string{"sim"}, strings.Fields(c.args)...)...); code != c.code || !strings.Contains(stderr, c.says) || stdout != "" {
			t.Errorf("sim %s: exit %d with %q, want %d with %q", c.args, code, stderr, c.code, c.says)
		}
	}
	if text, err := os.ReadFile("mine.yaml"); string(text) != "mine\n" {
		t.Error(string(text), err)
	}
}
