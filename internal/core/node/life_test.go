package node

import (
	"slices"
	"testing"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The store goes back to a copy that is some seconds old. The first node to come puts back what it
// knows, in a life of its own, whatever others put there since.
func TestStoreWentBack(t *testing.T) {
	for name, meanwhile := range map[string]func(s *shelf, a, b *Node){
		"at once": func(*shelf, *Node, *Node) {},
		"after a newcomer": func(s *shelf, a, b *Node) {
			late := asking("late", 100)
			for q := 13_000 * ms; q < 13_100*ms; q += 10 * ms {
				if book := s.turn(t, late, q); of(book, "late").Open[0] > 0 {
					t.Fatalf("the newcomer is granted %v of an old copy", of(book, "late"))
				}
			}
		},
	} {
		s := &shelf{incarnation: "one"}
		a, b, p := two(t, s)
		old := s.blob
		for ; p < 13_000*ms; p += 250 * ms {
			s.turn(t, a, p)
			s.turn(t, b, p+100*ms)
		}
		before := a.knows
		s.blob = old
		meanwhile(s, a, b)
		after := s.turn(t, a, p+110*ms)
		if after.Turn != before.Turn+1 || after.Life == before.Life || !slices.Contains(after.Lives, before.Life) || after.Blank {
			t.Errorf("%s: after it went back a has %+v, before it %+v", name, after, before)
		}
		if e, was := of(after, "b"), of(before, "b"); e.Open != was.Most || was.Most[0] < 20 {
			t.Errorf("%s: after it went back b has %+v, before it %+v", name, e, was)
		}
		if again := s.turn(t, b, p+120*ms); again.Life != after.Life || of(again, "b").ID == "" {
			t.Errorf("%s: b does not join: %+v", name, again)
		}
	}
}

// An old copy has had as many turns since as the node knows of. The node finds its own entry older
// than its last put.
func TestOwnTurnWentBack(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	old := s.blob
	s.turn(t, a, p)
	s.blob = old
	b.knows = nil // b cannot find out
	for q := p + 100*ms; q < p+500*ms; q += 100 * ms {
		s.turn(t, b, q)
	}
	life := a.knows.Life
	if book := s.turn(t, a, p+500*ms); book.Life == life {
		t.Errorf("a goes on in a copy that has its turn of before: %+v", book)
	}
}

// The same copy is put back a second time. Nodes that came between know by the list of lives that
// it is old, although they never saw it. Without a node that was there lately nothing is granted for
// a while.
func TestWentBackTwice(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	old := s.blob
	for range 3 {
		s.turn(t, a, p)
		p += 250 * ms
	}
	s.blob = old
	s.turn(t, a, p)
	s.turn(t, b, p+10*ms)
	late := asking("late", 100)
	for q := p + 20*ms; q < p+1500*ms; q += 100 * ms {
		s.turn(t, a, q)
		s.turn(t, late, q+50*ms)
	}
	if !late.in {
		t.Fatal("the newcomer did not join")
	}
	p += 1600 * ms
	s.blob = old
	if book := s.turn(t, late, p); book.Blank || of(book, "late").ID == "" || len(book.Lives) < 2 {
		t.Errorf("the newcomer takes the copy for the present: %+v", book)
	}
	s.blob = old
	if book := s.turn(t, late, p+5000*ms); !book.Blank || !book.WentBack || book.Quiet <= book.Latest {
		t.Errorf("a node that was away for 5 s has %+v", book)
	}
}

// Each node brings its own lives into the book, as others may not know them.
func TestLivesAreGathered(t *testing.T) {
	n := asking("a", 100)
	n.knows = &Book{Life: 3, Lives: []uint32{1, 2}}
	b := &Book{Life: 5, Lives: []uint32{1, 4}}
	if n.addLives(b); !slices.Equal(b.Lives, []uint32{2, 3, 1, 4}) {
		t.Errorf("the lives are %v", b.Lives)
	}
	for life := range uint32(200) {
		n.knows = &Book{Life: 100 + life}
		n.addLives(b)
	}
	if len(b.Lives) != livesMost-1 && len(b.Lives) != livesMost || slices.Contains(b.Lives, b.Life) {
		t.Errorf("%d lives", len(b.Lives))
	}
	if got, err := Decode(b.encode()); err != nil || !slices.Equal(got.Lives, b.Lives) {
		t.Errorf("of %v comes %v, %v", b.Lives, got, err)
	}
}

// A store whose clock nobody can set keeps its state while a node runs, unless its file is replaced
// by a copy. Nothing is granted for a while then.
func TestSteadyWentBack(t *testing.T) {
	n := asking("a", 100)
	var blob, old []byte
	for i := range 50 {
		p := 250 * ms * mono.Time(1+i)
		n.Begin(p)
		next, err := n.Read(p, p+ms, Reading{Clock: int64(1e18 + p), Wall: int64(1e18 + p), Incarnation: "boot", Steady: true, Blob: blob})
		if err != nil {
			t.Fatal(err)
		}
		n.End(p+ms, nil)
		if blob = next; i == 44 {
			old = blob
		}
		if i == 48 {
			blob = old
		}
	}
	b, err := Decode(blob)
	if err != nil || !b.Blank || b.Quiet <= b.Latest || n.View().Quiet.Why != ErrWentBack || n.Ready(1e11, limit.One) <= 1e11 {
		t.Errorf("after its file was replaced: %+v, %v", b, n.View().Quiet)
	}
}
