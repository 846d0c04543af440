package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/paceline-go/paceline/backlog"
)

const (
	// settings are for one transaction. The planner knows too little of a table that was just filled, and
	// would sort all of it for each claim. Plans that are forbidden seem so costly that it would compile
	// them. One plan does for all arguments, and to plan anew is half of what a small turn costs.
	settings = `SELECT set_config('synchronous_commit', 'on', true), set_config('jit', 'off', true),
set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
set_config('enable_sort', 'off', true), set_config('enable_hashjoin', 'off', true),
set_config('enable_mergejoin', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)`
	// beat says in paceline.fits whether the turn fits: 0 no, 1 while the backlog is paused, 2 yes. What
	// follows in the transaction reads that: the client decides nothing in between.
	beat = `WITH fits AS (UPDATE paceline_worker SET beat = beat + 1, sending = $3
  WHERE id = $1 AND NOT dead AND beat = $2 RETURNING 1)
SELECT set_config('paceline.fits', CASE WHEN NOT EXISTS (SELECT FROM fits) THEN '0'
  WHEN (SELECT state FROM paceline_backlog WHERE id = $4) = 0 THEN '2' ELSE '1' END, true)`
	// doubtRows and doubtResults are for a store that went back in time.
	doubtRows    = `UPDATE paceline_queue SET doubt = true WHERE backlog = $1 AND seq = ANY ($2)`
	doubtResults = `UPDATE paceline_result SET repeat = true WHERE backlog = $1 AND seq = ANY ($2)`
	// end deletes the rows that are there, and writes their results with their doubts. The deleted rows bring
	// what else is in e: a join with e again would be a loop in a loop, since the other joins are off.
	end = `WITH d AS (DELETE FROM paceline_queue q USING unnest($3::bigint[], $4::smallint[], $5::text[], $6::boolean[],
  $7::boolean[], $8::int[], $9::bytea[]) e (seq, state, class, doubt, unsure, attempts, line)
  WHERE q.seq = e.seq AND q.backlog = $1
  RETURNING q.seq, e.state, e.class, q.doubt OR e.doubt AS repeat, e.unsure, e.attempts, e.line),
i AS (INSERT INTO paceline_result (backlog, seq, state, class, repeat, unsure, attempts, worker, at, line)
  SELECT $1, d.seq, d.state, d.class, d.repeat, d.unsure, d.attempts, $2, ` + clock + `, d.line FROM d RETURNING 1)
UPDATE paceline_worker SET results = results + (SELECT count(*) FROM i) WHERE id = $2 AND EXISTS (SELECT FROM i)`
	giveBack = `UPDATE paceline_queue q SET worker = NULL, attempts = r.attempts, doubt = q.doubt OR r.doubt,
  due = CASE WHEN r.rest > 0 THEN ` + clock + ` + r.rest END
FROM unnest($2::bigint[], $3::int[], $4::boolean[], $5::bigint[]) r (seq, attempts, doubt, rest)
WHERE q.seq = r.seq AND q.worker = $1 AND current_setting('paceline.fits', true) <> '0'`
	// claim takes the first of each lane, by a look into the index for each.
	claim = `WITH c AS MATERIALIZED (SELECT f.seq
  FROM unnest($2::int[], $3::bigint[], $4::bigint[], $5::bigint[]) l (lane, place, seq, n), LATERAL (
    SELECT q.seq FROM paceline_queue q WHERE q.backlog = $1 AND q.lane = l.lane AND q.worker IS NULL AND q.due IS NULL
    AND (q.place, q.seq) > (l.place, l.seq) AND current_setting('paceline.fits', true) = '2'
    ORDER BY q.place, q.seq LIMIT l.n FOR UPDATE SKIP LOCKED) f),
u AS (UPDATE paceline_queue q SET worker = $6 FROM c WHERE q.seq = c.seq RETURNING q.*)
SELECT ` + heldColumns + ` FROM u q JOIN paceline_request r ON r.seq = q.seq`
	// giveUp reads what the worker was sending into a hash: as an array it would be read again for each of its rows.
	giveUp = `WITH gone AS (UPDATE paceline_worker SET dead = true, ended = ` + clock + `
  WHERE id = $1 AND beat = $2 AND NOT dead RETURNING id, sending),
free AS (UPDATE paceline_queue q SET worker = NULL,
  attempts = q.attempts + (q.seq IN (SELECT unnest(sending) FROM gone))::int,
  doubt = q.doubt OR q.seq IN (SELECT unnest(sending) FROM gone) FROM gone WHERE q.worker = gone.id)
SELECT EXISTS (SELECT FROM gone)`
	heldColumns = `q.seq, q.place, q.lane, q.attempts, q.doubt, q.deadline, r.id, r.data`
)

// Register implements backlog.Store.
func (s *Store) Register(ctx context.Context, id int64, host string, pid int) (b backlog.Beat, err error) {
	// A standby that takes over may give numbers of the sequence again.
	err = s.pool.QueryRow(ctx, `INSERT INTO paceline_worker (id, backlog, host, pid)
SELECT nextval(pg_get_serial_sequence('paceline_worker', 'id')) * 1000 + floor(random() * 1000)::bigint, id, $2::text,
  $3::bigint FROM paceline_backlog WHERE id = $1 AND state <> $4 RETURNING id, beat`,
		id, host, pid, stateRemoved).Scan(&b.Worker, &b.Beat)
	return b, notFound(err)
}

