package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/paceline-go/paceline/backlog"
)

// version is that of the tables. Those of version 1 are brought to it by upgrade, and others are refused.
const version = 2

// upgrade is what version 2 knows and version 1 does not: when a worker ended.
const upgrade = `ALTER TABLE paceline_worker ADD COLUMN ended INTEGER`

// schema makes the tables. Numbers of backlogs, requests and workers never come again.
const schema = `
CREATE TABLE paceline_backlog (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, format TEXT NOT NULL,
  state INTEGER NOT NULL DEFAULT 0, note BLOB);
CREATE TABLE paceline_request (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, backlog INTEGER NOT NULL, id TEXT NOT NULL, lane INTEGER NOT NULL,
  deadline INTEGER NOT NULL, data BLOB, UNIQUE (backlog, id));
CREATE TABLE paceline_queue (
  seq INTEGER PRIMARY KEY, backlog INTEGER NOT NULL, lane INTEGER NOT NULL, place INTEGER NOT NULL,
  deadline INTEGER NOT NULL, due INTEGER, worker INTEGER, attempts INTEGER NOT NULL DEFAULT 0,
  doubt INTEGER NOT NULL DEFAULT 0);
CREATE INDEX paceline_ready ON paceline_queue (backlog, lane, place, seq) WHERE worker IS NULL AND due IS NULL;
CREATE INDEX paceline_held ON paceline_queue (worker) WHERE worker IS NOT NULL;
CREATE INDEX paceline_later ON paceline_queue (backlog, due) WHERE due IS NOT NULL;
CREATE TABLE paceline_result (
  seq INTEGER PRIMARY KEY, backlog INTEGER NOT NULL, state INTEGER NOT NULL, class TEXT NOT NULL,
  repeat INTEGER NOT NULL, unsure INTEGER NOT NULL, attempts INTEGER NOT NULL, worker INTEGER NOT NULL,
  at INTEGER NOT NULL, line BLOB);
CREATE INDEX paceline_ended ON paceline_result (backlog, seq, state, repeat);
CREATE INDEX paceline_dead ON paceline_result (backlog, class) WHERE state = 2;
CREATE TABLE paceline_earlier (
  seq INTEGER NOT NULL, round INTEGER NOT NULL, class TEXT NOT NULL, attempts INTEGER NOT NULL,
  at INTEGER NOT NULL, line BLOB, PRIMARY KEY (seq, round));
CREATE TABLE paceline_worker (
  id INTEGER PRIMARY KEY AUTOINCREMENT, backlog INTEGER NOT NULL, beat INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0, sending TEXT NOT NULL DEFAULT '[]', results INTEGER NOT NULL DEFAULT 0,
  host TEXT NOT NULL, pid INTEGER NOT NULL, ended INTEGER);
CREATE INDEX paceline_workers ON paceline_worker (backlog);
CREATE TABLE paceline_backlog_version (version INTEGER NOT NULL);
`

// The states of a backlog.
const (
	stateOpen = iota
	statePaused
	stateRemoved // its rows go
)

// makeTables makes the tables, or looks whether those that are there are of this version.
func makeTables(ctx context.Context, db *sql.DB, existing bool) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	var there bool
	if err := tx.QueryRowContext(ctx,
		`SELECT count(*) > 0 FROM sqlite_schema WHERE name = 'paceline_backlog_version'`).Scan(&there); err != nil {
		return err
	}
	if !there {
		if existing {
			return backlog.ErrNoStore
		}
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO paceline_backlog_version VALUES (?)`, version); err != nil {
			return err
		}
		return tx.Commit()
	}
	var has int
	err = tx.QueryRowContext(ctx, `SELECT version FROM paceline_backlog_version`).Scan(&has)
	if err == nil && has == 1 {
		_, err = tx.ExecContext(ctx, upgrade)
		if err == nil {
			_, err = tx.ExecContext(ctx, `UPDATE paceline_backlog_version SET version = ?`, version)
		}
		if err != nil {
			return fmt.Errorf("%w: %d, and they cannot be brought to %d: %w", backlog.ErrVersion, has, version, err)
		}
		return tx.Commit()
	}
	if err == nil && has != version || errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: %d, expected %d", backlog.ErrVersion, has, version)
	}
	return err
}
