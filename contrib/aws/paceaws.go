// Package paceaws keeps clients of the AWS SDK for Go v2 within the limits of an AWS service.
//
//	pace, err := paceaws.New(paceaws.Config{Limiter: limit.MustRolling(500, time.Minute)})
//	cfg.APIOptions = append(cfg.APIOptions, pace.Add) // an aws.Config: for every client made of it
//
// Use one Pace for all requests that count in one limit, for example all requests to one service in
// one account and region. Each attempt of a request waits until the limit has room for it, first
// come, first served. The SDK's retryer makes further attempts of a failed request, and these wait,
// too. After the wait, the attempt is signed and sent, and the limit learns from its answer. (If
// the answer is a stream, the attempt ends for the limit when the header of the answer was read.)
// If the limit never has room for an attempt, or not before the deadline of its context, the
// request fails at once. The SDK does not retry such a request.
//
// After the service refused an attempt for its rate, the Pace sends no further attempt until a
// pause is over. The pause lasts as long as the answer states. If the answer states no time, the
// pause is short at first, and longer after each further refusal in a row. If the service refuses
// several attempts that were in flight together, they cause one pause. Services name a refusal
// differently, for example ThrottlingException, SlowDown or status 429, and the Pace knows these
// names. A code about a number of resources, such as LimitExceededException, is no refusal for the
// rate. The Pace itself never sends a refused request again: only the SDK's retryer does, so the
// retries of both do not multiply. With aws.NopRetryer, nothing is sent again.
//
// A Pace is a middleware inside the SDK's retry loop. It is not a retryer. The SDK takes a token
// from a retryer before an attempt, but does not return the token at the end of every attempt. So a
// retryer would not learn of every end. A Pace is no http.RoundTripper either, since requests would
// then wait after they were signed. Besides, a RoundTripper does not know the names of refusals
// (docs/decisions/0036-adapters.md).
//
// Package paceaws is a module of its own, so that programs that import Paceline but not the AWS SDK
// do not depend on the SDK. Package paceaws starts no goroutine.
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

// Config describes a Pace. The zero value has no limit of its own. After a refusal, attempts begin
// again slowly.
type Config struct {
	// Limiter is the service's rule, for all attempts. It belongs to the Pace from now on. If nil,
	// none.
	Limiter limit.Limiter
	// Cost returns the cost of an attempt at an operation, such as "STS", "GetCallerIdentity". If
	// nil, an attempt is one request.
	Cost func(service, operation string) limit.Cost
}

// Pace keeps attempts within limits. Made by New. Safe for concurrent use; any number of clients
// may share it.
type Pace struct {
	cost   func(service, operation string) limit.Cost
	policy classify.Policy
	gate   *paceline.Gate
}

// New returns a Pace as configured. The error names the wrong setting.
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

// Stats returns the counts so far, in attempts.
func (p *Pace) Stats() observe.Stats { return p.gate.Stats() }

// Add puts the Pace into the stack of an operation: see aws.Config.APIOptions. Its place is inside
// the retry loop and before the signing.
func (p *Pace) Add(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("Paceline", p.attempt), "Retry", middleware.After)
}

// attempt waits for the turn of one attempt, makes it, and settles it when the answer was read. If
// the answer is a stream, only its header was read by then.
func (p *Pace) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	middleware.FinalizeOutput, middleware.Metadata, error,
) {
	permit, err := p.gate.Wait(ctx, p.cost(awsmiddleware.GetServiceID(ctx), awsmiddleware.GetOperationName(ctx)))
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, &Error{Err: err}
	}
	var outcome limit.Outcome // unknown, if the code below panics
	defer func() { permit.Settle(outcome) }()
	out, metadata, err := next.HandleFinalize(ctx, in)
	outcome = p.outcome(err)
	return out, metadata, err
}

// outcome returns the outcome that the end of an attempt proves.
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

// throttled reports whether the service refused an attempt because of a rate. It uses the SDK's
// list of error codes. It leaves out codes about a single request, and about the number of
// resources.
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

// Error is the reason why an attempt was not sent. It wraps a *paceline.WaitError. The SDK does not
// try again after it.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// RetryableError returns false: the SDK's retryer makes no other attempt.
func (e *Error) RetryableError() bool { return false }
