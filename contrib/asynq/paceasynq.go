// Package paceasynq keeps the tasks of Asynq within the limits of the servers that they call.
//
//	pace, err := paceasynq.New(paceasynq.Config{
//		Key:     func(_ context.Context, task *asynq.Task) string { return task.Headers()["tenant"] },
//		Limiter: func(tenant string) (limit.Limiter, error) { return limit.NewRolling(limit.RollingConfig{…}) },
//	})
//	server := asynq.NewServer(redis, pace.Configure(asynq.Config{Concurrency: 10}))
//	mux := asynq.NewServeMux()
//	mux.Use(pace.Middleware)
//
//	func call(ctx context.Context, task *asynq.Task) error {
//		resp, verdict, err := paceasynq.Send(ctx, http.DefaultClient, request)
//		…
//	}
//
// If the limit of a task is expected to let it go within Config.MaxWait (a second by default), the
// task waits in its worker of Asynq. For any other task the middleware returns an error, and Asynq
// schedules the task for about the instant at which the limit lets it go. The worker is then free,
// and Asynq counts no failure. This needs Pace.Configure: without it, Asynq counts the error as a
// failure like any other. A task whose Config.Key is empty waits for no limit.
//
// After a server refused the request of a task, no task of the same key in this process goes until
// a pause is over. The pause lasts as long as the server asked for, or else as Config.Backoff
// states. The package learns of the refusal from Send or Answered. If the server refuses several
// requests that were in flight together, they cause one pause. The refused task comes back if its
// handler returns an error.
//
// Asynq stores instants in whole seconds, so a scheduled task comes back up to about half a second
// before or after the planned instant. If it comes too early, it waits again. A task that has no
// retry left always waits in its worker, since Asynq would archive the task otherwise. Tasks of a
// key go in the order in which they first came to this process, since a task does not state when it
// was made. A newer task goes first only if there is room for the older ones, too, or if these come
// back late. docs/queues.md compares the promises with those of `paceline run`.
//
// Package paceasynq is a module of its own, so that programs that import Paceline but not Asynq do
// not depend on Asynq. Package paceasynq starts no goroutine.
package paceasynq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hibiken/asynq"

	"github.com/paceline-go/paceline/internal/queued"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Config describes the limits of a server's tasks. Only Limiter has no default.
type Config struct {
	// Limiter makes the server's rule for a key: once, and again if nothing of the key counted any more
	// and there were over a thousand keys. The limiter belongs to the Pace. A share.Member makes many processes share the limit. If it returns
	// nil and no error, the key has no limit of its own, and follows those in answers.
	Limiter func(key string) (limit.Limiter, error)
	// Key names the limit in which a task counts: a tenant, a credential, a model. A task with the
	// key "" is worked at once and counts nowhere. If Key is nil, all tasks have one key, "all".
	Key func(context.Context, *asynq.Task) string
	// Cost is the cost of a task's request. If nil, one request.
	Cost func(context.Context, *asynq.Task) limit.Cost
	// MaxWait is the longest time that a task waits in its worker. If zero, a second, since Asynq
	// brings tasks back by whole seconds.
	MaxWait time.Duration
	// Spread is the least time between two tasks of a key that come back. If zero, 10 ms, or the
	// limit's time for a task if that is less.
	Spread time.Duration
	// Backoff is the pause of a key after a refusal that states no time.
	Backoff backoff.Policy
	// Dialect reads the answers: see provider.Lookup. If nil, the host of each request decides.
	Dialect provider.Dialect
}

// Pace has the limits of all keys. New makes it. Safe for concurrent use; several servers may share it.
type Pace struct {
	config Config
	keys   *queued.Keys
}

// New returns a Pace as configured. The error names the wrong field and its value.
func New(c Config) (*Pace, error) {
	if c.MaxWait == 0 {
		c.MaxWait = time.Second
	}
	keys, err := queued.New(queued.Config{
		Limiter: c.Limiter, MaxWait: c.MaxWait, Spread: c.Spread, Backoff: c.Backoff, Dialect: c.Dialect,
	})
	if err != nil {
		return nil, fmt.Errorf("paceasynq: %w", err)
	}
	if c.Key == nil {
		c.Key = func(context.Context, *asynq.Task) string { return "all" }
	}
	if c.Cost == nil {
		c.Cost = func(context.Context, *asynq.Task) limit.Cost { return limit.One }
	}
	return &Pace{config: c, keys: keys}, nil
}

