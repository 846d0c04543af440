package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inBackticks = regexp.MustCompile("`([^`\\s]+)`")
	fileName    = regexp.MustCompile(`\.(go|md|js|txt)$`)
)

// Each file and folder that ARCHITECTURE.md names is there. A name without a folder is in the folder of the name before it on its line.
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
			case strings.Contains(name, "KIND"):
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
