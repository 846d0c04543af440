package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// recall.go rebuilds the state that the store lost. The first node to come that was there puts back
// the state at its own last turn, and the most that may have been granted since. Otherwise the
// others would be quiet until the last of that no longer counts, which takes TTL and Late and a
// window. The state has three parts:
//
//  1. The present nodes. The recalling node came less than presence ago. So no node has raised the
//     amount it may hold without a turn of this one, and no newcomer has begun an era of its own.
//     Each node holds no more than its entry allows or asks for. Nodes that are not in the book
//     hold no more than their part together. All of that is open, until each node comes and reports
//     what it holds. A node that does not come sends until TTL from now at most.
//  2. The reports since then. The reported requests have arrived by now, or later by no more than
//     ripe allows. They were granted beside the grants in the book. So they are no more than was
//     free of the limit then. All of that counts as having arrived now, unless gather finds that it
//     is less.
//  3. The store's book. If this node's last turn may or may not have been put, it is the book that
//     this node had read.
//
// A node may have raised the amount it may hold since, and then find the older figure. It takes the
// smaller one. Another node may know the newer one, and put it back when the store loses its state
// once more.

// recalls reports whether the node knows the state that the store lost. b is the book that another
// node has put since, or nil. Such a book is new, or is an older one that is still gathered.
func (n *Node) recalls(b *Book, r *Reading, p mono.Time) bool {
	if r.Steady || !n.in || n.knows == nil || !n.wasThere(p) {
		return false
	}
	elsewhere := n.knows.Incarnation != r.Incarnation
	switch {
	case b == nil: // otherwise somebody removed it
		return elsewhere
	case n.wentBack(b, r, p):
		return true
	case b.Incarnation != r.Incarnation:
		return elsewhere
	case b.From != 0:
		return n.vouches(b, p) && n.knows.Turn > b.Base
	}
	return b.Blank && b.Life != n.knows.Life && (elsewhere || b.WentBack)
}

// errRecalled means that the book is this node's knowledge of one that the store has lost.
var errRecalled = errors.New("recalled")

// unsure notes that a turn may or may not have been put. The book that it read is then known for
// sure. A node that may have left the book knows nothing, since others may hold more since.
func (n *Node) unsure(t *pending) {
	if t.goes {
		n.knows = nil
		return
	}
	if t.was == nil {
		return
	}
	if b, err := Decode(t.was); err == nil {
		n.knows, n.doubts = b, true
	}
}

// leastMost bounds the node's holding by its own knowledge, where another node recalled the book.
func (t *pending) leastMost() {
	if t.knows == nil || t.knows.Life == t.book.Life {
		return
	}
	for u := range t.mine.Most {
		t.mine.Most[u] = min(t.mine.Most[u], t.mayHold[u])
	}
	t.mine.Asks = t.mine.Most
}

// recalled returns the store's book as this node knows it, with the nodes that have come to the
// store since. came is the store's book, or nil.
func (n *Node) recalled(came *Book, r *Reading, p mono.Time) *Book {
	b := *n.knows
	b.Incarnation, b.Nodes = r.Incarnation, slices.Clone(b.Nodes)
	b.From, b.Base, b.Gather = n.knows.Life, b.Turn, 0
	b.Life, b.Lives = n.newLife(&b, r), lineage(came, n.knows)
	for i := range b.Nodes {
		b.Nodes[i].Came = awaited
	}
	if came == nil || n.isLost(came, r, p) {
		return &b
	}
	gathered := came.From != 0
	if gathered { // the others' knowledge of the time is by this one
		b.Life, b.Lives = came.Life, came.Lives
		b.Gather, b.Forgot, b.Shift, b.Slack, b.Quiet = came.Gather, came.Forgot, came.Shift, came.Slack,
			max(b.Quiet, came.Quiet)
		b.Turn, b.Latest = max(b.Turn, came.Turn), max(b.Latest, came.Latest)
	}
	for _, c := range came.Nodes {
		i := slices.IndexFunc(b.Nodes, func(e Entry) bool { return e.ID == c.ID })
		switch {
		case gathered && c.Came < back:
			continue // b has later reports
		case !gathered && i >= 0:
			continue
		case !gathered:
			c.Most, c.Asks, c.Asked, c.Came = limit.Cost{}, limit.Cost{}, 0, back
			// It was quiet, and may be back only in a second. Its share until then would go to
			// nobody.
			c.Want = 0
		}
		if c.At != nobody {
			c.At = 0 // it has not seen the content of b
		}
		if i >= 0 {
			b.Nodes[i] = c
		} else {
			b.Nodes = append(b.Nodes, c)
		}
	}
	return &b
}

// recall counts all that may have been granted and reported since the book was put.
func (n *Node) recall(b *Book, now mono.Time) error {
	l := n.config.New()
	if len(b.State) > 0 {
		if err := limit.Restore(l, b.State); err != nil {
			return &damagedState{err}
		}
	}
	if b.Gather == 0 {
		b.Gather, b.Forgot = now.Add(n.config.gathering()), now
	}
	until := now.Add(n.config.TTL)
	for i := range b.Nodes {
		e := &b.Nodes[i]
		if e.Came != awaited {
			continue
		}
		e.Next, e.Want = now, 0
		if n.knows.absent(e, &n.config) {
			e.Came = gone
			continue
		}
		for u := range e.Open {
			e.Open[u] = max(e.Open[u], e.Most[u], e.Asks[u])
		}
		e.Until = until
	}
	told := Entry{ID: b.toldID(), Name: "what was told just before the store forgot", At: nobody,
		Open: toldMost(l, now, now.Sub(n.knows.Latest)), Until: b.Gather.Add(n.ahead() - n.config.Late)}
	unseen := Entry{ID: fmt.Sprint("unseen ", b.Base), Name: "whoever came just before the store forgot", At: nobody,
		Open: unseenMost(wholeOf(l, now)), Until: until}
	unseen.Most = unseen.Open
	b.Nodes = append(b.Nodes, told, unseen)
	return nil
}

// toldMost returns the most that was granted and reported in the time d before now, of which l
// knows nothing, and that still counts. It is the free amount of each part now, and the largest
// such amount of several parts of one unit. But it is no more than each of them lets through in
// that time. The effect of a request on a Weighted depends on its time, so all of a Weighted
// counts.
func toldMost(l limit.Limiter, now mono.Time, d time.Duration) (told limit.Cost) {
	var passes limit.Cost
	for _, part := range limit.Parts(l) {
		for _, u := range limit.AppendUsage(nil, part, now) {
			if u.InFlight { // a place is reported by nobody
				continue
			}
			if _, ok := part.(*limit.Weighted); ok {
				u.Used = 0
			}
			through := u.Allowed + min(int64(float64(u.PerWindow)*(float64(max(d, 0))/float64(u.Window)+1)), limit.MaxCost)
			if passes[u.Unit] == 0 || through < passes[u.Unit] {
				passes[u.Unit] = through
			}
			told[u.Unit] = max(told[u.Unit], u.Allowed-u.Used)
		}
	}
	for u := range told {
		told[u] = min(told[u], passes[u], limit.MaxCost)
	}
	return told
}
