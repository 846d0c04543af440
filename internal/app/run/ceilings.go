package run

import (
	"math"
	"sync/atomic"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// ceilingEvery is the number of looks of watch between two looks at the ceiling. A look at all keys
// costs more than a look at the head of the queue.
const ceilingEvery = 25

// ceilings keeps the last ceiling that was computed. The zero value has none. Safe for concurrent
// use.
type ceilings struct{ bits atomic.Uint64 }

func (c *ceilings) note(perSecond float64) { c.bits.Store(math.Float64bits(perSecond)) }
func (c *ceilings) now() float64           { return math.Float64frombits(c.bits.Load()) }

// sustained returns how many requests per second the limits allow from now on in the long run. It
// counts the keys that serve, and for a wrong limit the rate that proved to fit. It is 0 without a
// limit, or if no key serves.
func (r *Run) sustained() float64 {
	of := make([][]serving, len(r.groups))
	for i, g := range r.groups {
		g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) { of[i] = ofEach(r.serves(now, d)) })
	}
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	all := 0.0
	for i, g := range r.groups {
		least := math.Inf(1)
		for _, l := range g.limits {
			if each := r.tally.uses[i].each(l.Unit); each > 0 {
				least = min(least, l.Speed()*fits(l, of[i])/each)
			}
		}
		if len(of[i]) > 0 {
			all += least * float64(len(of[i]))
		}
	}
	if ordered := r.tally.figures.inOrder(); ordered > 0 {
		all = min(all, ordered)
	}
	all /= r.tally.costOfOne()     // limits count cost
	const digits, most = 1e6, 1e12 // so that it needs no exponent
	if all > most {
		return 0
	}
	return math.Round(all*digits) / digits
}

// costOfOne is the average cost of a request: of those sent or, while hardly any was, of those
// left. t.mu is held.
func (t *tally) costOfOne() float64 {
	const enough = 20
	cost, n := t.totals.Cost, t.totals.Sends
	if n < enough && t.checked {
		cost, n = 0, t.totals.toGo()
		for i := range t.uses {
			cost += t.uses[i].remaining[limit.Requests]
		}
	}
	if cost <= 0 || n <= 0 {
		return 1
	}
	return float64(cost) / float64(n)
}
