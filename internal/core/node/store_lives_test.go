package node

import (
	"errors"
	"slices"
	"testing"
	"time"

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
	b.knows, b.latest = nil, stage{} // b cannot find out
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

// A node that was not there lately comes first to an old copy. It waits until the copy's nodes have
// had the time to come, but not where they came lately, and not to leave.
func TestOverdue(t *testing.T) {
	idle := func(n *Node) { n.Line(0, limit.Cost{}, 0); n.asks = false }
	for name, steady := range map[string]bool{"a clock that nobody sets": true, "a clock that can be set": false} {
		s := &shelf{incarnation: "one", steady: steady}
		a, b, p := two(t, s)
		idle(b)
		for ; b.in; p += 250 * ms {
			s.turn(t, a, p)
			s.turn(t, b, p+100*ms)
		}
		s.turn(t, a, p)
		old := s.blob
		for ; p < 20_000*ms; p += 250 * ms {
			s.turn(t, a, p)
		}
		s.blob = old
		b.Line(100, limit.One, 0)
		waited := func(p mono.Time) bool {
			before := s.blob
			s.turn(t, b, p)
			return string(before) == string(s.blob)
		}
		if !waited(p) || !waited(p+1000*ms) {
			t.Errorf("%s: it takes an old copy for the present", name)
		}
		life := a.latest.life
		if book := s.turn(t, a, p+1010*ms); book.Life == life {
			t.Errorf("%s: who knows better goes on: %+v", name, book)
		}
		if waited(p + 1020*ms) {
			t.Errorf("%s: it waits, although another has come", name)
		}
	}
}

// The nodes of a book do not come, since they have ended. A node waits for them once, and not to
// report and leave.
func TestOverdueForGood(t *testing.T) {
	s := &shelf{incarnation: "boot", steady: true}
	_, _, p := two(t, s)
	old := s.blob
	n, waits := asking("n", 100), 0
	for q := p + 1200*ms; ; q += 100 * ms {
		if s.turn(t, n, q); n.in {
			break
		}
		waits++
	}
	if waits < 9 || waits > 12 {
		t.Errorf("it waits for %d turns, each 100 ms after the one before", waits)
	}
	for _, c := range []struct {
		after mono.Time
		in    bool
	}{{1062*ms + ms/2 - 1, false}, {1062*ms + ms/2, true}} { // as long as from one turn to the next
		s.blob = old
		n := asking("n", 100)
		s.turn(t, n, p+1200*ms)
		if s.turn(t, n, p+1200*ms+c.after); n.in != c.in {
			t.Errorf("%v after it first read the book: it is in: %v, want %v", time.Duration(c.after), n.in, c.in)
		}
	}
	s.blob = old
	leaving := asking("leaving", 100)
	leaving.Close()
	if s.turn(t, leaving, p+1200*ms); string(s.blob) == string(old) {
		t.Error("a node that leaves waits")
	}
	s.blob = old
	soon := asking("soon", 100)
	if s.turn(t, soon, p+500*ms); !soon.in {
		t.Error("a newcomer waits, although others came lately")
	}
}

// A node knows a book that it has read, although its own put failed.
func TestReadAndWentBack(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	old := s.blob
	s.turn(t, a, p)
	b.Begin(p + 10*ms)
	if _, err := b.Read(p+10*ms, p+11*ms, s.reading(p+10*ms)); err != nil {
		t.Fatal(err)
	}
	b.End(p+12*ms, errors.New("no answer"))
	s.blob = old
	life := b.latest.life
	if book := s.turn(t, b, p+20*ms); book.Life == life {
		t.Errorf("it goes on in a copy that is older than what it read: %+v", book)
	}
}

// A node that was stopped for a second waits for the nodes of an old copy, although it was there
// lately.
func TestOverdueForTheStopped(t *testing.T) {
	s := &shelf{incarnation: "one"}
	a, b, p := two(t, s)
	s.turn(t, a, p)
	old := s.blob
	for q := p + 250*ms; q < p+1500*ms; q += 250 * ms {
		s.turn(t, a, q)
	}
	s.blob = old
	for q := p + 1500*ms; q < p+2500*ms; q += 100 * ms {
		if s.turn(t, b, q); string(s.blob) != string(old) {
			t.Fatalf("it takes an old copy for the present after %v", time.Duration(q-p-1500*ms))
		}
	}
	if s.turn(t, b, p+2600*ms); string(s.blob) == string(old) {
		t.Error("it waits for ever")
	}
}

// A store goes back twice. The node that found out first began a life of which no other node read
// anything. When the store goes back to that life, another node does not take it for a later one.
func TestLifeThatNobodyRead(t *testing.T) {
	for name, steady := range map[string]bool{"a clock that nobody sets": true, "a clock that can be set": false} {
		s := &shelf{incarnation: "one", steady: steady}
		a, b, p := two(t, s)
		old := s.blob
		s.turn(t, a, p)
		s.turn(t, b, p)
		s.blob = old
		unread := s.turn(t, a, p+10*ms)
		copied := s.blob
		s.blob = old
		for p += 100 * ms; p < 40_000*ms; p += 250 * ms {
			s.turn(t, b, p)
		}
		known := b.latest.life
		s.blob = copied
		book := s.turn(t, b, p)
		if known == unread.Life || book.Life == unread.Life || !slices.Contains(book.Lives, known) || !slices.Contains(book.Lives, unread.Life) {
			t.Errorf("%s: it goes on in life %d of %v, from %d, although it knows %d", name, book.Life, book.Lives, unread.Life, known)
		}
	}
}

// A limit is removed, and a newcomer begins a quiet life. Nodes that were there join it.
func TestQuietLifeIsJoined(t *testing.T) {
	for name, steady := range map[string]bool{"a clock that nobody sets": true, "a clock that can be set": false} {
		s := &shelf{incarnation: "one", steady: steady}
		a, _, p := two(t, s)
		s.blob = nil
		quiet := s.turn(t, asking("late", 100), p)
		if book := s.turn(t, a, p+10*ms); !quiet.Blank || book.Life != quiet.Life || !book.Blank {
			t.Errorf("%s: after %+v it begins %+v", name, quiet, book)
		}
	}
}

// A book is older than what a node knows by its life or its turn, and strays if its life does not follow that which
// the node knows. A node that knows no life knows nothing of either.
func TestLivesOfBooks(t *testing.T) {
	for _, c := range []struct {
		book           Book
		known          stage
		before, strays bool
	}{
		{Book{Life: 2, Turn: 7}, stage{life: 2, turn: 7}, false, false},
		{Book{Life: 2, Turn: 6}, stage{life: 2, turn: 7}, true, false},
		{Book{Life: 1, Turn: 9}, stage{life: 2, lives: []uint32{1}, turn: 7}, true, true},
		{Book{Life: 2, Lives: []uint32{1}, Turn: 6}, stage{life: 1, turn: 7}, false, false},
		{Book{Life: 2, Turn: 9}, stage{life: 1, turn: 7}, false, true},
		{Book{Life: 2, Lives: []uint32{3}, Turn: 9}, stage{life: 1, turn: 7}, false, true},
		{Book{Life: 2, Turn: 9}, stage{}, false, false},
	} {
		if before, strays := c.book.isBefore(&c.known), c.book.strays(&c.known); before != c.before || strays != c.strays {
			t.Errorf("%+v to who knows %+v: before %t, strays %t", c.book, c.known, before, strays)
		}
	}
}
