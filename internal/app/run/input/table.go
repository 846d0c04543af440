package input

import (
	"bytes"
	"io"
	"strings"
)

// table reads CSV by RFC 4180, with any separator. Within a field that does not begin with a quote,
// quotes are text.
type table struct {
	*LineReader
	comma    byte
	noHeader bool
	header   *columns
	failed   error
	first    []Cell // the first row of a table without a header, until next returns it
	cells    []Cell
}

// columns reads the header, which is the first row that is not empty.
func (t *table) columns() (*columns, error) {
	if t.header != nil || t.failed != nil {
		return t.header, t.failed
	}
	cells, err := t.row()
	if err == nil && cells[0].Line == 1 && t.separator(cells) {
		cells, err = t.row()
	}
	if err == io.EOF {
		t.header = newColumns(nil)
		return t.header, nil
	}
	if err != nil {
		t.failed = &Unreadable{err}
		return nil, t.failed
	}
	names := make([]string, len(cells))
	for i, c := range cells {
		if !t.noHeader {
			names[i] = strings.TrimSpace(c.Text)
		}
	}
	if t.noHeader {
		t.first = append([]Cell(nil), cells...)
	}
	t.header = newColumns(names)
	delete(t.header.at, "") // a column without a name is called by its number
	return t.header, nil
}

// separator reports whether cells are the line sep=; which Excel may put before a table. It takes
// the separator from it.
func (t *table) separator(cells []Cell) bool {
	text := cells[0].Text
	if len(cells) == 2 && text == "sep=" && cells[1].Text == "" {
		return true // the line was split at its separator, which is then in use
	}
	if len(cells) != 1 || len(text) != len("sep=")+1 || !strings.HasPrefix(text, "sep=") {
		return false
	}
	t.comma = text[len("sep=")]
	return true
}

func (t *table) next() (*Item, error) {
	of, err := t.columns()
	if err != nil {
		return nil, err
	}
	cells := t.first
	if t.first = nil; cells == nil {
		if cells, err = t.row(); err != nil {
			return nil, err
		}
	}
	at := cells[0]
	switch n := len(cells) - len(of.names); {
	case n != 0 && len(cells) == 1:
		return nil, t.Errorf(at.Line, at.Column, "one column, expected %d as in the first row, separated by %q",
			len(of.names), t.comma)
	case n > 0:
		extra := cells[len(of.names)]
		return nil, t.Errorf(extra.Line, extra.Column,
			"%d columns, expected %d as in the first row: a value with %q in it has to be in quotes", len(cells),
			len(of.names), t.comma)
	case n < 0:
		last := cells[len(cells)-1]
		return nil, t.Errorf(last.Line, last.Column, "%d columns, and the row ends here; expected %d as in the first row",
			len(cells), len(of.names))
	}
	item := &Item{Line: at.Line, Column: at.Column, Number: at.Line, Row: &Row{of: of, cells: cells}}
	item.sum = sumOf(func(yield func(string) bool) {
		for i := range cells {
			if !yield(cells[i].Text) {
				return
			}
		}
	})
	return item, nil
}

// row reads the next row that is not empty.
func (t *table) row() ([]Cell, error) {
	for {
		line, err := t.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			continue
		}
		cells, err := t.fields(line)
		if err != nil {
			return nil, err
		}
		for i := range cells {
			if cells[i].Text != "" {
				return cells, nil
			}
		}
	}
}

// line reads a line without its line break, and checks that it is text.
func (t *table) line() ([]byte, error) {
	line, tooLong, err := t.Line()
	if err != nil {
		return nil, err
	}
	n, _ := t.Read()
	if tooLong {
		return nil, t.TooLong()
	}
	if n == 1 {
		line = NoMarks(line)
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if err := t.NotUTF8(line); err != nil {
		e := err.(*Error)
		e.Reason += "; a table of Excel's is saved as CSV UTF-8, or made so: iconv -f WINDOWS-1252 -t UTF-8 FILE | " +
			"paceline run …"
		return nil, e
	}
	if i := bytes.IndexByte(line, 0); i >= 0 {
		return nil, t.Errorf(n, i+1, "a NUL byte, expected text")
	}
	return line, nil
}

// fields splits a row into cells. It reads more lines while a field in quotes is open.
func (t *table) fields(line []byte) ([]Cell, error) {
	cells := make([]Cell, 0, max(len(t.cells), 8))
	for at := 0; ; {
		n, _ := t.Read()
		cell := Cell{Line: n, Column: at + 1}
		if at < len(line) && line[at] == '"' {
			var err error
			if line, at, cell.Text, err = t.quoted(line, at+1, cell); err != nil {
				return nil, err
			}
		} else {
			end := len(line)
			if i := bytes.IndexByte(line[at:], t.comma); i >= 0 {
				end = at + i
			}
			cell.Text = string(line[at:end])
			at = end
		}
		cells = append(cells, cell)
		if at >= len(line) {
			t.cells = cells
			return cells, nil
		}
		at++
	}
}

// quoted reads a field from behind its first quote to behind its last. rest is the line in which
// the field ends, and end the index behind it.
func (t *table) quoted(line []byte, at int, opened Cell) (rest []byte, end int, text string, err error) {
	var b strings.Builder
	for {
		i := bytes.IndexByte(line[at:], '"')
		if i < 0 {
			b.Write(line[at:])
			b.WriteByte('\n')
			next, err := t.line()
			switch {
			case err == io.EOF:
				return nil, 0, "", t.Errorf(opened.Line, opened.Column, "the quote that begins here has no end")
			case err != nil:
				return nil, 0, "", err
			case b.Len()+len(next) > t.Most():
				return nil, 0, "", t.Errorf(opened.Line, opened.Column,
					"the quote that begins here has no end for %d bytes, expected at most that (--max-line)", t.Most())
			}
			line, at = next, 0
			continue
		}
		b.Write(line[at : at+i])
		at += i + 1
		switch {
		case at < len(line) && line[at] == '"':
			b.WriteByte('"')
			at++
		case at == len(line) || line[at] == t.comma:
			return line, at, b.String(), nil
		default:
			n, _ := t.Read()
			return nil, 0, "", t.Errorf(n, at+1,
				"text after the quote that ends the field, which began on line %d; expected %q, the end of the line, or a quote "+
					"in a field written twice", opened.Line, t.comma)
		}
	}
}
