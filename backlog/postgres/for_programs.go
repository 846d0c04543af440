package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
)

const infoColumns = `id, name, format, state, note`

func info(scan func(...any) error) (i backlog.Info, err error) {
	var state int
	err = scan(&i.ID, &i.Name, &i.Format, &state, &i.Note)
	i.Paused = state != stateOpen
	return i, err
}

// Find implements backlog.Store.
func (s *Store) Find(ctx context.Context, name string) (backlog.Info, error) {
	i, err := info(s.pool.QueryRow(ctx, `SELECT `+infoColumns+` FROM paceline_backlog WHERE name = $1`, name).Scan)
	return i, notFound(err)
}

// Create implements backlog.Store.
func (s *Store) Create(ctx context.Context, name, format string) error {
	_, err := s.exec(ctx, `INSERT INTO paceline_backlog (name, format) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, format)
	return err
}

// List implements backlog.Store.
func (s *Store) List(ctx context.Context) ([]backlog.Info, error) {
	rows, err := s.pool.Query(ctx, `SELECT `+infoColumns+` FROM paceline_backlog ORDER BY name`)
	return collect(rows, err, info)
}

// removeBatch is how many rows a transaction of Remove deletes.
const removeBatch = 5000

// Remove implements backlog.Store.
func (s *Store) Remove(ctx context.Context, id int64) error {
	if _, err := s.exec(ctx, `WITH w AS (DELETE FROM paceline_worker WHERE backlog = $1)
UPDATE paceline_backlog SET state = $2 WHERE id = $1`, id, stateRemoved); err != nil {
		return err
	}
	for _, query := range []string{
		`DELETE FROM paceline_queue WHERE ctid = ANY (ARRAY(SELECT ctid FROM paceline_queue WHERE backlog = $1 LIMIT $2))`,
		`DELETE FROM paceline_earlier WHERE ctid = ANY (ARRAY(SELECT e.ctid FROM paceline_earlier e JOIN paceline_request r
ON r.seq = e.seq WHERE r.backlog = $1 LIMIT $2))`,
		`DELETE FROM paceline_result WHERE ctid = ANY (ARRAY(SELECT ctid FROM paceline_result WHERE backlog = $1 LIMIT $2))`,
		`DELETE FROM paceline_request WHERE ctid = ANY (ARRAY(SELECT ctid FROM paceline_request WHERE backlog = $1 LIMIT $2))`,
		`DELETE FROM paceline_backlog WHERE id = $1 AND $2 > 0`,
	} {
		for n := removeBatch; n == removeBatch; {
			var err error
			if n, err = s.exec(ctx, query, id, removeBatch); err != nil {
				return err
			}
		}
	}
	return nil
}

// add inserts what is not there, in the order of the input.
const add = `WITH e AS (SELECT * FROM unnest($2::text[], $3::bytea[], $4::int[], $5::bigint[], $6::bigint[], $7::bigint[])
  WITH ORDINALITY e (id, data, lane, place, due, deadline, nth)),
n AS (INSERT INTO paceline_request (backlog, id, lane, deadline, data)
  SELECT b.id, e.id, e.lane, e.deadline, e.data FROM e, paceline_backlog b WHERE b.id = $1 AND b.state < 2 ORDER BY e.nth
  ON CONFLICT DO NOTHING RETURNING seq, id),
q AS (INSERT INTO paceline_queue (seq, backlog, lane, place, deadline, due)
  SELECT n.seq, $1, e.lane, e.place, e.deadline, nullif(e.due, 0) FROM n JOIN e ON e.id = n.id RETURNING 1)
SELECT (SELECT count(*) FROM q), EXISTS (SELECT FROM paceline_backlog WHERE id = $1 AND state < 2)`

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

func enqueue(ctx context.Context, to querier, id int64, entries []backlog.Entry) (added int, err error) {
	var ids []string
	var data [][]byte
	var lanes []int32
	var places, dues, deadlines []int64
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		ids, data, lanes = append(ids, e.ID), append(data, e.Data), append(lanes, e.Lane)
		places, dues, deadlines = append(places, e.Place), append(dues, e.Due), append(deadlines, e.Deadline)
	}
	var there bool
	err = to.QueryRow(ctx, add, id, ids, data, lanes, places, dues, deadlines).Scan(&added, &there)
	if err == nil && !there {
		err = backlog.ErrNoBacklog
	}
	if err != nil {
		return 0, wrap(err)
	}
	return added, nil
}

// Enqueue implements backlog.Store.
func (s *Store) Enqueue(ctx context.Context, id int64, entries []backlog.Entry) (int, error) {
	return enqueue(ctx, s.pool, id, entries)
}

// EnqueueTx adds requests to the backlog of a name in a transaction of your own, and returns how many were
// not there already. Nobody sees them before that transaction commits.
func EnqueueTx(ctx context.Context, tx pgx.Tx, name string, jobs ...backlog.Job) (added int, err error) {
	entries, err := backlog.Entries(time.Now(), jobs)
	if err != nil {
		return 0, err
	}
	var id int64
	if err := tx.QueryRow(ctx, `SELECT id FROM paceline_backlog WHERE name = $1`, name).Scan(&id); err != nil {
		return 0, notFound(err)
	}
	return enqueue(ctx, tx, id, entries)
}

// Differing implements backlog.Store.
func (s *Store) Differing(ctx context.Context, id int64, entries []backlog.Entry) ([]string, error) {
	ids, data := make([]string, len(entries)), make([][]byte, len(entries))
	for i, e := range entries {
		ids[i], data[i] = e.ID, e.Data
	}
	rows, err := s.pool.Query(ctx, `SELECT e.id FROM unnest($2::text[], $3::bytea[]) WITH ORDINALITY e (id, data, nth)
JOIN paceline_request r ON r.backlog = $1 AND r.id = e.id WHERE coalesce(r.data, '') <> coalesce(e.data, '') ORDER BY e.nth`,
		id, ids, data)
	return collect(rows, err, func(scan func(...any) error) (id string, err error) {
		err = scan(&id)
		return id, err
	})
}

// Analyze implements backlog.Store. The planner learns how many rows there are.
func (s *Store) Analyze(ctx context.Context) error {
	_, err := s.exec(ctx, `ANALYZE paceline_queue, paceline_request`)
	return err
}

// Results implements backlog.Store.
func (s *Store) Results(ctx context.Context, id, after int64, n int) ([]backlog.Result, error) {
	rows, err := s.pool.Query(ctx, `SELECT e.seq, r.id, e.state, e.class, e.repeat, e.attempts, e.worker, e.at, e.line
FROM (SELECT * FROM paceline_result WHERE backlog = $1 AND seq > $2 ORDER BY seq LIMIT $3) e
JOIN paceline_request r ON r.seq = e.seq ORDER BY e.seq`, id, after, n)
	return collect(rows, err, func(scan func(...any) error) (e backlog.Result, err error) {
		var at int64
		err = scan(&e.Seq, &e.ID, &e.State, &e.Class, &e.Repeat, &e.Attempts, &e.Worker, &at, &e.Line)
		e.At = milliseconds(at)
		return e, err
	})
}

// Count implements backlog.Store.
func (s *Store) Count(ctx context.Context, id int64) (c backlog.Counts, err error) {
	err = s.pool.QueryRow(ctx, `SELECT w.ready, w.later, w.held, e.done, e.dead, e.expired, e.cancelled, e.repeats
FROM (SELECT count(*) FILTER (WHERE worker IS NULL AND due IS NULL) ready,
  count(*) FILTER (WHERE worker IS NULL AND due IS NOT NULL) later,
  count(*) FILTER (WHERE worker IS NOT NULL) held FROM paceline_queue WHERE backlog = $1) w,
(SELECT count(*) FILTER (WHERE state = 1) done, count(*) FILTER (WHERE state = 2) dead,
  count(*) FILTER (WHERE state = 3) expired, count(*) FILTER (WHERE state = 4) cancelled,
  count(*) FILTER (WHERE repeat) repeats FROM paceline_result WHERE backlog = $1) e`, id).
		Scan(&c.Ready, &c.Later, &c.Held, &c.Done, &c.Dead, &c.Expired, &c.Cancelled, &c.Repeats)
	c.Total = c.Left() + c.Done + c.Dead + c.Expired + c.Cancelled
	return c, wrap(err)
}

// Empty implements backlog.Store.
func (s *Store) Empty(ctx context.Context, id int64) (empty bool, err error) {
	err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM paceline_queue WHERE backlog = $1)`, id).Scan(&empty)
	return empty, wrap(err)
}

