package journal

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/durable"
	"github.com/paceline-go/paceline/internal/uptime"
	"github.com/paceline-go/paceline/limit"
)

// record is one line of the journal. Which of Run, Send, Answer, Doubt, Hold, Read, Start, Spent, Fit it has says what it is.
type record struct {
	// Run begins what one process wrote: its attempts ended, answered or not, within Timeout (ns), and the sends before it
	// that counted within Keep (ns) are there.
	Run     string `json:"run,omitempty"`
	Version int    `json:"version,omitempty"` // 0: 1, which had no clock
	Timeout int64  `json:"timeout,omitempty"`
	Keep    int64  `json:"keep,omitempty"`

	// Of Run, what the clock of the machine said At: see uptime.Reading.
	Boot  string `json:"boot,omitempty"`
	Up    int64  `json:"up,omitempty"`
	Awake int64  `json:"awake,omitempty"`

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

	// Hold is when Key may be used again, as the server asked.
	Hold int64 `json:"hold,omitempty"`

	// Price, in billionths of a dollar: of Send, what it may cost at most; of Answer, what it did. Spent is what attempts have cost that
	// are not here any more.
	Price int64 `json:"price,omitempty"`
	Spent int64 `json:"spent,omitempty"`

	// Read is when the request ID was read (ns since 1970, by the wall clock), if its time runs from then.
	Read int64 `json:"read,omitempty"`

	// Start is when the first Lines lines of an input, which Sum stands for, began to count, likewise.
	Start int64  `json:"start,omitempty"`
	Lines int    `json:"lines,omitempty"`
	Sum   uint64 `json:"sum,omitempty"`

	// Fit is what was learned of a limit of Key's.
	Fit *Fit `json:"fit,omitempty"`

	// At: of Run and Send, when; of Answer, the latest instant at which the server may have counted it. All instants are ns
	// since 1970 by the wall clock when the run began, and by the machine's from then on: nobody sets that.
	At int64 `json:"at,omitempty"`
}

// version is what is written: 2 had no Fit. A journal of a later one is refused, as it may say what is not known here.
const version = 3

const stamp = "2006-01-02T15:04:05.000Z"

// began is where the instants of a run have their zero.
func (r *record) began() uptime.Reading {
	return uptime.Reading{Boot: r.Boot, Up: time.Duration(r.Up), Awake: time.Duration(r.Awake)}
}

func (r *record) setCost(c limit.Cost) {
	r.Cost = c[limit.Requests]
	r.Tokens = [3]int64{c[limit.Input], c[limit.Output], c[limit.Tokens]}
}

// sent is what a record says of a send. It is a third of that, as a compaction has all of them in its hands.
type sent struct {
	ID      string
	Attempt int
	Key     string
	Nonce   uint64
	Cost    int64
	Tokens  [3]int64
	Price   int64
	At      int64
}

func (s *sent) cost() limit.Cost {
	return limit.Cost{limit.Requests: s.Cost, limit.Input: s.Tokens[0], limit.Output: s.Tokens[1], limit.Tokens: s.Tokens[2]}
}

// Late is how long after an unknown outcome a request may still arrive: what limit.Arrivals takes.
const Late = 5 * time.Second

// Sent is a send that still counts.
type Sent struct {
	Key    string
	Cost   limit.Cost
	Counts int64 // the latest instant at which the server may have counted it (ns since 1970)
	Result limit.Result

	at int64
}

// History is what the runs before left. Its instants are on the scale of the run that reads it.
type History struct {
	// Gone is why nothing is known of what was sent; empty: something is.
	Gone   string
	Last   int64               // number of the latest send; 0: there was none
	Sends  []Sent              // by Counts
	Nonces map[string]uint64   // the last of each key
	Holds  map[string]int64    // until when each key was told to stay away (ns since 1970)
	Doubts map[string]struct{} // ids that may have been served
	Open   map[string]struct{} // of these, ids that were unanswered when the process died
	Reads  map[string]int64    // when requests that have not ended were read, as far as they were told to Read
	Spent  int64               // by all sends, in billionths of a dollar, as far as they had a Price
	Starts []Start             // of inputs, the latest last
	Fits   map[string][]Fit    // of each key, one of a limit, the latest last

	run        record         // its first line, if it has a Run
	latest     int64          // when a process was surely alive
	compacts   bool           // who reads it knows the doubts
	unanswered map[int64]sent // by number
}

// Start is when the first Lines lines of an input began to count (ns since 1970), by the wall clock: a deadline is for people, who go by
// that. Sum stands for what is in them: on one file of
// results there may be several inputs, one after the other.
type Start struct {
	At    int64
	Lines int
	Sum   uint64
}

// Fit is what was learned of a limit that is wrong. Its instants are those of a journal.
type Fit struct {
	Limit string `json:"limit"` // as whoever writes and reads it calls it
	limit.Lesson
}

// mostFits bounds what is kept of a key whose limits are changed again and again.
const mostFits = 16

// learn has a lesson take the place of the one before it.
func (h *History) learn(key string, f Fit) {
	all := slices.DeleteFunc(h.Fits[key], func(old Fit) bool { return old.Limit == f.Limit })
	h.Fits[key] = append(all[max(len(all)-mostFits+1, 0):], f)
}

func newHistory() *History {
	return &History{
		Nonces: map[string]uint64{}, Holds: map[string]int64{},
		Doubts: map[string]struct{}{}, Open: map[string]struct{}{}, unanswered: map[int64]sent{}, Reads: map[string]int64{}, Fits: map[string][]Fit{},
	}
}

