package queued

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/snooze"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Config describes the limits of all keys.
type Config struct {
	// Limiter makes the server's rule for a key: once, and again after nothing of the key counted any
	// more and it was forgotten. nil without an error: the key has no limit of its own, and follows those
	// in answers. It must not be nil.
	Limiter func(key string) (limit.Limiter, error)
	// MaxWait is the longest time that a job waits in its worker. If zero, 250 ms.
	MaxWait time.Duration
	// Spread is the least time between two jobs of a key that come back from a nap. If zero, 10 ms.
	Spread time.Duration
	// Backoff is the pause of a key after a refusal without a stated time.
	Backoff backoff.Policy
	// Dialect reads the answers. If nil, the host of each request decides.
	Dialect provider.Dialect
}

// Keys has the limits of all keys. New makes it. Safe for concurrent use.
type Keys struct {
	config Config
	policy classify.Policy
	mu     sync.Mutex // guards all below, and users and left of each door
	doors  map[string]*door
	most   int // how many doors there may be before idle ones are looked for
}

// door is the way of one key's jobs to the server.
type door struct {
	gate *paceline.Group
	lane *paceline.Lane
	own  limit.Limiter // may be nil
	// shared means that its room comes from a store, for those that are here or come soon.
	shared bool
	stack  *stack.Stack // guarded by the Group's lock
	base   time.Time    // epoch of the Group's instants
	users  int          // jobs in workers
	left   time.Time    // when the last one left

	mu     sync.Mutex // guards all below; taken before the Group's lock
	book   *snooze.Book
	number int64 // of the latest job
}

// Job is a job in a worker.
type Job struct {
	// ID names the job in its queue.
	ID string
	// Key names the limit in which it counts.
	Key string
	// Came is when the job was made; zero: when it is first seen. Order decides between equal instants;
	// zero: in the order in which they are seen.
	Came  time.Time
	Order int64
	// Cost is the cost of its request.
	Cost limit.Cost
	// Stays means that the job must not go away: it waits in its worker, and is worked again there if a
	// server refused its request.
	Stays bool
}

// Later is the error of a job whose turn is not near. Its queue has to bring the job back.
type Later struct {
	// In is how long the job stays away.
	In time.Duration
	// Err is the error of the work, if a server refused its request.
	Err error
}

func (l *Later) Error() string {
	if l.Err != nil {
		return fmt.Sprintf("its turn comes in %v: %v", l.In, l.Err)
	}
	return fmt.Sprintf("its turn comes in %v", l.In)
}

// Unwrap returns Err.
func (l *Later) Unwrap() error { return l.Err }

// New returns Keys without a key. The error names the field.
func New(c Config) (*Keys, error) {
	switch {
	case c.Limiter == nil:
		return nil, errors.New("the Limiter is nil")
	case c.MaxWait < 0:
		return nil, fmt.Errorf("the MaxWait %v is negative", c.MaxWait)
	case c.Spread < 0:
		return nil, fmt.Errorf("the Spread %v is negative", c.Spread)
	}
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("the Backoff: %w", err)
	}
	return &Keys{config: c, policy: classify.Policy{Dialect: c.Dialect}, doors: map[string]*door{}, most: mostDoors}, nil
}

const (
	// mostDoors is how many keys are kept before idle ones are looked for.
	mostDoors = 1000
	// useful is how long what a door has learned from answers is kept.
	useful = time.Hour
)

// enter returns the door of a key, which stays until leave.
func (k *Keys) enter(key string) (*door, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d := k.doors[key]
	if d == nil {
		if len(k.doors) >= k.most {
			maps.DeleteFunc(k.doors, func(_ string, d *door) bool { return d.users == 0 && d.idle() })
			k.most = max(mostDoors, 2*len(k.doors))
		}
		var err error
		if d, err = k.open(key); err != nil {
			return nil, err
		}
		k.doors[key] = d
	}
	d.users++
	return d, nil
}

