package node

import (
	"errors"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// split lets a node send its part of the limit by itself while the store is away for all.
//
// It begins when no grant of any node counts any more. The store was away at the second failed turn
// in a row, if not at the first, whose answer alone may have been lost. So grants have ended TTL
// after that. They have arrived Late after their end, and count for a span more.
//
// Each node takes 1/n, where n is the number of nodes in the book at its last turn. The parts are
// no more than one together. A node that takes a part was in the book for TTL + Late. Each of the
// others has seen it there, since its own last turn was less than twice TTL before it noticed. A
// node that was stopped has not, and takes no part. When the store comes back, it must stay as long
// as each running node takes to notice: twice TTL.
type split struct {
	limiter limit.Limiter // of its part; nil: it has none
	of      int           // the part is 1/of
	from    mono.Time
	failed  mono.Time // when the last failed turn began: the store was away then
	// The end unless another turn fails: a stopped node does not know whether the store is still
	// away.
	until mono.Time
}

// on reports whether the part is used. The store was still away when no grant counted any more.
func (s *split) on() bool { return s != nil && s.limiter != nil && s.failed >= s.from }

// failedAlone notes a failed turn. At the first the node finds its part, and at the second the time
// from when on. If the store was read, and the put was lost or came too late, the store is there
// for others.
func (n *Node) failedAlone(p mono.Time, wasRead bool) {
	if !n.config.Split {
		return
	}
	// After such a stop it does not know whether the store was there meanwhile.
	if n.split == nil || n.began >= n.split.until {
		n.beginSplit(p)
	}
	s := n.split
	if n.failures <= 2 || wasRead && !s.on() {
		s.from = p.Add(n.config.TTL + n.config.Late).Add(limit.Span(n.fresh))
	}
	if wasRead {
		return
	}
	s.failed, s.until = n.began, n.began.Add(2*n.config.TTL)
}

func (n *Node) beginSplit(p mono.Time) {
	n.splits++
	n.split = &split{failed: mono.Min, until: n.began.Add(2 * n.config.TTL)}
	known := n.put.Sub(n.joined) >= n.config.TTL+n.config.Late && p.Sub(n.put) < 2*n.config.TTL
	if n.view.Book == nil || !n.in || !known {
		return
	}
	l := n.config.New()
	if of := len(n.view.Book.Nodes); Divide(l, n.fresh, p, int64(of)) {
		n.split.limiter, n.split.of = l, of
	}
}

// Away reports whether the store is away, by a turn's error. A store that was read and has another
// limit is there.
func Away(err error) bool {
	var there *ConfigurationError
	var version *VersionError
	return !errors.As(err, &there) && !errors.As(err, &version)
}

// Divide makes a new limiter one of n parts of the seen one, whose limit may have been set since.
// It reports whether that is possible. It is not where less than one would be left. Nor is it for a
// Calendar, whose windows begin by the store's clock.
func Divide(l, seen limit.Limiter, now mono.Time, n int64) bool {
	was := limit.Parts(seen)
	for i, part := range limit.Parts(l) {
		var err error
		switch u := limit.AppendUsage(nil, was[i], now); part := part.(type) {
		case *limit.Rolling:
			err = errors.Join(part.SetWindow(now, u[0].Window), part.SetLimit(now, u[0].PerWindow/n))
		case *limit.Weighted:
			err = errors.Join(part.SetWindow(now, u[0].Window), part.SetLimit(now, u[0].PerWindow/n))
		case *limit.Bucket:
			err = errors.Join(part.SetWindow(now, u[0].Window), part.SetLimit(now, u[0].PerWindow/n),
				part.SetBurst(now, u[0].Allowed/n))
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

// ready returns when a cost may go by the node's part and leave a part of that free; AfterSettle: not by
// that.
func (s *split) ready(p mono.Time, cost limit.Cost, free float64) mono.Time {
	if !s.on() {
		return limit.AfterSettle
	}
	if at := limit.ReadyLeaving(s.limiter, p, nil, cost, free); at < s.until {
		return at
	}
	return limit.AfterSettle
}

// goesAlone reports whether the node sends by its part now. It does not during a turn that has read
// the store and may be put.
func (n *Node) goesAlone(p mono.Time) bool {
	return n.split.on() && n.pending == nil && p < n.split.until
}

// endSplit grants nothing, once the store is back, until all nodes have reported their requests
// meanwhile, or none of those counts any more. It gives back earlier grants: they were kept for the
// node, and requests by its part did not use them.
//
// The first node to come may have had no part, as it waits, was stopped or is new. It sees that no
// node had a turn for so long that others may send by their parts.
func (t *pending) endSplit() {
	counts := t.config.Late + limit.Span(t.limiter)
	own := t.split.on()
	others := t.othersSplit() && t.now.Sub(t.book.Latest) >= t.config.TTL+counts
	if !own && !others {
		return
	}
	t.quiet(ErrAlone, t.now.Add(2*t.config.TTL+counts)) // parts are kept for twice TTL after a turn that failed
	t.parted = true
	t.pieces++
	t.giveBack()
}

// othersSplit reports whether any other node in the book splits.
func (t *pending) othersSplit() bool {
	for i := range t.book.Nodes {
		if e := &t.book.Nodes[i]; e.Splits && e.ID != t.config.ID {
			return true
		}
	}
	return false
}

// Alone returns when the node begins to send by its part alone, by its own clock, and whether it
// has begun. The part is 1/of of the limit. of is 0 if the node has no part, or does not split, or
// the store is there.
func (n *Node) Alone() (from mono.Time, of int, on bool) {
	if n.split == nil {
		return 0, 0, false
	}
	return n.split.from, n.split.of, n.split.on()
}

// alone is the record of a request that went by the node's part.
type alone struct {
	split uint64 // the number of the split; 0: it was granted
	until mono.Time
}

// settleAlone settles a request at the node's part, if that is still in use.
func (n *Node) settleAlone(s *sent, o *limit.Outcome) {
	if s.alone.split > 0 && s.alone.split == n.splits && n.split != nil {
		n.split.limiter.Settle(n.last, &s.Sent, o)
	}
}

// freshAlone reports whether a request by the node's part may still be written.
func (n *Node) freshAlone(s *sent, p mono.Time) bool {
	return s.alone.split == n.splits && n.split != nil && max(p, n.last) < s.alone.until
}

func (n *Node) admitAlone(s *limit.Sent) alone {
	n.split.limiter.Admit(s)
	return alone{n.splits, n.split.until}
}
