package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// printed is what a command line that succeeds prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := execute(context.Background(), args, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Errorf("paceline %s: exit %d\n%s", strings.Join(args, " "), code, &errs)
	}
	return out.String()
}

// eachVerb calls f with each command and the words that call it.
func eachVerb(f func(c *cobra.Command, words []string)) {
	each(newRoot(), func(c *cobra.Command) { f(c, strings.Fields(c.CommandPath())[1:]) })
}

func TestHelpFitsAScreen(t *testing.T) {
	unraced(t)
	t.Parallel()
	eachVerb(func(c *cobra.Command, words []string) {
		short, all := printed(t, append(words, "--help")...), printed(t, append(words, "--help-all")...)
		if n := strings.Count(short, "\n"); n > helpLines {
			t.Errorf("%s --help has %d lines, more than %d: have fewer of its flags in `most`, in help_flags.go\n%s", c.CommandPath(), n, helpLines, short)
		}
		for of, text := range map[string]string{"--help": short, "--help-all": all} {
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
					t.Errorf("%s %s has a line of %d characters, more than %d:\n%s", c.CommandPath(), of, n, helpWidth, line)
				}
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !isHelp(f) && !strings.Contains(all, " --"+f.Name) {
				t.Errorf("%s --help-all does not have --%s", c.CommandPath(), f.Name)
			}
		})
	})
}

// flagsAlone is how many flags need no groups.
const flagsAlone = 10

func TestEveryFlagIsInAGroup(t *testing.T) {
	eachVerb(func(c *cobra.Command, _ []string) {
		groups := flagGroups(c)
		rest := groups[len(groups)-1]
		switch {
		case len(groups) == 1 && len(rest.flags) > flagsAlone:
			t.Errorf("%s has %d flags and no groups: give it some in groupTable, in help_flags.go", c.CommandPath(), len(rest.flags))
		case len(groups) > 1:
			for _, f := range rest.flags {
				t.Errorf("--%s of %s is in no group: add it to one of %q in groupTable, in help_flags.go: to `most` if most users want it, else to `rest`",
					f.Name, c.CommandPath(), c.CommandPath())
			}
		}
	})
}

func TestGroupsNameNoFlagThatIsGone(t *testing.T) {
	there := map[string]map[string]bool{} // the flags that a table of groups may name, by the command that it is of
	eachVerb(func(c *cobra.Command, _ []string) {
		for _, path := range []string{c.CommandPath(), strings.TrimSuffix(c.CommandPath(), c.Name()) + "*"} {
			if there[path] == nil {
				there[path] = map[string]bool{}
			}
			c.Flags().VisitAll(func(f *pflag.Flag) { there[path][f.Name] = true })
		}
	})
	for path, groups := range groupTable {
		if there[path] == nil {
			t.Errorf("groupTable has %q, which is no command", path)
		}
		seen := map[string]bool{}
		for _, g := range groups {
			var written []string
			for line := range strings.Lines(g.most) {
				if words := strings.Fields(line); len(words) > 0 {
					written = append(written, words[0])
				}
			}
			for _, w := range append(written, strings.Fields(g.rest)...) {
				name, _, _ := strings.Cut(w, "=")
				if seen[name] {
					t.Errorf("groupTable has --%s of %s twice", name, path)
				}
				seen[name] = true
				if !there[path][name] {
					t.Errorf("groupTable has --%s of %s, which is no flag of it", name, path)
				}
			}
		}
	}
}

// shellWords splits a line as a shell does that knows spaces and quotes.
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

// examples are the command lines of paceline in a text: those of its lines, or of the parts of a pipe, that begin with it.
func examples(text string) [][]string {
	var lines [][]string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		words := shellWords(strings.TrimSpace(line))
		for len(words) > 0 {
			end := slices.IndexFunc(words, func(w string) bool { return slices.Contains([]string{"|", "&&", ">", "#", "&"}, w) })
			if end < 0 {
				end = len(words)
			}
			if end > 0 && words[0] == "paceline" {
				lines = append(lines, words[1:end])
			}
			words = words[min(end+1, len(words)):]
		}
	}
	return lines
}

func TestExamplesOfHelpParse(t *testing.T) {
	unraced(t)
	t.Parallel()
	n := 0
	eachVerb(func(c *cobra.Command, _ []string) {
		for _, words := range examples(c.Example + "\n" + c.Long) {
			n++
			of, rest, err := newRoot().Find(words)
			if err == nil {
				err = of.ParseFlags(rest)
			}
			if err == nil {
				err = of.ValidateArgs(of.Flags().Args())
			}
			if err != nil {
				t.Errorf("paceline %s, of the help of %s: %v", strings.Join(words, " "), c.CommandPath(), err)
			}
		}
	})
	if n < 50 {
		t.Errorf("%d examples are found, expected 50 or more", n)
	}
}

func TestHelpNamesFlagsThatExist(t *testing.T) {
	unraced(t)
	t.Parallel()
	all := map[string]bool{"auth-command": true, "prefix": true} // the latter is of Homebrew, in the help of completion
	eachVerb(func(c *cobra.Command, _ []string) {
		c.Flags().VisitAll(func(f *pflag.Flag) { all[f.Name] = true })
	})
	eachVerb(func(c *cobra.Command, words []string) {
		for word := range strings.FieldsFuncSeq(printed(t, append(words, "--help-all")...), func(r rune) bool { return strings.ContainsRune(" \n(),.;:/'\"=[]|", r) }) {
			if name, isFlag := strings.CutPrefix(word, "--"); isFlag && name != "" && !all[name] {
				t.Errorf("the help of %s names --%s, which no command has", c.CommandPath(), name)
			}
		}
	})
}
