package node

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Reading is the state of a store at one instant.
type Reading struct {
	// Clock is the store's clock in nanoseconds, the same for all nodes. Wall is its time since
	// 1970, which Clock may be.
	Clock, Wall int64
	// Incarnation stays the same only while no put can have been lost.
	Incarnation string
	// Steady means that nobody can set Clock.
	Steady bool
	// Blob is the latest put, nil if there was none.
	Blob []byte
}

// Config describes a node. New of package share checks it.
type Config struct {
	// New returns a fresh limiter, always with the same configuration, on the ledger's scale:
	// nanoseconds since 1970.
	New func() limit.Limiter
	// ID is a name that no other node has, not even an earlier process of the same machine. Name is
	// for people.
	ID, Name string
	// Weight is the node's share where there is not enough for all. If zero, 1. Least is the least
	// part of the whole for this node then, whatever the weights: 0 to 1.
	Weight, Least float64
	// Poll is the time from one turn to the next while there is demand. TTL is how long grants hold
	// after a turn. Late is how long a request may be on its way after that. If zero, 250 ms, 2 s
	// and DefaultLate.
	Poll, TTL, Late time.Duration
	// Split makes the node send its part of the limit by itself while the store is away: see split.
	Split bool
	// Ended, if not nil, reports whether the process of a node with that ID has certainly ended, and its requests
	// with it. It is asked about nodes that have places and no turns.
	Ended func(id string) bool
}

// CheckName reports why a text cannot be the name of a limit, such as one that some database would refuse. It is
// nil for a valid one.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > 200:
		return fmt.Errorf("%q is not between 1 and 200 bytes long", name)
	case strings.ToValidUTF8(name, "") != name || strings.Contains(name, "\x00"):
		return fmt.Errorf("%q is no UTF-8, or has a zero byte", name)
	}
	return nil
}

// CheckWeight reports why a number cannot be a weight. It is nil for a valid one.
func CheckWeight(weight float64) error { return between(weight, 0.001, 1000) }

// CheckLeast reports why a number cannot be the least part of a member. It is nil for a valid one.
func CheckLeast(least float64) error { return between(least, 0, 0.95) }

func between(n, least, most float64) error {
	if n >= least && n <= most {
		return nil
	}
	return fmt.Errorf("%v is not between %v and %v", n, least, most)
}

// Node is one node. It computes from its calls alone, and is not safe for concurrent use. It is a
// limit.Limiter on the scale of its own clock. AfterSettle means until the driver's next turn.
type Node struct {
	config Config
	fresh  limit.Limiter // as of the last turn; knows costs that never go
	empty  limit.Limiter // nothing counts in it, for NotBefore
	says   string        // the limiter's configuration, when the node was made

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
	since  mono.Time // when its first turn that was put began; mono.Max: there was none
	// putTurn is the number of that turn.
	putTurn uint64
	knows   *Book // the store's book at the node's last turn
	latest  stage // of the latest book that it put or read
	overdue *overdue
	doubts  bool   // the node may have had a turn since
	said    []said // reports of answers lately
	came    uint64 // the turn of the book in which the node came, at the latest
	// heldBack means that its last turn held back answers: see mayTell.
	heldBack bool
	mayHold  limit.Cost
	split    *split // nil: the store is there, as far as it knows
	splits   uint64
	flight   limit.Cost
	total    limit.Cost // all that was ever settled
	book     limit.Book[sent]
	answers  []answer

	places *places // nil: its limit is of windows
	demand
	pace
	pending *pending // of the turn under way
	changes []Change
	view    View
}

// sent is the record of a request.
type sent struct {
	limit.Sent // At is by the node's clock
	pieces     uint64
	from       mono.Time // when the grant for it began to hold
	taken      bool      // the grants covered all of its cost
	alone      alone
	yields     bool // it left a part of the limits free
}

// answer is an answer that is still to be reported.
type answer struct {
	at      mono.Time
	cost    limit.Cost
	outcome limit.Outcome
	told    uint64 // the turn that reported it first, 0: not yet
}

// sight is a new node's first reading.
type sight struct {
	began, read mono.Time
	clock       int64
	incarnation string
	era, turn   uint64
}

// The defaults of Config.TTL and Config.Late. Only the proof configures others.
const (
	DefaultTTL  = 2 * time.Second
	DefaultLate = 5 * time.Second
)

