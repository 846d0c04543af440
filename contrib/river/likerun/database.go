package likerun

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
)

// Tables are those of the example, beside River's. A mark counts
// the sends of a job and those that a limit refused. open: a request was sent and its answer is not known.
// doubt: that was so when it was sent again.
const Tables = `
CREATE TABLE call_mark (job BIGINT PRIMARY KEY, sends INTEGER NOT NULL, refused INTEGER NOT NULL,
	open BOOLEAN NOT NULL, doubt BOOLEAN NOT NULL, done BOOLEAN NOT NULL);
CREATE TABLE call_result (job BIGINT PRIMARY KEY, line TEXT NOT NULL);`

// statements run in a transaction, in PostgreSQL or SQLite.
type statements interface {
	// row runs a statement that returns a row. ok is false if it returns none.
	row(ctx context.Context, to []any, query string, args ...any) (ok bool, err error)
	exec(ctx context.Context, query string, args ...any) error
	// complete completes the job in the transaction.
	complete(ctx context.Context, job *river.Job[Args]) error
}

// Database begins transactions. SQLite and PostgreSQL are the two.
type Database interface {
	in(ctx context.Context, f func(statements) error) error
}

type sqliteTx struct{ *sql.Tx }

func (t sqliteTx) row(ctx context.Context, to []any, query string, args ...any) (ok bool, err error) {
	err = t.QueryRowContext(ctx, query, args...).Scan(to...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (t sqliteTx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.ExecContext(ctx, query, args...)
	return err
}

func (t sqliteTx) complete(ctx context.Context, job *river.Job[Args]) error {
	_, err := river.JobCompleteTx[*riversqlite.Driver](ctx, t.Tx, job)
	return err
}

// SQLite is a Database.
type SQLite struct{ *sql.DB }

func (d SQLite) in(ctx context.Context, f func(statements) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := f(sqliteTx{tx}); err != nil {
		return err
	}
	return tx.Commit()
}

type postgresTx struct{ pgx.Tx }

func (t postgresTx) row(ctx context.Context, to []any, query string, args ...any) (ok bool, err error) {
	err = t.QueryRow(ctx, query, args...).Scan(to...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (t postgresTx) exec(ctx context.Context, query string, args ...any) error {
	_, err := t.Exec(ctx, query, args...)
	return err
}

func (t postgresTx) complete(ctx context.Context, job *river.Job[Args]) error {
	_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, t.Tx, job)
	return err
}

// PostgreSQL is a Database.
type PostgreSQL struct{ *pgxpool.Pool }

func (d PostgreSQL) in(ctx context.Context, f func(statements) error) error {
	return pgx.BeginFunc(ctx, d.Pool, func(tx pgx.Tx) error { return f(postgresTx{tx}) })
}
