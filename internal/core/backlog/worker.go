package backlog

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// FreshFor is how long a worker sends after its latest committed turn began. A Watch waits for 14 s, so
// a worker that was given up sends nothing more.
const FreshFor = 10 * time.Second

// ShortRest is the longest pause of a request that its worker keeps, marked, for another attempt.
const ShortRest = 10 * time.Second

// Job is a request as a claim returns it.
type Job struct {
	Place
	Lane int32
	// Attempts is how often it may have been sent. Doubt says that a worker was given up that may have
	// sent it, so its result names it.
	Attempts int
	Doubt    bool
	// ID, Data and Deadline are for the driver: the core does not look at them. Deadline is in
	// milliseconds since 1970; 0: there is none.
	ID       string
	Data     []byte
	Deadline int64
}

// End is what became of a request. Line is its result, which the core does not read.
type End struct {
	Seq      int64
	Lane     int32
	Attempts int
	// Doubt says that one of the worker's own attempts before may have been served. Ended sets it, if
	// the driver has not.
	Doubt bool
	// State, Class and Unsure are the driver's words. Unsure says that the last attempt may have been
	// served. That matters only if the request is sent again after all.
	State  uint8
	Class  string
	Unsure bool
	Line   []byte
}

// Return gives a request back, to be claimed by any worker once due has come.
type Return struct {
	Seq int64
	// Rest is how long it rests from the turn on; 0: it is ready.
	Rest     time.Duration
	Attempts int
	Doubt    bool
}

// held is a request of this worker.
type held struct {
	Job
	of     *lane
	flying bool      // an attempt is under way
	flew   bool      // there was one
	until  mono.Time // it rests until then, and is marked
	rests  bool
	leaves bool // it is given back: it is never sent again by this worker
	orphan bool // its worker was given up while it was in flight, and has not got it again
	stale  bool // the same, and no turn has marked it since: what is not written yet must not be
}

// Worker is what one process knows of its part. New makes it. Not safe for concurrent use.
type Worker struct {
	id, beat int64 // id 0: it has to be registered
	jobs     map[int64]*held
	lanes    map[int32]*lane
	ends     map[int64]End    // not known to be committed
	returns  map[int64]Return // the same
	doubts   []int64          // the same
	resting  []*held
	rows     []int64 // the numbers of all rows that the worker has had
	row      int     // the place of id in rows; the last one, but for a store that has lost later ones
	told     told

	turn     *Turn     // under way, or of unknown outcome
	unknown  bool      // the outcome of turn is not known: read the row
	began    mono.Time // of the latest committed turn
	last     mono.Time // the begin of the latest turn
	took     bool      // there was one
	paused   bool
	stopping bool
}

// New returns a Worker that holds nothing and is not registered.
func New() *Worker {
	return &Worker{jobs: map[int64]*held{}, lanes: map[int32]*lane{}, ends: map[int64]End{}, returns: map[int64]Return{}}
}

// ID returns the number of the worker's row; 0: it has to be registered.
func (w *Worker) ID() int64 { return w.id }

// Registered gives the worker a new row. The registration began at an instant.
func (w *Worker) Registered(began mono.Time, id, beat int64) {
	w.id, w.beat, w.began = id, beat, began
	w.turn, w.unknown, w.took = nil, false, false
	w.rows = append(w.rows, id)
	w.row = len(w.rows) - 1
}

// May reports whether a request in flight may be written now. Ask it right before the write, and report
// Unsent if not.
func (w *Worker) May(now mono.Time, seq int64) bool {
	h := w.jobs[seq]
	return h != nil && h.flying && !h.stale && !w.paused && w.fresh(now)
}

func (w *Worker) fresh(now mono.Time) bool { return w.id != 0 && now.Sub(w.began) < FreshFor }

// Has reports whether a request of a lane is marked and may go at now: see Next.
func (w *Worker) Has(now mono.Time, of int32) bool {
	l := w.lanes[of]
	return l != nil && w.open(now) && (len(l.marked) > 0 || w.rested(now, l) >= 0)
}

// Waiting returns how many requests of a lane the worker holds that may go, once they are marked.
func (w *Worker) Waiting(now mono.Time, of int32) int {
	l := w.lanes[of]
	if l == nil || !w.open(now) {
		return 0
	}
	n := len(l.idle) + len(l.marked)
	for _, h := range w.resting {
		if h.of == l && h.until <= now {
			n++
		}
	}
	return n
}

func (w *Worker) open(now mono.Time) bool { return w.fresh(now) && !w.paused && !w.stopping }

// Asks says how many permits of a lane wait for a mark. The next turn marks as many more.
func (w *Worker) Asks(of int32, n int) { w.lane(of).asking += n }

// Next takes the request of a lane that goes next. It is in flight from then on: end it by Ended, Again
// or Unsent.
func (w *Worker) Next(now mono.Time, of int32) (Job, bool) {
	if !w.Has(now, of) {
		return Job{}, false
	}
	l := w.lanes[of]
	var h *held
	if i := w.rested(now, l); i >= 0 {
		h = w.resting[i]
		w.resting = slices.Delete(w.resting, i, i+1)
		h.rests = false
	} else {
		h = l.marked[0]
		l.marked = l.marked[1:]
	}
	h.flying = true
	h.flew = true
	l.goes(now)
	return h.Job, true
}

