package mutate

import (
	"bufio"
	_ "embed"
	"fmt"
	"strings"
)

//go:embed equivalents.txt
var equivalents string

// Accepted returns the mutants that no test can find, by their names, with why: what they do is the same, or is promised to
// nobody.
func Accepted() (reasons map[string]string, err error) {
	reasons = map[string]string{}
	name := ""
	s := bufio.NewScanner(strings.NewReader(equivalents))
	for s.Scan() {
		switch line := s.Text(); {
		case line == "" || strings.HasPrefix(line, "# "):
		case line[0] != '\t':
			if name = line; reasons[name] != "" {
				return nil, fmt.Errorf("mutate: twice in equivalents.txt: %s", name)
			}
			reasons[name] = ""
		case name == "":
			return nil, fmt.Errorf("mutate: equivalents.txt begins with a reason: %s", line)
		default:
			reasons[name] = strings.TrimSpace(reasons[name] + " " + line[1:])
		}
	}
	for name, why := range reasons {
		if why == "" {
			return nil, fmt.Errorf("mutate: no reason in equivalents.txt for %s", name)
		}
	}
	return reasons, s.Err()
}
