package secret

import (
	"slices"
	"strings"
	"unicode"
)

// A Set looks only for values with at least MinLen bytes and MinBits.
const (
	MinLen  = 8
	MinBits = 42
)

// Guessable reports whether a value is too short or too easy to guess to be a secret, such as
// "ollama", "test", "EMPTY" or "sk-no-key-required". Such text may stand in an answer for other
// reasons.
func Guessable(value string) bool { return len(value) < MinLen || Bits(value) < MinBits }

// placeholders are words of keys that are no secrets.
var placeholders = []string{"test", "demo", "dummy", "fake", "example", "placeholder", "changeme", "none", "null", "empty",
	"no", "not", "your", "any", "anything", "local", "ollama"}

// Placeholder reports whether a value that is easy to guess is plainly no secret, such as "test",
// "sk-no-key-required" or "ollama", as local servers and examples have it.
func Placeholder(value string) bool {
	words := strings.FieldsFunc(strings.ToLower(value), func(c rune) bool { return !unicode.IsLetter(c) })
	return Guessable(value) && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(placeholders, w) })
}

// NamesVariable reports whether a text is plainly the name of an environment variable, such as
// OPENAI_API_KEY. Other text that should be such a name may be the secret itself, and is not shown.
func NamesVariable(text string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if text == "" || strings.Trim(text[:1], letters) != "" || strings.Trim(text, letters+"0123456789") != "" {
		return false
	}
	for word := range strings.SplitSeq(text, "_") {
		if !Guessable(word) {
			return false
		}
	}
	return true
}

// LooksRandom reports whether a part of a path is a token, as in the addresses of webhooks, and not
// the name of a thing.
func LooksRandom(segment string) bool {
	const most = 60 // bits of a name, with a number or two in it
	return Bits(segment) >= most && strings.ContainsFunc(segment, func(r rune) bool { return r >= '0' && r <= '9' }) &&
		strings.ContainsFunc(segment, unicode.IsLetter)
}

// SanitizeText returns a text, such as the value of a flag, without its words that are hard to
// guess: any of them may be a secret that stands in a wrong place.
func SanitizeText(text string) string {
	var b strings.Builder
	for text != "" {
		end := strings.IndexAny(text, " \t\"'`:=")
		if end < 0 {
			end = len(text)
		}
		if word := text[:end]; Guessable(strings.Trim(word, "{};,")) {
			b.WriteString(word)
		} else {
			b.WriteString("…")
		}
		if end < len(text) {
			b.WriteByte(text[end])
			end++
		}
		text = text[end:]
	}
	return b.String()
}

// Bits estimates how hard a value is to guess. It is a sum over the characters, each with its
// surprise after the characters before it. Words add little after their first letter; sequences and
// repeated parts add hardly anything. For random keys it is a little below the truth: 16
// hexadecimal digits have 64 bits, and about 56 by this estimate; two words have about 20. Of
// values with 16 random characters in base64, one in 20,000 looks like words; with 24 characters
// none does.
func Bits(value string) float64 {
	const (
		repeated = 0.5 // the third x of xxx, and the end of three characters that occurred before
		sequence = 1.0 // the c of abc, the 3 of 123, and characters between words
		common   = 1.5 // a letter after one that it often follows
		digit    = 3.3 // one of 10
		letter   = 4.7 // one of 26
		mixed    = 5.7 // one of 26 in either case
		other    = 4.0
	)
	sum := 0.0
	for i := range len(value) {
		c := value[i]
		last := byte(0)
		if i > 0 {
			last = value[i-1]
		}
		step := c - last
		switch {
		case i > 1 && step == last-value[i-2] && step == 0, i >= 3 && strings.Contains(value[:i-1], value[i-2:i+1]):
			sum += repeated
		case i > 1 && step == last-value[i-2] && (step == 1 || step == 255), c == '0' && last == '9' && i > 1 &&
			value[i-2] == '8':
			sum += sequence
		case isDigit(c):
			sum += digit
		case isLetter(c) && isLetter(last) && c&0x20 != last&0x20 && i > 1 && isLetter(value[i-2]):
			sum += mixed // a capital that is only the first letter of a word does not count so
		case isLetter(c) && isLetter(last) && often(last|0x20, c|0x20):
			sum += common
		case isLetter(c):
			sum += letter
		case strings.IndexByte("-_. :/", c) >= 0:
			sum += sequence
		default:
			sum += other
		}
	}
	return sum
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// clusters are the frequent pairs of consonants in words. Two of three random pairs are not in the
// list.
const clusters = "th st nd ng nt ch sh ck ll ss tt rt rs nc ns pl pr tr cr br dr fr gr bl cl fl gl sl sp sk sm sn sw " +
	"wh wr ph mp mb ct " +
	"ft lt ld lk lp lm rd rk rm rn rl rc rg rv ts ds ks ff pp nn mm rr cc gg bb dd nk nf nv nl xt pt ht gh kn tw sc lf " +
	"lv ws wn dm dl bs ms ps"

// often reports whether a letter often follows another one in words.
func often(last, c byte) bool {
	if isVowel(last) || isVowel(c) {
		return strings.IndexByte("jqxz", c) < 0
	}
	i := strings.Index(clusters, string([]byte{last, c}))
	return i >= 0 && i%3 == 0
}

func isVowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }
