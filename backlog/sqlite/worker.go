package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/paceline-go/paceline/backlog"
)

const (
	beatQuery = `UPDATE paceline_worker SET beat = beat + 1, sending = ?, results = results + ?
WHERE id = ? AND dead = 0 AND beat = ?`
	resultsQuery = `UPDATE paceline_worker SET results = results + ? WHERE id = ?`
	stateQuery   = `SELECT state FROM paceline_backlog WHERE id = ?`
	// endQuery writes a result, with the doubt of the row, if the row is there. A NULL leaves the attempts
	// as they are.
	endQuery = `INSERT INTO paceline_result (seq, backlog, state, class, repeat, unsure, attempts, worker, at, line)
SELECT seq, backlog, ?, ?, doubt OR ?, ?, coalesce(?, attempts), ?, ?, ? FROM paceline_queue WHERE seq = ? AND backlog = ?`
	goneQuery = `DELETE FROM paceline_queue WHERE seq = ?`
	backQuery = `UPDATE paceline_queue SET worker = NULL, due = ?, attempts = ?, doubt = doubt OR ?
WHERE seq = ? AND worker = ?`
	claimQuery = `UPDATE paceline_queue SET worker = ? WHERE seq IN (
SELECT seq FROM paceline_queue INDEXED BY paceline_ready
WHERE backlog = ? AND lane = ? AND worker IS NULL AND due IS NULL AND (place, seq) > (?, ?)
ORDER BY place, seq LIMIT ?) RETURNING ` + heldColumns
	heldColumns = `seq, place, lane, attempts, doubt, deadline,
(SELECT id FROM paceline_request r WHERE r.seq = paceline_queue.seq),
(SELECT data FROM paceline_request r WHERE r.seq = paceline_queue.seq)`
)

// Register implements backlog.Store.
func (s *Store) Register(ctx context.Context, id int64, host string, pid int) (b backlog.Beat, err error) {
	err = s.wrap(s.db.QueryRowContext(ctx, `INSERT INTO paceline_worker (backlog, host, pid)
SELECT id, ?, ? FROM paceline_backlog WHERE id = ? AND state <> ? RETURNING id, beat`, host, pid, id, stateRemoved).
		Scan(&b.Worker, &b.Beat))
	if errors.Is(err, sql.ErrNoRows) {
		err = s.wrap(backlog.ErrNoBacklog)
	}
	return b, err
}

// Turn implements backlog.Store.
func (s *Store) Turn(ctx context.Context, id int64, t *backlog.Turn) (o backlog.Outcome, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		now, written := time.Now().UnixMilli(), 0
		if len(t.Doubts) > 0 {
			if err := doubt(ctx, tx, id, t); err != nil {
				return err
			}
		}
		for _, e := range t.Ends {
			n, err := s.endIn(ctx, tx, id, t.Worker, now, e)
			if err != nil {
				return err
			}
			written += n
		}
		n, err := changed(tx.StmtContext(ctx, s.beat).ExecContext(ctx, list(t.Sending), written, t.Worker, t.Beat))
		if err != nil {
			return err
		}
		if o.Fits = n == 1; !o.Fits {
			_, err := tx.StmtContext(ctx, s.results).ExecContext(ctx, written, t.Worker)
			return err
		}
		var state int
		if err := tx.StmtContext(ctx, s.state).QueryRowContext(ctx, id).Scan(&state); err != nil {
			return err
		}
		o.Paused = state != stateOpen
		for _, r := range t.Returns {
			due := sql.NullInt64{Int64: now + r.Rest.Milliseconds(), Valid: r.Rest > 0}
			if _, err := tx.StmtContext(ctx, s.back).ExecContext(ctx, due, r.Attempts, r.Doubt, r.Seq, t.Worker); err != nil {
				return err
			}
		}
		if o.Paused {
			return nil
		}
		claim := tx.StmtContext(ctx, s.claim)
		for _, c := range t.Claims {
			r, err := claim.QueryContext(ctx, t.Worker, id, c.Lane, c.From.Place, c.From.Seq, c.N)
			if err := held(r, err, &o.Claimed); err != nil {
				return err
			}
		}
		return nil
	})
	return o, err
}

func doubt(ctx context.Context, tx *sql.Tx, id int64, t *backlog.Turn) error {
	_, err := tx.ExecContext(ctx, `UPDATE paceline_queue SET doubt = 1
WHERE backlog = ? AND seq IN (SELECT value FROM json_each(?))`, id, list(t.Doubts))
	if err == nil {
		_, err = tx.ExecContext(ctx, `UPDATE paceline_result SET repeat = 1
WHERE backlog = ? AND seq IN (SELECT value FROM json_each(?))`, id, list(t.Doubts))
	}
	return err
}

// endIn writes one result, and returns 1 if the row was there.
func (s *Store) endIn(ctx context.Context, tx *sql.Tx, id, worker, now int64, e backlog.End) (int, error) {
	attempts := sql.NullInt64{Int64: int64(e.Attempts), Valid: worker != 0}
	n, err := changed(tx.StmtContext(ctx, s.end).ExecContext(ctx, e.State, e.Class, e.Doubt, e.Unsure, attempts, worker,
		now, e.Line, e.Seq, id))
	if n == 1 && err == nil {
		_, err = tx.StmtContext(ctx, s.gone).ExecContext(ctx, e.Seq)
	}
	return n, err
}

// held reads rows of heldColumns.
func held(r *sql.Rows, err error, all *[]backlog.Claimed) error {
	return rows(r, err, func(r *sql.Rows) error {
		var c backlog.Claimed
		if err := r.Scan(&c.Seq, &c.Place.Place, &c.Lane, &c.Attempts, &c.Doubt, &c.Deadline, &c.ID, &c.Data); err != nil {
			return err
		}
		*all = append(*all, c)
		return nil
	})
}

// Read implements backlog.Store.
func (s *Store) Read(ctx context.Context, worker int64) (row backlog.Row, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		var sending string
		err := tx.QueryRowContext(ctx, `SELECT beat, dead, sending FROM paceline_worker WHERE id = ?`, worker).
			Scan(&row.Beat, &row.Dead, &sending)
		if errors.Is(err, sql.ErrNoRows) {
			row.Dead, row.Beat = true, -1
			return nil
		}
		if err == nil {
			err = json.Unmarshal([]byte(sending), &row.Sending)
		}
		if err != nil {
			return err
		}
		r, err := tx.QueryContext(ctx, `SELECT `+heldColumns+` FROM paceline_queue WHERE worker = ?`, worker)
		return held(r, err, &row.Held)
	})
	return row, err
}

// Look implements backlog.Store.
func (s *Store) Look(ctx context.Context, id int64) (all []backlog.Beat, err error) {
	r, err := s.db.QueryContext(ctx, `SELECT id, beat FROM paceline_worker WHERE backlog = ? AND dead = 0`, id)
	err = s.wrap(rows(r, err, func(r *sql.Rows) error {
		var b backlog.Beat
		err := r.Scan(&b.Worker, &b.Beat)
		all = append(all, b)
		return err
	}))
	return all, err
}

// GiveUp implements backlog.Store.
func (s *Store) GiveUp(ctx context.Context, b backlog.Beat) (done bool, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		var sending string
		err := tx.QueryRowContext(ctx, `UPDATE paceline_worker SET dead = 1, ended = ? WHERE id = ? AND beat = ?
AND dead = 0 RETURNING sending`, time.Now().UnixMilli(), b.Worker, b.Beat).Scan(&sending)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		done = true
		_, err = tx.ExecContext(ctx, `UPDATE paceline_queue SET worker = NULL,
attempts = attempts + (seq IN (SELECT value FROM json_each(?1))),
doubt = doubt OR seq IN (SELECT value FROM json_each(?1)) WHERE worker = ?2`, sending, b.Worker)
		return err
	})
	return done && err == nil, err
}

// Wake implements backlog.Store.
func (s *Store) Wake(ctx context.Context, id int64) error {
	now := time.Now().UnixMilli()
	var due bool
	if err := s.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM paceline_queue WHERE backlog = ? AND due <= ?)`,
		id, now).Scan(&due); err != nil || !due {
		return s.wrap(err)
	}
	_, err := s.db.ExecContext(ctx, `UPDATE paceline_queue SET due = NULL WHERE backlog = ? AND due <= ?`, id, now)
	return s.wrap(err)
}
