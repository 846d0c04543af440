// Package journal keeps what was sent and is not in the results, so that a restart neither forgets a window nor repeats in
// silence. Lines (record.go) are appended before a request is sent and after it was answered; what no window reaches any more
// goes when the file is compacted.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/durable"
	"github.com/paceline-go/paceline/limit"
)

// Config describes a Journal.
type Config struct {
	Path string
	// Keep is how far back sends matter, Timeout within what an attempt ends.
	Keep, Timeout time.Duration
	// SyncSends: each send is durable before it goes.
	SyncSends bool
	// Forget says which ids have ended and are not in doubt any more.
	Forget func(id string) bool
	// Before is called before records are dropped: what they stand for must be durable then.
	Before func() error
	// Disk is where it is. If nil, durable.OS.
	Disk durable.Disk
}

// Journal is the file. Safe for concurrent use.
type Journal struct {
	c Config

	mu      sync.Mutex
	file    *durable.File
	next    int64
	doubts  map[string]struct{}
	compact int64 // size at which it is worth a try
}

const compactFrom = 8 << 20

// Open reads the journal of the runs before, if there is one, and begins this run's part: compacted, with what was
// unanswered written down as that.
func Open(c Config, now time.Time) (*Journal, *History, error) {
	if c.Disk == nil {
		c.Disk = durable.OS
	}
	h := newHistory()
	switch f, err := os.Open(c.Path); {
	case err == nil:
		// A run with short limits does not forget what one with long ones will ask for again.
		c.Keep = max(c.Keep, kept(f))
		from := now.Add(-c.Keep).UnixNano()
		h, err = read(f, c.Path, from)
		f.Close()
		if err != nil {
			return nil, nil, err
		}
		h.died(now.UnixNano(), from)
	case !errors.Is(err, os.ErrNotExist):
		return nil, nil, err
	}
	for id := range h.Doubts {
		if c.Forget(id) {
			delete(h.Doubts, id)
			delete(h.Open, id)
		}
	}
	j := &Journal{c: c, next: h.Last, doubts: maps.Clone(h.Doubts)}
	if err := j.rewriteLocked(now, h); err != nil {
		if j.file != nil {
			j.file.Discard()
		}
		return nil, nil, err
	}
	return j, h, nil
}

// kept is how far back the journal in f goes, which is then read from its beginning.
func kept(f io.ReadSeeker) time.Duration {
	line, _ := bufio.NewReader(f).ReadBytes('\n')
	var first record
	_ = json.Unmarshal(line, &first) // read will say
	_, _ = f.Seek(0, io.SeekStart)
	return time.Duration(min(max(first.Keep, 0), int64(longestKeep)))
}

// longestKeep is two years, so that no damaged journal makes an instant overflow.
const longestKeep = 2 * 366 * 24 * time.Hour

func encode(b *bytes.Buffer, r record) {
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	b.Write(line)
	b.WriteByte('\n')
}

// rewriteLocked replaces the file by what is still needed of it: at once, by a rename.
func (j *Journal) rewriteLocked(now time.Time, h *History) error {
	var b bytes.Buffer
	encode(&b, record{Run: now.UTC().Format("2006-01-02T15:04:05.000Z"), Timeout: int64(j.c.Timeout), Keep: int64(j.c.Keep)})
	keys := maps.Clone(h.Nonces)
	for k := range h.Holds {
		keys[k] = h.Nonces[k]
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		encode(&b, record{Key: k, Nonce: keys[k], Hold: h.Holds[k]})
	}
	for _, id := range slices.Sorted(maps.Keys(j.doubts)) {
		encode(&b, record{Doubt: id})
	}
	for _, s := range h.Sends {
		// A number of its own, and no id: whom it was for is settled, or among the doubts.
		j.next++
		r := record{Send: j.next, Key: s.Key, At: s.at}
		r.setCost(s.Cost)
		encode(&b, r)
		encode(&b, record{Answer: j.next, Result: s.Result.String(), At: s.Counts})
	}
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		encode(&b, h.unanswered[n].record)
	}
	f, err := durable.Replace(j.c.Disk, j.c.Path, b.Bytes())
	if f == nil {
		return err
	}
	if j.file != nil {
		j.file.Discard()
	}
	j.file = f
	j.compact = max(compactFrom, 2*int64(b.Len()))
	return err
}

// Send is an attempt that is about to go.
type Send struct {
	ID      string
	Attempt int
	Key     string
	Nonce   uint64
	Cost    limit.Cost
}

// Send writes that an attempt is about to go, and returns its number.
func (j *Journal) Send(s Send, now time.Time) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file.Size() >= j.compact {
		if err := j.compactLocked(now); err != nil {
			return 0, err
		}
	}
	j.next++
	r := record{Send: j.next, ID: s.ID, Attempt: s.Attempt, Key: s.Key, Nonce: s.Nonce, At: now.UnixNano()}
	r.setCost(s.Cost)
	if err := j.appendLocked(r); err != nil {
		return 0, err
	}
	if j.c.SyncSends {
		if err := j.file.Sync(1); err != nil {
			return 0, err
		}
	}
	return r.Send, nil
}

// Answer is how a send ended.
type Answer struct {
	Result limit.Result
	Counts time.Time   // the latest instant at which the server may have counted it
	Hold   time.Time   // if not zero, when its key may be used again
	Doubt  string      // the request's id if it may have been served and will be sent again
	Actual *limit.Cost // if not nil, what it cost in the end
}

// Answer writes how send n ended.
func (j *Journal) Answer(n int64, a Answer) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Answer: n, Result: a.Result.String(), At: a.Counts.UnixNano(), Doubt: a.Doubt}
	if !a.Hold.IsZero() {
		r.Hold = a.Hold.UnixNano()
	}
	if a.Actual != nil {
		r.Tokens = [3]int64{a.Actual[limit.Input], a.Actual[limit.Output], a.Actual[limit.Tokens]}
	}
	if a.Doubt != "" {
		j.doubts[a.Doubt] = struct{}{}
	}
	return j.appendLocked(r)
}

// Ended forgets a doubt: the result is written.
func (j *Journal) Ended(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.doubts, id)
}

func (j *Journal) appendLocked(r record) error {
	var b bytes.Buffer
	encode(&b, r)
	return j.file.Append(b.Bytes())
}

// compactLocked drops what no window reaches any more. What is unanswered is in flight, and stays as it is.
func (j *Journal) compactLocked(now time.Time) error {
	if err := j.c.Before(); err != nil {
		return err
	}
	f, err := os.Open(j.c.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := read(f, j.c.Path, now.Add(-j.c.Keep).UnixNano())
	if err != nil {
		return err
	}
	return j.rewriteLocked(now, h)
}

// Sync makes durable what was written, if there are at least so many lines of it.
func (j *Journal) Sync(atLeast int) error {
	j.mu.Lock()
	f := j.file
	j.mu.Unlock()
	err := f.Sync(atLeast)
	if err != nil && errors.Is(err, os.ErrClosed) {
		return nil // replaced meanwhile by a file that is synced
	}
	return err
}

// Through puts faults in the way of what is written.
func (j *Journal) Through(with func(durable.Handle) durable.Handle) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.file.Through(with)
}

// Path is where it is.
func (j *Journal) Path() string { return j.c.Path }

// Close syncs and closes it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