// Turn implements backlog.Store.
func (s *Store) Turn(ctx context.Context, id int64, t *backlog.Turn) (o backlog.Outcome, err error) {
	var b pgx.Batch
	b.Queue(settings)
	sending := t.Sending
	if sending == nil {
		sending = []int64{}
	}
	b.Queue(beat, t.Worker, t.Beat, sending, id).QueryRow(func(row pgx.Row) error {
		var fits string
		err := row.Scan(&fits)
		o.Fits, o.Paused = fits != "0", fits == "1"
		return err
	})
	if len(t.Doubts) > 0 {
		b.Queue(doubtRows, id, t.Doubts)
		b.Queue(doubtResults, id, t.Doubts)
	}
	if len(t.Ends) > 0 {
		b.Queue(end, endsOf(id, t.Worker, t.Ends)...)
	}
	if len(t.Returns) > 0 {
		b.Queue(giveBack, returnsOf(t.Worker, t.Returns)...)
	}
	if len(t.Claims) > 0 {
		b.Queue(claim, claimsOf(id, t.Worker, t.Claims)...).Query(func(rows pgx.Rows) (err error) {
			o.Claimed, err = collect(rows, nil, held)
			return err
		})
	}
	if err := s.send(ctx, &b); err != nil {
		return backlog.Outcome{}, wrap(err)
	}
	return o, nil
}

func (s *Store) send(ctx context.Context, b *pgx.Batch) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	if err := s.prepare(ctx, c.Conn(), b); err != nil {
		return err
	}
	return c.SendBatch(ctx, b).Close()
}

// prepare has the database parse and plan each statement of turns once a connection. A prepared statement belongs to
// one process of the database. Behind a pooler that process changes, and its number is not that of the connection.
func (s *Store) prepare(ctx context.Context, c *pgx.Conn, b *pgx.Batch) error {
	if s.mode {
		return nil
	}
	const key = "paceline direct"
	data := c.PgConn().CustomData()
	direct, known := data[key].(bool)
	if !known {
		var pid uint32
		if err := c.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		direct = pid == c.PgConn().PID()
		data[key] = direct
	}
	if !direct {
		return nil
	}
	for _, q := range b.QueuedQueries {
		if _, err := c.Prepare(ctx, q.SQL, q.SQL); err != nil {
			return err
		}
	}
	return nil
}

// endsOf returns the arguments of end.
func endsOf(id, worker int64, ends []backlog.End) []any {
	n := len(ends)
	seqs, states, classes, lines := make([]int64, n), make([]int16, n), make([]string, n), make([][]byte, n)
	doubts, unsures, attempts := make([]bool, n), make([]bool, n), make([]int32, n)
	for i, e := range ends {
		seqs[i], states[i], classes[i], lines[i] = e.Seq, int16(e.State), e.Class, e.Line
		doubts[i], unsures[i], attempts[i] = e.Doubt, e.Unsure, int32(e.Attempts)
	}
	return []any{id, worker, seqs, states, classes, doubts, unsures, attempts, lines}
}

// returnsOf returns the arguments of giveBack.
func returnsOf(worker int64, returns []backlog.Return) []any {
	n := len(returns)
	seqs, attempts, doubts, rests := make([]int64, n), make([]int32, n), make([]bool, n), make([]int64, n)
	for i, r := range returns {
		seqs[i], attempts[i], doubts[i], rests[i] = r.Seq, int32(r.Attempts), r.Doubt, r.Rest.Milliseconds()
	}
	return []any{worker, seqs, attempts, doubts, rests}
}

// claimsOf returns the arguments of claim.
func claimsOf(id, worker int64, claims []backlog.Claim) []any {
	n := len(claims)
	lanes, places, seqs, most := make([]int32, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i, c := range claims {
		lanes[i], places[i], seqs[i], most[i] = c.Lane, c.From.Place, c.From.Seq, int64(c.N)
	}
	return []any{id, lanes, places, seqs, most, worker}
}

// held reads a row of heldColumns.
func held(scan func(...any) error) (c backlog.Claimed, err error) {
	err = scan(&c.Seq, &c.Place.Place, &c.Lane, &c.Attempts, &c.Doubt, &c.Deadline, &c.ID, &c.Data)
	return c, err
}

// Read implements backlog.Store.
func (s *Store) Read(ctx context.Context, worker int64) (row backlog.Row, err error) {
	one := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly} // both statements see one instant
	err = pgx.BeginTxFunc(ctx, s.pool, one, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `SELECT beat, dead, sending FROM paceline_worker WHERE id = $1`, worker).
			Scan(&row.Beat, &row.Dead, &row.Sending)
		if errors.Is(err, pgx.ErrNoRows) {
			row.Dead, row.Beat = true, -1
			return nil
		}
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `SELECT `+heldColumns+` FROM paceline_queue q JOIN paceline_request r ON r.seq = q.seq
WHERE q.worker = $1`, worker)
		row.Held, err = collect(rows, err, held)
		return err
	})
	return row, wrap(err)
}

// Look implements backlog.Store.
func (s *Store) Look(ctx context.Context, id int64) ([]backlog.Beat, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, beat FROM paceline_worker WHERE backlog = $1 AND NOT dead`, id)
	return collect(rows, err, func(scan func(...any) error) (b backlog.Beat, err error) {
		err = scan(&b.Worker, &b.Beat)
		return b, err
	})
}

// GiveUp implements backlog.Store.
func (s *Store) GiveUp(ctx context.Context, b backlog.Beat) (done bool, err error) {
	err = s.pool.QueryRow(ctx, giveUp, b.Worker, b.Beat).Scan(&done)
	return done && err == nil, wrap(err)
}

// Wake implements backlog.Store.
func (s *Store) Wake(ctx context.Context, id int64) error {
	_, err := s.exec(ctx, `UPDATE paceline_queue SET due = NULL WHERE backlog = $1 AND due <= `+clock, id)
	return err
}
