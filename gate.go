package paceline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// Gate lets goroutines wait for a Limiter, first come first served. Most callers want Do; Wait is for those whose request is not a
// function, and TryWait never blocks.
//
// The goroutine at the head of the line holds up all others, so that a large cost is not starved by small ones; with
// GateConfig.Fill those that do not delay it go ahead. Several limits with lanes that share them are a Group, work that should
// be put in order by priority belongs in a pool.Pool.
//
// A Gate starts no goroutine and needs no closing. It has one timer, set only while it is known when the head of the line may go. With
// a Logger it has another, of a minute, for while that is not known. Whoever makes room (a Settle, the timer, Update, a waiter that
// gives up) admits those at the head of the line, and wakes no others. Safe for concurrent use. Made by NewGate; the zero Gate is not
// usable. A Gate made inside a testing/synctest bubble belongs to that bubble.
type Gate struct {
	group Group
	limit *Limit
	lane  *Lane
}

// NewGate returns a Gate for l, which now belongs to the Gate: nobody else may use it, other than inside Update. It
// panics if l is nil. Two Gates must not share a limiter: the second would never hear of the first's Settle.
func NewGate(l limit.Limiter) *Gate {
	g, err := NewGateWith(GateConfig{Limiter: l})
	if err != nil {
		panic(err.Error())
	}
	return g
}

// GateConfig describes a Gate that is more than NewGate makes: with a bound on who waits, to the microsecond, or with others that go ahead. Only
// Limiter has no default.
type GateConfig struct {
	// Limiter says when a cost may go. It belongs to the Gate from now on, as with NewGate. It must not be nil.
	Limiter limit.Limiter
	// MaxWaiting is the most goroutines that may wait; more fail with ErrFull. If zero, any number.
	MaxWaiting int
	// Precise has the head of the line go within microseconds of its instant: it is woken 1.2 ms early and yields in a
	// loop for the rest, one goroutine per Gate and never more. If false, it goes when a timer wakes it, which on Linux is
	// 0.1 to 1 ms late. Where no core is free, both are late.
	//
	// It costs up to 1.2 ms of a core for every instant that somebody waits for: a whole core at some 800 waits a second
	// and more, though any other goroutine that can run goes first. It buys what being late costs, once per window:
	// 0.8 % of a limit per 100 ms, 0.1 % per second, nothing to speak of per minute. Where the clock stands still while
	// goroutines run, as in a synctest bubble, it changes nothing.
	Precise bool
	// Fill is how many goroutines behind the head of the line are looked at, in their order, for one that may go ahead of
	// it: that has room now, and leaves enough for the head to go at the instant foreseen for it (limit.MayPass). It is
	// also how often anybody may be overtaken; after that nobody goes ahead of it any more. With sizes as those of prompts
	// to a language model 64 use 2 % more of a limit of tokens than a strict order does, and the longest waits are shorter.
	// A look costs some 30 ns per goroutine and limit, at every change of a Gate with a line.
	//
	// If a request is answered meanwhile and has used less than was admitted for it, there is more room for all. The head of the line
	// has the first choice of that, but what went ahead of it stays gone. Nobody goes ahead while only a Settle can tell when the head
	// may go. TryWait overtakes nobody. The Limiter must be able to foresee (limit.Foresees). If zero, none: strictly first come,
	// first served.
	Fill int
	// Logger is told, at level info, when the head of the line has to wait for more than 5 ms: "requests: 3 waiting, next in
	// 4.5 s", with the attributes limit, waiting, next and round, at most once per round. A round is another instant at
	// which the head may go; the attribute is its number. Within a second of its line the same head gets another only if it
	// has to wait for a second longer than that said: otherwise each answer that used less would be a line. Where only a
	// Settle can make room nobody knows for how long, and nothing is logged. The goroutine that found out (in Wait, Settle,
	// Update or TryWait, or a timer's) logs when it has let go of the Gate: a slow Handler holds up that goroutine and no
	// other, and may use the Gate. If nil, nobody is told.
	//
	// It is warned where the head of the line has waited for more than a minute, during which nobody went, for a Settle that nobody
	// makes: "concurrency: 2 waiting, 20 permits unsettled, the oldest for 3m0s"; again after two minutes, four and so on. A goroutine
	// that gives up reads the same in its WaitError.
	Logger *slog.Logger
}

// NewGateWith returns a Gate as configured. The error says that the Limiter is nil, or what is wrong with a number.
func NewGateWith(c GateConfig) (*Gate, error) {
	if c.Limiter == nil {
		return nil, errors.New("paceline: Gate: the Limiter is nil")
	}
	if c.Fill > 0 && !limit.Foresees(c.Limiter) {
		return nil, fmt.Errorf("paceline: Gate: Fill %d: the Limiter, %T, does not foresee", c.Fill, c.Limiter)
	}
	g := new(Gate)
	j := &g.group
	if err := j.init("Gate", GroupConfig{Fill: c.Fill, MaxWaiting: c.MaxWaiting}); err != nil {
		return nil, err
	}
	g.limit = j.Limit(LimitConfig{Limiter: c.Limiter})
	g.lane = j.Lane(LaneConfig{Logger: c.Logger}, []*Limit{g.limit})
	if c.Precise && j.clockMoves() {
		j.lead = spinLead
	}
	return g, nil
}

