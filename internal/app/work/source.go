package work

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/pool"
)

// Format is the format of the requests and results in a backlog.
const Format = "paceline run, version 1"

// lane is that of all requests: a run has its limits for all of them.
const lane = 0

// Source is the input of a run, and its Backlog. It hands out a request at a time, as a line, and no more
// than the run can begin soon: what is handed out may have been sent if the process dies. Safe for
// concurrent use; one goroutine reads.
type Source struct {
	session *backlog.Session
	ctx     context.Context
	cancel  context.CancelFunc
	most    int
	rest    []byte // of the latest line

	mu      sync.Mutex
	jobs    map[string]*job // handed out, and not ended
	waiting int             // those of them that have not begun, and one that is about to be handed out
	began   time.Time       // when the latest one began
	gap     time.Duration   // between two that begin: the mean of the latest
	room    chan struct{}   // closed when there is more room
	latest  *job
	err     error // with which reading ended
}

// job is a request in the hands of the run.
type job struct {
	*backlog.Attempt
	began bool // its first attempt, or its end
}

const (
	// aheadFor is how long the requests should last that were handed out and have not begun; there are
	// leastAhead at least.
	aheadFor   = 250 * time.Millisecond
	leastAhead = 4
)

// NewSource returns a Source of a session. At most so many requests are handed out that have not begun.
// Close it.
func NewSource(ctx context.Context, s *backlog.Session, most int) *Source {
	ctx, cancel := context.WithCancel(ctx)
	return &Source{session: s, ctx: ctx, cancel: cancel, most: most, jobs: map[string]*job{}, room: make(chan struct{}),
		gap: aheadFor / (2 * leastAhead)} // not known yet
}

// Read implements io.Reader: a call returns a part of one line. It ends with io.EOF when the backlog has
// no more requests for this process. Err says why.
func (s *Source) Read(b []byte) (int, error) {
	if len(s.rest) == 0 {
		if err := s.next(); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.err = err
			return 0, io.EOF
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// next takes the next request.
func (s *Source) next() error {
	for {
		room := s.enter()
		if room == nil {
			break
		}
		select {
		case <-room:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
	a, err := s.session.Take(s.ctx, lane)
	if err != nil {
		return err // nothing more is read
	}
	j := &job{Attempt: a}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.jobs[a.ID], s.latest = j, j
	s.rest = append(bytes.ReplaceAll(a.Data, []byte("\n"), []byte(" ")), '\n') // a line break in JSON is white space
	return nil
}

// enter makes room for one request that has not begun. If there is none, it returns what is closed when there is more.
func (s *Source) enter() (room <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting >= min(max(int(aheadFor/max(s.gap, 1)), leastAhead), s.most) {
		return s.room
	}
	s.waiting++
	return nil
}

// Err returns why reading ended; nil: each request of the backlog has a result, or this process was to end.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, backlog.ErrEmpty) || errors.Is(s.err, backlog.ErrStopped) || errors.Is(s.err, context.Canceled) {
		return nil
	}
	return s.err
}

// Close gives back what has not ended, and returns when the backlog knows of all. If ctx ends first, the
// error says what it may not know.
func (s *Source) Close(ctx context.Context) error {
	s.cancel()
	s.mu.Lock()
	for _, j := range s.jobs {
		s.releaseLocked(j)
	}
	s.mu.Unlock()
	return s.session.Stop(ctx)
}

// releaseLocked gives a request back.
func (s *Source) releaseLocked(j *job) {
	s.beganLocked(j)
	delete(s.jobs, j.ID)
	j.Unsent()
}

// beganLocked makes room for the next request.
func (s *Source) beganLocked(j *job) {
	if j.began {
		return
	}
	j.began = true
	s.waiting--
	const part = 8
	now := time.Now()
	if !s.began.IsZero() {
		s.gap += (min(now.Sub(s.began), time.Second) - s.gap) / part
	}
	s.began = now
	close(s.room)
	s.room = make(chan struct{})
}

// Latest implements run.Backlog.
func (s *Source) Latest() (id string, attempts int, doubt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.latest
	return j.ID, j.Attempts, j.Doubt
}

// May implements run.Backlog.
func (s *Source) May(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil {
		return false
	}
	s.beganLocked(j)
	return j.Fresh()
}

// Return implements run.Backlog.
func (s *Source) Return(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil {
		s.releaseLocked(j)
	}
}

// Fresh implements run.Backlog.
func (s *Source) Fresh(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	return j != nil && j.Fresh()
}

// Tried implements run.Backlog.
func (s *Source) Tried(id string, doubt bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[id]; j != nil {
		j.Attempt.Tried(doubt)
	}
}

var states = map[pool.State]backlog.State{pool.Done: backlog.Done, pool.Dead: backlog.Dead, pool.Expired: backlog.Expired}

// Ended implements run.Backlog.
func (s *Source) Ended(id string, e run.BacklogEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[id]
	if j == nil {
		return
	}
	s.beganLocked(j)
	delete(s.jobs, id)
	j.End(backlog.Answer{State: states[e.State], Class: e.Class.String(), Attempts: e.Attempts, Repeat: e.Repeat,
		Unsure: e.Unsure, Line: bytes.Clone(bytes.TrimSuffix(e.Line, []byte("\n")))})
}
