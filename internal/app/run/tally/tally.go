package tally

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/tokens"
)

// Totals count the ends of the input's requests.
type Totals struct {
	Input       int `json:"input"`                   // valid requests read
	Invalid     int `json:"invalid"`                 // lines that are no valid requests
	SkippedDone int `json:"skipped_done"`            // done in a run before
	SkippedDead int `json:"skipped_dead"`            // dead letters of a run before
	Offered     int `json:"offered"`                 // the other requests that were read
	Sends       int `json:"sends"`                   // attempts that were written
	Done        int `json:"done"`                    //
	Rejected    int `json:"rejected"`                // answers 429, and refusals by a limit with another status
	ClientError int `json:"client_errors,omitempty"` // other answers of a status from 400 to 499
	Expired     int `json:"expired"`                 //
	Dead        int `json:"dead"`                    //
	Left        int `json:"left"`                    // not ended: another run resumes
	Repeats     int `json:"possible_repeats"`        //
	Partly      int `json:"partly,omitempty"`        // those of Done that were served in part
	Length      int `json:"length,omitempty"`        // those of Done whose answers were cut at the bound of their output
	Unwritten   int `json:"unwritten"`               // those of Left that ended, but whose result could not be written
	Lost        int `json:"lost"`                    // requests that none of these counts

	Pages int `json:"pages,omitempty"` // those of Input that are pages after the first of a line
	Cut   int `json:"cut,omitempty"`   // lines with more pages than allowed

	Rounds  int     `json:"rounds,omitempty"`        // the number of the latest round, if requests are asked again and again
	Skipped int     `json:"skipped_turns,omitempty"` // turns that were not asked, since the one before was still open
	Age     *AgesMS `json:"age_ms,omitempty"`        // of the latest answers, over the run

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
	OfLimit float64 `json:"percent_of_limit,omitempty"`   // how much of the limits alone, as they were over time
	AtOnce  bool    `json:"-"`                            // the limits let all of it go at once: percentages say nothing

	Sustained float64 `json:"ceiling_sustained,omitempty"` // Ceiling in the long run

	USD float64 `json:"usd_spent,omitempty"` // by this run and earlier ones, as far as prices were given

	// Found has the limits that the keys found out.
	Found []Found `json:"found,omitempty"`

	// OutOfUse are the keys that the server refused for good.
	OutOfUse []string `json:"keys_out_of_use,omitempty"`

	Latency *LatencyMS  `json:"latency_ms,omitempty"` // of answers
	Failed  []Failure   `json:"failed_attempts,omitempty"`
	Keys    []KeyTotals `json:"keys,omitempty"`

	// Models are those of a batch for language models, the one with the most done requests first.
	// PricesAsOf is the date on which their prices were looked up. It is empty if the user gave the
	// prices.
	Models     []ModelTotals `json:"models,omitempty"`
	PricesAsOf string        `json:"prices_as_of,omitempty"`
}

// NotEnded returns how many requests of the input have not ended.
func (n *Totals) NotEnded() int {
	return max(n.Input-n.Before()-n.Done-n.Dead-n.Expired, 0)
}

// Before returns how many requests of the input ended in an earlier run.
func (n *Totals) Before() int { return n.SkippedDone + n.SkippedDead + n.SkippedExpired }

// These bits are the state of an id. Its line in the input is beside them (0: none so far).
const (
	inOut     = 1 << iota // OUT says done
	inExpired             // OUT says expired
	inDead                // the dead letters have it
	back                  // found when the files were read back
	classBit  = iota      // the class of a dead letter, in four bits
	flagBits  = classBit + 4
	classMask = 15 << classBit
	hasEnded  = inOut | inExpired | inDead

	// The other bits are the digest of its request (0: not known) and the line.
	digestBits = 25
	digestMask = 1<<digestBits - 1
	lineShift  = flagBits + digestBits
)

// ledger has every id of the input and of the files of earlier runs. It takes about 100 bytes an id.
type ledger map[format.Hash]standing

// standing is the state of an id.
type standing uint64

func (l ledger) mark(d format.Hash, flag standing)     { l[d] |= flag }
func (l ledger) has(d format.Hash, flag standing) bool { return l[d].has(flag) }

func (s standing) has(flag standing) bool { return s&flag != 0 }