// spinLead is more than a timer of Linux is late when nothing else runs: epoll counts in milliseconds.
const spinLead = 1200 * time.Microsecond

// clockMoves tells whether an instant can be waited for by looking at the clock. That of a synctest bubble stands still
// until nobody runs.
func (j *Group) clockMoves() bool {
	for range 1000 {
		if j.now() > 0 {
			return true
		}
	}
	return false
}

// Wait returns when cost may go and has been admitted. It takes its place at the end of the line and leaves it only by
// being served or by an error, which is always a *WaitError:
//
//   - ErrNever, at once, if the cost is larger than the limit can ever allow; also later, if an Update makes it so.
//   - ErrDeadline, at once, if it cannot go before ctx's deadline, given those before it; also later, as soon as that is
//     found out, or if the deadline passes. The error says when it could have gone. It is right if those before it stay and
//     use what they surely use (limit.Cost.Least) or more.
//   - ErrFull, at once, if as many wait as may.
//   - ctx's error and its cause, if ctx is or gets cancelled.
//
// Giving up costs the limit nothing and those behind no time. A grant that races with giving up wins: the Permit is returned even
// if ctx is done by then (settle it as limit.Unsent if it is of no more use). A ctx done before the call never gets one.
func (g *Gate) Wait(ctx context.Context, cost limit.Cost) (Permit, error) {
	return g.lane.wait(ctx, &cost, limit.Never, nil)
}

// Do waits as Wait does, runs f once it may go, and settles when f returns: as accepted if its error is nil, otherwise as unknown,
// which counts as long as the request may still arrive. So is a panic of f, and runtime.Goexit: both go on after it. Do returns f's
// error, or a *WaitError, and then f was not run.
//
// f is the request from its first byte to the last of its answer. What happens to the answer after that belongs behind Do, as does an
// error that says nothing of the request. A caller that knows more (how the request ended, what it used, what the server said) uses
// DoWith.
func (g *Gate) Do(ctx context.Context, cost limit.Cost, f func() error) error {
	return g.lane.Do(ctx, cost, f)
}

// DoWith is Do for an f that says how the request ended. Its error is returned and nothing else; a panic settles as unknown.
func (g *Gate) DoWith(ctx context.Context, cost limit.Cost, f func() (limit.Outcome, error)) error {
	return g.lane.DoWith(ctx, cost, f)
}

// WaitWithStats is Wait, and tells how long it was in line and what for, also with an error. It allocates if it waited.
func (g *Gate) WaitWithStats(ctx context.Context, cost limit.Cost) (p Permit, s WaitStats, err error) {
	return g.lane.WaitWithStats(ctx, cost)
}

// What TryWait says instead of a time to wait: as in package limit, later than every instant.
const (
	// RetryAfterSettle: only news, such as the Settle of an open Permit, can make room, and nobody knows when that will be.
	RetryAfterSettle = time.Duration(math.MaxInt64 - 1)
	// RetryNever: the cost is larger than the limit; only a change of limit helps.
	RetryNever = time.Duration(math.MaxInt64)
)

// TryWait admits cost now or not at all. Whatever Fill is, it does not overtake goroutines that wait: while there is a line
// ok is false, even if cost would fit.
//
// If ok is false, retry is more than 0: for at least that long, as far as is known now, asking again is in vain. It is
// the time until both this cost and the first in line could go, not a place in the line. Where no such time is known
// it is RetryAfterSettle or RetryNever. Asking again for the same cost takes no lock while nothing has changed.
func (g *Gate) TryWait(cost limit.Cost) (p Permit, retry time.Duration, ok bool) {
	return g.lane.TryWait(cost)
}

// Ask returns when cost, if it came now, could go behind those that wait, and how many they are: an instant that is no
// later than the true one, if those before it stay and use what they surely use. The zero Time: it may go now, or nobody knows. It
// changes nothing, and takes as long with many in line as with none. ErrNever says that it never can.
func (g *Gate) Ask(cost limit.Cost) (at time.Time, ahead int, err error) { return g.lane.Ask(cost) }

// Snapshot returns the state of the Gate now. It has one client, without a name.
func (g *Gate) Snapshot() observe.Snapshot { return g.group.Snapshot() }

// Stats returns what the Gate has done so far, all of it as of one instant.
func (g *Gate) Stats() observe.Stats { return g.lane.Stats() }

// retryAfter says at, which is later than now, as a time to wait.
func retryAfter(now, at mono.Time) time.Duration {
	switch at {
	case limit.Never:
		return RetryNever
	case limit.AfterSettle:
		return RetryAfterSettle
	}
	return at.Sub(now)
}

// Update calls f under the Gate's lock, to change or read the limiter: SetLimit, SetWindow, Extend, the replay of a journal. now
// is the instant on the limiter's scale, whose epoch is the making of the Gate. Afterwards every goroutine in line is
// asked about again: those at the head that may go now go, and those whose cost can no longer fit, or no longer by their
// deadline, fail. f must not call the Gate, nor settle one of its Permits: that would hang.
func (g *Gate) Update(f func(now mono.Time)) { g.group.Update(f, g.limit) }
