package output

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/text"
)

// Results is a file of results or dead letters, or a stream of them.
type Results struct {
	*durable.File
	form   form
	before int64     // bytes that earlier runs wrote
	tail   tail      // the end of what they wrote
	isNew  bool      // those bytes are only the first line, which names the form of the file
	at     time.Time // time of the last of those bytes
}

// Began reports whether earlier runs wrote results to it.
func (r *Results) Began() bool { return r.before > 0 && !r.isNew }

// Store is the output of a run: results, dead letters, and the journal of sends.
type Store struct {
	c         Config
	Out, Dead *Results         // may be the same
	Journal   *journal.Journal // nil if there is no file of results
	History   *journal.History
	Book      *journal.Findings // findings about unknown limits; nil if there is no journal
	peeked    map[string]peeked // nil: Peek was not called
	kick      chan struct{}     // wakes the syncer
	view      *view             // nil: results are shown as they are
	table     *sqliteTable      // nil: they are in no table of SQLite
	parquet   *parquetTable     // nil: no file of Parquet is made of them
	spill     *os.File          // keeps the results for standard output until their turn
	Files     *Bodies           // nil: bodies are in the results
	Lost      lostEnd
	searches  atomic.Int64 // searches in the files of earlier runs, for the number of a line
}

// New returns a store whose files are not open yet.
func New(c Config) *Store {
	s := &Store{c: c, kick: make(chan struct{}, 1)}
	if c.OutDir != "" {
		s.Files = &Bodies{dir: c.OutDir, most: c.MaxFile}
	}
	return s
}

// Line writes a result as results, or dead letters, are written.
func (s *Store) Line(b []byte, r *format.Result, dead bool) []byte { return s.c.form(dead).Line(b, r) }

// HasErrors reports whether the dead letters are in the format of a batch, which has a place for lines that are
// no requests.
func (s *Store) HasErrors() bool {
	_, is := s.c.form(true).Results.(*format.LLM)
	return is
}

// IsPeeked reports whether peek has read the files.
func (s *Store) IsPeeked() bool { return s.peeked != nil }

// each calls note for an entry, unless its body is not there any more.
func (s *Store) each(note func(format.Entry)) func(format.Entry, int64) {
	return func(e format.Entry, _ int64) {
		if e.File == "" || s.Files.has(e) {
			note(e)
		}
	}
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

// Peek reads which requests ended in earlier runs, without changing anything.
func (s *Store) Peek(note func(format.Entry)) error {
	s.peeked = map[string]peeked{}
	for i, path := range []string{s.c.Out, s.c.Dead} {
		if path == "-" || i == 1 && s.c.Dead == s.c.Out {
			continue
		}
		info, err := os.Stat(path)
		if absent(err) {
			// An error now is better than one after a million lines.
			if err := folderFor(path); err != nil {
				return err
			}
			continue
		}
		if err == nil && !info.Mode().IsRegular() {
			continue // Open will refuse it
		}
		if err == nil {
			err = s.peekFile(path, info, s.c.form(i == 1), note)
		}
		if err != nil {
			return err
		}
	}
	if f, is := s.c.results.(rows); is {
		return s.sameRows(f, s.peeked[s.c.Out].size)
	}
	return nil
}

func (s *Store) peekFile(path string, info os.FileInfo, form form, note func(format.Entry)) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	end, tail, err := form.scan(in, path, s.each(note))
	s.peeked[path] = peeked{info, end, tail}
	return err
}

// mostSearches bounds the searches of where.
const mostSearches = 10

