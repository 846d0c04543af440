// Package shown makes text of strangers fit for a terminal: what would move the cursor, change colours, rename the window or turn
// the direction of the text is shown instead of obeyed. Servers, inputs and file names have such text.
//
// It is not for files: those keep what came.
package shown

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line, as Go would write it in quotes: \x1b for an escape, \n for a line break, \u202e for what turns the
// direction, \xff for what is no UTF-8.
func Text(s string) string { return write(s, "") }

// Lines is Text for several lines, which stay so.
func Lines(s string) string { return write(s, "\n\t") }

func write(s, keep string) string {
	i := strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !harmless(r) })
	if i < 0 {
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

// joiner is part of emoji, and of letters of some scripts.
const joiner = '\u200d'

// harmless says that a character is only itself, and can be seen.
func harmless(r rune) bool {
	if r < 0x7f {
		return r >= ' '
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

// JSON returns a line or a text of JSON that says the same and is harmless: what is not is escaped as JSON has it. Outside of
// strings JSON has nothing of the kind but line breaks and tabs.
func JSON(text []byte) []byte {
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
