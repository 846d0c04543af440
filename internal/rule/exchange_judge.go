package rule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Arrival is one request in a server's log.
type Arrival struct {
	At mono.Time // the instant of the server's decision
	// Key is the number of the key. The key need not exist.
	Key int
	// Nonce is the nonce if it fits. Otherwise Digits has it, and is not empty.
	Nonce   uint64
	Digits  string
	Verdict Verdict
	// Before and After are the latencies of the request there and back, in a test server or a
	// simulator.
	Before, After time.Duration
}

// Judge finds out from the arrivals and verdicts alone whether an exchange kept its rule. It also
// finds how close to the limit the clients went. It knows only the configuration of the exchange,
// and counts in another way. It searches the log for windows, and keeps no ring of slots.
//
// Not safe for concurrent use. Memory is bounded by the arrivals of one window, plus the kept
// arrivals.
type Judge struct {
	config ExchangeConfig
	keep   int
	kept   []Arrival
	last   mono.Time
	keys   []dossier
	report Report
}

// dossier is the judge's record of a key.
type dossier struct {
	counted, all span
	seen         bool
	last         Arrival // the last accepted arrival, if seen
	report       KeyReport
}

// Report is a Judge's opinion.
type Report struct {
	Total Counts
	Keys  []KeyReport
	// First and Last are the first and the last arrival.
	First, Last mono.Time
	// Faults is the number of verdicts against the rule. FirstFaults describes up to ten of them.
	Faults      int
	FirstFaults []string
}

// KeyReport is the opinion about one key.
type KeyReport struct {
	Counts Counts
	Banned bool
	// Worst is the window with the most requests that used a slot. If the rule was kept, it is
	// never more than the limit. WorstSent also counts Limited requests. It is more than the limit
	// if the client sent too fast.
	Worst, WorstSent Fullest
}

// Fullest is the closed window with the most requests: their number, and the arrival at its end.
type Fullest struct {
	Requests int
	End      mono.Time
}

// NewJudge returns a judge of exchanges with that configuration. It keeps the last keep arrivals
// for Arrivals. 0: none; negative: all of them.
func NewJudge(c ExchangeConfig, keep int) (*Judge, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	j := &Judge{config: c, keep: keep, last: mono.Min, keys: make([]dossier, c.Keys)}
	return j, nil
}

// Hear takes the next arrival of the log.
func (j *Judge) Hear(a Arrival) {
	j.remember(a)
	if j.report.Total.Total() == 0 {
		j.report.First = a.At
	}
	if a.At < j.last {
		j.fault(a, "the arrival before it was at %v", j.last)
		a.At = j.last
	}
	j.last, j.report.Last = a.At, a.At
	if a.Verdict >= verdicts {
		j.fault(a, "there is no such verdict")
		return
	}
	*j.report.Total.of(a.Verdict)++
	if a.Key < 0 || a.Key >= len(j.keys) {
		if a.Verdict != UnknownKey {
			j.fault(a, "there is no such key")
		}
		return
	}
	j.judge(&j.keys[a.Key], a)
}

func (j *Judge) judge(d *dossier, a Arrival) {
	refused := d.report.Counts.Limited
	*d.report.Counts.of(a.Verdict)++
	ban := j.config.BanAfter > 0 && refused >= j.config.BanAfter
	if ban != (a.Verdict == Banned) {
		j.fault(a, "the key had %d limited requests and is banned after %d", refused, j.config.BanAfter)
	}
	ms := milliseconds(a.At)
	inWindow := d.counted.since(ms - j.config.Window.Milliseconds())
	rises := !d.seen && a.isNumber() || d.seen && a.above(&d.last)
	switch a.Verdict {
	case UnknownKey:
		j.fault(a, "the key exists")
	case Limited:
		if inWindow < j.config.Limit {
			j.fault(a, "there were %d of %d in the window", inWindow, j.config.Limit)
		}
	case Accepted:
		if !j.config.AnyNonce && !rises {
			j.fault(a, "the last nonce was %s", d.last.nonce())
		}
		d.seen, d.last = true, a
	case BadNonce:
		if j.config.AnyNonce || rises {
			j.fault(a, "the last nonce was %s", d.last.nonce())
		}
	}
	if a.Verdict.Counted() {
		if inWindow++; inWindow > j.config.Limit {
			j.fault(a, "it is number %d in its window, of %d", inWindow, j.config.Limit)
		}
		d.counted.add(ms)
		d.report.Worst.take(inWindow, a.At)
	}
	if a.Verdict.Counted() || a.Verdict == Limited {
		sent := d.all.since(ms - j.config.Window.Milliseconds())
		d.all.add(ms)
		d.report.WorstSent.take(sent+1, a.At)
	}
}

