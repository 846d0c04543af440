// Package xrate has a limiter with the methods of golang.org/x/time/rate's: Wait, Allow, Reserve, over a paceline.Gate. It is for
// code that calls those and cannot be changed, or takes an interface that has them. Everywhere else use the Gate itself, by
// Gate.Do, or package transport: they are told when a request was answered, and so need no promise and lose less.
//
// # What is promised, and by whom
//
// Those methods are told that a request may go and never that it was answered. So nobody can know when it arrived, and without a
// promise of the caller's no limit on arrivals can be kept. The promise is Config.Within: a request is counted by the server at most so
// long after Wait or Allow returned, or after the instant of its reservation. That includes the stalls of this machine, the making of a
// connection, and the way there. While it holds, no window of the server's holds more than the limit, and nothing is refused; a
// request that takes longer may be one too many.
//
// What it costs: each request counts for Within longer. Of 20 in any second with 100 ms, 18.2 a second remain, with 1 s it is
// 10; of 500 a minute with 1 s, 492. Where the end of a request is known the price is the mean round trip.
//
// # What is different from x/time/rate
//
//   - New takes a limit.Limiter, the server's rule, and not a rate and a burst: so many in any window is limit.Rolling, a token bucket
//     limit.Bucket. Of x/time/rate's bucket with burst N, 2N may arrive within one window.
//   - Those that Wait go first come, first served, one that is large too; who gives up has used nothing. Errors are *paceline.WaitError.
//   - Allow and Reserve overtake nobody: while somebody waits, Allow says no and Reserve is not OK.
//   - No method takes an instant: the clock is the Gate's.
//   - SetLimit and the like are the Limiter's own, in Gate.Update.
package xrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Config describes a Limiter. Limiter and Within have no default.
type Config struct {
	// Limiter is the server's rule. It belongs to the Limiter's Gate from now on. One that is about answers (limit.Concurrency, Sequence,
	// Adaptive and Produced, throttle.Fair) cannot be kept without them, and is refused.
	Limiter limit.Limiter
	// Within is how long after its leave a request is counted by the server at the latest.
	Within time.Duration
	// Unit is what n counts in WaitN, AllowN and ReserveN. If zero, limit.Requests.
	Unit limit.Unit
	// MaxWaiting is the most goroutines that may Wait; more fail with paceline.ErrFull. If zero, any number.
	MaxWaiting int
}

// Limiter lets goroutines go at the rate that a limit.Limiter allows. Safe for concurrent use. Made by New; the zero Limiter is not
// usable. It starts no goroutine and needs no closing.
type Limiter struct {
	gate    *paceline.Gate
	limiter limit.Limiter // what follows is guarded by the Gate's lock, that is, used in its Update
	unit    limit.Unit
	within  time.Duration
	last    mono.Time      // the latest instant that is reserved; limiters take an earlier now for this one
	held    []*Reservation // those whose lease is open, in their order
}

// New returns a Limiter as configured. The error names the field and value that make no sense.
func New(c Config) (*Limiter, error) {
	if c.Limiter == nil {
		return nil, errors.New("ratelike: the Limiter is nil")
	}
	if c.Within <= 0 {
		return nil, fmt.Errorf("ratelike: Within %v is not positive: nobody tells when a request was answered, so how long it takes to be counted must be known", c.Within)
	}
	if int(c.Unit) >= len(limit.Cost{}) {
		return nil, fmt.Errorf("ratelike: no such Unit: %d", c.Unit)
	}
	for _, part := range limit.Parts(c.Limiter) {
		switch part.(type) {
		case *limit.Concurrency, *limit.Sequence, *limit.Adaptive, *limit.Produced:
			return nil, fmt.Errorf("ratelike: the Limiter is or has a %T, which needs to know when a request was answered: use Gate.Do", part)
		}
	}
	if limit.Senses(c.Limiter) {
		return nil, fmt.Errorf("ratelike: the Limiter, %T, learns from refusals, of which nothing is heard here: use Gate.DoWith", c.Limiter)
	}
	gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: c.Limiter, MaxWaiting: c.MaxWaiting})
	if err != nil {
		return nil, fmt.Errorf("ratelike: %w", err)
	}
	return &Limiter{gate: gate, limiter: c.Limiter, unit: c.Unit, within: c.Within, last: mono.Min}, nil
}

// Gate returns the Gate that everybody waits at, for callers that know when their requests are answered (Gate.Do), and for changes of
// the limit (Gate.Update). Reservations are not in its Stats.
func (l *Limiter) Gate() *paceline.Gate { return l.gate }

// Wait returns when one may go, or a *paceline.WaitError: at once where ctx's deadline comes first.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN is Wait for n at once. More than Burst never go: that is paceline.ErrNever.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	permit, err := l.gate.Wait(ctx, l.cost(n))
	if err == nil {
		permit.Settle(l.gone())
	}
	return err
}

// Allow reports whether one may go now, and if so it has gone.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN is Allow for n at once.
func (l *Limiter) AllowN(n int) bool {
	permit, _, ok := l.gate.TryWait(l.cost(n))
	if ok {
		permit.Settle(l.gone())
	}
	return ok
}

// Limit returns how many may go in a second in the long run if nothing took any time: the lowest rate of the Unit. +Inf if there is
// none, 0 if the Limiter cannot tell.
func (l *Limiter) Limit() float64 {
	lowest := math.Inf(1)
	l.gate.Update(func(mono.Time) {
		rates, ok := limit.Rates(l.limiter)
		if !ok {
			lowest = 0
		}
		for _, r := range rates {
			if r.Unit == l.unit {
				lowest = min(lowest, float64(r.N)/r.Per.Seconds())
			}
		}
	})
	return lowest
}

// Burst returns the most that may ever go at once: limit.MaxCost where nothing bounds it.
func (l *Limiter) Burst() (most int) {
	l.gate.Update(func(now mono.Time) {
		most = sort.Search(limit.MaxCost, func(n int) bool { return l.limiter.Ready(now, l.cost(n+1)) == limit.Never })
	})
	return most
}

func (l *Limiter) cost(n int) (c limit.Cost) {
	c[l.unit] = int64(n)
	return c
}

// gone settles what may go from now on: nobody will say more, and it arrives within Within.
func (l *Limiter) gone() limit.Outcome { return limit.Outcome{ArrivedAgo: -l.within} }
