package output

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/sqlitefile"
)

// sqliteTable shows the results as the table "results" of a SQLite file. It is made from the durable
// part of the file of results, as a view is. The transaction that adds rows also writes up to where
// that file was read, in the table "paceline_source". So a rerun adds each row exactly once.
//
// Users may change the table and add others, also during a run: only new rows are added.
type sqliteTable struct {
	rows    rows
	path    string
	columns []tableColumn
	from    io.ReaderAt
	size    func() int64 // bytes of from that may be shown
	isNew   bool         // this run made the file
	info    os.FileInfo

	mu     sync.Mutex
	db     *sql.DB
	insert string
	pos    int64  // from was read up to here
	sum    uint64 // the CRC of from up to pos
	failed error  // after an error nothing more is written
}

// sqliteKinds declare columns. Those of a selection have no type.
var sqliteKinds = map[columnKind]string{boolKind: sqliteBool, intKind: "INTEGER", floatKind: "REAL", timeKind: "TEXT",
	jsonKind: "TEXT", textKind: "TEXT"}

const (
	sqliteBool = "BOOLEAN NOT NULL DEFAULT 0"
	// transactionBytes is how many bytes of results go in one transaction. A table that is made anew
	// of many results thus needs no log as large as all of them.
	transactionBytes = 4 << 20
	// busyMS is how long a write waits for a transaction of another program. The next flush tries
	// again; at the end of the run there are lastTries.
	busyMS, lastTries = 1000, 10
)

// sqliteColumns are the columns of the table. Bytes are in the body.
func sqliteColumns(shape *Shape) []tableColumn {
	return slices.DeleteFunc(tableColumns(shape),
		func(c tableColumn) bool { return shape == nil && c.name == "body_base64" })
}

