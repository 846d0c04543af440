package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func newRead() *cobra.Command {
	read := &cobra.Command{
		Use: "read FILE", Short: "Read a file", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[0] == "broken" {
				return Exit(ExitConfig, errors.New("line 1 is broken"))
			}
			return nil
		},
	}
	read.Flags().Int("limit", 7, "how much")
	return read
}

func newKinds() *cobra.Command {
	kinds := Family(&cobra.Command{Use: "kinds", Short: "Many"}, &cobra.Command{
		Use: "one", Short: "One of many", GroupID: "many", Args: NoArguments,
		RunE: func(*cobra.Command, []string) error { return Exit(ExitSomeFailed, nil) },
	})
	kinds.Commands()[0].Flags().Int("width", 1, "how wide")
	kinds.AddGroup(&cobra.Group{ID: "many", Title: "Many:"})
	return kinds
}

// toy is a program with a verb that reads a file, and one in a group of many that are alike.
func toy() Program {
	return Program{
		Root:  func() *cobra.Command { return &cobra.Command{Use: "toy", Short: "A toy"} },
		Verbs: []Verb{{"read", newRead}, {"kinds", newKinds}},
		Meant: map[string]string{"rps": "limit"}, Reads: "read", Alike: "many",
		Values: func() map[string]map[string][]string {
			return map[string]map[string][]string{"read": {"limit": {"10", "20"}}}
		},
	}
}

func TestProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("input.txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says string // on standard output if the code is 0, else on standard error
	}{
		{"", ExitOK, "Usage:  toy COMMAND"},
		{"--version", ExitOK, "toy devel go1."},
		{"version", ExitOK, "toy devel go1."},
		{"read input.txt", ExitOK, ""},
		{"read broken", ExitConfig, "toy: line 1 is broken\n"},
		{"read", ExitUsage, "accepts 1 arg"},
		{"raed x", ExitUsage, `unknown command "raed" for "toy"; did you mean read?; see toy --help`},
		{"input.txt", ExitUsage, `unknown command "input.txt" for "toy"; did you mean toy read input.txt?`},
		{"help input.txt", ExitUsage, "did you mean toy read input.txt?"},
		{"one", ExitUsage, "did you mean toy kinds one?"},
		{"kinds two", ExitUsage, `unknown command "two" for "toy kinds"; see toy kinds --help`},
		{"kinds one", ExitSomeFailed, ""},
		{"kinds one x", ExitUsage, `toy kinds one takes no argument, and there is "x"`},
		{"read --rps 3 x", ExitUsage, "unknown flag: --rps; did you mean --limit?; see toy read --help"},
		{"read -limit 3 x", ExitUsage, "unknown flag: -limit; did you mean --limit, with two dashes?"},
		{"read --limit many x", ExitUsage, `--limit "many", expected a whole number; see toy read --help`},
		{"read --width 3 x", ExitUsage, "unknown flag: --width; see toy read --help"},
		{"kinds one --limit 3", ExitUsage, "unknown flag: --limit; --limit is a flag of read; see"},
		{"__complete read --limit ", ExitOK, "10\n20\n"},
	} {
		var out, errs strings.Builder
		args := strings.Fields(c.args)
		if strings.HasSuffix(c.args, " ") {
			args = append(args, "")
		}
		code := toy().Execute(t.Context(), args, strings.NewReader(""), &out, &errs)
		text := errs.String()
		if c.code == ExitOK {
			text = out.String()
		}
		if code != c.code || !strings.Contains(text, c.says) || c.says == "" && text != "" {
			t.Errorf("toy %s: exit %d, want %d and %q in\n%s", c.args, code, c.code, c.says, text)
		}
	}
}

// A flag that is missing is read from the environment, and a bad value there is a wrong command
// line.
func TestFlagsFromTheEnvironment(t *testing.T) {
	for value, code := range map[string]int{"5": ExitOK, "many": ExitUsage, "": ExitOK} {
		t.Setenv("PACELINE_LIMIT", value)
		p, limit := toy(), ""
		p.Verbs[0].New = func() *cobra.Command {
			read := newRead()
			read.PreRun = func(*cobra.Command, []string) { limit = read.Flag("limit").Value.String() }
			return read
		}
		var errs strings.Builder
		got := p.Execute(t.Context(), []string{"read", "x"}, strings.NewReader(""), new(strings.Builder), &errs)
		if got != code {
			t.Errorf("PACELINE_LIMIT=%s: exit %d, want %d: %s", value, got, code, &errs)
		}
		want := map[string]string{"5": "5", "": "7"}[value]
		if code == ExitOK && limit != want {
			t.Errorf("PACELINE_LIMIT=%s: --limit is %s, want %s", value, limit, want)
		}
		if code == ExitUsage && !strings.Contains(errs.String(), `PACELINE_LIMIT "many", expected a whole number`) {
			t.Error(errs.String())
		}
	}
}

// The code of an error is that of the Error in it, however it is wrapped, and else 2 or 1.
func TestCode(t *testing.T) {
	plain := errors.New("plain")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, ExitOK}, {plain, ExitFailure}, {Usage(plain), ExitUsage}, {Exit(ExitBudget, plain), ExitBudget},
		{fmt.Errorf("more: %w", Exit(ExitConfig, plain)), ExitConfig}, {Usage(Exit(ExitConfig, plain)), ExitConfig},
		{errors.Join(plain, Exit(ExitInterrupted, nil)), ExitInterrupted},
	} {
		if got := Code(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// A command line makes only its own verb. A wrong command line makes all verbs, so that its error
// can suggest one.
func TestMakesOneVerb(t *testing.T) {
	for _, c := range []struct{ args, made string }{
		{"read input.txt", "read"},
		{"read --help", "read"},
		{"kinds one", "kinds"},
		{"help read", "read kinds"},
		{"raed", "read kinds"},
		{"read --width 1 x", "read read kinds"},
		{"--help", "read kinds"},
	} {
		var made []string
		p := toy()
		for i, v := range p.Verbs {
			p.Verbs[i].New = func() *cobra.Command {
				made = append(made, v.Name)
				return v.New()
			}
		}
		var out strings.Builder
		p.Execute(t.Context(), strings.Fields(c.args), strings.NewReader(""), &out, &out)
		if got := strings.Join(made, " "); got != c.made {
			t.Errorf("toy %s makes %s, want %s", c.args, got, c.made)
		}
	}
}
