// Package clitest contains tests of the text of --help. Every program that uses package
// internal/app/cli runs these tests on its own help.
package clitest

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// Printed returns the output of a command line that succeeds.
func Printed(t *testing.T, p cli.Program, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	name := p.Root().Name()
	if code := p.Execute(context.Background(), args, strings.NewReader(""), &out, &errs); code != cli.ExitOK {
		t.Errorf("%s %s: exit %d\n%s", name, strings.Join(args, " "), code, &errs)
	}
	return out.String()
}

// eachVerb calls f with each command that has flags of its own, and the words that call it.
func eachVerb(p cli.Program, f func(c *cobra.Command, words []string)) {
	cli.Each(p.Command(new(strings.Builder)), func(c *cobra.Command) {
		if !c.DisableFlagParsing { // of a verb that moved
			f(c, strings.Fields(c.CommandPath())[1:])
		}
	})
}

// Help checks the help of all commands. It fits a screen. It has all flags, in groups if they are
// many. Its examples can be typed, and the flags in them exist. Names in others are flags of other
// programs. Help returns the number of examples.
func Help(t *testing.T, program func() cli.Program, others ...string) (examples int) {
	t.Run("FitsAScreen", func(t *testing.T) { fitsAScreen(t, program) })
	t.Run("GroupsNameNoFlagThatIsGone", func(t *testing.T) { groupsNameFlags(t, program) })
	t.Run("ExamplesParse", func(t *testing.T) { examples = examplesParse(t, program) })
	t.Run("NamesFlagsThatExist", func(t *testing.T) { namesFlags(t, program, others) })
	return examples
}

// flagsAlone is the largest number of flags without groups.
const flagsAlone = 10

var flagLine = regexp.MustCompile(`^ +(-\w, )?--\w`)

func fitsAScreen(t *testing.T, program func() cli.Program) {
	eachVerb(program(), func(c *cobra.Command, words []string) {
		short := Printed(t, program(), append(words, "--help")...)
		all := Printed(t, program(), append(words, "--help-all")...)
		if n := strings.Count(short, "\n"); n > cli.HelpLines {
			t.Errorf("%s --help has %d lines, more than %d: have fewer of its flags in Most, in its Groups\n%s",
				c.CommandPath(), n, cli.HelpLines, short)
		}
		for of, text := range map[string]string{"--help": short, "--help-all": all} {
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > cli.HelpWidth {
					t.Errorf("%s %s has a line of %d characters, more than %d:\n%s",
						c.CommandPath(), of, n, cli.HelpWidth, line)
				}
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !cli.IsHelp(f) && !strings.Contains(all, " --"+f.Name) {
				t.Errorf("%s --help-all does not have --%s", c.CommandPath(), f.Name)
			}
		})
		if _, rest, ok := strings.Cut(all, "\n"+cli.Ungrouped+":\n"); ok {
			t.Errorf("flags of %s are in no group: add each to one of Groups, to Most if most users want it, "+
				"else to Rest:\n%s", c.CommandPath(), rest)
		}
		if _, alone, ok := strings.Cut(all, "\nFlags:\n"); ok {
			n := 0
			for line := range strings.Lines(alone) {
				if flagLine.MatchString(line) {
					n++
				}
			}
			if n > flagsAlone {
				t.Errorf("%s has %d flags and no groups: give it some in Groups", c.CommandPath(), n)
			}
		}
	})
}

func groupsNameFlags(t *testing.T, program func() cli.Program) {
	p := program()
	there := map[string]map[string]bool{} // the flags that Groups may name, by command
	eachVerb(p, func(c *cobra.Command, _ []string) {
		for _, path := range []string{c.CommandPath(), strings.TrimSuffix(c.CommandPath(), c.Name()) + "*"} {
			if there[path] == nil {
				there[path] = map[string]bool{}
			}
			c.Flags().VisitAll(func(f *pflag.Flag) { there[path][f.Name] = true })
		}
	})
	for path, groups := range p.Groups {
		if there[path] == nil {
			t.Errorf("Groups has %q, which is no command", path)
		}
		seen := map[string]bool{}
		for _, g := range groups {
			var written []string
			for line := range strings.Lines(g.Most) {
				if words := strings.Fields(line); len(words) > 0 {
					written = append(written, words[0])
				}
			}
			for _, w := range append(written, strings.Fields(g.Rest)...) {
				name, _, _ := strings.Cut(w, "=")
				if seen[name] {
					t.Errorf("Groups has --%s of %s twice", name, path)
				}
				seen[name] = true
				if !there[path][name] {
					t.Errorf("Groups has --%s of %s, which is no flag of it", name, path)
				}
			}
		}
	}
}

// shellWords splits a line as a shell does, by spaces and quotes.
func shellWords(line string) []string {
	var words []string
	word, inWord, quote := "", false, rune(0)
	for _, r := range line + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, inWord = r, true
		case quote == 0 && r == ' ':
			if inWord {
				words = append(words, word)
			}
			word, inWord = "", false
		default:
			word, inWord = word+string(r), true
		}
	}
	return words
}

// ends are the words with which a shell ends a command.
var ends = []string{"|", "&&", ">", "#", "&"}

// examplesOf are the command lines of a program in a text. They are its lines, or parts of a pipe,
// that begin with the name of the program.
func examplesOf(program, text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		words := shellWords(strings.TrimSpace(line))
		for len(words) > 0 {
			end := slices.IndexFunc(words, func(w string) bool { return slices.Contains(ends, w) })
			if end < 0 {
				end = len(words)
			}
			if end > 0 && words[0] == program {
				lines = append(lines, words[1:end])
			}
			words = words[min(end+1, len(words)):]
		}
	}
	return lines
}

func examplesParse(t *testing.T, program func() cli.Program) (n int) {
	eachVerb(program(), func(c *cobra.Command, _ []string) {
		for _, words := range examplesOf(c.Root().Name(), c.Example+"\n"+c.Long) {
			n++
			of, rest, err := program().Command(new(strings.Builder)).Find(words)
			if err == nil {
				err = of.ParseFlags(rest)
			}
			if err == nil {
				err = of.ValidateArgs(of.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s, of the help of %s: %v", strings.Join(words, " "), c.CommandPath(), err)
			}
		}
	})
	return n
}

func namesFlags(t *testing.T, program func() cli.Program, others []string) {
	all := map[string]bool{"prefix": true} // of Homebrew, in the help of completion
	for _, name := range others {
		all[name] = true
	}
	eachVerb(program(), func(c *cobra.Command, _ []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) { all[f.Name] = true })
	})
	separators := func(r rune) bool { return strings.ContainsRune(" \n(),.;:/'\"=[]|", r) }
	eachVerb(program(), func(c *cobra.Command, words []string) {
		text := Printed(t, program(), append(words, "--help-all")...)
		for word := range strings.FieldsFuncSeq(text, separators) {
			if name, isFlag := strings.CutPrefix(word, "--"); isFlag && name != "" && !all[name] {
				t.Errorf("the help of %s names --%s, which no command has", c.CommandPath(), name)
			}
		}
	})
}
