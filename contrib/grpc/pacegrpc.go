// Package pacegrpc provides interceptors that keep a gRPC client within the limits of its server.
//
//	pace, err := pacegrpc.New(pacegrpc.Config{Limiter: limit.MustRolling(500, time.Minute)})
//	conn, err := grpc.NewClient(target, grpc.WithUnaryInterceptor(pace.Unary), grpc.WithStreamInterceptor(pace.Stream))
//
// A gRPC call waits until all limits have room for it, first come, first served, and is then sent.
// A call that cannot go before its deadline fails at once. From the answer, the interceptors read
// limits and refusals by the same rules as over HTTP (package classify). The server's status
// RESOURCE_EXHAUSTED counts as a 429 (but not for a message that is too large), and its UNAVAILABLE
// as a 503. RetryInfo, grpc-retry-pushback-ms or a retry-after in the metadata take the place of
// the header field Retry-After. Ratelimit fields in the metadata are read like those of an HTTP
// header.
//
// After the server refused a call for a limit, all calls of the Pace pause. If the server refuses
// several calls that were in flight together, they cause one pause. The interceptors send a unary
// call up to 3 times by default (Config.Attempts): again if it was refused or surely not processed.
// If the server may have processed a failed call, they send it again only if Config.Idempotent
// allows that. They send a stream only once. If the server asks for a pause longer than
// Config.MaxRetryAfter (5 minutes by default), calls fail at once with ErrPaused, until the rest of
// the pause is short enough.
//
// The gRPC library itself may send a call again, without passing through the interceptors. Such a
// repeat does not count in the limits. There are two kinds. If the service config of gRPC has a
// retry policy, gRPC repeats failed calls by this policy. To prevent these repeats, configure no
// retry policy, or use grpc.WithDisableRetry. If nothing of a call was written, or the server
// reports that it has not processed the call, gRPC may repeat the call, too. No option prevents
// these repeats.
//
// Package pacegrpc is a module of its own, so that programs that import Paceline but not gRPC do
// not depend on gRPC. Package pacegrpc starts no goroutine.
package pacegrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider/classify"
)

// ErrPaused reports a call that was not sent: the server asked for a pause longer than
// Config.MaxRetryAfter.
var ErrPaused = errors.New("pacegrpc: the server asked to stay away")

// Config describes a Pace. The zero value is ready: it has no limit of its own, follows the limits
// in answers, and sends refused calls again.
type Config struct {
	// Limiter is the server's rule, for all calls. It belongs to the Pace from now on. If nil,
	// none.
	Limiter limit.Limiter
	// Adaptive, if not nil, bounds the calls in flight where the server's bound is unknown.
	Adaptive *limit.AdaptiveConfig
	// Cost returns the cost of a call. req is nil for a stream. If nil, a call is one request.
	Cost func(method string, req any) limit.Cost
	// Idempotent reports whether a method may be processed twice. If nil, none may.
	Idempotent func(method string) bool
	// Attempts is the most attempts of a unary call, the first one included. A stream is sent once.
	// If zero, 3.
	Attempts int
	// Backoff is the wait of a call after a failed attempt. It is also the pause of all calls after
	// a refusal without a stated time.
	Backoff backoff.Policy
	// MaxRetryAfter is the longest wait that a server may ask for. If zero, 5 minutes. If negative,
	// no call waits.
	MaxRetryAfter time.Duration
	// UntilEnd counts a stream as in flight until it ends. If false, a stream counts until its
	// first message, so that a stream of hours delays no other call.
	UntilEnd bool
}

// Pace keeps calls within limits. Made by New. Safe for concurrent use; several connections may
// share it.
type Pace struct {
	config Config
	policy classify.Policy
	gate   *paceline.Gate
	stack  *stack.Stack // guarded by the Gate's lock
	mu     sync.Mutex   // guards rng
	rng    *rand.Rand
}

