package backlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
	core "github.com/paceline-go/paceline/internal/core/backlog"
	"github.com/paceline-go/paceline/limit/mono"
)

// These are the errors of a Session that has no more requests.
var (
	// ErrEmpty: each request of the backlog has a result, and the Session is UntilEmpty.
	ErrEmpty = errors.New("backlog: each request has a result")
	// ErrStopped: Stop was called.
	ErrStopped = errors.New("backlog: the session is stopped")
)

// SessionConfig is for NewSession. Only Backlog has no default.
type SessionConfig struct {
	Backlog *Backlog
	// Lanes are those of which the Session takes requests. If nil, lane 0.
	Lanes []int32
	// UntilEmpty ends the Session when each request of the backlog has a result, by ErrEmpty. Otherwise it
	// waits for more.
	UntilEmpty bool
	// Notice is called when the store fails, and with nil when it answers again. The Session goes on
	// trying. It is called with ErrWentBack when the store has lost turns of this Session. What this Session
	// sent in the lost time is named. What a Session sent that died in that time is not. If nil, nobody is
	// notified.
	Notice func(error)
	// Committed is called with the Seq of requests whose Answers the store has. If nil, nobody is notified.
	Committed func(seqs []int64)
}

// Session is one worker of a backlog. It marks requests and hands them out, reports what became of them,
// and gives up workers that died. Most programs use a Worker. A Session is for those that have retries
// and limits of their own.
//
// It holds requests for the next 2 s, and has marked what may go in 100 ms. It has two goroutines
// until it has ended: after Stop, or when no request is left. NewSession makes it. Safe for concurrent
// use.
type Session struct {
	config SessionConfig
	store  Store
	clock  *boottime.Clock
	kick   chan struct{}   // the turns have something to do sooner
	calls  context.Context // of calls of the store
	cancel context.CancelFunc
	ended  chan struct{} // closed when both goroutines have ended

	mu       sync.Mutex
	worker   *core.Worker
	waiting  map[int32]chan struct{} // of lanes: closed when a request may go that could not go before
	planned  mono.Time               // when the next turn begins, as far as its goroutine knows
	stopping bool
	over     error // why no request goes any more
	failing  bool  // the last call of the store failed
}

// NewSession begins a Session. Stop it.
func NewSession(c SessionConfig) (*Session, error) {
	if c.Backlog == nil {
		return nil, errors.New("backlog: the Session has no Backlog")
	}
	if c.Lanes == nil {
		c.Lanes = []int32{0}
	}
	c.Lanes = slices.Clone(c.Lanes)
	s := &Session{config: c, store: c.Backlog.store, clock: boottime.NewClock(), kick: make(chan struct{}, 1),
		ended: make(chan struct{}), worker: core.New(), waiting: map[int32]chan struct{}{}, planned: mono.Max}
	s.calls, s.cancel = context.WithCancel(context.Background())
	var both sync.WaitGroup
	both.Go(s.turns)
	both.Go(s.looks)
	go func() {
		both.Wait()
		close(s.ended)
	}()
	return s, nil
}

// now is for turns, and for the last look before a write. rough may miss a sleep of the machine since.
func (s *Session) now() mono.Time   { return mono.Time(s.clock.Now()) }
func (s *Session) rough() mono.Time { return mono.Time(s.clock.Rough()) }

// Take returns the next request of a lane, once it is marked and may go. It is in flight from then on: call
// one of its End, Again and Unsent. The error is ErrEmpty, ErrStopped, ErrNoBacklog if the backlog was
// removed, or the cause of ctx.
func (s *Session) Take(ctx context.Context, lane int32) (*Attempt, error) {
	for {
		s.mu.Lock()
		a, err := s.takeLocked(lane)
		if a != nil || err != nil {
			s.mu.Unlock()
			return a, err
		}
		s.worker.Asks(lane, 1)
		changed := s.changedLocked(lane)
		s.mu.Unlock()
		err = wait(ctx, changed)
		s.mu.Lock()
		s.worker.Asks(lane, -1)
		s.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// try returns nil if no request may go now.
func (s *Session) try(lane int32) *Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.takeLocked(lane)
	if err != nil {
		return nil
	}
	return a
}

// takeLocked returns nil if no request may go now.
func (s *Session) takeLocked(lane int32) (*Attempt, error) {
	if s.over != nil {
		return nil, s.over
	}
	j, ok := s.worker.Next(s.rough(), lane)
	if !ok {
		return nil, nil
	}
	s.planLocked()
	return &Attempt{Seq: j.Seq, ID: j.ID, Data: j.Data, Lane: j.Lane, Attempts: j.Attempts, Doubt: j.Doubt,
		Deadline: instant(j.Deadline), session: s}, nil
}

// atLeast returns when more than n requests of a lane may go, once they are marked.
func (s *Session) atLeast(ctx context.Context, lane int32, n func() int) error {
	for {
		s.mu.Lock()
		err, more := s.over, s.worker.Waiting(s.rough(), lane) > n()
		if err != nil || more {
			s.mu.Unlock()
			return err
		}
		changed := s.changedLocked(lane)
		s.mu.Unlock()
		if err := wait(ctx, changed); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-changed:
		return nil
	}
}

func instant(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis)
}

// Held returns how many requests the Session holds, and how many of them are in flight.
func (s *Session) Held() (all, flying int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worker.Held()
}

// ID returns the number of the Session's worker; 0: it has none yet.
func (s *Session) ID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.worker.ID()
}

// Stop ends the Session. It gives back what is not in flight, waits for the end of each Attempt, and
// returns when the store has it all. If ctx is done before, it gives up trying, and the error says what
// the store may not have: others send that again, and its repeats are named.
func (s *Session) Stop(ctx context.Context) error {
	s.beginStop()
	stop := context.AfterFunc(ctx, s.cancel)
	defer stop()
	<-s.ended
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if all, flying := s.worker.Held(); !s.worker.Over() && !errors.Is(s.over, ErrNoBacklog) {
		return fmt.Errorf("backlog: the session ended with %d requests, %d of them in flight, and with answers that the "+
			"store may not have: %w", all, flying, context.Cause(ctx))
	}
	return nil
}

// beginStop hands out no more requests, and gives back what is not in flight.
func (s *Session) beginStop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	if s.over == nil || s.over == ErrEmpty {
		s.over = ErrStopped
	}
	s.worker.Stop()
	s.wakeAllLocked()
	s.nudge()
}

// changedLocked returns what is closed when a request of a lane may go.
func (s *Session) changedLocked(lane int32) <-chan struct{} {
	c := s.waiting[lane]
	if c == nil {
		c = make(chan struct{})
		s.waiting[lane] = c
	}
	return c
}

// wakeLocked wakes all who wait for requests of a lane.
func (s *Session) wakeLocked(lane int32) {
	if c := s.waiting[lane]; c != nil {
		close(c)
		delete(s.waiting, lane)
	}
}

// wakeAllLocked wakes those who wait, if a request of their lane may go soon or none goes any more.
func (s *Session) wakeAllLocked() {
	for lane := range s.waiting {
		if s.over != nil || s.worker.Waiting(s.rough(), lane) > 0 {
			s.wakeLocked(lane)
		}
	}
}

// planLocked wakes the turns if the next one begins sooner than planned.
func (s *Session) planLocked() {
	if s.worker.Due(s.rough(), s.config.Lanes) < s.planned {
		s.nudge()
	}
}

func (s *Session) nudge() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}