// New returns a node that knows nothing and holds nothing.
func New(c Config) *Node {
	c.Weight = cmp.Or(c.Weight, 1)
	c.Poll = cmp.Or(c.Poll, 250*time.Millisecond)
	c.TTL = cmp.Or(c.TTL, DefaultTTL)
	c.Late = cmp.Or(c.Late, DefaultLate)
	var s *places
	if c.ofPlaces() {
		s = &places{mark: mono.Min, most: [2]int64{math.MaxInt64, math.MaxInt64}}
	}
	n := &Node{config: c, fresh: c.New(), empty: c.New(), places: s, last: mono.Min, until: mono.Min, began: mono.Min, since: mono.Max}
	n.says = limit.Configuration(configured(n.fresh))
	n.pace.reset()
	n.grain = max(limit.Span(n.fresh)/2000, 1)
	return n
}

// Ready implements limit.Limiter.
func (n *Node) Ready(p mono.Time, cost limit.Cost) mono.Time { return n.ReadyLeaving(p, cost, 0) }

// ReadyLeaving is Ready for a cost that leaves a part of each limit free, from 0 to 1.
func (n *Node) ReadyLeaving(p mono.Time, cost limit.Cost, free float64) mono.Time {
	p, cost = max(p, n.last), n.counted(cost)
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
	if l, ok := n.pool.covers(cost, free > 0); ok {
		at = max(p, n.process(p, l))
		if at >= n.until {
			at = limit.AfterSettle
		}
	}
	if n.pending != nil { // the store seems to be there
		return at
	}
	return min(at, n.split.ready(p, cost, free))
}

// Asked notes a cost that the driver would send, and the part of each limit that it leaves free. Ready
// does not note it, since Ready changes nothing. Of several such parts the smallest counts: a driver
// leaves no more free than each of those that wait.
func (n *Node) Asked(cost limit.Cost, free float64) {
	switch {
	case n.closed:
	case !n.asks, free < n.leaves:
		n.leaves = free
	}
	n.head, n.asks = n.counted(cost), !n.closed
	if free > 0 {
		n.yielded = free
	}
}

// Line notes how many tickets wait at the driver. All leave a part free, or 0. head is the cost of the first
// of them.
func (n *Node) Line(waiting int, head limit.Cost, free float64) {
	n.asks = false
	n.Asked(head, free)
	n.waiting = waiting
	n.asks = waiting > 0
}

// process returns an instant of the node's clock at which the ledger's time is surely l or later.
func (n *Node) process(p, l mono.Time) mono.Time {
	lo, _ := n.bounds.by(p)
	at := l.Add(-lo)
	if at > p { // until then lo becomes lower
		at = at.Add(at.Sub(p)/(drift-1) + 1)
	}
	return at
}

// Admit implements limit.Limiter. A cost beyond the grants counts nevertheless.
func (n *Node) Admit(r *limit.Sent) {
	n.last = max(r.At, n.last)
	s := n.book.Take(r.Number)
	*s = sent{Sent: limit.Sent{At: n.last, Number: r.Number, Cost: n.counted(r.Cost)}, pieces: n.pieces,
		yields: r.Leaves > 0 && n.yielded > 0} // what is the driver's own is asked for without a part
	if n.goesAlone(n.last) {
		s.alone = n.admitAlone(&s.Sent)
	} else {
		lo, _ := n.bounds.by(n.last)
		s.from, s.taken = n.pool.take(s.Cost, s.yields, n.last.Add(lo))
	}
	plus(&n.flight, &s.Cost)
	n.places.moved(s.yields, 1)
	n.asks = false
	if n.waiting > 0 {
		n.waiting--
	}
	n.use(n.last, &s.Cost, s.yields)
}

// Fresh reports whether an open request may be written now. It panics if the request is not open.
func (n *Node) Fresh(p mono.Time, r *limit.Sent) bool {
	s := n.book.At(r.Number)
	if s.alone.split > 0 {
		return n.freshAlone(s, p)
	}
	return s.pieces == n.pieces && max(p, n.last) < n.until
}

// Close makes the node want and keep nothing from now on. Its next turn gives back all that is not
// in flight.
func (n *Node) Close() {
	n.closed, n.asks, n.waiting = true, false, 0
}

// In reports whether the node is in the book, as far as it knows, or has anything to report.
func (n *Node) In() bool { return n.in || n.holds() != (limit.Cost{}) || len(n.changes) > 0 }

// NotBefore returns an instant before which a cost behind n others with the cost ahead cannot go,
// since all nodes together send no more than the limit. Other nodes may give back what they hold, so
// nothing that counts now is foreseen. Nothing is known before the first turn, or once the limit was
// changed for all nodes.
func (n *Node) NotBefore(p mono.Time, k int, ahead, cost limit.Cost) mono.Time {
	p = max(p, n.last)
	rules, _ := limit.Rules(n.empty)
	if now, _ := limit.Rules(n.fresh); !n.bounds.known || !slices.Equal(rules, now) {
		return p
	}
	_, hi := n.bounds.by(p)
	now := p.Add(hi)
	at := limit.NotBefore(n.empty, now, k, ahead, cost)
	if at >= limit.AfterSettle {
		return at
	}
	return p.Add(at.Sub(now) - at.Sub(now)/drift)
}

