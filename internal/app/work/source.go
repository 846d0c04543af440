package work

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/pool"
)

// Format is the format of the requests and results in a backlog.
const Format = "paceline run, version 1"

// Source is the input of a run, and its Backlog. It hands out a request at a time, as a line, and no more
// than the run can begin soon: what is handed out may have been sent if the process dies. Each lane has requests
// handed out for itself, so a lane whose limit has no room holds up no other. Safe for concurrent use; one
// goroutine reads.
type Source struct {
	session *backlog.Session
	backlog *backlog.Backlog
	ctx     context.Context
	cancel  context.CancelFunc
	most    int
	known   int    // how many models have lanes
	rest    []byte // of the latest line
	latest  *job
	taken   chan *job     // from the goroutines of the lanes
	over    chan struct{} // closed with err

	mu      sync.Mutex
	reading bool           // the goroutines of the lanes were started
	beside  sync.WaitGroup // all goroutines of the Source
	jobs    map[string]*job
	err     error    // with which reading ended
	lacking []string // models that the run does not know
	grown   bool     // the backlog has models that have no lane here
}

// window is what is handed out of a lane.
type window struct {
	waiting int           // how many have not begun, with one that is about to be handed out
	began   time.Time     // when the latest one began
	gap     time.Duration // between two that begin: the mean of the latest
	room    chan struct{} // closed when there is more room
}

func newWindow() *window {
	return &window{room: make(chan struct{}), gap: aheadFor / (2 * leastAhead)} // not known yet
}

// job is a request in the hands of the run: handed out, and not ended.
type job struct {
	*backlog.Attempt
	of    *window
	began bool // its first attempt, or its end
}

const (
	// aheadFor is how long the requests should last that were handed out and have not begun; there are
	// leastAhead at least.
	aheadFor   = 250 * time.Millisecond
	leastAhead = 4
	// followEvery is the time between two looks for new models.
	followEvery = time.Second
)

// NewSource returns a Source of a backlog with known models. Of each lane at most so many requests are handed out
// that have not begun. Close it.
func NewSource(ctx context.Context, c backlog.SessionConfig, known, most int) (*Source, error) {
	for lane := range known + 1 {
		c.Lanes = append(c.Lanes, int32(lane))
	}
	session, err := backlog.NewSession(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return &Source{session: session, backlog: c.Backlog, ctx: ctx, cancel: cancel, most: most, known: known,
		jobs: map[string]*job{}, taken: make(chan *job), over: make(chan struct{})}, nil
}

// Read implements io.Reader: a call returns a part of one line. It ends with io.EOF when the backlog has
// no more requests for this process. Err says why.
func (s *Source) Read(b []byte) (int, error) {
	s.begin()
	for len(s.rest) == 0 {
		select {
		case j := <-s.taken:
			if s.keeps(j) {
				s.latest = j
				s.rest = append(bytes.ReplaceAll(j.Data, []byte("\n"), []byte(" ")), '\n') // a line break in JSON is white space
			}
		case <-s.over:
			return 0, io.EOF
		}
	}
	n := copy(b, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// begin starts to take requests, once.
func (s *Source) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading {
		return
	}
	s.reading = true
	for lane := range int32(s.known + 1) {
		s.beside.Go(func() { s.ends(s.take(lane)) })
	}
}

// take takes the requests of a lane, until no more are to be taken.
func (s *Source) take(lane int32) error {
	for w := newWindow(); ; {
		room := s.enter(w)
		if room != nil {
			select {
			case <-room:
				continue
			case <-s.ctx.Done():
				return context.Cause(s.ctx)
			}
		}
		a, err := s.session.Take(s.ctx, lane)
		if err != nil {
			return err
		}
		j := &job{Attempt: a, of: w}
		s.mu.Lock()
		s.jobs[a.ID] = j
		s.mu.Unlock()
		select {
		case s.taken <- j:
		case <-s.ctx.Done(): // Close gives it back
			return context.Cause(s.ctx)
		}
	}
}

// keeps gives a request back that has waited for the reader beyond its time: the backlog was paused, or the store away.
func (s *Source) keeps(j *job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !j.Fresh() {
		s.releaseLocked(j)
		return false
	}
	return true
}

// ends ends the reading.
func (s *Source) ends(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		close(s.over)
	}
}

// enter makes room for one request that has not begun. If there is none, it returns what is closed when there is more.
func (s *Source) enter(w *window) (room <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.waiting >= min(max(int(aheadFor/max(w.gap, 1)), leastAhead), s.most) {
		return w.room
	}
	w.waiting++
	return nil
}

// Follow looks for models that are new in the backlog, and drains the run when there are some: a run has the
// limits of those that it knew when it began. Grown says so then. It may be called once.
func (s *Source) Follow(drain func()) {
	s.beside.Go(func() {
		t := time.NewTicker(followEvery)
		defer t.Stop()
		for !s.Grown() {
			select {
			case <-t.C:
				s.look()
			case <-s.ctx.Done():
				return
			}
		}
		drain()
	})
}

// look tells the backlog of the models that the run lacks, and finds those that others told it of.
func (s *Source) look() {
	s.mu.Lock()
	lacking := s.lacking
	s.mu.Unlock()
	grown := false
	err := ChangeNote(s.ctx, s.backlog, func(n *Note) (changed bool, err error) {
		for _, model := range lacking {
			changed = n.takes(model) || changed
		}
		grown = len(n.Models) > s.known
		return changed, nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grown = s.grown || grown && err == nil // after an error the next look does it
}

// Grown reports whether the run was drained since the backlog has other models than it knew.
func (s *Source) Grown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grown
}

// Lacks implements run.Backlog. The request stays here until Close, so that it is not handed out again and again.
func (s *Source) Lacks(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.lacking, model) {
		s.lacking = append(s.lacking, model)
	}
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
	s.beside.Wait()
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
	j.of.begins(time.Now())
}

// begins makes room for another request.
func (w *window) begins(now time.Time) {
	const part = 8
	w.waiting--
	if !w.began.IsZero() {
		w.gap += (min(now.Sub(w.began), time.Second) - w.gap) / part
	}
	w.began = now
	close(w.room)
	w.room = make(chan struct{})
}

// Latest implements run.Backlog.
func (s *Source) Latest() (id string, attempts int, doubt bool) {
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

// Money implements run.Backlog. While the store does not answer, nothing is taken, and nothing is sent.
func (s *Source) Money(ctx context.Context, least sending.Money) (part sending.Money, err error) {
	for {
		err := ChangeNote(ctx, s.backlog, func(n *Note) (changed bool, err error) {
			part = 0
			if n.Budget != nil {
				part = n.Budget.take(least)
			}
			return part > 0, nil
		})
		if err == nil {
			return part, nil
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
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