// dead notes that the id has a dead letter of class c. The last dead letter of an id counts.
func (s standing) dead(c format.DeadClass) standing {
	return s&^classMask | inDead | standing(c)<<classBit
}

// class returns the class of the id's dead letter.
func (s standing) class() format.DeadClass { return format.DeadClass(s & classMask >> classBit) }

// both is the class of an id that is done, and whose answer was cut, and --select failed on it.
const both = format.DeadClass(classMask >> classBit)

// done notes that the id is done. cut says that its answer was cut at the bound of its output, and unselected that
// --select failed on it. The last answer of an id counts.
func (s standing) done(cut, unselected bool) standing {
	class := standing(0)
	switch {
	case cut && unselected:
		class = standing(both)
	case cut:
		class = standing(format.DeadLength)
	case unselected:
		class = standing(format.DeadUnselected)
	}
	return s&^classMask | inOut | class<<classBit
}

// askedFor reports whether an id that is done is sent again, for its answer is not whole.
func (s standing) askedFor(set format.DeadSet) bool {
	if c := s.class(); c != both {
		return c >= format.DeadLength && set.Has(c)
	}
	return set.Has(format.DeadLength) || set.Has(format.DeadUnselected)
}

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
		if s.line() != 0 && !s.has(back) {
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

// Tally counts requests and attempts. Its methods are safe for concurrent use. Before Send and
// after it, only one goroutine uses it.
type Tally struct {
	retry format.DeadSet // which dead letters are sent again

	Mu      sync.Mutex
	ledger  ledger
	resumes bool     // the ledger has marks of earlier runs
	unread  int      // ids in the ledger that no line of an input has: further pages, and invalid lines
	places  []placed // by the check; read without Mu
	Checked bool     // the first pass counted the input
	// Elsewhere says that others know which requests have ended: the ledger is empty.
	Elsewhere bool
	Totals    Totals
	Uses      []Use // one for each group
	// Resources are the costs of requests that have not ended, of each resource apart, if the input was checked.
	Resources map[string]limit.Cost
	Took      lately             // how long the latest answers took
	reasons   map[string]*reason // reasons for dead requests; similar reasons are one
	Bad       format.DeadEnds    // of this run, with the dead letters of earlier runs that are not sent again
	First     time.Time          // when the first attempt was sent
	Final     time.Time          // when the latest answer came
	Figures   figures
	Failed    failures
	Pace      pace
	Models    map[string]*ModelTotals
}

// New counts nothing yet. Dead letters in again are sent again.
func New(again format.DeadSet, f figures) *Tally {
	return &Tally{retry: again, ledger: ledger{}, reasons: map[string]*reason{}, Uses: make([]Use, 1), Figures: f}
}

// Add adds c to *to, by times.
func Add(to *limit.Cost, c limit.Cost, by int64) {
	for u := range to {
		to[u] += by * c[u]
	}
}

func (t *Tally) Count(n *int, by int) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	*n += by
}

// past returns the counter for a request that ended in an earlier run and is not sent again. It is
// nil if the request is sent. t.mu is held.
func (t *Tally) past(s standing) *int {
	switch {
	case s&hasEnded == 0, t.again(s): // so it is with most requests
		return nil
	case s.has(inOut):
		return &t.Totals.SkippedDone
	case s.has(inExpired):
		return &t.Totals.SkippedExpired
	}
	return &t.Totals.SkippedDead
}

// before returns the state of an id, and what past says of it. t.mu is held.
func (t *Tally) before(h format.Hash) (is standing, past *int) {
	if !t.resumes { // most runs are the first: no id has marks
		return 0, nil
	}
	is = t.ledger[h]
	return is, t.past(is)
}

// Earlier returns the counter for a request that ended in an earlier run, as past does, by the hash of its id.
// Only before Send.
func (t *Tally) Earlier(h format.Hash) *int {
	_, past := t.before(h)
	return past
}

// again reports whether a request that died or expired in an earlier run is sent again. If it did
// both, the order is not known. Then it is sent again if either is asked for. A request whose answer was cut, or of
// which --select failed, is sent again, if that is asked for.
func (t *Tally) again(s standing) bool {
	if s.has(inOut) {
		return s.askedFor(t.retry)
	}
	return (s.has(inDead) && t.retry.Takes(s.class()) || s.has(inExpired) && t.retry&format.TheExpired != 0)
}

