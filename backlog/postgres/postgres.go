package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/pgaddress"
)

// Store is a database of backlogs. It is a backlog.Store. Open and OpenExisting make it. Safe for concurrent
// use.
type Store struct {
	pool *pgxpool.Pool
	mode bool // url says how statements are executed
}

// Open connects to a database, postgres://user:password@host/name, and makes the tables if they are not
// there. It uses up to 4 connections, unless url sets pool_max_conns. The error is backlog.ErrVersion if
// the tables are of another version.
func Open(ctx context.Context, url string) (*Store, error) { return open(ctx, url, false) }

// OpenExisting connects to a database with backlogs. If it has no tables of them, the error is
// backlog.ErrNoStore.
func OpenExisting(ctx context.Context, url string) (*Store, error) { return open(ctx, url, true) }

func open(ctx context.Context, url string, existing bool) (*Store, error) {
	c, err := pgaddress.Parse(url)
	if err != nil {
		return nil, wrap(err)
	}
	mode := strings.Contains(url, "default_query_exec_mode")
	if !mode {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // a prepared statement belongs to one connection
	}
	c.ConnConfig.RuntimeParams["application_name"] = "paceline backlog"
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return nil, wrap(err)
	}
	s := &Store{pool, mode}
	if err := s.makeTables(ctx, existing); err != nil {
		pool.Close()
		return nil, wrap(err)
	}
	return s, nil
}

// Close closes the connections. Stop the Sessions first.
func (s *Store) Close() error {
	s.pool.Close()
	return nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("backlog/postgres: %w", err)
}

// clock is the time of the database in milliseconds since 1970.
const clock = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// notFound turns the lack of a row into ErrNoBacklog.
func notFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		err = backlog.ErrNoBacklog
	}
	return wrap(err)
}

// exec runs a statement, and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, query string, args ...any) (int, error) {
	tag, err := s.pool.Exec(ctx, query, args...)
	return int(tag.RowsAffected()), wrap(err)
}

// collect reads rows by scan.
func collect[T any](rows pgx.Rows, err error, scan func(scan func(...any) error) (T, error)) ([]T, error) {
	if err != nil {
		return nil, wrap(err)
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (T, error) { return scan(r.Scan) })
	return all, wrap(err)
}

func milliseconds(at int64) time.Time { return time.UnixMilli(at) }
