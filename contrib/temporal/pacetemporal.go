// Package pacetemporal keeps the activities of Temporal within the limits of the servers that they
// call.
//
//	pace, err := pacetemporal.New(pacetemporal.Config{
//		Key:     func(_ context.Context, _ activity.Info, args []any) string { return args[0].(Call).Tenant },
//		Limiter: func(tenant string) (limit.Limiter, error) { return limit.NewRolling(limit.RollingConfig{…}) },
//	})
//	w := worker.New(client, "calls", worker.Options{Interceptors: []interceptor.WorkerInterceptor{pace}})
//
//	func Call(ctx context.Context, call Call) (Result, error) {
//		resp, verdict, err := pacetemporal.Send(ctx, http.DefaultClient, request)
//		…
//	}
//
// If the limit of an activity is expected to let it go within Config.MaxWait, the activity waits in
// its worker. (MaxWait is 250 ms by default, and at least 500 ms with a share.Member.) Otherwise
// the interceptor ends the attempt with an ApplicationError of the type Later ("PacelineLater").
// The error's NextRetryDelay is about the time until the limit lets the activity go. The worker is
// then free, and Temporal starts the activity again after that delay.
//
// After a server refused the request of an activity, all activities of the same key in this process
// pause. The pause lasts as long as the server asked for, or else as Config.Backoff states. The
// package learns of the refusal from Send or Answered. If the activity then returns an error,
// Temporal starts it again when the limit has room for it. If the server refuses several requests
// that were in flight together, they cause one pause.
//
// Temporal counts an attempt that ended with the error Later ("not yet") like any other attempt. So
// leave RetryPolicy.MaximumAttempts at 0, and bound the time of the activity by its
// ScheduleToCloseTimeout. If you do set MaximumAttempts, the last attempt waits in its worker, and
// StartToCloseTimeout must be long enough for this wait. A local activity always waits in its
// worker. docs/queues.md compares the promises with those of `paceline run`.
//
// Package pacetemporal is a module of its own, so that programs that import Paceline but not
// Temporal do not depend on Temporal. Package pacetemporal starts no goroutine.
package pacetemporal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/paceline-go/paceline/internal/queued"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Later is the type of the ApplicationError of an attempt that ended before its turn. Its category is
// benign: Temporal counts it in no metric of failures.
const Later = "PacelineLater"

// Config describes the limits of a worker's activities. Only Limiter has no default.
type Config struct {
	// Limiter makes the server's rule for a key: once, and again if nothing of the key counted any more
	// and there were over a thousand keys. The limiter belongs to the Pace. A share.Member makes many processes share the limit. If it returns
	// nil and no error, the key has no limit of its own, and follows those in answers.
	Limiter func(key string) (limit.Limiter, error)
	// Key names the limit in which an activity counts: a tenant, a credential, a model. An activity
	// with the key "" is run at once and counts nowhere. If Key is nil, all have one key, "all".
	Key func(ctx context.Context, info activity.Info, args []any) string
	// Cost is the cost of an activity's request. If nil, one request.
	Cost func(ctx context.Context, info activity.Info, args []any) limit.Cost
	// MaxWait is the longest time that an activity waits in its worker. If zero, 250 ms.
	// With a share.Member it is at least 500 ms, in which room is fetched.
	MaxWait time.Duration
	// Spread is the least time between two activities of a key that come back. If zero, 10 ms, or the
	// limit's time for an activity if that is less.
	Spread time.Duration
	// Backoff is the pause of a key after a refusal that states no time.
	Backoff backoff.Policy
	// Dialect reads the answers: see provider.Lookup. If nil, the host of each request decides.
	Dialect provider.Dialect
}

// Pace is an interceptor.WorkerInterceptor. New makes it. Safe for concurrent use; several workers may
// share it.
type Pace struct {
	interceptor.WorkerInterceptorBase
	config Config
	keys   *queued.Keys
}

// New returns a Pace as configured. The error names the wrong field and its value.
func New(c Config) (*Pace, error) {
	keys, err := queued.New(queued.Config{
		Limiter: c.Limiter, MaxWait: c.MaxWait, Spread: c.Spread, Backoff: c.Backoff, Dialect: c.Dialect,
	})
	if err != nil {
		return nil, fmt.Errorf("pacetemporal: %w", err)
	}
	if c.Key == nil {
		c.Key = func(context.Context, activity.Info, []any) string { return "all" }
	}
	if c.Cost == nil {
		c.Cost = func(context.Context, activity.Info, []any) limit.Cost { return limit.One }
	}
	return &Pace{config: c, keys: keys}, nil
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (p *Pace) InterceptActivity(ctx context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{pace: p}
	i.Next = next
	return i
}

// inbound runs activities at their turn.
type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	pace *Pace
}

// ExecuteActivity runs an activity at its turn, or has Temporal start it again then.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	p, info := i.pace, activity.GetInfo(ctx)
	key := p.config.Key(ctx, info, in.Args)
	if key == "" {
		return i.Next.ExecuteActivity(ctx, in)
	}
	err = p.keys.Do(ctx, queued.Job{
		ID:  info.WorkflowExecution.ID + "/" + info.WorkflowExecution.RunID + "/" + info.ActivityID + "/" + info.ActivityRunID,
		Key: key, Came: info.ScheduledTime, Cost: p.config.Cost(ctx, info, in.Args), Stays: last(&info),
	}, func(ctx context.Context) (err error) {
		result, err = i.Next.ExecuteActivity(ctx, in)
		return err
	})
	later, ok := errors.AsType[*queued.Later](err)
	if !ok {
		return result, err
	}
	return nil, temporal.NewApplicationErrorWithOptions(later.Error(), Later, temporal.ApplicationErrorOptions{
		NextRetryDelay: later.In, Category: temporal.ApplicationErrorCategoryBenign, Cause: later.Err,
	})
}

// last reports whether there is no attempt after this one, as far as the server says, or none that
// leaves the worker.
func last(info *activity.Info) bool {
	r := info.RetryPolicy
	return info.IsLocalActivity || r != nil && r.MaximumAttempts > 0 && info.Attempt >= r.MaximumAttempts
}

// Stats returns what the activities of a key did in this process, and how many of them are away. The
// zero Stats: no activity of the key came so far.
func (p *Pace) Stats(key string) (s observe.Stats, away int) {
	s, away, _ = p.keys.Stats(key)
	return s, away
}

// Send sends the request of an activity by client, and settles the activity's turn by the answer. ctx is
// that of the activity. A refused request has an answer and no error; if verdict.Again is true, the
// activity returns an error, whichever it likes, and comes back at its turn. A second Send in an
// activity waits for another turn, in the worker.
func Send(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, classify.Verdict, error) {
	a, err := queued.From(ctx)
	if err != nil {
		return nil, classify.Verdict{}, fmt.Errorf("pacetemporal: Send: %w", err)
	}
	return a.Send(client, r)
}

// Answered settles the turn of an activity that sends by itself. evidence is of its answer: see
// classify.From. Without a Send and without Answered an activity settles when it ends: as accepted, or
// with an error as unknown.
func Answered(ctx context.Context, evidence *classify.Evidence) (classify.Verdict, error) {
	a, err := queued.From(ctx)
	if err != nil {
		return classify.Verdict{}, fmt.Errorf("pacetemporal: Answered: %w", err)
	}
	return a.Answered(evidence), nil
}
