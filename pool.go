package paceline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// ErrClosed says that a Pool takes no more requests.
var ErrClosed = errors.New("paceline: the pool is closed")

// ErrOutage says that nothing arrives at a host. The Run of a Pool fails with it after PoolConfig.MaxOutage.
var ErrOutage = errors.New("nothing arrives")

// OutageError is the error of a Pool's Run that gave up as nothing arrived at a host for PoolConfig.MaxOutage. It is an ErrOutage.
type OutageError struct {
	dispatch.HostInfo
	For time.Duration // since its first failure was known
}

func (e *OutageError) Error() string {
	s := ErrOutage.Error()
	if e.Host != "" {
		s += " at " + e.Host
	}
	return fmt.Sprintf("%s for %v: %s (%v); %d waiting", s, e.For.Round(time.Millisecond), e.Reason, e.Kind, e.Waiting)
}

func (e *OutageError) Unwrap() error { return ErrOutage }

// PoolConfig describes a Pool. Keys and Send have no default. Send is called by as many goroutines at once as attempts are in flight;
// Ended, EndedAll, Outage and Learned by that of Run alone, one call at a time.
type PoolConfig struct {
	// Keys are the API keys, at least one. Their limiters belong to the Pool from now on.
	Keys []dispatch.Key
	// Send sends one attempt and says how it ended. It is called in a goroutine that has no other meanwhile, and must return; its context
	// ends when Run's does, or after Timeout. What it returns for a context that ended should be limit.Unknown, or
	// limit.Unsent if the request had not been written. Outcome.Sight says what it has shown of the way to its host; a
	// verdict's Answer has it. If it panics the attempt ends as limit.Unknown, nothing more is sent, and Run panics with the
	// same value, a *SendPanic, once all others have returned.
	Send func(context.Context, dispatch.Attempt) dispatch.Answer
	// Timeout bounds one attempt. If zero, nothing but the context of Run does.
	Timeout time.Duration
	// InFlight is the most attempts in flight over all keys. If zero, what the keys allow.
	InFlight int
	// Queue bounds and orders what waits. If requests go to several servers, its Host should tell them apart: where nothing
	// arrives one request at a time goes to see, and what goes elsewhere is not held up.
	Queue queue.Config
	// MaxOutage is how long nothing may arrive at a host before Run gives up, if there is nothing else to do: see ErrOutage.
	// If zero, for ever; negative: as soon as it is known.
	MaxOutage time.Duration
	// Backoff is the delay before the next attempt of a request that failed.
	Backoff backoff.Policy
	// Ended, if not nil, is told of every request that reached an end state, but for those that were cancelled or dropped
	// through Update: one call at a time, in order, on the goroutine of Run, with no lock held. Run returns after the
	// last of them. Once a thousand are still to be told nothing more is sent, and until it has caught up no more is taken than has been
	// told: an Ended that is slow holds sending and Submit back and fills no memory. It must not wait in Submit itself, since nobody is told
	// meanwhile, but may TrySubmit.
	Ended func(queue.Ended)
	// EndedAll, if not nil, is told in the place of Ended, of up to 64 requests at once, in order, so that they can be written down
	// together. The slice is the Pool's, and must not be kept.
	EndedAll func([]queue.Ended)
	// Outage, if not nil, is told of every host that goes down and that is back, as Ended is, and before the requests that
	// ended at that.
	Outage func(dispatch.HostInfo)
	// Learned, if not nil, is told of every key that may have learned more of a limit that is wrong. It gets all that the key knows, to be
	// kept for limit.Fitted.Recall after a restart. It is called as Ended is, and before it.
	Learned func(key int, all []limit.Lesson)
	// Log gets a line per answer and expiry, at debug level, and says once when a host goes down, and when it is back: as a
	// warning, if there is no Outage to be told. If nil, nothing is logged.
	Log *slog.Logger
	// Epoch is instant 0 of the Pool's scale, for limiters with a history (Admit at mono.Of(Epoch, t)). If zero, the
	// time of NewPool.
	Epoch time.Time
	// Rand jitters the backoff. If nil, it is seeded by the runtime.
	Rand *rand.Rand
}

