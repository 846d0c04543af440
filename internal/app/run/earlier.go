package run

import (
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/limit"
)

// noStart says that nothing is sent, since a file cannot be written or read, or is the wrong one.
// It is an ErrOutput and an ErrUnsent.
type noStart struct{ err error }

func (e noStart) Error() string   { return fmt.Sprintf("%v; %v", e.err, ErrUnsent) }
func (e noStart) Unwrap() []error { return []error{ErrOutput, e.err, ErrUnsent} }

// Peek reads which requests ended in earlier runs, without changing anything. It is for a Plan
// before Open.
func (r *Run) Peek() error {
	err := r.store.Peek(func(e format.Entry) {
		r.note(e)
		r.planning.learn(e)
	})
	if err != nil {
		return noStart{err}
	}
	return nil
}

// open opens the files and reads the output of earlier runs.
func (r *Run) open() (err error) {
	s := r.store
	if err := s.Open(r.note, r.Say); err != nil {
		return err
	}
	s.History = &journal.History{}
	if !s.Out.Regular() {
		return nil
	}
	for _, l := range r.c.Limits {
		r.keep = max(r.keep, l.Remembers())
	}
	if r.c.Auto != nil {
		r.keep = max(r.keep, time.Minute)
	}
	r.keep += r.keep/1000 + journal.Late + time.Second
	s.Lost.Tails(s.Out, s.Dead)
	s.Journal, s.History, err = journal.Open(journal.Config{
		Path: output.JournalOf(r.c.Out), Keep: r.keep, Timeout: r.c.Timeout, SyncSends: r.c.SyncAlways,
		TrustClock: r.c.TrustClock, Clock: r.c.clock, Full: r.full(),
		Forget: func(id string) bool {
			s.Lost.Knows(id)
			return r.tally.HasResult(id)
		},
		Before: func() error { return errors.Join(s.Out.Sync(1), s.Dead.Sync(1)) },
	}, r.epoch)
	if err == nil {
		s.Book = journal.NewFindings(s.Journal, s.History, r.epoch, r.course.fail)
		s.Lost.Look(s.History)
	}
	if err == nil && s.History.Gone != "" && s.History.Last > 0 {
		r.Say("%s %s, though there are results: every window is taken to be full%s, and what was sent unanswered is sent "+
			"again unnamed",
			s.Journal.Path(), s.History.Gone, map[bool]string{true: " when they were written"}[r.c.TrustClock])
	}
	return err
}

// full returns the most that may have been sent, if only the results exist. Without results that is
// nothing, and otherwise all that the limits allow. It counts as sent just now. If the clock is
// trusted, it counts as sent when the results were written.
func (r *Run) full() []journal.Sent {
	last := r.store.LastWrite()
	if last.IsZero() {
		return nil
	}
	if last = last.Add(r.c.Timeout); !r.c.TrustClock || last.After(r.epoch) {
		last = r.epoch
	}
	s := journal.Sent{Counts: last.Add(journal.Late).UnixNano(), Result: limit.Unknown}
	for _, l := range r.c.Limits {
		s.Cost[l.Unit] = max(s.Cost[l.Unit], l.Most())
	}
	var all []journal.Sent
	for _, k := range r.c.Keys {
		s.Key = k.Name
		all = append(all, s)
	}
	return all
}

// note takes in a result of an earlier run.
func (r *Run) note(e format.Entry) {
	if r.polls != nil {
		r.polls.note(e)
		return
	}
	if r.c.Next != nil {
		r.chains.note(e)
	}
	r.tally.Note(e)
}

// tellLost reports that the journal has lost its end.
func (r *Run) tellLost() {
	if !r.store.Lost.Found {
		return
	}
	what := "are named possible_repeat"
	if r.c.HoldUnanswered {
		what = "become dead letters (--unanswered hold)"
	}
	r.Say("%s has lost its end, as after a power cut, and does not know all that was sent: up to %d requests behind "+
		"those that it knows %s", r.store.Journal.Path(), output.MostLost, what)
}
