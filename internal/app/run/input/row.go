package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/text"
)

// Row is an item with columns.
type Row struct {
	of    *columns
	cells []Cell
	json  []byte // the object behind the row, to read its members; nil for other rows
}

// Cell is the value of a row in a column.
type Cell struct {
	Text string
	// JSON is the original text of the value, if the row is an object of JSON. Otherwise it is
	// empty, and the cell is text.
	JSON         string
	Line, Column int
}

// columns are the names of a table's columns.
type columns struct {
	names []string
	at    map[string]int // the index of the first column of each name
}

func newColumns(names []string) *columns {
	c := &columns{names, make(map[string]int, len(names))}
	for i, name := range names {
		if _, twice := c.at[name]; !twice {
			c.at[name] = i
		}
	}
	return c
}

// find returns the index of a column. It is the column with that name. If there is none, it is the
// only column whose name differs in capitals alone, or else the one with that number, counted from
// 1.
func (c *columns) find(ref string) (int, error) {
	if i, ok := c.at[ref]; ok {
		if again := slices.Index(c.names[i+1:], ref); again >= 0 {
			return 0, fmt.Errorf("there are two columns %q: expected {row.%d} or {row.%d}, by number", ref, i+1, i+again+2)
		}
		return i, nil
	}
	found := -1
	for i, name := range c.names {
		if strings.EqualFold(name, ref) {
			if found >= 0 {
				return 0, fmt.Errorf("there is no column %q, but %q and %q: expected one of them as it is written", ref,
					c.names[found], name)
			}
			found = i
		}
	}
	if found >= 0 {
		return found, nil
	}
	if n, err := strconv.Atoi(ref); err == nil && n >= 1 && n <= len(c.names) {
		return n - 1, nil
	}
	return 0, noColumn("column", ref, c.names)
}

// shown are the names under which results show columns: that of a column without a name is its number.
func (c *columns) shown() []string {
	names := slices.Clone(c.names)
	for i, name := range names {
		if name == "" {
			names[i] = strconv.Itoa(i + 1)
		}
	}
	return names
}

// shows reports whether results show a column of that name.
func (c *columns) shows(name string) bool {
	_, ok := c.at[name]
	return ok && name != "" || slices.Contains(c.shown(), name)
}

// hidden is the error for a column of --select that results do not show.
func (c *columns) hidden(name string) error {
	return fmt.Errorf("--select .row.%s: %w", name, noColumn("column", name, c.shown()))
}

// Shows reports whether results show a column of that name for the row. If not, Hidden is the error.
func (r *Row) Shows(name string) bool   { return r.of.shows(name) }
func (r *Row) Hidden(name string) error { return r.of.hidden(name) }

// noColumn is the error for a column that does not exist. It names the existing ones.
func noColumn(what, ref string, names []string) error {
	const most = 30
	more := ""
	listed := names
	if len(listed) > most {
		listed, more = listed[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Errorf("there is no %s %q, expected one of %s%s%s", what, ref, strings.Join(listed, ", "), more,
		text.DidYouMean(ref, names))
}

// Get returns the cell of a column.
func (r *Row) Get(ref string) (Cell, error) {
	i, err := r.of.find(ref)
	if err == nil {
		return r.cells[i], nil
	}
	if c, ok := r.within(ref); ok {
		return c, nil
	}
	return Cell{}, err
}

// First returns the first cell.
func (r *Row) First() Cell { return r.cells[0] }

// All returns all cells with the names of their columns. A column without a name has its number as
// its name.
func (r *Row) All() iter.Seq2[string, Cell] {
	return func(yield func(string, Cell) bool) {
		for i, name := range r.of.shown() {
			if !yield(name, r.cells[i]) {
				return
			}
		}
	}
}

// within finds a value within the objects of a row by a path of names such as address.city.
func (r *Row) within(ref string) (Cell, bool) {
	raw := r.json
	if raw == nil || !strings.Contains(ref, ".") {
		return Cell{}, false
	}
	for name := range strings.SplitSeq(ref, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil || members[name] == nil {
			return Cell{}, false
		}
		raw = members[name]
	}
	return cellOf(ValueAt("", 0, 0, raw), r.cells[0].Line, r.cells[0].Column), true
}

// cellOf makes a cell from a value of JSON. The text of a string is its content, and that of null
// is empty. Any other value keeps its original text.
func cellOf(v Value, line, column int) Cell {
	c := Cell{JSON: string(v.Raw), Text: string(v.Raw), Line: line, Column: column}
	switch v.Raw[0] {
	case '"':
		_ = json.Unmarshal(v.Raw, &c.Text) // this cannot fail: v.Raw was read as a string of JSON
	case 'n':
		c.Text = ""
	case '{', '[':
		var b bytes.Buffer
		if json.Compact(&b, v.Raw) == nil {
			c.JSON, c.Text = b.String(), b.String()
		}
	}
	return c
}
