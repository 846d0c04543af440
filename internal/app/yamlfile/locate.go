package yamlfile

import (
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Locate finds in a file what a Go value's field was read from, such as Groups[0].Demand.PerSecond,
// or the nearest node around it, and says what it is called there: groups[0].demand.rate. inFile
// has the keys whose names are not those of their fields in small letters.
func Locate(root *yaml.Node, field string, inFile map[string]string) (path string, at *yaml.Node) {
	at = root
	found := true
	var names []string
	for step := range strings.SplitSeq(field, ".") {
		name, index, listed := strings.Cut(strings.TrimSuffix(step, "]"), "[")
		name = snake(name)
		if other, ok := inFile[name]; ok {
			name = other
		}
		if listed {
			names = append(names, name+"["+index+"]")
		} else {
			names = append(names, name)
		}
		if !found {
			continue
		}
		var next *yaml.Node
		if next = Member(at, name); next != nil && listed {
			var i int
			_, _ = fmt.Sscan(index, &i)
			switch {
			case next.Kind == yaml.SequenceNode && i < len(next.Content):
				next = Resolved(next.Content[i])
			case next.Kind == yaml.MappingNode && 2*i+1 < len(next.Content): // a list whose items have names in the file
				next = Resolved(next.Content[2*i+1])
			}
		}
		if found = next != nil; found {
			at = next
		}
	}
	return strings.Join(names, "."), at
}

// snake turns MinSleep into min_sleep, and TLS into tls.
func snake(name string) string {
	var b strings.Builder
	var before rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('_')
		}
		b.WriteRune(r)
		before = r
	}
	return strings.ToLower(b.String())
}
