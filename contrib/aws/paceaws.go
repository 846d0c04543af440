// Package paceaws keeps clients of the AWS SDK for Go v2 within the limits of a service.
//
//	pace, err := paceaws.New(paceaws.Config{Limiter: limit.MustRolling(500, time.Minute)})
//	cfg.APIOptions = append(cfg.APIOptions, pace.Add) // an aws.Config: for every client made of it
//
// Use one Pace for all that counts in one limit: a service's API in an account and region. Each attempt, the SDK's retries too, waits for
// its turn, first come first served, is signed and sent, and is settled by its answer. A refusal, in whatever words a service has for it
// (ThrottlingException, SlowDown, 429), pauses all, once. Who sends again, and how often, remains the SDK's retryer; so retries do not
// multiply, and aws.NopRetryer has none.
//
// It is a middleware inside the SDK's retry loop. A retryer would not do, since its attempt token is not given back on every way out of an
// attempt. Nor would an http.RoundTripper: requests would wait after they were signed, and it does not know the names of refusals
// (docs/decisions/0036-adapters.md).
//
// It is a module of its own, so that programs without the SDK do not depend on it. It starts no goroutine.
package paceaws

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider/classify"
)

// Config says how a Pace sends. The zero value has no limit of its own, and heeds refusals: after one, attempts begin again slowly.
type Config struct {
	// Limiter is the service's rule, for all attempts. It belongs to the Pace from now on. If nil, none.
	Limiter limit.Limiter
	// Cost says what an attempt at an operation costs: "STS", "GetCallerIdentity". If nil, one request.
	Cost func(service, operation string) limit.Cost
}

// Pace keeps attempts within limits. Made by New. Safe for concurrent use; any number of clients may share it.
type Pace struct {
	cost   func(service, operation string) limit.Cost
	policy classify.Policy
	gate   *paceline.Gate
}

// New returns a Pace as configured. The error names what makes no sense.
func New(c Config) (*Pace, error) {
	g, err := stack.New(stack.Config{Limiter: c.Limiter, Slow: c.Limiter == nil, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
	if err != nil {
		return nil, fmt.Errorf("paceaws: %w", err)
	}
	gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: g})
	if err != nil {
		return nil, fmt.Errorf("paceaws: %w", err)
	}
	if c.Cost == nil {
		c.Cost = func(string, string) limit.Cost { return limit.One }
	}
	return &Pace{cost: c.Cost, gate: gate}, nil
}

// Stats returns what was done so far, in attempts.
func (p *Pace) Stats() observe.Stats { return p.gate.Stats() }

// Add puts the Pace into the stack of an operation, inside its retry loop and before what it signs: see aws.Config.APIOptions.
func (p *Pace) Add(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Paceline", p.attempt), "Retry", middleware.After)
}

// attempt waits for the turn of one attempt, makes it, and settles it when the answer was read. Of an answer that is a stream, only the header
// was read by then.
func (p *Pace) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	permit, err := p.gate.Wait(ctx, p.cost(awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)))
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, &Error{Err: err}
	}
	var outcome limit.Outcome // unknown, if what follows panics
	defer func() { permit.Settle(outcome) }()
	out, metadata, err := next.HandleFinalize(ctx, in)
	outcome = p.outcome(err)
	return out, metadata, err
}

// outcome is what an attempt proves by the way in which it ended.
func (p *Pace) outcome(err error) limit.Outcome {
	if err == nil {
		return limit.Outcome{Result: limit.Accepted}
	}
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil || answer.Response.Response == nil {
		return limit.Outcome{} // unknown: the request may have arrived
	}
	header := answer.Response.Header
	o := p.policy.Of(&classify.Evidence{Status: answer.Response.StatusCode, Header: header, Now: time.Now()}).Outcome
	if throttled(err) {
		o.Result = limit.Limited
	}
	if ms, err := strconv.ParseInt(header.Get("X-Amz-Retry-After"), 10, 64); err == nil && o.Result == limit.Limited {
		o.RetryAfter = max(o.RetryAfter, time.Duration(min(max(ms, 0), 3_600_000))*time.Millisecond)
	}
	return o
}

// throttled tells whether the service refused an attempt because of a rate. It goes by the SDK's list of error codes, without those that are
// about a single request or about how many resources there may be.
func throttled(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "TransactionInProgressException", "PriorRequestNotComplete", "LimitExceededException":
		return false
	}
	_, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return ok
}

// Error is why an attempt was not sent. It wraps a *paceline.WaitError, and the SDK does not try again because of it.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// RetryableError tells the SDK's retryer that there is no sense in another attempt.
func (e *Error) RetryableError() bool { return false }
