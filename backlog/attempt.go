package backlog

import (
	"time"

	"github.com/paceline-go/paceline"
)

// Attempt is a request in the hands of a worker, to be sent once. End it by End, Again or Unsent, exactly
// one of them; a second call does nothing. Safe for concurrent use.
type Attempt struct {
	// Seq is the place of the request in the order of the input.
	Seq  int64
	ID   string
	Data []byte
	Lane int32
	// Attempts is how often the request may have been sent before.
	Attempts int
	// Doubt says that it may have been served before.
	Doubt bool
	// Deadline is the instant after which it is not sent any more. If zero, there is none.
	Deadline time.Time

	session *Session
	permit  paceline.Permit // of a Worker with a Gate
	limited bool            // there is one
	over    bool            // guarded by the session's lock
}

// Answer is the end of a request.
type Answer struct {
	// State is Done, Dead, Expired or Cancelled.
	State State
	// Class says why a request is dead: a word that RetryDead takes. If Attempts are used up and it is
	// empty, it is "attempts".
	Class string
	// Attempts is how often it may have been sent in all. If zero, one more than before for Done and Dead,
	// and as often as before for the others.
	Attempts int
	// Repeat says that the worker itself sent it more than once, and that one before the last may have
	// been served. Again with a doubt says the same.
	Repeat bool
	// Unsure says that the last attempt may have been served, although the request is dead.
	Unsure bool
	// Line is the result, for Result.Line.
	Line []byte
}

// Fresh reports whether the request may be written now. Ask it right before the write, after any wait. If
// it may not, call Unsent: the backlog is paused, or the worker could not take a turn in the last 10 s, so
// others may send it. In a
// Worker with a Gate it also says that the Permit is Fresh.
func (a *Attempt) Fresh() bool {
	if a.limited && !a.permit.Fresh() {
		return false
	}
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	return !a.over && s.worker.May(s.now(), a.Seq)
}

// End reports the end of the request. The result is written with the next turn, at most 100 ms later. If
// another worker was quicker, after this one was given up, its result stays.
func (a *Attempt) End(answer Answer) {
	if answer.Attempts == 0 {
		answer.Attempts = a.Attempts
		if answer.State == Done || answer.State == Dead {
			answer.Attempts++
		}
	}
	a.finish(func(s *Session) {
		s.worker.Ended(End{Seq: a.Seq, Attempts: answer.Attempts, Doubt: answer.Repeat, State: uint8(answer.State),
			Class: answer.Class, Unsure: answer.Unsure, Line: answer.Line})
	})
}

// Again has the request sent again after a rest. Up to 10 s it stays with this worker; otherwise any worker
// takes it. doubt says that this attempt may have been served.
func (a *Attempt) Again(rest time.Duration, doubt bool) {
	a.finish(func(s *Session) { s.worker.Again(s.rough(), a.Seq, rest, doubt) })
}

// Tried says that this attempt failed, and that the caller makes another one itself: the request stays in
// flight. doubt says that this attempt may have been served. Attempts and Doubt are those before the next one
// then.
func (a *Attempt) Tried(doubt bool) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.over {
		return
	}
	s.worker.Tried(a.Seq, doubt)
	a.Attempts++
	a.Doubt = a.Doubt || doubt
}

// Unsent says that nothing of the request was written. It goes next.
func (a *Attempt) Unsent() {
	a.finish(func(s *Session) { s.worker.Unsent(a.Seq) })
}

func (a *Attempt) finish(f func(*Session)) {
	s := a.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.over {
		return
	}
	a.over = true
	f(s)
	if s.worker.Has(s.rough(), a.Lane) {
		s.wakeLocked(a.Lane)
	}
	if s.stopping && s.worker.Over() {
		s.nudge()
	}
	s.planLocked()
}
