package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// State is the state of a batch, in OpenAI's words:
//
//	validating → in_progress → finalizing → completed
//	     |            |             ├────→ expired     its time was over
//	     |            └ cancelling ─┴────→ cancelled   on demand
//	     └→ failed    mistakes in the input
type State string

// States of a batch.
const (
	Validating State = "validating"
	Failed     State = "failed"
	InProgress State = "in_progress"
	Finalizing State = "finalizing"
	Completed  State = "completed"
	Expired    State = "expired"
	Cancelling State = "cancelling"
	Cancelled  State = "cancelled"
)

// Ended reports whether a batch in this state does not change any more.
func (s State) Ended() bool { return s == Failed || s == Completed || s == Expired || s == Cancelled }

// Counts are the requests of a batch: how many there are, and how each ended. Those that none of the
// others counts have not ended.
type Counts struct{ Total, Done, Failed, Cancelled, Expired int }

// Mistake is an error in the input of a batch. Line is 0 if it is the whole input's.
type Mistake struct {
	Code, Message string
	Line          int
}

// Batch describes a batch. Its record has all of it.
type Batch struct {
	ID, Owner string
	Form      format.Provider
	Endpoint  string // of each line; of OpenAI's form alone
	Input     string // id of the file
	Window    string // as the owner wrote it
	Metadata  json.RawMessage
	// Bare says that the API has no /v1 in front, and so has the server. Header has fields for each
	// request.
	Bare   bool
	Header http.Header

	State    State
	Counts   Counts // the last that are known
	Mistakes []Mistake
	// Output and Errors are ids of files that the batch makes. Made says which of them there are.
	Output, Errors         string
	OutputMade, ErrorsMade bool

	Created, Deadline time.Time
	// When the batch reached a state; zero: it has not.
	Began, Finalized, Finished, Asked time.Time

	// ETA is when the batch will have ended, as far as it is known. Why is a reason for which nothing
	// goes on. Records have neither.
	ETA time.Time `json:"-"`
	Why string    `json:"-"`
}

// maySend reports whether requests of the batch may be under way.
func (s State) maySend() bool { return s == InProgress || s == Finalizing }

// EndedAt is when the batch ended; zero: it has not.
func (b *Batch) EndedAt() time.Time { return b.Finished }

// Names of the files in the folder of a batch.
const (
	recordName  = "batch.json"
	inputName   = "input.jsonl"
	resultsName = "run.jsonl" // of the engine, whose other files have names that begin alike
)

// batch is a Batch with what goes on.
type batch struct {
	Batch   // under the Store's lock
	store   *Store
	owner   *owner
	dir     string
	counted atomic.Int64 // bytes of its folder that count as the owner's
	running atomic.Pointer[run.Run]

	saving sync.Mutex // around the record
	waits  context.Context
	stop   context.CancelFunc // of waits
}

// arm makes what a batch needs to go on.
func (b *batch) arm() {
	b.waits, b.stop = context.WithCancel(b.store.soft)
	b.counted.Store(sizeOf(b.dir))
}

// shown is a copy for readers. The lock is held.
func (b *batch) shownLocked() Batch {
	c := b.Batch
	c.Mistakes = slices.Clone(c.Mistakes)
	r := b.running.Load()
	if r == nil {
		return c
	}
	p := r.Progress()
	c.Counts.Done, c.Counts.Failed = p.Done+p.SkippedDone, p.Dead+p.Expired+p.SkippedDead+p.SkippedExpired
	if left := c.Counts.Total - c.Counts.Done - c.Counts.Failed; p.Rate > 0 {
		c.ETA = time.Now().Add(time.Duration(float64(left) / p.Rate * float64(time.Second)))
	}
	return c
}

// save writes the record as it is.
func (b *batch) save() error {
	b.saving.Lock()
	defer b.saving.Unlock()
	b.store.mu.Lock()
	record := b.Batch
	b.store.mu.Unlock()
	return write(filepath.Join(b.dir, recordName), record)
}

// set changes the record.
func (b *batch) set(change func(*Batch)) error {
	b.store.mu.Lock()
	change(&b.Batch)
	b.store.mu.Unlock()
	return b.save()
}

