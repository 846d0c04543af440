package node

import (
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Requests may leave a part r of each limit free for others: they yield. What the others hold unsent is for
// the others too, so it belongs to that part. With K the sum of those grants, a request that yields is
// granted if it leaves r·N − K of the limit N free. So the others find grants, or room for them, at once.
//
// Requests that yield are granted only after all others have what they want. Where the others want more
// than they get, nobody yields: all nodes divide the limit by weight. So requests that yield never wait
// for ever.
//
// Grants that yield are kept apart in a node. Its other requests may use them, but not the other way
// round: the others' grants are there for requests that cannot wait.

// kind is the requests of which an heir wants more.
type kind int

const (
	all kind = iota
	plain
	yielding
)

// want returns how many more requests of a kind the node wants.
func (e *Entry) want(k kind) int64 {
	switch yields := min(e.Yielding, e.Want); k {
	case plain:
		return e.Want - yields
	case yielding:
		return yields
	}
	return e.Want
}

// thousandths is a part as a book has it: rounded up, since what is left free is to be enough.
func thousandths(part float64) uint64 { return uint64(math.Ceil(min(max(part, 0), 1)*1000 - 1e-9)) }

// yields reports whether a node of the book leaves anything free.
func (b *Book) yields() bool {
	for i := range b.Nodes {
		if b.Nodes[i].Leaves > 0 {
			return true
		}
	}
	return false
}

func yields(heirs []*Entry) bool {
	for _, e := range heirs {
		if e.want(yielding) > 0 && e.Leaves > 0 {
			return true
		}
	}
	return false
}

// divideYielding is divide where some heirs yield.
func (t *pending) divideYielding(horizon mono.Time, spared *spare) {
	contended := false
	for i := range t.others {
		e := &t.others[i]
		contended = contended || e.want(plain) > 0 && e.Until > t.now
	}
	if n := t.mine.want(plain); n > 0 && !contended {
		t.only(plain, func() {
			mine := t.falls(t.heirsOf(plain), horizon, spared, false)
			if contended = int64(mine) < min(n, t.most(t.heirs)); !contended {
				t.take(mine, horizon, false)
			}
		})
	}
	if !contended {
		t.only(yielding, func() {
			heirs := t.heirsOf(all)
			weigh(heirs)
			t.take(t.falls(heirs, horizon, &spare{}, true), horizon, true)
		})
		return
	}
	heirs := t.heirsOf(all)
	weigh(heirs)
	mine := t.falls(heirs, horizon, spared, false)
	own := int(min(t.mine.want(plain), int64(mine)))
	t.take(own, horizon, false)
	leaves := t.mine.Leaves
	t.mine.Leaves = 0 // as the others want more than they get
	t.take(mine-own, horizon, true)
	t.mine.Leaves = leaves
}

// only calls f while this node wants nothing but requests of a kind.
func (t *pending) only(k kind, f func()) {
	rest, yields := t.mine.Want-t.mine.want(k), t.mine.Yielding
	t.mine.Want -= rest
	t.mine.Yielding = min(yields, t.mine.Want)
	if k == plain {
		t.mine.Yielding = 0
	}
	f()
	t.mine.Want += rest
	if k == plain {
		t.mine.Yielding = yields
	}
}

// readyOf returns when a cost of an heir may go. If it yields, the others' unsent grants belong to the
// part that it leaves free.
func (t *pending) readyOf(e *Entry, cost limit.Cost, yields bool) mono.Time {
	at := t.limiter.Ready(t.now, cost)
	if !yields || e.Leaves == 0 {
		return at
	}
	unsent := limit.Outcome{Result: limit.Unsent}
	t.limiter.Settle(t.now, t.theirs, &unsent)
	t.limiter.Settle(t.now, t.kept, &unsent)
	at = max(at, limit.ReadyLeaving(t.limiter, t.now, nil, cost, float64(e.Leaves)/1000))
	t.theirs, t.kept = t.admit(t.now, t.theirs.Cost), t.admit(t.now, t.kept.Cost)
	return at
}

// giveBack gives all unsent grants back.
func (t *pending) giveBack() {
	for _, s := range []*limit.Sent{t.held, t.kept} {
		t.limiter.Settle(t.now, s, &limit.Outcome{Result: limit.Unsent})
	}
	t.held, t.kept = t.admit(t.now, limit.Cost{}), t.admit(t.now, limit.Cost{})
	t.pool.parts = nil
}

// usable returns the unsent grants that the waiting requests may use.
func (n *Node) usable() limit.Cost {
	if n.leaves > 0 {
		return n.pool.kind(true)
	}
	return n.pool.sum()
}

// lowOf reports whether the grants of a kind are so few that the next turn should be soon. Beside nodes that
// yield, a request that came while there is none would wait for what was left free for it.
func (n *Node) lowOf(yields bool) bool {
	if !n.lately(n.last, yields) {
		return false
	}
	least := n.desired(yields) / 2
	if b := n.view.Book; !yields && b != nil && b.yields() {
		least = n.desired(yields)
	}
	return n.stock(yields) < least
}
