// Package likerun is an example of jobs in the job queue River that are sent, repeated and recorded
// almost as by `paceline run`. A job contains one line of the input of `paceline run`: one request.
// Before each send, the worker writes a mark to the database. So after a crash, the next attempt of
// the job finds the mark, and its result states that the request may have been sent twice. The
// result is written in the transaction that completes the job. docs/queues.md lists what is weaker
// than in `paceline run`.
//
//	likerun.go    the jobs, the worker, the client
//	database.go   marks and results, in PostgreSQL or SQLite
//
// The example likerun is a module of its own, in this folder of the repository, and not for import
// by other programs. It reads and writes lines by an internal package of `paceline run`, which a
// module outside this repository cannot import.
package likerun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	paceriver "github.com/paceline-go/paceline/contrib/river"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider/classify"
)

// Args is a job with a line of the input.
type Args struct {
	Line string `json:"line"`
}

func (Args) Kind() string { return "line" }

// Jobs returns a job for each line of an input of `run`. Each has the attempts that run gives it.
func Jobs(in io.Reader) (jobs []river.InsertManyParams, err error) {
	lines := format.NewReader(format.Plain{}, "input", in, format.InputLimits{})
	for {
		r, err := lines.Next()
		switch {
		case err == io.EOF:
			return jobs, nil
		case err != nil:
			return nil, err
		}
		jobs = append(jobs, river.InsertManyParams{Args: Args{string(r.Raw)}, InsertOpts: &river.InsertOpts{MaxAttempts: 5}})
	}
}

// worker sends the request of a line, and keeps its result.
type worker struct {
	river.WorkerDefaults[Args]
	db     Database
	client *http.Client
}

// NextRetry is the backoff of `run`, in place of River's hours.
func (*worker) NextRetry(job *river.Job[Args]) time.Time {
	return time.Now().Add(backoff.Policy{}.Delay(job.Attempt, nil))
}

func (w *worker) Work(ctx context.Context, job *river.Job[Args]) error {
	r, err := format.NewReader(format.Plain{}, "job", bytes.NewReader([]byte(job.Args.Line)), format.InputLimits{}).Next()
	if err != nil {
		return river.JobCancel(err)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return river.JobCancel(err)
	}
	request.Header = r.Header
	if due, err := w.mark(ctx, job.ID); err != nil || !due {
		return err
	}
	began := time.Now()
	resp, verdict, err := paceriver.Send(ctx, w.client, request)
	var body []byte
	if resp != nil {
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	text := string(body)
	result := &format.Result{ID: r.ID, State: "done", Status: verdict.Status,
		LatencyMS: format.Milliseconds(time.Since(began)), At: format.Stamp(time.Now()), Body: &text}
	switch served := verdict.Result == limit.Accepted && err == nil; {
	case served:
	case verdict.Result == limit.Limited && verdict.Again: // it comes back at its turn, and this is no attempt of River's
		return w.again(ctx, job.ID, &verdict, errors.New("refused"))
	case verdict.Again && job.Attempt < job.MaxAttempts:
		return w.again(ctx, job.ID, &verdict, fmt.Errorf("answered %d, %v", verdict.Status, err))
	default:
		result.State, result.Class = "dead", format.DeadClassOfStatus(verdict.Status).String()
		result.Error, result.Request = verdict.Why, r.Raw
	}
	return w.keep(ctx, job, result)
}

// mark notes, before a send, that one is made. due is false if another attempt has the result. Where the
// answer to an earlier send is not known, the request may have been served before.
func (w *worker) mark(ctx context.Context, job int64) (due bool, err error) {
	err = w.db.in(ctx, func(tx statements) (err error) {
		var sends int
		due, err = tx.row(ctx, []any{&sends}, `INSERT INTO call_mark (job, sends, refused, open, doubt, done)
			VALUES ($1, 1, 0, true, false, false)
			ON CONFLICT (job) DO UPDATE SET sends = call_mark.sends + 1, doubt = call_mark.doubt OR call_mark.open, open = true
			WHERE NOT call_mark.done RETURNING sends`, job)
		return err
	})
	return due, err
}

// again closes the mark of a send whose answer proves that it was not served, and returns why the job comes
// back.
func (w *worker) again(ctx context.Context, job int64, v *classify.Verdict, why error) error {
	refused := 0
	if v.Result == limit.Limited {
		refused = 1
	}
	err := w.db.in(ctx, func(tx statements) error {
		return tx.exec(ctx, `UPDATE call_mark SET open = open AND $2, refused = refused + $3 WHERE job = $1`, job, v.Doubt, refused)
	})
	return errors.Join(why, err)
}

// keep writes the result in the transaction that completes the job, unless another attempt did.
func (w *worker) keep(ctx context.Context, job *river.Job[Args], result *format.Result) error {
	return w.db.in(ctx, func(tx statements) error {
		first, err := tx.row(ctx, []any{&result.PossibleRepeat, &result.Attempts, &result.Refused},
			`UPDATE call_mark SET done = true WHERE job = $1 AND NOT done RETURNING doubt, sends, refused`, job.ID)
		if err != nil || !first {
			return err
		}
		line := format.Plain{}.Line(nil, result)
		if err := tx.exec(ctx, `INSERT INTO call_result (job, line) VALUES ($1, $2)`, job.ID, string(line)); err != nil {
			return err
		}
		if err := tx.complete(ctx, job); !errors.Is(err, rivertype.ErrNotFound) {
			return err
		}
		return nil // River gave the job to another attempt meanwhile, which finds the result
	})
}

// NewClient returns a client that works lines of run's input within a limit.
func NewClient[T any](driver riverdriver.Driver[T], db Database, c *http.Client, own limit.Limiter) (*river.Client[T], error) {
	pace, err := paceriver.New(paceriver.Config{Limiter: func(string) (limit.Limiter, error) { return own, nil }})
	if err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{db: db, client: c})
	return river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers:           workers,
		Middleware:        []rivertype.Middleware{pace},
		FetchCooldown:     5 * time.Millisecond,
		FetchPollInterval: 50 * time.Millisecond,
		// A worker that was killed leaves its jobs for this long, and for up to 30 s more.
		JobTimeout:           5 * time.Second,
		RescueStuckJobsAfter: 6 * time.Second,
		Logger:               slog.New(slog.DiscardHandler),
	})
}
