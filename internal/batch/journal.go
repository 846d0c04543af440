package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// record is one line of the journal. Which of Run, Send, Answer, Doubt, Hold it has says what it is.
type record struct {
	// Run begins what one process wrote: its attempts ended, answered or not, within Timeout (ns), and the sends before it
	// that counted within Keep (ns) are there.
	Run     string `json:"run,omitempty"`
	Timeout int64  `json:"timeout,omitempty"`
	Keep    int64  `json:"keep,omitempty"`

	// Send is written before an attempt is sent. It numbers the sends of all runs.
	Send    int64  `json:"send,omitempty"`
	ID      string `json:"id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Key     string `json:"key,omitempty"`
	Nonce   uint64 `json:"nonce,omitempty"`
	Cost    int64  `json:"cost,omitempty"` // requests

	// Tokens are input, output and both, as the limits count them: of Send as admitted, of Answer as settled, if that differs.
	Tokens [3]int64 `json:"tokens,omitzero"`

	// Answer says how that send ended, after its result (if that ended the request) has been written.
	Answer int64  `json:"answer,omitempty"`
	Result string `json:"result,omitempty"`

	// Doubt names a request that may have been served although no result says so; also beside Answer.
	Doubt string `json:"doubt,omitempty"`

	// Hold is when Key may be used again (ns since 1970), as the server asked.
	Hold int64 `json:"hold,omitempty"`

	// At: of Send, when; of Answer, the latest instant at which the server may have counted it (ns since 1970).
	At int64 `json:"at,omitempty"`
}

func (r *record) setCost(c limit.Cost) {
	r.Cost = c[limit.Requests]
	r.Tokens = [3]int64{c[limit.Input], c[limit.Output], c[limit.Tokens]}
}

func (r *record) cost() limit.Cost {
	return limit.Cost{limit.Requests: r.Cost, limit.Input: r.Tokens[0], limit.Output: r.Tokens[1], limit.Tokens: r.Tokens[2]}
}

// late is how long after an unknown outcome a request may still arrive: what limit.Arrivals takes.
const late = 5 * time.Second

// sent is a send that still counts.
type sent struct {
	key    string
	cost   limit.Cost
	at     int64 // ns since 1970
	counts int64 // the latest instant at which the server may have counted it
	result limit.Result
}

// history is what the runs before left in the journal.
type history struct {
	last       int64                // number of the latest send
	sends      []sent               // by counts
	nonces     map[string]uint64    // the last of each key
	holds      map[string]int64     // until when
	doubts     map[string]struct{}  // ids that may have been served
	unanswered map[int64]unanswered // by number
	open       map[string]struct{}  // of these, ids that were unanswered when the process died
}

type unanswered struct {
	record
	timeout int64 // of the run that sent it
}

var results = map[string]limit.Result{
	limit.Unknown.String(): limit.Unknown, limit.Accepted.String(): limit.Accepted, limit.Limited.String(): limit.Limited,
	limit.Failed.String(): limit.Failed, limit.Unsent.String(): limit.Unsent,
}

// readJournal reads what is there. What may have been counted before from (ns since 1970) is left out. What is no journal
// is refused; a last line without its end is what a crash leaves, and left out.
func readJournal(in io.Reader, name string, from int64) (*history, error) {
	h := &history{
		nonces: map[string]uint64{}, holds: map[string]int64{},
		doubts: map[string]struct{}{}, open: map[string]struct{}{}, unanswered: map[int64]unanswered{},
	}
	timeout := int64(math.MaxInt64)
	r := bufio.NewReaderSize(in, 64<<10)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return h, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var c record
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return nil, fmt.Errorf("%s:%d: no journal of paceline, or damaged (%w): without it nobody knows which windows are filled and what was sent unanswered; move it away to go on like that", name, n, err)
		}
		h.last = max(h.last, c.Send, c.Answer)
		switch {
		case c.Run != "":
			if timeout = c.Timeout; timeout <= 0 {
				timeout = math.MaxInt64
			}
		case c.Send > 0:
			h.nonces[c.Key] = max(h.nonces[c.Key], c.Nonce)
			h.unanswered[c.Send] = unanswered{c, timeout}
		case c.Answer > 0:
			o, known := h.unanswered[c.Answer]
			result, isResult := results[c.Result]
			if !known || !isResult {
				continue // its send went with a compaction
			}
			delete(h.unanswered, c.Answer)
			if c.Hold > 0 {
				h.holds[o.Key] = max(h.holds[o.Key], c.Hold)
			}
			// Accepted is in doubt until its result is found: after a power cut it may be gone.
			if o.ID != "" && (result == limit.Accepted || c.Doubt != "") {
				h.doubts[o.ID] = struct{}{}
			}
			if result != limit.Unsent && c.At > from {
				cost := o.cost()
				if c.Tokens != ([3]int64{}) {
					o.Tokens = c.Tokens
					cost = o.cost()
				}
				h.sends = append(h.sends, sent{o.Key, cost, o.At, c.At, result})
			}
		case c.Doubt != "":
			h.doubts[c.Doubt] = struct{}{}
		case c.Key != "":
			h.nonces[c.Key] = max(h.nonces[c.Key], c.Nonce)
			h.holds[c.Key] = max(h.holds[c.Key], c.Hold)
		}
	}
}

// died settles what the process that wrote the journal left unanswered.
func (h *history) died(now, from int64) {
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		o := h.unanswered[n]
		// A living process would have written how it ended within its timeout. So it was dead by then.
		end := now
		if o.At < now && now-o.At > o.timeout {
			end = o.At + o.timeout
		}
		if counts := end + int64(late); counts > from {
			h.sends = append(h.sends, sent{o.Key, o.cost(), o.At, counts, limit.Unknown})
		}
		if o.ID != "" {
			h.doubts[o.ID] = struct{}{}
			h.open[o.ID] = struct{}{}
		}
	}
	clear(h.unanswered)
	slices.SortStableFunc(h.sends, func(a, b sent) int { return cmp.Compare(a.counts, b.counts) })
}

// journal is the file. Safe for concurrent use.
type journal struct {
	path    string
	keep    time.Duration
	timeout time.Duration
	always  bool // fsync before each send
	before  func() error

	mu      sync.Mutex
	file    *lineFile
	next    int64
	doubts  map[string]struct{}
	compact int64 // size at which it is worth a try
}

const compactFrom = 8 << 20

// openJournal reads the journal of the runs before, if there is one, and begins this run's part: compacted, with what
// was unanswered written down as that. forget says which ids have ended and are not in doubt any more. before is called
// before records are dropped: what they stand for must be durable then.
func openJournal(path string, now time.Time, keep, timeout time.Duration, always bool, forget func(id string) bool, before func() error) (*journal, *history, error) {
	h := &history{nonces: map[string]uint64{}}
	switch f, err := os.Open(path); {
	case err == nil:
		// A run with short limits does not forget what one with long ones will ask for again.
		keep = max(keep, kept(f))
		from := now.Add(-keep).UnixNano()
		h, err = readJournal(f, path, from)
		f.Close()
		if err != nil {
			return nil, nil, err
		}
		h.died(now.UnixNano(), from)
	case !errors.Is(err, os.ErrNotExist):
		return nil, nil, err
	}
	for id := range h.doubts {
		if forget(id) {
			delete(h.doubts, id)
			delete(h.open, id)
		}
	}
	j := &journal{path: path, keep: keep, timeout: timeout, always: always, before: before, next: h.last, doubts: maps.Clone(h.doubts)}
	if j.doubts == nil {
		j.doubts = map[string]struct{}{}
	}
	if err := j.rewriteLocked(now, h); err != nil {
		return nil, nil, err
	}
	return j, h, nil
}

// kept is how far back the journal in f goes, which is then read from its beginning.
func kept(f io.ReadSeeker) time.Duration {
	line, _ := bufio.NewReader(f).ReadBytes('\n')
	var first record
	_ = json.Unmarshal(line, &first) // readJournal will say
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
func (j *journal) rewriteLocked(now time.Time, h *history) error {
	var b bytes.Buffer
	encode(&b, record{Run: stamp(now), Timeout: int64(j.timeout), Keep: int64(j.keep)})
	keys := maps.Clone(h.nonces)
	for k := range h.holds {
		keys[k] = h.nonces[k]
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		encode(&b, record{Key: k, Nonce: keys[k], Hold: h.holds[k]})
	}
	for _, id := range slices.Sorted(maps.Keys(j.doubts)) {
		encode(&b, record{Doubt: id})
	}
	for _, s := range h.sends {
		// A number of its own, and no id: whom it was for is settled, or among the doubts.
		j.next++
		r := record{Send: j.next, Key: s.key, At: s.at}
		r.setCost(s.cost)
		encode(&b, r)
		encode(&b, record{Answer: j.next, Result: s.result.String(), At: s.counts})
	}
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		encode(&b, h.unanswered[n].record)
	}
	tmp := j.path + ".new"
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.Write(b.Bytes()); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(tmp, j.path)
	}
	if err == nil {
		err = syncFolder(j.path)
	}
	if err != nil {
		f.Close()
		os.Remove(tmp)
		return err
	}
	if j.file != nil {
		j.file.f.Close()
	}
	j.file = &lineFile{name: j.path, f: f, regular: true, size: int64(b.Len())}
	j.compact = max(compactFrom, 2*int64(b.Len()))
	return nil
}

// send writes that an attempt is about to go, and returns its number.
func (j *journal) send(r record, now time.Time) (int64, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file.size >= j.compact {
		if err := j.compactLocked(now); err != nil {
			return 0, err
		}
	}
	j.next++
	r.Send, r.At = j.next, now.UnixNano()
	if err := j.appendLocked(r); err != nil {
		return 0, err
	}
	if j.always {
		if err := j.file.sync(1); err != nil {
			return 0, err
		}
	}
	return r.Send, nil
}

// answer writes how a send ended. counts is the latest instant at which the server may have counted it; hold, if not
// zero, when its key may be used again; doubt the request's id if it may have been served and will be sent again; actual,
// if not nil, what it cost in the end.
func (j *journal) answer(n int64, result limit.Result, counts, hold time.Time, doubt string, actual *limit.Cost) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := record{Answer: n, Result: result.String(), At: counts.UnixNano(), Doubt: doubt}
	if !hold.IsZero() {
		r.Hold = hold.UnixNano()
	}
	if actual != nil {
		r.Tokens = [3]int64{actual[limit.Input], actual[limit.Output], actual[limit.Tokens]}
	}
	if doubt != "" {
		j.doubts[doubt] = struct{}{}
	}
	return j.appendLocked(r)
}

// ended forgets a doubt.
func (j *journal) ended(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.doubts, id)
}

func (j *journal) appendLocked(r record) error {
	var b bytes.Buffer
	encode(&b, r)
	return j.file.append(b.Bytes())
}

// compactLocked drops what no window reaches any more. What is unanswered is in flight, and stays as it is.
func (j *journal) compactLocked(now time.Time) error {
	if err := j.before(); err != nil {
		return err
	}
	f, err := os.Open(j.path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := readJournal(f, j.path, now.Add(-j.keep).UnixNano())
	if err != nil {
		return err
	}
	return j.rewriteLocked(now, h)
}

func (j *journal) sync(atLeast int) error {
	j.mu.Lock()
	f := j.file
	j.mu.Unlock()
	err := f.sync(atLeast)
	if err != nil && errors.Is(err, os.ErrClosed) {
		return nil // replaced meanwhile by a file that is synced
	}
	return err
}

func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.close()
}
