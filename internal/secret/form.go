package secret

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// pattern is the text of an echo without its escapes: the value as it is, or in base64. In base64
// it is the part that does not depend on the bytes before and after the value.
type pattern struct {
	key  int
	text string
	part int // the least length of an echo at a cut, in bytes
	// base64 means that '-' counts as '+' and '_' as '/'. Then lead and tail are the bits of the
	// value in the characters before and after text.
	base64     bool
	lead, tail bits
}

// bits are some of the six bits of a character in base64: value is in the n lowest of them (lead)
// or the n highest (tail).
type bits struct{ value, n uint8 }

// minPart and maxPart bound the length of a value's part that is an echo at a cut. The first eight
// characters are mostly a prefix of all keys of a provider.
const minPart, maxPart = 3, 8

// patterns returns all patterns of a value.
func patterns(key int, value string) []pattern {
	all := []pattern{{key: key, text: value, part: min(max(len(value)/4, minPart), maxPart)}}
	for _, text := range written(value) {
		all = append(all, encoded(key, text)...)
	}
	return all
}

// written are a value as it is, and as it stands in a URL or in JSON. A server that writes a whole
// request in base64 writes the value in one of these forms.
func written(value string) []string {
	all := []string{value}
	quoted := func(html bool) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		_ = e.Encode(value)              // a string always has a form
		return b.String()[1 : b.Len()-2] // without its quotes, and the end of the line
	}
	for _, form := range []string{url.QueryEscape(value), url.PathEscape(value), quoted(false), quoted(true)} {
		if !slices.Contains(all, form) {
			all = append(all, form)
		}
	}
	return all
}

// encoded returns the patterns of a text in base64.
func encoded(key int, value string) (all []pattern) {
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
		p := pattern{key: key, base64: true}
		first, n := (before*8+5)/6, (before+len(value))*8
		if before > 0 {
			shared := first*6 - before*8
			p.lead = bits{value: value[0] >> (8 - shared), n: uint8(shared)}
		}
		if over := n % 6; over > 0 {
			p.tail = bits{value: sextet(text[len(text)-1]) >> (6 - over), n: uint8(over)}
		}
		p.text = text[first : n/6]
		p.part = min(max(len(p.text)/4, minPart+1), maxPart+3)
		all = append(all, p)
	}
	return all
}

// has reports whether c stands for the j-th byte of the pattern.
func (p *pattern) has(j int, c byte) bool {
	want := p.text[j]
	return c == want || p.base64 && (c == '-' && want == '+' || c == '_' && want == '/')
}

