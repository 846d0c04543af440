// Package node is one node of those that share a limit, without a clock, a store or a goroutine: package share has the law, and drives
// it. Instants of the node's own clock are called p here and in the arguments; all others are of the ledger's.
package node

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Reading is what a store says at one instant.
type Reading struct {
	// Clock is the store's clock in nanoseconds, the same for all who ask. Wall is its time since 1970, which Clock may be.
	Clock, Wall int64
	// Incarnation stays the same only while nothing that was put can have been lost.
	Incarnation string
	// Steady says that nobody can set Clock.
	Steady bool
	// Blob is what was put last, nil if nothing was.
	Blob []byte
}

// Config describes a node. It was checked by New of package share.
type Config struct {
	// New returns a fresh limiter, always configured alike, on the ledger's scale: nanoseconds since 1970.
	New func() limit.Keeper
	// ID is a name that no other node has, not even an earlier process of the same machine. Name is for people.
	ID, Name string
	// Weight is the node's share where there is not enough for all. If zero, 1. Least is the part of the whole that it has at least then,
	// whatever the weights: 0 to 1.
	Weight, Least float64
	// Poll is the time from one turn to the next while there is demand, TTL how long grants hold after a turn, and Late how long a
	// request may be on its way after that. If zero, 250 ms, 2 s and DefaultLate.
	Poll, TTL, Late time.Duration
	// Split has the node send its part of the limit by itself while the store is away: see split.
	Split bool
}

// Node is a node. It is arithmetic on what it is told, and not safe for concurrent use. It is a limit.Limiter on the scale of its own
// clock: AfterSettle means until its driver is told of a turn.
type Node struct {
	config Config
	fresh  limit.Keeper // as of the last turn; says what never goes
	says   string       // its configuration, as it was made

	last   mono.Time // the last change
	bounds bounds
	seen   *sight // of a newcomer
	in     bool   // it is in the book, as far as it knows
	closed bool
	turn   uint64    // number of its last turn, put or not
	began  mono.Time // when that began; mono.Min: there was none
	served uint64
	pool   pool
	until  mono.Time // nothing is sent from here on
	pieces uint64    // generation of the grants
	joined mono.Time // when it came into the book
	put    mono.Time // when its last turn that was put began
	knows  *Book     // what the store had when this node was there last
	doubts bool      // it may have had a turn since
	said   []said    // lately
	came   uint64    // into the book, in the turn of that number at the latest
	// heldBack says that its last turn held back answers: see mayTell.
	heldBack bool
	mayHold  limit.Cost
	split    *split // nil: the store is there, as far as it knows
	splits   uint64
	flight   limit.Cost
	book     limit.Book[sent]
	answers  []answer

	demand
	pace
	pending *pending // of the turn under way
	changes []Change
	view    View
}

// sent is what is kept of a request.
type sent struct {
	at     mono.Time
	cost   limit.Cost
	pieces uint64
	from   mono.Time // of what was taken out of the pool
	taken  bool      // that was all of it
	alone  alone
}

// answer is one that is to be told.
type answer struct {
	at      mono.Time
	cost    limit.Cost
	outcome limit.Outcome
	told    uint64 // the turn in which it was told first, 0: not yet
}

// sight is what a newcomer saw first.
type sight struct {
	began, read mono.Time
	clock       int64
	incarnation string
	era, turn   uint64
}

// DefaultLate is Config.Late where nobody says otherwise, as nobody does but the proof.
const DefaultLate = 5 * time.Second

// New returns a node that knows nothing and holds nothing.
func New(c Config) *Node {
	if c.Weight == 0 {
		c.Weight = 1
	}
	if c.Poll == 0 {
		c.Poll = 250 * time.Millisecond
	}
	if c.TTL == 0 {
		c.TTL = 2 * time.Second
	}
	if c.Late == 0 {
		c.Late = DefaultLate
	}
	n := &Node{config: c, fresh: c.New(), last: mono.Min, until: mono.Min, began: mono.Min}
	n.says = n.fresh.Configuration()
	n.pace.reset()
	n.grain = max(n.fresh.Span()/2000, 1)
	return n
}

// Ready implements limit.Limiter.
func (n *Node) Ready(p mono.Time, cost limit.Cost) mono.Time {
	p = max(p, n.last)
	if cost == (limit.Cost{}) {
		return p
	}
	if n.fresh.Ready(mono.Min, cost) == limit.Never {
		return limit.Never
	}
	at := limit.AfterSettle
	if n.closed {
		return at
	}
	if l, ok := n.pool.covers(cost); ok {
		at = max(p, n.process(p, l))
		if at >= n.until {
			at = limit.AfterSettle
		}
	}
	if n.pending != nil { // the store is there, it seems
		return at
	}
	return min(at, n.split.ready(p, cost))
}

// Asked tells the node of a cost that its driver would send. Ready is not told, since it changes nothing.
func (n *Node) Asked(cost limit.Cost) { n.head, n.asks = cost, !n.closed }

