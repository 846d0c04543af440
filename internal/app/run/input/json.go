package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"unicode/utf8"
)

// objects are lines of JSON, each an object whose members are columns.
type objects struct{ *LineReader }

func (o *objects) columns() (*columns, error) { return nil, nil }

func (o *objects) next() (*Item, error) {
	for {
		line, tooLong, err := o.Line()
		switch {
		case err != nil:
			return nil, err
		case tooLong:
			return nil, o.TooLong()
		}
		n, _ := o.Read()
		line = NoMarks(line)
		left := bytes.TrimLeft(line, " \t\r")
		text := bytes.TrimRight(left, " \t\r")
		if len(text) == 0 {
			continue
		}
		if err := o.NotUTF8(line); err != nil {
			return nil, err
		}
		column := len(line) - len(left) + 1
		if !json.Valid(text) {
			return nil, o.Errorf(n, column+offset(text), "%v, expected one JSON object on the line", invalidJSON(text))
		}
		return element(o.LineReader, n, column, n, text)
	}
}

// element makes an item from a value of JSON. An object becomes a row, and a string a row with the
// column url.
func element(in *LineReader, line, column, number int, text []byte) (*Item, error) {
	item := &Item{Line: line, Column: column, Number: number, JSON: text, Row: &Row{}}
	item.sum = sumOf(slices.Values([]string{string(text)}))
	v := ValueAt(in.Name(), line, column, text)
	switch text[0] {
	case '"':
		item.Row.of, item.Row.cells = listed[true], []Cell{cellOf(v, line, column)}
		return item, nil
	case '{':
	default:
		return nil, v.Errorf("%s, expected a JSON object", v.Kind())
	}
	var names []string
	item.Row.json = text
	err := v.Object(func(name string, _, member Value) error {
		at, col := place(text, line, column, member.Column-column)
		names = append(names, name)
		item.Row.cells = append(item.Row.cells, cellOf(member, at, col))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, v.Errorf("an object without anything in it, expected a row")
	}
	item.Row.of = newColumns(names)
	for i, name := range names {
		if item.Row.of.at[name] != i {
			return nil, v.Errorf("the name %q is there twice, expected once", name)
		}
	}
	return item, nil
}

// place returns the line and the column of the byte at in a text that begins at line and column.
func place(text []byte, line, column, at int) (int, int) {
	before := text[:at]
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 {
		return line + bytes.Count(before, []byte("\n")), at - i
	}
	return line, column + at
}

// Place corrects the line and the column of an error about an element of several lines. Before, its
// column counts from the beginning of the element, across line breaks.
func (i *Item) Place(err error) error {
	e, ok := errors.AsType[*Error](err)
	if ok && e.Line == i.Line && e.Column >= i.Column {
		e.Line, e.Column = place(i.JSON, i.Line, i.Column, min(e.Column-i.Column, len(i.JSON)))
	}
	return err
}

func invalidJSON(text []byte) error {
	var any json.RawMessage
	return json.Unmarshal(text, &any)
}

// offset returns the index of the first byte at which a text is not JSON.
func offset(text []byte) int {
	if e, ok := errors.AsType[*json.SyntaxError](invalidJSON(text)); ok {
		return max(int(e.Offset)-1, 0)
	}
	return 0
}

// array reads an array of JSON. It holds one element at a time, so the array may have any length,
// even on a single line.
type array struct {
	*LineReader
	part   []byte // the part of a line that is being read
	at     int    // the index in part of the next byte
	column int    // the column at which part begins
	number int
	opened bool
	ended  bool
	inside bool // a larger value has it, whose rest is not read
}

func (a *array) columns() (*columns, error) { return nil, nil }

// more reads the next part if this one is used up. It returns io.EOF after the last one.
func (a *array) more() error {
	for a.at >= len(a.part) {
		column := a.column + len(a.part)
		if n := len(a.part); n == 0 || a.part[n-1] == '\n' {
			column = 1
		}
		part, err := a.Part()
		if err != nil {
			return err
		}
		a.part, a.at, a.column = part, 0, column
		if n, _ := a.Read(); n == 1 && column == 1 {
			a.at = len(part) - len(NoMarks(part))
		}
	}
	return nil
}

// token skips white space and returns the byte that follows, without skipping that.
func (a *array) token() (byte, error) {
	for {
		if err := a.more(); err != nil {
			return 0, err
		}
		if c := a.part[a.at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, nil
		}
		a.at++
	}
}

// broken returns an error after which the beginnings of elements cannot be found.
func (a *array) broken(format string, args ...any) error {
	n, _ := a.Read()
	return &Unreadable{a.Errorf(max(n, 1), max(a.column, 1)+a.at, format, args...)}
}

func (a *array) next() (*Item, error) {
	if a.ended && a.inside {
		return nil, io.EOF
	}
	c, err := a.token()
	if a.ended {
		if err == nil {
			return nil, a.broken("text after the end of the array, expected none")
		}
		return nil, err
	}
	switch {
	case err == io.EOF && !a.opened:
		return nil, err
	case err == io.EOF:
		return nil, a.broken("the array has no end, expected ]: was the file cut off?")
	case err != nil:
		return nil, err
	case !a.opened && c != '[':
		return nil, a.broken("%q, expected an array of JSON, which begins with [", c)
	case a.opened && c == ']':
		a.at++
		a.ended = true
		return a.next()
	case a.opened && a.number > 0 && c != ',':
		return nil, a.broken("%q after an element, expected , or ]", c)
	}
	if !a.opened || a.number > 0 {
		a.at++
		if c, err = a.token(); err == io.EOF {
			return nil, a.broken("the array has no end, expected ]: was the file cut off?")
		} else if err != nil {
			return nil, err
		}
		if !a.opened && c == ']' {
			a.opened = true
			return a.next()
		}
		a.opened = true
	}
	a.number++
	line, _ := a.Read()
	column := a.column + a.at
	text, err := a.value(line, column)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		rest := NotUTF8(text)
		l, col := place(text, line, column, len(text)-len(rest))
		return nil, a.Errorf(l, col, "byte 0x%02x is not UTF-8, expected text in UTF-8", rest[0])
	}
	if !json.Valid(text) {
		l, col := place(text, line, column, min(offset(text), len(text)))
		return nil, a.Errorf(l, col, "%v, expected JSON", invalidJSON(text))
	}
	return element(a.LineReader, line, column, a.number, text)
}

