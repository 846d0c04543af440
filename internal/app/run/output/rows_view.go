package output

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/text"
)

// RowsOf returns the name of the file of results if out is a view of them. That file has the
// results in the order in which they came, and a rerun resumes from it.
func RowsOf(out string) string { return out + ".rows" }

// view shows the results in the user's form: as rows, or in the order of the input. It is made from
// the durable part of the file of results. So a view has nothing that a rerun cannot know.
//
// A rerun compares the view with the results, and writes the missing part. Results that go to
// standard output in order are kept in a file until the run ends.
type view struct {
	rows  rows
	from  io.ReaderAt
	size  func() int64 // bytes of from that may be shown
	to    *durable.File
	spill *os.File // the file behind from if it is a temporary one
	order *order   // nil: rows are in the order in which they came

	mu      sync.Mutex
	pos     int64         // from was read up to here
	old     *bufio.Reader // reads the view of an earlier run
	left    int64         // bytes of old that are not compared yet
	before  int64         // bytes of from that earlier runs wrote
	at      int64         // bytes of the view that are correct
	rewrite bool          // a part of the view that differs may be written anew
	buf     []byte
	failed  error // after an error nothing more is written, as there would be a gap
}

// rows is the format of the file behind a view: results with a row in place of the body, or whole
// results. Its first line says which.
type rows struct {
	format.Plain
	shape   *Shape // nil: whole results
	ordered bool
	table   RowFormat // the view is a table of that form
	was     *string   // the shape that the first line of the file names, once it is read
}

func newRows(c *Config) rows {
	return rows{shape: c.Shape, ordered: c.Ordered, table: c.Table, was: new(string)}
}

func (f rows) String() string {
	what := "whole lines"
	if f.shape != nil {
		what = f.shape.String()
	}
	if f.table != "" && f.shape == nil {
		what += " as " + string(f.table)
	}
	if f.ordered {
		what += ", in the order of the input"
	}
	return what
}

// first is the beginning of the file's first line. It resembles a result, but has an id that no
// request has.
var first = []byte(`{"id":"","state":"rows","rows":`)

func (f rows) first() []byte {
	return append(format.AppendText(bytes.Clone(first), f.String()), "}\n"...)
}

func (f rows) Entry(line []byte, dead bool) (format.Entry, bool) {
	text, is := bytes.CutPrefix(line, first)
	if !is {
		return f.Plain.Entry(line, dead)
	}
	return format.Entry{}, json.Unmarshal(bytes.TrimSuffix(text, []byte("}\n")), f.was) == nil
}

// isTable reports whether the view is a table, which has no place for anything but rows.
func (f rows) isTable() bool { return f.shape != nil && len(f.shape.Head()) > 0 }

// shown returns the text of a line in the view; empty: none. With all, a line without a row is
// shown whole.
func (f rows) shown(line []byte, all bool) ([]byte, error) {
	if f.shape == nil {
		return line, nil
	}
	var v struct{ Row *string }
	if err := json.Unmarshal(line, &v); err != nil {
		return nil, err
	}
	switch {
	case v.Row != nil:
		return []byte(*v.Row), nil
	case all:
		return line, nil
	}
	return nil, nil
}

// stream is the format of rows on standard output, in the order in which they come. A result
// without a row is written whole, but not into a table.
type stream struct{ rows }

func (f stream) Line(b []byte, r *format.Result) []byte {
	switch {
	case r.Row != nil:
		return append(b, *r.Row...)
	case f.isTable() && r.State == "expired": // a dead letter has no row either, but goes to a file of its own
		return b
	}
	return r.Append(b)
}

// openView opens the view and shows all results that exist. The file of results must be open.
func (s *Store) openView() error {
	c := &s.c
	switch {
	case c.view == "":
		return nil
	case c.Table == SQLite:
		return s.openTable()
	case c.Table == Parquet:
		return s.openParquet()
	}
	v := &view{rows: newRows(c)}
	if c.Ordered {
		v.order = newOrder()
	}
	if c.view == "-" {
		if !c.Ordered {
			return s.Out.Append(v.rows.shape.Head())
		}
		v.from, v.size, v.spill = s.spill, s.Out.Size, s.spill
		v.to = durable.Stream("standard output", text.SanitizeJSONTo(c.Stdout))
		s.view = v
		return v.put(v.head())
	}
	err := s.begin(c.results.(rows))
	if err != nil {
		return err
	}
	if v.to, err = durable.Open(c.view); err != nil {
		return err
	}
	s.view = v
	info, err := v.to.Stat()
	if err == nil {
		err = v.to.SetSize(info.Size())
	}
	if err != nil {
		return err
	}
	v.before = s.Out.before
	v.left, v.old = info.Size(), bufio.NewReader(v.to.Reader())
	v.rewrite = c.Ordered && c.Rewrite
	v.from, v.size = s.Out.ReaderAt(), s.Out.Durable
	if err = errors.Join(s.Out.Sync(1), v.put(v.head())); err == nil {
		err = v.catchUp()
	}
	if err == nil && v.order == nil && v.left > 0 {
		err = v.differs()
	}
	return err
}

// begin begins the file of results behind a view. If it was begun earlier, it must be of the same form.
func (s *Store) begin(f rows) error {
	c := &s.c
	if err := s.sameRows(f, s.Out.before); err != nil {
		return err
	}
	info, err := os.Stat(c.view)
	if err == nil && info.Size() > 0 && s.Out.before == 0 {
		return fmt.Errorf("%s is there, and %s, by which a run goes on with it, is not: move it away, or give another --out", c.view, RowsOf(c.view))
	}
	s.Out.isNew = s.Out.before == int64(len(f.first()))
	if s.Out.before == 0 {
		if err := s.Out.Append(f.first()); err != nil {
			return err
		}
	}
	return nil
}

