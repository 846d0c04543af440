package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// state keeps the sent requests that may still count, for the next process. Each attempt is in the
// file before it leaves, and its outcome a moment after it. No request waits for the disk: bytes that the kernel has
// are safe when the process is killed.
type state struct {
	journal *journal.Journal
	book    *journal.Findings // what was found of unknown limits
	began   time.Time
	keep    time.Duration
	all     bool // the file has everything that was sent
	lost    bool // there was a file, and it is gone
	salt    journal.Salt
	log     *slog.Logger
	names   journal.Names

	door  sync.RWMutex                             // held by each record, and guards the next two
	held  chan struct{}                            // nothing is recorded until it is closed; nil: all is
	heirs func(entry int64, o limit.Outcome) error // gets the outcomes; nil: no process has taken over

	mu      sync.Mutex
	earlier []earlier                   // in the order of at; nil once none counts any more
	latest  time.Time                   // when the latest of them came in
	open    map[int64]*inFlight         // requests in flight of the process before, by their number in the file
	ended   []endedInFlight             // those that have ended by now
	seen    map[transport.Partition]int // how many of ended are in what Earlier returned
	formers map[ofUpstream][]string     // by key: the names under which it sent before
	failed  atomic.Bool

	beside *beside // nil: other programs of the user learn nothing
}

// earlier is a request that an earlier process sent, or another program.
type earlier struct {
	journal.Earlier

	// Of a request of another program: the digests of its key, and the program's servers. There is no owner.
	keys, servers []string
}

// compactFrom is the size from which the file is compacted. A file of this size is read quickly
// before the proxy serves.
const compactFrom = 8 << 20

// openState reads the file of an earlier process. keep is how far back a request may count, timeout
// how long an attempt may take, and clock the journal's clock. from is the earlier process, if that lives: it
// still waits for answers, which come by inherit. Nothing is read or written before the file is this process's.
func openState(path string, keep, timeout time.Duration, from *daemon.Predecessor, log *slog.Logger,
	clock func() (time.Time, boottime.Reading)) (*state, error) {
	lock, err := ownState(path, from)
	if err != nil {
		return nil, err
	}
	_, missing := os.Stat(path + ".salt")
	salt, err := journal.SaltOf(path + ".salt")
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	now := time.Now()
	s := &state{began: now, latest: now, keep: keep, salt: salt, log: log, open: map[int64]*inFlight{},
		seen: map[transport.Partition]int{}}
	j, h, err := journal.Open(journal.Config{Path: path, Keep: keep, Timeout: timeout, CompactFrom: compactFrom,
		Lock: lock, Clock: clock, Alive: from != nil, Unwritten: s.unwritten,
		Forget: func(string) bool { return true }}, s.began)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.journal, s.all, s.keep = j, h.Last == 0, j.Kept() // a run before may have had longer windows
	s.lost = h.Gone != "" && missing == nil
	s.book = journal.NewFindings(j, h, s.began, s.unwritten)
	for i := range h.Sends {
		// No request arrives later than this. If the clock was set back, the file may name a later
		// time.
		e, err := journal.EarlierOf(&h.Sends[i], s.began, s.began.Add(journal.Late+timeout))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), j.Close())
		}
		s.earlier = append(s.earlier, earlier{Earlier: e})
	}
	if err := s.follow(h.Underway()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), j.Close())
	}
	return s, nil
}

