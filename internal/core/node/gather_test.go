package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// crowd are so many nodes, each of which asks for a lot, at a store that is no longer quiet. They
// take turns each quarter of a second until p, the last of them at p.
func crowd(t *testing.T, s *shelf, many int) (nodes []*Node, p mono.Time) {
	for i := range many {
		nodes = append(nodes, asking(string(rune('a'+i)), 100))
	}
	apart := 250 * ms / mono.Time(many)
	for p < 12_000*ms {
		for _, n := range nodes {
			p += apart
			s.turn(t, n, p)
			for n.Ready(p+ms, limit.One) <= p+ms { // and it sends its grants, which are answered
				n.Settle(p+2*ms, limittest.Admit(n, p+ms, limit.One), &limit.Outcome{Result: limit.Accepted})
			}
		}
	}
	return nodes, p
}

// forget has the store lose all that it had.
func (s *shelf) forget() { s.blob, s.incarnation = nil, s.incarnation+", and again" }

// A node at a store that lost its state puts back its book, if that is later than another node's.
// Nothing is granted until all have come. Then nothing is set aside for unknown reports, since all
// are known.
func TestAllCome(t *testing.T) {
	s := &shelf{incarnation: "one"}
	nodes, p := crowd(t, s, 4)
	latest, life := nodes[3].knows.Turn, nodes[3].knows.Life
	s.forget()
	for i, n := range []*Node{nodes[1], nodes[0], nodes[3]} {
		had := n.holds()
		book := s.turn(t, n, p+1000*ms+mono.Time(i)*20*ms)
		base := []uint64{latest - 2, latest - 2, latest}[i]
		if book.From != life || book.Base != base || of(book, n.config.ID).Open != had {
			t.Errorf("when %d had come: from %d, base %d, want %d, of %v: %+v", i+1, book.From, book.Base, base, had, book.Nodes)
		}
	}
	book := s.turn(t, nodes[2], p+1060*ms)
	if told := of(book, book.toldID()).Open; book.From != 0 || told != (limit.Cost{}) || of(book, "c").Open[0] < 10 {
		t.Errorf("when all had come: from %d, told %v, c has %+v", book.From, told, of(book, "c"))
	}
}

// Missing nodes are awaited no longer than a node takes to come. For each of them the book sets
// aside as much as it may hold. It sets as much again aside for unknown reports, if few nodes are
// missing. For more, it sets aside all that was free.
func TestSomeAreMissing(t *testing.T) {
	for missing := 1; missing <= 3; missing += 2 {
		s := &shelf{incarnation: "one"}
		nodes, p := crowd(t, s, 4)
		s.forget()
		for i := range 4 - missing {
			s.turn(t, nodes[i], p+1000*ms+mono.Time(i)*ms)
		}
		stranger := asking("stranger", 100)
		stranger.bounds, stranger.in = nodes[0].bounds, true
		stranger.Begin(p + 1100*ms)
		if _, err := stranger.Read(p+1100*ms, p+1101*ms, Reading{Clock: int64(1e18 + p + 1100*ms), Wall: int64(1e18 + p + 1100*ms), Incarnation: s.incarnation, Blob: s.blob}); !errors.Is(err, ErrWait) {
			t.Errorf("while it is gathered who does not know what the store had is told %v", err)
		}
		had := nodes[0].holds()
		book := s.turn(t, nodes[0], p+1200*ms)
		if book.From == 0 || of(book, "a").Open != had {
			t.Errorf("200 ms after the first came: from %d, a has %+v", book.From, of(book, "a"))
		}
		d := of(book, "d").Open[0]
		book = s.turn(t, nodes[0], p+1300*ms)
		told := limit.AppendUsage(nil, nodes[0].fresh, mono.Time(1e18)+p+1300*ms)[0].Used
		for _, e := range book.Nodes {
			told -= e.Open[limit.Requests]
		}
		if want := map[int]int64{1: d, 3: 100}[missing]; book.From != 0 || d < 30 || told != want {
			t.Errorf("%d missing, one of which may hold %d: from %d, %d may have been told, want %d: %+v", missing, d, book.From, told, want, book.Nodes)
		}
	}
}

// alone has a node take turns, a tenth of a second apart, while the others are cut off. It sends all
// that it is granted, which is answered. It returns how many answers the node reported.
func (s *shelf) alone(n *Node, from, to mono.Time) (told int64) {
	for q := from; q <= to; q += 100 * ms {
		n.Begin(q)
		blob, err := n.Read(q, q+ms, s.reading(q))
		if err == nil {
			s.blob, told = blob, told+int64(n.Telling())
		}
		n.End(q+ms, err)
		for n.Ready(q+2*ms, limit.One) <= q+2*ms {
			n.Settle(q+2*ms, limittest.Admit(n, q+2*ms, limit.One), &limit.Outcome{Result: limit.Accepted})
		}
	}
	return told
}

