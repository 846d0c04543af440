package limit

import "github.com/paceline-go/paceline/mono"

// log is what settled requests hold of a limit: (upper bound of arrival, cost), oldest first, with a running total, in
// a ring that grows on demand.
type log struct {
	ring  []arrival // its length is a power of two
	head  int
	n     int
	total int64
}

type arrival struct {
	at   mono.Time
	cost int64
}

func (g *log) at(i int) *arrival { return &g.ring[(g.head+i)&(len(g.ring)-1)] }

// freed returns the arrival whose end frees the last of at least cost, oldest first. cost must be at most the total.
func (g *log) freed(cost int64) mono.Time {
	for i := 0; ; i++ {
		e := g.at(i)
		if cost -= e.cost; cost <= 0 {
			return e.at
		}
	}
}

// forget drops what arrived at or before t.
func (g *log) forget(t mono.Time) {
	for g.n > 0 {
		e := g.at(0)
		if e.at > t {
			return
		}
		g.total -= e.cost
		g.head = (g.head + 1) & (len(g.ring) - 1)
		g.n--
	}
}

// add inserts from the tail: an answer seldom proves an earlier arrival than the one before it did.
func (g *log) add(at mono.Time, cost int64) {
	g.total += cost
	i := g.n
	for i > 0 && g.at(i-1).at > at {
		i--
	}
	if i > 0 {
		if e := g.at(i - 1); e.at == at {
			e.cost += cost
			return
		}
	}
	if g.n == len(g.ring) {
		g.grow()
	}
	for j := g.n; j > i; j-- {
		*g.at(j) = *g.at(j - 1)
	}
	*g.at(i) = arrival{at, cost}
	g.n++
}

func (g *log) grow() {
	ring := make([]arrival, max(8, 2*len(g.ring)))
	n := copy(ring, g.ring[g.head:])
	copy(ring[n:], g.ring[:g.head])
	g.ring, g.head = ring, 0
}
