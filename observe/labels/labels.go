// Package labels bounds the values of labels of metrics, which come from strangers, in number and in length.
package labels

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Other is the value for all that have none of their own.
const Other = "other"

// Names are the values of a label that were seen first. They keep their series for good: were others to take their place, "other" would
// shrink and grow, which reads as if counters had begun anew.
type Names struct {
	Most int
	seen map[string]bool
}

// Has tells whether a name has series of its own.
func (n *Names) Has(name string) bool {
	switch {
	case n.seen[name]:
		return true
	case len(n.seen) >= n.Most:
		return false
	case n.seen == nil:
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	return true
}

// Of returns the name as a label has it.
func (n *Names) Of(name string) string {
	if !n.Has(name) {
		return Other
	}
	return Bounded(name)
}

// longest is the most bytes of a value, but for the few that tell longer ones apart.
const longest = 64

// Bounded makes a value of a label of any text.
func Bounded(s string) string {
	short := s
	if len(short) > longest {
		for short = short[:longest]; len(short) > 0 && !utf8.RuneStart(s[len(short)]); {
			short = short[:len(short)-1]
		}
		h := fnv.New64a()
		h.Write([]byte(s))
		short += "…" + strconv.FormatUint(h.Sum64(), 36)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, strings.ToValidUTF8(short, string(unicode.ReplacementChar)))
}
