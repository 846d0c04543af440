package paceline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// Group lets goroutines wait for several limits at once, in lanes that share them. Examples: a
// model's limit beside that of the account, tenants that share a quota by weight, several keys of
// which any will do.
//
//	j, err := paceline.NewGroup(paceline.GroupConfig{})
//	account := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(500, time.Minute)})
//	model := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(60, time.Minute)})
//	lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{model, account})
//	permit, err := lane.Wait(ctx, limit.One)
//
// A permit covers all limits of a way at once, so a goroutine that waits for one limit holds
// nothing of another. Within a lane the order is first come, first served. Between lanes at a limit
// it is the same, or by weight if the limit is fair. No lane starves. A Gate is a Group of one
// limit and one lane.
//
// A Group starts no goroutine and needs no closing. It has one lock and one timer, set only while
// the instant at which a goroutine may go is known. It is safe for concurrent use. NewGroup makes
// it; the zero Group is not usable.
type Group struct {
	base time.Time     // epoch of the instants that the limiters see
	lead time.Duration // how long before its instant the first wakes, to spin until then; 0: it does not spin
	hint hint          // written under the lock

	_ [64]byte // refusals on all cores read the fields above; every Permit changes those below

	mu      sync.Mutex // guards all below, and the lanes
	line    *scheduler.Scheduler
	changes uint64 // the scheduler's count of changes at the latest look
	timer   *time.Timer
	armed   mono.Time // instant for which the timer is set, as far as the Group cares; notArmed: none

	spinner *waiter      // the waiter that reads the clock itself, if any; the timer is then not needed
	due     atomic.Int64 // the spinner's instant, read without the lock
	lapses  atomic.Bool  // whether permits of one of the limits can lapse

	notices []notice      // to be logged after the lock is released
	outcome limit.Outcome // of the present Settle
	view    View          // of the lanes that are in no other View

	// Not a sync.Pool: that would pass a channel from one synctest bubble to another.
	free  *waiter
	freed int
	spare atomic.Pointer[waiter] // one more, returned without the lock

	ticks uint64 // timer callbacks
	wakes uint64 // waiters woken
}

const (
	notArmed = limit.Never
	// freeMax bounds the free waiters that a burst leaves behind, at about 500 bytes each.
	freeMax = 1024
)

// GroupConfig describes a Group. The zero value is ready.
type GroupConfig struct {
	// Fill is how many goroutines behind the first of a lane may be examined for one that may go
	// ahead of it: see GateConfig.Fill. The limiters must be able to foresee (limit.Foresees). If
	// zero, none.
	Fill int
	// MaxWaiting is the most goroutines that may wait, in all lanes together. If zero, there is no
	// bound.
	MaxWaiting int
}

// NewGroup returns a Group without limits and lanes. The error names the field and the value that
// make no sense.
func NewGroup(c GroupConfig) (*Group, error) {
	j := new(Group)
	if err := j.init("Group", c); err != nil {
		return nil, err
	}
	return j, nil
}

func (j *Group) init(what string, c GroupConfig) error {
	switch {
	case c.Fill < 0:
		return fmt.Errorf("paceline: %s: Fill %d is negative", what, c.Fill)
	case c.MaxWaiting < 0:
		return fmt.Errorf("paceline: %s: MaxWaiting %d is negative", what, c.MaxWaiting)
	}
	j.base, j.armed = time.Now(), notArmed
	j.line = scheduler.New(scheduler.Config{Fill: c.Fill, Size: c.MaxWaiting, Watch: watched})
	j.view = View{group: j, since: j.base}
	j.hint.clear()
	return nil
}

// Limit is a limiter of a Group, which its lanes share. Group.Limit makes it; the zero value is not
// usable.
type Limit struct {
	limit  *scheduler.Limit
	log    *slog.Logger // nil: none
	whose  observe.Whose
	paused func(now mono.Time) (observe.PauseState, bool) // nil: it has no pauses
}