// rested returns the place in resting of a request whose rest is over, or -1.
func (w *Worker) rested(now mono.Time, l *lane) int {
	return slices.IndexFunc(w.resting, func(h *held) bool { return h.of == l && h.until <= now })
}

// Ended reports what became of a request in flight. Of a worker that was given up it counts all the
// same, if no other worker was sooner.
func (w *Worker) Ended(e End) {
	h := w.jobs[e.Seq]
	if h == nil || !h.flying {
		return // nobody's: the driver ended it twice
	}
	e.Lane, e.Doubt = h.Lane, e.Doubt || h.Doubt
	h.flew = false // the turn that tells of it is what counts
	w.forget(h)
	w.ends[e.Seq] = e
}

// Again reports that an attempt failed and that another may follow after a rest. doubt says that this
// attempt may have been served.
func (w *Worker) Again(now mono.Time, seq int64, rest time.Duration, doubt bool) {
	h := w.jobs[seq]
	if h == nil || !h.flying {
		return
	}
	h.flying = false
	h.Attempts++
	h.Doubt = h.Doubt || doubt
	switch {
	case h.orphan: // another worker has it
		w.forget(h)
	case rest > ShortRest || h.stale || w.stopping:
		w.giveBack(h, rest)
	default:
		h.rests, h.until = true, now.Add(rest)
		w.resting = append(w.resting, h)
	}
}

// Tried reports that an attempt failed and that its driver makes another one, without a mark in between: the
// request stays in flight. doubt says that this attempt may have been served.
func (w *Worker) Tried(seq int64, doubt bool) {
	if h := w.jobs[seq]; h != nil && h.flying {
		h.Attempts++
		h.Doubt = h.Doubt || doubt
	}
}

// Unsent reports that nothing of a request in flight was written. It stays marked, and goes next.
func (w *Worker) Unsent(seq int64) {
	h := w.jobs[seq]
	if h == nil || !h.flying {
		return
	}
	h.flying = false
	switch {
	case h.orphan:
		w.forget(h)
	case h.stale || w.stopping:
		w.giveBack(h, 0)
	default:
		h.of.marked = slices.Insert(h.of.marked, 0, h)
	}
}

// Stop gives back all that is not in flight, and claims nothing more.
func (w *Worker) Stop() {
	w.stopping = true
	for _, h := range w.sorted() {
		if !h.flying && !h.leaves && !w.named(h) {
			w.giveBack(h, 0)
		}
	}
}

// named reports whether the turn under way marks a request. It is given back after that turn.
func (w *Worker) named(h *held) bool { return w.turn != nil && slices.Contains(w.turn.fresh, h) }

// Beat returns the number of the worker's row, and its beat: with both the worker gives itself up.
func (w *Worker) Beat() Beat { return Beat{w.id, w.beat} }

// Rested returns when the next request that rests may go; Max: none rests.
func (w *Worker) Rested(now mono.Time) mono.Time {
	at := mono.Max
	for _, h := range w.resting {
		if h.until > now {
			at = min(at, h.until)
		}
	}
	return at
}

// Over reports whether nothing is left to send, to report or to give back.
func (w *Worker) Over() bool {
	return w.turn == nil && len(w.jobs) == 0 && len(w.ends) == 0 && len(w.returns) == 0 && len(w.doubts) == 0
}

// Held returns how many requests the worker holds, and how many of them are in flight.
func (w *Worker) Held() (all, flying int) {
	for _, h := range w.jobs {
		if h.flying {
			flying++
		}
	}
	return len(w.jobs), flying
}

// sorted are the held requests in the order of Seq, so that a run can be repeated.
func (w *Worker) sorted() []*held {
	return slices.SortedFunc(maps.Values(w.jobs), func(a, b *held) int { return cmp.Compare(a.Seq, b.Seq) })
}

func (w *Worker) lane(of int32) *lane {
	l := w.lanes[of]
	if l == nil {
		l = &lane{}
		w.lanes[of] = l
	}
	return l
}

// add takes a claimed request.
func (w *Worker) add(j Job) *held {
	l := w.lane(j.Lane)
	h := &held{Job: j, of: l}
	w.jobs[j.Seq] = h
	l.held++
	return h
}

// leave takes a request out of the order of what is sent.
func (w *Worker) leave(h *held) {
	is := func(o *held) bool { return o == h }
	h.of.idle.remove(h)
	h.of.marked = slices.DeleteFunc(h.of.marked, is)
	w.resting = slices.DeleteFunc(w.resting, is)
	h.rests = false
}

func (w *Worker) forget(h *held) {
	if h.flew {
		w.told.add(w.last, h.Seq, w.beat, w.row)
	}
	if !h.flying { // what is in flight is in no line
		w.leave(h)
	}
	if w.jobs[h.Seq] == h {
		delete(w.jobs, h.Seq)
		h.of.held--
	}
}

func (w *Worker) giveBack(h *held, rest time.Duration) {
	w.leave(h)
	h.leaves = true
	w.returns[h.Seq] = Return{Seq: h.Seq, Rest: rest, Attempts: h.Attempts, Doubt: h.Doubt}
}

// die forgets all but what is in flight, after the worker was given up. Others have the rest.
func (w *Worker) die() {
	for _, h := range w.sorted() {
		if h.flying {
			h.orphan, h.stale = true, true
			continue
		}
		w.forget(h)
	}
	clear(w.returns)
	w.id, w.turn, w.unknown = 0, nil, false
}
