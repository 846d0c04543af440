package rule

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Witness reads a log of arrivals and their verdicts, and finds out whether the rule was kept. It
// knows only the configuration and the log, not the server that decided. It also computes in
// another way: from running totals of the log, not from a server's state. The log may come from a
// real server or from one here.
//
// Every configuration makes its own Witness, by its method Witness. Instants, ticks and clocks that
// are set back count as for the servers here. Memory is bounded by the arrivals of two windows.
// Their cost must stay below 2^62. Not safe for concurrent use.
type Witness interface {
	// Hear takes the next arrival of the log. at is by the server's clock. Refused arrivals may be
	// left out, unless the rule has RefusedCount. Without them Finding.Needless is 0.
	Hear(at mono.Time, cost int64, passed bool)
	// Finding returns the result so far.
	Finding() Finding
}

// Finding is the result of a Witness.
type Finding struct {
	// Most is the largest used cost when a request passed, with its own cost, rounded up. Limit is
	// the most that the rule allows. For a rolling window, Most is the largest cost in any closed
	// window. For a bucket and the GCRA, it is the largest Σ cost(i..j) − rate·(t_j − t_i) over all
	// i ≤ j, which the capacity bounds. For a weighted window, it is the largest weighted sum.
	Most, Limit int64
	// At is the arrival at which Most was first reached.
	At mono.Time
	// Passed and Refused are the numbers of arrivals of each kind. A cost of 0 does not count.
	Passed, Refused int
	// Needless is the number of refused arrivals that had room. If other rules were at work as
	// well, they may have refused them.
	Needless int
}

// Kept reports whether every request that passed had room.
func (f Finding) Kept() bool { return f.Most <= f.Limit }

// Utilisation returns Most / Limit. It is above 1 if the rule was not kept.
func (f Finding) Utilisation() float64 { return float64(f.Most) / float64(f.Limit) }

// bench is the common part of all witnesses.
type bench struct {
	found      Finding
	tick, last int64
}

func newBench(limit int64, tick time.Duration) bench {
	return bench{Finding{Limit: limit}, tickOf(tick), math.MinInt64}
}

// wholeTicks rounds an instant down to a multiple of the tick.
func wholeTicks(at mono.Time, tick int64) int64 {
	t := min(max(int64(at), -farthest), farthest)
	return t - ((t%tick)+tick)%tick
}

// clock returns the instant by the rules of the servers: in whole ticks, and never back.
func (b *bench) clock(at mono.Time) int64 {
	b.last = max(b.last, wholeTicks(at, b.tick))
	return b.last
}

// judge records an arrival. used is the used cost with it, or the cost that would be used.
func (b *bench) judge(used int64, at mono.Time, passed bool) {
	switch {
	case !passed:
		if b.found.Refused++; used <= b.found.Limit {
			b.found.Needless++
		}
	case used > b.found.Most:
		b.found.Most, b.found.At = used, at
		fallthrough
	default:
		b.found.Passed++
	}
}

// counted returns the cost that counts after an arrival. Refused arrivals count only with
// refusedCount.
func counted(cost, limit int64, passed, refusedCount bool) int64 {
	switch {
	case passed:
		return cost
	case refusedCount:
		return min(cost, limit)
	}
	return 0
}

// Finding is as in Witness.
func (b *bench) Finding() Finding { return b.found }

// ledger is a log of costs, with the total before each.
type ledger struct {
	rows  []row
	total int64 // may wrap round: only differences matter
}

type row struct{ at, before int64 }

func (l *ledger) add(at, cost int64) {
	l.rows = append(l.rows, row{at, l.total})
	l.total += cost
}

// since returns the cost of rows i and later.
func (l *ledger) since(i int) int64 {
	if i == len(l.rows) {
		return 0
	}
	return l.total - l.rows[i].before
}

// from returns the first row that is at t or later, searching from row i on.
func (l *ledger) from(t int64, i int) int {
	for i < len(l.rows) && l.rows[i].at < t {
		i++
	}
	return i
}

// drop forgets the rows before i, if they are many, and returns how many it forgot.
func (l *ledger) drop(i int) int {
	if i < 1000 || i < len(l.rows)/2 { // not at each row: the copies would take quadratic time
		return 0
	}
	l.rows = slices.Delete(l.rows, 0, i)
	return i
}

// Densest finds, in any list of arrivals, the closed window of a given length with the most cost.
// If that is no more than N, no window of that length ever held more. Senders and answers do not
// matter.
//
// Not safe for concurrent use. Memory is bounded by the arrivals of one window.
type Densest struct {
	window, tick, last int64
	log                ledger
	first              int // the first row in the window
	most               int64
	from, to           int64
	disorder           int
}

// NewDensest returns a Densest for windows of that length. Instants are rounded down to ticks
// before they are subtracted. If tick is zero, 1 ms; if negative, 1 ns.
func NewDensest(window, tick time.Duration) (*Densest, error) {
	if err := checkCommon(1, window, tick); err != nil {
		return nil, err
	}
	return newDensest(window, tick), nil
}

