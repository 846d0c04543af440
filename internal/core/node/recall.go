package node

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// When a store has forgotten, the first to come that was there says what the store had at its own last turn, and what may have been granted
// since, so that others are not quiet until the last of that no longer counts, which is TTL and Late and a window.
//
//  1. Who is there. It came less than presence ago, so nobody has raised what it may hold without a turn of this one (most), and no newcomer has
//     begun an era of its own: each node holds no more now than its entry says that it may, or asked for, and those that are not in the book
//     hold no more than their part together. All of that is open, until each comes and says what it does hold. Who does not come sends until TTL from now at most.
//  2. What was told since arrived by now, or ahead of now by no more than is told (ripe), and was granted beside what the book says: so it is no
//     more than what was free of the limit then. All of that counts as having arrived now, unless gather finds that it is less.
//  3. It was the store's: where this node's last turn may or may not have been put, it is the book that this one had read.
//
// Who has raised what it may hold since, and finds the older figure, takes the smaller one: another who was there may know the newer, and
// say so when the store forgets once more.

// recalls tells whether the node can say what a store had that has forgotten. b is what somebody else has put there since, or nil: nothing of its
// own, or something older that is still gathered.
func (n *Node) recalls(b *Book, r *Reading, p mono.Time) bool {
	if r.Steady || !n.in || n.knows == nil || n.knows.Incarnation == r.Incarnation {
		return false
	}
	if b != nil && b.Incarnation == r.Incarnation {
		if b.From != "" {
			return n.vouches(b, p) && n.knows.Turn > b.Base
		}
		if !b.Blank {
			return false
		}
	}
	return n.wasThere(p)
}

// errRecalled says that the book is what a node knows of one that the store has forgotten.
var errRecalled = errors.New("recalled")

// unsure notes that nobody knows whether a turn was put: what the store had is then surely what it read. Whoever may have left the book has
// nothing to say: others may hold more since.
func (n *Node) unsure(t *pending) {
	if t.leaves {
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

// leastMost has the node hold no more than it may by what it knows itself, where what it may by the book was recalled by another.
func (t *pending) leastMost() {
	if t.knows == nil || t.knows.Incarnation == t.book.Incarnation {
		return
	}
	for u := range t.mine.Most {
		t.mine.Most[u] = min(t.mine.Most[u], t.mayHold[u])
	}
	t.mine.Asks = t.mine.Most
}

// recalled is the book that the store had, as this node knows it, with those who have come to the store since.
func (n *Node) recalled(came *Book, r *Reading) *Book {
	b := *n.knows
	b.Incarnation, b.Nodes = r.Incarnation, slices.Clone(b.Nodes)
	b.From, b.Base, b.Gather = n.knows.Incarnation, b.Turn, 0
	for i := range b.Nodes {
		b.Nodes[i].Came = awaited
	}
	if came == nil || came.Incarnation != r.Incarnation {
		return &b
	}
	gathered := came.From != ""
	if gathered { // what others know of the time is by this one
		b.Gather, b.Forgot, b.Shift, b.Slack, b.Quiet = came.Gather, came.Forgot, came.Shift, came.Slack, max(b.Quiet, came.Quiet)
		b.Turn, b.Latest = max(b.Turn, came.Turn), max(b.Latest, came.Latest)
	}
	for _, c := range came.Nodes {
		i := slices.IndexFunc(b.Nodes, func(e Entry) bool { return e.ID == c.ID })
		switch {
		case gathered && c.Came < back:
			continue // b has what was later
		case !gathered && i >= 0:
			continue
		case !gathered:
			c.Most, c.Asks, c.Asked, c.Came = limit.Cost{}, limit.Cost{}, 0, back
			c.Want = 0 // it was told to be quiet, and may be back only in a second: what falls to it meanwhile nobody has
		}
		c.At = 0 // it has not seen what is in b
		if i >= 0 {
			b.Nodes[i] = c
		} else {
			b.Nodes = append(b.Nodes, c)
		}
	}
	return &b
}

// recall has all count that may have been granted and told since the book was put.
func (n *Node) recall(b *Book, now mono.Time) error {
	l := n.config.New()
	if len(b.State) > 0 {
		if err := l.Restore(b.State); err != nil {
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
	unseen := Entry{ID: fmt.Sprint("unseen ", b.Base), Name: "whoever came just before the store forgot", At: nobody, Open: unseenMost(wholeOf(l, now)), Until: until}
	unseen.Most = unseen.Open
	b.Nodes = append(b.Nodes, told, unseen)
	return nil
}

// toldMost is how much was granted and told at most in the time before now of which l knows nothing, and still counts: what is free of each part
// now, and of several of the same unit the most that is, but no more than each of them lets through in that time. What a Weighted makes of
// requests depends on when they came, so all of it is taken.
func toldMost(l limit.Limiter, now mono.Time, d time.Duration) (told limit.Cost) {
	var passes limit.Cost
	for _, part := range limit.Parts(l) {
		for _, u := range limit.AppendUsage(nil, part, now) {
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
