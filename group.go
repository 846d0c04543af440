package paceline

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// Group lets goroutines wait for several limits at once, in lanes that share them: an account's limit that all models count
// in, beside one of each model; tenants who share a quota by weight; several keys of which any will do.
//
//	j, err := paceline.NewGroup(paceline.GroupConfig{})
//	account := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(500, time.Minute)})
//	model := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(60, time.Minute)})
//	lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{model, account})
//	permit, err := lane.Wait(ctx, limit.One)
//
// A permit is for all limits of a way at once, so nobody holds what others could use while it waits for something else. Within a lane the
// order is first come, first served. Between the lanes at a limit it is so, too, or by weight where the limit is fair. Nobody starves. A
// Gate is a Group of one limit and one lane.
//
// A Group starts no goroutine and needs no closing. It has one lock and one timer, set only while somebody knows when it may go.
// Safe for concurrent use. Made by NewGroup; the zero Group is not usable.
type Group struct {
	base time.Time     // epoch of the instants that the limiters see
	lead time.Duration // how long before its instant the first is woken, to spin until then; 0: not at all
	hint hint          // written under the lock

	_ [64]byte // refusals read what is above, from all cores; what is below changes with every Permit

	mu      sync.Mutex // stacks all below, and the lanes
	line    *scheduler.Scheduler
	changes uint64 // those of the line, as of the latest look
	timer   *time.Timer
	armed   mono.Time // instant the timer is set for, as far as the Group cares; notArmed: none

	spinner *waiter      // if it was told to look at the clock itself; then the timer is not needed
	due     atomic.Int64 // when, for it to read without the lock
	lapses  atomic.Bool  // permits of one of the limits may

	notices []notice // to be logged by whoever lets go of the lock
	view    View     // of the lanes that are in no other

	// Not a sync.Pool: that would hand a channel from one synctest bubble to another.
	free  *waiter
	freed int
	spare atomic.Pointer[waiter] // one more, given back without the lock

	ticks uint64 // timer callbacks
	wakes uint64 // waiters woken
}

const (
	notArmed = limit.Never
	// freeMax bounds what a burst of waiters leaves behind, at about 500 bytes each.
	freeMax = 1024
)

// GroupConfig describes a Group. The zero value is ready.
type GroupConfig struct {
	// Fill is how many goroutines behind the first of a lane are looked at for one that may go ahead of it: see GateConfig.Fill. The
	// limiters must be able to foresee (limit.Foresees). If zero, none.
	Fill int
	// MaxWaiting is the most goroutines that may wait, in all lanes together. If zero, any number.
	MaxWaiting int
}

// NewGroup returns a Group without limits and lanes. The error names the field and the value that make no sense.
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

// Limit is a limiter of a Group, which its lanes share. Group.Limit makes it; the zero value is of no use.
type Limit struct {
	limit  *scheduler.Limit
	log    *slog.Logger // nil: none
	whose  observe.Whose
	paused func(now mono.Time) (observe.PauseState, bool) // nil: it has no pauses
}

// LimitConfig describes a Limit of a Group. Only Limiter has no default.
type LimitConfig struct {
	// Limiter says when a cost may go. It belongs to the Group from now on: nobody else may use it, other than inside Update.
	Limiter limit.Limiter
	// Fair has lanes take turns by weight instead of by arrival, in what they use of Unit, or, if Use is not nil, in what that says a
	// cost uses. Use is called under the Group's lock; it must be quick and must not use the Group.
	Fair bool
	Unit limit.Unit
	Use  func(limit.Cost) float64
	// Logger is told what the first of a lane waits for, if it is this limit: see GateConfig. If nil, the Lane's is.
	Logger *slog.Logger
	// Whose says whom the limit concerns, in Snapshots.
	Whose observe.Whose
	// Paused, if not nil, says whether anything but the limit itself keeps requests away, and for how long, for Snapshots. It is called
	// under the Group's lock, must change nothing, and must not use the Group.
	Paused func(now mono.Time) (observe.PauseState, bool)
}

// Limit adds a limit. It panics if the Limiter is nil. A limit that no lane has any more is forgotten with its last permit.
func (j *Group) Limit(c LimitConfig) *Limit {
	if c.Limiter == nil {
		panic("paceline: Group: the Limiter is nil")
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	m := &Limit{j.line.Limit(c.Limiter, scheduler.Sharing{Fair: c.Fair, Unit: c.Unit, Use: c.Use}), c.Logger, c.Whose, c.Paused}
	m.limit.Of = m
	j.noteLapsesLocked(m)
	limit.Supply(c.Limiter, func() { j.again(m) }, func() int { return j.waitingFor(m) }, func(kind, text string) {
		j.Note(observe.Event{Kind: kind, Whose: c.Whose, Text: text})
	})
	return m
}

func (j *Group) noteLapsesLocked(m *Limit) {
	if !j.lapses.Load() && limit.Lapses(m.limit.Limiter) {
		j.lapses.Store(true)
	}
}

// again has whoever waits for a limit asked again, as far as anybody may go now: there is more of it.
func (j *Group) again(m *Limit) {
	j.mu.Lock()
	defer j.unlock()
	j.hint.clear()
	now := j.line.Tick(j.now())
	j.line.Touch(m.limit)
	j.deliverLocked(now)
}

func (j *Group) waitingFor(m *Limit) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return m.limit.Waiting()
}