// alternatives returns the bytes that may stand for the j-th byte of the pattern.
func (p *pattern) alternatives(j int) (all []byte) {
	for c := range 256 {
		if p.has(j, byte(c)) {
			all = append(all, byte(c))
		}
	}
	return all
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// sextet is the value of a character in base64, or 64 if it is not one of base64.
func sextet(c byte) byte {
	switch c {
	case '-':
		c = '+'
	case '_':
		c = '/'
	}
	if i := strings.IndexByte(alphabet, c); i >= 0 {
		return byte(i)
	}
	return 64
}

// special are the bytes with which escapes begin: of JSON and program text, of URLs, and of HTML.
var special = [256]bool{'\\': true, '%': true, '+': true, '&': true}

// layers is the depth of nested escapes that is read: HTML in JSON in JSON has three.
const layers = 3

// units is the number of readings of one place: as it is, and with each number of layers.
const units = layers + 1

// maxUnit is the largest average size of an echo's character, in bytes. It allows for two layers
// that escape every character, as in \u0026\u0023\u0036\u0035\u003b. It also allows for a third
// layer that escapes only the necessary ones.
const maxUnit = 64

// unit is one reading of a character.
type unit struct {
	value rune
	byte  bool // value is a byte, not a code point
	end   int  // the end of the character in the text
}

func (u unit) special() bool { return u.value >= 0 && u.value < 256 && special[u.value] }

// matcher reads one text.
type matcher struct {
	text []byte
	cut  Cut
	torn bool // an escape is cut off at the end of the text
}

// units reads the character at i in every possible way, first the one with the most layers. It sets
// torn.
func (m *matcher) units(into *[units]unit, i int) []unit {
	m.torn = false
	n := len(into) - 1
	into[n] = unit{rune(m.text[i]), true, i + 1}
	for layer := 0; layer < layers && into[n].special(); layer++ {
		// Characters that are no escape may become one when the characters after them are
		// unescaped: %2\u0046.
		if u, ok := m.escape(into[n], layer); ok {
			n--
			into[n] = u
		}
	}
	return into[n:]
}

// get reads one character of an escape. The character may itself be escaped, in up to depth layers.
func (m *matcher) get(i, depth int) (c rune, end int) {
	if i >= len(m.text) {
		m.torn = true
		return -1, i
	}
	u := unit{rune(m.text[i]), true, i + 1}
	for layer := 0; layer < depth && u.special(); layer++ {
		if v, ok := m.escape(u, layer); ok {
			u = v
		}
	}
	return u.value, u.end
}

// escape reads an escape that begins with first. Its other characters may be escaped, in up to
// depth layers.
func (m *matcher) escape(first unit, depth int) (u unit, ok bool) {
	switch first.value {
	case '+':
		return unit{' ', true, first.end}, true
	case '%':
		v, at, ok := m.digits(first.end, depth, 2)
		return unit{v, true, at}, ok
	case '&':
		return m.entity(first.end, depth)
	}
	return m.backslash(first.end, depth)
}

// backslash reads the rest of an escape after its backslash, as in JSON, JavaScript, Go or Python.
func (m *matcher) backslash(i, depth int) (u unit, ok bool) {
	c, at := m.get(i, depth)
	switch {
	case c < 0:
		return u, false
	case c == 'x':
		v, at, ok := m.digits(at, depth, 2)
		return unit{v, true, at}, ok
	case c == 'u':
		v, at, ok := m.digits(at, depth, 4)
		if ok && v >= 0xd800 && v < 0xdc00 {
			back, next := m.get(at, depth)
			mark, next := m.get(next, depth)
			low, next, lowOK := m.digits(next, depth, 4)
			if ok = back == '\\' && mark == 'u' && lowOK && low >= 0xdc00 && low < 0xe000; ok {
				v, at = 0x10000+(v-0xd800)<<10+(low-0xdc00), next
			}
		}
		return unit{v, false, at}, ok
	case c == 't':
		return unit{'\t', true, at}, true
	case c == '"' || c == '\\' || c == '/' || c == '\'':
		return unit{c, true, at}, true
	}
	return u, false
}

// digits reads n hexadecimal digits.
func (m *matcher) digits(i, depth, n int) (v rune, end int, ok bool) {
	for range n {
		c, at := m.get(i, depth)
		d := digit(c, 16)
		if d < 0 {
			return 0, i, false
		}
		v, i = v<<4|d, at
	}
	return v, i, true
}

func digit(c, base rune) rune {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case base == 16 && c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case base == 16 && c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return -1
}

// maxEntity is the largest number of characters between the & and the ; of HTML. Numbers may have
// leading zeros.
const maxEntity = 12

// entity reads a character reference of HTML, by number or by name, from after its ampersand.
func (m *matcher) entity(i, depth int) (u unit, ok bool) {
	var name [maxEntity + 2]byte
	n := 1
	for name[0] = '&'; n < len(name)-1; {
		c, at := m.get(i, depth)
		i = at
		if c == ';' {
			name[n] = byte(c)
			return character(name[:n+1], i)
		}
		if c < 0 || c >= utf8.RuneSelf || !isAlphanumeric(c) && (c != '#' || n > 1) {
			return u, false
		}
		name[n] = byte(c)
		n++
	}
	return u, false
}

// character reads a whole character reference of HTML, from its & to its ;.
func character(name []byte, end int) (u unit, ok bool) {
	if name[1] != '#' {
		switch string(name) { // the most frequent ones
		case "&amp;":
			return unit{'&', false, end}, true
		case "&quot;":
			return unit{'"', false, end}, true
		case "&lt;":
			return unit{'<', false, end}, true
		case "&gt;":
			return unit{'>', false, end}, true
		}
		s := html.UnescapeString(string(name))
		v, size := utf8.DecodeRuneInString(s)
		return unit{v, false, end}, size == len(s)
	}
	base, digits := rune(10), name[2:len(name)-1]
	if len(digits) > 0 && digits[0]|0x20 == 'x' {
		base, digits = 16, digits[1:]
	}
	v := rune(0)
	for _, c := range digits {
		d := digit(rune(c), base)
		if d < 0 || v > utf8.MaxRune {
			return u, false
		}
		v = v*base + d
	}
	return unit{v, false, end}, len(digits) > 0 && v <= utf8.MaxRune
}

func isAlphanumeric(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
