package node

import (
	"math"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The least and the greatest valid value are valid, and what is beyond is not.
func TestBoundsOfAConfig(t *testing.T) {
	for name, c := range map[string]struct {
		valid, invalid []error
	}{
		"a name": {
			[]error{CheckName("x"), CheckName(strings.Repeat("x", 200)), CheckName("Zürich 20/s")},
			[]error{CheckName(""), CheckName(strings.Repeat("x", 201)), CheckName("\xff"), CheckName("a\x00")},
		},
		"a weight": {
			[]error{CheckWeight(0.001), CheckWeight(1), CheckWeight(1000)},
			[]error{CheckWeight(0), CheckWeight(0.0009), CheckWeight(1000.1), CheckWeight(math.NaN())},
		},
		"a least part": {
			[]error{CheckLeast(0), CheckLeast(0.95)},
			[]error{CheckLeast(-0.01), CheckLeast(0.96), CheckLeast(math.NaN())},
		},
	} {
		for i, err := range c.valid {
			if err != nil {
				t.Errorf("%s, valid %d: %v", name, i, err)
			}
		}
		for i, err := range c.invalid {
			if err == nil {
				t.Errorf("%s, invalid %d is no error", name, i)
			}
		}
	}
}

// A node sends a cost by its grants until they end, and not at their end. A cost of nothing goes at once, one that is
// more than the limit never, and nothing goes once the node is closed.
func TestReadyByGrants(t *testing.T) {
	const now, end = 60_000 * ms, 61_000 * ms
	for _, c := range []struct {
		name  string
		p     mono.Time
		cost  int64
		close bool
		ready mono.Time
		fresh bool // of a request that was admitted before
	}{
		{"granted", now, 5, false, now, true},
		{"an instant before its end", end - 1, 5, false, end - 1, true},
		{"at its end", end, 5, false, limit.AfterSettle, false},
		{"more than is granted", now, 6, false, limit.AfterSettle, true},
		{"as much as the limit", now, 100, false, limit.AfterSettle, true},
		{"more than the limit", now, 101, false, limit.Never, true},
		{"nothing, at the end", end, 0, false, end, false},
		{"closed", now, 5, true, limit.AfterSettle, true},
		{"a clock that went back", now - 1, 5, false, now, true},
	} {
		n := dividing(1, 1).Node
		n.bounds, n.until = bounds{known: true, at: now}, end
		n.pool.add(part{mono.Min, limit.Cost{limit.Requests: 6}, false})
		sent := &limit.Sent{At: now, Number: 1, Cost: limit.One}
		n.Admit(sent)
		if c.close {
			n.Close()
		}
		if at := n.Ready(c.p, limit.Cost{limit.Requests: c.cost}); at != c.ready {
			t.Errorf("%s: ready at %d, want %d", c.name, at, c.ready)
		}
		if fresh := n.Fresh(c.p, sent); fresh != c.fresh {
			t.Errorf("%s: a request may still be written: %t", c.name, fresh)
		}
	}
}

// A node knows what its driver last asked for, how many wait, and which part they leave free. Of several parts the
// smallest counts until the next turn. The latest part above 0 is kept in mind, since requests in flight still leave
// it free.
func TestDemandOfADriver(t *testing.T) {
	for _, c := range []struct {
		name            string
		calls           func(n *Node)
		asks, asksNow   bool
		waiting         int
		leaves, yielded float64
	}{
		{"nothing", func(n *Node) {}, false, false, 0, 0, 0},
		{"it asks", func(n *Node) { n.Asked(limit.One, 0.2) }, true, true, 0, 0.2, 0.2},
		{"the smaller part", func(n *Node) { n.Asked(limit.One, 0.2); n.Asked(limit.One, 0.1); n.Asked(limit.One, 0.3) }, true, true, 0, 0.1, 0.3},
		{"then none", func(n *Node) { n.Asked(limit.One, 0.2); n.Asked(limit.One, 0) }, true, true, 0, 0, 0.2},
		{"a line", func(n *Node) { n.Asked(limit.One, 0); n.Line(3, limit.One, 0.2) }, true, true, 3, 0.2, 0.2},
		{"no line", func(n *Node) { n.Line(3, limit.One, 0.2); n.Line(0, limit.One, 0) }, false, false, 0, 0, 0.2},
		{"they still wait", func(n *Node) { n.Asked(limit.One, 0); n.Waiting(1, 0.2) }, true, true, 1, 0.2, 0.2},
		{"they wait, and leave nothing free", func(n *Node) { n.Asked(limit.One, 0.2); n.Waiting(1, 0) }, true, true, 1, 0, 0.2},
		{"nobody waits", func(n *Node) { n.Asked(limit.One, 0.2); n.Waiting(0, 0) }, false, false, 0, 0.2, 0.2},
		{"they wait, and did not ask", func(n *Node) { n.Waiting(2, 0) }, false, true, 2, 0, 0},
		{"one goes", func(n *Node) { n.Line(2, limit.One, 0); n.Admit(&limit.Sent{Number: 1, Cost: limit.One}) }, false, true, 1, 0, 0},
		{"the last goes", func(n *Node) { n.Line(1, limit.One, 0); n.Admit(&limit.Sent{Number: 1, Cost: limit.One}) }, false, false, 0, 0, 0},
		{"closed", func(n *Node) { n.Line(2, limit.One, 0.2); n.Close() }, false, false, 0, 0.2, 0.2},
		{"asked when it was closed", func(n *Node) { n.Close(); n.Asked(limit.One, 0); n.Waiting(3, 0) }, false, false, 0, 0, 0},
	} {
		n := New(Config{ID: "a", New: forty})
		c.calls(n)
		if n.asks != c.asks || n.asksNow() != c.asksNow || n.waiting != c.waiting || n.leaves != c.leaves || n.yielded != c.yielded {
			t.Errorf("%s: asks %t, now %t, %d wait, %v stays free, lately %v", c.name, n.asks, n.asksNow(), n.waiting, n.leaves, n.yielded)
		}
	}
}
