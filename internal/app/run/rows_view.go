package run

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
	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// Shape makes rows from answers. Safe for concurrent use.
type Shape interface {
	// String is the same for equal Shapes. A run that resumes compares it with that of the run before.
	String() string
	// Head comes before all rows. If it is empty, rows are lines of JSON.
	Head() []byte
	// Row appends whole lines made from an answer. It appends some even if it fails.
	Row(b []byte, answer any) ([]byte, error)
}

// RowsOf is the name of the file of results if out is a view of them. It has the results in the order in which they came, and a rerun
// goes on from it.
func RowsOf(out string) string { return out + ".rows" }

// view is what the user wants to see of the results: rows, or the order of the input. It is made from the file of results, as far as that
// is durable, so that a view has nothing that a rerun does not know of. A rerun compares the view with the results, and writes what is
// missing. Results that go to standard output in order are kept in a file until the run ends.
type view struct {
	rows  rows
	from  io.ReaderAt
	size  func() int64 // how many bytes of from may be shown
	to    *durable.File
	spill *os.File // the file behind from if it is a temporary one
	order *order   // nil: rows are in the order in which they came

	mu      sync.Mutex
	pos     int64         // up to where from was read
	old     *bufio.Reader // reads what an earlier run wrote to the view
	left    int64         // how many bytes of old are still to be compared
	before  int64         // how many bytes of from earlier runs wrote
	at      int64         // how many bytes of the view are as they should be
	rewrite bool          // a part of the view that differs may be written anew
	buf     []byte
	failed  error // after an error nothing more is written, as there would be a gap
}

// rows is the format of the file that a view is made from: results with a row in place of the body, or whole results. Its first line says
// which of them it has.
type rows struct {
	Plain
	shape   Shape // nil: whole results
	ordered bool
	was     *string // what the first line of the file says, once it is read
}

func newRows(c *Config) rows { return rows{shape: c.Shape, ordered: c.Ordered, was: new(string)} }

func (f rows) String() string {
	what := "whole lines"
	if f.shape != nil {
		what = f.shape.String()
	}
	if f.ordered {
		what += ", in the order of the input"
	}
	return what
}

// first is how the first line of the file begins: like a result, but with an id that no request has.
var first = []byte(`{"id":"","state":"rows","rows":`)

func (f rows) first() []byte { return append(appendText(bytes.Clone(first), f.String()), "}\n"...) }

func (f rows) entry(line []byte, dead bool) (entry, bool) {
	text, is := bytes.CutPrefix(line, first)
	if !is {
		return f.Plain.entry(line, dead)
	}
	return entry{}, json.Unmarshal(bytes.TrimSuffix(text, []byte("}\n")), f.was) == nil
}

// isTable tells whether the view is a table, which has no place for anything but rows.
func (f rows) isTable() bool { return f.shape != nil && len(f.shape.Head()) > 0 }

// shown returns what the view shows of a line; empty: nothing. With all, a line without a row is shown whole.
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

// stream is the format of rows on standard output, in the order in which they come. A result without a row is written whole, but not into
// a table.
type stream struct{ rows }

func (f stream) line(b []byte, r *Result) []byte {
	switch {
	case r.Row != nil:
		return append(b, *r.Row...)
	case f.isTable() && r.State == "expired": // a dead letter has no row either, but goes to a file of its own
		return b
	}
	return r.append(b)
}

// openView opens the view and has it show all results that are there. The file of results must be open.
func (r *Run) openView() error {
	c, s := &r.c, &r.store
	if c.view == "" {
		return nil
	}
	v := &view{rows: newRows(c)}
	if c.Ordered {
		v.order = newOrder()
	}
	if c.view == "-" {
		if !c.Ordered {
			return s.out.Append(v.rows.shape.Head())
		}
		v.from, v.size, v.spill = s.spill, s.out.Size, s.spill
		v.to = durable.Stream("standard output", sanitize.JSONTo(c.Stdout))
		s.view = v
		return v.put(v.head())
	}
	f := c.results.(rows)
	if s.out.before > 0 && *f.was != f.String() {
		return fmt.Errorf("%w: %s was begun with %q, and this is %q: expected the same, or another --out", ErrConfig, c.view, *f.was, f.String())
	}
	info, err := os.Stat(c.view)
	if err == nil && info.Size() > 0 && s.out.before == 0 {
		return fmt.Errorf("%s is there, and %s, by which a run goes on with it, is not: move it away, or give another --out", c.view, RowsOf(c.view))
	}
	s.out.isNew = s.out.before == int64(len(f.first()))
	if s.out.before == 0 {
		if err := s.out.Append(f.first()); err != nil {
			return err
		}
	}
	if v.to, err = durable.Open(c.view); err != nil {
		return err
	}
	s.view = v
	if info, err = v.to.Stat(); err == nil {
		err = v.to.SetSize(info.Size())
	}
	if err != nil {
		return err
	}
	v.before = s.out.before
	v.left, v.old = info.Size(), bufio.NewReader(v.to.Reader())
	v.rewrite = c.Ordered && c.RetryDead != 0
	v.from, v.size = s.out.ReaderAt(), s.out.Durable
	if err = errors.Join(s.out.Sync(1), v.put(v.head())); err == nil {
		err = v.catchUp()
	}
	if err == nil && v.order == nil && v.left > 0 {
		err = v.differs()
	}
	return err
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
		one, ok := v.rows.entry(line, false)
		if !ok {
			return fmt.Errorf("%s: not a result of paceline at byte %d", RowsOf(v.to.Name()), at)
		}
		v.order.ended(digestOf(one.ID), span{at, int64(len(line)), at < v.before})
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

// put writes a row, or compares it with what an earlier run wrote at that place.
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
	if v.buf = append(v.buf, row...); len(v.buf) < mostLines {
		return nil
	}
	return v.flush()
}

// differs cuts off the rest of what an earlier run wrote, if that is allowed. A view may differ after a power cut, which leaves NULs, and if
// dead letters were sent again, as their rows come between the others.
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
				return fmt.Errorf("%s is not what was written there, from byte %d on: it was changed, or the input has another order; move it away, and the same command makes it anew of %s",
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
	if v.buf = v.buf[:0]; cap(v.buf) > keptLine {
		v.buf = nil
	}
	return err
}

// end is about the results that still wait for others before them. On standard output it shows them, as they would be lost. Elsewhere it
// returns how many there are.
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
		return 0, nil // the user was told of the error
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
		_ = os.Remove(v.spill.Name()) // newSpill has removed it, except on systems where an open file cannot be removed
	}
	return err
}

// stop ends all waiting for results to be shown. The view may be nil.
func (v *view) stop() {
	if v != nil && v.order != nil {
		v.order.stop()
	}
}

// endView shows the results that are left at the end of the run, and tells how many cannot be shown yet.
func (r *Run) endView() {
	v := r.store.view
	if v == nil {
		return
	}
	waiting, err := v.end()
	if err != nil {
		r.fail(err)
	}
	if waiting > 0 {
		r.tell("%s in %s for one before them that has not ended", sanitize.Count(waiting, "result waits", "results wait"), r.c.Out)
	}
}

// newSpill makes a temporary file that is gone when the process ends.
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