// Lane is goroutines that wait for the same limits, first come, first served. Safe for concurrent use.
type Lane struct {
	group  *Group
	lane   *scheduler.Lane
	view   *View  // that shows it
	share  *Class // nil: it is alone
	start  time.Duration
	log    *slog.Logger // nil: none
	logs   bool         // it has one, or a limit has
	watch  watch
	counts counts
	waits  observe.Waits
	waited int64 // those that went, and not at once
	about  about
}

// LaneConfig describes a Lane. The zero value is ready.
type LaneConfig struct {
	// Weight is the lane's share where a limit is fair. If zero, 1.
	Weight float64
	// Class, if not nil, makes this one of several lanes that count as one where a limit is fair, such as the lanes of one client. Its
	// weight and head start then take the place of Weight and HeadStart, and its bound holds beside MaxWaiting. If nil, the lane
	// counts by itself.
	Share *Class
	// HeadStart is the lane's priority: at limits that it shares with others, its goroutines count as having come that much earlier than
	// they did. It may be negative. Nobody is passed over for ever, since a goroutine that really came that much earlier goes first.
	HeadStart time.Duration
	// MaxWaiting is the most goroutines that may wait in it. If zero, any number.
	MaxWaiting int
	// Logger is told what the first waits for: see GateConfig. If nil, nobody is told.
	Logger *slog.Logger
	// Fill is GroupConfig.Fill for this lane, if it is larger than that. It must not be negative.
	Fill int
	// View shows the lane in its Snapshots. If nil, the Group's own show it.
	View *View
	// Client names who waits in it. Snapshots show lanes of the same Client together.
	Client string
	// Told says that the owner of the lane reports refusals itself, by Group.Note. If false, each refusal that is settled becomes
	// an Event.
	Told bool
}

