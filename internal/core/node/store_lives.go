package node

import (
	"slices"

	"github.com/paceline-go/paceline/limit/mono"
)

// A store may go back in time: a snapshot of its machine or a backup is restored, or an old server
// answers again. Its incarnation may stay the same. The nodes find out, by what they know of their
// own puts.
//
// Each book belongs to a life, which begins when the state was lost, and has a name that nobody
// uses again. The book lists the lives before its own. So a node that knows a later life knows an
// earlier one by its name. Within a life the number of the turn rises with each put, and so do the
// numbers of each node's own turns. A book that is older than what the node knows is of a store
// that lost its state, and recall.go says how it goes on: in a life of its own.
//
// A node that read nothing since the copy was made cannot find out. It holds no more than others
// know that it may hold. If it was not there lately, it waits for others first: see overdue.go.

// livesMost is the number of lives that a book lists. Only a store that loses its state again and
// again has as many.
const livesMost = 64

// isLost reports whether the store of a book has lost its state since, as far as this node knows at
// p.
func (n *Node) isLost(b *Book, r *Reading, p mono.Time) bool {
	return b.Incarnation != r.Incarnation || n.wentBack(b, r, p)
}

// stage is how far a book has come.
type stage struct {
	life  uint32
	lives []uint32 // before it
	turn  uint64
}

func (b *Book) stage() stage { return stage{b.Life, b.Lives, b.Turn} }

// isBefore reports whether a book is older than one of that stage.
func (b *Book) isBefore(s *stage) bool {
	if b.Life != s.life {
		return slices.Contains(s.lives, b.Life)
	}
	return b.Turn < s.turn
}

// strays reports whether a book has another life than one of that stage, and does not follow it.
func (b *Book) strays(s *stage) bool {
	return s.life != 0 && b.Life != s.life && !slices.Contains(b.Lives, s.life)
}

// wentBack reports whether a book is older than the latest that this node put or read, or of a life
// that was lost before this node read anything of it. That may be the life of a node that found out
// first, just before the store went back once more. But while nothing is granted there, no matter
// who began that life, all earlier grants count.
func (n *Node) wentBack(b *Book, r *Reading, p mono.Time) bool {
	known := n.knows
	switch {
	case b.isBefore(&n.latest):
		return true
	case b.strays(&n.latest):
		return n.in && n.wasThere(p) && !(b.Blank && mono.Time(r.Clock).Add(b.Shift) < b.Quiet)
	case known == nil, known.Life != b.Life:
		return false
	}
	if e := b.entry(n.config.ID); e != nil {
		return e.Turn < n.putTurn
	}
	return n.in && b.Era == known.Era && n.wasThere(p) // nobody has given it up
}

// newLife makes up the name of a life.
func (n *Node) newLife(b *Book, r *Reading) uint32 {
	return max(uint32(n.nextEra(b.Era^uint64(b.Life), r)>>32), 1) // 0 is none
}

// addLives adds to a book the lives that this node knows and others may not.
func (n *Node) addLives(b *Book) {
	if n.knows == nil || n.knows.Life == b.Life {
		return
	}
	all := lineage(n.knows, b)
	b.Lives = all[:len(all)-1]
}

// lineage returns the lives that a new life follows: those of both books, either of which may be
// nil.
func lineage(a, b *Book) (all []uint32) {
	for _, of := range []*Book{a, b} {
		if of == nil {
			continue
		}
		for _, life := range append(slices.Clone(of.Lives), of.Life) {
			all = append(slices.DeleteFunc(all, func(l uint32) bool { return l == life }), life)
		}
	}
	return all[max(len(all)-livesMost, 0):]
}
