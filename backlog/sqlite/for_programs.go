package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/paceline-go/paceline/backlog"
)

const (
	requestQuery = `INSERT INTO paceline_request (backlog, id, lane, deadline, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING`
	waitQuery = `INSERT INTO paceline_queue (seq, backlog, lane, place, deadline, due)
VALUES (last_insert_rowid(), ?, ?, ?, ?, ?)`
	infoColumns = `id, name, format, state, note`
)

func info(scan func(...any) error) (i backlog.Info, err error) {
	var state int
	err = scan(&i.ID, &i.Name, &i.Format, &state, &i.Note)
	i.Paused = state != stateOpen
	return i, err
}

// Find implements backlog.Store.
func (s *Store) Find(ctx context.Context, name string) (backlog.Info, error) {
	i, err := info(s.db.QueryRowContext(ctx, `SELECT `+infoColumns+` FROM paceline_backlog WHERE name = ?`, name).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = backlog.ErrNoBacklog
	}
	return i, s.wrap(err)
}

// Create implements backlog.Store.
func (s *Store) Create(ctx context.Context, name, format string) error {
	_, err := s.db.ExecContext(ctx, `INSERT INTO paceline_backlog (name, format) VALUES (?, ?) ON CONFLICT DO NOTHING`,
		name, format)
	return s.wrap(err)
}

// List implements backlog.Store.
func (s *Store) List(ctx context.Context) (all []backlog.Info, err error) {
	r, err := s.db.QueryContext(ctx, `SELECT `+infoColumns+` FROM paceline_backlog ORDER BY name`)
	err = s.wrap(rows(r, err, func(r *sql.Rows) error {
		i, err := info(r.Scan)
		all = append(all, i)
		return err
	}))
	return all, err
}

// removeBatch is how many rows a transaction of Remove deletes.
const removeBatch = 5000

// Remove implements backlog.Store.
func (s *Store) Remove(ctx context.Context, id int64) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE paceline_backlog SET state = ? WHERE id = ?`, stateRemoved, id)
		if err == nil {
			_, err = tx.ExecContext(ctx, `DELETE FROM paceline_worker WHERE backlog = ?`, id)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, query := range []string{
		`DELETE FROM paceline_queue WHERE seq IN (SELECT seq FROM paceline_queue WHERE backlog = ? LIMIT ?)`,
		`DELETE FROM paceline_earlier WHERE rowid IN (SELECT e.rowid FROM paceline_earlier e JOIN paceline_request r
ON r.seq = e.seq WHERE r.backlog = ? LIMIT ?)`,
		`DELETE FROM paceline_result WHERE seq IN (SELECT seq FROM paceline_result WHERE backlog = ? LIMIT ?)`,
		`DELETE FROM paceline_request WHERE seq IN (SELECT seq FROM paceline_request WHERE backlog = ? LIMIT ?)`,
		`DELETE FROM paceline_backlog WHERE id = ? AND ? > 0`,
	} {
		for n := removeBatch; n == removeBatch; {
			if n, err = changed(s.db.ExecContext(ctx, query, id, removeBatch)); err != nil {
				return s.wrap(err)
			}
		}
	}
	return nil
}

// Enqueue implements backlog.Store.
func (s *Store) Enqueue(ctx context.Context, id int64, entries []backlog.Entry) (added int, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		var state int
		err := tx.StmtContext(ctx, s.state).QueryRowContext(ctx, id).Scan(&state)
		if errors.Is(err, sql.ErrNoRows) || err == nil && state == stateRemoved {
			return backlog.ErrNoBacklog
		}
		if err != nil {
			return err
		}
		request, wait := tx.StmtContext(ctx, s.request), tx.StmtContext(ctx, s.wait)
		for _, e := range entries {
			n, err := changed(request.ExecContext(ctx, id, e.ID, e.Lane, e.Deadline, e.Data))
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			due := sql.NullInt64{Int64: e.Due, Valid: e.Due != 0}
			if _, err := wait.ExecContext(ctx, id, e.Lane, e.Place, e.Deadline, due); err != nil {
				return err
			}
			added++
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// Differing implements backlog.Store.
func (s *Store) Differing(ctx context.Context, id int64, entries []backlog.Entry) (ids []string, err error) {
	for _, e := range entries {
		var differs bool
		err := s.db.QueryRowContext(ctx, `SELECT coalesce(data, x'') <> coalesce(?, x'') FROM paceline_request
