package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Links lead to files that are there, and to headings that they have.
func TestPagesLinks(t *testing.T) {
	for _, file := range Files(t, top) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			at := filepath.Join(filepath.Dir(file), to)
			if to == "" {
				at = file
			}
			there, err := os.ReadFile(at)
			if info, e := os.Stat(at); e == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			} else if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s: %s has no heading #%s", filepath.Base(file), at, anchor)
			}
		}
	}
}

var notInAnchors = regexp.MustCompile(`[^\w\- ]`)

// anchors are the names that headings get on a page.
func anchors(text string) (all []string) {
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			all = append(all, strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-"))
		}
	}
	return all
}
