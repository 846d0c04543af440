package node

import (
	"errors"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// split is what a node does by itself while the store is away for all: it sends its part of the limit.
//
// It begins when nothing counts any more that anybody was granted. The store was away at the second turn in a row that failed, if not at the
// first, whose answer alone may have been lost; so grants have ended TTL after that, have arrived Late after that, and count for a span more.
// Each node takes 1/n, n being those in the book at its last turn. The parts are no more than one together: whoever takes one was in the book
// for TTL + Late, and each of the others has seen it there, as its own last turn was less than twice TTL before it noticed. One that was
// stopped has not, and takes no part. It needs the store, where that comes back, to be there for as long as each that runs takes to notice: twice TTL.
type split struct {
	limiter limit.Keeper // of its part; nil: there is none for it
	of      int          // that is 1/of
	from    mono.Time
	failed  mono.Time // when the last turn that failed began: the store was away then
	until   mono.Time // unless another turn fails: who was stopped does not know whether the store is still away
}

// on says that the part is used, until it is said otherwise. The store was still away when nothing granted counted any more.
func (s *split) on() bool { return s != nil && s.limiter != nil && s.failed >= s.from }

// failedAlone takes in that a turn failed: at the first the node finds out what its part is, and at the second from when on. Where the store
// was read, and the put was lost or came too late, it is there for others.
func (n *Node) failedAlone(p mono.Time, wasRead bool) {
	if !n.config.Split {
		return
	}
	if n.split == nil || n.began >= n.split.until { // stopped for so long it does not know whether the store was there meanwhile
		n.beginSplit(p)
	}
	s := n.split
	if n.failures <= 2 || wasRead && !s.on() {
		s.from = p.Add(n.config.TTL + n.config.Late).Add(n.fresh.Span())
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

// Away says of a turn's error that the store is, as far as that tells: it is there where it is read and has something else.
func Away(err error) bool {
	var there *ConfigurationError
	var version *VersionError
	return !errors.As(err, &there) && !errors.As(err, &version)
}

// Divide has a limiter that was just made be one of n parts of what it is elsewhere, as seen, where that may have been set to another limit
// since. It tells whether that could be done: not where less than one would be left, nor a Calendar, whose windows begin when the store says.
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
			err = errors.Join(part.SetWindow(now, u[0].Window), part.SetLimit(now, u[0].PerWindow/n), part.SetBurst(now, u[0].Allowed/n))
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
	if !s.on() {
		return limit.AfterSettle
	}
	if at := s.limiter.Ready(p, cost); at < s.until {
		return at
	}
	return limit.AfterSettle
}

// goesAlone tells whether the node sends by its part now: not while a turn is under way that has read what the store has, and may be put.
func (n *Node) goesAlone(p mono.Time) bool {
	return n.split.on() && n.pending == nil && p < n.split.until
}

// endSplit has nothing granted, once the store is back, until all have told what they sent meanwhile, or nothing of it counts any more. What
// was granted before is given back: it was kept for the node, and what went by its part was not.
//
// Whoever comes first may have had no part, as it waits, was stopped or is new. It sees that nobody had a turn for so long that those who split
// may send by their parts.
func (t *pending) endSplit() {
	counts := t.config.Late + t.limiter.Span()
	own := t.split.on()
	others := t.othersSplit() && t.now.Sub(t.book.Latest) >= t.config.TTL+counts
	if !own && !others {
		return
	}
	t.quiet(ErrAlone, t.now.Add(2*t.config.TTL+counts)) // parts are kept for twice TTL after a turn that failed
	t.parted = true
	t.pieces++
	t.limiter.Settle(t.now, t.held, limit.Outcome{Result: limit.Unsent})
	t.pool.parts = nil
}

// othersSplit tells whether anybody else who is in the book splits.
func (t *pending) othersSplit() bool {
	for i := range t.book.Nodes {
		if e := &t.book.Nodes[i]; e.Splits && e.ID != t.config.ID {
			return true
		}
	}
	return false
}

// Alone says from when on, by its own clock, the node sends by its part alone, which part of the limit that is (one of as many as of says),
// and whether it has begun. of is 0 where it has no part, or does not split, or the store is there.
func (n *Node) Alone() (from mono.Time, of int, on bool) {
	if n.split == nil {
		return 0, 0, false
	}
	return n.split.from, n.split.of, n.split.on()
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
	return alone{n.split.limiter.Admit(p, cost), n.splits, n.split.until}
}
