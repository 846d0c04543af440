// Package labels bounds the label values of metrics, in number and in length. Such values may come
// from strangers.
package labels

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Other is the value for all names without their own series.
const Other = "other"

// Names are the first values of a label. They keep their series for good. If others replaced them,
// "other" would shrink and grow, which looks like counters that begin anew.
type Names struct {
	Most int
	seen map[string]bool
}

// Has reports whether a name has its own series.
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

// Of returns the label's value for a name.
func (n *Names) Of(name string) string {
	if !n.Has(name) {
		return Other
	}
	return Bounded(name)
}

// longest is the most bytes of a value, without the few that distinguish longer ones.
const longest = 64

// Bounded makes a label's value from any text.
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
