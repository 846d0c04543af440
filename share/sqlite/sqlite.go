// Package sqlite stores shared limits in a SQLite file. The package is for processes of one
// machine, and needs no server. On Linux and macOS the store's clock is the time since the machine
// started. Nobody can set this clock, so a new process need not wait until other processes confirm
// the clock. On other systems the clock is the wall clock, and a new process waits for that
// confirmation.
//
// A turn is one read and one write of a limit's state. No turn waits for the disk, so a crash of
// the machine may lose the state. On Linux and macOS the loss does no harm: after each start of the
// machine, nothing is sent until no earlier request can count. This takes 7 s and a window.
//
// If somebody replaces or removes the file while a process has it open, the process notices this in
// its next turn and opens the file again. The new file may be an old copy, which lacks the latest
// grants (permissions to send). Then nothing is sent until none of those grants can count.
//
// Open refuses a database in memory, since no other process could see it. On Linux, processes in
// different time namespaces cannot share a file: a turn (a read and a write of a limit's state) of
// such a process fails with an error. Do not put the file on a network file system.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/sqlitefile"
	"github.com/paceline-go/paceline/share"
	engine "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Store is a SQLite file of shared limits. It is a share.Store. Safe for concurrent use.
type Store struct {
	file string
	boot string

	mu     sync.Mutex
	closed bool
	db     *sql.DB     // nil: it has to be opened again
	info   os.FileInfo // of the file that is open
}

// schema is the table. Each put has another version than any before.
const schema = `CREATE TABLE IF NOT EXISTS share (name TEXT PRIMARY KEY, version INTEGER NOT NULL, clock TEXT NOT NULL, blob BLOB NOT NULL) WITHOUT ROWID`

// Open opens the file, or makes it. The error names the file and the cause.
func Open(file string) (*Store, error) {
	if sqlitefile.InMemory(file) {
		return nil, fmt.Errorf("share/sqlite: %s: a database in memory is of one process alone, which no other can share: "+
			"expected a file", file)
	}
	s := &Store{file: file, boot: boottime.Read().Boot}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.openLocked()
}

// current returns the open database. It opens the file again if another one is in its place.
func (s *Store) current() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		if info, err := os.Stat(s.file); err == nil && os.SameFile(info, s.info) {
			return s.db, nil
		}
	}
	return s.reopenLocked()
}

// opened returns the open database. It may be of a file that was replaced since.
func (s *Store) opened() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db != nil {
		return s.db, nil
	}
	return s.reopenLocked()
}

func (s *Store) reopenLocked() (*sql.DB, error) {
	if s.closed {
		return nil, s.wrap(sql.ErrConnDone)
	}
	if err := s.closeLocked(); err != nil {
		return nil, s.wrap(err)
	}
	if err := s.openLocked(); err != nil {
		return nil, err
	}
	return s.db, nil
}

// mostOpened is how often a turn opens the file again after an error.
const mostOpened = 3

// failed returns an error of the engine. It returns nil if the turn may begin again: a file that was
// overwritten explains the error, and is opened again.
func (s *Store) failed(err error, tries *int) error {
	if *tries < mostOpened && isReplaced(err) {
		*tries++
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closeLocked()
		return nil
	}
	return s.wrap(err)
}

// isReplaced reports whether an error is of a file that somebody else overwrote, or whose table was
// dropped.
func isReplaced(err error) bool {
	e, ok := errors.AsType[*engine.Error](err)
	if !ok {
		return false
	}
	switch e.Code() {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_IOERR_SHORT_READ, lib.SQLITE_READONLY_DBMOVED:
		return true
	case lib.SQLITE_ERROR:
		return strings.Contains(e.Error(), "no such table")
	}
	return false
}

func (s *Store) openLocked() error {
	db, err := sqlitefile.Open(sqlitefile.Config{
		File: s.file, Conns: 2,
		Pragmas: []string{"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(NORMAL)"},
		First: func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, schema)
			return err
		},
	})
	if err != nil {
		return s.wrap(err)
	}
	if s.info, err = os.Stat(s.file); err != nil {
		return errors.Join(s.wrap(err), db.Close())
	}
	s.db = db
	return nil
}

// Close closes the file. Close the Members first.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.closeLocked()
}

func (s *Store) closeLocked() error {
	db := s.db
	if s.db, s.info = nil, nil; db == nil {
		return nil
	}
	return db.Close()
}

// reading returns the store's clock as of now.
func (s *Store) reading() share.Reading {
	wall := time.Now().UnixNano()
	if s.boot == "" {
		return share.Reading{Clock: wall, Wall: wall, Incarnation: "sqlite"}
	}
	return share.Reading{Clock: int64(boottime.Read().Up), Wall: wall, Incarnation: s.boot, Steady: true}
}

// Turn implements share.Store.
func (s *Store) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	tries := 0
	return share.Retry(ctx, func() (bool, error) {
		db, err := s.opened()
		if err != nil {
			return false, err
		}
		var version int64
		var boot string
		var blob []byte
		err = db.QueryRowContext(ctx, `SELECT version, clock, blob FROM share WHERE name = ?`, key).Scan(&version, &boot,
			&blob)
		there := err == nil
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, s.failed(err, &tries)
		}
		r := s.reading()
		if there {
			if err := s.sameClock(boot); err != nil {
				return false, err
			}
			r.Blob = blob
		}
		next, err := f(r)
		if err != nil {
			return false, err
		}
		done, err := s.put(ctx, db, key, there, version, next)
		if err != nil {
			return false, s.failed(err, &tries)
		}
		now, err := s.current()
		return done && now == db, err // a put into a file that was replaced is lost
	})
}

func (s *Store) put(ctx context.Context, db *sql.DB, key string, there bool, version int64, blob []byte) (bool, error) {
	var res sql.Result
	var err error
	if there {
		res, err = db.ExecContext(ctx, `UPDATE share SET version = ?, clock = ?, blob = ? WHERE name = ? AND version = ?`,
			rand.Int64N(1<<62), s.boot, blob, key, version)
	} else {
		res, err = db.ExecContext(ctx,
			`INSERT INTO share (name, version, clock, blob) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, key,
			rand.Int64N(1<<62), s.boot, blob)
	}
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// sameClock refuses a row that was put by a process of this boot whose clock has another zero.
func (s *Store) sameClock(boot string) error {
	if boot != s.boot && bootID(boot) != "" && bootID(boot) == bootID(s.boot) {
		return fmt.Errorf("share/sqlite: %s: a process in another time namespace uses it (%s, here %s): run both in one",
			s.file, boot, s.boot)
	}
	return nil
}

// bootID returns the part of a boot that does not depend on the time namespace.
func bootID(boot string) string {
	const uuid = 36
	if len(boot) < uuid {
		return ""
	}
	return boot[:uuid]
}

func (s *Store) wrap(err error) error { return fmt.Errorf("share/sqlite: %s: %w", s.file, err) }

// Names implements share.Lister.
func (s *Store) Names(ctx context.Context) (all []string, err error) {
	db, err := s.current()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT name FROM share ORDER BY name`)
	if err != nil {
		return nil, s.wrap(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, s.wrap(err)
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		return nil, s.wrap(err)
	}
	return all, nil
}

// Forget implements share.Lister.
func (s *Store) Forget(ctx context.Context, key string) error {
	db, err := s.current()
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `DELETE FROM share WHERE name = ?`, key); err != nil {
		return s.wrap(err)
	}
	return nil
}