func (k *Keys) leave(d *door) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d.users--
	d.left = time.Now()
}

// idle reports whether a new door would do as this one, which nobody uses.
func (d *door) idle() (idle bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shared || d.book.Away(d.now()) > 0 {
		return false
	}
	d.gate.Update(func(now mono.Time) {
		i, ok := d.stack.Idle(now)
		idle = ok && i.Counts <= now && (!i.Knows || time.Since(d.left) > useful)
	})
	return idle
}

// open makes the door of a key.
func (k *Keys) open(key string) (*door, error) {
	own, err := k.config.Limiter(key)
	if err != nil {
		return nil, fmt.Errorf("the limit of %q: %w", key, err)
	}
	d := &door{own: own}
	d.stack, err = stack.New(stack.Config{Limiter: own, Slow: own == nil, Pause: k.config.Backoff,
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
	if err != nil {
		return nil, fmt.Errorf("the limit of %q: %w", key, err)
	}
	if d.gate, err = paceline.NewGroup(paceline.GroupConfig{}); err != nil {
		return nil, err
	}
	d.base = d.gate.Time(0)
	of := d.gate.Limit(paceline.LimitConfig{Limiter: d.stack})
	d.lane = d.gate.Lane(paceline.LaneConfig{Client: key}, []*paceline.Limit{of})
	wait := cmp.Or(k.config.MaxWait, snooze.DefaultMaxWait)
	if d.shared = own != nil && ability.Lapses(own); d.shared {
		wait = max(wait, 2*fetch)
		ability.Supply(own, func() { d.gate.Update(func(mono.Time) {}, of) }, d.soon, nil)
	}
	d.book = snooze.New(snooze.Config{MaxWait: wait, Many: d.shared, Each: each(own),
		Spread: min(cmp.Or(each(own), snooze.DefaultSpread), cmp.Or(k.config.Spread, snooze.DefaultSpread))})
	return d, nil
}

// each returns the time that a limit needs for a request at its slowest rate; 0 if that is not known.
func each(own limit.Limiter) (longest time.Duration) {
	rules, _ := limit.Rules(own)
	for _, r := range rules {
		if r.N > 0 && r.Unit == limit.Requests {
			longest = max(longest, r.Per/time.Duration(r.N))
		}
	}
	return longest
}

// Stats returns what the jobs of a key did so far, and how many are away. ok is false for a key
// without a job so far.
func (k *Keys) Stats(key string) (s observe.Stats, away int, ok bool) {
	k.mu.Lock()
	d := k.doors[key]
	k.mu.Unlock()
	if d == nil {
		return s, 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lane.Stats(), d.book.Away(d.now()), true
}

// Do runs work when it is the job's turn. It returns a *Later if the job has to go away first, or
// again, and otherwise the error of work, or a *paceline.WaitError.
func (k *Keys) Do(ctx context.Context, j Job, work func(context.Context) error) error {
	d, err := k.enter(j.Key)
	if err != nil {
		return err
	}
	defer k.leave(d)
	place, came := d.came(&j)
	for {
		permit, err := d.turn(ctx, &j, place, came)
		if err != nil {
			return err
		}
		refused, err := k.attempt(ctx, &Attempt{keys: k, door: d, job: &j, came: came, permit: permit, open: true}, work)
		switch {
		case !refused:
			return err
		case !j.Stays:
			return &Later{In: d.leave(&j, place, 0), Err: err}
		}
	}
}

// attempt runs work in its turn. refused means that work returned an error since a limit refused its
// request, which may be sent again.
func (k *Keys) attempt(ctx context.Context, a *Attempt, work func(context.Context) error) (refused bool, err error) {
	defer func() { a.settle(limit.Outcome{}) }() // if work panics
	err = work(context.WithValue(ctx, attemptKey{}, a))
	return a.end(err) && err != nil, err
}

// came returns the place of a job, and its instant.
func (d *door) came(j *Job) (p snooze.Place, came time.Time) {
	if came = j.Came; came.IsZero() {
		came = time.Now()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.number++
	p = d.book.Came(now, j.ID, snooze.Place{Came: min(mono.Of(d.base, came), now), Order: cmp.Or(j.Order, d.number)})
	return p, d.gate.Time(p.Came)
}

// turn returns a permit if the turn is near, and otherwise a *Later.
func (d *door) turn(ctx context.Context, j *Job, p snooze.Place, came time.Time) (paceline.Permit, error) {
	at, near := d.when(j, p)
	turn := paceline.Turn{Came: came, MaxWait: d.book.MaxWait()}
	if j.Stays {
		turn.MaxWait = 0
	}
	if near || j.Stays || at == limit.Never { // then the lane says which limit stands in the way
		permit, _, err := d.lane.WaitTurn(ctx, j.Cost, turn)
		var w *paceline.WaitError
		switch {
		case err == nil:
			d.mu.Lock()
			d.book.Went(d.now())
			d.mu.Unlock()
			return permit, nil
		case j.Stays || ctx.Err() != nil || !errors.As(err, &w) || w.Reason != paceline.ErrDeadline:
			return paceline.Permit{}, err
		}
	}
	return paceline.Permit{}, &Later{In: d.leave(j, p, d.book.MaxWait()/4)}
}

func (d *door) now() mono.Time { return mono.Of(d.base, time.Now()) }

// when returns the instant of a job's turn, and whether it is near.
func (d *door) when(j *Job, p snooze.Place) (at mono.Time, near bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, inLine := d.lane.Expect(j.Cost)
	d.gate.Update(func(now mono.Time) {
		at, near = d.book.Turn(now, p, inLine, j.Cost, func(n int, ahead limit.Cost) mono.Time {
			return d.forecast(now, n, ahead, j.Cost)
		})
	})
	return at, near
}

// leave notes that a job goes away for least at least, and returns how long for.
func (d *door) leave(j *Job, p snooze.Place, least time.Duration) time.Duration {
	at, _ := d.when(j, p)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	return d.book.Leave(now, j.ID, p, j.Cost, at, least)
}

// fetch is how long the room of a shared limit takes to come.
const fetch = 250 * time.Millisecond

// soon returns how many jobs wait, or come back before room could be fetched for them.
func (d *door) soon() (n int, free float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lane.Stats().Waiting + d.book.Soon(d.now().Add(2*fetch)), 0
}

// forecast is a snooze.Forecast, under the Group's lock.
func (d *door) forecast(now mono.Time, n int, ahead, cost limit.Cost) mono.Time {
	ready := d.stack.Ready(now, cost)
	if ready == limit.Never {
		return ready
	}
	from := now
	if pause, on := d.stack.Paused(now); on { // those ahead wait for its end, too
		from = max(from, pause.Next)
	}
	if d.shared { // it forecasts nothing, by a clock of its own, and its room has to be fetched
		if ready == limit.AfterSettle {
			ready = now.Add(fetch)
		}
		return cycles(d.own, max(ready, from), n, ahead)
	}
	at := limit.NotBefore(d.stack, from, n, ahead, cost)
	if ready < limit.AfterSettle {
		at = max(at, ready)
	}
	if at <= now && ready == limit.AfterSettle {
		return ready
	}
	return at
}

// cycles returns when n requests have gone by the rules of a limiter that does not forecast, such as
// one that several processes share.
func cycles(l limit.Limiter, from mono.Time, n int, ahead limit.Cost) mono.Time {
	rules, _ := limit.Rules(l)
	at := from
	for _, r := range rules {
		use := ahead[r.Unit]
		if r.Unit == limit.Requests && use == 0 {
			use = int64(n)
		}
		if r.N > 0 {
			at = max(at, from.Add(time.Duration(float64(use)/float64(r.N)*float64(r.Per))))
		}
	}
	return at
}