// sameRows returns an error if the file of results has so many bytes of rows of another form.
func (s *Store) sameRows(f rows, bytes int64) error {
	if bytes > 0 && *f.was != f.String() {
		return fmt.Errorf("%w: %s was begun with %q, and this is %q: expected the same, or another --out", ErrConfig,
			s.c.view, *f.was, f.String())
	}
	return nil
}

func (v *view) head() []byte {
	if v.rows.shape == nil {
		return nil
	}
	return v.rows.shape.Head()
}

// catchUp shows the results that were added to the file since the last call.
func (v *view) catchUp() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed != nil {
		return v.failed
	}
	end := v.size()
	whole := io.NewSectionReader(v.from, v.pos, end-v.pos)
	start := v.pos
	_, err := durable.Lines(whole, v.to.Name(), func(line []byte, e durable.End) error {
		at := start + e.Size - int64(len(line))
		if v.pos = start + e.Size; bytes.HasPrefix(line, first) {
			return nil
		}
		if v.order == nil {
			row, err := v.rows.shown(line, false)
			return errors.Join(err, v.put(row))
		}
		one, ok := v.rows.Entry(line, false)
		if !ok {
			return fmt.Errorf("%s: not a result of paceline at byte %d", RowsOf(v.to.Name()), at)
		}
		place := span{at, int64(len(line)), at < v.before}
		if one.State == "expired" && v.spill == nil && v.rows.shape != nil {
			place = span{} // it has no row
		}
		v.order.ended(format.HashOf(one.ID), place)
		return nil
	})
	if err == nil && v.order != nil {
		err = v.inOrder(v.order.next)
	}
	if err == nil {
		err = v.flush()
	}
	v.failed = err
	return err
}

// inOrder shows the results that next returns.
func (v *view) inOrder(next func() (span, bool)) error {
	for {
		s, ok := next()
		if !ok {
			return nil
		}
		if s.n == 0 {
			continue
		}
		line := make([]byte, s.n)
		if _, err := v.from.ReadAt(line, s.at); err != nil {
			return err
		}
		row, err := v.rows.shown(line, v.spill != nil && !v.rows.isTable())
		if err = errors.Join(err, v.put(row)); err != nil {
			return err
		}
	}
}

// put writes a row, or compares it with the row of an earlier run at that place.
func (v *view) put(row []byte) error {
	for n := int64(0); v.left > 0 && len(row) > 0; row, v.left, v.at = row[n:], v.left-n, v.at+n {
		n = min(v.left, int64(len(row)))
		was := make([]byte, n)
		if _, err := io.ReadFull(v.old, was); err != nil {
			return err
		}
		if !bytes.Equal(was, row[:n]) {
			same := 0
			for same < len(was) && was[same] == row[same] {
				same++
			}
			row, v.at = row[same:], v.at+int64(same)
			v.old = bufio.NewReader(io.MultiReader(bytes.NewReader(was[same:]), v.old))
			if err := v.differs(); err != nil {
				return err
			}
			break
		}
	}
	if v.left > 0 || len(row) == 0 {
		return nil
	}
	v.at += int64(len(row))
	if v.buf = append(v.buf, row...); len(v.buf) < MostLines {
		return nil
	}
	return v.flush()
}

// differs cuts off the rest of an earlier run's view, if that is allowed. There are two causes of a
// difference. A power cut leaves NULs. Dead letters that are sent again have rows between the
// others.
func (v *view) differs() error {
	if !v.rewrite {
		for {
			c, err := v.old.ReadByte()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			if c != 0 {
				return fmt.Errorf("%s is not what was written there, from byte %d on: it was changed, or the input has another "+
					"order; move it away, and the same command makes it anew of %s",
					v.to.Name(), v.at, RowsOf(v.to.Name()))
			}
		}
	}
	v.left = 0
	return v.to.SetSize(v.at)
}

func (v *view) flush() error {
	if len(v.buf) == 0 {
		return nil
	}
	err := v.to.Append(v.buf)
	if v.buf = v.buf[:0]; cap(v.buf) > KeptLine {
		v.buf = nil
	}
	return err
}

// end handles the results that still wait for others before them. On standard output it shows them,
// since they would be lost. Elsewhere it returns their number.
func (v *view) end() (waiting int, err error) {
	if v.order == nil {
		return 0, nil
	}
	if v.spill == nil {
		return v.order.ready(), nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.failed != nil {
		return 0, nil // the error was reported
	}
	if err = v.inOrder(v.order.rest); err == nil {
		err = v.flush()
	}
	return 0, err
}

func (v *view) close() error {
	var err error
	if v.to.Regular() {
		err = v.to.Close()
	}
	if v.spill != nil {
		_ = os.Remove(v.spill.Name()) // newSpill has removed it, except on systems that cannot remove an open file
	}
	return err
}

// stop ends all waits for results in order. The view may be nil.
func (v *view) stop() {
	if v != nil && v.order != nil {
		v.order.stop()
	}
}

// newSpill makes a temporary file that vanishes with the process.
func newSpill() (*os.File, error) {
	f, err := os.CreateTemp("", "paceline-*.rows")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

// tableEndings are the endings of the names of tables. The files beside a table must not have them.
var tableEndings = []string{".csv", ".tsv"}

func isTable(ext string) bool { return slices.Contains(tableEndings, strings.ToLower(ext)) }