// Configure returns a server's configuration that puts tasks off as the middleware asks. IsFailure,
// RetryDelayFunc and ErrorHandler of c decide about all other errors. If DelayedTaskCheckInterval or
// TaskCheckInterval is zero, it becomes 100 ms: with Asynq's own 5 s and 1 s, tasks come back so late
// that a limit of seconds is used in part only.
func (p *Pace) Configure(c asynq.Config) asynq.Config {
	isFailure, delay, handler := c.IsFailure, c.RetryDelayFunc, c.ErrorHandler
	if delay == nil {
		delay = asynq.DefaultRetryDelayFunc
	}
	c.IsFailure = func(err error) bool {
		switch {
		case later(err) != nil:
			return false
		case isFailure != nil:
			return isFailure(err)
		}
		return err != nil
	}
	c.RetryDelayFunc = func(n int, err error, task *asynq.Task) time.Duration {
		if l := later(err); l != nil {
			return whole(time.Now(), l.In)
		}
		return delay(n, err, task)
	}
	if handler != nil {
		c.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, task *asynq.Task, err error) {
			if later(err) == nil {
				handler.HandleError(ctx, task, err)
			}
		})
	}
	if c.DelayedTaskCheckInterval == 0 {
		c.DelayedTaskCheckInterval = 100 * time.Millisecond
	}
	if c.TaskCheckInterval == 0 {
		c.TaskCheckInterval = 100 * time.Millisecond
	}
	return c
}

// whole lengthens a delay so that it ends with a second of the clock. Asynq cuts off the rest of the
// second, and a task that comes back too early is put off again, by nothing.
func whole(now time.Time, d time.Duration) time.Duration {
	end := now.Add(d)
	if t := end.Truncate(time.Second); !t.Equal(end) {
		end = t.Add(time.Second)
	}
	return end.Sub(now)
}

// later returns the error of a task that was put off, or nil.
func later(err error) *queued.Later {
	l, _ := errors.AsType[*queued.Later](err)
	return l
}

// Middleware is an asynq.MiddlewareFunc. It works a task at its turn, or puts it off. A task without a
// turn in its time has the error of the limit, a *paceline.WaitError, and Asynq retries it as any other.
func (p *Pace) Middleware(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		key := p.config.Key(ctx, task)
		if key == "" {
			return next.ProcessTask(ctx, task)
		}
		id, _ := asynq.GetTaskID(ctx)
		retried, _ := asynq.GetRetryCount(ctx)
		most, _ := asynq.GetMaxRetry(ctx)
		return p.keys.Do(ctx, queued.Job{ID: id, Key: key, Cost: p.config.Cost(ctx, task), Stays: retried >= most},
			func(ctx context.Context) error { return next.ProcessTask(ctx, task) })
	})
}

// Stats returns what the tasks of a key did in this process, and how many of them are put off. The zero
// Stats: no task of the key came so far.
func (p *Pace) Stats(key string) (s observe.Stats, away int) {
	s, away, _ = p.keys.Stats(key)
	return s, away
}

// Send sends the request of a task by client, and settles the task's turn by the answer. ctx is that of
// the handler. A refused request has an answer and no error; if verdict.Again is true, the handler
// returns an error, whichever it likes, and the task comes back at its turn. A second Send in a task
// waits for another turn, in the worker.
func Send(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, classify.Verdict, error) {
	a, err := queued.From(ctx)
	if err != nil {
		return nil, classify.Verdict{}, fmt.Errorf("paceasynq: Send: %w", err)
	}
	return a.Send(client, r)
}

// Answered settles the turn of a task whose handler sends by itself. evidence is of its answer: see
// classify.From. Without a Send and without Answered a task settles when it ends: as accepted, or with
// an error as unknown.
func Answered(ctx context.Context, evidence *classify.Evidence) (classify.Verdict, error) {
	a, err := queued.From(ctx)
	if err != nil {
		return classify.Verdict{}, fmt.Errorf("paceasynq: Answered: %w", err)
	}
	return a.Answered(evidence), nil
}
