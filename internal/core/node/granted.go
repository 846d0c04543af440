package node

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// pool has the grants that a node has not used: parts, each from an instant of the ledger on, in
// the order of those instants.
type pool struct {
	parts []part
}

type part struct {
	at   mono.Time
	cost limit.Cost
	// yields means that it was granted beside a part that stays free for others. A request that leaves
	// something free goes by such grants only.
	yields bool
}

func (g *pool) sum() (all limit.Cost) {
	for i := range g.parts {
		plus(&all, &g.parts[i].cost)
	}
	return all
}

// kind is sum of the grants that yield, or of those that do not.
func (g *pool) kind(yields bool) (all limit.Cost) {
	for i := range g.parts {
		if p := &g.parts[i]; p.yields == yields {
			plus(&all, &p.cost)
		}
	}
	return all
}

// covers returns from when on the pool has cost, for a request that yields or for any other one.
func (g *pool) covers(cost limit.Cost, yields bool) (at mono.Time, ok bool) {
	at = mono.Min
	for i := range g.parts {
		if covered(&cost) {
			break
		}
		p := &g.parts[i]
		if yields && !p.yields {
			continue
		}
		if shared(&cost, &p.cost) {
			at = max(at, p.at)
		}
		minus(&cost, &p.cost)
	}
	return at, covered(&cost)
}

func covered(c *limit.Cost) bool {
	for _, n := range c {
		if n > 0 {
			return false
		}
	}
	return true
}

// shared reports whether two costs have a unit in common.
func shared(a, b *limit.Cost) bool {
	for u := range a {
		if a[u] > 0 && b[u] > 0 {
			return true
		}
	}
	return false
}

// take takes cost out, the earliest parts first. Parts of its own kind that hold by now come before
// these. It returns from when on all of that was there, and whether it was all there.
func (g *pool) take(cost limit.Cost, yields bool, now mono.Time) (at mono.Time, all bool) {
	at = g.takeOf(&cost, func(p *part) bool { return p.yields == yields && p.at <= now })
	at = max(at, g.takeOf(&cost, func(*part) bool { return true }))
	return at, covered(&cost)
}

func (g *pool) takeOf(cost *limit.Cost, fits func(p *part) bool) (at mono.Time) {
	at = mono.Min
	kept := g.parts[:0]
	for i := range g.parts {
		p := &g.parts[i] // kept ends before it
		if fits(p) && shared(cost, &p.cost) {
			at = max(at, p.at)
			for u := range cost {
				n := min(max(cost[u], 0), p.cost[u])
				cost[u] -= n
				p.cost[u] -= n
			}
		}
		if !covered(&p.cost) {
			kept = append(kept, *p)
		}
	}
	g.parts = kept
	return at
}

// add adds a part in its order.
func (g *pool) add(p part) {
	i := len(g.parts)
	for i > 0 && g.parts[i-1].at > p.at {
		i--
	}
	if i > 0 && g.parts[i-1].at == p.at && g.parts[i-1].yields == p.yields {
		plus(&g.parts[i-1].cost, &p.cost)
		return
	}
	g.parts = append(g.parts, part{})
	copy(g.parts[i+1:], g.parts[i:])
	g.parts[i] = p
}

// trim takes out the amount of a kind beyond most, the latest parts first, and returns it.
func (g *pool) trim(most limit.Cost, yields bool) (out limit.Cost) {
	over := g.kind(yields)
	for u := range over {
		over[u] = max(over[u]-max(most[u], 0), 0)
	}
	for i := len(g.parts) - 1; i >= 0; i-- {
		p := &g.parts[i]
		if p.yields != yields {
			continue
		}
		for u := range over {
			n := min(over[u], p.cost[u])
			over[u] -= n
			p.cost[u] -= n
			out[u] += n
		}
	}
	kept := g.parts[:0]
	for _, p := range g.parts {
		if !covered(&p.cost) {
			kept = append(kept, p)
		}
	}
	g.parts = kept
	return out
}
