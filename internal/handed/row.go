package handed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/near"
	"github.com/paceline-go/paceline/internal/strict"
)

// Row is an item with columns.
type Row struct {
	of    *columns
	cells []Cell
	json  []byte // the object that it is, for what is within its members
}

// Cell is what a row has in a column.
type Cell struct {
	Text string
	// JSON is the value as it is written where the row is an object. Empty: the cell is text.
	JSON         string
	Line, Column int
}

// columns are the names of a table's columns.
type columns struct {
	names []string
	at    map[string]int // the first of each name
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

// find says which column is meant: the one of that name, else the only one of that name in other letters, else the one of that number, from 1.
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
				return 0, fmt.Errorf("there is no column %q, but %q and %q: expected one of them as it is written", ref, c.names[found], name)
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

// noColumn says which there are.
func noColumn(what, ref string, names []string) error {
	const most = 30
	more := ""
	listed := names
	if len(listed) > most {
		listed, more = listed[:most], fmt.Sprintf(" and %d more", len(names)-most)
	}
	return fmt.Errorf("there is no %s %q, expected one of %s%s%s", what, ref, strings.Join(listed, ", "), more, near.Or(ref, names))
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

// First is the first cell.
func (r *Row) First() Cell { return r.cells[0] }

// All are the cells by the names of their columns, which are numbers where they have none.
func (r *Row) All() iter.Seq2[string, Cell] {
	return func(yield func(string, Cell) bool) {
		for i, name := range r.of.names {
			if name == "" {
				name = strconv.Itoa(i + 1)
			}
			if !yield(name, r.cells[i]) {
				return
			}
		}
	}
}

// within looks into the objects of a row, by names with dots between them.
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
	return cellOf(strict.At("", 0, 0, raw), r.cells[0].Line, r.cells[0].Column), true
}

// cellOf is a value of JSON as a cell: a string as what it says, null as nothing, all else as it is written.
func cellOf(v strict.Value, line, column int) Cell {
	c := Cell{JSON: string(v.Raw), Text: string(v.Raw), Line: line, Column: column}
	switch v.Raw[0] {
	case '"':
		_ = json.Unmarshal(v.Raw, &c.Text) // it is JSON
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
