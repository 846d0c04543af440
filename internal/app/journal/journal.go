package journal

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
)

// Config describes a Journal.
type Config struct {
	Path string
	// Keep is how far back a send matters. Timeout is the longest time of an attempt.
	Keep, Timeout time.Duration
	// SyncSends makes the record of each send durable before the request goes.
	SyncSends bool
	// Forget reports whether the request of an id has ended, so that it is no longer in doubt.
	Forget func(id string) bool
	// CompactFrom is the size from which the file is compacted, if that is worth it. If zero, 32
	// MiB.
	CompactFrom int64
	// Before, if not nil, is called before records are dropped. It has to make the results durable
	// that they stand for.
	Before func() error
	// Alive means that the process that wrote the journal has Suspended it, and still waits for
	// answers. Its sends without an answer stay so: see History.Underway.
	Alive bool
	// Lock is the lock of Path. Close releases it, and so does an Open that fails. nil: the caller sees to it
	// that no other process uses the file.
	Lock *Lock
	// Unwritten, if not nil, gets the error of a write that AnswerSoon left to others.
	Unwritten func(error)
	// Full are sends that count if the journal does not know what was sent (see History.Gone).
	Full []Sent
	// TrustClock means that the wall clock is right, even after a reboot and on a machine without
	// another clock.
	TrustClock bool
	// Disk is the file system of the journal. If nil, durable.OS.
	Disk durable.Disk
	// Clock reads both clocks. If nil, the machine's.
	Clock func() (time.Time, boottime.Reading)
}

// Journal is the file. It is safe for concurrent use.
type Journal struct {
	c   Config
	run record // the first line

	writing sync.Mutex   // held during a write or a replacement of the file; taken before mu
	lines   bytes.Buffer // the lines of the present write

	mu      sync.Mutex
	file    *durable.File
	group   *group  // records that wait for a write; nil: none do
	flushes bool    // Flush will be called
	room    []dated // an empty slice for the next group
	next    int64
	doubts  map[string]string // the Result of the latest answer, if there is one
	reads   map[string]int64
	starts  []Start
	compact int64 // the size from which the file is compacted
}

const (
	compactFrom = 32 << 20
	grows       = 3 // growth of the file before a compaction, which costs more than space
	mostStarts  = 64
	soon        = 10 * time.Millisecond // an answer waits so long for a send, with which it is written
)

// longestKeep bounds Keep to two years, so that a damaged journal cannot make an instant overflow.
const longestKeep = 2 * 366 * 24 * time.Hour

// Open reads the journal of earlier runs, if there is one, and compacts it. It settles the sends
// that those runs left unanswered. began is the beginning of this run. The instants of the History
// are on the scale of the wall clock at began.
func Open(c Config, began time.Time) (j *Journal, h *History, err error) {
	if j, h, err = openFile(c, began); err != nil {
		return nil, nil, errors.Join(err, c.Lock.Release())
	}
	return j, h, nil
}

func openFile(c Config, began time.Time) (*Journal, *History, error) {
	h, now, err := c.recall(began)
	if err != nil {
		return nil, nil, err
	}
	for id := range h.Doubts {
		if c.Forget(id) {
			delete(h.Doubts, id)
			delete(h.Open, id)
		}
	}
	maps.DeleteFunc(h.Reads, func(id string, _ int64) bool { return c.Forget(id) })
	doubts := map[string]string{}
	for id := range h.Doubts {
		if doubts[id] = ""; h.hasFailed(id) {
			doubts[id] = limit.Failed.String()
		}
	}
	j := &Journal{c: c, next: h.Last, doubts: doubts, reads: maps.Clone(h.Reads),
		starts: slices.Clone(h.Starts), run: record{
			Run: began.UTC().Format(stamp), Version: version, Timeout: int64(c.Timeout), Keep: int64(c.Keep),
			Boot: now.Boot, Up: int64(now.Up), Awake: int64(now.Awake), At: began.UnixNano(),
		}}
	if err := j.rewriteLocked(h); err != nil {
		j.file.Discard()
		return nil, nil, err
	}
	return j, h, nil
}

// Recall reads a journal and leaves it as it is: see Open.
func Recall(c Config, began time.Time) (*History, error) {
	h, _, err := c.recall(began)
	return h, err
}