// recall reads what was sent to an upstream, also by this process, for limits there that begin anew.
func (s *state) recall(upstream string) {
	now := time.Now()
	sent, err := s.journal.Sends(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 { // the process before still has requests in flight, which are kept apart
		return
	}
	all := slices.DeleteFunc(slices.Clone(s.earlier), func(e earlier) bool { return e.Owner == upstream && e.keys == nil })
	for i := range sent {
		e, bad := journal.EarlierOf(&sent[i], s.began, now.Add(journal.Late))
		if err = errors.Join(err, bad); bad == nil && e.Owner == upstream {
			all = append(all, earlier{Earlier: e})
		}
	}
	if err != nil {
		s.log.Error("what was sent before a limit began anew is not known", "upstream", upstream, "err", err)
		return
	}
	slices.SortStableFunc(all, func(a, b earlier) int { return a.Counts.Compare(b.Counts) })
	s.earlier, s.latest = all, now
}

// place is where a request counts. Its owner is the upstream.
type place = journal.Place

// keyName is the name of a credential. It is the same after a restart.
func (s *state) keyName(credential string) string { return s.salt.KeyName(credential) }

// partition is partitionOf, with names of credentials that outlive the process.
func (s *state) partition(r *http.Request) transport.Partition {
	p := partitionBy(r, "")
	credential := credentialOf(r)
	p.Key = s.keyName(credential)
	s.beside.meets(r, p.Key, credential)
	return p
}

// rename notes the names that keys of an upstream had before.
func (s *state) rename(upstream string, keys heldKeys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.formers == nil {
		s.formers = map[ofUpstream][]string{}
	}
	for _, k := range keys {
		s.formers[ofUpstream{upstream, k.ownKey.name}] = k.names
	}
}

// keepFor keeps sent requests for at least d.
func (s *state) keepFor(d time.Duration) {
	if err := s.journal.KeepFor(d); err != nil {
		s.unwritten(err)
	}
}

// close is called after the last request.
func (s *state) close() {
	s.book.Flush()
	if s.isHanded() {
		s.beside.drop()
		return
	}
	if err := s.journal.Close(); err != nil {
		s.log.Error("the state file", "err", err)
	}
	s.beside.end()
}

// ledger is the part of the state for one upstream.
type ledger struct {
	*state
	upstream string
}

// Send implements transport.Recorder.
func (l ledger) Send(p transport.Partition, cost limit.Cost) (int64, error) {
	return l.send(p, cost, false)
}

// SendLong implements transport.LongRecorder: the request of a Leave.
func (l ledger) SendLong(p transport.Partition, cost limit.Cost) (int64, error) {
	return l.send(p, cost, true)
}

func (l ledger) send(p transport.Partition, cost limit.Cost, held bool) (int64, error) {
	l.enter()
	defer l.door.RUnlock()
	if l.heirs != nil {
		return 0, transport.ErrTakenOver
	}
	key := l.names.Of(place{Owner: l.upstream, Partition: p})
	entry, err := l.journal.Send(journal.Send{Key: key, Cost: cost, Held: held}, time.Now())
	if err != nil && l.beside.alone() { // nobody asked for a file
		l.unwritten(err)
		return max(entry, 1), nil
	}
	return entry, err
}

// Settle implements transport.Recorder. After a failed write the attempt counts until the end of
// its process, and some time longer.
func (l ledger) Settle(entry int64, cost limit.Cost, o limit.Outcome) {
	if err := l.answer(entry, &o); err != nil {
		l.unwritten(err)
	}
}

// unwritten reports once that the file cannot be written.
func (s *state) unwritten(err error) {
	if errors.Is(err, os.ErrClosed) { // the next process has the file
		return
	}
	if !s.failed.Swap(true) {
		s.log.Error("the state file cannot be written: a restart within a window may be refused", "err", err)
	}
}

// finds keeps in the file what a finds of a partition's limit. It continues from the findings of an
// earlier process.
func (l ledger) finds(p transport.Partition, a *fairshare.Auto) limit.Limiter {
	return l.book.Limiter(l.names.Of(place{Owner: l.upstream, Partition: p}), a, func(text string, sure bool) {
		level := slog.LevelInfo
		if !sure {
			level = slog.LevelWarn
		}
		l.log.Log(context.Background(), level, "limit auto "+text, "upstream", l.upstream, "partition", p.String())
	})
}

// limitedLedger is a ledger that knows the limits of its upstream.
type limitedLedger struct {
	ledger
	*governed
}

// Earlier is that of the ledger. If the file is gone, all that a limit allows counts, and as a request
// that may still arrive: so much may have been sent a moment ago.
func (l limitedLedger) Earlier(p transport.Partition, zero time.Time) (all []limit.Past, since mono.Time) {
	all, since = l.ledger.Earlier(p, zero)
	l.mu.Lock()
	defer l.mu.Unlock()
	if cost := l.now.Load().most(p); l.lost && p.Scope != transport.ScopeClient && cost != (limit.Cost{}) {
		all = append(all, limit.Past{At: mono.Of(zero, l.began.Add(journal.Late)), Sent: mono.Of(zero, l.began),
			Cost: cost, Result: limit.Unknown})
	}
	return all, since
}

// Earlier implements transport.Recorder.
func (l ledger) Earlier(p transport.Partition, zero time.Time) (all []limit.Past, since mono.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since = mono.Min
	if !l.all {
		since = mono.Of(zero, l.began.Add(-l.keep))
	}
	if time.Since(l.latest) > l.keep+journal.Late && len(l.open) == 0 {
		l.earlier, l.all, l.lost = nil, true, false
		return nil, mono.Min
	}
	if len(l.open) > 0 {
		l.seen[p] = len(l.ended)
	}
	for i := range l.earlier {
		if e := &l.earlier[i]; l.counts(e, p) {
			all = append(all, e.From(zero))
		}
	}
	return all, since
}
