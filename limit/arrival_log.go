package limit

import (
	"sort"

	"github.com/paceline-go/paceline/limit/mono"
)

// log keeps the settled requests of a limit: (upper bound of arrival, cost), oldest first, with
// running sums, in a ring that grows on demand.
type log struct {
	total int64
	first mono.Time // arrival of the oldest entry, if any: with many limiters the ring is seldom in the cache
	n     int
	head  int
	ring  []arrival // its length is a power of two
	gone  int64     // the forgotten cost, or MaxCost and more; the sums of the entries continue from it
	lost  mono.Time // no earlier than any forgotten arrival
}

func newLog() log { return log{lost: mono.Min} }

type arrival struct {
	at  mono.Time
	sum int64 // of all costs up to and including this one
}

func (g *log) at(i int) *arrival { return &g.ring[(g.head+i)&(len(g.ring)-1)] }

// upTo returns the sum of the first i entries.
func (g *log) upTo(i int) int64 {
	if i == 0 {
		return 0
	}
	return g.at(i-1).sum - g.gone
}

// freed returns the arrival at which at least cost is free, if arrivals end oldest first. cost must
// be at most the total.
func (g *log) freed(cost int64) mono.Time {
	if g.ring[g.head].sum-g.gone < cost { // seldom
		return g.search(cost)
	}
	return g.ring[g.head].at
}

func (g *log) search(cost int64) mono.Time {
	cost += g.gone
	low, high := 0, 1 // the first sufficient entry is after low
	for high < g.n && g.at(high).sum-cost < 0 {
		low, high = high, 2*high
	}
	high = min(high, g.n-1)
	for high-low > 1 {
		if mid := (low + high) / 2; g.at(mid).sum-cost < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return g.at(high).at
}

// last returns the latest arrival, or mono.Min if there is none.
func (g *log) last() mono.Time {
	if g.n == 0 {
		return mono.Min
	}
	return g.at(g.n - 1).at
}

// after returns the part of the total that arrived after t.
func (g *log) after(t mono.Time) int64 { return g.total - g.upTo(g.until(t)) }

// afterBoth returns after(t) and after(u). It is quicker if u is later and little arrived between them.
func (g *log) afterBoth(t, u mono.Time) (int64, int64) {
	if u < t {
		return g.after(t), g.after(u)
	}
	n := g.until(t)
	return g.total - g.upTo(n), g.total - g.upTo(g.pass(n, u))
}

// until returns how many entries arrived at or before t.
func (g *log) until(t mono.Time) int {
	return sort.Search(g.n, func(i int) bool { return g.at(i).at > t })
}

// pass returns how many entries arrived at or before t, where the first n did. It is quick if few others did.
func (g *log) pass(n int, t mono.Time) int {
	step := 1
	for n+step <= g.n && g.at(n+step-1).at <= t {
		n += step
		step *= 2
	}
	for step /= 2; step > 0; step /= 2 {
		if n+step <= g.n && g.at(n+step-1).at <= t {
			n += step
		}
	}
	return n
}

// forget drops the arrivals at or before t.
func (g *log) forget(t mono.Time) {
	if g.n == 0 || g.first > t {
		return
	}
	goes := g.pass(1, t)
	last := g.at(goes - 1)
	g.total -= last.sum - g.gone
	g.gone = last.sum
	g.lost = max(g.lost, last.at)
	g.head = (g.head + goes) & (len(g.ring) - 1)
	if g.n -= goes; g.n > 0 {
		g.first = g.at(0).at
	}
	if uint64(g.gone) > goneMost {
		g.rebase(MaxCost)
	}
}

// goneMost is far above MaxCost, the largest cost that is ever asked for. It is far below the point
// where sums wrap round.
const goneMost = 1 << 60

func (g *log) rebase(gone int64) {
	for i := range g.n {
		g.at(i).sum += gone - g.gone
	}
	g.gone = gone
}

// recall puts the forgotten cost back. Only the cost and its last arrival are known, so all of it
// counts as of that arrival. If that arrival no longer counts, the cost is forgotten as before.
func (g *log) recall() {
	if g.gone == 0 {
		return
	}
	cost, at := min(g.gone, MaxCost), g.lost
	g.rebase(0)
	g.lost = mono.Min
	g.add(at, cost)
}

// add puts an arrival in its place. That is mostly the end: an answer seldom proves an earlier
// arrival than the answer before it.
func (g *log) add(at mono.Time, cost int64) {
	if 0 < g.n && g.n < len(g.ring) {
		if last := g.at(g.n - 1); last.at < at {
			*g.at(g.n) = arrival{at, last.sum + cost}
			g.n++
			g.total += cost
			return
		}
	}
	g.insert(at, cost)
}

func (g *log) insert(at mono.Time, cost int64) {
	g.total += cost
	before := g.gone
	i := g.n
	for ; i > 0; i-- {
		e := g.at(i - 1)
		if e.at <= at {
			before = e.sum
			if e.at == at {
				e.sum += cost
				return
			}
			break
		}
		e.sum += cost
	}
	if g.n == len(g.ring) {
		g.grow()
	}
	for j := g.n; j > i; j-- {
		*g.at(j) = *g.at(j - 1)
	}
	*g.at(i) = arrival{at, before + cost}
	g.n++
	if i == 0 {
		g.first = at
	}
}

func (g *log) grow() {
	ring := make([]arrival, max(8, 2*len(g.ring)))
	n := copy(ring, g.ring[g.head:])
	copy(ring[n:], g.ring[:g.head])
	g.ring, g.head = ring, 0
}