// Pool sends requests through several keys: each when its turn and a key's limits allow, retried if it failed, and never
// lost. It owns the clock, the lock, one timer, and a goroutine per attempt in flight; none of them outlives Run.
//
// Its methods are safe for concurrent use.
type Pool struct {
	config PoolConfig
	epoch  time.Time
	began  time.Time
	log    *slog.Logger

	mu         sync.Mutex
	queue      *queue.Queue
	dispatcher *dispatch.Dispatcher
	timer      *time.Timer // the only one; nil unless running
	wake       mono.Time   // what it is armed for; Never: nothing
	inFlight   int
	phase      phase
	result     error // of Run, from when it is stopped
	aborted    bool
	ctx        context.Context // of Run
	finished   chan struct{}   // closed when there is nothing more to send or to wait for
	spare      *spare          // a goroutine that has nothing more to do; nil: none
	submitters submitters
	ended      []queue.Ended // not yet told
	told       [atATime]queue.Ended
	outages    []dispatch.HostInfo
	learned    []int // keys whose lessons were not yet told
	unheard    int   // how many of ended, and of those being told, were answered
	telling    int   // how many were taken out of ended and are being told; outages being told count as one
	most       int   // how many requests may be held while Ended is behind; 0: it is not behind
	panicked   *SendPanic
	news       chan struct{}      // something ended
	shared     []*dispatch.Shared // those whose limiters were supplied
	look       poolLook           // what Snapshots are made of
	wakeUps    uint64

	senders sync.WaitGroup
}

type phase uint8

const (
	idle     phase = iota // before Run: requests are taken, none is sent
	open                  // running
	closing               // no more requests are taken; all that are there are sent
	draining              // nothing more is sent
	stopped               // Run returns, or has
)

