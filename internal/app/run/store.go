package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/learned"
	"github.com/paceline-go/paceline/internal/app/run/dead"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/limit"
)

// results is a file of results or dead letters, or a stream of them.
type results struct {
	*durable.File
	form   form
	before int64     // bytes that earlier runs wrote
	tail   tail      // the end of what they wrote
	isNew  bool      // those bytes are only the first line, which names the form of the file
	at     time.Time // time of the last of those bytes
}

// store is the output of a run: results, dead letters, and the journal of sends.
type store struct {
	out, dead *results         // may be the same
	journal   *journal.Journal // nil if there is no file of results
	history   *journal.History
	book      *learned.Book     // findings about unknown limits; nil if there is no journal
	peeked    map[string]peeked // nil: Peek was not called
	kick      chan struct{}     // wakes the syncer
	view      *view             // nil: results are shown as they are
	spill     *os.File          // keeps the results for standard output until their turn
	files     *bodies           // nil: bodies are in the results
	lost      lostEnd
}

// peeked is a file of results that has been read: its state at that time, and the end of its last
// complete line.
type peeked struct {
	info os.FileInfo
	size int64
	tail tail
}

// is reports whether a file is unchanged since Peek read it.
func (p peeked) is(info os.FileInfo) bool {
	return p.info != nil && os.SameFile(info, p.info) && info.Size() == p.info.Size() &&
		info.ModTime().Equal(p.info.ModTime())
}

// form is how a file of results is read.
type form struct {
	format.Results
	dead bool // it has the dead letters
}

// noStart says that nothing is sent, since a file cannot be written or read, or is the wrong one.
// It is an ErrOutput and an ErrUnsent.
type noStart struct{ err error }

func (e noStart) Error() string   { return fmt.Sprintf("%v; %v", e.err, ErrUnsent) }
func (e noStart) Unwrap() []error { return []error{ErrOutput, e.err, ErrUnsent} }

// Peek reads which requests ended in earlier runs, without changing anything. It is for a Plan
// before Open.
func (r *Run) Peek() error {
	r.store.peeked = map[string]peeked{}
	for i, path := range []string{r.c.Out, r.c.Dead} {
		if path == "-" || i == 1 && r.c.Dead == r.c.Out {
			continue
		}
		info, err := os.Stat(path)
		if absent(err) {
			// An error now is better than one after a million lines.
			if err := folderFor(path); err != nil {
				return noStart{err}
			}
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			continue // Open will refuse it
		}
		if err == nil {
			err = r.peek(path, info, form{r.c.results, i == 1})
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
	end, tail, err := form.scan(in, path, func(e format.Entry, end int64) {
		r.note(e, end)
		r.planning.learn(e)
	})
	r.store.peeked[path] = peeked{info, end, tail}
	return err
}

// note marks a request that ended in an earlier run.
func (r *Run) note(e format.Entry, _ int64) {
	if e.File != "" && !r.store.files.has(e) {
		return
	}
	if r.c.Next != nil {
		r.chains.note(e)
	}
	d := format.HashOf(e.ID)
	is := r.tally.ledger[d]
	if e.State != "dead" || !is.has(inOut) { // a done request is not dead
		is = is.of(bitsOf(e.Digest))
	}
	switch e.State {
	case "dead":
		is = is.dead(dead.Named(e.Class, e.Status))
	case "expired":
		is |= inExpired
	default:
		is |= inOut
	}
	r.tally.ledger[d] = is
}

// where returns the last line in the files of earlier runs about an id. It does so only for the
// first few ids, since each search reads whole files. A user who changed a column has changed every
// request.
func (r *Run) where(id string) string {
	found := "in the results"
	if r.searches.Add(1) > maxListed {
		return found
	}
	for i, path := range []string{r.c.Dead, r.c.Out} {
		f, err := os.Open(path)
		if path == "-" || err != nil {
			continue
		}
		form := form{r.c.results, i == 0}
		_, _ = durable.Lines(f, path, func(line []byte, end durable.End) error {
			if e, ok := form.Entry(line, form.dead); ok && e.ID == id {
				found = fmt.Sprintf("on line %d of %s", end.Lines, path)
			}
			return nil
		})
		f.Close()
	}
	return found
}

// NoFile returns the kind of thing at path if it is no file. It is empty for a file, or if nothing
// is there.
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

// NoFolder returns the kind of thing at path if it is no folder. It is empty for a folder, or if
// nothing is there.
func NoFolder(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil || info.IsDir():
		return ""
	case info.Mode().IsRegular():
		return "a file"
	}
	return NoFile(path)
}

// IsNowhere reports whether path discards everything that is written to it.
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
	form := form{r.c.results, dead}
	if path == "-" {
		if r.c.Ordered && r.c.view == "-" && !dead {
			var err error
			r.store.spill, err = newSpill()
			return &results{File: durable.Stream("standard output", r.store.spill)}, err
		}
		return &results{File: durable.Stream("standard output", sanitize.JSONTo(r.c.Stdout))}, nil
	}
	if IsNowhere(path) {
		return &results{File: durable.Stream(path, io.Discard)}, nil
	}
	if what := NoFile(path); what != "" {
		return nil, fmt.Errorf("%s is %s, expected a file", path, what)
	}
	return openResults(path, form, r.store.peeked[path], r.note)
}

