package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// ErrClosed says that a Pool takes no more requests.
var ErrClosed = errors.New("paceline: the pool is closed")

// ErrOutage says that nothing arrives at a host. The Run of a Pool fails with it after Config.MaxOutage.
var ErrOutage = errors.New("nothing arrives")

// OutageError is the error of a Run that gave up as nothing arrived at a host for Config.MaxOutage. It is
// an ErrOutage.
type OutageError struct {
	HostInfo
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

// Pool sends requests through several keys. It owns the clock, the lock, one timer, and a goroutine per
// attempt in flight; none of them outlives Run.
//
// Its methods are safe for concurrent use. Made by New; the zero Pool is not usable.
type Pool struct {
	config Config
	epoch  time.Time
	began  time.Time
	log    *slog.Logger

	mu         sync.Mutex
	queue      *Queue
	dispatcher *Dispatcher
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
	ended      []Ended // not yet reported
	batch      [atATime]Ended
	outages    []HostInfo // not yet reported
	learned    []int      // keys whose lessons are not yet reported
	unread     int        // how many of ended, and of those being reported, were answered
	reporting  int        // how many were taken out of ended and are being reported; outages count as one
	most       int        // how many requests may be held while Ended is behind; 0: it is not behind
	panicked   *SendPanic
	news       chan struct{} // something ended
	shared     []*Shared     // those whose limiters were supplied
	look       look          // what Snapshots are made of
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

// Now returns the Pool's present on its own scale.
func (p *Pool) Now() mono.Time { return mono.Time(time.Since(p.epoch)) }

// Run sends until Close has been called and every request has ended, or until Drain has been called and
// every attempt in flight is answered; then it returns nil. It returns ErrExhausted if every key is
// banned and requests wait or might still come, an OutageError by Config.MaxOutage, and the cause of
// ctx's end if that comes first: then attempts in flight are broken off, and their requests wait again.
// In every case what has not ended still waits (Counts, Queue.Waiting) and no goroutine of the Pool is
// left. A Pool runs once.
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
			p.report()
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

// Drain sends no more; Run returns when what is in flight has been answered. What waits stays in the
// queue.
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

// step sends all that may go and arms the timer for the next. It is called with the lock held after any
// change.
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
	if p.inFlight == 0 && !p.unreportedLocked() && p.reporting == 0 && (outage != nil || p.nothingLeftLocked()) {
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

// fullLocked reports whether nothing more may be sent now. An Ended that is slow to take answers gets no
// more of them: they fill memory, and Run does not return before it has reported all. Requests that
// expired take no more memory than they did in the queue, and hold up nothing.
func (p *Pool) fullLocked() bool {
	return p.config.InFlight > 0 && p.inFlight >= p.config.InFlight || p.unread >= maxUnreported
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

// noticeAbort looks whether the context of Run has ended. An attempt may see that before Run does, so it
// is called wherever that matters.
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

// unlock releases the lock and has Run report what has ended. The goroutine that held the lock does not
// report it: it may be a caller of Submit that holds locks of its own.
func (p *Pool) unlock() {
	if p.unreportedLocked() {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
}

// Counts returns how many requests are in each state. They always add up.
func (p *Pool) Counts() Counts {
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
func (p *Pool) Keys() []KeyInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	infos := make([]KeyInfo, len(p.config.Keys))
	for i := range infos {
		infos[i] = p.dispatcher.KeyInfo(p.Now(), i)
	}
	return infos
}

// Hosts returns what is known of the hosts that requests go to, in the order of their names;
// QueueConfig.Host names them. A host that no request waits for may be forgotten.
func (p *Pool) Hosts() []HostInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dispatcher.Hosts(p.Now())
}

// Update changes the queue or the keys under the lock (dead letters, a limit, a lifted ban) and then sends
// what may go now. What f kills is passed to Ended, whether it waits or is in flight; the answer to an
// attempt in flight then counts for its key alone. f must not call the Pool.
func (p *Pool) Update(f func(now mono.Time, q *Queue, d *Dispatcher)) {
	p.mu.Lock()
	defer p.unlock()
	p.queue.Watch(p.keepEnded)
	defer func() { // also if f panics: it may have changed a limit before
		p.queue.Watch(nil)
		p.dispatcher.Refresh()
		p.step()
	}()
	f(p.Now(), p.queue, p.dispatcher)
}
