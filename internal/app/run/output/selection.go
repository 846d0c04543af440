package output

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

// RowFormat is the form of rows.
type RowFormat string

const (
	JSONL RowFormat = "jsonl"
	CSV   RowFormat = "csv"
	TSV   RowFormat = "tsv"
	// SQLite has the rows in a table, see sqliteTable.
	SQLite RowFormat = "sqlite"
	// Parquet has them in a file of Parquet, see parquetTable.
	Parquet RowFormat = "parquet"
)

const (
	// selectionTakes bounds the time of the expressions for one answer.
	selectionTakes = time.Second
	// mostRows and mostBytes bound the output for one answer.
	mostRows, mostBytes = 10_000, 64 << 20
)

// Shape is a compiled selection. Compile makes one.
type Shape struct {
	format  RowFormat
	columns []column
	whole   *gojq.Code // the expression, if there are no columns
	reads   [][]string // the paths of whole
	text    string
}

type column struct {
	name  string
	text  string
	code  *gojq.Code
	reads [][]string // see paths
}

// CompileShape reads a selection. Its errors name the mistake and what was expected, but no flag.
func CompileShape(selection string, format RowFormat) (*Shape, error) {
	s := &Shape{format: format}
	pieces, isList, err := listedColumns(selection)
	if err != nil {
		return nil, err
	}
	if !isList {
		query, err := parseJQ(selection)
		if err != nil {
			return nil, err
		}
		if pieces, isList, err = objectColumns(query); err != nil {
			return nil, err
		}
		if !isList {
			if s.text = query.String(); format != JSONL {
				return nil,
					fmt.Errorf("%q has no columns, expected such as 'id=.id, name=.body.name' or '{id, name: .body.name}'", selection)
			}
			s.reads = paths(query)
			s.whole, err = compileJQ(selection, query)
			return s, err
		}
	}
	seen := map[string]bool{}
	var text []string
	for _, p := range pieces {
		name := p.name
		if format == SQLite || format == Parquet {
			name = strings.ToLower(name) // for SQLite, DuckDB and Spark, id and ID are one column
		}
		if seen[name] {
			return nil, fmt.Errorf("%q names %q twice, expected each column once", selection, p.name)
		}
		seen[name] = true
		query, err := parseJQ(p.text)
		if err != nil {
			return nil, err
		}
		c := column{name: p.name, text: query.String(), reads: paths(query)}
		if c.code, err = compileJQ(p.text, query); err != nil {
			return nil, err
		}
		s.columns = append(s.columns, c)
		text = append(text, c.name+"="+c.text)
	}
	s.text = strings.Join(text, ", ")
	return s, nil
}

func parseJQ(expression string) (*gojq.Query, error) {
	query, err := gojq.Parse(expression)
	if err == nil {
		return query, nil
	}
	at := 1
	if e, ok := errors.AsType[*gojq.ParseError](err); ok {
		at += e.Offset - len(e.Token)
	}
	return nil, fmt.Errorf("%q, character %d: %v, expected a jq expression such as .body.name", expression, at, err)
}

func compileJQ(expression string, query *gojq.Query) (*gojq.Code, error) {
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, fmt.Errorf("%q: %v, expected a jq expression of the answer alone", expression, err)
	}
	return code, nil
}

// String returns the selection and its format. Equal Shapes have the same text.
func (s *Shape) String() string { return s.text + " as " + string(s.format) }

// isJSON reports whether a row is a line of JSON.
func (s *Shape) isJSON() bool { return s.format != CSV && s.format != TSV }

// Head returns the first line of a table, with the names of the columns. Lines of JSON have none.
func (s *Shape) Head() []byte {
	if s.isJSON() {
		return nil
	}
	cells := make([]any, len(s.columns))
	for i, c := range s.columns {
		cells[i] = c.name
	}
	return s.record(nil, cells)
}

// maxMask is how many columns the mask of Row has.
const maxMask = 64