// LimitConfig describes a Limit of a Group. Only Limiter has no default.
type LimitConfig struct {
	// Limiter decides when a cost may go. It belongs to the Group from now on: other code may use
	// it only inside Update.
	Limiter limit.Limiter
	// Fair lets lanes take turns by weight instead of by arrival. The weight applies to what a cost
	// uses of Unit, or, if Use is not nil, to the result of Use. The Group calls Use under its
	// lock: Use must be quick and must not use the Group.
	Fair bool
	Unit limit.Unit
	Use  func(limit.Cost) float64
	// Logger gets the lines about the first of a lane, if it waits for this limit: see GateConfig.
	// If nil, the Lane's Logger gets them.
	Logger *slog.Logger
	// Whose says in Snapshots whom the limit concerns.
	Whose observe.Whose
	// Paused, if not nil, reports for Snapshots whether something other than the limit keeps
	// requests away, and for how long. The Group calls it under its lock: it must change nothing
	// and must not use the Group.
	Paused func(now mono.Time) (observe.PauseState, bool)
	// Own means that the limit is one party's own. What the party leaves free is for others, so it
	// leaves nothing of this limit.
	Own bool
}

// Limit adds a limit. It panics if the Limiter is nil, or belongs to another owner (limit.Bind). The Group forgets a limit without lanes at
// its last Settle.
func (j *Group) Limit(c LimitConfig) *Limit {
	if c.Limiter == nil {
		panic("paceline: Group: the Limiter is nil")
	}
	if err := limit.Bind(c.Limiter, j); err != nil {
		panic("paceline: Group: " + err.Error())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	m := &Limit{j.line.Limit(c.Limiter, scheduler.Sharing{Fair: c.Fair, Unit: c.Unit, Use: c.Use, Own: c.Own}), c.Logger,
		c.Whose, c.Paused}
	m.limit.Of = m
	j.noteLapsesLocked(m)
	limit.SetEpoch(c.Limiter, j.base)
	ability.Supply(c.Limiter, func() { j.again(m) }, func() (int, float64) { return j.waitingFor(m) }, func(kind, text string) {
		j.Note(observe.Event{Kind: kind, Whose: c.Whose, Text: text})
	})
	return m
}

// Rename changes LimitConfig.Whose.
func (j *Group) Rename(m *Limit, whose observe.Whose) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m.whose = whose
}

func (j *Group) noteLapsesLocked(m *Limit) {
	if !j.lapses.Load() && ability.Lapses(m.limit.Limiter) {
		j.lapses.Store(true)
	}
}

// again reviews those that wait for a limit that has more room now, as far as they may go.
func (j *Group) again(m *Limit) {
	j.mu.Lock()
	defer j.unlock()
	j.hint.clear()
	now := j.line.Tick(j.now())
	j.line.Touch(m.limit)
	j.deliverLocked(now)
}

func (j *Group) waitingFor(m *Limit) (n int, free float64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return m.limit.Waiting()
}

// Lane is a queue of goroutines that wait for the same limits, first come, first served. Safe for
// concurrent use.
type Lane struct {
	group  *Group
	lane   *scheduler.Lane
	view   *View  // the View that shows it
	share  *Class // nil: the lane counts by itself
	start  time.Duration
	log    *slog.Logger // nil: none
	logs   bool         // whether it or one of its limits has a Logger
	watch  watch
	counts counts
	waits  observe.Waits
	waited int64 // admissions that had to wait
	about  about

	drained error // of Drain; the Group's lock guards it
}

// LaneConfig describes a Lane. The zero value is ready.
type LaneConfig struct {
	// Weight is the lane's part of a fair limit, relative to the other lanes. If zero, 1.
	Weight float64
	// Share, if not nil, is a Class: several lanes that count as one at a fair limit, such as the
	// lanes of one client. The Class's weight and head start replace Weight and HeadStart, and its
	// bound applies beside MaxWaiting. If nil, the lane counts by itself.
	Share *Class
	// Reserve is the part of each limit that the lane leaves free: see ClassConfig. With Share, that
	// of the Class counts.
	Reserve float64
	// HeadStart is the lane's priority. At limits that lanes share, the lane's goroutines count as
	// having come earlier by that much. It may be negative. No goroutine waits for ever, since one
	// that really came that much earlier goes first.
	HeadStart time.Duration
	// MaxWaiting is the most goroutines that may wait in the lane. If zero, there is no bound.
	MaxWaiting int
	// Logger gets lines about the first of the lane: see GateConfig. If nil, there is no log.
	Logger *slog.Logger
	// Quiet means that nothing is logged of the lane, not by LimitConfig.Logger either. It is for lanes
	// of one goroutine each: their lines would come as often as they do.
	Quiet bool
	// Fill replaces GroupConfig.Fill for this lane, if it is larger. It must not be negative.
	Fill int
	// View shows the lane in its Snapshots. If nil, the Group's own Snapshots show it.
	View *View
	// Client names the party that waits in the lane. Snapshots show lanes of the same Client
	// together.
	Client string
	// After, if not nil, has for each way how long after its arrival (see Turn.Came) a goroutine may
	// go by it: 0 for equals, more for a spare way that is dearer. A way opens at once for a goroutine
	// for which all ways with a smaller After are shut: one of their limits never lets it go, or not
	// by its deadline, or a host is down. With the largest Duration, a way opens then alone. If nil,
	// all ways are open.
	After []time.Duration
	// Homes means that goroutines may prefer some of the ways: see Turn.Homes.
	Homes bool
	// Classes, if not nil, has for each way the index of its cost in Turn.Costs, from 0 to 126.
	Classes []int
	// Told means that the owner of the lane reports refusals itself, by Group.Note. If false, the
	// Group notes an Event for each refusal that is settled.
	Told bool
}

