package batch

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/queue"
	"github.com/paceline-go/paceline/tokens"
)

// Totals count what became of the input.
type Totals struct {
	Input       int `json:"input"`            // valid requests read
	Invalid     int `json:"invalid"`          // lines that were not
	SkippedDone int `json:"skipped_done"`     // ended in a run before
	SkippedDead int `json:"skipped_dead"`     // dead letters of a run before
	Offered     int `json:"offered"`          // the rest, as far as it was read
	Sends       int `json:"sends"`            // attempts that were written
	Done        int `json:"done"`             //
	Rejected    int `json:"rejected"`         // answers 429, and refusals by a limit with another status
	Expired     int `json:"expired"`          //
	Dead        int `json:"dead"`             //
	Left        int `json:"left"`             // not ended: running again resumes
	Repeats     int `json:"possible_repeats"` //
	Unwritten   int `json:"unwritten"`        // answered, but the result could not be written; among Left
	Lost        int `json:"lost"`             // what none of these accounts for

	Appended int `json:"appended,omitempty"` // lines that the input has got since it was checked: left, not among Input

	InputTokens  int64 `json:"input_tokens,omitempty"`  // of Done, as the answers say
	OutputTokens int64 `json:"output_tokens,omitempty"` //
	Overruns     int   `json:"overruns,omitempty"`      // answers that had more output than was reserved

	Cost    int64   `json:"cost"`                         // of Sends
	Seconds float64 `json:"seconds"`                      // from the first send to the last answer
	Rate    float64 `json:"rate"`                         // Done per second
	Ceiling float64 `json:"ceiling,omitempty"`            // most cost per second that the limits, full at the start, and the order of nonces allow in so many Seconds
	Percent float64 `json:"percent_of_ceiling,omitempty"` // of that, what was sent

	Sustained float64 `json:"ceiling_sustained,omitempty"` // Ceiling in the long run

	USD float64 `json:"usd_spent,omitempty"` // also by the runs before, as far as prices were given

	Latency *LatencyMS  `json:"latency_ms,omitempty"` // of answers
	Keys    []KeyTotals `json:"keys,omitempty"`

	// Models are those of a batch for language models, most requests done first, and PricesAsOf since when what they cost was published;
	// empty: their prices were given.
	Models     []ModelTotals `json:"models,omitempty"`
	PricesAsOf string        `json:"prices_as_of,omitempty"`
}

// digest stands for an id: 128 bits of its SHA-256, so that a million ids take the same room however long they are. Two
// ids of a billion have the same one with a probability of about 1.5e-21.
type digest [16]byte

func digestOf(id string) digest {
	sum := sha256.Sum256([]byte(id))
	return digest(sum[:16])
}

// What is known of an id, and in which line of the input it is (0: in none so far).
const (
	inOut     = 1 << iota // OUT says done
	inExpired             // OUT says expired
	inDead                // the dead letters have it
	backOut               // found when OUT was read back
	backDead              // found when the dead letters were read back
	classBit  = iota      // the class of a dead letter, in four bits
	flagBits  = classBit + 4
	classMask = 15 << classBit

	// The rest is the digest of its request, 0 if that is not known, and the line.
	digestBits = 25
	digestMask = 1<<digestBits - 1
	lineShift  = flagBits + digestBits
)

// ledger knows every id of the input and of the files of the runs before. About 50 bytes an id.
type ledger map[digest]standing

// standing is what is known of an id.
type standing uint64

func (l ledger) mark(d digest, flag standing)     { l[d] |= flag }
func (l ledger) has(d digest, flag standing) bool { return l[d].has(flag) }

func (s standing) has(flag standing) bool { return s&flag != 0 }

// dead is that of a dead letter. The last of an id counts.
func (s standing) dead(c class) standing { return s&^classMask | inDead | standing(c)<<classBit }

// class is that of a dead letter.
func (s standing) class() class { return class(s & classMask >> classBit) }

// at notes where an id was seen, line says where: 0 if nowhere so far.
func (s standing) at(line int) standing { return s&(1<<lineShift-1) | standing(line)<<lineShift }
func (s standing) line() int            { return int(s >> lineShift) }

// of notes what an id is of, if that is known, and request says what: 0 if it is not.
func (s standing) of(bits uint64) standing {
	if bits == 0 {
		return s
	}
	return s&^(digestMask<<flagBits) | standing(bits)<<flagBits
}
func (s standing) request() uint64 { return uint64(s >> flagBits & digestMask) }

// missing is how many ids of the input were not found when the files were read back.
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

// reason is why requests are dead: in the words of the first of them.
type reason struct {
	first string
	n     int
}

