package journal

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
)

// record is one line of the journal. Its kind is the first of these fields that is set: Run, Send,
// Answer, Spent, Read, Start, Doubt, Fit, Memory, Whose. A record with none of them has the Nonce
// and Hold of a Key.
type record struct {
	// Run begins the part of one process. Its attempts ended within Timeout (ns), answered or not.
	// Of the sends before that part, the file has those that counted within Keep (ns).
	Run     string `json:"run,omitempty"`
	Version int    `json:"version,omitempty"` // 0 stands for version 1, which had no clock
	Timeout int64  `json:"timeout,omitempty"`
	Keep    int64  `json:"keep,omitempty"`

	// Boot, Up and Awake are the machine's clock At the beginning of a Run: see boottime.Reading.
	Boot  string `json:"boot,omitempty"`
	Up    int64  `json:"up,omitempty"`
	Awake int64  `json:"awake,omitempty"`

	// Send is the number of an attempt, counted over all runs. It is written before the attempt is
	// sent.
	Send    int64  `json:"send,omitempty"`
	ID      string `json:"id,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Key     string `json:"key,omitempty"`
	Nonce   uint64 `json:"nonce,omitempty"`
	Cost    int64  `json:"cost,omitempty"` // requests

	// Tokens are input, output and both, as the limits count them. Rest is weight, orders, money
	// and other units. A Send has the admitted amounts. An Answer has the settled amounts, if it is
	// Settled (1) or, in version 3 and before, if they are not 0.
	Tokens  [3]int64 `json:"tokens,omitzero"`
	Rest    [4]int64 `json:"rest,omitzero"`
	Settled int64    `json:"settled,omitempty"`

	// Held is 1 for a Send of another program, which reports its end. Timeout does not bound it.
	Held int64 `json:"held,omitempty"`

	// Answer is the number of a send that has ended. If the request ended with it, the result was
	// written before this.
	Answer int64  `json:"answer,omitempty"`
	Result string `json:"result,omitempty"`

	// Doubt is the id of a request that may have been served although no result says so. An Answer
	// can have it, too.
	Doubt string `json:"doubt,omitempty"`

	// Hold is the instant from which Key may be used again, at the server's request.
	Hold int64 `json:"hold,omitempty"`

	// Price is in billionths of a dollar: the largest possible price of a Send, the real price of
	// an Answer. Spent is the price of all attempts that had ended at the compaction.
	Price int64 `json:"price,omitempty"`
	Spent int64 `json:"spent,omitempty"`

	// Read is when the request ID was read, if its deadline runs from then. It is in ns since 1970,
	// by the wall clock.
	Read int64 `json:"read,omitempty"`

	// Start is when the time of the first Lines lines of an input began to run, by the same clock.
	// Sum is a checksum of those lines.
	Start int64  `json:"start,omitempty"`
	Lines int    `json:"lines,omitempty"`
	Sum   uint64 `json:"sum,omitempty"`

	// Fit is a lesson about a limit of Key.
	Fit *Fit `json:"fit,omitempty"`

	// Whose is the organization of Key, as an answer has named it.
	Whose string `json:"whose,omitempty"`
	// Memory is the memory of a limiter of Key At that instant, in base64.
	Memory string `json:"memory,omitempty"`

	// At is the beginning of a Run, or the instant of a Send. In an Answer it is the latest instant
	// at which the server may have counted the request. Every instant is in ns since 1970, by the
	// wall clock at the beginning of the run. After that it follows the machine's own clock, which
	// no user sets.
	At int64 `json:"at,omitempty"`
}

// version is the version of new journals. Version 2 had no Fit, version 3 neither Rest nor Settled,
// version 4 neither Memory nor Whose, version 5 no Held. A journal of a later version is refused: this
// program may not understand it.
const version = 6

const stamp = "2006-01-02T15:04:05.000Z"

// began is the machine's clock at the beginning of the run.
func (r *record) began() boottime.Reading {
	return boottime.Reading{Boot: r.Boot, Up: time.Duration(r.Up), Awake: time.Duration(r.Awake)}
}

func (r *record) setCost(c limit.Cost) {
	r.Cost = c[limit.Requests]
	r.Tokens, r.Rest = amounts(&c)
}

// amounts are the Tokens and the Rest of a cost.
func amounts(c *limit.Cost) (tokens [3]int64, rest [4]int64) {
	return [3]int64{c[limit.Input], c[limit.Output], c[limit.Tokens]},
		[4]int64{c[limit.Weight], c[limit.Orders], c[limit.Money], c[limit.Other]}
}

// sent is the part of a record about a send. It has a third of the size of a record, since a
// compaction holds all of them in memory.
type sent struct {
	ID      string
	Attempt int
	Key     string
	Nonce   uint64
	Cost    int64
	Tokens  [3]int64
	Rest    [4]int64
	Price   int64
	At      int64
	Held    int64
}

func (s *sent) cost() limit.Cost {
	return limit.Cost{
		limit.Requests: s.Cost, limit.Input: s.Tokens[0], limit.Output: s.Tokens[1], limit.Tokens: s.Tokens[2],
		limit.Weight: s.Rest[0], limit.Orders: s.Rest[1], limit.Money: s.Rest[2], limit.Other: s.Rest[3],
	}
}

// Late is how long after an unknown outcome a request may still arrive, as in limit.Arrivals.
const Late = 5 * time.Second

// Sent is a send that still counts.
type Sent struct {
	Key    string
	Cost   limit.Cost
	Counts int64 // the latest instant at which the server may have counted it (ns since 1970)
	Result limit.Result
	Sent   int64 // when it was sent
}

// Memory is the memory of a limiter at an instant, in the limiter's own format.
type Memory struct {
	At      int64 // ns since 1970; where the History is Undated, it may be earlier
	Written []byte
}

// History is the content that earlier runs left. Its instants are on the scale of the run that
// reads it.
type History struct {
	// Gone says why the sends are not known. It is empty if they are.
	Gone   string
	Last   int64               // the number of the latest send; 0: there was none
	Sends  []Sent              // sorted by Counts
	Nonces map[string]uint64   // the last nonce of each key
	Holds  map[string]int64    // until when a server asked each key to pause (ns since 1970)
	Doubts map[string]struct{} // ids that may have been served
	Open   map[string]struct{} // those of Doubts that were unanswered when the process died
	Failed map[string]struct{} // those of Doubts whose latest attempt was answered, and may hide that it was served
	Reads  map[string]int64    // when requests that have not ended were read, if Journal.Read recorded it
	Spent  int64               // the cost of all sends that had a Price, in billionths of a dollar
	Starts []Start             // of all inputs, the latest last
	Fits   map[string][]Fit    // of each key one Fit for each limit, the latest last
	Whose  map[string]string   // the organization of each key of which one is known
	// Memories are the latest memory of each key's limiter, for the mostMemories keys that were
	// written last.
	Memories map[string]Memory
	// Torn means that the file ended within a line, so that more may be missing. Until is the latest
	// instant of its records, as they were written (ns since 1970).
	Torn  bool
	Until int64
	// Undated means that the age of the latest record is not known, so that it counts as written
	// now.
	Undated bool

	run        record         // the last record with a Run
	latest     int64          // the latest instant at which a process was surely alive
	compacts   bool           // read for a compaction: the Journal knows the doubts
	unanswered map[int64]sent // by the number of the send
}

// Start is when the time of the first Lines lines of an input began to run (ns since 1970). It is
// by the wall clock, since deadlines are for people. Sum is a checksum of those lines: several
// inputs may write to one file of results, one after the other.
type Start struct {
	At    int64
	Lines int
	Sum   uint64
}

// Fit is a lesson about a wrong limit. Its instants are on the scale of the journal.
type Fit struct {
	Limit string `json:"limit"` // the caller's name of the limit
	limit.Lesson
}

// mostFits bounds the lessons of a key whose limits change again and again.
const mostFits = 16

// learn replaces the lesson about the same limit by a new one.
func (h *History) learn(key string, f Fit) {
	all := slices.DeleteFunc(h.Fits[key], func(old Fit) bool { return old.Limit == f.Limit })
	h.Fits[key] = append(all[max(len(all)-mostFits+1, 0):], f)
}

const (
	// mostMemories bounds the number of keys with a memory, since a proxy may have any number of
	// clients. memoryLasts bounds the age of a memory, since a server may have changed its limit in
	// a month.
	mostMemories = 1 << 10
	memoryLasts  = 30 * 24 * time.Hour
)

// remember replaces the memory of a key. A damaged text is passed on as it is: the limiter reports
// it.
func (h *History) remember(key, text string, at int64) {
	written, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		written = []byte(text)
	}
	h.Memories[key] = Memory{at, written}
	if len(h.Memories) <= mostMemories {
		return
	}
	oldest := key
	for k, m := range h.Memories {
		if was := h.Memories[oldest].At; m.At < was || m.At == was && k < oldest {
			oldest = k
		}
	}
	delete(h.Memories, oldest)
}

func newHistory() *History {
	return &History{
		Nonces: map[string]uint64{}, Holds: map[string]int64{},
		Doubts: map[string]struct{}{}, Open: map[string]struct{}{}, Failed: map[string]struct{}{}, unanswered: map[int64]sent{}, Reads: map[string]int64{},
		Fits:     map[string][]Fit{},
		Memories: map[string]Memory{}, Whose: map[string]string{},
	}
}

var results = map[string]limit.Result{
	limit.Unknown.String(): limit.Unknown, limit.Accepted.String(): limit.Accepted, limit.Limited.String(): limit.Limited,
	limit.Failed.String(): limit.Failed, limit.Unsent.String(): limit.Unsent,
}

// read reads a journal. It refuses a line that is no record, or has more than a record. It leaves
// out a last line without its line break, which a crash has cut off.
func read(in io.Reader, name string) (*History, error) { return newHistory().read(in, name) }

func (h *History) read(in io.Reader, name string) (*History, error) {
	end, err := durable.Lines(in, name, func(line []byte, end durable.End) error {
		c, err := decode(line)
		if c.Version > version { // before the check of err: a later version may have fields that decode refuses
			return fmt.Errorf("%s: a journal of version %d, which is later than this paceline's (%d): go on with the one that "+
				"wrote it", name, c.Version, version)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: no journal of paceline, or damaged (%w): without it nobody knows which windows are "+
				"filled and what was sent unanswered; move it away to go on as if all were filled", name, end.Lines, err)
		}
		h.add(c)
		return nil
	})
	h.Torn, h.Until = len(end.Rest) > 0, h.latest
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

// add applies one record.
func (h *History) add(c record) {
	h.Last = max(h.Last, c.Send, c.Answer)
	switch {
	case c.Run != "":
		if c.At == 0 { // version 1 did not write it
			at, _ := time.Parse(stamp, c.Run)
			c.At = max(at.UnixNano(), 0)
		}
		h.run = c
		h.alive(c.At)
	case c.Send > 0:
		if c.Nonce > 0 { // a proxy has no nonces, and too many keys to remember
			h.Nonces[c.Key] = max(h.Nonces[c.Key], c.Nonce)
		}
		delete(h.Failed, c.ID)
		h.unanswered[c.Send] = sent{c.ID, c.Attempt, c.Key, c.Nonce, c.Cost, c.Tokens, c.Rest, c.Price, c.At, c.Held}
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
			return // a compaction dropped its send
		}
		delete(h.unanswered, c.Answer)
		h.Spent += c.Price
		if c.Hold > 0 {
			h.Holds[o.Key] = max(h.Holds[o.Key], c.Hold)
		}
		// An accepted request is in doubt until its result is found: a power cut may have lost the
		// result.
		if o.ID != "" && !h.compacts && (result == limit.Accepted || c.Doubt != "") {
			h.Doubts[o.ID] = struct{}{}
			if result == limit.Failed {
				h.Failed[o.ID] = struct{}{}
			}
		}
		if result != limit.Unsent {
			switch {
			case c.Settled != 0:
				o.Tokens, o.Rest = c.Tokens, c.Rest
			case c.Tokens != ([3]int64{}):
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
		if c.Result == limit.Failed.String() {
			h.Failed[c.Doubt] = struct{}{}
		}
	case c.Fit != nil:
		h.learn(c.Key, *c.Fit)
	case c.Whose != "":
		h.Whose[c.Key] = c.Whose
	case c.Memory != "":
		h.remember(c.Key, c.Memory, c.At)
		h.alive(c.At)
	case c.Key != "":
		h.Nonces[c.Key] = max(h.Nonces[c.Key], c.Nonce)
		h.Holds[c.Key] = max(h.Holds[c.Key], c.Hold)
	}
}

// alive notes an instant at which a process was alive. Version 1 used the wall clock, which may be
// set back during a run: there the last record counts as the latest.
func (h *History) alive(at int64) {
	if at > h.latest || h.run.Version < 2 {
		h.latest = at
	}
}

// moved shifts all instants, so that the latest is at to.
func (h *History) moved(to int64) {
	by := to - h.latest
	if h.latest == 0 { // no record says when it was written
		by = 0
	}
	for i := range h.Sends {
		h.Sends[i].Counts += by
		h.Sends[i].Sent += by
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
	for key, m := range h.Memories {
		m.At += by
		h.Memories[key] = m
	}
	h.latest = to
}

func (h *History) hasFailed(id string) bool {
	_, is := h.Failed[id]
	return is
}

// Underway is a send without an answer of a process that still waits for one.
type Underway struct {
	Send int64 // its number, for Answer
	Key  string
	Cost limit.Cost
	Sent int64 // when it was sent (ns since 1970)
}

// Underway are the sends without an answer, in the order of their numbers: see Config.Alive.
func (h *History) Underway() (all []Underway) {
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		o := h.unanswered[n]
		all = append(all, Underway{n, o.Key, o.cost(), o.At})
	}
	return all
}

// died settles the sends without an answer of the process that wrote the journal. slept is the
// longest time that the machine may have slept since then; negative: not known.
func (h *History) died(now int64, slept time.Duration) {
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		o := h.unanswered[n]
		// A live process records the end of an attempt within its timeout, which does not run while
		// the machine sleeps. So after that time the process was dead.
		end := now
		bound := h.run.Timeout > 0 && o.Held == 0 && slept >= 0 && o.At < now
		if timeout := h.run.Timeout; bound && now-o.At-int64(slept) > timeout {
			end = o.At + timeout + int64(slept)
		}
		h.Spent += o.Price
		h.Sends = append(h.Sends, Sent{o.Key, o.cost(), end + int64(Late), limit.Unknown, o.At})
		if o.ID != "" {
			h.Doubts[o.ID] = struct{}{}
			h.Open[o.ID] = struct{}{}
			delete(h.Failed, o.ID)
		}
	}
	clear(h.unanswered)
}

// forget drops the sends that counted no later than from.
func (h *History) forget(from int64) {
	h.Sends = slices.DeleteFunc(h.Sends, func(s Sent) bool { return s.Counts <= from })
	slices.SortStableFunc(h.Sends, func(a, b Sent) int { return cmp.Compare(a.Counts, b.Counts) })
}
