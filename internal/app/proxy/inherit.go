package proxy

import (
	"path/filepath"
	"slices"
	"sort"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// The state goes from one process to the next in three steps. The former one suspends it: nothing is
// sent any more, and the file has all that was. The next one opens the file. Then the former one
// hands over: its requests in flight go on, and their outcomes go to the next one.

// inFlight is a request in flight of the process before.
type inFlight struct {
	place
	cost   limit.Cost
	went   time.Time
	settle []func(limit.Outcome) // at each partition in which it counts
}

// endedInFlight is one that has ended.
type endedInFlight struct {
	*inFlight
	outcome limit.Outcome
}

// useState is the use of the lock of a state file, among what goes over.
const useState = "state"

// InUseError means that another process has the state file.
type InUseError = journal.InUseError

// ownState takes the lock of a state file, from the process before if that passes it on. It does so unless it
// has another file, or is of a version that has no lock.
func ownState(path string, from *daemon.Predecessor) (*journal.Lock, error) {
	if from != nil {
		if lock := from.File(useState, wholePath(path)); lock != nil {
			return journal.Borrow(path, lock), nil
		}
	}
	return journal.Own(path)
}

// wholePath names a file in the same way for all processes.
func wholePath(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// follow notes the requests in flight of the process before.
func (s *state) follow(all []journal.Underway) error {
	for i := range all {
		u := &all[i]
		p, err := journal.ParsePlace(u.Key)
		if err != nil {
			return err
		}
		went := s.began.Add(time.Duration(u.Sent - s.began.UnixNano()))
		s.open[u.Send] = &inFlight{place: p, cost: u.Cost, went: went}
	}
	return nil
}

// Underway implements transport.Underway.
func (l ledger) Underway(p transport.Partition, admit func(limit.Cost) func(limit.Outcome)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.open {
		if l.counts(&earlier{Earlier: journal.Earlier{Place: e.place}}, p) {
			e.settle = append(e.settle, admit(e.cost))
		}
	}
	if since, asked := l.seen[p]; asked {
		delete(l.seen, p)
		for _, e := range l.ended[since:] { // after Earlier
			if l.counts(&earlier{Earlier: journal.Earlier{Place: e.place}}, p) {
				admit(e.cost)(e.outcome)
			}
		}
	}
}

// counts reports whether a request of an earlier process counts in p. A client's own limit counts its
// requests to all upstreams, also to removed ones.
func (l ledger) counts(e *earlier, p transport.Partition) bool {
	if e.keys != nil {
		return l.beside.counts(l.upstream, e, p)
	}
	if e.Owner != l.upstream && p.Scope != transport.ScopeClient {
		return false
	}
	if e.In(p) {
		return true
	}
	for _, former := range l.formers[ofUpstream{l.upstream, p.Key}] {
		if p.Key = former; e.In(p) {
			return true
		}
	}
	return false
}

// inherit takes in the outcome of a request of the process before.
func (s *state) inherit(entry int64, o limit.Outcome) {
	o.RetryAfter = 0 // it is not known which limits refused, and the next answer says it again
	if err := s.answer(entry, &o); err != nil {
		s.unwritten(err)
	}
	s.mu.Lock()
	e := s.open[entry]
	if e == nil {
		s.mu.Unlock()
		return
	}
	delete(s.open, entry)
	s.ended = append(s.ended, endedInFlight{e, o})
	if s.latest = time.Now(); o.Result != limit.Unsent {
		past := earlier{Earlier: journal.Earlier{Place: e.place, Counts: journal.AnswerOf(&o).Counts, Went: e.went,
			Past: limit.Past{Cost: e.cost, Result: o.Result}}}
		if o.Metered {
			past.Cost = o.Actual
		}
		i := sort.Search(len(s.earlier), func(i int) bool { return s.earlier[i].Counts.After(past.Counts) })
		s.earlier = slices.Insert(s.earlier, i, past)
	}
	s.mu.Unlock()
	for _, settle := range e.settle {
		settle(o)
	}
}

// abandon settles what the process before has not: it has ended.
func (s *state) abandon() {
	s.mu.Lock()
	var left []int64
	for entry := range s.open {
		left = append(left, entry)
	}
	s.mu.Unlock()
	for _, entry := range left {
		s.inherit(entry, limit.Outcome{Result: limit.Unknown})
	}
}

// enter returns when records may be written, with the door's lock for reading.
func (s *state) enter() {
	for s.door.RLock(); s.held != nil; s.door.RLock() {
		held := s.held
		s.door.RUnlock()
		<-held
	}
}

// answer records the outcome of a request, here or at the next process.
func (s *state) answer(entry int64, o *limit.Outcome) error {
	s.enter()
	defer s.door.RUnlock()
	if s.heirs != nil {
		return s.heirs(entry, *o)
	}
	s.journal.AnswerSoon(entry, journal.AnswerOf(o))
	return nil
}

// suspend holds back all sends and outcomes, and closes the file. resume or handOver follows.
func (s *state) suspend() error {
	s.door.Lock()
	s.held = make(chan struct{})
	s.door.Unlock()
	s.book.Flush()
	err := s.journal.Suspend()
	if err != nil {
		s.resume()
	}
	return err
}

// resume goes on after suspend: no process took over.
func (s *state) resume() {
	if err := s.journal.Resume(); err != nil {
		s.unwritten(err)
	}
	s.handOver(nil)
}

// handOver ends what suspend began: the next process sends from now on, and gets all outcomes.
func (s *state) handOver(outcomes func(entry int64, o limit.Outcome) error) {
	s.door.Lock()
	defer s.door.Unlock()
	if s.heirs = outcomes; outcomes != nil {
		s.journal.Lock().Leave()
	}
	close(s.held)
	s.held = nil
}

// isHanded reports whether another process has the file.
func (s *state) isHanded() bool {
	s.door.RLock()
	defer s.door.RUnlock()
	return s.heirs != nil
}
