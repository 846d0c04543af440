package rule

import (
	"math/bits"
	"sort"

	"github.com/paceline-go/paceline/limit/mono"
)

// Amendable is a Rule of a server that learns later what a request really cost, such as one that reserves the longest answer and counts
// the true one in the end. It also says when to come back. Bucket and Rolling are Amendable.
type Amendable interface {
	Rule
	// Amend says, at now, that a request that passed at an earlier instant costs so much more than was counted, or less if by is
	// negative, by no more than was counted. Call it once for each request. A bucket gives back or takes at now, and gives back no more
	// than it can hold; a rolling window counts the new cost until the request leaves it. A cost above what is left makes the rule
	// overdrawn: nothing passes until that is over. Amend panics on a Rolling with RefusedCount, whose requests cannot be told apart.
	Amend(now, passed mono.Time, by int64)
	// Ready returns the earliest instant, in whole ticks unless it is now, at which a request of that cost would pass if
	// nothing else arrived. It is not ok for a cost above the limit, which never passes. Ready for a cost of the whole
	// limit is when everything will be there again.
	Ready(now mono.Time, cost int64) (at mono.Time, ok bool)
}

// AmendedWitness is a Witness of an Amendable rule. The Witnesses of RollingConfig and BucketConfig are AmendedWitnesses.
type AmendedWitness interface {
	Witness
	// Amend takes in that the rule was told to Amend.
	Amend(now, passed mono.Time, by int64)
}

// overdraft bounds how far a rule is overdrawn, so that nothing overflows.
const overdraft = 1 << 60

// Amend is as in Amendable.
func (b *Bucket) Amend(now, _ mono.Time, by int64) {
	b.Fits(now, 1) // this fills the bucket
	b.level = max(min(b.level-max(by, -overdraft), b.capacity), -overdraft)
	if b.level == b.capacity {
		b.part = 0
	}
}

// Ready is as in Amendable.
func (b *Bucket) Ready(now mono.Time, cost int64) (at mono.Time, ok bool) {
	if cost > b.capacity {
		return mono.Max, false
	}
	if b.Fits(now, cost) {
		return now, true
	}
	// limit·d + part ≥ missing·window
	hi, lo := bits.Mul64(uint64(cost-b.level), b.window)
	lo, borrow := bits.Sub64(lo, b.part, 0)
	d := roundUp(hi-borrow, lo, b.limit)
	return b.tickAt(b.at + min(d, farthest)), true
}

// tickAt returns the first whole tick that is not before t.
func (d *dial) tickAt(t int64) mono.Time {
	if n := floor(t, d.tick); n < t {
		t = n + d.tick
	}
	return mono.Time(t)
}

// entry returns the i-th oldest entry.
func (r *Rolling) entry(i int) *entry { return &r.ring[(r.head+i)&(len(r.ring)-1)] }

// Amend is as in Amendable.
func (r *Rolling) Amend(_, passed mono.Time, by int64) {
	if r.refused {
		panic("rule: Amend of a Rolling with RefusedCount")
	}
	t := floor(within(passed), r.tick)
	i := sort.Search(r.n, func(i int) bool { return r.entry(i).at >= t })
	if i == r.n || r.entry(i).at != t {
		return // it has left the window
	}
	e := r.entry(i)
	by = max(by, -e.cost)
	by = min(by, overdraft-r.sum)
	e.cost += by
	r.sum += by
}

// Ready is as in Amendable. It looks at the requests that have to leave the window first.
func (r *Rolling) Ready(now mono.Time, cost int64) (at mono.Time, ok bool) {
	if cost > r.limit {
		return mono.Max, false
	}
	if r.Fits(now, cost) {
		return now, true
	}
	sum := r.sum
	for i := range r.n {
		e := r.entry(i)
		if sum -= e.cost; sum+cost <= r.limit {
			return r.tickAt(e.at + r.window + 1), true
		}
	}
	panic("rule: the entries of a Rolling are not its sum")
}

// Amend is as in AmendedWitness.
func (w *flowWitness) Amend(now, _ mono.Time, by int64) {
	t := w.clock(now)
	if !w.begun {
		w.at, w.begun = t, true
	}
	w.x = w.x.minus(w.rate, t-w.at)
	w.at = t
	if w.x.below(w.lowest) {
		w.lowest = w.x
	}
	if by >= 0 {
		w.x = w.x.plus(by, w.window)
		return
	}
	w.x = w.x.minus(-by, w.window)
	if w.x.below(w.lowest) { // the bucket is full: what is given back beyond that is lost
		w.lowest = w.x
	}
}

// Amend is as in AmendedWitness.
func (w *rollingWitness) Amend(_, passed mono.Time, by int64) {
	l := &w.densest.log
	t := wholeTicks(passed, w.tick)
	i := l.from(t, 0)
	if i == len(l.rows) || l.rows[i].at != t {
		return
	}
	for j := i + 1; j < len(l.rows); j++ {
		l.rows[j].before += by
	}
	l.total += by
}

// These are checks by the compiler that the types are Amendable and AmendedWitness.
var (
	_ Amendable      = (*Bucket)(nil)
	_ Amendable      = (*Rolling)(nil)
	_ AmendedWitness = (*flowWitness)(nil)
	_ AmendedWitness = (*rollingWitness)(nil)
)
