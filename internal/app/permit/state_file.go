package permit

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// state is the file of what was granted. Each permit is in it before its holder gets it. nil is the
// state of a Server without a file.
type state struct {
	journal *journal.Journal
	failed  atomic.Bool
}

// known is what an earlier process granted. nil: that is not known.
type known struct {
	past  map[string][]limit.Past // by limit; the instants count from zero
	since time.Time               // what was granted earlier is not known; zero: all is known
}

// compactFrom is the size from which the file is compacted.
const compactFrom = 8 << 20

// recall opens the state file, for the first limits of the Server, and reads what an earlier process
// granted.
func (s *Server) recall(limits []Limit) error {
	if s.c.State == "" {
		return nil
	}
	keep := time.Duration(0)
	for _, l := range limits {
		for _, r := range l.Rates {
			keep = max(keep, r.Remembers())
		}
	}
	if s.state != nil {
		return s.state.journal.KeepFor(keep)
	}
	lock, err := journal.Own(s.c.State)
	if err != nil {
		return err
	}
	_, missing := os.Stat(s.c.State)
	j, h, err := journal.Open(journal.Config{Path: s.c.State, Lock: lock, Keep: keep, CompactFrom: compactFrom,
		Forget: func(string) bool { return true }}, s.base)
	if err != nil {
		return fmt.Errorf("%s: %w", s.c.State, err)
	}
	s.state = &state{journal: j}
	if h.Gone != "" && !errors.Is(missing, os.ErrNotExist) { // without a file there was no process
		s.c.Log.Warn("the state file is not readable: nothing goes until what was granted counts no more", "why", h.Gone)
		return nil
	}
	zero, all := s.group.Time(0), &known{past: map[string][]limit.Past{}}
	for i := range h.Sends {
		sent := &h.Sends[i]
		at := s.base.Add(time.Duration(sent.Counts - s.base.UnixNano()))
		if sent.Result == limit.Unknown { // its holder may live, and send until its SendBy
			at = at.Add(s.c.SendWithin + max(s.c.Late-journal.Late, 0))
		}
		went := s.base.Add(time.Duration(sent.Sent - s.base.UnixNano()))
		all.past[sent.Key] = append(all.past[sent.Key], limit.Past{At: mono.Of(zero, at), Cost: sent.Cost,
			Result: sent.Result, Sent: mono.Of(zero, went)})
	}
	for _, past := range all.past {
		slices.SortStableFunc(past, func(a, b limit.Past) int { return cmp.Compare(a.At, b.At) })
	}
	if h.Last > 0 {
		all.since = s.base.Add(-keep)
	}
	s.known = all
	return nil
}

// replay makes a new limiter count what was granted of its limit. zero is the zero of its instants.
func (k *known) replay(name string, l limit.Limiter, zero time.Time) {
	if k == nil {
		return
	}
	since := mono.Min
	if !k.since.IsZero() {
		since = mono.Of(zero, k.since)
	}
	limit.SetEpoch(l, zero)
	limit.Replay(l, mono.Of(zero, time.Now()), since, k.past[name])
}

// record writes permits that are about to be granted. After an error they are in no file, and must not
// be granted.
func (s *Server) record(l *namedLimit, all []paceline.Permit, cost limit.Cost) (grants []grant, err error) {
	first := int64(0)
	if s.state != nil {
		if first, err = s.state.journal.SendAlike(journal.Send{Key: l.Name, Cost: cost}, len(all), time.Now()); err != nil {
			if !s.state.failed.Swap(true) {
				s.c.Log.Error("the state file cannot be written: nothing is granted", "err", err)
			}
			first = 0
		}
	}
	grants = make([]grant, len(all))
	for i, p := range all {
		grants[i] = grant{permit: p, limit: l}
		if first > 0 {
			grants[i].entry = first + int64(i)
		}
	}
	return grants, err
}

// settle records how permits ended that ended alike.
func (s *state) settle(all []grant, o *limit.Outcome) {
	if s == nil {
		return
	}
	ended := make([]journal.Answered, 0, len(all))
	answer := journal.AnswerOf(o)
	for _, g := range all {
		if g.entry != 0 {
			ended = append(ended, journal.Answered{Send: g.entry, Answer: answer})
		}
	}
	_ = s.journal.Answers(ended) // without it the permits count longer
}

func (s *state) close() error {
	if s == nil {
		return nil
	}
	return s.journal.Close()
}
