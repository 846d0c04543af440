package output

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// parquetTable shows the results as a file of Parquet. The format ends in a list of its columns'
// places, so a file cannot grow: at the end of each run the whole file is made of the durable part of
// the file of results. It takes the place of the one before in one step. The file notes up to where
// the results were read, so a run that adds none leaves it alone.
//
// A column has one type. That of a selection is known only after all its values were read, so the
// results are read twice.
type parquetTable struct {
	rows    rows
	path    string
	columns []tableColumn
	from    io.ReaderAt
	made    int64 // bytes of from that the file is made of; 0: there is no file

	groupRows, groupBytes int // bounds of a group of rows; bytes are those of their lines
}

const (
	// sourceKey has, in the file, how many bytes of results it was made of, and their CRC.
	sourceKey = "paceline.source"
	// A group of rows is in memory until it is written. Readers take one group at a time, and in
	// parallel: so there are neither few nor small ones.
	groupRows, groupBytes = 122_880, 32 << 20
	// exactInt is the largest integer up to which each is exactly a float.
	exactInt = 1 << 53
)

// openParquet reads what the file was made of, if it is there. The file of results must be open.
func (s *Store) openParquet() error {
	c := &s.c
	f := c.results.(rows)
	if err := s.begin(f); err != nil {
		return err
	}
	t := &parquetTable{rows: f, path: c.view, columns: tableColumns(c.Shape), from: s.Out.ReaderAt(),
		groupRows: groupRows, groupBytes: groupBytes}
	made, sum, err := parquetSource(t.path)
	if err == nil && made > 0 {
		err = madeOf(t.path, t.from, s.Out.before, made, sum)
	}
	if err != nil {
		return err
	}
	t.made, s.parquet = made, t
	return nil
}

// parquetSource returns what a file says that it was made of; 0: there is no file.
func parquetSource(path string) (made int64, sum uint64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, 0, err
	}
	for _, pair := range parquetFooter(f, info.Size()).KeyValueMetadata {
		if pair.Key == sourceKey {
			_, err = fmt.Sscanf(pair.Value, "%d %x", &made, &sum)
		}
	}
	if err != nil || made <= 0 {
		return 0, 0, fmt.Errorf("%s was not made of %s: move it away, and the same command makes it anew", path,
			RowsOf(path))
	}
	return made, sum, nil
}

// parquetFooter returns what a file of Parquet says of itself at its end; the zero value: it is none. The library's
// own reader would make the program 1.6 MiB larger.
func parquetFooter(f io.ReaderAt, size int64) (footer format.FileMetaData) {
	const end = 8 // the footer's length, and "PAR1"
	var tail [end]byte
	if _, err := f.ReadAt(tail[:], size-end); err != nil || string(tail[4:]) != "PAR1" {
		return footer
	}
	text := make([]byte, min(int64(binary.LittleEndian.Uint32(tail[:])), size-end))
	if _, err := f.ReadAt(text, size-end-int64(len(text))); err != nil {
		return footer
	}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), text, &footer); err != nil {
		return format.FileMetaData{}
	}
	return footer
}

// close makes the file of the first size bytes of the results.
func (t *parquetTable) close(size int64) error {
	if t.made == size {
		return nil
	}
	if t.rows.shape != nil {
		if err := t.findKinds(size); err != nil {
			return err
		}
	}
	path := t.path
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // a rename would replace the link, and not what it leads to
	}
	f, err := durable.ReplaceBy(durable.OS, path, func(w io.Writer) error { return t.write(w, size) })
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// each calls do for the rows of the results, with the line that they are of.
func (t *parquetTable) each(size int64, do func(line []byte, fields map[string]any) error) (sum uint64, err error) {
	in := io.NewSectionReader(t.from, 0, size)
	_, err = durable.Lines(in, RowsOf(t.path), func(line []byte, _ durable.End) error {
		if sum = crc64.Update(sum, crcTable, line); bytes.HasPrefix(line, first) {
			return nil
		}
		return t.rows.fields(line, func(fields map[string]any) error { return do(line, fields) })
	})
	return sum, err
}

