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

// Gate lets goroutines wait for a Limiter, first come, first served. Most callers use Do. Wait is
// for a request that is not one function. TryWait never blocks.
//
// The first goroutine in line holds up all others, so that small costs cannot starve a large one.
// With GateConfig.Fill, costs that do not delay the first may go ahead of it. Several limits with
// lanes that share them are a Group. Work ordered by priority belongs in a pool.Pool.
//
// A Gate starts no goroutine and needs no closing. Its one timer is set only while the instant at
// which the first in line may go is known. With a Logger it has a second timer, of a minute, for
// the time in which that instant is unknown. Room appears by a Settle, the timer, an Update, or a
// goroutine that gives up. The Gate then admits the first in line and those that follow, and wakes
// no others.
//
// A Gate is safe for concurrent use. NewGate makes it; the zero Gate is not usable. A Gate made
// inside a testing/synctest bubble belongs to that bubble.
type Gate struct {
	group Group
	limit *Limit
	lane  *Lane
}

// NewGate returns a Gate for l. From then on l belongs to the Gate: other code may use it only
// inside Update. Two Gates must not share a limiter, since neither learns of the other's Settle.
// NewGate panics if l is nil, or belongs to another Gate, Group, Pool or Transport (limit.Bind).
func NewGate(l limit.Limiter) *Gate {
	g, err := NewGateWith(GateConfig{Limiter: l})
	if err != nil {
		panic(err.Error())
	}
	return g
}

// GateConfig describes a Gate with options: a bound on the line, precise instants, or small costs
// that go ahead. Only Limiter has no default.
type GateConfig struct {
	// Limiter decides when a cost may go. It belongs to the Gate from now on, as with NewGate. It
	// must not be nil.
	Limiter limit.Limiter
	// MaxWaiting is the most goroutines that may wait; a further Wait fails with ErrFull. If zero,
	// there is no bound.
	MaxWaiting int
	// Precise admits the first in line within microseconds of its instant. The goroutine wakes 1.2
	// ms early and yields in a loop until then: one goroutine per Gate, never more. If false, a
	// timer wakes it, which on Linux is 0.1 to 1 ms late. If no core is free, both are late.
	//
	// The price is up to 1.2 ms of a core for every instant that a goroutine waits for. From some
	// 800 waits a second on that is a whole core, though any other runnable goroutine goes first.
	// The gain is the lateness, once per window: 0.8 % of a limit per 100 ms, 0.1 % per second. Per
	// minute it is nothing to speak of. Precise has no effect where the clock stands still while
	// goroutines run, as in a synctest bubble.
	Precise bool
	// Fill is how many goroutines behind the first in line may be examined for one that may go
	// ahead of it. They are examined in their order. A cost may go ahead if it has room now and
	// leaves enough room for the first to go at its foreseen instant (limit.MayPass). Fill is also
	// the most times that a goroutine may be overtaken; after that, no other goes ahead of it.
	//
	// Take sizes like those of prompts to a language model, and a limit of tokens. Then 64 uses 2 %
	// more of the limit than strict order, and the longest waits are shorter. Examining costs some
	// 30 ns per goroutine and limit, at every change of a Gate with a line.
	//
	// An answer that used less than was admitted leaves more room for all. The first in line has
	// the first choice of that room, but a cost that went ahead stays ahead. No cost goes ahead
	// while only a Settle decides when the first may go. TryWait overtakes no goroutine. The
	// Limiter must be able to foresee (limit.Foresees). If zero, the order is strictly first come,
	// first served.
	Fill int
	// Logger gets a line when the first in line has to wait: at level debug for more than 5 ms, and
	// at level info for 10 s or more. An example is "requests: 3 waiting, next in 45.0 s". The attributes are limit, waiting, next,
	// round and rule. The rule distinguishes limits of one name: "20 requests per 1s". A lane with several
	// ways, such as keys, waits for the one that is ready first; ways is their number.
	// A new instant at which the first may go begins a round, and the attribute is its number.
	// Within 10 s of a line, there is another only if that instant is more than 10 s later. While
	// only a Settle can make room, the wait is unknown and no line is logged. The limit "hint" is what
	// the server's answers say is left.
	//
	// The goroutine that found the instant logs after it released the Gate: in Wait, Settle, Update
	// or TryWait, or from a timer. A slow Handler thus delays that goroutine alone, and a Handler
	// may use the Gate. If nil, there is no log.
	//
	// A line at level warn says that permits stay unsettled: "concurrency: 2 waiting, 20 permits
	// unsettled, the oldest for 3m0s". It appears after the first in line has waited for more than
	// a minute for a missing Settle, while no other goroutine went. It appears again after two
	// minutes, four, and so on. The WaitError of a goroutine that gives up has the same figures.
	Logger *slog.Logger
}

// NewGateWith returns a Gate as configured. The error says that the Limiter is nil or belongs to
// another owner, or names the number that makes no sense.
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
	if err := limit.Bind(c.Limiter, j); err != nil {
		return nil, fmt.Errorf("paceline: Gate: %w", err)
	}
	g.limit = j.Limit(LimitConfig{Limiter: c.Limiter})
	g.lane = j.Lane(LaneConfig{Logger: c.Logger}, []*Limit{g.limit})
	if c.Precise && j.clockMoves() {
		j.lead = spinLead
	}
	return g, nil
}

// spinLead is longer than a Linux timer is late on an idle machine: epoll counts in milliseconds.
const spinLead = 1200 * time.Microsecond