// Lane adds a lane. A way is 1 to 8 different limits of this Group, narrowest first; a goroutine
// passes all of them at once. Each goroutine goes by one way: the one that lets it go first, of those
// that are open (LaneConfig.After). Lane panics if there is no way, or if a way has no limit or too
// many, or if After or Classes does not have one value for each way.
func (j *Group) Lane(c LaneConfig, ways ...[]*Limit) *Lane {
	all, logs := make([][]*scheduler.Limit, len(ways)), c.Logger != nil
	for i, way := range ways {
		for _, m := range way {
			all[i], logs = append(all[i], m.limit), logs || m.log != nil
		}
	}
	logs = logs && !c.Quiet
	j.mu.Lock()
	defer j.mu.Unlock()
	a := &Lane{group: j, view: cmp.Or(c.View, &j.view), share: c.Share, start: c.HeadStart, log: c.Logger, logs: logs,
		watch: watch{bound: -1, round: mono.Min, stuck: stuck{since: limit.Never, look: limit.Never}}}
	a.lane = j.line.Lane(scheduler.LaneConfig{Weight: c.Weight, Share: c.Share.of(), Size: c.MaxWaiting, Fill: c.Fill,
		After: c.After, Homes: c.Homes, Classes: c.Classes, Reserve: c.Reserve}, all...)
	a.lane.Of = a
	for _, w := range a.lane.Ways() {
		w.Of = a
	}
	a.lane.Watched = logs
	a.about = about{client: c.Client, told: c.Told, weight: c.Weight}
	a.view.look.add(a)
	return a
}

// Retire takes a lane out of the Group. Its permits may still be settled. It panics if a goroutine
// waits in the lane; no goroutine may use the lane afterwards.
func (a *Lane) Retire() {
	a.group.mu.Lock()
	defer a.group.mu.Unlock()
	a.group.line.Retire(a.lane)
	a.view.look.retire(a)
}

// Permit is leave to send one request now. Every Permit must be settled exactly once; until then it
// counts in full against the limits. Copies are the same Permit. The zero Permit is none.
type Permit struct {
	pass scheduler.Pass // two words: a large struct would pass through memory, at twice the price
}

// Settle records how the request ended, as soon as that is known. A request that was not sent after
// all settles with limit.Unsent; an unknown end settles with the zero Outcome. If Settle makes
// room, it admits the goroutines that may go. It panics if the Permit was settled before or is the
// zero Permit.
func (p Permit) Settle(o limit.Outcome) {
	a := p.lane()
	j := a.group
	j.mu.Lock()
	defer j.unlock() // a second Settle panics
	now := j.now()
	j.outcome = o // a pointer to o would make the compiler allocate it
	j.line.Settle(now, p.pass, &j.outcome)
	a.countLocked(&j.outcome)
	j.deliverLocked(now)
}

// countLocked counts how a request of the lane ended.
func (a *Lane) countLocked(o *limit.Outcome) {
	a.counts.tally.Settled(o)
	if o.Result == limit.Limited {
		a.noteRefusalLocked(o)
	}
}