// Create makes a batch of a file. The caller sets Owner, Form, Endpoint, Input, Window, Metadata, Bare,
// Header and Deadline.
func (s *Store) Create(of Batch) (Batch, error) {
	s.mu.Lock()
	o, f, err := s.fileLocked(of.Owner, of.Input)
	s.mu.Unlock()
	if err != nil || f.Purpose != purposeBatch {
		return Batch{}, errNotThere
	}
	return s.create(&of, batchPrefix, func(path string) error {
		if err := os.Link(o.pathOf(f), path); err == nil {
			return nil
		}
		in, err := os.Open(o.pathOf(f)) // not every file system has links
		if err != nil {
			return err
		}
		defer in.Close()
		return fill(path, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
	})
}

// CreateInline makes a batch of lines that lines writes. It fails with the error of lines, with a
// *mistakeError, or with an error of the Writer: errNoRoom, errTooLarge or a *diskError.
func (s *Store) CreateInline(of Batch, lines func(io.Writer) error) (Batch, error) {
	s.mu.Lock()
	o := s.ownerLocked(of.Owner)
	s.mu.Unlock()
	of.State, of.Began = InProgress, time.Now() // it is checked here
	return s.create(&of, messagePrefix, func(path string) error {
		bounded := &inline{o: o}
		defer func() { o.used.Add(-bounded.n) }() // the folder counts in its place
		err := fill(path, func(w io.Writer) error {
			bounded.w = w
			return lines(bounded)
		})
		if err != nil {
			return err
		}
		total, wrong, err := s.check(&of, path)
		if of.Counts.Total = total; err == nil && len(wrong) > 0 {
			err = &mistakeError{wrong[0]}
		}
		return err
	})
}

// mistakeError is the first mistake in the lines of CreateInline.
type mistakeError struct{ Mistake }

func (e *mistakeError) Error() string { return e.Message }

// inline writes lines within an owner's room.
type inline struct {
	o *owner
	w io.Writer
	n int64
}

func (l *inline) Write(p []byte) (int, error) {
	if l.n+int64(len(p)) > mostInlineSize {
		return 0, errTooLarge
	}
	if err := l.o.take(int64(len(p))); err != nil {
		return 0, err
	}
	l.n += int64(len(p))
	n, err := l.w.Write(p)
	if err != nil {
		return n, &diskError{err}
	}
	return n, nil
}

// fill writes a new file and makes it durable.
func fill(path string, with func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &diskError{err}
	}
	if err = with(f); err == nil {
		if err = f.Sync(); err != nil {
			err = &diskError{err}
		}
	}
	if cerr := f.Close(); err == nil && cerr != nil {
		err = &diskError{cerr}
	}
	return err
}

func (s *Store) create(of *Batch, prefix string, input func(path string) error) (Batch, error) {
	s.mu.Lock()
	o := s.ownerLocked(of.Owner)
	open := 0
	for _, b := range o.batches {
		if !b.State.Ended() {
			open++
		}
	}
	s.mu.Unlock()
	switch {
	case s.soft.Err() != nil:
		return Batch{}, errStopping
	case open >= mostBatches:
		return Batch{}, errTooMany
	case o.isFull():
		return Batch{}, errNoRoom
	}
	of.ID, of.State, of.Created = newID(prefix), cmp.Or(of.State, Validating), time.Now()
	of.Output, of.Errors = newID(filePrefix), newID(filePrefix)
	dir, err := o.folder("batches", of.ID)
	if err != nil {
		return Batch{}, err
	}
	err = input(filepath.Join(dir, inputName))
	b := &batch{Batch: *of, store: s, owner: o, dir: dir}
	if err == nil {
		err = b.save()
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return Batch{}, err
	}
	b.arm()
	s.mu.Lock()
	defer s.mu.Unlock()
	o.used.Add(b.counted.Load())
	o.batches[b.ID] = b
	if s.started {
		s.beginLocked(b)
	}
	return b.shownLocked(), nil
}

// Batches returns the batches of an owner that have this form, the newest first.
func (s *Store) Batches(who string, form format.Provider) (all []Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.owners[who]; o != nil {
		for b := range maps.Values(o.batches) {
			if b.Form == form {
				all = append(all, b.shownLocked())
			}
		}
	}
	slices.SortFunc(all, func(a, b Batch) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (s *Store) batchLocked(who, id string) (*batch, error) {
	if o := s.owners[who]; o != nil && o.batches[id] != nil {
		return o.batches[id], nil
	}
	return nil, errNotThere
}

// Batch returns a batch of an owner.
func (s *Store) Batch(who, id string) (Batch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.batchLocked(who, id)
	if err != nil {
		return Batch{}, err
	}
	return b.shownLocked(), nil
}

// Cancel ends the sending of a batch. What was served is kept. It fails with errEnded, and the batch,
// if that has ended already.
func (s *Store) Cancel(who, id string) (Batch, error) {
	s.mu.Lock()
	b, err := s.batchLocked(who, id)
	s.mu.Unlock()
	if err != nil {
		return Batch{}, err
	}
	err = b.set(func(b *Batch) {
		if b.State == Validating || b.State == InProgress {
			b.State, b.Asked = Cancelling, time.Now()
		}
	})
	b.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := b.shownLocked(); c.State.Ended() {
		return c, errEnded
	}
	return b.shownLocked(), err
}

// RemoveBatch removes a batch of an owner that has ended, with its results.
func (s *Store) RemoveBatch(who, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := s.batchLocked(who, id)
	switch {
	case err != nil:
		return err
	case !b.State.Ended():
		return errGoesOn
	}
	return b.owner.removeBatchLocked(b)
}

// removeBatchLocked removes the record first: a folder without one is no batch.
func (o *owner) removeBatchLocked(b *batch) error {
	if err := os.Remove(filepath.Join(b.dir, recordName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &diskError{err}
	}
	delete(o.batches, b.ID)
	o.used.Add(-b.counted.Load())
	return os.RemoveAll(b.dir)
}

// Results opens the results of a batch of Anthropic's form that has ended.
func (s *Store) Results(who, id string) (io.ReadSeekCloser, Batch, error) {
	s.mu.Lock()
	b, err := s.batchLocked(who, id)
	if err != nil {
		s.mu.Unlock()
		return nil, Batch{}, err
	}
	c := b.shownLocked()
	s.mu.Unlock()
	if !c.State.Ended() {
		return nil, c, errGoesOn
	}
	in, err := os.Open(filepath.Join(b.dir, endName))
	return in, c, err
}
