package input

import (
	"net/url"
	"strings"
)

// These are classes of bytes in a URL that stand for themselves.
const (
	inHost = 1 << iota
	inPath
	inQuery
)

// classes has the classes of each byte.
var classes = func() (of [256]uint8) {
	for c := range byte(0x7f) {
		isLetter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if isLetter || c == '.' || c == '-' {
			of[c] |= inHost
		}
		if isLetter || strings.IndexByte("-._~/$&+,:;=@", c) >= 0 {
			of[c] |= inPath
		}
		if c > ' ' && c != '#' {
			of[c] |= inQuery
		}
	}
	return of
}()

// span returns how many bytes at the beginning of a text are of a class.
func span(s string, class uint8) int {
	for i := range len(s) {
		if classes[s[i]]&class == 0 {
			return i
		}
	}
	return len(s)
}

// PlainURL reads a URL in which each byte stands for itself, as most lines of an input have: its String is
// text. PlainURL returns nil for all others: ParseURL reads them.
func PlainURL(text string) *url.URL {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return nil
	}
	end := span(rest, inHost)
	if end == 0 {
		return nil
	}
	if end < len(rest) && rest[end] == ':' {
		digits := end + 1
		for end = digits; end < len(rest) && rest[end] >= '0' && rest[end] <= '9'; {
			end++
		}
		if end == digits {
			return nil
		}
	}
	u := &url.URL{Scheme: scheme, Host: rest[:end]}
	if rest = rest[end:]; rest != "" && rest[0] == '/' {
		end = span(rest, inPath)
		u.Path, rest = rest[:end], rest[end:]
	}
	if rest == "" {
		return u
	}
	if rest[0] != '?' || len(rest) == 1 || span(rest[1:], inQuery) < len(rest)-1 {
		return nil
	}
	u.RawQuery = rest[1:]
	return u
}
