package pages

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"
)

// inline is a command within a sentence or a table.
var inline = regexp.MustCompile("`((?:paceline|paceline-lab|go run ./lab/cmd/paceline-lab) [^`]+)`")

// CommandLines checks each command line of a program that a page shows: its flags exist and its values can be read,
// also where it is not run: in an indented block, in console, or within a sentence. It returns how many there are.
func CommandLines(t *testing.T, root, program string, command func() *cobra.Command) (n int) {
	t.Helper()
	for _, file := range Files(t, root) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "CHANGELOG.md" { // it also names what is no more
			continue
		}
		for _, line := range shown(string(text)) {
			for _, args := range commands(program, line) {
				n++
				if err := parse(command(), args); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), line, err)
				}
			}
		}
	}
	return n
}

// errHidden is what is wrong with a verb that no help names: it is none to type, as it moved elsewhere.
var errHidden = errors.New("no help has this verb")

// shown are the lines of a page that may have commands. A line that goes on after a backslash is put together.
func shown(text string) (lines []string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if fence, is := strings.CutPrefix(line, "```"); is {
			fenced = !fenced && (strings.HasPrefix(fence, "sh") || fence == "console")
			continue
		}
		if fenced || strings.HasPrefix(line, "    ") {
			lines = append(lines, line)
		}
		for _, m := range inline.FindAllStringSubmatch(line, -1) {
			lines = append(lines, strings.ReplaceAll(m[1], `\|`, "|"))
		}
	}
	return lines
}

// commands are the arguments of each call of the program in a line of shell. A line that is none, such as an excerpt of
// what was printed, has none.
func commands(program, line string) (all [][]string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		if !is {
			return true
		}
		var words []string
		for _, word := range call.Args {
			words = append(words, plain(word.Parts))
		}
		run := []string{"go", "run", "./lab/cmd/" + program}
		if len(words) > len(run) && slices.Equal(words[:len(run)], run) {
			words = words[len(run)-1:]
			words[0] = program
		}
		if len(words) > 1 && words[0] == program {
			all = append(all, words[1:])
		}
		return true
	})
	return all
}

// plain is a word without its quotes. Variables stand for themselves.
func plain(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(plain(p.Parts))
		default:
			b.WriteString("X")
		}
	}
	return b.String()
}

// parse says what is wrong with the verb and the flags of a command line. The last flag may be named without its value.
func parse(root *cobra.Command, args []string) error {
	verb, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if verb.Hidden {
		return errHidden
	}
	err = verb.ParseFlags(rest)
	if err != nil && strings.HasPrefix(err.Error(), "flag needs an argument") {
		return nil
	}
	return err
}
