package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Page is a page. CONTRIBUTING.md says what its blocks may say: "sh" is run, "sh long" with PACELINE_LONG=1, "go" is
// compiled, "go DIR" in the module of that folder, "go other" is not.
type Page struct {
	Name    string
	Blocks  []Block
	Prelude []string // <!-- go: … -->: declarations that its Go takes for granted
}

// Block is a block of code.
type Block struct {
	Line           int
	Language, Word string
	Text           string
	Prints         []string // <!-- prints: … -->, after it
}

var comment = regexp.MustCompile(`^<!-- (go|prints): (.*) -->$`)

// Files returns the files of all pages. root is the folder of the module, as a relative path.
func Files(t *testing.T, root string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%v: %d pages in docs", err, len(files))
	}
	// By name: .git stands beside them, and whatever git does there would be news to go test, which would never find
	// this tested already.
	for _, name := range []string{"ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "README", "SECURITY", "STYLE"} {
		files = append(files, filepath.Join(root, name+".md"))
	}
	return files
}

// All returns all pages.
func All(t *testing.T, root string) (all []*Page) {
	t.Helper()
	for _, file := range Files(t, root) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Read(filepath.Base(file), string(text)))
	}
	return all
}

// Read reads a page.
func Read(name, text string) *Page {
	p := &Page{Name: name}
	inside := false
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		m := comment.FindStringSubmatch(line)
		switch {
		case isFence && !inside:
			b := Block{Line: i + 2}
			b.Language, b.Word, _ = strings.Cut(fence, " ")
			p.Blocks = append(p.Blocks, b)
			inside = true
		case isFence:
			inside = false
		case inside:
			b := &p.Blocks[len(p.Blocks)-1]
			b.Text += line + "\n"
		case m != nil && m[1] == "go":
			p.Prelude = append(p.Prelude, m[2])
		case m != nil:
			b := &p.Blocks[len(p.Blocks)-1]
			b.Prints = append(b.Prints, m[2])
		}
	}
	return p
}
