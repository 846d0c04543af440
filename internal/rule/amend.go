package rule

import (
	"math/bits"
	"sort"

	"github.com/paceline-go/paceline/limit/mono"
)

// Amendable is a Rule of a server that learns later what a request really cost. An example is a
// server that reserves the longest answer and counts the true one in the end. An Amendable also
// knows when a request would pass. Token buckets and rolling windows are Amendable.
type Amendable interface {
	Rule
	// Amend corrects, at now, the cost of a request that passed at the instant passed. by is the
	// difference from the counted cost. It may be negative, but leaves no cost below 0. Call Amend
	// once for each request. A bucket gives back or takes at now, and holds at most its capacity. A
	// rolling window counts the new cost until the request leaves it. A cost above the remainder
	// overdraws the rule: nothing passes until that is over. Amend panics on a rolling window with
	// RefusedCount, which cannot tell its requests apart.
	Amend(now, passed mono.Time, by int64)
	// Ready returns the earliest instant at which a request of that cost would pass if nothing else
	// arrived. It is now or a whole tick. ok is false for a cost above the limit, which never
	// passes. Ready for a cost of the whole limit is the instant at which the whole limit is free
	// again.
	Ready(now mono.Time, cost int64) (at mono.Time, ok bool)
}

// AmendedWitness is a Witness of an Amendable rule. The Witnesses of RollingConfig and BucketConfig
// are AmendedWitnesses.
type AmendedWitness interface {
	Witness
	// Amend records an Amend of the rule.
	Amend(now, passed mono.Time, by int64)
}

// overdraft bounds how far a rule is overdrawn, so that nothing overflows.
const overdraft = 1 << 60

// Amend is as in Amendable.
func (b *bucket) Amend(now, _ mono.Time, by int64) {
	b.Fits(now, 1) // this fills the bucket
	b.level = max(min(b.level-max(by, -overdraft), b.capacity), -overdraft)
	if b.level == b.capacity {
		b.part = 0
	}
}

// Ready is as in Amendable.
func (b *bucket) Ready(now mono.Time, cost int64) (at mono.Time, ok bool) {
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
func (r *rolling) entry(i int) *entry { return &r.ring[(r.head+i)&(len(r.ring)-1)] }

// Amend is as in Amendable.
func (r *rolling) Amend(_, passed mono.Time, by int64) {
	if r.refused {
		panic("rule: Amend of a rolling window with RefusedCount")
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

// Ready is as in Amendable. It looks at the requests that must leave the window first.
func (r *rolling) Ready(now mono.Time, cost int64) (at mono.Time, ok bool) {
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
	panic("rule: the entries of a rolling window are not its sum")
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
	// The bucket is full. A refund beyond that is lost.
	if w.x.below(w.lowest) {
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

// The compiler checks here that the types are Amendable and AmendedWitness.
var (
	_ Amendable      = (*bucket)(nil)
	_ Amendable      = (*rolling)(nil)
	_ AmendedWitness = (*flowWitness)(nil)
	_ AmendedWitness = (*rollingWitness)(nil)
)
