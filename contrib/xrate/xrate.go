// Package xrate provides a limiter with methods of golang.org/x/time/rate: Wait, Allow and Reserve,
// and WaitN, AllowN and ReserveN. All of them use one paceline.Gate: Wait waits at it, and Allow
// and Reserve never wait. The package is for code that cannot change its calls of those methods, or
// that expects an interface with them. All other code should use Gate.Do or package transport.
// Gate.Do and transport learn when a request was answered. So they need no promise from the caller,
// and lose less of the limit.
//
// # The caller's promise
//
// The methods of x/time/rate report that a request may go. No method is called when the request has
// been answered. So the limiter cannot know when the request arrived at the server. Without a
// promise of the caller, the limiter could not keep the arrivals at the server within a limit.
//
// The caller's promise is Config.Within: the longest time from the permission until the server
// counts the request. The permission is the return of Wait or Allow, or the instant that a
// reservation has. Within includes the stalls of this machine, the making of a connection, and the
// way to the server. While every request keeps the promise, no window of the server has more than
// the configured limit. If a request takes longer than Within, the server may refuse a request.
//
// The price of the promise (Within) is that each request counts for longer, by Within. For example,
// 20 requests in any second become 18.2 a second with a Within of 100 ms, and 10 with 1 s. A limit
// of 500 a minute becomes 492 a minute with 1 s. Gate.Do and transport know when a request ended.
// With these, a request counts for longer only by its own round trip, and not by Within.
//
// # Differences from x/time/rate
//
// The Limiter of package xrate differs from that of x/time/rate in these points:
//   - New takes a limit.Limiter with the server's rule, not a rate and a burst. If the server
//     allows N requests in any window, use limit.Rolling. If the server has a token bucket, use
//     limit.Bucket. A bucket of x/time/rate with burst N lets up to 2N requests arrive within one
//     window. New refuses limiters that need answers, such as limit.Concurrency or fairshare.Fair.
//   - Wait is first come, first served, for large costs, too. A caller that gives up has used
//     nothing of the limit. An error of Wait is a *paceline.WaitError.
//   - Allow and Reserve overtake no waiting caller. While a caller waits, Allow returns false, and
//     the method OK of the Reservation that Reserve returns is false.
//   - No method takes an instant, as AllowN of x/time/rate does: the Gate reads its own clock.
//   - The Limiter of package xrate has no SetLimit. To change the limit, call a method of the
//     limit.Limiter, such as Rolling.SetLimit, within Gate.Update.
package xrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Config describes a Limiter. Limiter and Within have no default.
type Config struct {
	// Limiter is the server's rule. It belongs to the Gate from now on. Limiters that need answers
	// are refused: limit.Concurrency, Sequence, Adaptive and Produced, and fairshare.Fair.
	Limiter limit.Limiter
	// Within is the longest time from the leave to go until the server counts the request.
	Within time.Duration
	// Unit is the unit of n in WaitN, AllowN and ReserveN. If zero, limit.Requests.
	Unit limit.Unit
	// MaxWaiting is the most goroutines in Wait. More of them fail with paceline.ErrFull. If zero,
	// unlimited.
	MaxWaiting int
}

// Limiter lets goroutines go at the rate that a limit.Limiter allows. Made by New; the zero Limiter
// is not usable. Safe for concurrent use. It starts no goroutine and needs no closing.
type Limiter struct {
	gate    *paceline.Gate
	limiter limit.Limiter // the fields below are guarded by the Gate's lock, that is, used in its Update
	unit    limit.Unit
	within  time.Duration
	last    mono.Time      // the latest reserved instant; limiters replace an earlier now by it
	held    []*Reservation // open reservations, in order
}

// New returns a Limiter as configured. The error names the wrong field and its value.
func New(c Config) (*Limiter, error) {
	if c.Limiter == nil {
		return nil, errors.New("xrate: the Limiter is nil")
	}
	if c.Within <= 0 {
		return nil, fmt.Errorf("xrate: Within %v is not positive: nobody tells when a request was answered, so how long it takes to be counted must be known", c.Within)
	}
	if int(c.Unit) >= len(limit.Cost{}) {
		return nil, fmt.Errorf("xrate: no such Unit: %d", c.Unit)
	}
	for _, part := range limit.Parts(c.Limiter) {
		switch part.(type) {
		case *limit.Concurrency, *limit.Sequence, *limit.Adaptive, *limit.Produced:
			return nil, fmt.Errorf("xrate: the Limiter is or has a %T, which needs to know when a request was answered: use Gate.Do", part)
		}
	}
	if ability.Learns(c.Limiter) {
		return nil, fmt.Errorf("xrate: the Limiter, %T, learns from refusals, of which nothing is heard here: use Gate.DoWith", c.Limiter)
	}
	gate, err := paceline.NewGateWith(paceline.GateConfig{Limiter: c.Limiter, MaxWaiting: c.MaxWaiting})
	if err != nil {
		return nil, fmt.Errorf("xrate: %w", err)
	}
	return &Limiter{gate: gate, limiter: c.Limiter, unit: c.Unit, within: c.Within, last: mono.Min}, nil
}

// Gate returns the Gate that all callers wait at. Gate.Do is for callers that know when their
// requests are answered, and Gate.Update for changes of the limit. The Gate's Stats exclude
// reservations.
func (l *Limiter) Gate() *paceline.Gate { return l.gate }

// Wait returns when one may go. Otherwise it returns a *paceline.WaitError, and at once if ctx's
// deadline comes before the turn.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN is Wait for n at once. If n is more than Burst, the error is paceline.ErrNever.
func (l *Limiter) WaitN(ctx context.Context, n int) error {
	permit, err := l.gate.Wait(ctx, l.cost(n))
	if err == nil {
		permit.Settle(l.gone())
	}
	return err
}

// Allow reports whether one may go now. If true, it counts as gone.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN is Allow for n at once.
func (l *Limiter) AllowN(n int) bool {
	permit, _, ok := l.gate.TryWait(l.cost(n))
	if ok {
		permit.Settle(l.gone())
	}
	return ok
}

// Limit returns the number that may go in a second in the long run, if answers took no time. It is
// the lowest rate of the Unit. It is +Inf if there is none, and 0 if it is unknown.
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

// Burst returns the most that may ever go at once. It is limit.MaxCost where nothing bounds it.
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

// gone is the outcome of a request that may go now. No answer will be reported, and the request
// arrives within Within.
func (l *Limiter) gone() limit.Outcome { return limit.Outcome{ArrivedAgo: -l.within} }
