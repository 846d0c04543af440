package permit

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// entry is a permit of the model: what happened to it, and nothing that is computed.
type entry struct {
	id      permitID
	number  int
	holder  string
	line    holderLine
	granted mono.Time
	renewed mono.Time
	gone    mono.Time // mono.Max: its connection is there
}

// model is the law in its plainest form: a list of what happened.
type model struct {
	c       lifeSpans
	all     []entry
	granted int
}

// name is an ID of an open permit, or one that nobody has.
func (m *model) name(x byte) permitID {
	if len(m.all) == 0 || x%16 == 0 {
		return permitID{x % 8, 15: 255}
	}
	return m.all[int(x)%len(m.all)].id
}

// lapses is when a permit ends by itself. Its holder may write until SendBy, so no end is earlier.
func (m *model) lapses(e entry) mono.Time {
	at := max(e.granted, e.renewed).Add(m.c.TTL)
	if e.gone < mono.Max {
		at = min(at, max(e.gone, e.granted.Add(m.c.SendWithin)))
	}
	return at
}

func (m *model) find(id permitID, holder string) int {
	return slices.IndexFunc(m.all, func(e entry) bool { return e.id == id && e.holder == holder })
}

// FuzzHeldPermits compares heldPermits with the model, over any history.
func FuzzHeldPermits(f *testing.F) {
	f.Add([]byte{0, 1, 0, 0, 2, 7, 1, 1, 0, 3, 0, 0, 4, 9, 9})
	f.Add([]byte{0, 130, 0, 0, 67, 1, 2, 1, 0, 3, 0, 0, 0, 195, 1, 4, 31, 0})
	f.Add([]byte{0, 0, 0, 0, 1, 1, 3, 0, 0, 1, 0, 1, 4, 2, 0, 2, 0, 0, 5, 90, 0})
	f.Add([]byte{0, 195, 0, 4, 10, 0, 1, 2, 0, 4, 20, 0, 4, 10, 0}) // one of four is renewed, and lapses later
	f.Fuzz(func(t *testing.T, history []byte) {
		c := lifeSpans{SendWithin: 10, TTL: 30}
		b, m := newHeldPermits[int](c), &model{c: c}
		now := mono.Time(0)
		for len(history) >= 3 {
			op, x, y := history[0], history[1], history[2]
			history = history[3:]
			id, holder, line := m.name(x), fmt.Sprint("h", y%2), holderLine(y%4)
			what := fmt.Sprintf("at %d, op %d, %v of %s by %d", now, op%6, id[0], holder, line)
			i := m.find(id, holder)
			switch op % 6 {
			case 0:
				ids, numbers := make([]permitID, 1+x/64), make([]int, 1+x/64) // up to 4
				for n := range ids {
					ids[n], numbers[n] = permitID{x % 8, 15: byte(m.granted + n)}, m.granted+n
				}
				used := slices.ContainsFunc(m.all, func(e entry) bool { return e.id[0] == x%8 })
				if got := b.Grant(now, ids, holder, line, slices.Clone(numbers)); got == used {
					t.Fatalf("%s: granted %v, in use %v", what, got, used)
				}
				for n, id := range ids {
					if !used {
						m.all = append(m.all, entry{id, numbers[n], holder, line, now, now, mono.Max})
						m.granted++
					}
				}
			case 1:
				if got := b.Renew(now, id, holder, line); got != (i >= 0) {
					t.Fatalf("%s: renewed %v", what, got)
				}
				if i >= 0 {
					m.all[i].renewed, m.all[i].line, m.all[i].gone = now, line, mono.Max
				}
			case 2:
				v, got := b.Settle(id, holder)
				if got != (i >= 0) || got && v != m.all[i].number {
					t.Fatalf("%s: settled %v %v", what, v, got)
				}
				if i >= 0 {
					m.all = slices.Delete(m.all, i, i+1)
				}
			case 3:
				b.Gone(now, line)
				for i := range m.all {
					if e := &m.all[i]; e.line == line && e.gone == mono.Max {
						e.gone = now
					}
				}
			default:
				now = now.Add(time.Duration(x % 32))
			}
			lapsed(t, b, m, now)
		}
		if lapsed(t, b, m, now.Add(c.TTL)); b.Len() != 0 || len(b.batches) != 0 || len(b.due) != 0 {
			t.Fatalf("a TTL after all: %d permits of %d batches are left", b.Len(), len(b.batches))
		}
		for _, all := range b.lines {
			if len(all) > 0 {
				t.Fatalf("a TTL after all: %d batches are left of a connection", len(all))
			}
		}
	})
}

// lapsed takes what has lapsed out of both, and compares what is left.
func lapsed(t *testing.T, b *heldPermits[int], m *model, now mono.Time) {
	t.Helper()
	next := mono.Max
	for _, e := range m.all {
		next = min(next, m.lapses(e))
	}
	if at, ok := b.Next(); ok != (len(m.all) > 0) || at > next {
		t.Fatalf("at %d: none lapses before %d %v, want %d", now, at, ok, next)
	}
	var want []int
	m.all = slices.DeleteFunc(m.all, func(e entry) bool {
		over := m.lapses(e) <= now
		if over {
			want = append(want, e.number)
		}
		return over
	})
	if got := slices.Sorted(slices.Values(b.Lapsed(now))); !slices.Equal(got, want) {
		t.Fatalf("at %d: %v lapsed, want %v", now, got, want)
	}
	if at, ok := b.Next(); ok && at <= now {
		t.Fatalf("at %d: the next lapses at %d, and none has lapsed", now, at)
	}
	if b.Len() != len(m.all) {
		t.Fatalf("at %d: %d permits, want %d", now, b.Len(), len(m.all))
	}
}

// The text of an ID leads back to it, and no other text does.
func FuzzParseID(f *testing.F) {
	f.Add(permitID{1, 2, 3}.String())
	f.Add("AAAAAAAAAAAAAAAAAAAAAAA=")
	f.Add("AAAAAAAAAAAAAAAAAAAAAA\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		if id, ok := parseID(s); ok && id.String() != s {
			t.Errorf("%q is read as %v", s, id)
		}
	})
}

func TestIDs(t *testing.T) {
	for i := range 256 {
		id := permitID{0: byte(i), 17: byte(i)}
		if got, ok := parseID(id.String()); !ok || got != id {
			t.Fatalf("%v is read as %v %v", id, got, ok)
		}
	}
}

// Of the random bits of a permit, its ID keeps 128: the place within the batch is beside them.
func TestIDKeepsRandomBits(t *testing.T) {
	var random permitID
	for i := range random {
		random[i] = 0xff
	}
	ids := []permitID{random, random}
	if !newHeldPermits[int](lifeSpans{SendWithin: 10, TTL: 30}).Grant(0, ids, "", 0, []int{1, 2}) {
		t.Fatal("nothing is granted")
	}
	for place, id := range ids {
		n := -bits.OnesCount(uint(place))
		for _, b := range id {
			n += bits.OnesCount8(b)
		}
		if n != 128 || id.place() != place {
			t.Errorf("%d random bits at place %d, expected 128 at %d", n, id.place(), place)
		}
	}
}