// recall is Recall, and also returns the machine's clock at began. It fills in defaults of c.
func (c *Config) recall(began time.Time) (h *History, now boottime.Reading, err error) {
	if c.Disk == nil {
		c.Disk = durable.OS
	}
	if c.Clock == nil {
		c.Clock = func() (time.Time, boottime.Reading) { return time.Now(), boottime.Read() }
	}
	h = newHistory()
	h.Gone = "is missing"
	switch f, err := os.Open(c.Path); {
	case err == nil:
		h, err = read(f, c.Path)
		f.Close()
		if err != nil {
			return nil, now, err
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, now, err
	}
	if h.Gone != "" && c.Full != nil {
		h.Sends, h.Last = slices.Clone(c.Full), 1
		for i := range h.Sends { // moved shifts this, too, and 0 would become negative
			h.Sends[i].Sent = h.Sends[i].Counts
		}
	}
	// A run with short windows keeps the sends that a later run with long windows needs.
	c.Keep = min(max(c.Keep, time.Duration(h.run.Keep)), longestKeep)
	wall, now := c.Clock()
	now.Up -= wall.Sub(began)
	now.Awake -= wall.Sub(began)
	slept := h.arrive(began.UnixNano(), now, c.TrustClock)
	if !c.Alive {
		h.died(began.UnixNano(), slept)
	}
	h.forget(began.Add(-c.Keep).UnixNano())
	maps.DeleteFunc(h.Memories, func(_ string, m Memory) bool { return m.At < began.Add(-memoryLasts).UnixNano() })
	return h, now, nil
}

// arrive puts the history on this run's scale. The distance to its latest record is the time that
// has surely passed. If only a wall clock measures it, the distance is not sure: any user may have
// set that clock. Then the latest record counts as written now. slept is the longest time that the
// machine may have slept meanwhile; negative: not known.
func (h *History) arrive(wall int64, now boottime.Reading, trusted bool) (slept time.Duration) {
	then, ago := h.run.began(), int64(0)
	slept = -1
	switch {
	case then.Boot != "" && then.Boot == now.Boot:
		slept = max(now.Slept(then), 0)
		ago = int64(now.Up-then.Up) - (h.latest - h.run.At)
	case trusted:
		ago = wall - h.latest
	default:
		h.Undated = h.latest > 0
	}
	h.moved(wall - max(ago, 0))
	return slept
}

// rewriteLocked replaces the file by its needed part, all at once, by a rename.
func (j *Journal) rewriteLocked(h *History) error {
	var b bytes.Buffer
	encode(&b, &j.run)
	keys := maps.Clone(h.Nonces)
	for k := range h.Holds {
		keys[k] = h.Nonces[k]
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		encode(&b, &record{Key: k, Nonce: keys[k], Hold: h.Holds[k]})
	}
	for _, id := range slices.Sorted(maps.Keys(j.doubts)) {
		encode(&b, &record{Doubt: id, Result: j.doubts[id]})
	}
	for _, id := range slices.Sorted(maps.Keys(j.reads)) {
		encode(&b, &record{ID: id, Read: j.reads[id]})
	}
	for _, s := range j.starts[max(len(j.starts)-mostStarts, 0):] {
		encode(&b, &record{Start: s.At, Lines: s.Lines, Sum: s.Sum})
	}
	for _, k := range slices.Sorted(maps.Keys(h.Fits)) {
		for _, f := range h.Fits[k] {
			encode(&b, &record{Key: k, Fit: &f})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(h.Whose)) {
		encode(&b, &record{Key: k, Whose: h.Whose[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(h.Memories)) {
		m := h.Memories[k]
		encode(&b, &record{Key: k, Memory: base64.StdEncoding.EncodeToString(m.Written), At: m.At})
	}
	if h.Spent > 0 {
		encode(&b, &record{Spent: h.Spent})
	}
	for _, s := range h.Sends {
		// It gets a new number and no id: its request has ended, or is among the doubts.
		j.next++
		r := record{Send: j.next, Key: s.Key, At: s.Sent}
		r.setCost(s.Cost)
		encode(&b, &r)
		encode(&b, &record{Answer: j.next, Result: s.Result.String(), At: s.Counts})
	}
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		s := h.unanswered[n]
		encode(&b, &record{Send: n, ID: s.ID, Attempt: s.Attempt, Key: s.Key, Nonce: s.Nonce, Cost: s.Cost,
			Tokens: s.Tokens, Rest: s.Rest, Price: s.Price, At: s.At, Held: s.Held})
	}
	f, err := durable.Replace(j.c.Disk, j.c.Path, b.Bytes(), j.file)
	if f == nil {
		return err
	}
	j.file = f
	j.compact = max(cmp.Or(j.c.CompactFrom, compactFrom), grows*int64(b.Len()))
	return err
}

// Send is an attempt that is about to go.
type Send struct {
	ID      string
	Attempt int
	Key     string
	Nonce   uint64
	Cost    limit.Cost
	Price   int64 // the largest possible price, in billionths of a dollar
	Held    bool  // another program sends it, and reports its end: Config.Timeout does not bound it
}

// Send records that an attempt is about to go, and returns its number. When it returns, the record
// is in the file.
func (j *Journal) Send(s Send, now time.Time) (int64, error) { return j.SendAlike(s, 1, now) }

// SendAlike records n sends that are alike, in one write. It returns the number of the first; the
// others follow it.
func (j *Journal) SendAlike(s Send, n int, now time.Time) (first int64, err error) {
	r := record{ID: s.ID, Attempt: s.Attempt, Key: s.Key, Nonce: s.Nonce, Price: s.Price}
	r.setCost(s.Cost)
	if s.Held {
		r.Held = 1
	}
	j.mu.Lock()
	first = j.next + 1
	g, writes := j.groupLocked()
	for range n {
		j.next++
		r.Send = j.next
		g.records = append(g.records, dated{record: r, at: now})
	}
	j.mu.Unlock()
	return first, j.together(g, writes)
}

// Answer is how a send ended.
type Answer struct {
	Result limit.Result
	Counts time.Time   // the latest instant at which the server may have counted it
	Hold   time.Time   // if not zero, when its key may be used again
	Doubt  string      // the request's id if it may have been served and will be sent again
	Price  int64       // the price, in billionths of a dollar
	Actual *limit.Cost // if not nil, the final cost
}

// AnswerOf returns the record of an outcome that is known now.
func AnswerOf(o *limit.Outcome) Answer {
	a := Answer{Result: o.Result, Counts: time.Now()}
	switch {
	case o.ArrivedAgo != 0:
		a.Counts = a.Counts.Add(-o.ArrivedAgo)
	case o.Result == limit.Unknown:
		a.Counts = a.Counts.Add(Late)
	}
	if o.Metered {
		a.Actual = &o.Actual
	}
	return a
}

// Answered is how the send with a number ended.
type Answered struct {
	Send int64
	Answer
}

// Answers records how several sends ended.
func (j *Journal) Answers(all []Answered) error {
	if len(all) == 0 {
		return nil
	}
	j.mu.Lock()
	g, first := j.groupLocked()
	for i := range all {
		j.answerLocked(g, &all[i])
	}
	j.mu.Unlock()
	return j.together(g, first)
}

func (j *Journal) answerLocked(g *group, a *Answered) {
	r := dated{record: record{Answer: a.Send, Result: a.Result.String(), Doubt: a.Doubt, Price: a.Price}, at: a.Counts,
		hold: a.Hold}
	if a.Actual != nil {
		r.Tokens, r.Rest = amounts(a.Actual)
		r.Settled = 1
	}
	if a.Doubt != "" {
		j.doubts[a.Doubt] = r.Result
	}
	g.records = append(g.records, r)
}

// AnswerSoon records how send n ended, with the next send or a moment later, so that who has the answer waits for no
// write. If the process is killed before, the send counts as one of unknown end. An error goes to Config.Unwritten.
func (j *Journal) AnswerSoon(n int64, a Answer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.group == nil {
		j.newGroupLocked().waits = true
	}
	j.group.lent = true
	j.answerLocked(j.group, &Answered{n, a})
	if !j.flushes {
		j.flushes = true
		time.AfterFunc(soon, j.Flush)
	}
}

// Flush writes what AnswerSoon has left, unless a send has taken it along.
func (j *Journal) Flush() {
	j.mu.Lock()
	j.flushes = false
	g := j.group
	if g == nil || !g.waits {
		j.mu.Unlock()
		return
	}
	g.waits = false
	j.mu.Unlock()
	_ = j.together(g, true) // it tells Config.Unwritten
}

// Read records when a request was read. The record stays until the request has Ended.
func (j *Journal) Read(id string, at time.Time) error {
	j.mu.Lock()
	j.reads[id] = at.UnixNano()
	return j.oneLocked(dated{record: record{ID: id, Read: at.UnixNano()}})
}

// Start records when the time of an input's lines began to run.
func (j *Journal) Start(s Start) error {
	j.mu.Lock()
	j.starts = append(j.starts, s)
	return j.oneLocked(dated{record: record{Start: s.At, Lines: s.Lines, Sum: s.Sum}})
}

// Learn records a lesson about a limit of a key. The instants of f count from base.
func (j *Journal) Learn(key string, f Fit, base time.Time) error {
	f.Lesson = f.Moved(time.Duration(j.scale().at(base)))
	j.mu.Lock()
	return j.oneLocked(dated{record: record{Key: key, Fit: &f}})
}

// Belongs records the organization of a key, as an answer has named it.
func (j *Journal) Belongs(key, organization string) error {
	j.mu.Lock()
	return j.oneLocked(dated{record: record{Key: key, Whose: organization}})
}

// Remember records the memory of a key's limiter at an instant.
func (j *Journal) Remember(key string, written []byte, at time.Time) error {
	j.mu.Lock()
	return j.oneLocked(dated{record: record{Key: key, Memory: base64.StdEncoding.EncodeToString(written)}, at: at})
}

// Ended forgets the doubts and reading times of requests whose results are written.
func (j *Journal) Ended(ids ...string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range ids {
		delete(j.doubts, id)
		delete(j.reads, id)
	}
}

// compactLocked drops the sends that no window reaches any more. Sends without an answer are in
// flight, and stay as they are.
func (j *Journal) compactLocked(now time.Time) error {
	if j.c.Before != nil {
		if err := j.c.Before(); err != nil {
			return err
		}
	}
	f, err := os.Open(j.c.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := newHistory()
	h.compacts = true
	if _, err := h.read(f, j.c.Path); err != nil {
		return err
	}
	h.forget(j.scale().at(now) - int64(j.c.Keep))
	return j.rewriteLocked(h)
}

// Sends reads what was sent and may count, of this run, too, on the scale of its beginning. A send
// without an answer counts as if it ended now, as of unknown end.
func (j *Journal) Sends(now time.Time) ([]Sent, error) {
	j.Flush()
	j.writing.Lock()
	defer j.writing.Unlock()
	f, err := os.Open(j.c.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := newHistory()
	if _, err := h.read(f, j.c.Path); err != nil {
		return nil, err
	}
	at := j.scale().at(now)
	h.died(at, -1)
	h.forget(at - int64(j.Kept()))
	return h.Sends, nil
}

// KeepFor raises Keep to at least d, for later runs, too: they must not forget what they need before they
// know their limits.
func (j *Journal) KeepFor(d time.Duration) error {
	j.mu.Lock()
	if d = min(d, longestKeep); d <= j.c.Keep {
		j.mu.Unlock()
		return nil
	}
	j.c.Keep, j.run.Keep = d, int64(d)
	return j.oneLocked(dated{record: j.run})
}

// Kept is how far back sends are kept: as far as any run has asked for.
func (j *Journal) Kept() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.c.Keep
}

// Sync makes the written lines durable, if they are at least atLeast.
func (j *Journal) Sync(atLeast int) error {
	j.mu.Lock()
	f := j.file
	j.mu.Unlock()
	err := f.Sync(atLeast)
	if err != nil && errors.Is(err, os.ErrClosed) {
		return nil // a replacement came between, and it is synced
	}
	return err
}

// Through puts another Handle in front of the file. It is for tests with a failing disk.
func (j *Journal) Through(with func(durable.Handle) durable.Handle) {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.file.Through(with)
}

// Path is the path of the file.
func (j *Journal) Path() string { return j.c.Path }

// Close syncs and closes the file, for the next process.
func (j *Journal) Close() error {
	return errors.Join(j.closeFile(), j.c.Lock.Release())
}

func (j *Journal) closeFile() error {
	j.Flush()
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file.Close()
}
