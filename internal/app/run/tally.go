package run

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/dead"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/tokens"
)

// Totals count the ends of the input's requests.
type Totals struct {
	Input       int `json:"input"`            // valid requests read
	Invalid     int `json:"invalid"`          // lines that are no valid requests
	SkippedDone int `json:"skipped_done"`     // done in a run before
	SkippedDead int `json:"skipped_dead"`     // dead letters of a run before
	Offered     int `json:"offered"`          // the other requests that were read
	Sends       int `json:"sends"`            // attempts that were written
	Done        int `json:"done"`             //
	Rejected    int `json:"rejected"`         // answers 429, and refusals by a limit with another status
	Expired     int `json:"expired"`          //
	Dead        int `json:"dead"`             //
	Left        int `json:"left"`             // not ended: another run resumes
	Repeats     int `json:"possible_repeats"` //
	Partly      int `json:"partly,omitempty"` // those of Done that were served in part
	Unwritten   int `json:"unwritten"`        // those of Left that ended, but whose result could not be written
	Lost        int `json:"lost"`             // requests that none of these counts

	Pages int `json:"pages,omitempty"` // those of Input that are pages after the first of a line
	Cut   int `json:"cut,omitempty"`   // lines with more pages than allowed

	Late int `json:"late,omitempty"` // those of Done that were answered at their deadline or later

	SkippedExpired int `json:"skipped_expired,omitempty"` // expired in a run before

	Appended int `json:"appended,omitempty"` // lines added to the input after its check; not in Input

	SelectFailed int `json:"select_failed,omitempty"` // answers for which an expression of --select failed

	InputTokens  int64 `json:"input_tokens,omitempty"`  // of Done, as the answers report
	OutputTokens int64 `json:"output_tokens,omitempty"` //
	Overruns     int   `json:"overruns,omitempty"`      // answers that had more output than was reserved

	Cost    int64   `json:"cost"`    // of Sends
	Seconds float64 `json:"seconds"` // from the first send to the last answer
	Rate    float64 `json:"rate"`    // Done per second
	// Ceiling is the most cost per second that the limits, full at the start, and the order of
	// nonces allow in so many Seconds.
	Ceiling float64 `json:"ceiling,omitempty"`
	Percent float64 `json:"percent_of_ceiling,omitempty"` // how much of the Ceiling was sent

	Sustained float64 `json:"ceiling_sustained,omitempty"` // Ceiling in the long run

	USD float64 `json:"usd_spent,omitempty"` // by this run and earlier ones, as far as prices were given

	// Found has the limits that the keys found out.
	Found []Found `json:"found,omitempty"`

	Latency *LatencyMS  `json:"latency_ms,omitempty"` // of answers
	Failed  []Failure   `json:"failed_attempts,omitempty"`
	Keys    []KeyTotals `json:"keys,omitempty"`

	// Models are those of a batch for language models, the one with the most done requests first.
	// PricesAsOf is the date on which their prices were looked up. It is empty if the user gave the
	// prices.
	Models     []ModelTotals `json:"models,omitempty"`
	PricesAsOf string        `json:"prices_as_of,omitempty"`
}

// toGo returns how many requests of the input have not ended.
func (n *Totals) toGo() int {
	return max(n.Input-n.before()-n.Done-n.Dead-n.Expired, 0)
}

// before returns how many requests of the input ended in an earlier run.
func (n *Totals) before() int { return n.SkippedDone + n.SkippedDead + n.SkippedExpired }

// These bits are the state of an id. Its line in the input is beside them (0: none so far).
const (
	inOut     = 1 << iota // OUT says done
	inExpired             // OUT says expired
	inDead                // the dead letters have it
	backOut               // found when OUT was read back
	backDead              // found when the dead letters were read back
	classBit  = iota      // the class of a dead letter, in four bits
	flagBits  = classBit + 4
	classMask = 15 << classBit

	// The other bits are the digest of its request (0: not known) and the line.
	digestBits = 25
	digestMask = 1<<digestBits - 1
	lineShift  = flagBits + digestBits
)

// ledger has every id of the input and of the files of earlier runs. It takes about 50 bytes an id.
type ledger map[format.Hash]standing

// standing is the state of an id.
type standing uint64

func (l ledger) mark(d format.Hash, flag standing)     { l[d] |= flag }
func (l ledger) has(d format.Hash, flag standing) bool { return l[d].has(flag) }

func (s standing) has(flag standing) bool { return s&flag != 0 }

// dead notes that the id has a dead letter of class c. The last dead letter of an id counts.
func (s standing) dead(c dead.Class) standing { return s&^classMask | inDead | standing(c)<<classBit }

