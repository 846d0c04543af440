package archtest

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const sentenceWords = 30

// unmeasured are the pages that a command writes.
var unmeasured = []string{"providers.md", "published.md"}

var (
	codeSpan    = regexp.MustCompile("`[^`]*`")
	pageLink    = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	listMarker  = regexp.MustCompile(`^\s*(?:[-*]|\d+\.)\s+`)
	inTabs      = regexp.MustCompile(`(?m)^(\t| {2,}).*$`) // a table or code in a comment of Go
	sentenceEnd = regexp.MustCompile(`[.!?]['")*]*\s`)
)

// No sentence of a page has more than 30 words: a reader loses its beginning.
func TestSentences(t *testing.T) {
	files := []string{"README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md", "SECURITY.md"}
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); !slices.Contains(unmeasured, name) {
			files = append(files, "docs/"+name)
		}
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sentences(string(text)) {
			n++
			if words := wordsOf(s); words > sentenceWords {
				t.Errorf("%s: %d words, expected %d at most: %s", file, words, sentenceWords, s)
			}
		}
	}
	if n < 1000 {
		t.Errorf("the pages have %d sentences, expected more: does this test still read them?", n)
	}
}

// No sentence of a package comment has more words either: go doc shows it first.
func TestSentencesOfPackages(t *testing.T) {
	n, fset := 0, token.NewFileSet()
	err := goFiles(os.DirFS(root), false, func(name string) error {
		if isTest(name) {
			return nil
		}
		file, err := parser.ParseFile(fset, filepath.Join(root, name), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil || file.Doc == nil {
			return err
		}
		n++
		for _, s := range sentences(inTabs.ReplaceAllString(file.Doc.Text(), "")) {
			if words := wordsOf(s); words > sentenceWords {
				t.Errorf("%s: %d words, expected %d at most: %s", name, words, sentenceWords, s)
			}
		}
		return nil
	})
	if err != nil || n < 80 {
		t.Errorf("%d package comments, %v: does this test still read them?", n, err)
	}
}

// sentences returns the sentences of a page. Blocks of code, tables and comments have none. A code span is one word, and a
// link has the words of its text.
func sentences(page string) (all []string) {
	for _, paragraph := range paragraphs(page) {
		paragraph = codeSpan.ReplaceAllString(paragraph, "code")
		paragraph = pageLink.ReplaceAllString(paragraph, "$1") + " "
		for at := 0; at < len(paragraph); {
			end := len(paragraph)
			if m := sentenceEnd.FindStringIndex(paragraph[at:]); m != nil {
				end = at + m[1]
			}
			if s := strings.TrimSpace(paragraph[at:end]); s != "" {
				all = append(all, s)
			}
			at = end
		}
	}
	return all
}

// paragraphs returns the prose of a page, each paragraph, heading and item of a list in one line.
func paragraphs(page string) (all []string) {
	fenced, goesOn := false, false
	for line := range strings.SplitSeq(page, "\n") {
		switch marker := listMarker.FindString(line); {
		case strings.HasPrefix(line, "```"):
			fenced, goesOn = !fenced, false
		case fenced:
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "<!--"):
			goesOn = false
		case strings.HasPrefix(line, "#"):
			all, goesOn = append(all, strings.TrimLeft(line, "# ")), false
		case strings.HasPrefix(line, "    ") && !goesOn: // a block of code
		case marker != "":
			all, goesOn = append(all, line[len(marker):]), true
		case goesOn:
			all[len(all)-1] += " " + strings.TrimSpace(line)
		default:
			all, goesOn = append(all, line), true
		}
	}
	return all
}

// wordsOf counts what has a letter or a digit: a dash between two words is none.
func wordsOf(sentence string) (n int) {
	for word := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

// A page with a long sentence in each place, so that TestSentences can fail.
func TestSentenceWords(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for _, c := range []struct {
		what, page string
		longest    int
	}{
		{"30 words", words(30) + ".\n", 30},
		{"31 words", words(31) + ".\n", 31},
		{"a sentence over two lines", words(15) + "\n" + words(16) + ".\n", 31},
		{"two sentences", words(20) + ". " + words(20) + "!\n", 20},
		{"a sentence in brackets", words(20) + ". (" + words(20) + ".) " + words(3) + "\n", 20},
		{"two halves", words(20) + "; " + words(20) + ".\n", 40},
		{"two paragraphs without a full stop", words(20) + ":\n\n" + words(20) + "\n", 20},
		{"a heading and its paragraph", "## " + words(20) + "\n" + words(20) + "\n", 20},
		{"items of a list", "- " + words(20) + "\n- " + words(20) + "\n", 20},
		{"an item over two lines", "12. " + words(20) + "\n    " + words(11) + "\n", 31},
		{"a block of code", words(2) + "\n\n```sh\n" + words(31) + "\n```\n", 2},
		{"an indented block", words(2) + "\n\n    " + words(31) + "\n", 2},
		{"a table", words(2) + "\n\n| " + words(31) + " |\n", 2},
		{"a comment", words(2) + "\n<!-- prints: " + words(31) + " -->\n", 2},
		{"a code span", words(2) + " `" + words(31) + "`\n", 3},
		{"a link", "[" + words(2) + "](" + words(31) + ")\n", 2},
		{"a full stop in a code span", words(20) + " `a. b` " + words(20) + "\n", 41},
		{"dashes", words(3) + " – " + words(3) + "\n", 6},
	} {
		longest := 0
		for _, s := range sentences(c.page) {
			longest = max(longest, wordsOf(s))
		}
		if longest != c.longest {
			t.Errorf("%s: the longest sentence has %d words, expected %d", c.what, longest, c.longest)
		}
	}
}