// Workers implements backlog.Store.
func (s *Store) Workers(ctx context.Context, id int64) ([]backlog.WorkerStatus, error) {
	rows, err := s.pool.Query(ctx, `SELECT w.id, w.host, w.pid, w.beat, w.dead, coalesce(w.ended, 0), w.results,
(SELECT count(*) FROM paceline_queue q WHERE q.worker = w.id), cardinality(w.sending)
FROM paceline_worker w WHERE w.backlog = $1 AND (NOT w.dead OR w.results > 0 OR w.sending <> '{}') ORDER BY w.id`, id)
	return collect(rows, err, func(scan func(...any) error) (w backlog.WorkerStatus, err error) {
		var ended int64
		err = scan(&w.ID, &w.Host, &w.PID, &w.Beat, &w.Dead, &ended, &w.Results, &w.Held, &w.Sending)
		if ended > 0 {
			w.Ended = time.UnixMilli(ended)
		}
		return w, err
	})
}

// SetPaused implements backlog.Store.
func (s *Store) SetPaused(ctx context.Context, id int64, paused bool) error {
	state := stateOpen
	if paused {
		state = statePaused
	}
	_, err := s.exec(ctx, `UPDATE paceline_backlog SET state = $2 WHERE id = $1 AND state <> $3`, id, state, stateRemoved)
	return err
}