// NewPool checks the configuration and returns a Pool that takes requests; Run sends them.
func NewPool(c PoolConfig) (*Pool, error) {
	if c.Send == nil {
		return nil, errors.New("paceline: Pool: Send is nil")
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("paceline: Pool: Timeout %v is negative", c.Timeout)
	}
	if c.InFlight < 0 {
		return nil, fmt.Errorf("paceline: Pool: InFlight %d is negative", c.InFlight)
	}
	now := time.Now()
	if c.Epoch.IsZero() {
		c.Epoch = now
	}
	c.Epoch = now.Add(c.Epoch.Sub(now)) // a wall time alone would make the Pool follow the steps of the wall clock
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	q, err := queue.New(c.Queue)
	if err != nil {
		return nil, err
	}
	p := &Pool{config: c, epoch: c.Epoch, began: now, log: c.Log, queue: q, wake: limit.Never, finished: make(chan struct{}), news: make(chan struct{}, 1)}
	p.dispatcher, err = dispatch.New(dispatch.Config{
		Queue: q, Keys: c.Keys, Epoch: c.Epoch, Backoff: c.Backoff, Rand: c.Rand,
		Ended: p.untell,
		Outage: func(h dispatch.HostInfo) {
			p.outages = append(p.outages, h)
			p.look.outage(&h)
		},
		Learned: func(key int) {
			if c.Learned != nil && !slices.Contains(p.learned, key) {
				p.learned = append(p.learned, key)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	for i := range c.Keys {
		limit.Supply(c.Keys[i].Limiter, p.again, p.waiting, p.noteOf(c.Keys[i].Name))
		p.supply(c.Keys[i].Shared)
	}
	return p, nil
}

// again sends what may go now that there is more of a limit than a settlement made.
func (p *Pool) again() {
	p.mu.Lock()
	defer p.unlock()
	p.dispatcher.Refresh()
	p.step()
}

// waiting is how many requests a key may come to need its limit for.
func (p *Pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (p.queue.Counts().Waiting + len(p.config.Keys) - 1) / len(p.config.Keys)
}

// Fresh reports whether an attempt may still be sent: see Permit.Fresh. Ask in PoolConfig.Send, right before the request is written, if a
// limit is shared by many processes (package share); an attempt that is not fresh ends with Returned and limit.Unsent, and its request is in
// line again.
func (p *Pool) Fresh(a *dispatch.Attempt) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dispatcher.Fresh(a)
}

// Now returns the Pool's present on its own scale.
func (p *Pool) Now() mono.Time { return mono.Time(time.Since(p.epoch)) }

// SendPanic is what a Pool's Run panics with when a Send has panicked, in the goroutine of Run, where it can be recovered. Errors.Is and As find
// the value that Send panicked with, if that was an error.
type SendPanic struct {
	Value   any // of the panic
	Request queue.Request
	Stack   []byte // of Send
}

func (e *SendPanic) Error() string {
	return fmt.Sprintf("paceline: Pool: Send of request %q panicked: %v\n\n%s", e.Request.ID, e.Value, e.Stack)
}

// Unwrap returns Value if it is an error.
func (e *SendPanic) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Run sends until Close has been called and every request has ended, or until Drain has been called and every attempt
// in flight is answered; then it returns nil. It returns dispatch.ErrExhausted if every key is banned and requests wait or
// might still come, an OutageError by PoolConfig.MaxOutage, and the cause of ctx's end if that comes first: then attempts in
// flight are broken off, and their requests wait again. In every case what has not ended still waits (Counts, Waiting) and no
// goroutine of the Pool is left. A Pool runs once.
func (p *Pool) Run(ctx context.Context) error {
	p.mu.Lock()
	if p.ctx != nil {
		p.mu.Unlock()
		return errors.New("paceline: Run called twice")
	}
	p.ctx = ctx
	if p.phase == idle {
		p.phase = open
	}
	p.timer = time.AfterFunc(time.Hour, p.alarm)
	p.timer.Stop()
	p.step()
	p.unlock()

	for done, running := ctx.Done(), true; running; {
		select {
		case <-p.finished:
			running = false
		case <-p.news:
			if p.config.EndedAll != nil {
				runtime.Gosched() // another goroutine may submit a request meanwhile
			}
			p.tell()
		case <-done:
			done = nil
			p.mu.Lock()
			p.step()
			p.unlock()
		}
	}
	p.senders.Wait()

	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer.Stop()
	p.submitters.fail(p.closedLocked())
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.result
}

// Close takes no more requests; Run returns when all that are there have ended.
func (p *Pool) Close() { p.enter(closing) }

// Drain sends no more; Run returns when what is in flight has been answered. What waits stays in the queue.
func (p *Pool) Drain() { p.enter(draining) }

func (p *Pool) enter(to phase) {
	p.mu.Lock()
	defer p.unlock()
	p.phase = max(p.phase, to)
	p.submitters.fail(ErrClosed)
	p.step()
}

// alarm is the timer's callback. A stale one does no harm: step asks again.
func (p *Pool) alarm() {
	p.mu.Lock()
	defer p.unlock()
	p.wakeUps++
	p.wake = limit.Never
	p.step()
}

// step sends all that may go and arms the timer for the next. It is called with the lock held after anything changed.
func (p *Pool) step() {
	now := p.Now()
	if p.ctx == nil {
		p.admitSubmitters(now)
		return
	}
	if p.phase == stopped {
		return
	}
	p.noticeAbort()
	wake := limit.Never
	for p.phase < draining {
		if p.fullLocked() {
			wake = p.dispatcher.Expire(now)
			if p.admitSubmitters(now) {
				continue
			}
			break
		}
		a, w, ok := p.dispatcher.Next(now)
		if p.admitSubmitters(now) && !ok {
			continue
		}
		if !ok {
			wake = w
			p.sampleLocked(now)
			break
		}
		p.inFlight++
		p.look.went(&a)
		p.begin(a)
		now = p.Now()
	}
	at, outage := p.outageLocked(now)
	wake = min(wake, at)
	if p.inFlight == 0 && !p.untoldLocked() && p.telling == 0 && (outage != nil || p.nothingLeftLocked()) {
		switch {
		case p.aborted:
			p.result = context.Cause(p.ctx)
		case outage != nil:
			p.result = outage
		case p.phase == open || p.queue.Counts().Waiting > 0:
			p.result = p.dispatcher.Exhausted()
		}
		p.phase = stopped
		close(p.finished)
		return
	}
	if wake < limit.AfterSettle {
		if wake != p.wake {
			p.wake = wake
			p.timer.Reset(wake.Sub(now))
		}
	} else if p.wake != limit.Never {
		p.wake = limit.Never
		p.timer.Stop()
	}
}

// fullLocked reports whether nothing more may be sent now. Whoever is slow to hear of answers gets no more of them: they fill memory, and
// Run does not return before it has told all. What expired takes no more than it did in the queue, and holds up nobody.
func (p *Pool) fullLocked() bool {
	return p.config.InFlight > 0 && p.inFlight >= p.config.InFlight || p.unheard >= maxUntold
}

// outageLocked returns when to ask again, and why to give up, if that is so.
func (p *Pool) outageLocked(now mono.Time) (at mono.Time, err error) {
	if p.config.MaxOutage == 0 || p.phase >= draining {
		return limit.Never, nil
	}
	h, at, stuck := p.dispatcher.Stuck(now, p.config.MaxOutage)
	if !stuck {
		return at, nil
	}
	return at, &OutageError{HostInfo: h, For: now.Sub(h.Since)}
}

// noticeAbort looks whether the context of Run has ended. An attempt may learn that before Run does, so it is called wherever that matters.
func (p *Pool) noticeAbort() {
	if !p.aborted && p.ctx.Err() != nil {
		p.aborted = true
		p.phase = max(p.phase, draining)
	}
}

func (p *Pool) nothingLeftLocked() bool {
	switch {
	case p.phase >= draining || p.dispatcher.Exhausted() != nil:
		return true
	case p.phase == closing:
		return p.queue.Counts().Waiting == 0
	}
	return false
}

// spare is a goroutine whose attempt was answered, and which makes the next one: a new goroutine would have to grow its stack first.
type spare struct {
	next  dispatch.Attempt
	taken bool
}

// begin has an attempt sent.
func (p *Pool) begin(a dispatch.Attempt) {
	if s := p.spare; s != nil {
		s.next, s.taken, p.spare = a, true, nil
		return
	}
	s := &spare{next: a, taken: true}
	p.senders.Go(func() {
		for s.taken {
			p.send(s)
		}
	})
}

// send makes the attempt of a goroutine.
func (p *Pool) send(s *spare) {
	a := s.next
	s.taken = false
	var ans dispatch.Answer // unknown, if Send never returns (runtime.Goexit, a panic)
	returned := false
	defer func() {
		if v := recover(); v != nil {
			stack := make([]byte, 64<<10)
			p.panics(&SendPanic{v, a.Request, stack[:runtime.Stack(stack, false)]})
		}
		if !returned { // this goroutine is about to end, and takes no other attempt
			s = nil
		}
		p.answered(a, ans, s)
	}()
	ctx := p.ctx
	if p.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.config.Timeout)
		defer cancel()
	}
	ans = p.config.Send(ctx, a)
	returned = true
}

// panics has Run end as soon as it may.
func (p *Pool) panics(e *SendPanic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.panicked = cmp.Or(p.panicked, e)
	p.phase = max(p.phase, draining)
}

func (p *Pool) answered(a dispatch.Attempt, ans dispatch.Answer, free *spare) {
	p.mu.Lock()
	now := p.Now()
	if p.noticeAbort(); p.aborted && (ans.Result == limit.Unknown || ans.Result == limit.Unsent) {
		ans.Returned = true
	}
	e := p.dispatcher.Done(now, a, ans)
	name := p.config.Keys[a.Key].Name
	p.look.answered(now, p, &a, &ans)
	p.inFlight--
	p.spare = free
	p.step()
	p.spare = nil
	p.unlock()
	if p.log.Enabled(p.ctx, slog.LevelDebug) {
		p.log.Debug("answer", "id", a.Request.ID, "attempt", a.Number, "key", name,
			"result", ans.Result.String(), "reason", ans.Reason, "took", now.Sub(a.At), "state", e.State.String())
	}
}

// unlock releases the lock and has Run tell of what has ended. The goroutine that held the lock does not tell it: it may be a caller
// of Submit that holds locks of its own.
func (p *Pool) unlock() {
	if p.untoldLocked() {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
}

// Counts returns how many requests are in each state. They always add up.
func (p *Pool) Counts() queue.Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Counts()
}

// WakeUps returns how often the Pool's timer has woken it. Submit and answers need none.
func (p *Pool) WakeUps() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wakeUps
}

// Keys returns the state of every key.
func (p *Pool) Keys() []dispatch.KeyInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	infos := make([]dispatch.KeyInfo, len(p.config.Keys))
	for i := range infos {
		infos[i] = p.dispatcher.KeyInfo(p.Now(), i)
	}
	return infos
}

// Hosts returns what is known of the hosts that requests go to, in the order of their names; Queue.Host names them. Those that
// nothing waits for may be forgotten.
func (p *Pool) Hosts() []dispatch.HostInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dispatcher.Hosts(p.Now())
}

// Update changes the queue or the keys under the lock (dead letters, a limit, a lifted ban) and then asks again who may
// go. What it kills is told to Ended, whether it waits or is in flight; the answer to that then counts for its key alone. f must not
// call the Pool.
func (p *Pool) Update(f func(now mono.Time, q *queue.Queue, d *dispatch.Dispatcher)) {
	p.mu.Lock()
	defer p.unlock()
	p.queue.Watch(p.untell)
	defer func() { // also if f panics: it may have changed a limit before
		p.queue.Watch(nil)
		p.dispatcher.Refresh()
		p.step()
	}()
	f(p.Now(), p.queue, p.dispatcher)
}