// openResults opens a file of results, or creates it, and locks it. It calls each for every line,
// with the end of that line. It cuts off an incomplete last line, which a crash left.
//
// A file that is unchanged since Peek read it is not read again.
func openResults(path string, form form, was peeked, each func(e format.Entry, end int64)) (*results, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	size, tail := was.size, was.tail
	if err == nil && !was.is(info) {
		size, tail, err = form.scan(f.Reader(), path, each)
	}
	if err == nil {
		err = f.SetSize(size)
	}
	if err != nil {
		f.Discard()
		return nil, err
	}
	return &results{File: f, form: form, before: size, tail: tail, at: info.ModTime()}, nil
}

// scan reads lines of results and returns the end of the last complete one, and what shows how they
// ended. It refuses a line that
// is no result, so that no other file is changed. Only the text after the last line break may be
// any remainder of a torn write.
func (f form) scan(in io.Reader, name string, each func(e format.Entry, end int64)) (size int64, at tail, err error) {
	foreign := func(n int) error {
		return fmt.Errorf("%s:%d: not a result of paceline: is this the right file?", name, n)
	}
	end, err := durable.Lines(in, name, func(line []byte, end durable.End) error {
		e, ok := f.Entry(line, f.dead)
		if !ok {
			return foreign(end.Lines)
		}
		if e.ID != "" { // the line without an id names the form of the file
			at.last = append(at.last[:0], line...)
			each(e, end.Size)
		}
		return nil
	})
	if err == nil && !torn(end.Rest, f.Start()) {
		err = foreign(end.Lines + 1)
	}
	at.half = end.Rest
	return end.Size, at, err
}

// torn reports whether the end of a file may be the beginning of a result, or the remainder that a
// file system leaves of one.
func torn(b []byte, start string) bool {
	b = bytes.TrimRight(b, "\x00")
	return bytes.HasPrefix(b, []byte(start)) || strings.HasPrefix(start, string(b))
}

// open opens the files and reads the output of earlier runs.
func (r *Run) open() (err error) {
	s := &r.store
	if err := r.openFolders(); err != nil {
		return err
	}
	if text := r.c.shared(); text != "" {
		r.tell("%s", text)
	}
	if s.out, err = r.openOutput(r.c.Out, false); err != nil {
		return err
	}
	s.dead = s.out
	if r.c.Dead != r.c.Out {
		if s.dead, err = r.openOutput(r.c.Dead, true); err != nil {
			return err
		}
	}
	if s.files != nil {
		if err := s.files.clean(s.syncOut); err != nil {
			return err
		}
	}
	if err := r.openView(); err != nil {
		return err
	}
	s.history = &journal.History{}
	if !s.out.Regular() {
		return nil
	}
	for _, l := range r.c.Limits {
		r.keep = max(r.keep, l.Remembers())
	}
	if r.c.Auto != nil {
		r.keep = max(r.keep, time.Minute)
	}
	r.keep += r.keep/1000 + journal.Late + time.Second
	s.lost.tails(s.out, s.dead)
	s.journal, s.history, err = journal.Open(journal.Config{
		Path: journalOf(r.c.Out), Keep: r.keep, Timeout: r.c.Timeout, SyncSends: r.c.SyncAlways,
		TrustClock: r.c.TrustClock, Clock: r.c.clock, Full: r.full(),
		Forget: func(id string) bool {
			s.lost.knows(id)
			return r.tally.ledger.has(format.HashOf(id), inOut|inExpired|inDead)
		},
		Before: func() error { return errors.Join(s.out.Sync(1), s.dead.Sync(1)) },
	}, r.epoch)
	if err == nil {
		s.book = learned.NewBook(s.journal, s.history, r.epoch, r.fail)
		s.lost.look(s.history)
	}
	if err == nil && s.history.Gone != "" && s.history.Last > 0 {
		r.tell("%s %s, though there are results: every window is taken to be full%s, and what was sent unanswered is sent "+
			"again unnamed",
			s.journal.Path(), s.history.Gone, map[bool]string{true: " when they were written"}[r.c.TrustClock])
	}
	return err
}