func newDensest(window, tick time.Duration) *Densest {
	return &Densest{window: int64(window), tick: tickOf(tick), last: math.MinInt64}
}

// Hear takes the next arrival. It must not be before the last one: see Disorder.
func (d *Densest) Hear(at mono.Time, cost int64) {
	t, used := d.before(at)
	d.add(t, used, cost)
}

// before returns the instant as which at counts, and the cost so far in the window that ends there.
func (d *Densest) before(at mono.Time) (t, used int64) {
	t = wholeTicks(at, d.tick)
	if t < d.last {
		d.disorder++
		t = d.last
	}
	d.last = t
	d.first = d.log.from(t-d.window, d.first)
	return t, d.log.since(d.first)
}

func (d *Densest) add(t, used, cost int64) {
	if cost <= 0 {
		free(cost)
		return
	}
	d.log.add(t, cost)
	if used += cost; used > d.most {
		d.most, d.from, d.to = used, d.log.rows[d.first].at, t
	}
	d.first -= d.log.drop(d.first)
}

// Most returns the largest cost of any closed window so far. from and to are the first and the last
// arrival of the earliest such window, in whole ticks.
func (d *Densest) Most() (cost int64, from, to mono.Time) {
	return d.most, mono.Time(d.from), mono.Time(d.to)
}

// Disorder returns the number of arrivals that were, in whole ticks, before an earlier entry of the
// list. Each counted as simultaneous with that entry. So nothing is proven unless Disorder is 0.
func (d *Densest) Disorder() int { return d.disorder }

type rollingWitness struct {
	bench
	refused bool
	densest *Densest
}

// Witness returns a Witness of an empty log.
func (c RollingConfig) Witness() (Witness, error) {
	if err := checkCommon(c.Limit, c.Window, c.Tick); err != nil {
		return nil, err
	}
	return &rollingWitness{newBench(c.Limit, c.Tick), c.RefusedCount, newDensest(c.Window, c.Tick)}, nil
}

// Hear is as in Witness.
func (w *rollingWitness) Hear(at mono.Time, cost int64, passed bool) {
	if cost <= 0 {
		free(cost)
		return
	}
	t, used := w.densest.before(at)
	w.judge(used+cost, at, passed)
	w.densest.add(t, used, counted(cost, w.found.Limit, passed, w.refused))
}

type calendarWitness struct {
	bench
	config CalendarConfig
	tills  [2]till // the most recent first
}

// till is an interval, named by the instant at which it ends.
type till struct{ end, used int64 }

// Witness returns a Witness of an empty log.
func (c CalendarConfig) Witness() (Witness, error) {
	if err := checkCommon(c.Limit, c.Window, c.Tick); err != nil {
		return nil, err
	}
	return &calendarWitness{bench: newBench(c.Limit, c.Tick), config: c}, nil
}

// Hear is as in Witness.
func (w *calendarWitness) Hear(at mono.Time, cost int64, passed bool) {
	if cost <= 0 {
		free(cost)
		return
	}
	window := int64(w.config.Window)
	t := wholeTicks(at, w.tick)
	left := (int64(w.config.Phase)%window - t%window) % window // the time until the next boundary
	if left <= 0 {
		left += window
	}
	switch end := t + left; end {
	case w.tills[0].end:
	case w.tills[1].end:
		w.tills[0], w.tills[1] = w.tills[1], w.tills[0]
	default:
		w.tills[0], w.tills[1] = till{end: end}, w.tills[0]
	}
	now := &w.tills[0]
	w.judge(now.used+cost, at, passed)
	// Beyond the limit the sum might overflow.
	if c := counted(cost, w.found.Limit, passed, w.config.RefusedCount); now.used <= w.found.Limit {
		now.used += c
	}
}

type anchoredWitness struct {
	bench
	config AnchoredConfig
	log    ledger // it has at most the arrivals of one interval
	first  int    // the first row of the interval
}

// Witness returns a Witness of an empty log.
func (c AnchoredConfig) Witness() (Witness, error) {
	if err := checkCommon(c.Limit, c.Window, c.Tick); err != nil {
		return nil, err
	}
	return &anchoredWitness{bench: newBench(c.Limit, c.Tick), config: c}, nil
}

// Hear is as in Witness.
func (w *anchoredWitness) Hear(at mono.Time, cost int64, passed bool) {
	if cost <= 0 {
		free(cost)
		return
	}
	t := w.clock(at)
	first := w.first
	if first < len(w.log.rows) {
		if end := w.log.rows[first].at + int64(w.config.Window); t > end || t == end && !w.config.Closed {
			first = len(w.log.rows)
		}
	}
	w.judge(w.log.since(first)+cost, at, passed)
	if passed {
		w.log.add(t, cost)
		w.first = first - w.log.drop(first)
	}
}

