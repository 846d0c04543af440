package screen

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Width is the width of a text in columns of a terminal. Wide characters take two columns, such as
// most of Chinese, Japanese and Korean, and emoji. Characters that combine with the one before take
// none. Joined emoji count as in a terminal that shows them one by one. Escape sequences for colours
// take no columns. Text of strangers goes through text.Sanitize first.
func Width(s string) (n int) {
	colour := false // from an escape character to the m at its end
	for _, r := range s {
		switch {
		case colour:
			colour = r != 'm'
		case r == '\x1b':
			colour = true
		default:
			n += runeWidth(r)
		}
	}
	return n
}

// joiner is part of emoji, and of letters of some scripts.
const joiner = '\u200d'

func runeWidth(r rune) int {
	switch {
	case r >= ' ' && r < 0x7f:
		return 1
	case r == joiner || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns s in no more than most columns. A shortened text ends with an ellipsis.
func Cut(s string, most int) string {
	if Width(s) <= most {
		return s
	}
	if most <= 0 {
		return ""
	}
	n := 0
	end := strings.IndexFunc(s, func(r rune) bool { n += runeWidth(r); return n > most-1 })
	return strings.TrimRight(s[:end], " ") + "…"
}

// Tail returns the end of s in no more than most columns. A shortened text begins with an ellipsis.
func Tail(s string, most int) string {
	n := Width(s)
	if n <= most {
		return s
	}
	if most <= 0 {
		return ""
	}
	for i, r := range s {
		if n <= most-1 {
			return "…" + strings.TrimLeft(s[i:], " ")
		}
		n -= runeWidth(r)
	}
	return "…"
}

// Pad returns s with spaces behind it, or before it if right, so that it takes at least least
// columns.
func Pad(s string, least int, right bool) string {
	gap := strings.Repeat(" ", max(least-Width(s), 0))
	if right {
		return gap + s
	}
	return s + gap
}