// WasRefused reports whether a request became a dead letter of class refused in an earlier run.
func (t *Tally) WasRefused(id string) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	is := t.ledger[format.HashOf(id)]
	return is.has(inDead) && is.class() == format.DeadRefused
}

// WasCut reports whether an earlier run had an answer to a request that was cut at the bound of its output.
// Only before Send.
func (t *Tally) WasCut(h format.Hash) bool {
	is := t.ledger[h]
	return is.has(inOut) && is.askedFor(1<<format.DeadLength)
}

// IsAgain is again, for callers that do not hold the lock.
func (t *Tally) IsAgain(id string) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.again(t.ledger[format.HashOf(id)])
}

// skip counts a request that ended in an earlier run.
func (t *Tally) skip(s standing, as *int) {
	*as++
	if as == &t.Totals.SkippedDead {
		t.Bad.Dead[s.class()]++
	}
}

// Skipped counts the requests of the input that ended in earlier runs.
func (t *Tally) Skipped() {
	for _, s := range t.ledger {
		if n := t.past(s); n != nil && s.line() != 0 {
			t.skip(s, n)
		}
	}
}

// Read counts a request that was read to be sent. It returns false if the request ended in an
// earlier run, and is not sent.
func (t *Tally) Read(q *format.Request) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	is, past := t.before(q.Hash)
	if past != nil {
		Add(&t.Uses[0].Remaining, q.Cost, -1) // in a batch for language models the cost of such a request is 0
	}
	if !t.Checked { // otherwise the check has counted both
		t.Totals.Input++
		if past != nil {
			t.skip(is, past)
		}
	}
	return past == nil
}

// Served reports whether a request of the input was served, in this run or in one before.
func (t *Tally) Served() bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.Totals.Done+t.Totals.SkippedDone > 0
}

// Turned counts a page after the first. It returns false if the page ended in an earlier run, and
// is not sent.
func (t *Tally) Turned(q *format.Request) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	is := t.ledger[q.Hash].at(q.Line)
	t.ledger[q.Hash] = is
	t.Totals.Input++
	t.Totals.Pages++
	past := t.past(is)
	if past != nil {
		t.skip(is, past)
		return false
	}
	t.remains(0, q, 1)
	return true
}

// remains adds a request to those that have not ended, so many times. t.Mu is held.
func (t *Tally) remains(group int, q *format.Request, times int64) {
	Add(&t.Uses[group].Remaining, q.Cost, times)
	if len(t.Resources) == 0 {
		return
	}
	if rest, known := t.Resources[q.Apart()]; known {
		Add(&rest, q.Cost, times)
		t.Resources[q.Apart()] = rest
	}
}

// Note takes in a result of an earlier run.
func (t *Tally) Note(e format.Entry) {
	t.resumes = true
	h := format.HashOf(e.ID)
	is := t.ledger[h]
	if (e.Page > 1 || e.Skipped) && !is.has(hasEnded) {
		t.unread++
	}
	if e.State != "dead" || !is.has(inOut) { // a done request is not dead
		is = is.of(bitsOf(e.Digest))
	}
	switch e.State {
	case "dead":
		if is.has(inOut) { // it was sent again, in vain: its answer is still there
			is |= inDead
		} else {
			is = is.dead(format.DeadClassOf(e.Class, e.Status))
		}
	case "expired":
		is |= inExpired
	default:
		is = is.done(e.Finish == meter.Length, e.SelectFailed)
	}
	t.ledger[h] = is
}

// Listed returns how many requests of earlier runs the input has, and how many it lacks. It is for the time between
// the check and Send.
func (t *Tally) Listed() (there, absent int) {
	if !t.resumes {
		return 0, 0
	}
	for _, s := range t.ledger {
		switch {
		case !s.has(hasEnded):
		case s.line() != 0:
			there++
		default:
			absent++
		}
	}
	return there, absent - t.unread
}

// Resumes reports whether there are results of earlier runs. It is for the time before Send.
func (t *Tally) Resumes() bool { return t.resumes }

// HasResult reports whether an earlier run wrote how a request ended.
func (t *Tally) HasResult(id string) bool {
	return t.ledger.has(format.HashOf(id), hasEnded)
}