// openTable opens the SQLite file and adds all results that exist. The file of results must be open.
func (s *Store) openTable() error {
	c := &s.c
	f := c.results.(rows)
	if err := s.begin(f); err != nil {
		return err
	}
	t := &sqliteTable{rows: f, path: c.view, columns: sqliteColumns(c.Shape), from: s.Out.ReaderAt(),
		size: s.Out.Durable}
	// SQLite would make a file that others may read.
	made, err := os.OpenFile(t.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if t.isNew = err == nil; t.isNew {
		err = made.Close()
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	t.db, err = sqlitefile.Open(sqlitefile.Config{File: t.path, Immediate: true, Conns: 1, First: t.first,
		Pragmas: []string{"busy_timeout(" + strconv.Itoa(busyMS) + ")", "journal_mode(WAL)", "synchronous(NORMAL)"}})
	if err != nil {
		t.undo()
		return fmt.Errorf("%s: %w; move it away, and the same command makes it anew of %s", t.path, err, RowsOf(t.path))
	}
	s.table = t
	if t.info, err = os.Stat(t.path); err == nil {
		err = errors.Join(s.Out.Sync(1), madeOf(t.path, t.from, s.Out.before, t.pos, t.sum))
	}
	if t.failed = err; err != nil {
		return err
	}
	return t.catchUp()
}

// first makes the tables that are not there, and the columns that later versions have.
func (t *sqliteTable) first(ctx context.Context, db *sql.DB) error {
	var columns, names, marks []string
	for _, c := range t.columns {
		columns = append(columns, strings.TrimSpace(sqliteName(c.name)+" "+sqliteKinds[c.kind]))
		names, marks = append(names, sqliteName(c.name)), append(marks, "?")
	}
	t.insert = "INSERT INTO results (" + strings.Join(names, ", ") + ") VALUES (" + strings.Join(marks, ", ") + ")"
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	_, err = tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS results (`+strings.Join(columns, ", ")+`);
		CREATE TABLE IF NOT EXISTS paceline_source (bytes INTEGER NOT NULL, crc64 TEXT NOT NULL);
		INSERT INTO paceline_source SELECT 0, '0' WHERE NOT EXISTS (SELECT * FROM paceline_source)`)
	for i := 0; err == nil && i < len(t.columns); i++ {
		var n int
		const has = "SELECT count(*) FROM pragma_table_info('results') WHERE name = ? COLLATE NOCASE"
		if err = tx.QueryRowContext(ctx, has, t.columns[i].name).Scan(&n); err == nil && n == 0 {
			_, err = tx.ExecContext(ctx, "ALTER TABLE results ADD COLUMN "+columns[i])
		}
	}
	if err == nil {
		err = tx.QueryRowContext(ctx, "SELECT bytes, crc64 FROM paceline_source").Scan(&t.pos, &crcText{&t.sum})
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

// crcText reads a checksum. SQLite has no unsigned numbers of 64 bits.
type crcText struct{ to *uint64 }

func (c *crcText) Scan(v any) (err error) {
	*c.to, err = strconv.ParseUint(fmt.Sprint(v), 16, 64)
	return err
}

func sqliteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// catchUp adds the results that were added to their file since the last call.
func (t *sqliteTable) catchUp() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.addAll()
}

func (t *sqliteTable) addAll() error {
	for t.failed == nil && t.pos < t.size() {
		if err := t.there(); err != nil {
			t.failed = err
		} else if err := t.add(); sqlitefile.IsBusy(err) {
			return nil // the next call tries again
		} else if err != nil {
			t.failed = fmt.Errorf("%s: %w", t.path, err)
		}
	}
	return t.failed
}

// there returns an error if the name of the file leads to another file, or to none.
func (t *sqliteTable) there() error {
	info, err := os.Stat(t.path)
	if err == nil && os.SameFile(info, t.info) {
		return nil
	}
	return fmt.Errorf("%s is no longer there: it was removed or replaced during the run; the same command makes it anew of %s",
		t.path, RowsOf(t.path))
}

var errEnough = errors.New("enough for one transaction")

// add adds results in one transaction.
func (t *sqliteTable) add() error {
	tx, err := t.db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit
	insert, err := tx.Prepare(t.insert)
	if err != nil {
		return err
	}
	defer insert.Close()
	pos, sum := t.pos, t.sum
	in := io.NewSectionReader(t.from, t.pos, t.size()-t.pos)
	_, err = durable.Lines(in, RowsOf(t.path), func(line []byte, e durable.End) error {
		pos, sum = t.pos+e.Size, crc64.Update(sum, crcTable, line)
		if !bytes.HasPrefix(line, first) {
			if err := t.addRows(insert, line); err != nil {
				return err
			}
		}
		if e.Size >= transactionBytes {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if _, err = tx.Exec("UPDATE paceline_source SET bytes = ?, crc64 = ?", pos, strconv.FormatUint(sum,
		16)); err != nil {
		return err
	}
	if err = tx.Commit(); err == nil {
		t.pos, t.sum = pos, sum
	}
	return err
}

// addRows adds the rows of one result.
func (t *sqliteTable) addRows(insert *sql.Stmt, line []byte) error {
	return t.rows.fields(line, func(fields map[string]any) (err error) {
		if text, is := fields["body_base64"].(string); is && t.rows.shape == nil {
			if fields["body"], err = base64.StdEncoding.DecodeString(text); err != nil {
				return err
			}
		}
		values := make([]any, len(t.columns))
		for i, c := range t.columns {
			if values[i] = cell(fields[c.name]); values[i] == nil && c.kind == boolKind {
				values[i] = false
			}
		}
		_, err = insert.Exec(values...)
		return err
	})
}

// close adds what is left, and closes the file. The file of results must still be open.
func (t *sqliteTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.addAll()
	for try := 1; err == nil && t.pos < t.size(); try++ {
		if err = t.addAll(); err == nil && t.pos < t.size() && try == lastTries {
			err = fmt.Errorf("%s is locked by another program: the same command adds the rows that it lacks, and sends "+
				"nothing again",
				t.path)
		}
	}
	if err == nil {
		err = t.there()
	}
	return errors.Join(err, t.db.Close())
}

// undo removes the closed file of a run that does not start, if that run made it.
func (t *sqliteTable) undo() {
	if t.isNew {
		_ = os.Remove(t.path)
	}
}
