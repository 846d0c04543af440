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

// ErrClosed: the Pool takes no more requests.
var ErrClosed = errors.New("paceline: the pool is closed")

// ErrOutage: no request reaches a host. The Run of a Pool fails with it after Config.MaxOutage.
var ErrOutage = errors.New("nothing arrives")

// OutageError is the error of a Run that gave up because no request reached a host for
// Config.MaxOutage. It is an ErrOutage.
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

// Pool sends requests through several keys. It owns the clock, the lock, one timer, and a goroutine
// per attempt in flight; none of them outlives Run.
//
// Its methods are safe for concurrent use. New makes it; the zero Pool is not usable.
type Pool struct {
	config Config
	epoch  time.Time
	began  time.Time
	log    *slog.Logger

	mu         sync.Mutex
	queue      *Queue
	dispatcher *Dispatcher
	timer      *time.Timer // the only one; nil unless running
	wake       mono.Time   // instant for which the timer is set; Never: not set
	inFlight   int
	phase      phase
	result     error // of Run, once it is stopped
	aborted    bool
	ctx        context.Context // of Run
	finished   chan struct{}   // closed when no request is left to send or to wait for
	spare      *spare          // a goroutine without an attempt; nil: none
	submitters submitters
	ended      []Ended // not yet reported
	batch      [atATime]Ended
	outages    []HostInfo // not yet reported
	slow       []slowHost // not yet reported
	learned    []int      // keys whose lessons are not yet reported
	unread     int        // how many answered requests are in ended or in the report under way
	reporting  int        // how many ends are in the report under way; outages count as one
	most       int        // most requests that may be held while Ended is behind; 0: it is not behind
	panicked   *SendPanic
	news       chan struct{} // signals that something ended
	look       look          // material of Snapshots
	wakeUps    uint64

	senders sync.WaitGroup
}

type phase uint8

const (
	idle     phase = iota // before Run: takes requests, sends none
	open                  // running
	closing               // takes no more requests; sends all that are there
	draining              // sends nothing more
	stopped               // Run returns, or has returned
)

// Now returns the present instant on the Pool's own scale.
func (p *Pool) Now() mono.Time { return mono.Time(time.Since(p.epoch)) }

// Run sends requests. After Close it returns nil once every request has ended; after Drain, once
// every attempt in flight is answered. Other ends are errors:
//
//   - ErrExhausted, if every key is out of use while requests wait or may still come.
//   - An OutageError, by Config.MaxOutage.
//   - The cause of ctx's end. Attempts in flight are then broken off, and their requests wait
//     again.
//
// In every case the requests that have not ended still wait (Counts, Queue.Waiting), and no
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
	p.step(p.Now())
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
			p.step(p.Now())
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

// Close stops taking requests. Run returns when all requests have ended.
func (p *Pool) Close() { p.enter(closing) }

// Drain stops sending. Run returns when every attempt in flight is answered. Waiting requests stay
// in the queue.
func (p *Pool) Drain() { p.enter(draining) }

func (p *Pool) enter(to phase) {
	p.mu.Lock()
	defer p.unlock()
	p.phase = max(p.phase, to)
	p.submitters.fail(ErrClosed)
	p.step(p.Now())
}

// alarm is the timer's callback. A stale call does no harm, since step decides anew.
func (p *Pool) alarm() {
	p.mu.Lock()
	defer p.unlock()
	p.wakeUps++
	p.wake = limit.Never
	p.step(p.Now())
}

// step sends all requests that may go, and sets the timer for the next. It is called with the lock
// held after any change. now was read under that lock.
func (p *Pool) step(now mono.Time) {
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
		if p.submitters.first != nil && p.admitSubmitters(now) && !ok {
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
	var outage error
	if p.config.MaxOutage != 0 && p.phase < draining {
		var at mono.Time
		at, outage = p.outageLocked(now)
		wake = min(wake, at)
	}
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

// fullLocked reports whether sending must stop for now. A slow Ended must not collect more answers:
// they fill memory, and Run does not return before all are reported. Expired requests take no more
// memory than in the queue, and stop nothing.
func (p *Pool) fullLocked() bool {
	return p.config.InFlight > 0 && p.inFlight >= p.config.InFlight || p.unread >= maxUnreported
}

// outageLocked returns when to ask again, or the error with which to give up.
func (p *Pool) outageLocked(now mono.Time) (at mono.Time, err error) {
	h, at, stuck := p.dispatcher.Stuck(now, p.config.MaxOutage)
	if !stuck {
		return at, nil
	}
	return at, &OutageError{HostInfo: h, For: now.Sub(h.Since)}
}

// noticeAbort checks whether the context of Run has ended. An attempt may see that before Run does,
// so it is called wherever that matters.
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

// unlock releases the lock, and lets Run report ended requests. The goroutine that held the lock
// does not report them: it may be a caller of Submit with locks of its own.
func (p *Pool) unlock() {
	if p.unreportedLocked() {
		select {
		case p.news <- struct{}{}:
		default:
		}
	}
	p.mu.Unlock()
}

// Counts returns how many requests are in each state. The states always add up.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.queue.Counts()
}

// WakeUps returns how often the Pool's timer has woken it. Submit and answers need no timer.
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

// Hosts returns the known state of each host that gets requests, in the order of their names.
// QueueConfig.Host names them. A host without waiting requests may be forgotten.
func (p *Pool) Hosts() []HostInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dispatcher.Hosts(p.Now())
}

// SetInFlight changes Config.InFlight. Attempts that are in flight go on. It panics if n is negative.
func (p *Pool) SetInFlight(n int) {
	if n < 0 {
		panic(fmt.Sprintf("paceline: Pool: InFlight %d is negative", n))
	}
	p.mu.Lock()
	defer p.unlock()
	p.config.InFlight = n
	p.step(p.Now())
}

// Update calls f under the lock, to change the queue or the keys: dead letters, a limit, a lifted
// ban. Then it sends the requests that may go now. A request that f kills is passed to Ended,
// whether it waits or is in flight. The answer of its attempt in flight then counts for the key
// alone. f must not call the Pool.
func (p *Pool) Update(f func(now mono.Time, q *Queue, d *Dispatcher)) {
	p.mu.Lock()
	defer p.unlock()
	p.queue.Watch(p.keepEnded)
	defer func() { // even if f panics, it may have changed a limit before
		p.queue.Watch(nil)
		p.dispatcher.Refresh()
		p.step(p.Now())
	}()
	f(p.Now(), p.queue, p.dispatcher)
}
