package permit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// syntaxError is a text that is not the expected message.
type syntaxError struct {
	at   string // the path of the field: settle[3].actual.tokens
	what string // what is wrong, and what was expected
}

func (e *syntaxError) Error() string {
	if e.at == "" {
		return e.what
	}
	return e.at + ": " + e.what
}

func wrong(format string, args ...any) error { return &syntaxError{what: fmt.Sprintf(format, args...)} }

// within puts a step in front of the path of an error.
func within(step string, err error) error {
	e, ok := errors.AsType[*syntaxError](err)
	if !ok {
		return err
	}
	at := step
	switch {
	case strings.HasPrefix(e.at, "["), e.at == "":
		at += e.at
	default:
		at += "." + e.at
	}
	return &syntaxError{at, e.what}
}

// scanner reads JSON strictly: unknown fields, fields that come twice, and values of other types are
// errors. It reads in one pass, and makes no value but strings.
type scanner struct {
	b []byte
	i int
}

// next skips white space, and returns the next byte; 0 at the end.
func (s *scanner) next() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\r', '\n':
			s.i++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.next() == c {
		s.i++
		return true
	}
	return false
}

// kind names what comes next.
func (s *scanner) kind() string {
	switch c := s.next(); {
	case s.i == len(s.b):
		return "the end"
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == '-' || c >= '0' && c <= '9':
		return "a number"
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
			return word
		}
	}
	return "no JSON"
}

// end expects that nothing comes any more.
func (s *scanner) end() error {
	if s.next(); s.i < len(s.b) {
		return wrong("%s after the message, expected its end", s.kind())
	}
	return nil
}

// object reads an object with some of these fields. of reads the value of the field with an index.
func (s *scanner) object(fields []string, of func(i int) error) error {
	var seen uint64
	return s.members(fields, func(name string) error {
		i := slices.Index(fields, name)
		if i < 0 {
			return wrong("unknown field, expected one of %s", strings.Join(fields, ", "))
		}
		if seen&(1<<i) != 0 {
			return wrong("the field is there twice, expected once")
		}
		seen |= 1 << i
		return of(i)
	})
}

// members reads an object of any fields. No string is made for a name that is one of known.
func (s *scanner) members(known []string, of func(name string) error) error {
	if s.next() != '{' {
		return wrong("%s, expected an object", s.kind())
	}
	s.i++
	if s.take('}') {
		return nil
	}
	for {
		if s.next() != '"' {
			return wrong("%s, expected the name of a field", s.kind())
		}
		name, err := s.textOf(known)
		if err != nil {
			return err
		}
		if !s.take(':') {
			return within(name, wrong("%s, expected : and a value", s.kind()))
		}
		if err := of(name); err != nil {
			return within(name, err)
		}
		switch {
		case s.take('}'):
			return nil
		case !s.take(','):
			return within(name, wrong("%s after it, expected , or }", s.kind()))
		}
	}
}

// array reads an array of at most so many values.
func (s *scanner) array(most int, of func() error) error {
	if s.next() != '[' {
		return wrong("%s, expected an array", s.kind())
	}
	s.i++
	if s.take(']') {
		return nil
	}
	for n := 0; ; n++ {
		step := func() string { return fmt.Sprintf("[%d]", n) }
		if n == most {
			return wrong("more than %d values", most)
		}
		if err := of(); err != nil {
			return within(step(), err)
		}
		switch {
		case s.take(']'):
			return nil
		case !s.take(','):
			return within(step(), wrong("%s after it, expected , or ]", s.kind()))
		}
	}
}

// text reads a string.
func (s *scanner) text() (string, error) { return s.textOf(nil) }

// textOf reads a string. If it is one of known, it is that one, and no other is made.
func (s *scanner) textOf(known []string) (string, error) {
	raw, plain, err := s.quoted()
	if err != nil {
		return "", err
	}
	if plain {
		for _, text := range known {
			if string(raw[1:len(raw)-1]) == text {
				return text, nil
			}
		}
	}
	if !utf8.Valid(raw) {
		return "", errNoText
	}
	if plain {
		return string(raw[1 : len(raw)-1]), nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return "", errNoText
	}
	return text, nil
}

var errNoText = wrong("a string with a wrong escape, or not in UTF-8")

// quoted reads a string, and returns it with its quotes. plain says that there is no escape in it.
func (s *scanner) quoted() (raw []byte, plain bool, err error) {
	if s.next() != '"' {
		return nil, false, wrong("%s, expected a string", s.kind())
	}
	plain = true
	for end := s.i + 1; end < len(s.b); end++ {
		switch c := s.b[end]; {
		case c == '"':
			raw = s.b[s.i : end+1]
			s.i = end + 1
			return raw, plain, nil
		case c == '\\':
			plain = false
			end++
		case c < ' ':
			return nil, false, wrong("a control character in a string, expected it as an escape")
		}
	}
	return nil, false, wrong("a string without an end")
}

// number reads a number from least to most.
func (s *scanner) number(least, most float64) (float64, error) {
	raw, err := s.digits()
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || f < least || f > most {
		return 0, wrong("%s, expected a number from %v to %v", raw, least, most)
	}
	return f, nil
}

// integer reads a whole number from least to most.
func (s *scanner) integer(least, most int64) (int64, error) {
	raw, err := s.digits()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || n < least || n > most {
		return 0, wrong("%s, expected a whole number from %d to %d", raw, least, most)
	}
	return n, nil
}

// longestNumber bounds the digits that an error shows.
const longestNumber = 40

// digits reads the text of a number.
func (s *scanner) digits() (string, error) {
	if kind := s.kind(); kind != "a number" {
		return "", wrong("%s, expected a number", kind)
	}
	begin := s.i
	for s.i < len(s.b) && (s.b[s.i] >= '0' && s.b[s.i] <= '9' || strings.IndexByte("+-.eE", s.b[s.i]) >= 0) {
		s.i++
	}
	raw := s.b[begin:s.i]
	if len(raw) > longestNumber || !json.Valid(raw) {
		return "", wrong("%.*q is no number", longestNumber, raw)
	}
	return string(raw), nil
}
