package main

import (
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// completed is what a shell is offered after words.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(printed(t, append([]string{cobra.ShellCompNoDescRequestCmd}, words...)...)), "\n")
	return lines[:len(lines)-1] // the last is a directive
}

func TestCompletions(t *testing.T) {
	race.Without(t)
	for _, c := range []struct {
		words string
		want  string // one of those offered
		not   string // the shell takes values away that do not begin so
	}{
		{"se", "serve", "run"},
		{"serve git", "github", "openai"},
		{"run --lim", "--limit=", "--out="},
		{"run --preset openai:", "openai:tier1", "readme.md"},
		{"run --provider git", "github", "readme.md"},
		{"explain --provider git", "gitlab", "readme.md"},
		{"run --strangers=", "bucket", "openai"},
		{"run --format open", "openai-batch", "readme.md"},
		{"run --count re", "reserved", "readme.md"},
		{"run --log-level d", "debug", "readme.md"},
		{"run -o j", "json", "csv"},
		{"serve exchange -o c", "csv", "readme.md"},
		{"serve github --preset github:s", "github:search", "readme.md"},
		{"completion ba", "bash", "zsh"},
	} {
		got := completed(t, strings.Fields(c.words)...)
		bare := slices.ContainsFunc(got, func(g string) bool {
			return g == c.want || g == strings.TrimSuffix(c.want, "=") || strings.HasSuffix(g, "="+c.want)
		})
		if !bare || slices.Contains(got, c.not) {
			t.Errorf("paceline %s is completed with %q, want %s and not %s", c.words, got, c.want, c.not)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if script := printed(t, "completion", shell); !strings.Contains(script, "paceline") || len(script) < 1000 {
			t.Errorf("completion %s: %d bytes", shell, len(script))
		}
	}
}

// A command line leaves no flag in memory, and so nothing that its values lie in. Tests run thousands of them in one process.
func TestFlagsAreNotKept(t *testing.T) {
	p := newProgram()
	made := map[string]weak.Pointer[pflag.Flag]{}
	for i, v := range p.Verbs {
		p.Verbs[i].New = func() *cobra.Command {
			c := v.New()
			cli.Each(c, func(c *cobra.Command) {
				c.Flags().VisitAll(func(f *pflag.Flag) { made[v.Name+" "+c.Name()+" --"+f.Name] = weak.Make(f) })
			})
			return c
		}
	}
	if code := p.Execute(t.Context(), []string{"--help"}, nil, io.Discard, io.Discard); code != cli.ExitOK || len(made) < 500 {
		t.Fatalf("exit %d, %d flags", code, len(made))
	}
	runtime.GC()
	for name, f := range made {
		if f.Value() != nil {
			t.Errorf("%s is still in memory", name)
		}
	}
}

// TestCompletedValuesAreAccepted: what a shell offers is not refused as a value of its flag.
func TestCompletedValuesAreAccepted(t *testing.T) {
	race.Without(t)
	t.Parallel()
	for path, flags := range flagValues {
		for flag, values := range flags {
			for _, v := range values {
				code, _, stderr := paceline("", append(strings.Fields(path), "--"+flag+"="+v, "--help")...)
				if code != cli.ExitOK || stderr != "" {
					t.Errorf("paceline %s --%s=%s: exit %d %s", path, flag, v, code, stderr)
				}
			}
		}
	}
	in := write(t, "in.jsonl", `{"url":"http://127.0.0.1:1/"}`+"\n")
	for flag, values := range flagValues["run"] {
		if slices.Contains([]string{"format", "limit", "strangers", "count", "rule"}, flag) {
			continue // which depend on the input or on others
		}
		for _, v := range values {
			if code, _, stderr := paceline("", "run", "--limit", "20/s", "--dry-run", "--"+flag+"="+v, in); code != cli.ExitOK {
				t.Errorf("run --%s=%s: exit %d %s", flag, v, code, stderr)
			}
		}
	}
}