WHERE backlog = ? AND id = ?`, e.Data, id, e.ID).Scan(&differs)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, s.wrap(err)
		}
		if differs {
			ids = append(ids, e.ID)
		}
	}
	return ids, nil
}

// Analyze implements backlog.Store. The engine's plans do not depend on how many rows there are.
func (s *Store) Analyze(context.Context) error { return nil }

// Results implements backlog.Store.
func (s *Store) Results(ctx context.Context, id, after int64, n int) (all []backlog.Result, err error) {
	r, err := s.db.QueryContext(ctx, `SELECT e.seq, r.id, e.state, e.class, e.repeat, e.attempts, e.worker, e.at, e.line
FROM paceline_result e JOIN paceline_request r ON r.seq = e.seq
WHERE e.backlog = ? AND e.seq > ? ORDER BY e.seq LIMIT ?`, id, after, n)
	err = s.wrap(rows(r, err, func(r *sql.Rows) error {
		var e backlog.Result
		var at int64
		err := r.Scan(&e.Seq, &e.ID, &e.State, &e.Class, &e.Repeat, &e.Attempts, &e.Worker, &at, &e.Line)
		e.At = time.UnixMilli(at)
		all = append(all, e)
		return err
	}))
	return all, err
}

// Count implements backlog.Store.
func (s *Store) Count(ctx context.Context, id int64) (c backlog.Counts, err error) {
	err = s.wrap(s.db.QueryRowContext(ctx, `SELECT w.ready, w.later, w.held, e.done, e.dead, e.expired, e.cancelled, e.repeats,
w.ready + w.later + w.held + e.done + e.dead + e.expired + e.cancelled
FROM (SELECT count(*) FILTER (WHERE worker IS NULL AND due IS NULL) ready,
  count(*) FILTER (WHERE worker IS NULL AND due IS NOT NULL) later,
  count(*) FILTER (WHERE worker IS NOT NULL) held FROM paceline_queue WHERE backlog = ?1) w,
(SELECT count(*) FILTER (WHERE state = 1) done, count(*) FILTER (WHERE state = 2) dead,
  count(*) FILTER (WHERE state = 3) expired, count(*) FILTER (WHERE state = 4) cancelled,
  count(*) FILTER (WHERE repeat) repeats FROM paceline_result WHERE backlog = ?1) e`, id).
		Scan(&c.Ready, &c.Later, &c.Held, &c.Done, &c.Dead, &c.Expired, &c.Cancelled, &c.Repeats, &c.Total))
	return c, err
}

// Empty implements backlog.Store.
func (s *Store) Empty(ctx context.Context, id int64) (empty bool, err error) {
	err = s.wrap(s.db.QueryRowContext(ctx,
		`SELECT NOT EXISTS (SELECT 1 FROM paceline_queue WHERE backlog = ?)`, id).Scan(&empty))
	return empty, err
}

// Workers implements backlog.Store.
func (s *Store) Workers(ctx context.Context, id int64) (all []backlog.WorkerStatus, err error) {
	r, err := s.db.QueryContext(ctx, `SELECT w.id, w.host, w.pid, w.beat, w.dead, coalesce(w.ended, 0), w.results,