// Lane adds a lane. A way is 1 to 8 different limits of this Group, narrowest first, which a goroutine passes all at once. There
// must be at least one way, and each goroutine goes by one of them, whichever lets it go first. It panics if there is no way, or one
// of none or too many.
func (j *Group) Lane(c LaneConfig, ways ...[]*Limit) *Lane {
	all, logs := make([][]*scheduler.Limit, len(ways)), c.Logger != nil
	for i, way := range ways {
		for _, m := range way {
			all[i], logs = append(all[i], m.limit), logs || m.log != nil
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	a := &Lane{group: j, view: cmp.Or(c.View, &j.view), share: c.Share, start: c.HeadStart, log: c.Logger, logs: logs, watch: watch{bound: -1, round: mono.Min, stuck: stuck{since: limit.Never, look: limit.Never}}}
	a.lane = j.line.Lane(scheduler.LaneConfig{Weight: c.Weight, Share: c.Share.of(), Size: c.MaxWaiting, Fill: c.Fill}, all...)
	a.lane.Of = a
	a.lane.Watched = logs
	a.about = about{client: c.Client, told: c.Told, weight: c.Weight}
	a.view.look.add(a)
	return a
}

// Retire takes a lane out of the Group. Its permits may still be settled. It panics if somebody waits in it; nobody may come to
// it any more.
func (a *Lane) Retire() {
	a.group.mu.Lock()
	defer a.group.mu.Unlock()
	a.group.line.Retire(a.lane)
	a.view.look.retire(a)
}

// Permit is leave to send one request now. Every Permit must be settled, exactly once: until then it counts in full
// against the limits. Copies are the same Permit. The zero Permit is none.
type Permit struct {
	pass scheduler.Pass // four words: a larger struct would be passed on through memory, at twice the price
}

// Settle says how the request ended, as soon as that is known: with limit.Unsent if it was not sent after all, with the
// zero Outcome if nobody can tell. It admits whoever may go if that makes room. It panics if the Permit was
// settled before or is the zero Permit.
func (p Permit) Settle(o limit.Outcome) {
	a := p.lane()
	j := a.group
	j.mu.Lock()
	defer j.unlock() // the limiter panics if this is the second time
	now := j.line.Tick(j.now())
	limits, leases := j.line.Close(&p.pass)
	for k, m := range limits {
		m.Limiter.Settle(now, leases[k], o)
		j.line.Touch(m)
	}
	a.counts.tally.Settled(&o)
	if o.Result == limit.Limited {
		a.noteRefusalLocked(&o)
	}
	j.deliverLocked(now)
}

// SettleEach is Settle where each limit hears an outcome of its own, which of returns. It is called under the Group's lock and must
// not use the Group.
func (p Permit) SettleEach(o limit.Outcome, of func(*Limit) limit.Outcome) {
	a := p.lane()
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	now := j.line.Tick(j.now())
	limits, leases := j.line.Close(&p.pass)
	for k, m := range limits {
		m.Limiter.Settle(now, leases[k], of(m.Of.(*Limit)))
		j.line.Touch(m)
	}
	a.counts.tally.Settled(&o)
	if o.Result == limit.Limited {
		a.noteRefusalLocked(&o)
	}
	j.deliverLocked(now)
}

// Fresh reports whether the request may still be sent: it is false if the leave is part of a limit that many processes share (package
// share), and the time for which this process was granted that part is over. Ask right before the request is written, if such a limit
// is among them, and settle as limit.Unsent what is not fresh. It panics if the Permit is the zero Permit, or was settled and such a
// limit is among them.
func (p Permit) Fresh() bool {
	j := p.lane().group
	if !j.lapses.Load() {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.line.Fresh(&p.pass)
}

// lane returns the lane of a Permit that is to be settled.
func (p Permit) lane() *Lane {
	if p.pass.Way == nil {
		panic("paceline: settle of the zero Permit")
	}
	return p.pass.Way.Lane().Of.(*Lane)
}

// Way returns the number of the way that the Permit is of.
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
	var o limit.Outcome // unknown, if f never returns
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

// WaitWithStats is Wait, and tells how long it was in line and what for, also with an error. It allocates if it waited.
func (a *Lane) WaitWithStats(ctx context.Context, cost limit.Cost) (p Permit, s WaitStats, err error) {
	p, err = a.wait(ctx, &cost, limit.Never, &s)
	return p, s, err
}

// WaitFrom is WaitWithStats with the place in line of one that came at came, which is earlier than now: for a request that is sent
// again.
func (a *Lane) WaitFrom(ctx context.Context, cost limit.Cost, came time.Time) (p Permit, s WaitStats, err error) {
	p, err = a.wait(ctx, &cost, mono.Of(a.group.base, came), &s)
	return p, s, err
}

// Turn says how a goroutine waits.
type Turn struct {
	// Came is when it came, and so its place in line. If zero, now.
	Came time.Time
	// MaxWait is the longest that it waits. If it is foreseen to wait for longer (see Expect), it is refused at once, with ErrDeadline.
	// If zero, however long.
	MaxWait time.Duration
}

// WaitTurn is WaitWithStats for a goroutine that counts as having come earlier, or does not wait for long.
func (a *Lane) WaitTurn(ctx context.Context, cost limit.Cost, t Turn) (p Permit, s WaitStats, err error) {
	came := limit.Never
	if !t.Came.IsZero() {
		came = mono.Of(a.group.base, t.Came)
	}
	if t.MaxWait <= 0 {
		p, err = a.wait(ctx, &cost, came, &s)
		return p, s, err
	}
	p, err = a.waitAtMost(ctx, &cost, came, t.MaxWait, &s)
	return p, s, err
}

// Ask is Gate.Ask, in this lane.
func (a *Lane) Ask(cost limit.Cost) (at time.Time, ahead int, err error) {
	j, least := a.group, cost.Least()
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	t, n := j.line.Ask(now, a.lane, &cost, &least)
	switch {
	case t == limit.Never:
		e := &WaitError{Reason: ErrNever, Cost: cost, Ahead: n}
		e.Limit, e.Bound = a.boundLocked(now, &cost)
		return time.Time{}, n, e
	case t <= now || t == limit.AfterSettle:
		return time.Time{}, n, nil
	}
	return j.base.Add(time.Duration(t)), n, nil
}

// Expect guesses when a cost that came now would go, and says how many of its lane, or of its Class, wait before it. Unlike Ask it
// counts those of other lanes, too, that would go before it as things are. So the instant may be too late as well as too early, if
// some of them leave. The zero Time means at once, or that nobody knows.
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

// Update calls f under the Group's lock, to change or read limiters: SetLimit, SetWindow, the replay of a journal. now is the instant on
// the limiters' scale, whose epoch is the making of the Group. Afterwards every goroutine that waits for one of the limits given
// is asked about again: those that may go now go, and those whose cost can no longer fit, or no longer by their deadline, fail. f
// must not call the Group, nor settle one of its Permits: that would hang.
func (j *Group) Update(f func(now mono.Time), changed ...*Limit) {
	j.mu.Lock()
	defer j.unlock()
	j.hint.clear()
	defer func() { // even if f panics: it may have changed something before
		now := j.now()
		for _, m := range changed {
			j.noteLapsesLocked(m)
			j.line.Review(now, m.limit)
		}
		j.deliverLocked(now)
	}()
	f(j.now())
}

// Limiter returns the limiter, to be used inside Update alone.
func (m *Limit) Limiter() limit.Limiter { return m.limit.Limiter }

// Time returns an instant of the limiters' scale as a time.
func (j *Group) Time(t mono.Time) time.Time { return j.base.Add(time.Duration(t)) }

func (j *Group) now() mono.Time { return mono.Time(time.Since(j.base)) }