// Where returns the last line in the files of earlier runs about an id. It does so only for the
// first few ids, since each search reads whole files. A user who changed a column has changed every
// request.
func (s *Store) Where(id string) string {
	found := "in the results"
	if s.searches.Add(1) > mostSearches {
		return found
	}
	for i, path := range []string{s.c.Dead, s.c.Out} {
		f, err := os.Open(path)
		if path == "-" || err != nil {
			continue
		}
		form := s.c.form(i == 0)
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
func (s *Store) openOutput(path string, dead bool, note func(format.Entry)) (*Results, error) {
	form := s.c.form(dead)
	if path == "-" {
		if s.c.Ordered && s.c.view == "-" && !dead {
			var err error
			s.spill, err = newSpill()
			return &Results{File: durable.Stream("standard output", s.spill)}, err
		}
		return &Results{File: durable.Stream("standard output", text.SanitizeJSONTo(s.c.Stdout))}, nil
	}
	if IsNowhere(path) {
		return &Results{File: durable.Stream(path, io.Discard)}, nil
	}
	if what := NoFile(path); what != "" {
		return nil, fmt.Errorf("%s is %s, expected a file", path, what)
	}
	return openResults(path, form, s.peeked[path], s.each(note))
}

// openResults opens a file of results, or creates it, and locks it. It calls each for every line,
// with the end of that line. It cuts off an incomplete last line, which a crash left.
//
// A file that is unchanged since Peek read it is not read again.
func openResults(path string, form form, was peeked, each func(e format.Entry, end int64)) (*Results, error) {
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
	return &Results{File: f, form: form, before: size, tail: tail, at: info.ModTime()}, nil
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

// Open opens the files, and passes what is in them to note. tell gets notices for the user.
func (s *Store) Open(note func(format.Entry), tell func(string, ...any)) (err error) {
	if err := s.openFolders(tell); err != nil {
		return err
	}
	if text := s.c.shared(); text != "" {
		tell("%s", text)
	}
	if s.Out, err = s.openOutput(s.c.Out, false, note); err != nil {
		return err
	}
	s.Dead = s.Out
	if s.c.Dead != s.c.Out {
		if s.Dead, err = s.openOutput(s.c.Dead, true, note); err != nil {
			return err
		}
	}
	if s.Files != nil {
		if err := s.Files.clean(s.syncOut); err != nil {
			return err
		}
	}
	return s.openView()
}

// openFolders makes the missing folders.
func (s *Store) openFolders(tell func(string, ...any)) error {
	for _, path := range []string{s.c.Out, s.c.Dead, s.c.Summary, s.c.Report} {
		if path == "-" || path == "" {
			continue
		}
		made, err := makeFolder(path)
		if err != nil {
			return err
		}
		if made {
			tell("the folder %s was not there, and is made", filepath.Dir(path))
		}
	}
	if s.Files == nil {
		return nil
	}
	return s.Files.open()
}

// LastWrite returns when earlier runs last wrote a result; zero: they did not.
func (s *Store) LastWrite() (last time.Time) {
	for _, f := range []*Results{s.Out, s.Dead} {
		if f.Began() && f.at.After(last) {
			last = f.at
		}
	}
	return last
}

// Lines are synced when there are this many, or this long after the first. Then there is a pause,
// since a disk that syncs all the time delays the writers.
const (
	syncLines = 64
	syncEvery = 100 * time.Millisecond
	syncRest  = 20 * time.Millisecond
)

func (s *Store) Wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// Syncer syncs the files, many lines at a time, until done. It calls failed with errors.
func (s *Store) Syncer(done chan struct{}, failed func(error)) {
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

func (s *Store) syncOut() error { return s.Out.Sync(1) }

// SyncAll syncs whatever was written, and shows it.
func (s *Store) SyncAll() error { return s.sync(1) }

// sync syncs the results before the journal. If a power cut leaves an answer in the journal but not
// its result, the request is in doubt. Of several errors it returns the first: a full disk or a
// lost folder fails for all files.
func (s *Store) sync(atLeast int) error {
	var err error
	if s.Files != nil {
		err = s.Files.sync(atLeast, s.syncOut)
	}
	err = cmp.Or(err, s.Out.Sync(atLeast), s.Dead.Sync(atLeast))
	if s.view != nil {
		err = cmp.Or(err, s.view.catchUp(), s.view.to.Sync(atLeast))
	}
	if s.table != nil {
		err = cmp.Or(err, s.table.catchUp())
	}
	if s.Journal != nil {
		err = cmp.Or(err, s.Journal.Sync(atLeast))
	}
	return err
}

// ReadBack passes the requests that are in the files now to mark. again says whether one that an earlier run
// wrote was sent again: then only a later line counts.
func (s *Store) ReadBack(again func(format.Hash) bool, mark func(format.Hash)) error {
	var err error
	for i, f := range []*Results{s.Out, s.Dead} {
		if !f.Regular() || i == 1 && f == s.Out {
			continue
		}
		_, _, rerr := f.form.scan(f.Reader(), f.Name(), func(e format.Entry, end int64) {
			h := format.HashOf(e.ID)
			if (e.File == "" || s.Files.isNamed(e.File)) && (end > f.before || !again(h)) {
				mark(h)
			}
		})
		err = errors.Join(err, rerr)
	}
	return err
}

// Undo closes the files of a run that does not start, and removes its new ones, which have only
// headings.
func (s *Store) Undo() {
	s.parquet = nil
	_ = s.Close()
	for _, f := range []*Results{s.Out, s.Dead} {
		if f != nil {
			f.Undo()
		}
	}
	if s.view != nil {
		s.view.to.Undo()
	}
	if s.table != nil {
		s.table.undo()
	}
}

func (s *Store) Close() error {
	var err error
	if s.Journal != nil {
		if s.Book != nil {
			s.Book.Flush()
		}
		err = s.Journal.Close()
	}
	if s.table != nil {
		err = errors.Join(err, s.table.close())
	}
	if s.parquet != nil {
		if serr := s.Out.Sync(1); serr != nil {
			err = errors.Join(err, serr)
		} else {
			err = errors.Join(err, s.parquet.close(s.Out.Durable()))
		}
	}
	if s.Out != nil {
		err = errors.Join(err, s.Out.Close())
	}
	if s.Dead != nil && s.Dead != s.Out {
		err = errors.Join(err, s.Dead.Close())
	}
	if s.Files != nil {
		s.Files.close()
	}
	if s.view != nil {
		err = errors.Join(err, s.view.close())
	}
	return err
}

// IsOrdered reports whether results are shown in the order of the input.
func (s *Store) IsOrdered() bool { return s.view != nil && s.view.order != nil }

// Read takes in the next request of the input, at its place there; anew: this run sends it. It waits while too
// many results wait for their turn.
func (s *Store) Read(h format.Hash, place int, anew bool) {
	if s.IsOrdered() {
		s.view.order.read(h, place, anew)
	}
}

// Await waits before a request at a place that Read has not reached, while too many results wait for their turn.
func (s *Store) Await(place int) {
	if s.IsOrdered() {
		s.view.order.await(place)
	}
}

// Passed notes that a request has no result in order: it is a dead letter, in a file of its own.
func (s *Store) Passed(h format.Hash) { s.view.order.ended(h, span{}) }

// Stop ends all waits in read.
func (s *Store) Stop() { s.view.stop() }

// EndView shows the results that are left at the end of the run. It returns how many cannot be shown yet.
func (s *Store) EndView() (waiting int, err error) {
	if s.view == nil {
		return 0, nil
	}
	return s.view.end()
}

// Named notes that the line of a body is written. If too many bodies wait for their names, it waits for the
// disk.
func (s *Store) Named(b SavedBody) error {
	if s.Files.add(b) < mostUnnamed {
		return nil
	}
	return s.sync(1)
}

// MostLines is how many bytes of lines are collected before a write. Meanwhile the bodies in them
// are in memory twice.
const MostLines = 256 << 10

// KeptLine is the longest line whose buffer is used again.
const KeptLine = 1 << 20

// ThroughView wraps the Handle of the view. Tests use it to inject faults.
func (s *Store) ThroughView(with func(durable.Handle) durable.Handle) { s.view.to.Through(with) }