func (f *Fullest) take(n int, end mono.Time) {
	if n > f.Requests {
		*f = Fullest{n, end}
	}
}

func (j *Judge) fault(a Arrival, why string, args ...any) {
	if j.report.Faults++; len(j.report.FirstFaults) < 10 {
		j.report.FirstFaults = append(j.report.FirstFaults,
			fmt.Sprintf("%v key %d nonce %s: %v, but %s", a.At, a.Key, a.nonce(), a.Verdict, fmt.Sprintf(why, args...)))
	}
}

func (j *Judge) remember(a Arrival) {
	if j.keep == 0 {
		return
	}
	j.kept = append(j.kept, a)
	if j.keep > 0 && len(j.kept) >= 2*j.keep { // not at each arrival: the copies would take quadratic time
		j.kept = slices.Delete(j.kept, 0, len(j.kept)-j.keep)
	}
}

// Report returns the opinion so far.
func (j *Judge) Report() Report {
	r := j.report
	r.FirstFaults = slices.Clone(r.FirstFaults)
	r.Keys = make([]KeyReport, len(j.keys))
	for i := range j.keys {
		r.Keys[i] = j.keys[i].report
		limited := r.Keys[i].Counts.Limited
		r.Keys[i].Banned = j.config.BanAfter > 0 && limited >= j.config.BanAfter
	}
	return r
}

// Arrivals returns a copy of the kept arrivals, oldest first.
func (j *Judge) Arrivals() []Arrival {
	kept := j.kept
	if j.keep > 0 && len(kept) > j.keep {
		kept = kept[len(kept)-j.keep:]
	}
	return slices.Clone(kept)
}

// span has the instants of a key within about a window, in order.
type span struct {
	ms    []int64
	first int // the index of the first that may still count
}

// since forgets the instants before from, and returns how many are left. from must never fall.
func (s *span) since(from int64) int {
	for s.first < len(s.ms) && s.ms[s.first] < from {
		s.first++
	}
	if s.first > 1000 && s.first > len(s.ms)/2 {
		s.ms = slices.Delete(s.ms, 0, s.first)
		s.first = 0
	}
	return len(s.ms) - s.first
}

func (s *span) add(ms int64) { s.ms = append(s.ms, ms) }

func milliseconds(t mono.Time) int64 {
	const ms = mono.Time(time.Millisecond)
	return int64((t - (t%ms+ms)%ms) / ms)
}

func (a *Arrival) nonce() string {
	if a.Digits != "" {
		return a.Digits
	}
	return fmt.Sprint(a.Nonce)
}

func (a *Arrival) isNumber() bool {
	return strings.Trim(a.Digits, "0123456789") == ""
}

// above reports whether the nonce of a is larger than that of b.
func (a *Arrival) above(b *Arrival) bool {
	if a.Digits == "" && b.Digits == "" {
		return a.Nonce > b.Nonce
	}
	n, m := a.nonce(), b.nonce()
	width := max(len(n), len(m))
	return a.isNumber() && fmt.Sprintf("%0*s", width, n) > fmt.Sprintf("%0*s", width, m)
}