// clockMoves reports whether a goroutine can wait for an instant by reading the clock. The clock of
// a synctest bubble stands still while a goroutine runs.
func (j *Group) clockMoves() bool {
	for range 1000 {
		if j.now() > 0 {
			return true
		}
	}
	return false
}

// Wait returns when cost has been admitted. The goroutine takes its place at the end of the line.
// It leaves by an admission or by an error, which is always a *WaitError:
//
//   - ErrNever: the cost is larger than the limit can ever allow, or negative. At once, or later
//     after an Update.
//   - ErrDeadline: the cost cannot go before ctx's deadline, given the goroutines before it. At
//     once, or later as soon as that is known, or when the deadline passes. The error has the
//     instant at which the cost could have gone. That instant holds if the goroutines before it
//     stay and use at least what they surely use (limit.Cost.Least).
//   - ErrFull, at once: MaxWaiting goroutines wait already.
//   - ctx's error and its cause, if ctx is or becomes cancelled.
//
// A goroutine that gives up uses nothing of the limit and delays no other. If an admission and the
// end of ctx coincide, the admission wins: Wait returns the Permit although ctx is done. A caller
// with no more use for it settles it as limit.Unsent. A ctx that was done before the call gets no
// Permit.
func (g *Gate) Wait(ctx context.Context, cost limit.Cost) (Permit, error) {
	return g.lane.wait(ctx, &cost, limit.Never, nil)
}

// Do waits as Wait does, then runs f, and settles when f returns. A nil error settles as accepted;
// any other settles as unknown, which counts as long as the request may still arrive. A panic of f
// and runtime.Goexit settle as unknown too, and then continue. Do returns f's error, or a
// *WaitError, in which case f did not run.
//
// f must not wait at the same Gate. A Do within a Do waits for a permit while it holds one. If that
// was the last one, it waits for itself: for ever, or until ctx ends. After a minute the Logger says
// that a permit is unsettled, and so does the *WaitError.
//
// f is the request from its first byte to the last byte of the answer. Work on the answer belongs
// after Do, and so does an error that concerns only that work. A caller that knows more uses
// DoWith: how the request ended, what it used, what the server said.
func (g *Gate) Do(ctx context.Context, cost limit.Cost, f func() error) error {
	return g.lane.Do(ctx, cost, f)
}

// DoWith is Do for an f that also returns the outcome. It settles with that outcome, whatever the
// error is, and returns the error. A panic settles as unknown.
func (g *Gate) DoWith(ctx context.Context, cost limit.Cost, f func() (limit.Outcome, error)) error {
	return g.lane.DoWith(ctx, cost, f)
}

// WaitWithStats is Wait, and also returns how long the goroutine was in line and for which limits,
// even with an error. It allocates if it waited.
func (g *Gate) WaitWithStats(ctx context.Context, cost limit.Cost) (p Permit, s WaitStats, err error) {
	return g.lane.WaitWithStats(ctx, cost)
}

// TryWait returns these in place of a time to wait. As in package limit, they are later than every
// instant.
const (
	// RetryAfterSettle: only an event such as the Settle of an open Permit can make room, at an
	// unknown instant.
	RetryAfterSettle = time.Duration(math.MaxInt64 - 1)
	// RetryNever: the cost is larger than the limit, or negative; only a change of the limit helps.
	RetryNever = time.Duration(math.MaxInt64)
)

// TryWait admits cost now or not at all. It overtakes no waiting goroutine, whatever Fill is: while
// there is a line ok is false, even if cost would fit.
//
// If ok is false, retry is more than 0: asking again within that time is in vain, as far as is
// known now. It is the time until both this cost and the first in line could go, not a place in the
// line. If that time is unknown, retry is RetryAfterSettle or RetryNever. Asking again for the same
// cost takes no lock while nothing has changed.
func (g *Gate) TryWait(cost limit.Cost) (p Permit, retry time.Duration, ok bool) {
	return g.lane.TryWait(cost)
}

// Ask returns the instant at which cost could go if it came now, behind those that wait, and how
// many wait. The instant is not later than the true one, if those before it stay and use at least
// what they surely use. The zero Time means that cost may go now, or that the instant is unknown.
// ErrNever means that cost never fits. Ask changes nothing, and takes equally long for a long line
// and an empty one.
func (g *Gate) Ask(cost limit.Cost) (at time.Time, ahead int, err error) { return g.lane.Ask(cost) }

// Snapshot returns the state of the Gate now. It has one client, without a name.
func (g *Gate) Snapshot() observe.Snapshot { return g.group.Snapshot() }

// Stats returns what the Gate has done so far, as of one instant.
func (g *Gate) Stats() observe.Stats { return g.lane.Stats() }

// retryAfter returns at, which is later than now, as a time to wait.
func retryAfter(now, at mono.Time) time.Duration {
	switch at {
	case limit.Never:
		return RetryNever
	case limit.AfterSettle:
		return RetryAfterSettle
	}
	return at.Sub(now)
}

// Update calls f under the Gate's lock, to change or read the limiter: SetLimit, SetWindow, Extend,
// the replay of a journal. now is the instant on the limiter's scale, whose epoch is the making of
// the Gate. After f, the Gate reviews every goroutine in line. The first ones that may go now go. A
// cost that no longer fits fails, and so does one that can no longer go by its deadline. f must
// neither call the Gate nor settle one of its Permits: that would hang.
func (g *Gate) Update(f func(now mono.Time)) { g.group.Update(f, g.limit) }

// Number is Group.Number, for a limiter that its owner drives beside the Gate, within Update.
func (g *Gate) Number() uint64 { return g.group.Number() }