(SELECT count(*) FROM paceline_queue q WHERE q.worker = w.id), json_array_length(w.sending)
FROM paceline_worker w WHERE w.backlog = ? AND (w.dead = 0 OR w.results > 0 OR json_array_length(w.sending) > 0)
ORDER BY w.id`, id)
	err = s.wrap(rows(r, err, func(r *sql.Rows) error {
		var w backlog.WorkerStatus
		var ended int64
		err := r.Scan(&w.ID, &w.Host, &w.PID, &w.Beat, &w.Dead, &ended, &w.Results, &w.Held, &w.Sending)
		if ended > 0 {
			w.Ended = time.UnixMilli(ended)
		}
		all = append(all, w)
		return err
	}))
	return all, err
}

// SetPaused implements backlog.Store.
func (s *Store) SetPaused(ctx context.Context, id int64, paused bool) error {
	state := stateOpen
	if paused {
		state = statePaused
	}
	_, err := s.db.ExecContext(ctx, `UPDATE paceline_backlog SET state = ? WHERE id = ? AND state <> ?`, state, id,
		stateRemoved)
	return s.wrap(err)
}

// SetNote implements backlog.Store.
func (s *Store) SetNote(ctx context.Context, id int64, was, note []byte) (bool, error) {
	n, err := changed(s.db.ExecContext(ctx, `UPDATE paceline_backlog SET note = ? WHERE id = ? AND note IS ?`, note, id, was))
	return n == 1, s.wrap(err)
}

// Cancel implements backlog.Store.
func (s *Store) Cancel(ctx context.Context, id int64, ids []string, most int) (n int, err error) {
	query, args := `SELECT seq FROM paceline_queue WHERE backlog = ? AND worker IS NULL LIMIT ?`, []any{id, most}
	if ids != nil {
		query = `SELECT seq FROM paceline_queue WHERE worker IS NULL AND seq IN (SELECT seq FROM paceline_request
WHERE backlog = ? AND id IN (SELECT value FROM json_each(?))) LIMIT ?`
		args = []any{id, list(ids), most}
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		seqs, err := numbers(tx.QueryContext(ctx, query, args...))
		for _, seq := range seqs {
			if err == nil {
				_, err = s.endIn(ctx, tx, id, 0, time.Now().UnixMilli(),
					backlog.End{Seq: seq, State: uint8(backlog.Cancelled)})
			}
		}
		n = len(seqs)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

func numbers(r *sql.Rows, err error) ([]int64, error) {
	var all []int64
	err = rows(r, err, func(r *sql.Rows) error {
		var n int64
		err := r.Scan(&n)
		all = append(all, n)
		return err
	})
	return all, err
}

// RetryDead implements backlog.Store.
func (s *Store) RetryDead(ctx context.Context, id int64, classes []string, most int) (n int, err error) {
	query, args := `SELECT seq FROM paceline_result WHERE backlog = ? AND state = 2 LIMIT ?`, []any{id, most}
	if classes != nil {
		query = `SELECT seq FROM paceline_result WHERE backlog = ? AND state = 2
AND class IN (SELECT value FROM json_each(?)) LIMIT ?`
		args = []any{id, list(classes), most}
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		seqs, err := numbers(tx.QueryContext(ctx, query, args...))
		if err != nil {
			return err
		}
		n = len(seqs)
		for _, step := range []string{
			`INSERT INTO paceline_earlier (seq, round, class, attempts, at, line)
SELECT seq, (SELECT count(*) FROM paceline_earlier e WHERE e.seq = r.seq), class, attempts, at, line
FROM paceline_result r WHERE seq IN (SELECT value FROM json_each(?1)) AND ?2 > 0`,
			`INSERT INTO paceline_queue (seq, backlog, lane, place, deadline, doubt)
SELECT q.seq, q.backlog, q.lane, ?2, q.deadline, r.repeat OR r.unsure
FROM paceline_request q JOIN paceline_result r ON r.seq = q.seq WHERE q.seq IN (SELECT value FROM json_each(?1))`,
			`DELETE FROM paceline_result WHERE seq IN (SELECT value FROM json_each(?1)) AND ?2 > 0`,
		} {
			if _, err := tx.ExecContext(ctx, step, list(seqs), time.Now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