// value reads an element to its end. Brackets and quotes alone show the end.
func (a *array) value(line, column int) ([]byte, error) {
	var text []byte
	depth, quoted, escaped := 0, false, false
	for {
		if err := a.more(); err == io.EOF {
			return nil, a.broken("the array has no end, expected ]: was the file cut off?")
		} else if err != nil {
			return nil, err
		}
		from, ended := a.at, false
		for ; a.at < len(a.part) && !ended; a.at++ {
			switch c := a.part[a.at]; {
			case escaped:
				escaped = false
			case quoted && c == '\\':
				escaped = true
			case c == '"':
				quoted = !quoted
				ended = depth == 0 && !quoted
			case quoted:
			case c == '{' || c == '[':
				depth++
			case (c == '}' || c == ']') && depth > 0:
				depth--
				ended = depth == 0
			case depth == 0 && bytes.IndexByte([]byte(",]} \t\r\n"), c) >= 0: // a number, or nothing at all
				ended = true
				a.at--
			}
		}
		if text = append(text, a.part[from:a.at]...); len(text) > a.Most() {
			return nil, &Unreadable{a.Errorf(line, column,
				"the element that begins here is longer than %d bytes, expected at most that (--max-line)", a.Most())}
		}
		if ended {
			return text, nil
		}
	}
}