// flowWitness is for rules that let through as much as a bucket of that capacity. With
// R = Limit / Window, for all i ≤ j,
//
//	Σ cost(i..j) − R·(t_j − t_i) ≤ Capacity
//
// With X_j = Σ cost(1..j) − R·t_j, the left side is X_j − min over i ≤ j of (X_i − cost_i), in
// units of 1/Window.
type flowWitness struct {
	bench
	rate, window int64
	x, lowest    wide
	at           int64
	begun        bool
}

// Witness returns a Witness of an empty log.
func (c BucketConfig) Witness() (Witness, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	w := &flowWitness{bench: newBench(c.Capacity, c.Tick), rate: c.Limit, window: int64(c.Window)}
	if c.Missing > 0 { // as if a request had taken the missing tokens
		w.at, w.begun = w.clock(c.Start), true
		w.x = w.x.plus(c.Missing, w.window)
	}
	return w, nil
}

// Witness returns a Witness of an empty log. The GCRA lets through as much as a bucket of capacity
// Burst.
func (c GCRAConfig) Witness() (Witness, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	return &flowWitness{bench: newBench(c.Burst, c.Tick), rate: c.Limit, window: int64(c.Window)}, nil
}

// Hear is as in Witness.
func (w *flowWitness) Hear(at mono.Time, cost int64, passed bool) {
	if cost <= 0 {
		free(cost)
		return
	}
	t := w.clock(at)
	if !w.begun {
		w.at, w.begun = t, true
	}
	w.x = w.x.minus(w.rate, t-w.at)
	w.at = t
	lowest := w.lowest
	if w.x.below(lowest) {
		lowest = w.x
	}
	x := w.x.plus(cost, w.window)
	w.judge(x.over(lowest, w.window), at, passed)
	if passed {
		w.x, w.lowest = x, lowest
	}
}

// wide is a signed integer of 128 bits.
type wide struct {
	hi int64
	lo uint64
}

// plus returns w + a·b; a and b must not be negative.
func (w wide) plus(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	sum, carry := bits.Add64(w.lo, lo, 0)
	return wide{w.hi + int64(hi) + int64(carry), sum}
}

// minus returns w − a·b; a and b must not be negative.
func (w wide) minus(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	difference, borrow := bits.Sub64(w.lo, lo, 0)
	return wide{w.hi - int64(hi) - int64(borrow), difference}
}

func (w wide) below(v wide) bool { return w.hi < v.hi || w.hi == v.hi && w.lo < v.lo }

// over returns (w − v) / unit, rounded up; w must not be below v.
func (w wide) over(v wide, unit int64) int64 {
	lo, borrow := bits.Sub64(w.lo, v.lo, 0)
	return roundUp(uint64(w.hi-v.hi-int64(borrow)), lo, uint64(unit))
}

// roundUp divides and rounds up. The result is at most the largest int64.
func roundUp(hi, lo, unit uint64) int64 {
	if hi >= unit {
		return math.MaxInt64
	}
	n, rest := bits.Div64(hi, lo, unit)
	if n >= math.MaxInt64 {
		return math.MaxInt64
	}
	if rest > 0 {
		n++
	}
	return int64(n)
}

type weightedWitness struct {
	bench
	config WeightedConfig
	log    ledger // the arrivals that count
	// The first rows of the previous and of the current interval, as far as the search went.
	previous, current int
	// If Rotating: the first and the last arrival of a series without two idle intervals in a row.
	anchor, latest int64
	begun          bool
}

// Witness returns a Witness of an empty log.
func (c WeightedConfig) Witness() (Witness, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return &weightedWitness{bench: newBench(c.Limit, c.Tick), config: c}, nil
}

// Hear is as in Witness.
func (w *weightedWitness) Hear(at mono.Time, cost int64, passed bool) {
	if cost <= 0 {
		free(cost)
		return
	}
	t, window := w.clock(at), int64(w.config.Window)
	anchor := int64(w.config.Phase) % window
	if w.config.Rotating {
		anchor = w.anchor
		if !w.begun || t >= begin(w.latest, anchor, window)+2*window {
			anchor = t
		}
	}
	from := begin(t, anchor, window)
	w.previous = w.log.from(from-window, w.previous)
	w.current = w.log.from(from, max(w.previous, w.current))
	previous := w.log.since(w.previous) - w.log.since(w.current)
	current := w.log.since(w.current)
	hi, lo := bits.Mul64(uint64(previous), uint64(from+window-t))
	old := roundUp(hi, lo, uint64(window))
	if w.config.RoundsDown {
		lo, carry := bits.Add64(lo, 1, 0)
		old = roundUp(hi+carry, lo, uint64(window)) - 1
	}
	w.judge(current+cost+old, at, passed)

	if c := counted(cost, w.found.Limit, passed, w.config.RefusedCount); c > 0 {
		w.log.add(t, c)
		w.anchor, w.latest, w.begun = anchor, t, true
		gone := w.log.drop(w.previous)
		w.previous, w.current = w.previous-gone, w.current-gone
	}
}

// begin returns the beginning of the interval that contains t. One interval begins at anchor.
func begin(t, anchor, window int64) int64 {
	in := (t - anchor) % window
	if in < 0 {
		in += window
	}
	return t - in
}
