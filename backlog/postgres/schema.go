package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
)

// version is that of the tables. Those of earlier versions are brought to it. Tables of another version are refused.
const version = 3

// numbers makes tables of version 1 those of version 2. Since then no number of a request or a backlog comes again
// after a failover that lost some: a worker may still hold a request of the lost time, and its answer must not be
// that of another one. So the timeline of the server, which is higher after each failover, comes first in a number.
const numbers = `
ALTER TABLE paceline_request ALTER seq SET DEFAULT nextval('paceline_request_seq_seq') + ` + timeline + `;
ALTER TABLE paceline_backlog ALTER id SET DEFAULT nextval('paceline_backlog_id_seq') + ` + timeline + `;
`

const timeline = `(('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint << 40)`

// Schema makes the tables, and the functions by which SQL adds requests. Give it to an administrator if the
// processes may not make tables. Run it in one transaction.
const Schema = `
CREATE TABLE paceline_backlog (
  id bigserial PRIMARY KEY, name text NOT NULL UNIQUE, format text NOT NULL, state smallint NOT NULL DEFAULT 0,
  note bytea);
CREATE TABLE paceline_request (
  seq bigserial PRIMARY KEY, backlog bigint NOT NULL, deadline bigint NOT NULL, lane int NOT NULL, id text NOT NULL,
  data bytea, UNIQUE (backlog, id));
CREATE TABLE paceline_queue (
  seq bigint PRIMARY KEY, backlog bigint NOT NULL, place bigint NOT NULL, deadline bigint NOT NULL, due bigint,
  worker bigint, lane int NOT NULL, attempts int NOT NULL DEFAULT 0, doubt boolean NOT NULL DEFAULT false)
WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0);
CREATE INDEX paceline_ready ON paceline_queue (backlog, lane, place, seq) WHERE worker IS NULL AND due IS NULL;
CREATE INDEX paceline_held ON paceline_queue (worker) WHERE worker IS NOT NULL;
CREATE INDEX paceline_later ON paceline_queue (backlog, due) WHERE due IS NOT NULL;
CREATE TABLE paceline_result (
  seq bigint NOT NULL, backlog bigint NOT NULL, worker bigint NOT NULL, at bigint NOT NULL, attempts int NOT NULL,
  state smallint NOT NULL, repeat boolean NOT NULL, unsure boolean NOT NULL, class text NOT NULL, line bytea,
  PRIMARY KEY (backlog, seq) INCLUDE (state, repeat));
CREATE INDEX paceline_dead ON paceline_result (backlog, class) WHERE state = 2;
CREATE TABLE paceline_earlier (
  seq bigint NOT NULL, round bigint NOT NULL, at bigint NOT NULL, attempts int NOT NULL, class text NOT NULL,
  line bytea, PRIMARY KEY (seq, round));
CREATE TABLE paceline_worker (
  id bigserial PRIMARY KEY, backlog bigint NOT NULL, beat bigint NOT NULL DEFAULT 0, results bigint NOT NULL DEFAULT 0,
  pid bigint NOT NULL, dead boolean NOT NULL DEFAULT false, host text NOT NULL, sending bigint[] NOT NULL DEFAULT '{}',
  ended bigint)
WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX paceline_workers ON paceline_worker (backlog) WHERE NOT dead;
CREATE TABLE paceline_backlog_version (version int NOT NULL);
INSERT INTO paceline_backlog_version VALUES (3);

CREATE FUNCTION paceline_enqueue(backlog text, id text, data bytea, priority int DEFAULT 0, lane int DEFAULT 0,
  due timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  list bigint; added bigint;
  now_ms bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
BEGIN
  IF length($2) = 0 OR octet_length($2) > 500 OR $4 NOT BETWEEN -1000000 AND 1000000 THEN
    RAISE EXCEPTION 'paceline_enqueue: an id has 1 to 500 bytes, and a priority is between -1000000 and 1000000';
  END IF;
  SELECT b.id INTO list FROM paceline_backlog b WHERE b.name = $1 AND b.state < 2;
  IF list IS NULL THEN
    RAISE EXCEPTION 'paceline_enqueue: there is no backlog %', $1;
  END IF;
  INSERT INTO paceline_request AS r (backlog, id, lane, deadline, data)
    VALUES (list, $2, $5, coalesce((extract(epoch FROM $7) * 1000)::bigint, 0), $3)
    ON CONFLICT DO NOTHING RETURNING r.seq INTO added;
  IF added IS NOT NULL THEN
    INSERT INTO paceline_queue (seq, backlog, lane, place, deadline, due)
      VALUES (added, list, $5, greatest(1, now_ms - $4 * 60000::bigint),
        coalesce((extract(epoch FROM $7) * 1000)::bigint, 0), (extract(epoch FROM $6) * 1000)::bigint);
  END IF;
  RETURN added;
END $$;
CREATE FUNCTION paceline_enqueue(backlog text, id text, data text, priority int DEFAULT 0, lane int DEFAULT 0,
  due timestamptz DEFAULT NULL, deadline timestamptz DEFAULT NULL) RETURNS bigint LANGUAGE sql AS
  'SELECT paceline_enqueue($1, $2, convert_to($3, ''UTF8''), $4, $5, $6, $7)';
` + numbers

// The states of a backlog.
const (
	stateOpen = iota
	statePaused
	stateRemoved // its rows go
)

// tablesLock is the number of the lock under which processes make the tables, one at a time.
const tablesLock = 0x7061_6365 // "pace"

// makeTables makes the tables, or brings those that are there to this version.
func (s *Store) makeTables(ctx context.Context, existing bool) error {
	has, err := tablesOf(ctx, s.pool)
	switch {
	case err != nil || has == version:
		return err
	case has == 0 && existing:
		return backlog.ErrNoStore
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1::bigint)`, tablesLock); err != nil {
			return err
		}
		switch has, err := tablesOf(ctx, tx); {
		case err != nil || has == version: // another process was quicker
			return err
		case has == 0:
			if _, err := tx.Conn().PgConn().Exec(ctx, Schema).ReadAll(); err != nil {
				return fmt.Errorf("the tables are not there, and cannot be made: %w", err)
			}
		default:
			if _, err := tx.Conn().PgConn().Exec(ctx, upgrade).ReadAll(); err != nil {
				return fmt.Errorf("%w: %d, and they cannot be brought to %d: their owner does so by paceline enqueue: %w",
					backlog.ErrVersion, has, version, err)
			}
		}
		return nil
	})
}

// upgrade waits for no transaction that is long: all others would wait behind it. Version 3 knows when a worker ended.
const upgrade = `SET LOCAL lock_timeout = '2s';` + numbers + `ALTER TABLE paceline_worker ADD COLUMN ended bigint;
UPDATE paceline_backlog_version SET version = 3`

// tablesOf returns the version of the tables, which is this one or an earlier one; 0: there are none.
func tablesOf(ctx context.Context, from querier) (has int, err error) {
	var there bool
	if err := from.QueryRow(ctx, `SELECT to_regclass('paceline_backlog_version') IS NOT NULL`).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = from.QueryRow(ctx, `SELECT version FROM paceline_backlog_version`).Scan(&has)
	if err == nil && (has < 1 || has > version) || errors.Is(err, pgx.ErrNoRows) {
		err = fmt.Errorf("%w: %d, expected %d", backlog.ErrVersion, has, version)
	}
	return has, err
}