// New returns a Pace as configured. The error names the wrong field and its value.
func New(c Config) (*Pace, error) {
	if c.Attempts < 0 {
		return nil, fmt.Errorf("pacegrpc: Attempts %d is negative", c.Attempts)
	}
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("pacegrpc: Backoff: %w", err)
	}
	if c.Attempts == 0 {
		c.Attempts = 3
	}
	if c.MaxRetryAfter == 0 {
		c.MaxRetryAfter = 5 * time.Minute
	}
	random := func() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
	pause := c.Backoff
	if c.MaxRetryAfter > 0 {
		pause = pause.AtMost(c.MaxRetryAfter)
	}
	g, err := stack.New(stack.Config{Limiter: c.Limiter, Adapt: c.Adaptive, Slow: c.Limiter == nil, Pause: pause, Rand: random()})
	if err != nil {
		return nil, fmt.Errorf("pacegrpc: %w", err)
	}
	gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: g})
	if err != nil {
		return nil, fmt.Errorf("pacegrpc: %w", err)
	}
	return &Pace{config: c, policy: classify.Policy{MaxRetryAfter: c.MaxRetryAfter}, gate: gate, stack: g, rng: random()}, nil
}

// Stats returns the counts so far.
func (p *Pace) Stats() observe.Stats { return p.gate.Stats() }

// Unary is a grpc.UnaryClientInterceptor. Its errors are those of the call, or *Error if a limit
// prevented the call.
func (p *Pace) Unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	var last error
	for n := 1; ; n++ {
		permit, err := p.wait(ctx, method, req)
		if err != nil {
			if last != nil && !errors.Is(ctx.Err(), context.Canceled) {
				return last
			}
			return err
		}
		a := attempt{permit: permit, began: time.Now()}
		returned := false
		defer func() {
			if !returned { // the invoker panics
				a.settle(limit.Outcome{})
			}
		}()
		err = invoker(ctx, method, req, reply, cc, append(opts[:len(opts):len(opts)], grpc.Header(&a.header), grpc.Trailer(&a.trailer), grpc.Peer(&a.peer))...)
		returned = true
		v := p.judge(ctx, method, &a, err, n >= p.config.Attempts)
		if !v.Again {
			return err
		}
		if last = err; p.rest(ctx, v, n) != nil {
			return last
		}
	}
}

// Stream is a grpc.StreamClientInterceptor. A stream waits for its turn like a call. It is settled
// at its first message or its end.
func (p *Pace) Stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	permit, err := p.wait(ctx, method, nil)
	if err != nil {
		return nil, err
	}
	a := &attempt{permit: permit, began: time.Now()}
	opened := false
	defer func() {
		if !opened {
			a.settle(limit.Outcome{})
		}
	}()
	cs, err := streamer(ctx, desc, cc, method, append(opts[:len(opts):len(opts)], grpc.Trailer(&a.trailer), grpc.Peer(&a.peer))...)
	if err != nil {
		p.judge(ctx, method, a, err, true)
		return nil, err
	}
	opened = true
	s := &stream{ClientStream: cs, pace: p, ctx: ctx, method: method, attempt: a, single: !desc.ServerStreams}
	// A caller that abandons a stream neither reads nor closes it, so the end of the caller's
	// context settles it. The stream's own context ends too early: before RecvMsg returns the
	// stream's result.
	s.stop = context.AfterFunc(ctx, func() { a.settle(limit.Outcome{}) })
	s.forgotten = runtime.AddCleanup(s, func(a *attempt) { a.settle(limit.Outcome{}) }, a)
	return s, nil
}

// wait returns a permit for a call.
func (p *Pace) wait(ctx context.Context, method string, req any) (paceline.Permit, error) {
	cost := limit.One
	if p.config.Cost != nil {
		cost = p.config.Cost(method, req)
	}
	for {
		if err := p.look(); err != nil {
			return paceline.Permit{}, err
		}
		permit, err := p.gate.Wait(ctx, cost)
		if err == nil {
			return permit, nil
		}
		if errors.Is(err, paceline.ErrNever) {
			if paused := p.look(); paused != nil { // the pause began while this call waited
				return paceline.Permit{}, paused
			}
			if p.fits(cost) {
				continue
			}
		}
		return paceline.Permit{}, &Error{Err: err}
	}
}

