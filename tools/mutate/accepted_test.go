package mutate

import (
	"bufio"
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed equivalents.txt
var equivalents string

// Equivalents are the mutants that no test can find, with why: what they do is the same, or is promised to nobody.
type Equivalents struct {
	Names    map[string]string
	Families []Family
}

// Family is what the names of some match.
type Family struct {
	*regexp.Regexp
	Why string
}

// Why returns why nothing finds the mutant of a name; "" if that is not known.
func (e *Equivalents) Why(name string) string {
	if why := e.Names[name]; why != "" {
		return why
	}
	for _, f := range e.Families {
		if f.MatchString(name) {
			return f.Why
		}
	}
	return ""
}

// Accepted returns those of equivalents.txt.
func Accepted() (*Equivalents, error) {
	reasons, err := reasons()
	if err != nil {
		return nil, err
	}
	e := &Equivalents{Names: map[string]string{}}
	for name, why := range reasons {
		pattern, ok := strings.CutPrefix(name, "~ ")
		if !ok {
			e.Names[name] = why
			continue
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("mutate: equivalents.txt: %w", err)
		}
		e.Families = append(e.Families, Family{re, why})
	}
	return e, nil
}

func reasons() (reasons map[string]string, err error) {
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
