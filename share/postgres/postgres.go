// Package postgres stores shared limits in PostgreSQL (12 or later). A table has one row for each
// limit. A turn is one change of a limit's state by one process. The process reads the row by a
// SELECT, computes, and writes the row by an UPDATE (for a new limit, by an INSERT). Each of the
// two statements is a transaction of its own. So a process holds no lock while it computes, even if
// it is suspended meanwhile. If another process wrote the row in between, the UPDATE changes
// nothing, and the turn begins again.
//
// A process that shares a limit needs the privileges SELECT, INSERT and UPDATE on the table
// paceline_share. Store.Forget, which removes a limit, also needs DELETE. The first process also
// needs CREATE on the database schema, unless an administrator has made the table before, by the
// statement in the constant Schema.
//
// After a failover PostgreSQL has another timeline (its number for a history of writes). The
// processes notice this, and restore the state of the limits as package share describes. If
// somebody drops the table, the next turn of a process makes the table again, if it has the
// privilege CREATE. Then nothing is granted for 7 s and a window. Package postgres relies on fsync,
// which must be on, and on synchronous_commit, which each write sets to on. A long transaction
// elsewhere in the database prevents vacuum from removing old versions of the rows, so the table
// grows meanwhile.
//
// Unless the address sets default_query_exec_mode, no statement of package postgres depends on
// which connection runs it. So a pooler such as PgBouncer may stand between the process and
// PostgreSQL, in any mode: session, transaction or statement.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paceline-go/paceline/internal/pgaddress"
	"github.com/paceline-go/paceline/share"
)

// Schema makes the table. Its rows are written often. So pages have room for new versions, and
// vacuum comes by the number of these.
const Schema = `CREATE TABLE IF NOT EXISTS paceline_share (name text PRIMARY KEY, version bigint NOT NULL, blob bytea NOT NULL)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 1000)`

// Store is a database of shared limits. It is a share.Store. Safe for concurrent use.
type Store struct{ pool *pgxpool.Pool }

// Open connects to a database, postgres://user:password@host/name, and makes the table if it is not
// there. It uses up to 4 connections, unless url sets pool_max_conns.
func Open(ctx context.Context, url string) (*Store, error) {
	c, err := pgaddress.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("share/postgres: %w", err)
	}
	if !strings.Contains(url, "default_query_exec_mode") {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // a prepared statement belongs to one connection
	}
	c.ConnConfig.RuntimeParams["application_name"] = "paceline share"
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("share/postgres: %w", err)
	}
	s := &Store{pool}
	if err := s.makeTable(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("share/postgres: %w", err)
	}
	return s, nil
}

// makeTable makes the table if it is not there.
func (s *Store) makeTable(ctx context.Context) error {
	for try := 0; ; try++ {
		var there bool
		err := s.pool.QueryRow(ctx, `SELECT to_regclass('paceline_share') IS NOT NULL`).Scan(&there)
		if err == nil && !there {
			if _, err = s.pool.Exec(ctx, Schema); err != nil {
				err = fmt.Errorf("the table paceline_share is not there, and cannot be made: %w", err)
			}
		}
		if !is(err, codeTaken) || try == 3 { // two processes make the table at once
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Codes of errors of PostgreSQL.
const (
	codeTaken   = "23505" // unique_violation
	codeNoTable = "42P01" // undefined_table
)

func is(err error, code string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == code
}

// again returns nil if a turn may begin again after an error: the table was dropped, and is there
// again now. Otherwise it returns the error.
func (s *Store) again(ctx context.Context, err error) error {
	if is(err, codeNoTable) {
		err = s.makeTable(ctx)
	}
	if err != nil {
		return fmt.Errorf("share/postgres: %w", err)
	}
	return nil
}

// Close closes the connections. Close the Members first.
func (s *Store) Close() { s.pool.Close() }

const (
	read = `SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, left(pg_walfile_name(pg_current_wal_lsn()), 8), s.version, s.blob
FROM (SELECT) one LEFT JOIN paceline_share s ON s.name = $1`
	// set_config is for this transaction alone.
	update = `UPDATE paceline_share SET version = $4, blob = $3
WHERE name = $1 AND version = $2 AND set_config('synchronous_commit', 'on', true) IS NOT NULL`
	insert = `INSERT INTO paceline_share (name, version, blob) SELECT $1::text, $2::bigint, $3::bytea
WHERE set_config('synchronous_commit', 'on', true) IS NOT NULL ON CONFLICT DO NOTHING`
)

// Turn implements share.Store.
func (s *Store) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	return share.Retry(ctx, func() (bool, error) {
		var micros int64
		var r share.Reading
		var version *int64
		if err := s.pool.QueryRow(ctx, read, key).Scan(&micros, &r.Incarnation, &version, &r.Blob); err != nil {
			return false, s.again(ctx, err)
		}
		r.Clock = micros * 1000
		r.Wall = r.Clock
		blob, err := f(r)
		if err != nil {
			return false, err
		}
		done, err := s.put(ctx, key, version, blob)
		if err != nil {
			return false, s.again(ctx, err)
		}
		return done, nil
	})
}

func (s *Store) put(ctx context.Context, key string, version *int64, blob []byte) (bool, error) {
	// A late put does not fit a row that was made again or restored since: no version comes again.
	next := rand.Int64N(1 << 62)
	if version == nil {
		tag, err := s.pool.Exec(ctx, insert, key, next, blob)
		return tag.RowsAffected() == 1, err
	}
	tag, err := s.pool.Exec(ctx, update, key, *version, blob, next)
	return tag.RowsAffected() == 1, err
}

// Names implements share.Lister.
func (s *Store) Names(ctx context.Context) ([]string, error) {
	rows, err := s.pool.Query(ctx, `SELECT name FROM paceline_share ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("share/postgres: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("share/postgres: %w", err)
	}
	return all, nil
}

// Forget implements share.Lister. It needs the privilege DELETE.
func (s *Store) Forget(ctx context.Context, key string) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM paceline_share WHERE name = $1`, key); err != nil {
		return fmt.Errorf("share/postgres: %w", err)
	}
	return nil
}