// Row appends the selection from v, a value as encoding/json reads it into an any. That is one
// line, or several if an expression has several outputs. A failed expression, or one without
// output, is null in its column. null has a bit for each of the first maxMask columns that is null
// in all lines. Without columns it is 1 if the only line is null. The error is that of the first
// failed expression; the row is appended all the same.
func (s *Shape) Row(b []byte, v any) (row []byte, null uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), selectionTakes)
	defer cancel()
	if s.whole != nil {
		return s.wholeRow(ctx, b, v)
	}
	var failed error
	rows := 1
	cells := make([][]any, len(s.columns))
	for i, c := range s.columns {
		all, err := selectionOutputs(ctx, c.code, v)
		if err == nil && rows*len(all) > mostRows {
			err = fmt.Errorf("more than %d rows of one answer", mostRows)
		}
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", c.said(), err)
		}
		if err != nil || len(all) == 0 {
			all = []any{nil}
		}
		if i < maxMask && !slices.ContainsFunc(all, func(v any) bool { return v != nil }) {
			null |= 1 << i
		}
		cells[i] = all
		rows *= len(all)
	}
	from, line := len(b), make([]any, len(cells))
	for n := range rows { // the first column changes fastest, as in jq
		for i, all := range cells {
			line[i] = all[n%len(all)]
			n /= len(all)
		}
		if b = s.record(b, line); len(b)-from > mostBytes {
			clear(line)
			return s.record(b[:from], line), null, fmt.Errorf("more than %d bytes of one answer", mostBytes)
		}
	}
	return b, null, failed
}

// wholeRow is Row without columns.
func (s *Shape) wholeRow(ctx context.Context, b []byte, v any) (row []byte, null uint64, err error) {
	all, err := selectionOutputs(ctx, s.whole, v)
	if err != nil {
		return append(b, "null\n"...), 1, fmt.Errorf("%s: %w", s.text, err)
	}
	if len(all) == 1 && all[0] == nil {
		null = 1
	}
	from := len(b)
	for _, one := range all {
		if b = append(appendJSON(b, one), '\n'); len(b)-from > mostBytes {
			return append(b[:from], "null\n"...), 1, fmt.Errorf("%s: more than %d bytes of one answer", s.text, mostBytes)
		}
	}
	return b, null, nil
}

// selectionOutputs returns all outputs of an expression.
func selectionOutputs(ctx context.Context, code *gojq.Code, v any) (all []any, err error) {
	for iter := code.RunWithContext(ctx, v); ; {
		one, ok := iter.Next()
		if !ok {
			return all, nil
		}
		if err, failed := one.(error); failed {
			if ctx.Err() != nil {
				err = fmt.Errorf("it took longer than %v", selectionTakes)
			}
			return nil, err
		}
		if all = append(all, one); len(all) > mostRows {
			return nil, fmt.Errorf("more than %d rows of one answer", mostRows)
		}
	}
}

// record appends one row.
func (s *Shape) record(b []byte, cells []any) []byte {
	if s.isJSON() {
		for i, c := range s.columns {
			b = append(b, "{,"[min(i, 1)])
			b = append(appendJSON(b, c.name), ':')
			b = appendJSON(b, cells[i])
		}
		return append(b, "}\n"...)
	}
	separator := byte(',')
	if s.format == TSV {
		separator = '\t'
	}
	for i, cell := range cells {
		if i > 0 {
			b = append(b, separator)
		}
		b = appendCell(b, cell, separator, len(cells) == 1)
	}
	return append(b, '\n')
}

// appendCell appends a cell by RFC 4180. An empty cell that is the only one of its row is written
// as "". Many readers ignore an empty line.
func appendCell(b []byte, v any, separator byte, alone bool) []byte {
	var text string
	switch v := v.(type) {
	case nil:
	case string:
		text = v
	default:
		text = string(appendJSON(nil, v))
	}
	if text == "" && alone {
		return append(b, `""`...)
	}
	if text == "" || strings.IndexByte(text, separator) < 0 && !strings.ContainsAny(text, "\"\r\n") && text[0] != ' ' &&
		text[len(text)-1] != ' ' {
		return append(b, text...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
	return append(b, '"')
}

func appendJSON(b []byte, v any) []byte {
	text, _ := gojq.Marshal(v) // this cannot fail: jq makes no other values
	return append(b, text...)
}
