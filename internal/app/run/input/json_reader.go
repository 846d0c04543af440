package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Error is the mistake in a line, and its place. The Column is in bytes and counts from 1.
type Error struct {
	File         string
	Line, Column int
	Reason       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// JSONReader reads lines, each of which is a JSON value. Not safe for concurrent use.
type JSONReader struct {
	LineReader
}

// NewJSONReader returns a Reader of in. Errors call it name. most is the most bytes in a line.
func NewJSONReader(name string, in io.Reader, most int) *JSONReader {
	return &JSONReader{*NewLineReader(name, in, most)}
}

// NoMarks returns text without the byte order marks at its beginning. Some programs write one
// although one is there already. In files that were joined, one is at the beginning of a later line.
func NoMarks(text []byte) []byte {
	if len(text) == 0 || text[0] < utf8.RuneSelf { // so it is with most lines
		return text
	}
	return bytes.TrimLeft(text, "\ufeff")
}

// Next returns the value on the next line. It is valid until the next call. Next skips blank lines,
// but counts them. After the last line it fails with io.EOF.
//
// If a line is not JSON or too long it fails with an *Error, and the next call reads the line after
// it. Any other error comes from reading the input.
func (r *JSONReader) Next() (Value, error) {
	for {
		line, tooLong, err := r.Line()
		if err != nil {
			return Value{}, err
		}
		line = NoMarks(line)
		v := r.at(line, 1)
		v.Raw = line[v.skip(0):]
		if tooLong {
			v.Column = r.most + 1
			return v, r.TooLong()
		}
		if len(v.Raw) == 0 {
			continue
		}
		if err := r.check(line); err != nil {
			return v, err
		}
		v.Column += len(line) - len(v.Raw)
		for spaces[v.Raw[len(v.Raw)-1]] {
			v.Raw = v.Raw[:len(v.Raw)-1]
		}
		return v, nil
	}
}

func (r *JSONReader) at(raw []byte, column int) Value { return Value{r.name, r.line, raw, column} }

// check returns an error if a line is not JSON.
func (r *JSONReader) check(line []byte) error {
	if err := r.NotUTF8(line); err != nil {
		return err
	}
	if ValidJSON(line) {
		return nil
	}
	var raw json.RawMessage
	err := json.Unmarshal(line, &raw)
	column := 1
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		column = max(int(syntax.Offset), 1)
	}
	return r.at(nil, column).Errorf("%v, expected one JSON object on the line", err)
}

// NotUTF8 returns the end of b, from the first byte that is not UTF-8.
func NotUTF8(b []byte) []byte {
	for {
		c, n := utf8.DecodeRune(b)
		if c == utf8.RuneError && n <= 1 {
			return b
		}
		b = b[n:]
	}
}

// Value is a JSON value in a line: its text, and the column of its beginning. The text is valid
// until the next line is read.
type Value struct {
	file   string
	line   int
	Raw    []byte
	Column int
}

// ValueAt returns raw as a value on a line of a file. raw must be JSON. If it has several lines, columns
// count on over them.
func ValueAt(file string, line, column int, raw []byte) Value { return Value{file, line, raw, column} }

// Errorf returns an *Error about the value.
func (v Value) Errorf(format string, args ...any) error {
	return &Error{v.file, v.line, v.Column, fmt.Sprintf(format, args...)}
}

// Line returns the number of the value's line.
func (v Value) Line() int { return v.line }

// Kind returns the kind of the value in words.
func (v Value) Kind() string {
	switch v.Raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// String returns the text of the value, cut off if it is too long for an error message.
func (v Value) String() string {
	const most = 60
	if len(v.Raw) <= most {
		return string(v.Raw)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(v.Raw[cut]) {
		cut--
	}
	return string(v.Raw[:cut]) + "…"
}

// Text returns the content of a string, or an error if the value is no string. The error calls it
// name.
func (v Value) Text(name string) (string, error) {
	if v.Raw[0] != '"' {
		return "", v.Errorf("%s is %s, expected a string", name, v.Kind())
	}
	if in := v.Raw[1 : len(v.Raw)-1]; bytes.IndexByte(in, '\\') < 0 {
		return string(in), nil
	}
	var s string
	if err := json.Unmarshal(v.Raw, &s); err != nil {
		return "", v.Errorf("%s: %v, expected a string", name, err)
	}
	return s, nil
}

// Integer returns a whole number from least to most, or an error if the value is none.
func (v Value) Integer(name string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(v.Raw), 10, 64)
	if err != nil || n < least || n > most {
		return 0, v.Errorf("%s is %s, expected a whole number from %d to %d", name, v, least, most)
	}
	return n, nil
}

// Object calls each for every member of an object. key is the name as a Value, for errors.
func (v Value) Object(each func(name string, key, member Value) error) error {
	for at := v.skip(1); v.Raw[at] != '}'; {
		key := v.part(at)
		name, err := key.Text("name")
		if err != nil {
			return err
		}
		at = v.skip(at + len(key.Raw)) // to the colon
		at = v.skip(at + 1)
		member := v.part(at)
		if err := each(name, key, member); err != nil {
			return err
		}
		at = v.comma(at + len(member.Raw))
	}
	return nil
}

// Array calls each for every element of an array.
func (v Value) Array(each func(Value) error) error {
	for at := v.skip(1); v.Raw[at] != ']'; {
		element := v.part(at)
		if err := each(element); err != nil {
			return err
		}
		at = v.comma(at + len(element.Raw))
	}
	return nil
}

// skip returns the position after the white space that begins at a position.
func (v Value) skip(at int) int {
	for at < len(v.Raw) && spaces[v.Raw[at]] {
		at++
	}
	return at
}

// comma returns the position after a comma, if one is at that position, and the white space around
// it.
func (v Value) comma(at int) int {
	if at = v.skip(at); v.Raw[at] == ',' {
		at = v.skip(at + 1)
	}
	return at
}

// part returns the value that begins at a position.
func (v Value) part(at int) Value {
	text, end, depth := v.Raw, at, 0
	for end < len(text) {
		switch text[end] {
		case '"':
			for end++; text[end] != '"'; end++ {
				if text[end] == '\\' {
					end++
				}
			}
			end++
		case '{', '[':
			depth++
			end++
			continue
		case '}', ']':
			depth--
			end++
		default:
			if depth > 0 {
				end++
				continue
			}
			for end < len(text) && !spaces[text[end]] && text[end] != ',' && text[end] != ']' && text[end] != '}' {
				end++
			}
		}
		if depth == 0 {
			break
		}
	}
	return Value{v.file, v.line, text[at:end], v.Column + at}
}
