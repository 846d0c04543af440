// Package paceriver keeps the jobs of River within the limits of the servers that they call.
//
//	pace, err := paceriver.New(paceriver.Config{
//		Key:     func(job *rivertype.JobRow) string { return gjson.GetBytes(job.EncodedArgs, "tenant").String() },
//		Limiter: func(tenant string) (limit.Limiter, error) { return limit.NewRolling(limit.RollingConfig{…}) },
//	})
//	client, err := river.NewClient(driver, &river.Config{Middleware: []rivertype.Middleware{pace}, …})
//
//	func (w *CallWorker) Work(ctx context.Context, job *river.Job[CallArgs]) error {
//		resp, verdict, err := paceriver.Send(ctx, http.DefaultClient, request)
//		…
//	}
//
// If the limit of a job is expected to let it go within Config.MaxWait, the job waits in its worker
// of River. (MaxWait is 250 ms by default, and at least 500 ms with a share.Member.) Otherwise the
// middleware returns a river.JobSnooze until about the instant at which the limit lets the job go.
// The worker is then free for other jobs. A snooze does not count as an attempt of River. A job
// whose cost never fits the limit gets an error, a *paceline.WaitError.
//
// After a server refused the request of a job, all jobs of the same key in this process pause. The
// pause lasts as long as the server asked for, or else as Config.Backoff states. The package learns
// of the refusal from Send or Answered. If the worker's function then returns an error, River runs
// the refused job again when the limit has room for it. If the server refuses several requests that
// were in flight together, they cause one pause.
//
// River decides whether a job runs, and how often. After a crash, River runs the interrupted job
// again, so its request may be sent twice. Neither River nor package paceriver reports such a
// repeat. docs/queues.md compares the promises with those of `paceline run`.
//
// Package paceriver is a module of its own: a program that imports Paceline but not paceriver does
// not download River. Package paceriver starts no goroutine, so nothing has to be closed.
package paceriver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/paceline-go/paceline/internal/queued"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Config describes the limits of a River client's jobs. Only Limiter has no default.
type Config struct {
	// Limiter makes the server's rule for a key: once, and again if nothing of the key counted any more
	// and there were over a thousand keys. The limiter belongs to the Pace. A share.Member makes many processes share the limit. If it returns
	// nil and no error, the key has no limit of its own, and follows those in answers.
	Limiter func(key string) (limit.Limiter, error)
	// Key names the limit in which a job counts: a tenant, a credential, a model. A job with the key
	// "" is worked at once and counts nowhere. If Key is nil, all jobs have one key, "all".
	Key func(*rivertype.JobRow) string
	// Cost is the cost of a job's request. If nil, one request.
	Cost func(*rivertype.JobRow) limit.Cost
	// MaxWait is the longest time that a job waits in its worker. If zero, 250 ms. It should be more
	// than the FetchPollInterval of the client, by which jobs come back late. With a share.Member it is
	// at least 500 ms, in which room is fetched.
	MaxWait time.Duration
	// Spread is the least time between two jobs of a key that come back from a nap, so that they do
	// not take all workers at once. If zero, 10 ms, or the limit's time for a job if that is less.
	Spread time.Duration
	// Backoff is the pause of a key after a refusal that states no time.
	Backoff backoff.Policy
	// Dialect reads the answers: see provider.Lookup. If nil, the host of each request decides.
	Dialect provider.Dialect
}

// Pace is a rivertype.WorkerMiddleware. New makes it. Safe for concurrent use; several clients may
// share it.
type Pace struct {
	river.MiddlewareDefaults
	config Config
	keys   *queued.Keys
}

var _ rivertype.WorkerMiddleware = (*Pace)(nil)

// New returns a Pace as configured. The error names the wrong field and its value.
func New(c Config) (*Pace, error) {
	keys, err := queued.New(queued.Config{Limiter: c.Limiter, MaxWait: c.MaxWait, Spread: c.Spread, Backoff: c.Backoff, Dialect: c.Dialect})
	if err != nil {
		return nil, fmt.Errorf("paceriver: %w", err)
	}
	if c.Key == nil {
		c.Key = func(*rivertype.JobRow) string { return "all" }
	}
	if c.Cost == nil {
		c.Cost = func(*rivertype.JobRow) limit.Cost { return limit.One }
	}
	return &Pace{config: c, keys: keys}, nil
}

// Work works a job at its turn, or lets River snooze it. A job without a turn in its time has the
// error of the limit, a *paceline.WaitError, and River tries it again by its own policy.
func (p *Pace) Work(ctx context.Context, job *rivertype.JobRow, work func(context.Context) error) error {
	key := p.config.Key(job)
	if key == "" {
		return work(ctx)
	}
	err := p.keys.Do(ctx, queued.Job{
		ID: strconv.FormatInt(job.ID, 10), Key: key, Came: job.CreatedAt, Order: job.ID, Cost: p.config.Cost(job),
	}, work)
	if later, ok := errors.AsType[*queued.Later](err); ok {
		return river.JobSnooze(later.In)
	}
	return err
}

// Stats returns what the jobs of a key did in this process, and how many of them are away. The zero
// Stats: no job of the key came so far.
func (p *Pace) Stats(key string) (s observe.Stats, away int) {
	s, away, _ = p.keys.Stats(key)
	return s, away
}

// Send sends the request of a job by client, and settles the job's turn by the answer. ctx is that of
// Worker.Work. A refused request has an answer and no error; if verdict.Again is true, the worker
// returns an error, whichever it likes, and the job comes back at its turn. A second Send in a job
// waits for another turn, in the worker.
func Send(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, classify.Verdict, error) {
	a, err := queued.From(ctx)
	if err != nil {
		return nil, classify.Verdict{}, fmt.Errorf("paceriver: Send: %w", err)
	}
	return a.Send(client, r)
}

// Answered settles the turn of a job whose worker sends by itself. evidence is of its answer: see
// classify.From. Without a Send and without Answered a job settles when it ends: as accepted, or
// with an error as unknown.
func Answered(ctx context.Context, evidence *classify.Evidence) (classify.Verdict, error) {
	a, err := queued.From(ctx)
	if err != nil {
		return classify.Verdict{}, fmt.Errorf("paceriver: Answered: %w", err)
	}
	return a.Answered(evidence), nil
}
