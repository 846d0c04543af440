package observe

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// OtherLabel is the value for all names without their own series.
const OtherLabel = "other"

// LabelNames are the first values of a label of a metric, up to Most. They keep their series for good.
// If others replaced them, "other" would shrink and grow, which looks like counters that begin anew.
type LabelNames struct {
	Most int
	seen map[string]bool
}

// Has reports whether a name has its own series.
func (n *LabelNames) Has(name string) bool {
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
func (n *LabelNames) Of(name string) string {
	if !n.Has(name) {
		return OtherLabel
	}
	return LabelValue(name)
}

// longestLabel is the most bytes of a value, without the few that distinguish longer ones.
const longestLabel = 64

// LabelValue makes a label's value of bounded length from any text, which may come from strangers.
func LabelValue(s string) string {
	short := s
	if len(short) > longestLabel {
		for short = short[:longestLabel]; len(short) > 0 && !utf8.RuneStart(s[len(short)]); {
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