// SetNote implements backlog.Store.
func (s *Store) SetNote(ctx context.Context, id int64, was, note []byte) (bool, error) {
	n, err := s.exec(ctx, `UPDATE paceline_backlog SET note = $2 WHERE id = $1 AND note IS NOT DISTINCT FROM $3`, id, note, was)
	return n == 1, err
}

// Cancel implements backlog.Store.
func (s *Store) Cancel(ctx context.Context, id int64, ids []string, most int) (int, error) {
	return s.exec(ctx, `WITH c AS (SELECT seq FROM paceline_queue WHERE backlog = $1 AND worker IS NULL
  AND ($2::text[] IS NULL OR seq IN (SELECT seq FROM paceline_request WHERE backlog = $1 AND id = ANY ($2)))
  LIMIT $3 FOR UPDATE SKIP LOCKED),
d AS (DELETE FROM paceline_queue q USING c WHERE q.seq = c.seq RETURNING q.*)
INSERT INTO paceline_result (backlog, seq, state, class, repeat, unsure, attempts, worker, at)
SELECT $1, seq, $4, '', doubt, false, attempts, 0, `+clock+` FROM d`, id, ids, most, int16(backlog.Cancelled))
}

// RetryDead implements backlog.Store.
func (s *Store) RetryDead(ctx context.Context, id int64, classes []string, most int) (int, error) {
	return s.exec(ctx, `WITH c AS (SELECT seq FROM paceline_result WHERE backlog = $1 AND state = 2
  AND ($2::text[] IS NULL OR class = ANY ($2)) LIMIT $3 FOR UPDATE SKIP LOCKED),
r AS (DELETE FROM paceline_result x USING c WHERE x.backlog = $1 AND x.seq = c.seq RETURNING x.*),
e AS (INSERT INTO paceline_earlier (seq, round, at, attempts, class, line)
  SELECT seq, (SELECT count(*) FROM paceline_earlier y WHERE y.seq = r.seq), at, attempts, class, line FROM r)
INSERT INTO paceline_queue (seq, backlog, lane, place, deadline, doubt)
SELECT q.seq, q.backlog, q.lane, `+clock+`, q.deadline, r.repeat OR r.unsure
FROM r JOIN paceline_request q ON q.seq = r.seq`, id, classes, most)
}
