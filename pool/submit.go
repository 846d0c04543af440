package pool

import (
	"context"
	"errors"
	"fmt"

	"github.com/paceline-go/paceline/limit/mono"
)

// errBehind is ErrFull if the queue has room and Ended is behind.
var errBehind = fmt.Errorf("paceline: Pool: %w: %d or more ends are untold: Ended is slow", ErrFull, maxUnreported)

// submitters wait for room in the queue, first come, first served.
type submitters struct{ first, last *submitter }

type submitter struct {
	request    Request
	came       mono.Time
	done       chan error
	prev, next *submitter
}

// Submit adds a request. It waits for room if the queue is bounded, and while Ended is far behind,
// first come, first served. The request's place and TTL count from the call. If its TTL is over
// when there is room, it ends as expired. Submit fails with ctx's error, with ErrClosed,
// ErrDuplicate or ErrDead.
func (p *Pool) Submit(ctx context.Context, r Request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.mu.Lock()
	came := p.Now()
	err := p.submit(came, r, 0)
	if !errors.Is(err, ErrFull) {
		p.unlock()
		return err
	}
	s := &submitter{request: r, came: came, done: make(chan error, 1)}
	p.submitters.push(s)
	p.unlock()
	select {
	case err := <-s.done:
		return err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case err := <-s.done: // it was taken while giving up
		return err
	default:
		p.submitters.remove(s)
		return ctx.Err()
	}
}

// TrySubmit adds a request, or fails with ErrFull if Submit would wait. While Ended is behind, and
// only then, it goes ahead of waiting Submits, by up to a thousand requests. So an Ended that
// submits a follow-up to each end does not get stuck. Any other caller that repeats TrySubmit then
// keeps Submit waiting.
func (p *Pool) TrySubmit(r Request) error {
	p.mu.Lock()
	defer p.unlock()
	return p.submit(p.Now(), r, maxUnreported)
}

func (p *Pool) submit(now mono.Time, r Request, over int) error {
	if p.phase > open || p.ctx != nil && p.inFlight == 0 && p.dispatcher.Exhausted() != nil {
		return p.closedLocked() // if it was taken meanwhile, Run is about to return
	}
	if p.behindLocked(over) {
		return errBehind
	}
	// No caller overtakes a Submit that waits for room in the queue: step takes those in first.
	if _, err := p.queue.Submit(now, r); err != nil {
		return err
	}
	p.step(now)
	return nil
}

// behindLocked reports whether Submit must wait because Ended is behind. That begins with a
// thousand unreported ends, and lasts until all are reported. Meanwhile the Pool holds no more
// requests than at the beginning.
func (p *Pool) behindLocked(over int) bool {
	behind := len(p.ended) + p.reporting
	held := behind + p.inFlight + p.queue.Counts().Waiting
	switch {
	case behind == 0:
		p.most = 0
	case p.most == 0 && behind >= maxUnreported:
		p.most = held
	}
	return p.most > 0 && held >= p.most+over
}

func (p *Pool) closedLocked() error {
	if err := p.dispatcher.Exhausted(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	if errors.Is(p.result, ErrOutage) {
		return fmt.Errorf("%w: %w", ErrClosed, p.result)
	}
	return ErrClosed
}

// admitSubmitters takes waiting requests, as far as there is room, and reports whether it took one.
func (p *Pool) admitSubmitters(now mono.Time) (some bool) {
	for s := p.submitters.first; s != nil && !p.behindLocked(0); s = p.submitters.first {
		_, err := p.queue.SubmitFrom(now, s.came, s.request)
		if errors.Is(err, ErrFull) {
			break
		}
		p.submitters.remove(s)
		s.done <- err
		some = true
	}
	return some
}

func (l *submitters) push(s *submitter) {
	s.prev = l.last
	if l.last == nil {
		l.first = s
	} else {
		l.last.next = s
	}
	l.last = s
}

func (l *submitters) remove(s *submitter) {
	if s.prev == nil {
		l.first = s.next
	} else {
		s.prev.next = s.next
	}
	if s.next == nil {
		l.last = s.prev
	} else {
		s.next.prev = s.prev
	}
}

func (l *submitters) fail(err error) {
	for s := l.first; s != nil; s = s.next {
		s.done <- err
	}
	l.first, l.last = nil, nil
}
