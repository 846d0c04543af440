package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/durable"
	"github.com/paceline-go/paceline/internal/journal"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
)

// results is a file of results or dead letters, or a stream of them.
type results struct {
	*durable.File
	form   form
	before int64     // bytes that the runs before wrote
	at     time.Time // when the last of them was written
}

// store is what a run leaves behind: results, dead letters, and the journal of what was sent.
type store struct {
	out, dead *results         // may be the same
	journal   *journal.Journal // nil without a file of results
	history   *journal.History
	peeked    map[string]peeked // nil: Peek was not called
	kick      chan struct{}     // wakes the syncer
}

// peeked is a file of results that has been read: what it was before, and where its last complete line ends.
type peeked struct {
	info os.FileInfo
	size int64
}

// is says that a file is as it was when it was peeked at.
func (p peeked) is(info os.FileInfo) bool {
	return p.info != nil && os.SameFile(info, p.info) && info.Size() == p.info.Size() && info.ModTime().Equal(p.info.ModTime())
}

// form is how a file of results is read.
type form struct {
	Format
	dead bool // it has the dead letters
}

// noStart is why nothing is sent: a file cannot be written or read, or is the wrong one. It is an ErrOutput and an ErrUnsent.
type noStart struct{ err error }

func (e noStart) Error() string   { return fmt.Sprintf("%v; %v", e.err, ErrUnsent) }
func (e noStart) Unwrap() []error { return []error{ErrOutput, e.err, ErrUnsent} }

// Peek reads which requests have ended in a run before, without changing anything: for a Plan before Open.
func (r *Run) Peek() error {
	r.store.peeked = map[string]peeked{}
	for i, path := range []string{r.c.Out, r.c.Dead} {
		if path == "-" || i == 1 && r.c.Dead == r.c.Out {
			continue
		}
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			// Better now than after a million lines.
			if _, err := os.Stat(filepath.Dir(path)); err != nil {
				return noStart{fmt.Errorf("%s: %w", path, err)}
			}
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			continue // Open refuses it
		}
		if err == nil {
			err = r.peek(path, info, form{r.c.Format, i == 1})
		}
		if err != nil {
			return noStart{err}
		}
	}
	return nil
}

func (r *Run) peek(path string, info os.FileInfo, form form) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	end, err := form.scan(in, path, func(e entry, end int64) {
		r.note(e, end)
		r.planning.learn(e)
	})
	r.store.peeked[path] = peeked{info, end}
	return err
}

// note marks what ended in a run before.
func (r *Run) note(e entry, _ int64) {
	d := digestOf(e.ID)
	is := r.tally.ledger[d]
	if e.State != "dead" || !is.has(inOut) { // done beats dead
		is = is.of(e.Digest.bits())
	}
	switch e.State {
	case "dead":
		is = is.dead(classNamed(e.Class, e.Status))
	case "expired":
		is |= inExpired
	default:
		is |= inOut
	}
	r.tally.ledger[d] = is
}

// where is the last line about an id in the files of the runs before.
func (r *Run) where(id string) string {
	found := "in the results"
	for i, path := range []string{r.c.Dead, r.c.Out} {
		f, err := os.Open(path)
		if path == "-" || err != nil {
			continue
		}
		form := form{r.c.Format, i == 0}
		_, _ = durable.Lines(f, path, func(line []byte, end durable.End) error {
			if e, ok := form.entry(line, form.dead); ok && e.ID == id {
				found = fmt.Sprintf("on line %d of %s", end.Lines, path)
			}
			return nil
		})
		f.Close()
	}
	return found
}

