package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// inline is a command within a sentence or a table.
var inline = regexp.MustCompile("`(paceline [^`]+)`")

// TestPagesCommandLines: each command line that a page shows has flags that exist and values that can be read, also where it is not run:
// in an indented block, in console, or within a sentence. TestPages runs the others.
func TestPagesCommandLines(t *testing.T) {
	checked := 0
	for _, file := range pageFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "CHANGELOG.md" { // it also names what is no more
			continue
		}
		for _, line := range shownLines(string(text)) {
			for _, args := range commandsOf(line) {
				checked++
				if err := parses(args); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), line, err)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d command lines are on the pages", checked)
	}
}

// shownLines are the lines of a page that may have commands. What goes on after a backslash is put together.
func shownLines(text string) (lines []string) {
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

// commandsOf are the arguments of each paceline in a line of shell. A line that is none, such as an excerpt of what was printed, has none.
func commandsOf(line string) (all [][]string) {
	file, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, is := n.(*syntax.CallExpr)
		if !is || len(call.Args) < 2 || call.Args[0].Lit() != "paceline" {
			return true
		}
		var args []string
		for _, word := range call.Args[1:] {
			args = append(args, plainWord(word.Parts))
		}
		all = append(all, args)
		return true
	})
	return all
}

// plainWord is a word without its quotes. Variables stand for themselves.
func plainWord(parts []syntax.WordPart) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			b.WriteString(plainWord(p.Parts))
		default:
			b.WriteString("X")
		}
	}
	return b.String()
}

// parses says what is wrong with the verb and the flags of a command line. The last flag may be named without its value.
func parses(args []string) error {
	verb, rest, err := newRoot().Find(args)
	if err != nil {
		return err
	}
	err = verb.ParseFlags(rest)
	if err != nil && strings.HasPrefix(err.Error(), "flag needs an argument") {
		return nil
	}
	return err
}
