package ledger

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// split is what a node does by itself while the store is away for all: it sends its part of the limit.
//
// It begins when nothing counts any more that anybody was granted. The store was away at the first turn that failed, so grants have ended TTL
// after that, have arrived Late after that, and count for a span more. Each node takes 1/n, n being those in the book at its last turn. The
// parts are no more than one together: whoever takes one was in the book for TTL, in which each of the others has taken a turn and has seen it.
type split struct {
	limiter limit.Keeper // of its part; nil: there is none for it
	from    mono.Time
}

// beginSplit finds out, at the first turn that fails, what the node's part is.
func (n *Node) beginSplit(p mono.Time) {
	if !n.config.Split || n.split != nil {
		return
	}
	n.splits++
	n.split = &split{from: p.Add(n.config.TTL + n.config.Late).Add(n.fresh.Span())}
	if n.view.Book == nil || !n.in || n.put.Sub(n.joined) < n.config.TTL {
		return
	}
	l := n.config.New()
	if Divide(l, p, int64(len(n.view.Book.Nodes))) {
		n.split.limiter = l
	}
}

// Divide lowers a limiter that was just made to one of n parts, and tells whether that could be done: not where less than one would be left,
// nor a Calendar, whose windows begin when the store says.
func Divide(l limit.Limiter, now mono.Time, n int64) bool {
	for _, part := range limit.Parts(l) {
		var err error
		switch u := limit.AppendUsage(nil, part, now); part := part.(type) {
		case *limit.Rolling:
			err = part.SetLimit(now, u[0].PerWindow/n)
		case *limit.Weighted:
			err = part.SetLimit(now, u[0].PerWindow/n)
		case *limit.Bucket:
			if err = part.SetLimit(now, u[0].PerWindow/n); err == nil {
				err = part.SetBurst(now, u[0].Allowed/n)
			}
		case *limit.Cooldown:
		default:
			return false
		}
		if err != nil {
			return false
		}
	}
	return true
}

// ready is when a cost may go by the node's part; AfterSettle: not by that.
func (s *split) ready(p mono.Time, cost limit.Cost) mono.Time {
	if s == nil || s.limiter == nil {
		return limit.AfterSettle
	}
	return min(s.limiter.Ready(max(p, s.from), cost), limit.AfterSettle)
}

// goesAlone tells whether the node sends by its part now.
func (n *Node) goesAlone(p mono.Time) bool {
	return n.split != nil && n.split.limiter != nil && p >= n.split.from
}

// endSplit has nothing granted, once the store is back, until all have told what they sent meanwhile, or nothing of it counts any more.
func (t *pending) endSplit() {
	if t.split != nil && t.split.limiter != nil && t.began >= t.split.from {
		t.book.Quiet = max(t.book.Quiet, t.now.Add(t.config.TTL+t.config.Late).Add(t.limiter.Span()))
	}
}

// Alone says since when the node sends by its part alone, on its own clock, or from when on it will; ok is false where it does not.
func (n *Node) Alone() (from mono.Time, ok bool) {
	if n.split == nil || n.split.limiter == nil {
		return 0, false
	}
	return n.split.from, true
}

// alone is what is kept of a request that went by the node's part.
type alone struct {
	lease limit.Lease
	split uint64 // which time; 0: it was granted
	until mono.Time
}

// settleAlone tells the node's part how a request ended, if that is still in use.
func (n *Node) settleAlone(s *sent, o limit.Outcome) {
	if s.alone.split > 0 && s.alone.split == n.splits && n.split != nil {
		n.split.limiter.Settle(n.last, s.alone.lease, o)
	}
}

// freshAlone says whether a request that went by the node's part may still be written.
func (n *Node) freshAlone(s *sent, p mono.Time) bool {
	return s.alone.split == n.splits && n.split != nil && max(p, n.last) < s.alone.until
}

func (n *Node) admitAlone(p mono.Time, cost limit.Cost) alone {
	return alone{n.split.limiter.Admit(p, cost), n.splits, p.Add(n.config.TTL)}
}