// look returns an error if the present pause is longer than MaxRetryAfter. Then it also ends the
// wait of all waiting calls.
func (p *Pace) look() (err error) {
	p.gate.Update(func(now mono.Time) {
		pause, on := p.stack.Paused(now)
		if on && pause.Next.Sub(now) > p.config.MaxRetryAfter {
			p.stack.Close()
			err = &Error{Err: fmt.Errorf("%w for %v", ErrPaused, pause.Until.Sub(now))}
			return
		}
		p.stack.Open()
	})
	return err
}

// fits reports whether a cost can ever go. While the stack is closed, no cost can.
func (p *Pace) fits(cost limit.Cost) (ok bool) {
	p.gate.Update(func(now mono.Time) { ok = p.stack.Ready(now, cost) != limit.Never })
	return ok
}

// rest waits before the next attempt. After a refusal it returns at once, since the Gate makes all
// calls wait.
func (p *Pace) rest(ctx context.Context, v *classify.Verdict, n int) error {
	if v.Result == limit.Limited {
		return nil
	}
	p.mu.Lock()
	d := max(p.config.Backoff.Delay(n, p.rng), v.RetryAfter)
	p.mu.Unlock()
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// judge settles an attempt by the evidence of its answer.
func (p *Pace) judge(ctx context.Context, method string, a *attempt, err error, last bool) *classify.Verdict {
	in := evidence(ctx, a, err)
	in.Last = last
	in.Idempotent = p.config.Idempotent != nil && p.config.Idempotent(method)
	v := p.policy.Of(&in)
	if v.Result == limit.Limited && v.RetryAfter > 0 {
		p.gate.Update(func(mono.Time) { in.Refills = p.stack.Refills(&v.Outcome) })
		if in.Refills != 0 {
			v = p.policy.Of(&in)
		}
	}
	if deadline, ok := ctx.Deadline(); ok {
		v.InTime(v.RetryAfter, time.Until(deadline))
	}
	a.settle(v.Outcome)
	if v.Result == limit.Limited {
		p.look() // after a pause longer than MaxRetryAfter, the waiting calls end with an error
	}
	return &v
}

// attempt is a call that was sent.
type attempt struct {
	permit          paceline.Permit
	settled         atomic.Bool
	began           time.Time
	header, trailer metadata.MD
	peer            peer.Peer
}

func (a *attempt) settle(o limit.Outcome) {
	if !a.settled.Swap(true) {
		a.permit.Settle(o)
	}
}

// stream is a ClientStream that settles its permit.
type stream struct {
	grpc.ClientStream
	pace    *Pace
	ctx     context.Context
	method  string
	attempt *attempt
	single  bool // the server sends a single message

	stop      func() bool
	forgotten runtime.Cleanup
}

// RecvMsg settles the stream at the first message, or at its end.
func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err != nil || s.single:
		s.end(err)
	case !s.pace.config.UntilEnd && !s.attempt.settled.Load():
		s.end(nil)
	}
	return err
}

func (s *stream) end(err error) {
	if s.attempt.settled.Load() {
		return
	}
	s.stop()
	s.forgotten.Stop()
	if s.attempt.header == nil {
		s.attempt.header, _ = s.Header() // the header has come, since a message has
	}
	s.pace.judge(s.ctx, s.method, s.attempt, err, true)
}

// Error is the reason why a call was not sent. It wraps ErrPaused or a *paceline.WaitError. As a
// status it is DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE with ErrPaused, or RESOURCE_EXHAUSTED.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// GRPCStatus returns the status, for status.FromError.
func (e *Error) GRPCStatus() *status.Status {
	code := codes.ResourceExhausted
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(e.Err, context.Canceled):
		code = codes.Canceled
	case errors.Is(e.Err, ErrPaused):
		code = codes.Unavailable
	}
	return status.New(code, e.Error())
}