// A node is alone with the store, as others are cut off. It reports no more than it may hold until
// they are no longer awaited. A node that has just come reports nothing before the others have seen
// it.
func TestToldIsBounded(t *testing.T) {
	s := &shelf{incarnation: "one"}
	nodes, p := crowd(t, s, 4)
	d, told := nodes[3], int64(0)
	most := of(d.knows, "d").Most[0]
	if told = s.alone(d, p+100*ms, p+2500*ms); told == 0 || told > most {
		t.Errorf("alone it told %d, and may hold %d", told, most)
	}
	if told = s.alone(d, p+2600*ms, p+4500*ms); told <= most {
		t.Errorf("when others are not waited for it told %d, and might hold %d", told, most)
	}
	s = &shelf{incarnation: "one"}
	nodes, p = crowd(t, s, 4)
	e := asking("e", 100)
	e.bounds = nodes[3].bounds
	if told = s.alone(e, p+100*ms, p+1500*ms); told > 0 || e.holds() == (limit.Cost{}) {
		t.Errorf("having come it told %d, and has %v", told, e.holds())
	}
	for i, n := range slices.Concat(nodes[:3], nodes[:3]) {
		s.turn(t, n, p+1600*ms+mono.Time(i)*30*ms)
	}
	if told = s.alone(e, p+1800*ms, p+1800*ms); told == 0 {
		t.Errorf("when three of four had seen it it told nothing, and has %v", e.holds())
	}
	if e.began.Sub(p) > 2*time.Second {
		t.Fatal("the others are no longer there")
	}
}

// A node comes, and the store forgets that. The others, who did not know of it, put back the book. The
// node comes again in a turn that is put, and not answered. So it finds itself in the book: it reports
// nothing before the others have seen it there.
func TestToldIsBoundedAfterATurnWithoutAnAnswer(t *testing.T) {
	s := &shelf{incarnation: "one"}
	nodes, p := crowd(t, s, 3)
	d := asking("d", 100)
	d.bounds = nodes[2].bounds
	s.turn(t, d, p+10*ms)
	s.forget()
	for i := range 12 {
		s.turn(t, nodes[i%3], p+mono.Time(20+40*i)*ms)
	}
	d.Begin(p + 510*ms)
	blob, err := d.Read(p+510*ms, p+511*ms, s.reading(p+510*ms))
	if err != nil {
		t.Fatal(err)
	}
	s.blob = blob
	d.End(p+511*ms, errors.New("no answer, and it was put"))
	if told := s.alone(d, p+600*ms, p+1900*ms); told > 0 || d.holds() == (limit.Cost{}) {
		t.Errorf("having come again it told %d, and has %v", told, d.holds())
	}
}

// A node repeats the reports of a turn that was possibly not put. They are a part of the reports
// that it may make.
func TestToldAgainIsBounded(t *testing.T) {
	s := &shelf{incarnation: "one"}
	nodes, p := crowd(t, s, 4)
	d, told := nodes[3], int64(0)
	most := of(d.knows, "d").Most[0]
	for i, q := 0, p+100*ms; q <= p+2500*ms; i, q = i+1, q+100*ms {
		d.Begin(q)
		blob, err := d.Read(q, q+ms, Reading{Clock: int64(1e18 + q), Wall: int64(1e18 + q), Incarnation: s.incarnation, Blob: s.blob})
		if err == nil && i%2 == 1 {
			err = errors.New("no answer, and nothing was put")
		}
		if err == nil {
			s.blob, told = blob, told+int64(d.Telling())
		}
		d.End(q+ms, err)
		for range 5 {
			if d.Ready(q+2*ms, limit.One) > q+2*ms {
				break
			}
			d.Settle(q+2*ms, limittest.Admit(d, q+2*ms, limit.One), &limit.Outcome{Result: limit.Accepted})
		}
	}
	if told == 0 || told > most {
		t.Errorf("alone it told %d, and may hold %d", told, most)
	}
}

// The reports of missing nodes are bounded if few may have had turns since the last known one: two thirds of those
// that surely had none, at most. Nodes that nobody waits for do not count.
func TestAttendance(t *testing.T) {
	for _, c := range []struct {
		came    []arrival
		missing int
		bounds  bool
	}{
		{nil, 0, false},
		{[]arrival{backBriskly}, 0, true},
		{[]arrival{back}, 0, false},
		{[]arrival{backBriskly, awaited}, 1, false},
		{[]arrival{backBriskly, backBriskly, awaited}, 1, true},
		{[]arrival{backBriskly, backBriskly, awaited, awaited}, 2, false},
		{[]arrival{backBriskly, backBriskly, backDoubting}, 0, true},
		{[]arrival{backBriskly, backBriskly, backDoubting, backDoubting}, 0, false},
		{[]arrival{backBriskly, backBriskly, backDoubting, awaited}, 1, false},
		{[]arrival{backBriskly, backBriskly, awaited, gone, gone, back}, 1, true},
	} {
		all := attendance{}
		for _, came := range c.came {
			all.count(&Entry{Came: came})
		}
		all.count(&Entry{Came: awaited, At: nobody})
		if got := all.bounds(); got != c.bounds || len(all.missing) != c.missing {
			t.Errorf("%v: %d are missing, bounded: %t; want %d, %t", c.came, len(all.missing), got, c.missing, c.bounds)
		}
	}
}