// SettleEach is Settle with an outcome for each limit, which of returns. of is called under the
// Group's lock and must not use the Group.
func (p Permit) SettleEach(o limit.Outcome, of func(*Limit) limit.Outcome) {
	a := p.lane()
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	now := j.now()
	j.line.SettleEach(now, p.pass, func(m *scheduler.Limit) *limit.Outcome {
		j.outcome = of(m.Of.(*Limit))
		return &j.outcome
	})
	a.countLocked(&o)
	j.deliverLocked(now)
}

// Fresh reports whether the request may still be sent. A permit of a limit that many processes
// share (package share) is fresh only while this process has its part of that limit. With such a
// limit, ask right before writing the request, and settle a permit that is not fresh as
// limit.Unsent. Fresh panics if the Permit is the zero Permit, or was settled and such a limit is
// among its limits.
func (p Permit) Fresh() bool {
	j := p.lane().group
	if !j.lapses.Load() {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.line.Fresh(p.pass)
}

// FreshFor is Fresh, also for a write that comes up to d later. It is for a permit that is passed on to
// another process, which cannot ask.
func (p Permit) FreshFor(d time.Duration) bool {
	j := p.lane().group
	if !j.lapses.Load() {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.line.FreshFor(p.pass, d)
}

// lane returns the lane of a Permit, and panics if it is the zero Permit.
func (p Permit) lane() *Lane {
	if p.pass.Way == nil {
		panic("paceline: settle of the zero Permit")
	}
	return p.pass.Way.Of.(*Lane)
}

// Way returns the index of the Permit's way.
func (p Permit) Way() int { return p.pass.Way.Index }

// Wait is Gate.Wait, in this lane: the limits are those of all its ways.
func (a *Lane) Wait(ctx context.Context, cost limit.Cost) (Permit, error) {
	return a.wait(ctx, &cost, limit.Never, nil)
}

// Do is Gate.Do, in this lane.
func (a *Lane) Do(ctx context.Context, cost limit.Cost, f func() error) error {
	p, err := a.wait(ctx, &cost, limit.Never, nil)
	if err != nil {
		return err
	}
	var o limit.Outcome // unknown, if f does not return
	defer func() { p.Settle(o) }()
	if err = f(); err == nil {
		o.Result = limit.Accepted
	}
	return err
}

// DoWith is Gate.DoWith, in this lane.
func (a *Lane) DoWith(ctx context.Context, cost limit.Cost, f func() (limit.Outcome, error)) error {
	p, err := a.wait(ctx, &cost, limit.Never, nil)
	if err != nil {
		return err
	}
	var o limit.Outcome
	defer func() { p.Settle(o) }()
	o, err = f()
	return err
}

// WaitWithStats is Wait, and also returns how long the goroutine was in line and for which limits,
// even with an error. It allocates if it waited.
func (a *Lane) WaitWithStats(ctx context.Context, cost limit.Cost) (p Permit, s WaitStats, err error) {
	p, err = a.wait(ctx, &cost, limit.Never, &s)
	return p, s, err
}

// WaitFrom is WaitWithStats with a place in line as of came, which is earlier than now: for a
// request that is sent again.
func (a *Lane) WaitFrom(ctx context.Context, cost limit.Cost, came time.Time) (p Permit, s WaitStats, err error) {
	p, err = a.wait(ctx, &cost, mono.Of(a.group.base, came), &s)
	return p, s, err
}

// Turn describes how a goroutine waits.
type Turn struct {
	// Came is the goroutine's time of arrival, which decides its place in line. If zero, now.
	Came time.Time
	// MaxWait is the longest wait. A goroutine whose foreseen wait (see Expect) is longer fails at
	// once with ErrDeadline. If zero, there is no bound.
	MaxWait time.Duration
	// Again means that the goroutine was in line before, in a lane that was drained (Lane.Drain). No
	// MaxWaiting refuses it.
	Again bool
	// Homes are the ways that the goroutine prefers, as bits by their index, in a lane with
	// LaneConfig.Homes. It goes by another only Hold after it came, or at once where those are shut (see
	// LaneConfig.After). If zero, it prefers none.
	Homes uint64
	Hold  time.Duration
	// Costs, if not nil, has the cost by each class of ways, in a lane with LaneConfig.Classes. The cost of
	// the Wait is then the largest of each unit. The Permit has the cost of its way. Costs must not change
	// during the Wait. If nil, all ways have one cost.
	Costs []limit.Cost
}

// chooses reports whether the goroutine prefers ways, or has a cost for each class of them. A nil Turn
// does not.
func (t *Turn) chooses() bool { return t != nil && (t.Homes != 0 || t.Costs != nil) }

// WaitTurn is WaitWithStats for a goroutine with an earlier arrival or a bounded wait.
func (a *Lane) WaitTurn(ctx context.Context, cost limit.Cost, t Turn) (p Permit, s WaitStats, err error) {
	came := limit.Never
	if !t.Came.IsZero() {
		came = mono.Of(a.group.base, t.Came)
	}
	if t.Costs != nil {
		if missing := func(class int) bool { return class >= len(t.Costs) }; slices.ContainsFunc(a.lane.Classes(), missing) {
			panic(fmt.Sprintf("paceline: Turn: %d Costs, and the lane has more Classes", len(t.Costs)))
		}
		for i := range t.Costs {
			if t.Costs[i].Negative() {
				return Permit{}, s, a.negative(&t.Costs[i])
			}
		}
	}
	p, err = a.waitTurn(ctx, &cost, came, &t, &s)
	return p, s, err
}

// Ask is Gate.Ask, in this lane.
func (a *Lane) Ask(cost limit.Cost) (at time.Time, ahead int, err error) {
	if cost.Negative() {
		return time.Time{}, 0, &WaitError{Reason: ErrNever, Cost: cost}
	}
	j, least := a.group, cost.Least()
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	t, n := j.line.Ask(now, a.lane, &cost, &least)
	switch {
	case t == limit.Never:
		e := &WaitError{Reason: ErrNever, Cost: cost, Ahead: n}
		e.Limit, e.Rule, _ = a.boundLocked(now, &scheduler.Ticket{Cost: cost})
		return time.Time{}, n, e
	case t <= now || t == limit.AfterSettle:
		return time.Time{}, n, nil
	}
	return j.base.Add(time.Duration(t)), n, nil
}

// Expect estimates when a cost that came now would go, and returns how many of its lane, or of its
// Class, wait before it. Unlike Ask, it also counts goroutines of other lanes that would go before
// it as things are. The instant may be too early, or too late if some of them leave. The zero Time
// means at once, or unknown.
func (a *Lane) Expect(cost limit.Cost) (at time.Time, ahead int) {
	j := a.group
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	t, n := j.line.Expect(now, a.lane, &cost, now.Add(-a.headLocked()))
	if t <= now || t >= limit.AfterSettle {
		return time.Time{}, n
	}
	return j.Time(t), n
}

// Update calls f under the Group's lock, to change or read limiters: SetLimit, SetWindow, the
// replay of a journal. now is the instant on the limiters' scale, whose epoch is the making of the
// Group. After f, the Group reviews every goroutine that waits for one of the changed limits. Those
// that may go now go. A cost that no longer fits fails, and so does one that can no longer go by
// its deadline. f must neither call the Group nor settle one of its Permits: that would hang.
func (j *Group) Update(f func(now mono.Time), changed ...*Limit) {
	j.mu.Lock()
	defer j.unlock()
	j.hint.clear()
	defer func() { // even if f panics, it may have changed something before
		now := j.now()
		for _, m := range changed {
			j.noteLapsesLocked(m)
			j.line.Review(now, m.limit)
		}
		j.deliverLocked(now)
	}()
	f(j.now())
}

// Number returns a new limit.Sent.Number, for use inside Update alone: for a request that counts in a
// limit without a Permit.
func (j *Group) Number() uint64 { return j.line.Number() }

// Join makes each request in flight that counts in all of some limits count in one more as of now, until its
// Permit is settled. SettleEach then has an outcome for that limit, too. It is for requests that turn out
// to concern another limit. Use it inside Update alone, and name that limit as changed.
func (j *Group) Join(now mono.Time, of []*Limit, other *Limit) {
	all := make([]*scheduler.Limit, len(of))
	for i, m := range of {
		all[i] = m.limit
	}
	j.line.JoinAll(now, all, other.limit)
}

// Limiter returns the limiter, for use inside Update alone.
func (m *Limit) Limiter() limit.Limiter { return m.limit.Limiter }

// Time converts an instant of the limiters' scale to a time.
func (j *Group) Time(t mono.Time) time.Time { return j.base.Add(time.Duration(t)) }

func (j *Group) now() mono.Time { return mono.Time(time.Since(j.base)) }
