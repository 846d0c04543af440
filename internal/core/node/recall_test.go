package node

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// shelf is a store of one blob, whose clock is p.
type shelf struct {
	blob        []byte
	incarnation string
	steady      bool
}

func (s *shelf) reading(p mono.Time) Reading {
	return Reading{Clock: int64(1e18 + p), Wall: int64(1e18 + p), Incarnation: s.incarnation, Steady: s.steady, Blob: s.blob}
}

const ms = mono.Time(time.Millisecond)

// turn has a node take a turn that is put, and returns the book then.
func (s *shelf) turn(t *testing.T, n *Node, p mono.Time) *Book {
	t.Helper()
	n.Begin(p)
	blob, err := n.Read(p, p+ms, s.reading(p))
	if err == nil {
		s.blob = blob
	}
	n.End(p+ms, err)
	b, err := Decode(s.blob)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// of returns a node's entry in a book, or nothing.
func of(b *Book, id string) (e Entry) {
	if there := b.entry(id); there != nil {
		e = *there
	}
	return e
}

// asking is a node before whose driver many wait.
func asking(id string, limitOf int64) *Node {
	n := New(Config{ID: id, New: func() limit.Limiter { return limit.MustRolling(limitOf, time.Second) }})
	n.Line(1000, limit.One, 0)
	return n
}

// two are two nodes at a store that is no longer quiet, which take turns each quarter of a second
// until p.
func two(t *testing.T, s *shelf) (a, b *Node, p mono.Time) {
	a, b = asking("a", 100), asking("b", 100)
	for ; p < 10_000*ms; p += 250 * ms {
		s.turn(t, a, p)
		s.turn(t, b, p+100*ms)
	}
	return a, b, p
}

// The first node at a store that lost its state puts back the present nodes, with all that each may
// hold. The reports since then count until a window later. Then the others have their grants again.
func TestRecall(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	before := s.turn(t, a, p)
	s.turn(t, b, p+50*ms) // of which a knows nothing
	s.blob, s.incarnation = nil, "two"
	after := s.turn(t, a, p+200*ms)
	if e, was := of(after, "b"), of(before, "b"); e.Open != was.Most || was.Most[0] < 20 || e.Until.Sub(after.Latest) != 2*time.Second {
		t.Errorf("after the store forgot b has %+v, before it %+v", e, was)
	}
	if after.Era != before.Era || after.Turn != before.Turn+1 || after.Quiet > after.Latest || len(after.Nodes) != 4 {
		t.Errorf("after the store forgot: %+v", after)
	}
	joined := b.joined
	if again := s.turn(t, b, p+300*ms); of(again, "b").Open == of(after, "b").Open || b.joined != joined {
		t.Errorf("b, which was there, has %+v", of(again, "b"))
	}
	for q := p + 400*ms; q < p+1200*ms; q += 200 * ms {
		if at := a.Ready(q, limit.One); at <= q && len(a.pool.parts) == 0 {
			t.Fatalf("at %v a may send", q)
		}
		book := s.turn(t, a, q)
		if q < p+1100*ms && of(book, "a").Open[0] > of(after, "a").Open[0] {
			t.Errorf("%v after it forgot, a was granted something", time.Duration(q-p))
		}
	}
	if book := s.turn(t, a, p+1400*ms); of(book, "a").Open[0] == 0 {
		t.Errorf("a window after it forgot, a has nothing: %+v", book.Nodes)
	}
}

// A node comes back after others no longer waited for it. It gives back its unsent grants, and
// holds no more than a newcomer, since the store may have been read at the end of its call. If the
// store forgets that it came, its part of the book ends when it would have ended.
func TestReturned(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	before := s.turn(t, b, p)
	for q := p + 100*ms; q <= p+3900*ms; q += 200 * ms {
		s.turn(t, a, q)
	}
	blob := s.blob
	b.Begin(p + 3950*ms)
	put, err := b.Read(p+3950*ms, p+4050*ms, Reading{Clock: int64(1e18 + p + 4000*ms), Wall: int64(1e18 + p + 4000*ms), Incarnation: "one", Blob: s.blob})
	if err != nil {
		t.Fatal(err)
	}
	s.blob = put
	b.End(p+4060*ms, nil)
	book, err := Decode(put)
	if err != nil {
		t.Fatal(err)
	}
	if e := of(book, "b"); of(before, "b").Most[0] < 20 || e.Most[0] != 0 || e.Open[0] > 4 {
		t.Errorf("before it was away b has %+v, and after that %+v", of(before, "b"), e)
	}
	s.blob = blob
	for q := p + 4100*ms; q <= p+4500*ms; q += 200 * ms {
		s.turn(t, a, q)
	}
	was := s.turn(t, a, p+4700*ms)
	s.blob, s.incarnation = nil, "two"
	if e := of(s.turn(t, a, p+5000*ms), "b"); e.Open != of(was, "b").Open || e.Until != of(was, "b").Until {
		t.Errorf("after the store forgot, b, which was away for long, has %+v, before it %+v", e, of(was, "b"))
	}
}

// A node that was away for longer than others wait knows nothing of the state, and the store is
// quiet. A node that was there until the end still puts the state back, beside nodes that came
// meanwhile.
func TestRecallLate(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	for ; p < 14_000*ms; p += 250 * ms {
		s.turn(t, b, p)
	}
	s.blob, s.incarnation = nil, "two"
	if book := s.turn(t, a, p); !book.Blank || book.Quiet.Sub(book.Latest) < 8*time.Second {
		t.Errorf("a, which was away for 4 s, has %+v", book)
	}
	s.turn(t, asking("c", 100), p+10*ms)
	book := s.turn(t, b, p+20*ms)
	if book.Blank || book.Quiet > book.Latest || of(book, "b").ID == "" || of(book, "a").ID == "" {
		t.Errorf("b, which was there, has %+v", book)
	}
}

// A removed name, at a store that forgot nothing else, is quiet: its new owner may want another
// limit.
func TestRemovedIsNotRecalled(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, _, p := two(t, s)
	s.blob = nil
	if book := s.turn(t, a, p); !book.Blank || book.Quiet.Sub(book.Latest) < 8*time.Second {
		t.Errorf("after it was removed a has %+v", book)
	}
}

// A node in a book that another node has recalled holds no more than it may by its own knowledge.
// It may have asked for less since, and a node that knows that may recall the book next.
func TestRecalledIsNoMoreThanKnown(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	s.turn(t, a, p)
	b.mayHold = limit.Cost{limit.Requests: 3}
	s.blob, s.incarnation = nil, "two"
	s.turn(t, a, p+100*ms)
	if book := s.turn(t, b, p+200*ms); of(book, "b").Most[0] != 3 {
		t.Errorf("b may hold %d by its own knowledge 3", of(book, "b").Most[0])
	}
}

// A newcomer is the first to find that the store lost its state. It is quiet, and is away for a
// second. The book that the others recall keeps nothing for it meanwhile.
func TestNewcomerFirst(t *testing.T) {
	s := &shelf{incarnation: "one"}
	nodes, p := crowd(t, s, 4)
	s.forget()
	late := asking("late", 100)
	p += 1000 * ms
	if book := s.turn(t, late, p); !book.Blank || of(book, "late").Want == 0 || late.Next() < p+900*ms {
		t.Fatalf("who came first has %+v, and its next turn is in %v", book, time.Duration(late.Next()-p))
	}
	for i, n := range nodes {
		if book := s.turn(t, n, p+300*ms+mono.Time(i)*10*ms); book.Blank || of(book, "late").ID == "" || of(book, "late").Want > 0 {
			t.Errorf("when %d more have come, who came first has %+v", i+1, of(book, "late"))
		}
	}
}

// The store lost its state lately. A node that was away for somewhat longer than grants hold is
// bounded as well. If the store loses its state again, the book does not keep all that the node may
// hold. Half a minute later neither is so.
func TestReturnedWarned(t *testing.T) {
	for _, x := range []struct {
		after   mono.Time // that the store forgot
		bounded bool
	}{{8_000 * ms, true}, {29_000 * ms, true}, {35_000 * ms, false}} {
		s := &shelf{incarnation: "one"}
		a, b, p := two(t, s)
		s.forget()
		end := p + x.after
		for ; p < end; p += 250 * ms {
			s.turn(t, a, p)
			s.turn(t, b, p+100*ms)
		}
		was := of(s.turn(t, b, p), "b")
		for q := p + 100*ms; q <= p+2700*ms; q += 200 * ms {
			s.turn(t, a, q)
		}
		put, known := s.blob, *a.knows
		if e := of(s.turn(t, b, p+2900*ms), "b"); (e.Most == limit.Cost{}) != x.bounded {
			t.Errorf("%v after the store forgot: b, which was away for 2.9 s, has %+v, and before that %+v", time.Duration(x.after), e, was)
		}
		s.blob, a.knows = put, &known
		s.forget()
		if e := of(s.turn(t, a, p+3000*ms), "b"); (e.Until == was.Until) != (x.bounded && x.after < 29_000*ms) {
			t.Errorf("%v after the store forgot, which it does again: b, which was away for 2.9 s, has %+v, and before that %+v", time.Duration(x.after), e, was)
		}
	}
}

// For how long others wait for a node, and a node is one that was there or was away: up to an instant, and not at it.
func TestWhoIsThere(t *testing.T) {
	const put = 60_000 * ms // its last turn
	until := put + 2000*ms
	n := asking("a", 100)
	n.put, n.in = put, true
	c, e := &n.config, Entry{ID: "b", Until: until}
	book := func(latest, forgot mono.Time) *Book { return &Book{Latest: latest, Forgot: forgot, Nodes: []Entry{e}} }
	for _, x := range []struct {
		name string
		is   func(at mono.Time) bool
		from mono.Time // from then on it is as after
		then bool
	}{
		{"others wait for it", func(at mono.Time) bool { return c.present(&e, at) }, put + 3000*ms, false},
		{"it knows what others hold", n.wasThere, put + 3000*ms - 375*ms, false},
		{"it comes back as a newcomer", func(at mono.Time) bool { return book(at, 0).absent(&e, c) }, put + 4500*ms + 1, true},
		{"the same after a loss", func(at mono.Time) bool { return book(at, put).absent(&e, c) }, put + 2500*ms + 1, true},
		{"others are careful after a loss", book(0, put).warns, put + 30_000*ms, false},
		{"it is overdue", func(at mono.Time) bool { return book(put, 0).isOverdue(c, at) }, put + 1, true},
		{"it had been missing", func(at mono.Time) bool { return book(at, 0).isOverdue(c, put+1) }, put + 1062_500*ms/1000 + 1, false},
	} {
		if x.is(x.from-1) == x.then || x.is(x.from) != x.then {
			t.Errorf("%s: %t at its end, and %t before", x.name, x.is(x.from), x.is(x.from-1))
		}
	}
}

// Nothing is granted before a quiet time ends, and all from its end on.
func TestGrantedFromTheEndOfAQuietTime(t *testing.T) {
	for name, limiter := range map[string]func() limit.Limiter{"windows": forty, "places": six} {
		for _, c := range []struct {
			quiet time.Duration
			some  bool
		}{{0, true}, {1, false}} {
			n := New(Config{ID: "a", New: limiter})
			n.Line(1000, limit.One, 0)
			s := &shelf{incarnation: "one", steady: true}
			r := s.reading(0)
			b := New(n.config).blank(&r, 0, nil)
			b.Quiet, b.Turn = b.Latest.Add(c.quiet), 1
			s.blob = b.encode()
			book := s.turn(t, n, 0)
			if e := of(book, "a"); (e.Open != limit.Cost{}) != c.some || e.Want == 0 && !c.some || book.Blank == c.some {
				t.Errorf("%s, %v before the end: blank %t, %+v", name, c.quiet, book.Blank, e)
			}
		}
	}
}

// What others were granted and reported since the last known turn is what is free, and no more than the strictest part
// of a limit lets through in that time: what it allows at once, and its rate.
func TestToldMost(t *testing.T) {
	const now = 60_000 * ms
	hourly := func() limit.Limiter { return limit.MustRolling(1000, time.Hour) }
	ten := func() limit.Limiter { return limit.MustRolling(10, time.Second) }
	for _, c := range []struct {
		name string
		of   limit.Limiter
		used int64
		d    time.Duration
		want int64
	}{
		{"all that is free", ten(), 0, time.Hour, 10},
		{"beside what is used", ten(), 4, time.Hour, 6},
		{"the larger part, by what the other lets through", limit.NewAll(ten(), hourly()), 0, 5 * time.Second, 70},
		{"no time", limit.NewAll(ten(), hourly()), 0, 0, 20},
		{"a time before", limit.NewAll(hourly(), ten()), 0, -time.Second, 20},
		{"all of the larger part", limit.NewAll(ten(), hourly()), 0, time.Hour, 1000},
		{"a weighted window, whatever is used", weighs(), 9, 0, 40},
		{"places, which are not reported", six(), 2, 0, 0},
	} {
		for range c.used {
			s := &limit.Sent{At: now, Number: uint64(now), Cost: limit.One}
			c.of.Admit(s)
			c.of.Settle(now, s, &limit.Outcome{Result: limit.Accepted})
		}
		if got := toldMost(c.of, now, c.d); got != (limit.Cost{limit.Requests: c.want}) {
			t.Errorf("%s: %v, want %d", c.name, got, c.want)
		}
	}
}
