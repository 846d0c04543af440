package input

import (
	"bytes"
	"slices"
	"strings"
)

// list reads lines of text as rows with a single column, named url or line. Blank lines are passed
// over. In a list of URLs, lines that begin with # are passed over, too.
type list struct {
	*LineReader
	urls bool
	one  Item
}

var listed = map[bool]*columns{true: newColumns([]string{"url"}), false: newColumns([]string{"line"})}

func (l *list) columns() (*columns, error) { return listed[l.urls], nil }

func (l *list) next() (*Item, error) {
	for {
		line, tooLong, err := l.Line()
		switch {
		case err != nil:
			return nil, err
		case tooLong:
			return nil, l.TooLong()
		}
		n, _ := l.Read()
		if n == 1 || l.urls {
			line = NoMarks(line)
		}
		if err := l.NotUTF8(line); err != nil {
			return nil, err
		}
		left := bytes.TrimLeft(line, " \t\r")
		text := strings.TrimRight(string(left), " \t\r")
		if text == "" || l.urls && text[0] == '#' {
			continue
		}
		column := len(line) - len(left) + 1
		if l.urls && !isURL(text) {
			return nil, l.Errorf(n, column, "%s", notURL("the URL ", text, "expected a URL, http:// or https://"))
		}
		if l.urls && strings.ContainsAny(text, " \t") {
			return nil, l.Errorf(n, column+strings.IndexAny(text, " \t"),
				"there is white space in the URL, expected one URL on the line and nothing else")
		}
		l.one = Item{Line: n, Column: column, Number: n,
			Row: &Row{of: listed[l.urls], cells: []Cell{{Text: text, Line: n, Column: column}}}}
		l.one.sum = sumOf(slices.Values([]string{text}))
		return &l.one, nil
	}
}
