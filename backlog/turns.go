package backlog

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	core "github.com/paceline-go/paceline/internal/core/backlog"
	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// patience is how long a call of the store may last. It is less than a worker stays fresh.
	patience = 5 * time.Second
	// lookEvery is the time between two looks at other workers, and emptyEvery between two looks for an end.
	lookEvery, emptyEvery = time.Second, 500 * time.Millisecond
	// leastRetry and mostRetry are the pauses after calls that failed.
	leastRetry, mostRetry = 50 * time.Millisecond, time.Second
)

// turns takes turns until nothing is left to be told.
func (s *Session) turns() {
	retry, checked := leastRetry, mono.Min
	for !s.done() {
		began, err := s.step()
		if err == nil {
			retry = leastRetry
			if began {
				checked = s.checkEmpty(checked)
			}
			continue
		}
		if s.calls.Err() != nil {
			break
		}
		s.sleep(retry/2 + rand.N(retry/2)) // a kick does not end it
		retry = min(2*retry, mostRetry)
	}
	s.end()
}

// done reports whether the turns are at their end.
func (s *Session) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls.Err() != nil || errors.Is(s.over, ErrNoBacklog) {
		return true
	}
	return s.over != nil && s.worker.Over()
}

// step does what is due at the store, or waits until something is. began says that it called the store.
func (s *Session) step() (began bool, err error) {
	s.mu.Lock()
	now := s.now()
	switch {
	case s.worker.Reads():
		id := s.worker.ID()
		s.mu.Unlock()
		return true, s.read(id)
	case s.worker.ID() == 0:
		s.mu.Unlock()
		return true, s.register(now)
	}
	due := s.worker.Due(now, s.config.Lanes)
	if due <= now {
		t := s.worker.Turn(now, s.config.Lanes)
		s.mu.Unlock()
		return true, s.turn(t)
	}
	s.planned = min(due, s.worker.Rested(now))
	d := s.planned.Sub(now)
	s.mu.Unlock()
	s.pause(d)
	s.mu.Lock()
	s.planned = mono.Max
	if s.worker.Rested(now) <= s.now() {
		s.wakeAllLocked()
	}
	s.mu.Unlock()
	return false, nil
}

func (s *Session) turn(t *Turn) error {
	ctx, cancel := s.call()
	defer cancel()
	o, err := s.store.Turn(ctx, s.config.Backlog.info.ID, t)
	s.mu.Lock()
	if err != nil {
		s.worker.Unknown()
	} else {
		s.worker.Committed(s.now(), o)
		s.wakeAllLocked()
	}
	s.mu.Unlock()
	if err == nil && o.Fits && s.config.Committed != nil && len(t.Ends) > 0 {
		seqs := make([]int64, len(t.Ends))
		for i, e := range t.Ends {
			seqs[i] = e.Seq
		}
		s.config.Committed(seqs)
	}
	return s.note(err)
}

func (s *Session) read(id int64) error {
	ctx, cancel := s.call()
	defer cancel()
	row, err := s.store.Read(ctx, id)
	if err != nil {
		return s.note(err)
	}
	s.mu.Lock()
	lost := s.worker.Read(row)
	s.wakeAllLocked()
	s.mu.Unlock()
	if lost {
		if !row.Dead {
			s.store.GiveUp(ctx, Beat{Worker: id, Beat: row.Beat}) //nolint:errcheck // others do it, 15 s later
		}
		if s.config.Notice != nil {
			s.config.Notice(ErrWentBack)
		}
	}
	return nil
}

func (s *Session) register(began mono.Time) error {
	ctx, cancel := s.call()
	defer cancel()
	host, _ := os.Hostname()
	b, err := s.store.Register(ctx, s.config.Backlog.info.ID, host, os.Getpid())
	s.mu.Lock()
	switch {
	case err == nil:
		s.worker.Registered(began, b.Worker, b.Beat)
	case errors.Is(err, ErrNoBacklog):
		s.over = err
		s.wakeAllLocked()
	}
	s.mu.Unlock()
	return s.note(err)
}

// checkEmpty looks for the end of the backlog, if the worker has nothing.
func (s *Session) checkEmpty(last mono.Time) mono.Time {
	s.mu.Lock()
	now := s.now()
	idle := s.config.UntilEmpty && s.over == nil && s.worker.ID() != 0 && s.worker.Over()
	s.mu.Unlock()
	if !idle || now < last.Add(emptyEvery) {
		return last
	}
	ctx, cancel := s.call()
	defer cancel()
	empty, err := s.store.Empty(ctx, s.config.Backlog.info.ID)
	if s.noteRead(err) == nil && empty {
		s.mu.Lock()
		if s.over == nil {
			s.over = ErrEmpty
		}
		s.wakeAllLocked()
		s.mu.Unlock()
	}
	return now
}

// end takes the worker's row away, so that nobody has to give it up.
func (s *Session) end() {
	s.mu.Lock()
	b, clean := s.worker.Beat(), s.worker.Over()
	s.mu.Unlock()
	if clean && b.Worker != 0 {
		ctx, cancel := s.call()
		defer cancel()
		s.store.GiveUp(ctx, b) //nolint:errcheck // others do it, 15 s later
	}
	s.cancel()
}

// looks gives up workers that take no more turns, and wakes what has rested.
func (s *Session) looks() {
	var watch core.Watch
	id := s.config.Backlog.info.ID
	for s.sleep(lookEvery) {
		began := s.now()
		ctx, cancel := s.call()
		all, err := s.store.Look(ctx, id)
		if err != nil {
			watch.Failed(s.now())
		} else {
			for _, b := range watch.Look(began, all) {
				s.store.GiveUp(ctx, b) //nolint:errcheck // the next look shows whether it was done
			}
			s.store.Wake(ctx, id) //nolint:errcheck // the next look does it
		}
		cancel()
	}
}

// call returns a context for one call of the store.
func (s *Session) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.calls, patience)
}

// note passes the first error of a row of errors on, and its end.
func (s *Session) note(err error) error {
	s.mu.Lock()
	changed := (err != nil) != s.failing
	s.failing = err != nil
	s.mu.Unlock()
	if changed && s.config.Notice != nil && s.calls.Err() == nil {
		s.config.Notice(err)
	}
	return err
}

// noteRead is note for a call that only reads. Its success does not end a row of errors: a store whose disk is full
// reads, and does not write.
func (s *Session) noteRead(err error) error {
	if err != nil {
		return s.note(err)
	}
	return nil
}

// pause waits for d, for a kick, or for the end.
func (s *Session) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.kick:
	case <-s.calls.Done():
	}
}

// sleep waits for d, and reports whether the session goes on.
func (s *Session) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.calls.Done():
		return false
	}
}