// class returns the class of the id's dead letter.
func (s standing) class() dead.Class { return dead.Class(s & classMask >> classBit) }

// at notes the line of the input that has the id. line returns it, or 0 if there is none so far.
func (s standing) at(line int) standing { return s&(1<<lineShift-1) | standing(line)<<lineShift }
func (s standing) line() int            { return int(s >> lineShift) }

// of notes bits of the digest of the id's request, unless they are 0. request returns them, or 0 if
// they are not known.
func (s standing) of(bits uint64) standing {
	if bits == 0 {
		return s
	}
	return s&^(digestMask<<flagBits) | standing(bits)<<flagBits
}
func (s standing) request() uint64 { return uint64(s >> flagBits & digestMask) }

// bitsOf returns as many bits of a digest as the ledger has room for. With so few, one changed request
// in 33 million goes unnoticed.
func bitsOf(d format.Digest) uint64 {
	n, err := strconv.ParseUint(string(d), 16, 64)
	if err != nil {
		return 0
	}
	return max(n&digestMask, 1)
}

// missing returns how many ids of the input were missing when the files were read back.
func (l ledger) missing() (n int) {
	for _, s := range l {
		if s.line() != 0 && !s.has(backOut|backDead) {
			n++
		}
	}
	return n
}

// mostReasons bounds the memory for reasons that all differ.
const mostReasons = 100

// reason is a reason that several dead requests have, in the words of the first of them.
type reason struct {
	first string
	n     int
}

// tally counts requests and attempts. Its methods are safe for concurrent use. Before Send and
// after it, only one goroutine uses it.
type tally struct {
	retry dead.Set // which dead letters are sent again

	mu      sync.Mutex
	ledger  ledger
	checked bool // the first pass counted the input
	totals  Totals
	uses    []use              // one for each group
	busy    time.Duration      // sum of the latencies of all answers
	reasons map[string]*reason // reasons for dead requests; similar reasons are one
	bad     dead.Ends          // of this run, with the dead letters of earlier runs that are not sent again
	first   time.Time          // when the first attempt was sent
	final   time.Time          // when the latest answer came
	figures figures
	failed  failures
	pace    pace
	models  map[string]*ModelTotals
}

// add adds c to *to, by times.
func add(to *limit.Cost, c limit.Cost, by int64) {
	for u := range to {
		to[u] += by * c[u]
	}
}

func (t *tally) count(n *int, by int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*n += by
}

// past returns the counter for a request that ended in an earlier run and is not sent again. It is
// nil if the request is sent. t.mu is held.
func (t *tally) past(s standing) *int {
	switch {
	case s.has(inOut):
		return &t.totals.SkippedDone
	case t.again(s):
		return nil
	case s.has(inExpired):
		return &t.totals.SkippedExpired
	case s.has(inDead):
		return &t.totals.SkippedDead
	}
	return nil
}

// again reports whether a request that died or expired in an earlier run is sent again. If it did
// both, the order is not known. Then it is sent again if either is asked for.
func (t *tally) again(s standing) bool {
	return !s.has(inOut) && (s.has(inDead) && t.retry.Has(s.class()) || s.has(inExpired) && t.retry&dead.TheExpired != 0)
}

// wasRefused reports whether a request became a dead letter of class refused in an earlier run.
func (t *tally) wasRefused(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.ledger[format.HashOf(id)]
	return is.has(inDead) && is.class() == dead.Refused
}

// isAgain is again, for callers that do not hold the lock.
func (t *tally) isAgain(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.again(t.ledger[format.HashOf(id)])
}

// skip counts a request that ended in an earlier run.
func (t *tally) skip(s standing, as *int) {
	*as++
	if as == &t.totals.SkippedDead {
		t.bad.Dead[s.class()]++
	}
}

// skipped counts the requests of the input that ended in earlier runs.
func (t *tally) skipped() {
	for _, s := range t.ledger {
		if n := t.past(s); n != nil && s.line() != 0 {
			t.skip(s, n)
		}
	}
}

// read counts a request that was read to be sent. It returns false if the request ended in an
// earlier run, and is not sent.
func (t *tally) read(q *format.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.ledger[q.Hash]
	past := t.past(is)
	if past != nil {
		add(&t.uses[0].remaining, q.Cost, -1) // in a batch for language models the cost of such a request is 0
	}
	if !t.checked { // otherwise the check has counted both
		t.totals.Input++
		if past != nil {
			t.skip(is, past)
		}
	}
	return past == nil
}

// turned counts a page after the first. It returns false if the page ended in an earlier run, and
// is not sent.
func (t *tally) turned(q *format.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.ledger[q.Hash].at(q.Line)
	t.ledger[q.Hash] = is
	t.totals.Input++
	t.totals.Pages++
	past := t.past(is)
	if past != nil {
		t.skip(is, past)
		return false
	}
	add(&t.uses[0].remaining, q.Cost, 1)
	return true
}