// Line tells how many wait at the driver, the first of them with head.
func (n *Node) Line(waiting int, head limit.Cost) {
	n.waiting = waiting
	n.asks = waiting > 0
	n.head = head
}

// process returns an instant of the node's clock at which the ledger's time is surely l or later.
func (n *Node) process(p, l mono.Time) mono.Time {
	lo, _ := n.bounds.by(p)
	at := l.Add(-lo)
	if at > p { // until then lo is widened further
		at = at.Add(at.Sub(p)/(drift-1) + 1)
	}
	return at
}

// Admit implements limit.Limiter. What is not there to be taken counts nevertheless.
func (n *Node) Admit(p mono.Time, cost limit.Cost) limit.Lease {
	n.last = max(p, n.last)
	var by alone
	var from mono.Time
	var taken bool
	if n.goesAlone(n.last) {
		by = n.admitAlone(n.last, cost)
	} else {
		from, taken = n.pool.take(cost)
	}
	plus(&n.flight, &cost)
	n.asks = false
	if n.waiting > 0 {
		n.waiting--
	}
	n.use(n.last, &cost)
	return n.book.Open(sent{n.last, cost, n.pieces, from, taken, by})
}

// Fresh says whether the request of a lease may be written now.
func (n *Node) Fresh(p mono.Time, l limit.Lease) bool {
	s := n.book.At(l)
	if s.alone.split > 0 {
		return n.freshAlone(s, p)
	}
	return s.pieces == n.pieces && max(p, n.last) < n.until
}

// Close has the node want and keep nothing from now on: its next turn gives back all that is not in flight.
func (n *Node) Close() {
	n.closed, n.asks, n.waiting = true, false, 0
}

// In tells whether the node is in the book, as far as it knows, or has something to tell.
func (n *Node) In() bool { return n.in || n.holds() != (limit.Cost{}) || len(n.changes) > 0 }

// Limiter returns the limiter as of the last turn, to be asked and not changed.
func (n *Node) Limiter() limit.Limiter { return n.fresh }

// AppendUsage appends what is used of the limit by all, as of the last turn, or nothing once all of that has passed, and then as much of the same by this node.
func (n *Node) AppendUsage(to []limit.Usage, p mono.Time) []limit.Usage {
	now := mono.Min
	if n.bounds.known {
		lo, _ := n.bounds.by(max(p, n.last))
		now = max(p, n.last).Add(lo)
	}
	first := len(to)
	to = limit.AppendUsage(to, n.fresh, now)
	if !n.in && max(p, n.last).Sub(n.put) > n.config.TTL+n.config.Late+n.fresh.Span() { // nobody knows what others do since
		for i := range to[first:] {
			u := &to[first+i]
			u.Used, u.Open, u.Recent = 0, 0, 0
		}
	}
	holds := n.holds()
	for _, u := range to[first:] {
		u.Used, u.Open, u.Total, u.Recent, u.Fits = holds[u.Unit], n.flight[u.Unit], 0, 0, 0
		to = append(to, u)
	}
	return to
}

// Waiting tells how many wait at the driver.
func (n *Node) Waiting(waiting int) {
	if n.closed { // they wait in vain
		return
	}
	n.waiting = waiting
	n.asks = n.asks && waiting > 0
}

// Settle implements limit.Limiter.
func (n *Node) Settle(p mono.Time, l limit.Lease, o limit.Outcome) {
	s := n.book.Close(l)
	n.last = max(p, n.last)
	n.settleAlone(&s, o)
	if o.Result == limit.Unsent {
		minus(&n.flight, &s.cost)
		if s.taken && s.pieces == n.pieces {
			n.pool.add(part{s.from, s.cost})
		}
		return
	}
	n.trip += (n.last.Sub(s.at) - n.trip) / 8
	n.answers = append(n.answers, answer{at: n.last, cost: s.cost, outcome: o})
}

func plus(sum, c *limit.Cost) {
	for u, n := range c {
		sum[u] = min(sum[u]+min(max(n, 0), limit.MaxCost), limit.MaxCost)
	}
}

func minus(sum, c *limit.Cost) {
	for u, n := range c {
		sum[u] = max(sum[u]-min(max(n, 0), limit.MaxCost), 0)
	}
}

// Holds is what the node has that counts: what is in the pool, what is in flight, and answers that nobody was told of.
func (n *Node) holds() limit.Cost {
	c := n.flight
	all := n.pool.sum()
	plus(&c, &all)
	return c
}

// View is what a node saw at its last turn that was put, for people.
type View struct {
	Book  *Book
	Quiet Quiet
}

// View returns it.
func (n *Node) View() View { return n.view }

// ConfigurationError says that a limit is kept under this name with another configuration.
type ConfigurationError struct{ Here, There string }

func (e *ConfigurationError) Error() string {
	return fmt.Sprintf("share: this limit is %q here, and %q where it is kept: give it another name, or the same configuration everywhere", e.Here, e.There)
}