// HasEnded reports whether a request ended in an earlier run and is skipped now.
func (t *Tally) HasEnded(id string) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.resumes && t.past(t.ledger[format.HashOf(id)]) != nil
}

// SkipLine notes a line that is no request. It returns false if an earlier run has noted it.
func (t *Tally) SkipLine(id string) (anew bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	h := format.HashOf(id)
	t.resumes, anew = true, !t.ledger.has(h, inDead)
	t.ledger.mark(h, inDead)
	return anew
}

// seen is what the ledger has of the id of a request that is read.
type seen struct {
	Right bool // the request may have the id at its place
	Line  int  // the line that has the id already; 0: none has
	Other bool // it is another request than the one that ended, or than the one that was checked
	Ended bool // it ended in an earlier run
	Dead  bool // it ended as a dead letter
	Clash string
	place int // of the request, counted from 1
	here  placed
}

// placed is what the check has read at a place: bits of the digest of the request, and bits of the hash of its
// id. 0: nothing. The second reading compares places in their order, which is faster than the ledger.
type placed uint64

func placedOf(h format.Hash, bits uint64) placed {
	return placed(binary.LittleEndian.Uint64(h[:])&^digestMask | bits)
}

// Keep keeps what the check has read at a place. If there are too many places without requests,
// the ledger alone has the rest. Only the check calls it.
func (t *Tally) Keep(is seen) {
	const mostBlank = 1000
	if gap := is.place - len(t.places); gap > 0 && gap <= mostBlank {
		t.places = append(append(t.places, make([]placed, gap-1)...), is.here)
	}
}

// Seen notes that a request is read at its place, and returns what its id had before. It notes nothing if that
// is wrong. checked says that the request was read before. clash, if not nil, gets the line of any id.
func (t *Tally) Seen(q *format.Request, checked bool, clash func(line func(format.Hash) int) string) (s seen) {
	bits, place := bitsOf(q.Digest), q.Place()
	here := placedOf(q.Hash, bits)
	if checked && clash == nil && place <= len(t.places) && t.places[place-1] == here {
		return seen{Right: true, Line: place}
	}
	t.Mu.Lock()
	defer t.Mu.Unlock()
	is := t.ledger[q.Hash]
	was := is.request()
	s.place, s.here = place, here
	past := t.past(is)
	s.Line, s.Ended, s.Dead = is.line(), past != nil, past == &t.Totals.SkippedDead
	s.Other = was != bits && (s.Ended && was != 0 || checked)
	if clash != nil {
		s.Clash = clash(func(h format.Hash) int { return t.ledger[h].line() })
	}
	s.Right = (s.Line == 0 || s.Line == place) && !s.Other && s.Clash == ""
	if now := is.at(place).of(bits); s.Right && now != is {
		t.ledger[q.Hash] = now
	}
	return s
}

// Gone counts a request that was read as if it had not been: another process has it.
func (t *Tally) Gone() {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Totals.Input--
	t.Totals.Offered--
}

// IsDone reports whether a request was done in an earlier run.
func (t *Tally) IsDone(d format.Hash) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.ledger.has(d, inOut)
}

// Sent counts an attempt. It reports whether a limit refused it.
func (t *Tally) Sent(group, key int, res *sending.Response, result limit.Result, cost limit.Cost) (refused bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if res.Written {
		if t.First.IsZero() {
			t.First = res.Began
		}
		t.Final = res.Ended
		t.Totals.Sends++
		t.Took.add(res.Ended.Sub(res.Began))
		t.Totals.Cost += cost[limit.Requests]
		Add(&t.Uses[group].Spent, cost, 1)
		t.Figures.sent(group, key, res.Ended.Sub(res.Began), res.Status != 0, cost)
	}
	if refused = result == limit.Limited || res.Status == http.StatusTooManyRequests; refused {
		t.Totals.Rejected++
		t.Figures.keys[key].Rejected++
	} else if res.Status/100 == 4 && result != limit.Accepted {
		t.Totals.ClientError++
	}
	return refused
}

// Used adds the tokens that the answer of a model reports.
func (t *Tally) Used(model string, u tokens.Usage, overrun bool) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	m := t.model(model)
	m.InputTokens += u.Input
	m.OutputTokens += u.Output
	t.Totals.InputTokens += u.Input
	t.Totals.OutputTokens += u.Output
	if overrun {
		t.Totals.Overruns++
	}
}

