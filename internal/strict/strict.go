// Package strict reads lines of JSON and says where in a line something is wrong. Whether a line is JSON is
// encoding/json's to say; what is done here is to find where each part is, which that package does not tell.
package strict

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error says what is wrong with a line, and where: File:Line:Column, the column in bytes from 1.
type Error struct {
	File         string
	Line, Column int
	Reason       string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Reader reads lines, each a value of JSON. Not safe for concurrent use.
type Reader struct {
	name  string
	in    *bufio.Reader
	most  int // bytes in a line
	line  int
	bytes int64
	buf   []byte
}

// NewReader returns a Reader of in, which errors call name, with at most so many bytes in a line.
func NewReader(name string, in io.Reader, most int) *Reader {
	return &Reader{name: name, in: bufio.NewReaderSize(in, 64<<10), most: most}
}

// Name is what errors call the input.
func (r *Reader) Name() string { return r.name }

// Read is how many lines and bytes have been read.
func (r *Reader) Read() (lines int, bytes int64) { return r.line, r.bytes }

const space = " \t\r\n"

// Next returns the next line, without the white space around it, valid until the next call. It fails with io.EOF after the
// last; with an *Error if it is no JSON, after which the line that follows can be read; and with what reading fails with.
// Blank lines are passed over but counted.
func (r *Reader) Next() (Value, error) {
	for {
		line, tooLong, err := r.read()
		if err != nil {
			return Value{}, err
		}
		r.line++
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		v := Value{r, bytes.TrimLeft(line, space), 1}
		if tooLong {
			v.Column = r.most + 1
			return v, v.Errorf("the line is longer than %d bytes, expected at most that (--max-line)", r.most)
		}
		if len(v.Raw) == 0 {
			continue
		}
		if err := r.check(line); err != nil {
			return v, err
		}
		v.Column += len(line) - len(v.Raw)
		v.Raw = bytes.TrimRight(v.Raw, space)
		return v, nil
	}
}

// read returns the next line without its end. What is longer than the limit is passed over, not kept.
func (r *Reader) read() (line []byte, tooLong bool, err error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(part))
		if !tooLong {
			r.buf = append(r.buf, part...)
		}
		if len(bytes.TrimSuffix(r.buf, []byte("\n"))) > r.most {
			tooLong = true
			r.buf = r.buf[:0]
		}
		switch {
		case err == nil, err == io.EOF && (len(r.buf) > 0 || tooLong):
			return bytes.TrimSuffix(r.buf, []byte("\n")), tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF:
			return nil, false, io.EOF
		default:
			return nil, false, fmt.Errorf("%s: %w", r.name, err)
		}
	}
}

// check says whether a line is JSON at all.
func (r *Reader) check(line []byte) error {
	if !utf8.Valid(line) {
		at := len(line) - len(invalid(line))
		return Value{r, nil, at + 1}.Errorf("byte 0x%02x is not UTF-8, expected text in UTF-8", line[at])
	}
	if json.Valid(line) {
		return nil
	}
	var raw json.RawMessage
	err := json.Unmarshal(line, &raw)
	column := 1
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		column = max(int(syntax.Offset), 1)
	}
	return Value{r, nil, column}.Errorf("%v, expected one JSON object on the line", err)
}

// invalid is what follows the UTF-8 that b begins with.
func invalid(b []byte) []byte {
	for {
		c, n := utf8.DecodeRune(b)
		if c == utf8.RuneError && n <= 1 {
			return b
		}
		b = b[n:]
	}
}

// Value is a value of JSON in a line: its text, and where that is. The text is valid until the next line is read.
type Value struct {
	in     *Reader
	Raw    []byte
	Column int
}

// Errorf says what is wrong with it.
func (v Value) Errorf(format string, args ...any) error {
	return &Error{v.in.name, v.in.line, v.Column, fmt.Sprintf(format, args...)}
}

// Line is where it is.
func (v Value) Line() int { return v.in.line }

// Kind says in words what it is.
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

// String quotes it without filling the screen.
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

// Text is the string that it has to be. Errors call it name.
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

// Integer is the whole number that it has to be.
func (v Value) Integer(name string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(v.Raw), 10, 64)
	if err != nil || n < least || n > most {
		return 0, v.Errorf("%s is %s, expected a whole number from %d to %d", name, v, least, most)
	}
	return n, nil
}

// Object calls each for every member of an object, with its name as a Value, too, for errors.
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

// skip passes over white space.
func (v Value) skip(at int) int {
	for at < len(v.Raw) && strings.IndexByte(space, v.Raw[at]) >= 0 {
		at++
	}
	return at
}

// comma passes over one, if there is one, and white space.
func (v Value) comma(at int) int {
	if at = v.skip(at); v.Raw[at] == ',' {
		at = v.skip(at + 1)
	}
	return at
}

// part is the value that begins at at.
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
			for end < len(text) && strings.IndexByte(",]} \t\r\n", text[end]) < 0 {
				end++
			}
		}
		if depth == 0 {
			break
		}
	}
	return Value{v.in, text[at:end], v.Column + at}
}
