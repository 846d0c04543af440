package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/durable"
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

// History is what the runs before left.
type History struct {
	Last   int64               // number of the latest send; 0: there was none
	Sends  []Sent              // by Counts
	Nonces map[string]uint64   // the last of each key
	Holds  map[string]int64    // until when each key was told to stay away (ns since 1970)
	Doubts map[string]struct{} // ids that may have been served
	Open   map[string]struct{} // of these, ids that were unanswered when the process died

	unanswered map[int64]unanswered // by number
}

type unanswered struct {
	record
	timeout int64 // of the run that sent it
}

func newHistory() *History {
	return &History{
		Nonces: map[string]uint64{}, Holds: map[string]int64{},
		Doubts: map[string]struct{}{}, Open: map[string]struct{}{}, unanswered: map[int64]unanswered{},
	}
}

var results = map[string]limit.Result{
	limit.Unknown.String(): limit.Unknown, limit.Accepted.String(): limit.Accepted, limit.Limited.String(): limit.Limited,
	limit.Failed.String(): limit.Failed, limit.Unsent.String(): limit.Unsent,
}

// read reads what is there. What may have been counted before from (ns since 1970) is left out. What is no journal is
// refused; a last line without its end is what a crash leaves, and left out.
func read(in io.Reader, name string, from int64) (*History, error) {
	h := newHistory()
	timeout := int64(math.MaxInt64)
	_, err := durable.Lines(in, name, func(line []byte, end durable.End) error {
		var c record
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return fmt.Errorf("%s:%d: no journal of paceline, or damaged (%w): without it nobody knows which windows are filled and what was sent unanswered; move it away to go on like that", name, end.Lines, err)
		}
		if c.Run != "" {
			if timeout = c.Timeout; timeout <= 0 {
				timeout = math.MaxInt64
			}
		}
		h.add(c, timeout, from)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// add takes in one record.
func (h *History) add(c record, timeout, from int64) {
	h.Last = max(h.Last, c.Send, c.Answer)
	switch {
	case c.Run != "":
	case c.Send > 0:
		h.Nonces[c.Key] = max(h.Nonces[c.Key], c.Nonce)
		h.unanswered[c.Send] = unanswered{c, timeout}
	case c.Answer > 0:
		o, known := h.unanswered[c.Answer]
		result, isResult := results[c.Result]
		if !known || !isResult {
			return // its send went with a compaction
		}
		delete(h.unanswered, c.Answer)
		if c.Hold > 0 {
			h.Holds[o.Key] = max(h.Holds[o.Key], c.Hold)
		}
		// Accepted is in doubt until its result is found: after a power cut it may be gone.
		if o.ID != "" && (result == limit.Accepted || c.Doubt != "") {
			h.Doubts[o.ID] = struct{}{}
		}
		if result != limit.Unsent && c.At > from {
			if c.Tokens != ([3]int64{}) {
				o.Tokens = c.Tokens
			}
			h.Sends = append(h.Sends, Sent{o.Key, o.cost(), c.At, result, o.At})
		}
	case c.Doubt != "":
		h.Doubts[c.Doubt] = struct{}{}
	case c.Key != "":
		h.Nonces[c.Key] = max(h.Nonces[c.Key], c.Nonce)
		h.Holds[c.Key] = max(h.Holds[c.Key], c.Hold)
	}
}

// died settles what the process that wrote the journal left unanswered.
func (h *History) died(now, from int64) {
	for _, n := range slices.Sorted(maps.Keys(h.unanswered)) {
		o := h.unanswered[n]
		// A living process would have written how it ended within its timeout. So it was dead by then.
		end := now
		if o.At < now && now-o.At > o.timeout {
			end = o.At + o.timeout
		}
		if counts := end + int64(Late); counts > from {
			h.Sends = append(h.Sends, Sent{o.Key, o.cost(), counts, limit.Unknown, o.At})
		}
		if o.ID != "" {
			h.Doubts[o.ID] = struct{}{}
			h.Open[o.ID] = struct{}{}
		}
	}
	clear(h.unanswered)
	slices.SortStableFunc(h.Sends, func(a, b Sent) int { return cmp.Compare(a.Counts, b.Counts) })
}