// isDone reports whether a request was done in an earlier run.
func (t *tally) isDone(d format.Hash) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ledger.has(d, inOut)
}

// sent counts an attempt. It reports whether a limit refused it.
func (t *tally) sent(group, key int, res *response, result limit.Result, cost limit.Cost) (refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if res.written {
		if t.first.IsZero() {
			t.first = res.began
		}
		t.final = res.ended
		t.totals.Sends++
		t.busy += res.ended.Sub(res.began)
		t.totals.Cost += cost[limit.Requests]
		add(&t.uses[group].spent, cost, 1)
		t.figures.sent(group, key, res.ended.Sub(res.began), res.status != 0, cost)
	}
	if refused = result == limit.Limited || res.status == http.StatusTooManyRequests; refused {
		t.totals.Rejected++
		t.figures.keys[key].Rejected++
	}
	return refused
}

// used adds the tokens that the answer of a model reports.
func (t *tally) used(model string, u tokens.Usage, overrun bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.model(model)
	m.InputTokens += u.Input
	m.OutputTokens += u.Output
	t.totals.InputTokens += u.Input
	t.totals.OutputTokens += u.Output
	if overrun {
		t.totals.Overruns++
	}
}

// ended counts requests that have ended. blind says that their lines cannot be read back.
func (t *tally) ended(all []ended, blind bool) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range all {
		t.endedLocked(&all[i], now, blind)
	}
}

func (t *tally) endedLocked(e *ended, now time.Time, blind bool) {
	j := e.job
	add(&t.uses[j.group.index].remaining, j.r.Cost, -1)
	t.pace.ended(now)
	if !e.written {
		t.totals.Unwritten++
		return
	}
	back := standing(backOut)
	switch e.State {
	case pool.Dead:
		t.totals.Dead++
		t.bad.Dead[deadOf(j, e.Ended)]++
		if j.keyHost {
			t.bad.KeyHost++
		}
		t.because(e.Reason)
		if j.failed != "" {
			t.failed.count(now, j.failed, "", 0, 1)
		}
		back = backDead
	case pool.Done:
		if t.totals.Done++; e.Late {
			t.totals.Late++
		}
		t.figures.keys[j.keyIndex].Done++
		if j.parts != nil {
			t.totals.Partly++
		}
		if name := j.r.Estimate.Model; name != "" {
			t.model(name).Done++
		}
	default:
		t.totals.Expired++
		if j.r.At.IsZero() {
			t.bad.Lapsed++
		}
	}
	if blind {
		t.ledger.mark(j.r.Hash, back)
	}
	if j.repeat {
		t.totals.Repeats++
	}
}

// goesAgain is again, for the id with this hash.
func (t *tally) goesAgain(h format.Hash) bool { return t.again(t.ledger[h]) }

// back notes that the files have a request when they are read back.
func (t *tally) back(h format.Hash, dead bool) {
	if dead {
		t.ledger.mark(h, backDead)
	} else {
		t.ledger.mark(h, backOut)
	}
}

// because counts the reason of a dead request.
func (t *tally) because(text string) {
	group := dead.Alike(text)
	r := t.reasons[group]
	if r == nil {
		if len(t.reasons) >= mostReasons {
			return
		}
		r = &reason{first: text}
		t.reasons[group] = r
	}
	r.n++
}

// finished reports whether nothing of the input is left. If the input was checked, the counts
// decide. Otherwise whole does: it says that the input was read to its end.
func (t *tally) finished(whole bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.totals
	if t.checked {
		return n.Input <= n.before()+n.Done+n.Expired+n.Dead
	}
	return whole
}

// close compares the counts with the files that were read back. waiting is how many requests the
// Pools still have.
func (t *tally) close(waiting int) (Totals, error) {
	n := t.totals
	missing := t.ledger.missing()
	unread := n.Input - n.Offered - n.before()
	n.Left = waiting + unread + n.Unwritten
	n.Lost = missing - n.Left
	if n.Lost < 0 {
		n.Lost = 0
		return n, fmt.Errorf("the counts do not add up: %d requests have no end state, but %d are known to be left",
			missing, n.Left)
	}
	return n, nil
}

// deadBecause returns the most frequent reason for dead letters, how many have it, and how many
// there are. most is empty if there are none.
func (t *tally) deadBecause() (most string, n, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.reasons {
		if r.n > n || r.n == n && r.first < most {
			most, n = r.first, r.n
		}
	}
	return most, n, t.totals.Dead
}
