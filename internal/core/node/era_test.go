package node

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// The store's clock is set back by an hour while no node is there. The next node goes on where the
// ledger was, and does not wait for that hour.
func TestClockSetBackWhileNobodyIsThere(t *testing.T) {
	const quota = 20
	c := Config{New: func() limit.Limiter { return limit.MustRolling(quota, time.Second) }, ID: "a"}
	reading := func(p mono.Time, set time.Duration, blob []byte) Reading {
		clock := int64(1e18) + int64(p) + int64(set)
		return Reading{Clock: clock, Wall: clock, Incarnation: "one", Blob: blob}
	}
	rested := reading(0, 0, nil)
	blob := Rested(c, &rested)
	turn := func(n *Node, p mono.Time, set time.Duration) {
		n.Begin(p)
		next, err := n.Read(p, p+ms, reading(p, set, blob))
		if err == nil {
			blob = next
		}
		n.End(p+ms, err)
	}
	p := mono.Time(time.Second)
	a := New(c)
	a.Asked(limit.One, 0)
	a.Waiting(quota, 0)
	for sent := 0; sent < quota; {
		turn(a, p, 0)
		for p += 250 * ms; sent < quota && a.Ready(p, limit.One) <= p; sent++ {
			a.Settle(p, limittest.Admit(a, p, limit.One), &limit.Outcome{Result: limit.Accepted})
		}
	}
	a.Close()
	turn(a, p, 0)
	if a.In() {
		t.Fatal("it has not left")
	}
	c.ID = "b"
	b := New(c)
	began := p
	for b.Ready(p, limit.One) > p {
		if p.Sub(began) > 10*time.Second {
			t.Fatalf("nothing may be sent for %v", p.Sub(began))
		}
		b.Asked(limit.One, 0)
		turn(b, p, -time.Hour)
		p += 250 * ms
	}
	turn(b, p, -time.Hour)
	if book, err := Decode(blob); err != nil || book.Slack != 0 || book.Shift < time.Hour {
		t.Errorf("the ledger is %v after the clock, and may be %v behind, expected an hour: %v", book.Shift, book.Slack, err)
	}
}

// Between two readings, the store's clock went on as long as the node's own. The calls may have taken
// no time or all of theirs, and the clocks may differ by one in drift and a nanosecond.
func TestSightAgrees(t *testing.T) {
	const second = mono.Time(time.Second)
	s := sight{began: second, read: second + 200*ms, clock: 1e18}
	least, most := 9900*time.Millisecond, 10400*time.Millisecond // from the end of a call to the beginning, and the reverse
	for _, c := range []struct {
		went time.Duration
		want bool
	}{
		{least - 990*time.Microsecond - 1, true}, {least - 990*time.Microsecond - 2, false},
		{most + 1040*time.Microsecond + 1, true}, {most + 1040*time.Microsecond + 2, false},
		{10 * time.Second, true}, {0, false}, {-time.Hour, false}, {time.Hour, false},
	} {
		if got := s.agrees(s.read.Add(least), s.began.Add(most), s.clock+int64(c.went)); got != c.want {
			t.Errorf("the store's clock went on by %v: %v, want %v", c.went, got, c.want)
		}
	}
}

// The nodes of a book have ended, and the store's clock can be set. A newcomer waits for as long as they would be
// awaited, and begins an era then.
func TestNewcomerBesideNodesThatHaveEnded(t *testing.T) {
	s := &shelf{incarnation: "one"}
	_, _, p := two(t, s)
	n := asking("n", 100)
	for q := p + 1000*ms; !n.in; q += 100 * ms {
		if s.turn(t, n, q); n.in && q < p+4000*ms || q > p+4500*ms {
			t.Fatalf("%v after it came it is in: %t", q.Sub(p+1000*ms), n.in)
		}
	}
}
