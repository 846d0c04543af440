package tiktoken

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A text is split into pieces, and no token crosses a piece's border. tiktoken has a pattern for
// each vocabulary, whose first matching alternative counts. Here each pattern is a function. It
// returns the bytes of the first piece of s, which is not empty and UTF-8. A regular expression
// would be ten times slower.

// splitR50k:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitR50k(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	from := 0
	if s[0] == ' ' {
		from = 1
	}
	for _, class := range []func(rune) bool{unicode.IsLetter, unicode.IsNumber, isOther} {
		if n := run(s[from:], class); n > 0 {
			return from + n
		}
	}
	return spaces(s)
}

// splitCl100k:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitCl100k(s string) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	from := before(s)
	if n := run(s[from:], unicode.IsLetter); n > 0 {
		return from + n
	}
	return rest(s, "\r\n")
}

// splitO200k, where U stands for \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M} and L for \p{Ll}\p{Lm}\p{Lo}\p{M}:
//
//	[^\r\n\p{L}\p{N}]?[U]*[L]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[U]+[L]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|
//	\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
func splitO200k(s string) int {
	for _, word := range []func(string) int{lowerWord, upperWord} {
		for from := before(s); ; from = 0 {
			if n := word(s[from:]); n > 0 {
				return from + n + contraction(s[from+n:], true)
			}
			if from == 0 {
				break
			}
		}
	}
	return rest(s, "\r\n/")
}

// lowerWord is [U]*[L]+. [U]* takes all it can, and gives back from its end until [L]+ matches.
func lowerWord(s string) int {
	upper := run(s, inUpper)
	if n := run(s[upper:], inLower); n > 0 {
		return upper + n
	}
	for upper > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:upper])
		if inLower(r) {
			return upper // no character in L follows: it would have been given back before
		}
		upper -= n
	}
	return 0
}

// upperWord is [U]+[L]*.
func upperWord(s string) int {
	upper := run(s, inUpper)
	if upper == 0 {
		return 0
	}
	return upper + run(s[upper:], inLower)
}

// rest is the pattern after the words: \p{N}{1,3}|
// ?[^\s\p{L}\p{N}]+[after]*|\s*[\r\n]+|\s+(?!\S)|\s+
func rest(s, after string) int {
	at := 0
	for range 3 {
		r, n := utf8.DecodeRuneInString(s[at:])
		if n == 0 || !unicode.IsNumber(r) {
			break
		}
		at += n
	}
	if at > 0 {
		return at
	}
	from := 0
	if s[0] == ' ' {
		from = 1
	}
	if n := run(s[from:], isOther); n > 0 {
		n += from
		return n + len(s[n:]) - len(strings.TrimLeft(s[n:], after))
	}
	if newline := strings.LastIndexAny(s[:run(s, unicode.IsSpace)], "\r\n"); newline >= 0 {
		return newline + 1
	}
	return spaces(s)
}

// spaces is \s+(?!\S)|\s+. At the end of the text it is all of the white space. Otherwise the last
// character belongs to the next piece, unless it is the only one.
func spaces(s string) int {
	n := run(s, unicode.IsSpace)
	if n == len(s) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(s[:n])
	if n > last {
		return n - last
	}
	return n
}

// before is [^\r\n\p{L}\p{N}]?
func before(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r == '\r' || r == '\n' || unicode.IsLetter(r) || unicode.IsNumber(r) {
		return 0
	}
	return n
}

// contraction is 's|'t|'re|'ve|'m|'ll|'d. With fold, capitals match too, and ſ matches s.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	if fold && strings.HasPrefix(s[1:], "ſ") {
		return 1 + len("ſ")
	}
	lower := func(i int) byte {
		if i >= len(s) {
			return 0
		}
		if c := s[i]; fold && 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return s[i]
	}
	switch second := lower(2); lower(1) {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if second == 'e' {
			return 3
		}
	case 'l':
		if second == 'l' {
			return 3
		}
	}
	return 0
}

// run returns the number of bytes at the beginning of s that are of a class.
func run(s string, class func(rune) bool) int {
	for i, r := range s {
		if !class(r) {
			return i
		}
	}
	return len(s)
}

func isOther(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }

func inUpper(r rune) bool {
	if r < utf8.RuneSelf {
		return 'A' <= r && r <= 'Z'
	}
	return unicode.In(r, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M)
}

func inLower(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z'
	}
	return unicode.In(r, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M)
}
