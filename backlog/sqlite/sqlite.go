package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/sqlitefile"
)

// Store is a SQLite file of backlogs. It is a backlog.Store. Open and OpenExisting make it. Safe for
// concurrent use.
type Store struct {
	file string
	db   *sql.DB
	statements
}

// statements are prepared once. The connection is one, so each belongs to it.
type statements struct {
	beat, results, state, end, gone, back, claim, request, wait *sql.Stmt
}

// Open opens the file, or makes it. The error names the file and the cause: backlog.ErrVersion, for
// example.
func Open(file string) (*Store, error) { return open(file, false) }

// OpenExisting opens a file with backlogs. If it is not there, or has none, the error is
// backlog.ErrNoStore.
func OpenExisting(file string) (*Store, error) { return open(file, true) }

func open(file string, existing bool) (*Store, error) {
	if sqlitefile.InMemory(file) {
		return nil, fmt.Errorf("backlog/sqlite: %s: a database in memory is of one process alone, which no other can "+
			"share: expected a file", file)
	}
	s := &Store{file: file}
	if existing {
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return nil, s.wrap(backlog.ErrNoStore)
		}
	}
	db, err := sqlitefile.Open(sqlitefile.Config{
		File: file, Conns: 1, Immediate: true, Existing: existing,
		Pragmas: []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"},
		First:   func(ctx context.Context, db *sql.DB) error { return makeTables(ctx, db, existing) },
	})
	if err != nil {
		return nil, s.wrap(err)
	}
	s.db = db
	for query, to := range map[string]**sql.Stmt{
		beatQuery: &s.beat, resultsQuery: &s.results, stateQuery: &s.state, endQuery: &s.end, goneQuery: &s.gone,
		backQuery: &s.back, claimQuery: &s.claim, requestQuery: &s.request, waitQuery: &s.wait,
	} {
		if *to, err = db.Prepare(query); err != nil {
			return nil, s.wrap(errors.Join(err, db.Close()))
		}
	}
	return s, nil
}

// Close closes the file. Stop the Sessions first.
func (s *Store) Close() error { return s.db.Close() }

// wrap adds the file. It returns nil for nil.
func (s *Store) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("backlog/sqlite: %s: %w", s.file, err)
}

// write runs f in a transaction that writes.
func (s *Store) write(ctx context.Context, f func(tx *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.wrap(err)
	}
	if err := f(tx); err != nil {
		if back := tx.Rollback(); !errors.Is(back, sql.ErrTxDone) { // of a context that is done
			err = errors.Join(err, back)
		}
		return s.wrap(err)
	}
	return s.wrap(tx.Commit())
}

// changed returns how many rows a statement changed.
func changed(res sql.Result, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// rows calls scan for each row, and closes the rows.
func rows(r *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer r.Close()
	for r.Next() {
		if err := scan(r); err != nil {
			return err
		}
	}
	return r.Err()
}

// list writes numbers or texts as SQLite reads them by json_each.
func list[T any](all []T) string {
	if len(all) == 0 {
		return "[]"
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // numbers and texts can be written
	}
	return string(text)
}
