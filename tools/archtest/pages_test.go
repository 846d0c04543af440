package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	inBackticks = regexp.MustCompile("`([^`\\s]+)`")
	fileName    = regexp.MustCompile(`\.(go|md|js|txt)$`)
)

// Each file and folder that ARCHITECTURE.md names is there. A name without a folder is in the folder of the name
// before it on its line.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, line := range strings.Split(string(text), "\n") {
		folder := "."
		for _, m := range inBackticks.FindAllStringSubmatch(line, -1) {
			name := m[1]
			switch {
			case strings.Contains(name, "KIND"), strings.Contains(name, "*"):
				continue
			case strings.Contains(name, "/"):
				folder = name
				if fileName.MatchString(name) {
					folder = path.Dir(name)
				}
			case fileName.MatchString(name):
				name = path.Join(folder, name)
			default:
				continue // a word of code
			}
			n++
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("ARCHITECTURE.md:%d names %s, which is not there", i+1, name)
			}
		}
	}
	if n < 50 {
		t.Errorf("it names %d files and folders, expected more: does this test still read them?", n)
	}
}

// forms are the lists of CONTRIBUTING.md of the tests that are shorter than they could be, by what a file has that is
// on one.
var forms = map[string]*regexp.Regexp{
	"## What PACELINE_LONG adds\n": regexp.MustCompile(`\bneed\.Long(Only)?\(|\bif !?long\b`),
	"## What CI adds\n":            regexp.MustCompile(`(?m)\bneed\.(Whole(Only)?\(|Fewer\b)|^\t+need\.NotShort\(`),
}

var formRow = regexp.MustCompile("(?m)^\\| `([^`]+_test\\.go)` \\|")

// CONTRIBUTING.md lists each test file that has a long form, or a short one in ./check, and no other.
func TestLongForms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for heading, form := range forms {
		_, list, _ := strings.Cut(string(text), heading)
		list, _, _ = strings.Cut(list, "\n## ")
		listed := map[string]bool{}
		for _, m := range formRow.FindAllStringSubmatch(list, -1) {
			listed[m[1]] = true
		}
		err = goFiles(os.DirFS(root), false, func(name string) error {
			src, err := os.ReadFile(filepath.Join(root, name))
			if has := isTest(name) && form.Match(src); err == nil && has != listed[name] {
				t.Errorf("%s has such a form: %v; CONTRIBUTING.md lists it under %q: %v", name, has, heading, listed[name])
			}
			delete(listed, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for name := range listed {
			t.Errorf("CONTRIBUTING.md lists %s, which is not there", name)
		}
	}
}

const (
	decisionWords = 500 // one screen: the problem, the law, its price, and what was dropped
	decisionParts = "**Context.** **Decision.** **Consequences.**"
)

var (
	decisionNumber = regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	decisionTitle  = regexp.MustCompile(`^# (\d+)\. \S`)
	decisionNamed  = regexp.MustCompile(`\bdecision\s+(\d+)\b`)
)

// Each page of docs/decisions is short, has the number of its file, and says its parts in order.
func TestDecisions(t *testing.T) {
	folder := filepath.Join(root, "docs/decisions")
	pages, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[int]string{}
	texts := map[string]string{}
	for _, page := range pages {
		name := decisionNumber.FindStringSubmatch(page.Name())
		if name == nil {
			t.Errorf("docs/decisions/%s: expected a name such as 0011-one-line.md", page.Name())
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, page.Name()))
		if err != nil {
			t.Fatal(err)
		}
		number, _ := strconv.Atoi(name[1])
		if other := numbers[number]; other != "" {
			t.Errorf("%s and %s are both decision %d", other, page.Name(), number)
		}
		numbers[number], texts[page.Name()] = page.Name(), string(text)
	}
	for name, text := range texts {
		for _, fault := range decisionFaults(name[:4], text) {
			t.Errorf("docs/decisions/%s: %s", name, fault)
		}
		for _, m := range decisionNamed.FindAllStringSubmatch(text, -1) {
			if number, _ := strconv.Atoi(m[1]); numbers[number] == "" {
				t.Errorf("docs/decisions/%s names decision %d, which is not there", name, number)
			}
		}
	}
	if len(texts) < 30 {
		t.Errorf("there are %d pages, expected more: does this test still read them?", len(texts))
	}
}

// decisionFaults returns the faults of a page whose file name begins with number.
func decisionFaults(number, text string) (faults []string) {
	if n := len(strings.Fields(text)); n > decisionWords {
		faults = append(faults, fmt.Sprintf("%d words, expected %d at most: cut whatever decides nothing", n, decisionWords))
	}
	title := decisionTitle.FindStringSubmatch(text)
	if title == nil || title[1] != strings.TrimLeft(number, "0") {
		faults = append(faults, "expected a title with the number of its file, such as # 11. One line")
	}
	after := 0
	for part := range strings.FieldsSeq(decisionParts) {
		at := strings.Index(text, "\n"+part)
		if at < after {
			faults = append(faults, "expected paragraphs that begin with "+decisionParts+", in this order")
			break
		}
		after = at
	}
	return faults
}

// A page with each fault, so that TestDecisions can fail.
func TestDecisionFaults(t *testing.T) {
	const good = "# 11. One line\n\n**Context.** Three lines.\n\n**Decision.** One.\n\n**Consequences.** One lock.\n"
	for _, c := range []struct {
		what, number, text string
		faults             int
	}{
		{"a page", "0011", good, 0},
		{"of 500 words", "0011", good + strings.Repeat("word ", 500-len(strings.Fields(good))), 0},
		{"of 501 words", "0011", good + strings.Repeat("word ", 501-len(strings.Fields(good))), 1},
		{"of another number", "0012", good, 1},
		{"without a part", "0011", strings.Replace(good, "**Decision.**", "We decided.", 1), 1},
		{"in another order", "0011", strings.NewReplacer("Context", "Decision", "Decision", "Context").Replace(good), 1},
	} {
		if got := decisionFaults(c.number, c.text); len(got) != c.faults {
			t.Errorf("%s: %q, expected %d faults", c.what, got, c.faults)
		}
	}
}