// tally counts. Safe for concurrent use, through its methods; before Send and after it nobody else is there.
type tally struct {
	retry Dead // which dead letters are sent again

	mu      sync.Mutex
	ledger  ledger
	checked bool // the first pass counted the input
	totals  Totals
	uses    []use              // of each group
	busy    time.Duration      // that answers took, of all sends
	reasons map[string]*reason // why requests are dead, by what is alike
	bad     ends               // of this run, and dead letters of the runs before that are not sent again
	first   time.Time          // send
	final   time.Time          // answer
	figures figures
	pace    pace
	models  map[string]*ModelTotals
}

// add adds by times a cost.
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

// past is what counts a request that ended in a run before and is not sent again; nil: it is sent. t.mu is held.
func (t *tally) past(s standing) *int {
	switch {
	case s.has(inOut):
		return &t.totals.SkippedDone
	case t.again(s):
		return nil
	case s.has(inExpired):
		return &t.totals.SkippedDone
	case s.has(inDead):
		return &t.totals.SkippedDead
	}
	return nil
}

// again says whether what died or expired in a run before is sent again. Where it did both nobody knows which came last: either
// will do.
func (t *tally) again(s standing) bool {
	return !s.has(inOut) && (s.has(inDead) && t.retry.has(s.class()) || s.has(inExpired) && t.retry&theExpired != 0)
}

// wasRefused says whether a request was a dead letter of its own, or its key's, fault in a run before.
func (t *tally) wasRefused(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.ledger[digestOf(id)]
	return is.has(inDead) && is.class() == refused
}

// isAgain is again, for who does not hold the lock.
func (t *tally) isAgain(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.again(t.ledger[digestOf(id)])
}

// skip counts a request that ended in a run before.
func (t *tally) skip(s standing, as *int) {
	*as++
	if as == &t.totals.SkippedDead {
		t.bad.dead[s.class()]++
	}
}

// skipped counts the input's requests that ended in runs before.
func (t *tally) skipped() {
	for _, s := range t.ledger {
		if n := t.past(s); n != nil && s.line() != 0 {
			t.skip(s, n)
		}
	}
}

// read counts a request that was read to be sent. False: it is not, as it ended in a run before.
func (t *tally) read(q *Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	is := t.ledger[q.digest]
	past := t.past(is)
	if past != nil {
		add(&t.uses[0].remaining, q.Cost, -1) // of a batch it is nothing
	}
	if !t.checked { // else both were counted then
		t.totals.Input++
		if past != nil {
			t.skip(is, past)
		}
	}
	return past == nil
}

// sent counts an attempt.
func (t *tally) sent(group, key int, res *response, result limit.Result, cost limit.Cost) {
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
	if result == limit.Limited || res.status == http.StatusTooManyRequests {
		t.totals.Rejected++
		t.figures.keys[key].Rejected++
	}
}

// used adds up what an answer of a model says that it used.
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

// ended counts the ends of requests. blind: their lines cannot be read back.
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
	case queue.Dead:
		t.totals.Dead++
		t.bad.dead[deadOf(j, e.Ended)]++
		if j.keyHost {
			t.bad.keyHost++
		}
		t.because(e.Reason)
		back = backDead
	case queue.Done:
		t.totals.Done++
		t.figures.keys[j.keyIndex].Done++
		if name := j.r.Estimate.Model; name != "" {
			t.model(name).Done++
		}
	default:
		t.totals.Expired++
		if j.r.At.IsZero() {
			t.bad.lapsed++
		}
	}
	if blind {
		t.ledger.mark(j.r.digest, back)
	}
	if j.repeat {
		t.totals.Repeats++
	}
}

// because counts why a request is dead.
func (t *tally) because(text string) {
	group := alike(text)
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

// finished says whether nothing of the input is left: by the counts, where it was checked; else as its reader has it.
func (t *tally) finished(whole bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := &t.totals
	if t.checked {
		return n.Input <= n.SkippedDone+n.SkippedDead+n.Done+n.Expired+n.Dead
	}
	return whole
}

// close compares the counts with what was read back. waiting is what the Pool still has.
func (t *tally) close(waiting int) (Totals, error) {
	n := t.totals
	missing := t.ledger.missing()
	unread := n.Input - n.Offered - n.SkippedDone - n.SkippedDead
	n.Left = waiting + unread + n.Unwritten
	n.Lost = missing - n.Left
	if n.Lost < 0 {
		n.Lost = 0
		return n, fmt.Errorf("the counts do not add up: %d requests have no end state, but %d are known to be left", missing, n.Left)
	}
	return n, nil
}

// deadBecause is what most requests are dead of, and how many; empty: none is.
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
