package paceline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// Gate lets goroutines wait for a Limiter, first come first served. Most callers want Wait; TryWait never blocks.
//
// The goroutine at the head of the line holds up all others, so that a large cost is not starved by small ones; with
// GateConfig.Fill those that do not delay it go ahead. Work that should be put in order by priority belongs in a Pool.
//
// A Gate starts no goroutine and needs no closing. It has one timer, set only while the head of the line knows when it
// may go; whoever makes room (a Settle, the timer, Update, a waiter who gives up) admits those at the head and wakes
// them alone. Safe for concurrent use. Made by NewGate; the zero Gate is not usable. A Gate made inside a testing/synctest
// bubble belongs to that bubble.
type Gate struct {
	base time.Time       // epoch of the instants that the limiter sees
	lead time.Duration   // how long before its instant the head of the line is woken, to spin until then; 0: not at all
	fill int             // how many behind the head may go ahead of it, and how often anybody may be overtaken
	log  *slog.Logger    // nil: none
	why  limit.Explainer // the limiter, if it is one
	hint hint            // written under the lock

	_ [64]byte // refusals read what is above, from all cores; what is below changes with every Permit

	mu      sync.Mutex // guards all below
	limiter limit.Limiter
	head    *waiter
	tail    *waiter
	waiting int
	wake    mono.Time // the head's verdict, later than the now of its asking; meaningless without a head

	timer *time.Timer
	armed mono.Time // instant the timer is set for, as far as the Gate cares; notArmed: none

	spinner *waiter      // the head, if it was told to look at the clock itself; then the timer is not needed
	due     atomic.Int64 // wake, for it to read without the lock

	// What is held up by which limit is looked at only while somebody wants to know.
	measured int          // how many of those in line do
	spent    []limitSpent // how long the head of the line waited for each limit
	bound    int          // the one that it waits for: an index of spent; -1: there is no line, or nobody looked
	since    mono.Time    // spent is right up to then
	round    mono.Time    // the instant of the last round
	rounds   uint64       // with log
	notice   notice       // to be logged by whoever lets go of the lock
	noted    notedRound   // the last of them

	// Not a sync.Pool: that would hand a channel from one synctest bubble to another.
	free  *waiter
	freed int

	ticks uint64 // timer callbacks
	wakes uint64 // waiters woken
}

const (
	notArmed = limit.Never
	// freeMax bounds what a burst of waiters leaves behind, at about 256 bytes each.
	freeMax = 1024
	// spinLead is more than a timer of Linux is late when nothing else runs: epoll counts in milliseconds.
	spinLead = 1200 * time.Microsecond
)