// NoFile is what is there that is no file; empty: a file, or nothing yet.
func NoFile(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return ""
	case mode.IsDir():
		return "a folder"
	case mode&os.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&os.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// IsNowhere says that what is written there is thrown away.
func IsNowhere(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}

// openOutput opens results or dead letters.
func (r *Run) openOutput(path string, dead bool) (*results, error) {
	form := form{r.c.Format, dead}
	if path == "-" {
		return &results{File: durable.Stream("standard output", shown.JSONTo(r.c.Stdout))}, nil
	}
	if IsNowhere(path) {
		return &results{File: durable.Stream(path, io.Discard)}, nil
	}
	if what := NoFile(path); what != "" {
		return nil, fmt.Errorf("%s is %s, expected a file", path, what)
	}
	return openResults(path, form, r.store.peeked[path], r.note)
}

// openResults opens, creates and locks a file of results, calls each for every line of it with where it ends, and cuts off a last line that
// a crash left without its end.
//
// What is as it was when it was peeked at is not read again.
func openResults(path string, form form, was peeked, each func(e entry, end int64)) (*results, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	size := was.size
	if err == nil && !was.is(info) {
		size, err = form.scan(f.Reader(), path, each)
	}
	if err == nil {
		err = f.SetSize(size)
	}
	if err != nil {
		f.Discard()
		return nil, err
	}
	return &results{f, form, size, info.ModTime()}, nil
}

// scan reads lines of results and returns where the last complete one ends. What is not a result is refused, lest a file of
// somebody else's be appended to, or cut; only what follows the last line break may be anything that a torn write can leave.
func (f form) scan(in io.Reader, name string, each func(e entry, end int64)) (size int64, err error) {
	foreign := func(n int) error {
		return fmt.Errorf("%s:%d: not a result of paceline: is this the right file?", name, n)
	}
	end, err := durable.Lines(in, name, func(line []byte, end durable.End) error {
		e, ok := f.entry(line, f.dead)
		if !ok {
			return foreign(end.Lines)
		}
		each(e, end.Size)
		return nil
	})
	if err == nil && !torn(end.Rest, f.start()) {
		err = foreign(end.Lines + 1)
	}
	return end.Size, err
}

// torn says whether the end of a file may be the beginning of a result, or what a file system leaves of one.
func torn(b []byte, start string) bool {
	b = bytes.TrimRight(b, "\x00")
	return bytes.HasPrefix(b, []byte(start)) || strings.HasPrefix(start, string(b))
}

// open opens the files and reads what the runs before left in them.
func (r *Run) open() (err error) {
	s := &r.store
	if s.out, err = r.openOutput(r.c.Out, false); err != nil {
		return err
	}
	s.dead = s.out
	if r.c.Dead != r.c.Out {
		if s.dead, err = r.openOutput(r.c.Dead, true); err != nil {
			return err
		}
	}
	s.history = &journal.History{}
	if !s.out.Regular() {
		return nil
	}
	for _, l := range r.c.Limits {
		r.keep = max(r.keep, l.remembers())
	}
	r.keep += r.keep/1000 + journal.Late + time.Second
	s.journal, s.history, err = journal.Open(journal.Config{
		Path: journalOf(r.c.Out), Keep: r.keep, Timeout: r.c.Timeout, SyncSends: r.c.SyncAlways,
		TrustClock: r.c.TrustClock, Clock: r.c.clock, Full: r.full(),
		Forget: func(id string) bool { return r.tally.ledger.has(digestOf(id), inOut|inExpired|inDead) },
		Before: func() error { return errors.Join(s.out.Sync(1), s.dead.Sync(1)) },
	}, r.epoch)
	if err == nil && s.history.Gone != "" && s.history.Last > 0 {
		r.tell("%s %s, though there are results: every window is taken to be full%s, and what was sent unanswered is sent again unnamed",
			s.journal.Path(), s.history.Gone, map[bool]string{true: " when they were written"}[r.c.TrustClock])
	}
	return err
}

// full is what may have been sent as far as the results tell: nothing if there are none, else all that the limits allow,
// and just now, unless the clock is trusted with when they were written.
func (r *Run) full() []journal.Sent {
	var last time.Time
	for _, f := range []*results{r.store.out, r.store.dead} {
		if f.before > 0 && f.at.After(last) {
			last = f.at
		}
	}
	if last.IsZero() {
		return nil
	}
	if last = last.Add(r.c.Timeout); !r.c.TrustClock || last.After(r.epoch) {
		last = r.epoch
	}
	s := journal.Sent{Counts: last.Add(journal.Late).UnixNano(), Result: limit.Unknown}
	for _, l := range r.c.Limits {
		s.Cost[l.Unit] = max(s.Cost[l.Unit], l.most())
	}
	var all []journal.Sent
	for _, k := range r.c.Keys {
		s.Key = k.Name
		all = append(all, s)
	}
	return all
}

// Lines are synced when there are this many, or this long after the first.
const (
	syncLines = 64
	syncEvery = 100 * time.Millisecond
)

func (s *store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// syncer makes durable in groups until done, and tells of what fails.
func (s *store) syncer(done chan struct{}, failed func(error)) {
	t := time.NewTicker(syncEvery)
	defer t.Stop()
	for last := false; !last; {
		atLeast := 1
		select {
		case <-t.C:
		case <-s.kick:
			atLeast = syncLines
		case <-done:
			last = true
		}
		if err := s.sync(atLeast); err != nil {
			failed(err)
		}
	}
}

// sync has the results first. Where a power cut leaves an answer in the journal but not its result, the request is in doubt.
func (s *store) sync(atLeast int) error {
	err := errors.Join(s.out.Sync(atLeast), s.dead.Sync(atLeast))
	if s.journal != nil {
		err = errors.Join(err, s.journal.Sync(atLeast))
	}
	return err
}

// readBack marks what is in the files now.
func (s *store) readBack(t *tally) error {
	var err error
	for i, f := range []*results{s.out, s.dead} {
		if !f.Regular() || i == 1 && f == s.out {
			continue
		}
		_, rerr := f.form.scan(f.Reader(), f.Name(), func(e entry, end int64) {
			d := digestOf(e.ID)
			switch {
			case end <= f.before && e.State != "done" && t.again(t.ledger[d]): // what counts is what came of that
			case e.State == "dead":
				t.ledger.mark(d, backDead)
			default:
				t.ledger.mark(d, backOut)
			}
		})
		err = errors.Join(err, rerr)
	}
	return err
}

func (s *store) close() error {
	var err error
	if s.journal != nil {
		err = s.journal.Close()
	}
	if s.out != nil {
		err = errors.Join(err, s.out.Close())
	}
	if s.dead != nil && s.dead != s.out {
		err = errors.Join(err, s.dead.Close())
	}
	return err
}
