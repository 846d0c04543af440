package rule

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// BucketConfig is the rule of a token bucket. Limit and Window have no default.
type BucketConfig struct {
	// Limit tokens flow in per Window, evenly: at any instant the exact fraction is there.
	Limit  int64
	Window time.Duration
	// Capacity is the most tokens in the bucket. If zero, Limit.
	Capacity int64
	// Missing is how many tokens short of full the bucket is at Start. Requests that arrive before
	// Start then count as arriving at Start. If zero, the bucket is full when the first request
	// arrives, at any time.
	Missing int64
	Start   mono.Time
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
}

func (c BucketConfig) filled() (BucketConfig, error) {
	c.Capacity = cmp.Or(c.Capacity, c.Limit)
	err := errors.Join(checkCommon(c.Limit, c.Window, c.Tick), checkCost("Capacity", c.Capacity))
	if c.Missing < 0 || c.Missing > c.Capacity {
		err = errors.Join(err, fmt.Errorf("rule: Missing %d is not from 0 to the capacity of %d", c.Missing, c.Capacity))
	}
	return c, err
}

// bucket is a token bucket: a request takes its cost in tokens, or is refused and takes nothing.
type bucket struct {
	dial
	limit, window uint64 // the rate, in lowest terms
	capacity      int64
	level         int64  // whole tokens at the instant at
	part          uint64 // of the next token, in 1/window
	at            int64
}

// NewBucket returns a server that no request has reached.
func NewBucket(c BucketConfig) (Amendable, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	g := gcd(uint64(c.Limit), uint64(c.Window))
	b := &bucket{dial: newDial(c.Tick), limit: uint64(c.Limit) / g, window: uint64(c.Window) / g, capacity: c.Capacity,
		level: c.Capacity, at: never}
	if c.Missing > 0 {
		b.level -= c.Missing
		b.at = b.read(c.Start)
	}
	return b, nil
}

func gcd(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Arrive is as in Server.
func (b *bucket) Arrive(now mono.Time, cost int64) bool {
	ok := b.Fits(now, cost)
	b.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule.
func (b *bucket) Fits(now mono.Time, cost int64) bool {
	if cost <= 0 {
		return free(cost)
	}
	if t := b.read(now); t > b.at {
		b.fill(uint64(t - b.at))
		b.at = t
	}
	return cost <= b.level
}

// fill adds the tokens that flow in during d.
func (b *bucket) fill(d uint64) {
	if b.level == b.capacity {
		return
	}
	hi, lo := bits.Mul64(b.limit, d)
	lo, carry := bits.Add64(lo, b.part, 0)
	hi += carry
	if hi < b.window {
		whole, part := bits.Div64(hi, lo, b.window)
		if whole < uint64(b.capacity-b.level) {
			b.level, b.part = b.level+int64(whole), part
			return
		}
	}
	b.level, b.part = b.capacity, 0
}

// Count is as in Rule.
func (b *bucket) Count(_ mono.Time, cost int64, passed bool) {
	if passed {
		b.level -= cost
	}
}

// GCRAConfig is the rule of the generic cell rate algorithm. Limit and Window have no default.
type GCRAConfig struct {
	// The emission interval is Window / Limit, as an exact fraction of a nanosecond.
	Limit  int64
	Window time.Duration
	// Burst is the most cells that may come at once. The tolerance is Burst − 1 emission intervals.
	// If zero, Limit.
	Burst int64
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
}

func (c GCRAConfig) filled() (GCRAConfig, error) {
	c.Burst = cmp.Or(c.Burst, c.Limit)
	err := errors.Join(checkCommon(c.Limit, c.Window, c.Tick), checkCost("Burst", c.Burst))
	if err == nil {
		hi, lo := bits.Mul64(uint64(c.Burst), uint64(c.Window))
		if hi >= uint64(c.Limit) {
			hi, lo = 1, 0
		} else {
			lo, _ = bits.Div64(hi, lo, uint64(c.Limit))
			hi = 0
		}
		if hi > 0 || lo > uint64(longestSpan) {
			err = fmt.Errorf("rule: Burst %d of %d per %v are more than those of %v", c.Burst, c.Limit, c.Window, longestSpan)
		}
	}
	return c, err
}

// gcra is the generic cell rate algorithm of ITU-T I.371 (virtual scheduling). T is the emission
// interval, τ the tolerance, and TAT the theoretical arrival time of the next cell. A cell at now
// conforms iff TAT ≤ now + τ, and then
//
//	TAT ← max(TAT, now) + T
//
// A request of cost n is n cells at once, all of them or none.
type gcra struct {
	dial
	burst     int64
	limit     int64 // the denominator of all fractions
	emission  exact
	tolerance exact
	tat       exact
	window    uint64
}

// exact is an instant or a duration: ns + part/limit nanoseconds.
type exact struct{ ns, part int64 }

// NewGCRA returns a server that no request has reached.
func NewGCRA(c GCRAConfig) (Rule, error) {
	c, err := c.filled()
	if err != nil {
		return nil, err
	}
	g := &gcra{dial: newDial(c.Tick), burst: c.Burst, limit: c.Limit, window: uint64(c.Window), tat: exact{ns: never}}
	g.emission = g.intervals(1)
	g.tolerance = g.intervals(c.Burst - 1)
	return g, nil
}

// intervals returns n emission intervals, n ≤ burst.
func (g *gcra) intervals(n int64) exact {
	hi, lo := bits.Mul64(uint64(n), g.window)
	ns, part := bits.Div64(hi, lo, uint64(g.limit))
	return exact{int64(ns), int64(part)}
}

func (g *gcra) add(a, b exact) exact {
	s := exact{a.ns + b.ns, a.part + b.part}
	if s.part >= g.limit {
		s.ns, s.part = s.ns+1, s.part-g.limit
	}
	return s
}

func (a exact) after(b exact) bool { return a.ns > b.ns || a.ns == b.ns && a.part > b.part }

// Arrive is as in Server.
func (g *gcra) Arrive(now mono.Time, cost int64) bool {
	ok := g.Fits(now, cost)
	g.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule.
func (g *gcra) Fits(now mono.Time, cost int64) bool {
	if cost <= 0 {
		return free(cost)
	}
	t := exact{ns: g.read(now)}
	if cost > g.burst {
		return false
	}
	last := g.tat // becomes the TAT of the cost's last cell
	if t.after(last) {
		last = t
	}
	if cost > 1 {
		last = g.add(last, g.intervals(cost-1))
	}
	return !last.after(g.add(t, g.tolerance))
}

// Count is as in Rule.
func (g *gcra) Count(now mono.Time, cost int64, passed bool) {
	if cost <= 0 || !passed {
		return
	}
	if t := (exact{ns: g.read(now)}); t.after(g.tat) {
		g.tat = t
	}
	if cost == 1 {
		g.tat = g.add(g.tat, g.emission)
	} else {
		g.tat = g.add(g.tat, g.intervals(cost))
	}
}
