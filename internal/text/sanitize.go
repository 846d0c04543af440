package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sanitize makes text of strangers safe for a terminal, on one line. Servers, inputs and file names
// have characters that move the cursor, change colours, rename the window or turn the direction of
// the text. It shows them, with escapes as in Go: \x1b for the escape character, \n for a line break,
// \u202e for a character that turns the direction, \xff for a byte that is not UTF-8.
//
// It is not for files: those keep the text as it came.
func Sanitize(s string) string { return sanitized(s, "") }

// SanitizeLines is Sanitize for several lines: it keeps line breaks and tabs.
func SanitizeLines(s string) string { return sanitized(s, "\n\t") }

func sanitized(s, keep string) string {
	i := 0
	for i < len(s) && (s[i] < utf8.RuneSelf && plain[s[i]] || strings.IndexByte(keep, s[i]) >= 0) {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case harmless(r) || r < utf8.RuneSelf && strings.IndexByte(keep, byte(r)) >= 0:
			b.WriteString(s[i : i+size])
		default:
			b.WriteString(escaped(r))
		}
		i += size
	}
	return b.String()
}

// joiner joins parts of emoji, and letters of some scripts.
const joiner = '\u200d'

// plain has the visible characters of ASCII.
var plain = func() (is [utf8.RuneSelf]bool) {
	for c := ' '; c <= '~'; c++ {
		is[c] = true
	}
	return is
}()

// harmless reports whether a character is visible and has no effect on others.
func harmless(r rune) bool {
	if r < utf8.RuneSelf {
		return plain[r]
	}
	return unicode.IsGraphic(r) || r == joiner
}

func escaped(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// SanitizeJSON returns harmless JSON of the same meaning: it escapes other characters as JSON does. They
// can only be in strings, since JSON has none elsewhere but line breaks and tabs.
func SanitizeJSON(text []byte) []byte {
	bad := func(r rune) bool { return !harmless(r) && r != '\n' && r != '\t' && r != '\r' }
	s := string(text)
	if strings.IndexFunc(s, bad) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !bad(r):
			b.WriteRune(r)
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return []byte(b.String())
}
