// Package sqlite keeps shared limits in a SQLite file. It is for processes of one machine, and
// needs no server. On Linux and macOS its clock is the time since the machine started, which nobody
// can set. So a new process sends at once. Elsewhere its clock is the wall clock.
//
// No turn waits for the disk. A crash of the machine may lose the state. That does no harm, since
// the limit is quiet after each start of the machine.
//
// Do not put the file on a network's file system. Processes in different time namespaces cannot
// share a file, and are refused.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/share"
	engine "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// Store is a SQLite file of shared limits. It is a share.Store. Safe for concurrent use.
type Store struct {
	db   *sql.DB
	file string
	boot string
}

// schema is the table. A row that is made again has another version than the row before.
const schema = `CREATE TABLE IF NOT EXISTS share (name TEXT PRIMARY KEY, version INTEGER NOT NULL, clock TEXT NOT NULL, blob BLOB NOT NULL) WITHOUT ROWID`

// Open opens the file, or makes it. The error names the file and the cause.
func Open(file string) (*Store, error) {
	q := url.Values{}
	for _, p := range []string{"busy_timeout(2000)", "journal_mode(WAL)", "synchronous(NORMAL)"} {
		q.Add("_pragma", p)
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: file}).EscapedPath(), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("share/sqlite: %s: %w", file, err)
	}
	db.SetMaxOpenConns(2)
	s := &Store{db: db, file: file, boot: boottime.Read().Boot}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = share.Retry(ctx, func() (bool, error) {
		_, err := db.ExecContext(ctx, schema)
		if isBusy(err) && ctx.Err() == nil {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return nil, errors.Join(s.wrap(because(file, err)), db.Close())
	}
	return s, nil
}

// isBusy reports that another process had the file, and that nothing was done. If two processes
// make the file at once, SQLite does not wait for its busy_timeout, since each could wait for the
// other.
func isBusy(err error) bool {
	e, ok := errors.AsType[*engine.Error](err)
	return ok && e.Code()&0xff == lib.SQLITE_BUSY
}

// because adds the reason why a file cannot be opened. The engine does not report it.
func because(file string, err error) error {
	if e, ok := errors.AsType[*engine.Error](err); !ok || e.Code()&0xff != lib.SQLITE_CANTOPEN {
		return err
	}
	f, why := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o666)
	if e, ok := errors.AsType[*os.PathError](why); ok {
		return fmt.Errorf("%w: %w", err, e.Err)
	}
	return errors.Join(err, f.Close())
}

// Close closes the file. Close the Members first.
func (s *Store) Close() error { return s.db.Close() }

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
	return share.Retry(ctx, func() (bool, error) {
		var version int64
		var boot string
		var blob []byte
		err := s.db.QueryRowContext(ctx, `SELECT version, clock, blob FROM share WHERE name = ?`, key).Scan(&version, &boot, &blob)
		there := err == nil
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return false, s.wrap(err)
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
		done, err := s.put(ctx, key, there, version, next)
		if err != nil {
			return false, s.wrap(err)
		}
		return done, nil
	})
}

func (s *Store) put(ctx context.Context, key string, there bool, version int64, blob []byte) (bool, error) {
	var res sql.Result
	var err error
	if there {
		res, err = s.db.ExecContext(ctx, `UPDATE share SET version = version + 1, clock = ?, blob = ? WHERE name = ? AND version = ?`, s.boot, blob, key, version)
	} else {
		res, err = s.db.ExecContext(ctx, `INSERT INTO share (name, version, clock, blob) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, key, rand.Int64N(1<<62), s.boot, blob)
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
		return fmt.Errorf("share/sqlite: %s: a process in another time namespace uses it (%s, here %s): run both in one", s.file, boot, s.boot)
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
	rows, err := s.db.QueryContext(ctx, `SELECT name FROM share ORDER BY name`)
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
	if _, err := s.db.ExecContext(ctx, `DELETE FROM share WHERE name = ?`, key); err != nil {
		return s.wrap(err)
	}
	return nil
}
