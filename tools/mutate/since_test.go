package mutate

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// lines are those of some files, by the file's name from the module's root.
type lines map[string]map[int]bool

// since returns the lines of the sources that changed since a revision, as git says.
func since(root, revision string) (lines, error) {
	c := exec.Command("git", "diff", "-U0", "-M", "--no-color", "--src-prefix=a/", "--dst-prefix=b/", revision, "--", "*.go")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("mutate: %v: %w", c.Args, err)
	}
	return readDiff(string(out)), nil
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// readDiff returns the lines that a diff without context adds.
func readDiff(diff string) lines {
	all, file := lines{}, ""
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
			all[file] = map[int]bool{}
			continue
		}
		m := hunk.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		first, _ := strconv.Atoi(m[1])
		n := 1
		if m[2] != "" {
			n, _ = strconv.Atoi(m[2])
		}
		for i := range n {
			all[file][first+i] = true
		}
	}
	return all
}