// openFolders makes the missing folders.
func (r *Run) openFolders() error {
	for _, path := range []string{r.c.Out, r.c.Dead, r.c.Summary, r.c.Report} {
		if path == "-" || path == "" {
			continue
		}
		made, err := makeFolder(path)
		if err != nil {
			return err
		}
		if made {
			r.tell("the folder %s was not there, and is made", filepath.Dir(path))
		}
	}
	if r.store.files == nil {
		return nil
	}
	return r.store.files.open()
}

// full returns the most that may have been sent, if only the results exist. Without results that is
// nothing, and otherwise all that the limits allow. It counts as sent just now. If the clock is
// trusted, it counts as sent when the results were written.
func (r *Run) full() []journal.Sent {
	var last time.Time
	for _, f := range []*results{r.store.out, r.store.dead} {
		if f.before > 0 && !f.isNew && f.at.After(last) {
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
		s.Cost[l.Unit] = max(s.Cost[l.Unit], l.Most())
	}
	var all []journal.Sent
	for _, k := range r.c.Keys {
		s.Key = k.Name
		all = append(all, s)
	}
	return all
}

// Lines are synced when there are this many, or this long after the first. Then there is a pause,
// since a disk that syncs all the time delays the writers.
const (
	syncLines = 64
	syncEvery = 100 * time.Millisecond
	syncRest  = 20 * time.Millisecond
)

func (s *store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// syncer syncs the files, many lines at a time, until done. It calls failed with errors.
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
		if atLeast == syncLines {
			select {
			case <-time.After(syncRest):
			case <-done:
			}
		}
	}
}

func (s *store) syncOut() error { return s.out.Sync(1) }

// sync syncs the results before the journal. If a power cut leaves an answer in the journal but not
// its result, the request is in doubt. Of several errors it returns the first: a full disk or a
// lost folder fails for all files.
func (s *store) sync(atLeast int) error {
	var err error
	if s.files != nil {
		err = s.files.sync(atLeast, s.syncOut)
	}
	err = cmp.Or(err, s.out.Sync(atLeast), s.dead.Sync(atLeast))
	if s.view != nil {
		err = cmp.Or(err, s.view.catchUp(), s.view.to.Sync(atLeast))
	}
	if s.journal != nil {
		err = cmp.Or(err, s.journal.Sync(atLeast))
	}
	return err
}

// readBack marks the requests that are in the files now.
func (s *store) readBack(t *tally) error {
	var err error
	for i, f := range []*results{s.out, s.dead} {
		if !f.Regular() || i == 1 && f == s.out {
			continue
		}
		_, _, rerr := f.form.scan(f.Reader(), f.Name(), func(e format.Entry, end int64) {
			d := format.HashOf(e.ID)
			switch {
			case e.File != "" && !s.files.isNamed(e.File):
			case end <= f.before && e.State != "done" && t.again(t.ledger[d]): // sent again: a later line counts
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

// undo closes the files of a run that does not start, and removes its new ones, which have only
// headings.
func (s *store) undo() {
	_ = s.close()
	for _, f := range []*results{s.out, s.dead} {
		if f != nil {
			f.Undo()
		}
	}
	if s.view != nil {
		s.view.to.Undo()
	}
}

func (s *store) close() error {
	var err error
	if s.journal != nil {
		if s.book != nil {
			s.book.Flush()
		}
		err = s.journal.Close()
	}
	if s.out != nil {
		err = errors.Join(err, s.out.Close())
	}
	if s.dead != nil && s.dead != s.out {
		err = errors.Join(err, s.dead.Close())
	}
	if s.files != nil {
		s.files.close()
	}
	if s.view != nil {
		err = errors.Join(err, s.view.close())
	}
	return err
}