// waiter is a goroutine in line. Links and verdict are guarded by the Gate's lock; whoever takes it out of the line to
// wake it writes the verdict and sees to it that something is on woken, both under the lock, once. What is received while
// it is in line tells the spinner to begin.
type waiter struct {
	prev, next *waiter
	inLine     bool
	here       bool // it is what serves the line just now, and need not be woken
	ahead      int
	cost       limit.Cost
	asked      mono.Time
	deadline   mono.Time     // limit.Never: none
	woken      chan struct{} // room for one
	lease      limit.Lease   // the verdict if reason is nil
	reason     error
	ready      mono.Time // with ErrDeadline: when it could go
	passed     int       // how many went ahead of it
	measured   bool
	tally      *tally // not nil if it is or was measured
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

// GateConfig describes a Gate.
type GateConfig struct {
	// Limiter says when a cost may go. It belongs to the Gate from now on, as with NewGate. It must not be nil.
	Limiter limit.Limiter
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
	// What is answered meanwhile with less than was admitted makes room for all: of that the head has the first choice, but
	// what has gone ahead is gone. Nobody goes ahead while only a Settle can tell when the head may go. TryWait overtakes
	// nobody. The Limiter must be able to foresee (limit.Foresees). If zero, none: strictly first come, first served.
	Fill int
	// Logger is told, at level info, when the head of the line has to wait for more than 5 ms: "requests: 3 waiting, next in
	// 4.5 s", with the attributes limit, waiting, next and round, at most once per round. A round is another instant at
	// which the head may go; the attribute is its number. Within a second of its line the same head gets another only if it
	// has to wait for a second longer than that said: otherwise each answer that used less would be a line. Where only a
	// Settle can make room nobody knows for how long, and nothing is logged. The goroutine that found out (in Wait, Settle,
	// Update or TryWait, or a timer's) logs when it has let go of the Gate: a slow Handler holds up that goroutine and no
	// other, and may use the Gate. If nil, nobody is told.
	Logger *slog.Logger
}

// NewGateWith returns a Gate as configured. The error says that the Limiter is nil, or what is wrong with Fill.
func NewGateWith(c GateConfig) (*Gate, error) {
	if c.Limiter == nil {
		return nil, errors.New("paceline: Gate: the Limiter is nil")
	}
	if c.Fill < 0 {
		return nil, fmt.Errorf("paceline: Gate: Fill %d is negative", c.Fill)
	}
	if c.Fill > 0 && !limit.Foresees(c.Limiter) {
		return nil, fmt.Errorf("paceline: Gate: Fill %d: the Limiter, %T, does not foresee", c.Fill, c.Limiter)
	}
	g := &Gate{base: time.Now(), limiter: c.Limiter, armed: notArmed, fill: c.Fill, log: c.Logger, bound: -1, round: mono.Min}
	g.why, _ = c.Limiter.(limit.Explainer)
	g.hint.clear()
	if c.Precise && g.clockMoves() {
		g.lead = spinLead
	}
	return g, nil
}

// clockMoves tells whether an instant can be waited for by looking at the clock. That of a synctest bubble stands still
// until nobody runs.
func (g *Gate) clockMoves() bool {
	for range 1000 {
		if g.now() > 0 {
			return true
		}
	}
	return false
}

// Permit is leave to send one request now. Every Permit must be settled, exactly once: until then it counts in full
// against the limit. Copies are the same Permit. The zero Permit is none.
type Permit struct {
	gate  *Gate
	lease limit.Lease
}

// Settle says how the request ended, as soon as that is known: with limit.Unsent if it was not sent after all, with the
// zero Outcome if nobody can tell. It admits the head of the line if that makes room. It panics if the Permit was
// settled before or is the zero Permit.
func (p Permit) Settle(o limit.Outcome) {
	if p.gate == nil {
		panic("paceline: settle of the zero Permit")
	}
	p.gate.settle(p.lease, &o)
}

func (g *Gate) settle(l limit.Lease, o *limit.Outcome) {
	g.mu.Lock()
	defer g.unlock() // the limiter panics if this is the second time
	g.hint.clear()
	now := g.now()
	g.limiter.Settle(now, l, *o)
	if g.head != nil {
		g.serveLocked(now)
	}
}

// Wait returns when cost may go and has been admitted. It takes its place at the end of the line and leaves it only by
// being served or by an error, which is always a *WaitError:
//
//   - ErrNever, at once, if the cost is larger than the limit can ever allow; also later, if an Update makes it so.
//   - ErrDeadline, at once, if the earliest instant known is after ctx's deadline; also later, as soon as that is found
//     out, or if the deadline passes. The error says when it could have gone.
//   - ctx's error and its cause, if ctx is or gets cancelled.
//
// The earliest instant is that of now: if a Permit still open were settled as unsent it could be sooner. Giving up
// costs the limit nothing and those behind no time. A grant that races with giving up wins: the Permit is returned even
// if ctx is done by then (settle it as limit.Unsent if it is of no more use). A ctx done before the call never gets one.
func (g *Gate) Wait(ctx context.Context, cost limit.Cost) (Permit, error) {
	return g.wait(ctx, &cost, nil)
}

// WaitWithStats is Wait, and tells how long it was in line and what for, also with an error. It allocates if it waited.
func (g *Gate) WaitWithStats(ctx context.Context, cost limit.Cost) (p Permit, s WaitStats, err error) {
	p, err = g.wait(ctx, &cost, &s)
	return p, s, err
}

func (g *Gate) wait(ctx context.Context, cost *limit.Cost, s *WaitStats) (Permit, error) {
	if ctx.Err() != nil {
		e := &WaitError{Cost: *cost}
		e.ended(ctx)
		return Permit{}, e
	}
	p, w, err := g.enter(ctx, cost, s != nil)
	if w == nil {
		return p, err
	}
	done := ctx.Done()
	for {
		select {
		case <-w.woken:
		case <-done:
		}
		p, then, err := g.leave(ctx, w, s)
		for then == spin {
			g.spin(w, done)
			p, then, err = g.leave(ctx, w, s)
		}
		if then == gone {
			return p, err
		}
	}
}

// enter admits cost at once, or refuses it at once, or returns its new place in the line.
func (g *Gate) enter(ctx context.Context, cost *limit.Cost, measured bool) (Permit, *waiter, error) {
	g.mu.Lock()
	defer g.unlock()
	now := g.now()
	own, turn := g.askLocked(now, cost)
	at := max(own, turn)
	switch {
	case at <= now:
		return Permit{g, g.admitLocked(now, cost)}, nil, nil
	case at == limit.Never:
		return Permit{}, nil, &WaitError{Reason: ErrNever, Cost: *cost, Ahead: g.waiting, Bound: g.boundLocked(now, cost)}
	}
	mayPass := g.head != nil && g.waiting <= g.fill
	deadline := limit.Never
	if d, ok := ctx.Deadline(); ok {
		deadline = mono.Of(g.base, d)
		if mayPass {
			turn = mono.Min
		}
		// Either may be AfterSettle while the other already is an instant too late.
		if late := latest(own, turn); late > deadline {
			e := &WaitError{Reason: ErrDeadline, Cost: *cost, Ahead: g.waiting, Deadline: d}
			e.Ready = g.base.Add(time.Duration(late))
			if late == own || g.head == nil {
				e.Bound = g.boundLocked(now, cost)
			} else {
				e.Bound = g.boundLocked(now, &g.head.cost)
			}
			return Permit{}, nil, e
		}
	}
	w := g.free
	if w != nil {
		g.free, w.next = w.next, nil
		g.freed--
	} else {
		w = &waiter{woken: make(chan struct{}, 1)}
	}
	w.cost, w.asked, w.deadline, w.ahead = *cost, now, deadline, g.waiting
	w.passed = 0
	g.beginLocked(now, w, measured)
	g.linkLocked(w)
	switch {
	case g.head == w:
		g.wakeAtLocked(now, at)
	case mayPass:
		// Those before it too: time alone may have made room for them.
		w.here = true
		if at, filled := g.fillLocked(now, g.wake); filled {
			g.wakeAtLocked(now, at)
		}
		w.here = false
		if !w.inLine {
			p := Permit{g, w.lease}
			g.recycleLocked(w)
			return p, nil, nil
		}
	}
	return Permit{}, w, nil
}

// What a waiter does next.
type next int

const (
	gone  next = iota // return
	spin              // look at the clock
	sleep             // until woken, or the context ends
)

// leave reads the verdict of a waiter that was woken, gives up, or is done with spinning, and frees its place unless it
// is to go on waiting.
func (g *Gate) leave(ctx context.Context, w *waiter, s *WaitStats) (Permit, next, error) {
	g.mu.Lock()
	defer g.unlock()
	if w.inLine && ctx.Err() != nil {
		now := g.now()
		e := &WaitError{Cost: w.cost, Ahead: w.ahead, Waited: now.Sub(w.asked)}
		e.ended(ctx)
		e.Bound = g.boundLocked(now, &g.head.cost)
		if g.wake > now && g.wake < limit.AfterSettle {
			e.Ready = g.base.Add(time.Duration(g.wake))
		}
		first := g.head == w
		g.unlinkLocked(now, w)
		g.tellLocked(w, s)
		g.recycleLocked(w)
		if first || g.fill > 0 { // with Fill another is looked at now
			g.serveLocked(now)
		}
		return Permit{}, gone, e
	}
	if g.spinner == w {
		if now := g.now(); !g.nearLocked(now) {
			g.spinner, w.here = nil, true
			g.serveLocked(now)
			w.here = false
		}
	}
	switch {
	case g.spinner == w:
		return Permit{}, spin, nil
	case w.inLine:
		return Permit{}, sleep, nil
	case w.reason == nil:
		p := Permit{g, w.lease}
		g.tellLocked(w, s)
		g.recycleLocked(w)
		return p, gone, nil
	}
	now := g.now()
	e := &WaitError{Reason: w.reason, Cost: w.cost, Ahead: w.ahead, Waited: now.Sub(w.asked), Bound: g.boundLocked(now, &w.cost)}
	e.Deadline, _ = ctx.Deadline()
	if w.reason == ErrDeadline {
		e.Ready = g.base.Add(time.Duration(w.ready))
	}
	g.tellLocked(w, s)
	g.recycleLocked(w)
	return Permit{}, gone, e
}

// spin yields until w is due, or not soon, or has its verdict, or gives up.
func (g *Gate) spin(w *waiter, done <-chan struct{}) {
	for len(w.woken) == 0 {
		select {
		case <-done:
			return
		default:
		}
		runtime.Gosched()
		if d := mono.Time(g.due.Load()).Sub(g.now()); d <= 0 || d > g.lead {
			return
		}
	}
}

// nearLocked tells whether the head of the line is due soon, but not yet.
func (g *Gate) nearLocked(now mono.Time) bool {
	d := g.wake.Sub(now)
	return d > 0 && d <= g.lead
}

// What TryWait says instead of a time to wait: as in package limit, later than every instant.
const (
	// RetryAfterSettle: only the Settle of an open Permit can make room, and nobody knows when that will be.
	RetryAfterSettle = time.Duration(math.MaxInt64 - 1)
	// RetryNever: the cost is larger than the limit; only a change of limit helps.
	RetryNever = time.Duration(math.MaxInt64)
)

// TryWait admits cost now or not at all. Whatever Fill is, it does not overtake goroutines that wait: while there is a line
// ok is false, even if cost would fit.
//
// If ok is false, retry is more than 0: for at least that long, as far as is known now, asking again is in vain. It is
// the time until both this cost and the head of the line could go, not a place in the line. Where no such time is known
// it is RetryAfterSettle or RetryNever. Asking again for the same cost takes no lock while nothing has changed.
func (g *Gate) TryWait(cost limit.Cost) (p Permit, retry time.Duration, ok bool) {
	if g.hint.until.Load() != noHint {
		if retry, ok := g.refuse(&cost); ok {
			return Permit{}, retry, false
		}
	}
	g.mu.Lock()
	defer g.unlock()
	now := g.now()
	own, turn := g.askLocked(now, &cost)
	at := max(own, turn)
	if at <= now {
		return Permit{g, g.admitLocked(now, &cost)}, 0, true
	}
	until := at
	if g.head != nil {
		until = turn // from then on asking serves the line
	}
	g.hint.set(until, at, &cost)
	return Permit{}, retryAfter(now, at), false
}

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

// Update calls f under the Gate's lock, to change or read the limiter: SetLimit, Extend, the replay of a journal. now
// is the instant on the limiter's scale, whose epoch is the making of the Gate. Afterwards every goroutine in line is
// asked about again: those at the head that may go now go, and those whose cost can no longer fit, or no longer by their
// deadline, fail. f must not call the Gate, nor settle one of its Permits: that would hang.
func (g *Gate) Update(f func(now mono.Time)) {
	g.mu.Lock()
	defer g.unlock()
	g.hint.clear()
	defer g.reviewLocked() // even if f panics: it may have changed something before
	f(g.now())
}

func (g *Gate) now() mono.Time { return mono.Time(time.Since(g.base)) }

// tick is the timer's callback. A callback overtaken by another setting of the timer is harmless: it asks and sets again.
func (g *Gate) tick() {
	g.mu.Lock()
	defer g.unlock()
	g.ticks++
	g.armed = notArmed
	g.serveLocked(g.now())
}

// askLocked returns when a newcomer's cost could go by itself, and when the head of the line could. Both are at or
// before now only if there is no line.
func (g *Gate) askLocked(now mono.Time, cost *limit.Cost) (own, turn mono.Time) {
	turn = now
	if g.head != nil {
		if g.wake <= now { // the timer is late
			g.serveLocked(now)
		}
		if g.head != nil {
			turn = g.wake
		}
	}
	return g.limiter.Ready(now, *cost), turn
}

// serveLocked admits and wakes those at the head of the line that may go, and behind it those that do not delay it, and
// sets the timer for the first that may not. It must follow every change of the limiter and of the head.
func (g *Gate) serveLocked(now mono.Time) {
	for w := g.head; w != nil; w = g.head {
		at := g.limiter.Ready(now, w.cost)
		if at > now {
			if g.failLocked(now, w, at) {
				continue
			}
			if g.fill > 0 {
				if at, _ = g.fillLocked(now, at); at <= now {
					continue
				}
			}
			g.wakeAtLocked(now, at)
			return
		}
		w.lease = g.admitLocked(now, &w.cost)
		g.wakeLocked(now, w, nil)
	}
	g.wakeAtLocked(now, notArmed)
}

// reviewLocked serves the line and then looks at the rest of it, which serveLocked leaves for later.
func (g *Gate) reviewLocked() {
	now := g.now()
	g.serveLocked(now)
	if g.head == nil {
		return
	}
	failed := false
	for w := g.head.next; w != nil; {
		next := w.next
		failed = g.failLocked(now, w, g.limiter.Ready(now, w.cost)) || failed
		w = next
	}
	if failed && g.fill > 0 { // others are among the next now
		g.serveLocked(now)
	}
}

// failLocked wakes w with an error if at, its verdict, leaves it no hope, and reports whether it did.
func (g *Gate) failLocked(now mono.Time, w *waiter, at mono.Time) bool {
	switch {
	case at == limit.Never:
		g.wakeLocked(now, w, ErrNever)
	case at < limit.AfterSettle && at > w.deadline:
		w.ready = at
		g.wakeLocked(now, w, ErrDeadline)
	default:
		return false
	}
	return true
}

func (g *Gate) wakeLocked(now mono.Time, w *waiter, reason error) {
	g.unlinkLocked(now, w)
	w.reason = reason
	g.wakes++
	if !w.here {
		w.nudge()
	}
}

// nudge has w look for what is new.
func (w *waiter) nudge() {
	select {
	case w.woken <- struct{}{}:
	default: // it was told to spin, has not begun, and will see
	}
}

// admitLocked admits cost, which was asked for at the same now.
func (g *Gate) admitLocked(now mono.Time, cost *limit.Cost) limit.Lease {
	g.hint.clear()
	return g.limiter.Admit(now, *cost)
}

// wakeAtLocked notes the head's verdict and sets the timer for it, or stops the timer if it is no instant, or has the
// head look at the clock if it is soon.
func (g *Gate) wakeAtLocked(now, at mono.Time) {
	g.hint.clear()
	g.wake = at
	if g.measured > 0 || g.log != nil {
		g.roundLocked(now, at)
	} else {
		g.bound = -1
	}
	if g.lead > 0 {
		g.due.Store(int64(at))
		if g.spinner == nil && g.head != nil && g.nearLocked(now) {
			g.spinner = g.head
			if !g.head.here { // it would take the nudge for its verdict, over and over
				g.head.nudge()
			}
		}
	}
	if at >= limit.AfterSettle || g.spinner != nil {
		at = notArmed
	}
	if at == g.armed {
		return
	}
	g.armed = at
	switch {
	case at == notArmed:
		g.timer.Stop()
	case g.timer == nil:
		g.timer = time.AfterFunc(at.Sub(now)-g.lead, g.tick)
	default:
		g.timer.Reset(at.Sub(now) - g.lead)
	}
}

func (g *Gate) linkLocked(w *waiter) {
	w.inLine = true
	w.prev = g.tail
	if g.tail == nil {
		g.head = w
	} else {
		g.tail.next = w
	}
	g.tail = w
	g.waiting++
}

func (g *Gate) unlinkLocked(now mono.Time, w *waiter) {
	g.endLocked(now, w)
	if w.prev == nil {
		g.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		g.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.inLine = nil, nil, false
	if g.spinner == w {
		g.spinner = nil
	}
	g.waiting--
}

// recycleLocked keeps a waiter that is out of the line and has read its verdict.
func (g *Gate) recycleLocked(w *waiter) {
	if g.freed == freeMax {
		return
	}
	if len(w.woken) > 0 { // it found out by itself
		<-w.woken
	}
	w.next, g.free = g.free, w
	g.freed++
}

// latest returns the later of those of a and b that are instants, or mono.Min.
func latest(a, b mono.Time) mono.Time {
	t := mono.Min
	if a < limit.AfterSettle {
		t = a
	}
	if b < limit.AfterSettle {
		t = max(t, b)
	}
	return t
}