var results = map[string]limit.Result{
	limit.Unknown.String(): limit.Unknown, limit.Accepted.String(): limit.Accepted, limit.Limited.String(): limit.Limited,
	limit.Failed.String(): limit.Failed, limit.Unsent.String(): limit.Unsent,
}

// read reads what is there. What is no journal, and what follows a record on its line, is refused; a last line without its
// end is what a crash leaves, and left out.
func read(in io.Reader, name string) (*History, error) { return newHistory().read(in, name) }

func (h *History) read(in io.Reader, name string) (*History, error) {
	end, err := durable.Lines(in, name, func(line []byte, end durable.End) error {
		c, err := decode(line)
		if c.Version > version { // whatever else it says
			return fmt.Errorf("%s: a journal of version %d, which is later than this paceline's (%d): go on with the one that wrote it", name, c.Version, version)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: no journal of paceline, or damaged (%w): without it nobody knows which windows are filled and what was sent unanswered; move it away to go on as if all were filled", name, end.Lines, err)
		}
		h.add(c)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case end.Lines > 0:
	case len(end.Rest) == 0:
		h.Gone = "is empty"
	default:
		h.Gone = "has not one whole line"
	}
	return h, nil
}

// add takes in one record.
func (h *History) add(c record) {
	h.Last = max(h.Last, c.Send, c.Answer)
	switch {
	case c.Run != "":
		if c.At == 0 { // of version 1
			at, _ := time.Parse(stamp, c.Run)
			c.At = max(at.UnixNano(), 0)
		}
		h.run = c
		h.alive(c.At)
	case c.Send > 0:
		h.Nonces[c.Key] = max(h.Nonces[c.Key], c.Nonce)
		h.unanswered[c.Send] = sent{c.ID, c.Attempt, c.Key, c.Nonce, c.Cost, c.Tokens, c.Price, c.At}
		h.alive(c.At)
	case c.Answer > 0:
		result, isResult := results[c.Result]
		if result == limit.Unknown {
			h.alive(c.At - int64(Late))
		} else {
			h.alive(c.At)
		}
		o, known := h.unanswered[c.Answer]
		if !known || !isResult {
			return // its send went with a compaction
		}
		delete(h.unanswered, c.Answer)
		h.Spent += c.Price
		if c.Hold > 0 {
			h.Holds[o.Key] = max(h.Holds[o.Key], c.Hold)
		}
		// Accepted is in doubt until its result is found: after a power cut it may be gone.
		if o.ID != "" && !h.compacts && (result == limit.Accepted || c.Doubt != "") {
			h.Doubts[o.ID] = struct{}{}
		}
		if result != limit.Unsent {
			if c.Tokens != ([3]int64{}) {
				o.Tokens = c.Tokens
			}
			h.Sends = append(h.Sends, Sent{o.Key, o.cost(), c.At, result, o.At})
		}
	case c.Spent > 0:
		h.Spent += c.Spent
	case c.Read > 0:
		h.Reads[c.ID] = c.Read
	case c.Start > 0:
		h.Starts = append(h.Starts, Start{c.Start, c.Lines, c.Sum})
	case c.Doubt != "":
		h.Doubts[c.Doubt] = struct{}{}
	case c.Fit != nil:
		h.learn(c.Key, *c.Fit)
	case c.Key != "":
		h.Nonces[c.Key] = max(h.Nonces[c.Key], c.Nonce)
		h.Holds[c.Key] = max(h.Holds[c.Key], c.Hold)
	}
}

// alive notes when a process was. Version 1 had the wall clock, which may be set back in the middle of a run: there the last
// that was written is the latest.
func (h *History) alive(at int64) {
	if at > h.latest || h.run.Version < 2 {
		h.latest = at
	}
}

// moved puts every instant on a scale on which the latest is at to.
func (h *History) moved(to int64) {
	by := to - h.latest
	if h.latest == 0 { // nothing says when it was
		by = 0
	}
	for i := range h.Sends {
		h.Sends[i].Counts += by
		h.Sends[i].at += by
	}
	for n, o := range h.unanswered {
		o.At += by
		h.unanswered[n] = o
	}
	for key, until := range h.Holds {
		if until > 0 {
			h.Holds[key] = until + by
		}
	}
	for _, all := range h.Fits {
		for i := range all {
			all[i].Lesson = all[i].Moved(time.Duration(by))
		}
	}
	h.latest = to
}

// died settles what the process that wrote the journal left unanswered. slept is the most that it may have slept since;
// negative: any time.
func (h *History) died(now int64, slept time.Duration) {
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		o := h.unanswered[n]
		// A living process would have written how it ended within its timeout, of which none passes in sleep. So it was dead
		// by then.
		end := now
		if timeout := h.run.Timeout; timeout > 0 && slept >= 0 && o.At < now && now-o.At-int64(slept) > timeout {
			end = o.At + timeout + int64(slept)
		}
		h.Spent += o.Price
		h.Sends = append(h.Sends, Sent{o.Key, o.cost(), end + int64(Late), limit.Unknown, o.At})
		if o.ID != "" {
			h.Doubts[o.ID] = struct{}{}
			h.Open[o.ID] = struct{}{}
		}
	}
	clear(h.unanswered)
}

// forget leaves out what counted before from.
func (h *History) forget(from int64) {
	h.Sends = slices.DeleteFunc(h.Sends, func(s Sent) bool { return s.Counts <= from })
	slices.SortStableFunc(h.Sends, func(a, b Sent) int { return cmp.Compare(a.Counts, b.Counts) })
}
