package node

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// A node that was not there lately does not know an old copy of the book. It looks whether the book
// is overdue: some of its nodes would have come again by now. Either they have ended, or the copy is
// old, and they find that out when they come. So the node waits until they had the time to come.
//
// There is nothing to wait for in a copy of a time when nobody was there.

// overdue is a book whose nodes should have come again, and when this node read it first.
type overdue struct {
	life  uint32
	turn  uint64
	since mono.Time // by the node's clock
}

// waitsForOthers reports whether a node that was not there lately has to wait, since the book is
// overdue. now is the ledger's time of a reading that returned at p. At a store whose clock can be
// set a newcomer has waited before: see locate.
func (n *Node) waitsForOthers(b *Book, now, p mono.Time, steady bool) bool {
	most := n.config.betweenTurns() + 2*n.took
	waited := !steady && (!n.bounds.known || n.bounds.era != b.Era)
	stopped := n.elapsed > most+n.config.TTL/8 // a busy machine may be late by less
	there := n.overdue == nil && n.in && n.wasThere(p) && !stopped
	if waited || there || n.closed || !b.isOverdue(&n.config, now.Add(-most)) {
		n.overdue = nil
		return false
	}
	if o := n.overdue; o == nil || o.life != b.Life || o.turn != b.Turn {
		n.overdue = &overdue{b.Life, b.Turn, p}
	}
	return p.Sub(n.overdue.since) < most
}

// betweenTurns is the most from one turn of a node in the book to its next one, beside the time that
// a turn takes: see Next.
func (c *Config) betweenTurns() time.Duration { return c.TTL/2 + c.TTL/32 }

// isOverdue reports whether another node has had no turn since an instant. Nodes that were missing
// at the book's last turn do not count.
func (b *Book) isOverdue(c *Config, since mono.Time) bool {
	return slices.ContainsFunc(b.Nodes, func(e Entry) bool {
		at := e.Until.Add(-c.TTL)
		return e.ID != c.ID && e.At != nobody && at < since && at.Add(c.betweenTurns()) >= b.Latest
	})
}
