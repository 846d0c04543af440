package tokens

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions below read JSON in place. json.Valid has accepted it, so nothing can fail. Values
// are slices of the JSON, without the white space around them.

func first(v []byte) byte {
	for _, c := range v {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func null(v []byte) bool { return len(v) == 0 || v[0] == 'n' }

func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// end returns the index after the value that starts at i.
func end(b []byte, i int) int {
	switch b[i] {
	case '"':
		return endString(b, i)
	case '{', '[':
		depth := 0
		for {
			switch b[i] {
			case '"':
				i = endString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return i
		}
	}
	return i
}

func endString(b []byte, i int) int {
	for {
		i++
		i += bytes.IndexByte(b[i:], '"')
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
}

// each calls f with every member of an object; for any other value it does nothing.
func each(v []byte, f func(key, v []byte)) {
	if first(v) != '{' {
		return
	}
	i := blank(v, blank(v, 0)+1)
	for v[i] != '}' {
		after := endString(v, i)
		key := v[i+1 : after-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = unquote(nil, key)
		}
		i = blank(v, blank(v, after)+1)
		stop := end(v, i)
		f(key, v[i:stop])
		i = blank(v, stop)
		if v[i] == ',' {
			i = blank(v, i+1)
		}
	}
}

// items calls f with every element of an array; for any other value it does nothing.
func items(v []byte, f func(v []byte)) {
	if first(v) != '[' {
		return
	}
	i := blank(v, blank(v, 0)+1)
	for v[i] != ']' {
		stop := end(v, i)
		f(v[i:stop])
		i = blank(v, stop)
		if v[i] == ',' {
			i = blank(v, i+1)
		}
	}
}

// field returns a member of an object, the last one if several have that name, and nil if there is
// none.
func field(v []byte, name string) (found []byte) {
	each(v, func(key, v []byte) {
		if string(key) == name {
			found = v
		}
	})
	return found
}

// str returns the text of a JSON string, "" for another value.
func str(v []byte) string {
	if first(v) != '"' {
		return ""
	}
	return string(unquote(nil, v[1:len(v)-1]))
}

// whole reads a whole number from 0 to maxTokens. ok is false for null.
func whole(v []byte) (n int64, ok bool, err error) {
	if null(v) {
		return 0, false, nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f < 0 || f > maxTokens || f != math.Trunc(f) {
		return 0, false, fmt.Errorf("%.40s is not a whole number from 0 to %d", v, int64(maxTokens))
	}
	return int64(f), true, nil
}

// unquote appends the text of a JSON string. Invalid UTF-8 and halves of surrogate pairs become
// U+FFFD, as in encoding/json.
func unquote(dst, s []byte) []byte {
	dst = slices.Grow(dst, len(s))
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return appendValid(dst, s)
		}
		dst = appendValid(dst, s[:i])
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(s)
			s = s[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(s) >= 6 && s[0] == '\\' && s[1] == 'u' {
					pair = utf16.DecodeRune(r, hex4(s[2:]))
				}
				if r = pair; pair != utf8.RuneError {
					s = s[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		dst = append(dst, c)
	}
}

func appendValid(dst, s []byte) []byte {
	if utf8.Valid(s) {
		return append(dst, s...)
	}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return dst
}

func hex4(s []byte) rune {
	var r rune
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}