// End is the end of a request.
type End struct {
	State      pool.State
	Late       bool
	Reason     string
	Request    *format.Request
	Class      format.DeadClass // of a dead letter
	Failed     string           // why the latest attempt failed, in a word or two
	Group, Key int
	// Written says that its result is written. Partly says that it was served in part, and Repeat that it may
	// have been served before. KeyHost says that a redirect was not followed for the sake of a key.
	// Bare says that it had no credential, and was answered 401. Length says that its answer was cut at the bound of its
	// output.
	Written, Partly, Repeat, KeyHost, Bare, Length bool
}

// Ended counts requests that have ended. blind says that their lines cannot be read back.
func (t *Tally) Ended(all []End, blind bool) {
	now := time.Now()
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for i := range all {
		t.endedLocked(&all[i], now, blind)
	}
}

func (t *Tally) endedLocked(e *End, now time.Time, blind bool) {
	t.remains(e.Group, e.Request, -1)
	t.Pace.ended(now)
	if !e.Written {
		t.Totals.Unwritten++
		return
	}
	t.Failed.goesAgain(e.Failed, "")
	switch e.State {
	case pool.Dead:
		t.Totals.Dead++
		t.Bad.Dead[e.Class]++
		if e.KeyHost {
			t.Bad.KeyHost++
		}
		if e.Bare {
			t.Bad.Bare++
		}
		t.because(e.Reason)
		if e.Failed != "" {
			t.Failed.count(now, e.Failed, "", 0, 1)
		}
	case pool.Done:
		if t.Totals.Done++; e.Late {
			t.Totals.Late++
		}
		t.Figures.keys[e.Key].Done++
		if e.Partly {
			t.Totals.Partly++
		}
		if e.Length {
			t.Totals.Length++
		}
		if name := e.Request.Estimate.Model; name != "" {
			t.model(name).Done++
		}
	default:
		t.Totals.Expired++
		if e.Request.At.IsZero() {
			t.Bad.Lapsed++
		}
	}
	if blind {
		t.Back(e.Request.Hash)
	}
	if e.Repeat {
		t.Totals.Repeats++
	}
}

// GoesAgain is again, for the id with this hash.
func (t *Tally) GoesAgain(h format.Hash) bool { return t.again(t.ledger[h]) }

// Back notes that the files have a request when they are read back.
func (t *Tally) Back(h format.Hash) { t.ledger.mark(h, back) }

// Fails counts an attempt that failed, and its request as one that goes again. what says how in a word or two, and
// before how the attempt before it failed; empty: it did not.
func (t *Tally) Fails(before, what, example string) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	t.Failed.count(time.Now(), what, example, 1, 0)
	t.Failed.goesAgain(before, what)
}

// because counts the reason of a dead request.
func (t *Tally) because(text string) {
	group := format.AlikeReason(text)
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

// Finished reports whether nothing of the input is left. If the input was checked, the counts
// decide. Otherwise whole does: it says that the input was read to its end.
func (t *Tally) Finished(whole bool) bool {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	n := &t.Totals
	if t.Checked {
		return n.Input <= n.Before()+n.Done+n.Expired+n.Dead
	}
	return whole
}

// Close compares the counts with the files that were read back. waiting is how many requests the
// Pools still have.
func (t *Tally) Close(waiting int) (Totals, error) {
	n := t.Totals
	missing := t.ledger.missing()
	unread := n.Input - n.Offered - n.Before()
	if n.Left = waiting + unread + n.Unwritten; t.Elsewhere {
		return n, nil
	}
	n.Lost = missing - n.Left
	if n.Lost < 0 {
		n.Lost = 0
		return n, fmt.Errorf("the counts do not add up: %d requests have no end state, but %d are known to be left",
			missing, n.Left)
	}
	return n, nil
}

// DeadBecause returns the most frequent reason for dead letters, how many have it, and how many
// there are. most is empty if there are none.
func (t *Tally) DeadBecause() (most string, n, all int) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for _, r := range t.reasons {
		if r.n > n || r.n == n && r.first < most {
			most, n = r.first, r.n
		}
	}
	return most, n, t.Totals.Dead
}