// Room returns when the limit will have room for a cost, as far as the node knows since its last turn. Others may take
// the room first. limit.AfterSettle means that the node does not know.
func (n *Node) Room(p mono.Time, cost limit.Cost) mono.Time {
	p = max(p, n.last)
	if !n.bounds.known || n.view.Book == nil {
		return limit.AfterSettle
	}
	lo, _ := n.bounds.by(p)
	now := p.Add(lo)
	at := max(limit.NotBefore(n.fresh, now, 0, limit.Cost{}, cost), n.view.Book.Quiet)
	if at >= limit.AfterSettle {
		return at
	}
	return p.Add(max(at.Sub(now), 0))
}

// Limiter returns the limiter as of the last turn, for reading only.
func (n *Node) Limiter() limit.Limiter { return configured(n.fresh) }

// AppendUsage appends the usage of the limit by all nodes, as of the last turn. The usage is zero
// once all of that has passed. Then it appends the part of this node in the same form. That alone has a
// Total.
func (n *Node) AppendUsage(to []limit.Usage, p mono.Time) []limit.Usage {
	now := mono.Min
	if n.bounds.known {
		lo, _ := n.bounds.by(max(p, n.last))
		now = max(p, n.last).Add(lo)
	}
	first := len(to)
	to = limit.AppendUsage(to, n.fresh, now)
	for i := range to[first:] {
		u := &to[first+i]
		u.Used = min(u.Used, u.Allowed)                        // the rest is grants for later
		u.Open = min(u.Open, u.Used)                           // in the same way
		u.Total, u.Requests, u.Retreat = 0, 0, limit.Retreat{} // a turn makes the limiter anew: it has no sum
	}
	// The others' usage since then is unknown.
	if !n.in && max(p, n.last).Sub(n.put) > n.config.TTL+n.config.Late+limit.Span(n.fresh) {
		for i := range to[first:] {
			u := &to[first+i]
			u.Used, u.Open, u.Recent = 0, 0, 0
		}
	}
	holds := n.holds()
	for _, u := range to[first:] {
		u.Used, u.Open, u.Total, u.Recent, u.Fits = holds[u.Unit], n.flight[u.Unit], n.total[u.Unit], 0, 0
		to = append(to, u)
	}
	for i := range to[first:] { // grants that hold only later are open, and are not used yet
		u := &to[first+i]
		later := min(max(u.Used-u.Allowed, 0), u.Open)
		u.Used, u.Open = u.Used-later, u.Open-later
	}
	return to
}

// Waiting notes how many tickets wait at the driver, and the part that all of them leave free.
func (n *Node) Waiting(waiting int, free float64) {
	if n.closed { // they wait in vain
		return
	}
	n.waiting = waiting
	if n.asks = n.asks && waiting > 0; waiting > 0 {
		n.leaves = free
		if free > 0 {
			n.yielded = free
		}
	}
}

// Settle implements limit.Limiter.
func (n *Node) Settle(p mono.Time, r *limit.Sent, o *limit.Outcome) {
	s := n.book.Return(r.Number)
	n.last = max(p, n.last)
	n.settleAlone(s, o)
	n.places.moved(s.yields, -1)
	if o.Result == limit.Unsent || n.places != nil && o.Result != limit.Unknown {
		minus(&n.flight, &s.Cost)
		if s.taken && s.pieces == n.pieces {
			n.leave(s)
		}
		return
	}
	used := &s.Cost
	if o.Metered {
		used = &o.Actual
	}
	for u, c := range used {
		if n.places == nil {
			n.total[u] += c
		}
	}
	n.trip += (n.last.Sub(s.At) - n.trip) / 8
	n.answers = append(n.answers, answer{at: n.last, cost: s.Cost, outcome: *o})
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

// holds returns the cost that counts for the node: its grants, its requests in flight, and answers
// that it has not reported.
func (n *Node) holds() limit.Cost {
	c := n.flight
	all := n.pool.sum()
	plus(&c, &all)
	return c
}

// View is the state at a node's last turn that was put, for people.
type View struct {
	Book  *Book
	Quiet Quiet
}

// View returns the state at the last turn that was put.
func (n *Node) View() View { return n.view }

// ConfigurationError means that a limit is kept under this name with another configuration.
type ConfigurationError struct{ Here, There string }

func (e *ConfigurationError) Error() string {
	return fmt.Sprintf("share: this limit is %q here, and %q where it is kept: expected the same limit in all processes, "+
		"or for another server another name", e.Here, e.There)
}