// findKinds finds the type of each column of a selection: the narrowest that has all its values
// without loss. Text has them all.
func (t *parquetTable) findKinds(size int64) error {
	large := make([]bool, len(t.columns)) // it has an integer that no float is
	_, err := t.each(size, func(_ []byte, fields map[string]any) error {
		for i := range t.columns {
			c := &t.columns[i]
			v := fields[c.name]
			if v == nil {
				continue
			}
			kind := textKind
			switch n := cell(v).(type) {
			case bool:
				kind = boolKind
			case int64:
				kind = intKind
				large[i] = large[i] || n > exactInt || n < -exactInt
			case float64:
				kind = floatKind
			}
			switch v.(type) {
			case []any, map[string]any:
				kind = jsonKind
			}
			switch {
			case c.kind == anyKind:
				c.kind = kind
			case c.kind == kind:
			case min(c.kind, kind) == intKind && max(c.kind, kind) == floatKind:
				c.kind = floatKind
			default:
				c.kind = textKind
			}
		}
		return nil
	})
	for i := range t.columns {
		if c := &t.columns[i]; c.kind == anyKind || c.kind == floatKind && large[i] {
			c.kind = textKind
		}
	}
	return err
}

// write writes the file.
func (t *parquetTable) write(to io.Writer, size int64) error {
	out := bufio.NewWriterSize(to, MostLines)
	w := parquet.NewWriter(out, parquet.NewSchema("results", newParquetGroup(t.columns)),
		parquet.Compression(&parquet.Snappy),
		parquet.DataPageVersion(1), parquet.DefaultEncodingFor(parquet.ByteArray, &parquet.Plain),
		parquet.MaxRowsPerRowGroup(int64(t.groupRows)))
	var buffered int
	row := make(parquet.Row, len(t.columns))
	sum, err := t.each(size, func(line []byte, fields map[string]any) error {
		for i, c := range t.columns {
			v, err := c.parquetValue(fields[c.name])
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if v.IsNull() && c.kind == boolKind && t.rows.shape == nil {
				v = parquet.BooleanValue(false) // a result leaves it out
			}
			defined := 1
			if v.IsNull() {
				defined = 0
			}
			row[i] = v.Level(0, defined, i)
		}
		if _, err := w.WriteRows([]parquet.Row{row}); err != nil {
			return err
		}
		if buffered += len(line); buffered < t.groupBytes {
			return nil
		}
		buffered = 0
		return w.Flush()
	})
	if err == nil {
		w.SetKeyValueMetadata(sourceKey, fmt.Sprintf("%d %x", size, sum))
		err = w.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	return err
}

// parquetValue returns a JSON value as a column has it.
func (c tableColumn) parquetValue(v any) (parquet.Value, error) {
	switch has := cell(v).(type) {
	case nil:
		return parquet.NullValue(), nil
	case bool:
		if c.kind == boolKind {
			return parquet.BooleanValue(has), nil
		}
	case int64:
		switch c.kind {
		case intKind:
			return parquet.Int64Value(has), nil
		case floatKind:
			return parquet.DoubleValue(float64(has)), nil
		}
	case float64:
		if c.kind == floatKind {
			return parquet.DoubleValue(has), nil
		}
	case string:
		if c.kind == timeKind {
			at, err := time.Parse(time.RFC3339, has)
			return parquet.Int64Value(at.UnixMilli()), err
		}
		return parquet.ByteArrayValue([]byte(has)), nil
	}
	return parquet.ByteArrayValue(appendJSON(nil, v)), nil
}

// parquetGroup has columns in their order. The library's Group sorts them by name.
type parquetGroup struct {
	parquet.Group
	fields []parquet.Field
}

func (g parquetGroup) Fields() []parquet.Field { return g.fields }

func newParquetGroup(columns []tableColumn) (g parquetGroup) {
	for _, c := range columns {
		var n parquet.Node
		switch c.kind {
		case boolKind:
			n = parquet.Leaf(parquet.BooleanType)
		case intKind:
			n = parquet.Leaf(parquet.Int64Type)
		case floatKind:
			n = parquet.Leaf(parquet.DoubleType)
		case timeKind:
			n = parquet.Timestamp(parquet.Millisecond)
		case jsonKind:
			n = parquet.JSON()
		default:
			n = parquet.String()
		}
		g.fields = append(g.fields, parquet.Group{c.name: parquet.Optional(n)}.Fields()...)
	}
	return g
}
