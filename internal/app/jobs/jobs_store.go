package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// Bounds of the APIs.
const (
	mostFile       = 200_000_000 // bytes of a file
	mostLines      = 50_000      // requests of a batch of OpenAI's form
	mostInline     = 100_000     // requests of a batch of Anthropic's form
	mostInlineSize = 256 << 20   // bytes of these together
	mostBatches    = 100         // batches of an owner that have not ended
	atOnce         = 4           // batches of an owner that send at the same time
	mostFiles      = 10_000      // files of an owner
)

// Defaults of a Config.
const (
	DefaultKeep        = 30 * 24 * time.Hour
	DefaultMost        = 10 << 30
	defaultConcurrency = 64
)

// Config describes a Store.
type Config struct {
	// Folder has all that the Store keeps. It is made if it is missing. One Store at a time may use it.
	Folder string
	// Keep is how long files and ended batches are kept. If zero, 30 days.
	Keep time.Duration
	// Most is how many bytes the files and batches of one owner may take. If zero, 10 GiB.
	Most int64
	// Concurrency is how many requests of an owner's batches are under way at a time. If zero, 64.
	Concurrency int
	// To is the server of the requests. Only its scheme and its host count.
	To *url.URL
	// Base returns the way on which a batch sends. The RoundTripper fails with a *sending.Unsent if it
	// has written nothing, and only once the batch stops. It must be safe for concurrent use.
	Base func(Way) http.RoundTripper
	// Wrong says why an owner may not send a request, by its URL and body; empty: it may. If nil, all may.
	Wrong func(owner string, to *url.URL, body []byte) string
	// Log gets the events of batches. If nil, none.
	Log *slog.Logger
}

// Way describes whose requests a RoundTripper sends.
type Way struct {
	// Owner is the name of the client.
	Owner string
	// Waits ends when no request of the batch may wait any more. Those in flight go on.
	Waits context.Context
}

// Errors of a Store. A *diskError is another one.
var (
	// errNotThere says that the owner has no such file or batch.
	errNotThere = errors.New("not there")
	// errTooLarge says that a file is larger than mostFile.
	errTooLarge = fmt.Errorf("a file may have %d bytes", mostFile)
	// errNoRoom says that the owner has used up Config.Most.
	errNoRoom = errors.New("your files and batches take all the room that you have here: delete some, or wait until " +
		"they are old")
	// errTooMany says that the owner has too many files, or batches that have not ended.
	errTooMany = fmt.Errorf("you have %d files, or %d batches that have not ended: no more are taken", mostFiles,
		mostBatches)
	// errEnded says that a batch has ended already; errGoesOn that it has not.
	errEnded  = errors.New("the batch has ended")
	errGoesOn = errors.New("the batch has not ended")
	// errStopping says that the Store takes nothing new.
	errStopping = errors.New("the store is stopping")
)

// diskError says that something cannot be written: the disk is full, or the folder is gone. Nothing
// is left of what was to be written.
type diskError struct{ Err error }

func (e *diskError) Error() string { return "it cannot be written: " + e.Err.Error() }

// Unwrap returns Err.
func (e *diskError) Unwrap() error { return e.Err }

// Store keeps files and batches. Open makes it. It is safe for concurrent use.
type Store struct {
	c    Config
	lock *durable.File

	working sync.WaitGroup
	hard    context.Context // of requests in flight
	breaks  context.CancelFunc
	soft    context.Context // of waits
	ends    context.CancelFunc

	mu      sync.Mutex
	owners  map[string]*owner
	started bool
}

// Open reads the folder. It sends nothing before Start.
func Open(c Config) (*Store, error) {
	c.Keep, c.Most = cmp.Or(c.Keep, DefaultKeep), cmp.Or(c.Most, DefaultMost)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Folder, 0o700); err != nil {
		return nil, err
	}
	s := &Store{c: c, owners: map[string]*owner{}}
	var err error
	if s.lock, err = durable.Open(filepath.Join(c.Folder, "lock")); err != nil {
		return nil, err
	}
	s.hard, s.breaks = context.WithCancel(context.Background())
	s.soft, s.ends = context.WithCancel(s.hard)
	if err := s.load(); err != nil {
		s.lock.Discard()
		return nil, err
	}
	s.sweep(time.Now())
	return s, nil
}

// Start goes on with all batches that have not ended.
func (s *Store) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started || s.soft.Err() != nil {
		return
	}
	s.started = true
	for _, o := range s.owners {
		for _, b := range o.batches {
			if !b.State.Ended() {
				s.beginLocked(b)
			}
		}
	}
	s.working.Go(s.sweeper)
}

// Stop ends the sending: requests that wait are given up, those in flight finish. The batches go on
// at the next Start of another Store. Wait waits for it.
func (s *Store) Stop() { s.ends() }

// Break breaks off the requests in flight, too.
func (s *Store) Break() { s.breaks() }

// Wait returns when nothing is under way any more, and lets go of the folder. Stop comes before.
func (s *Store) Wait() {
	s.working.Wait()
	s.breaks()
	s.lock.Discard()
}

// sweepEvery is how often old files and batches are looked for.
const sweepEvery = time.Hour

func (s *Store) sweeper() {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-s.soft.Done():
			return
		case now := <-t.C:
			s.sweep(now)
		}
	}
}

// sweep removes what is older than Config.Keep, or has expired.
func (s *Store) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.owners {
		for _, f := range o.files {
			if at := f.Expires; now.After(f.Created.Add(s.c.Keep)) || !at.IsZero() && now.After(at) {
				s.logged("a file that is old", o.removeLocked(f))
			}
		}
		for _, b := range o.batches {
			if b.State.Ended() && now.After(b.EndedAt().Add(s.c.Keep)) {
				s.logged("a batch that is old", o.removeBatchLocked(b))
			}
		}
	}
}

func (s *Store) logged(what string, err error) {
	if err != nil {
		s.c.Log.Error("batches: "+what, "err", err)
	}
}

// pause waits. It returns false if the Store stops.
func (s *Store) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.soft.Done():
		return false
	}
}
