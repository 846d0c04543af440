package snooze

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

const second = mono.Time(time.Second)

// tenASecond lets ten requests go a second, from an instant on.
func tenASecond(from mono.Time) Forecast {
	return func(n int, _ limit.Cost) mono.Time { return from.Add(time.Duration(n/10) * time.Second) }
}

// A server asks to stay away for a minute. Each of 1,000 jobs gets an instant of its own after that,
// in the order of the places, at most ten in a second.
func TestJobsComeBackOneAfterTheOther(t *testing.T) {
	b := New(Config{})
	f := tenASecond(60 * second)
	var at []mono.Time
	for i := range 1000 {
		id := fmt.Sprint(i)
		p := b.Came(0, id, Place{Came: 0, Order: int64(i)})
		turn, near := b.Turn(0, p, 0, limit.One, f)
		if near {
			t.Fatalf("job %d waits in its worker for %v", i, turn)
		}
		at = append(at, turn)
		b.Leave(0, id, p, limit.One, turn)
	}
	if !slices.IsSorted(at) {
		t.Error("the instants do not rise")
	}
	for i, turn := range at {
		if most := 60*second + mono.Time(i/10+1)*second; turn < 60*second || turn > most {
			t.Errorf("job %d comes at %v, and its turn is before %v", i, turn, most)
		}
		if i > 0 && turn-at[i-1] < mono.Time(DefaultSpread) {
			t.Fatalf("jobs %d and %d come at once, at %v", i-1, i, turn)
		}
	}
}

func TestPlaces(t *testing.T) {
	b := New(Config{})
	leave := func(now mono.Time, id string, order int64) {
		b.Leave(now, id, Place{Came: 0, Order: order}, limit.One, now.Add(10*time.Second))
	}
	for i := range int64(30) {
		leave(0, fmt.Sprint(i), i)
	}
	for _, c := range []struct {
		what string
		do   func()
		p    Place
		want int // ahead
	}{
		{"all are before a new job", nil, Place{Came: 1}, 30},
		{"none is before the first", nil, Place{Came: 0, Order: 0}, 0},
		{"its own place is kept", func() {
			if p := b.Came(5*second, "7", Place{Came: 5 * second}); p != (Place{Came: 0, Order: 7}) {
				t.Errorf("job 7 has the place %v", p)
			}
		}, Place{Came: 0, Order: 7}, 7},
		{"it is not waited for twice", func() { leave(5*second, "7", 7); leave(5*second, "7", 7) }, Place{Came: 1}, 30},
		{"one that does not come back is not waited for", func() { b.Came(13*second, "none", Place{}) }, Place{Came: 1}, 1},
		{"its place is kept all the same", func() {
			if p := b.Came(14*second, "3", Place{Came: 14 * second}); p.Order != 3 {
				t.Errorf("job 3 has the place %v", p)
			}
		}, Place{Came: 1}, 1},
		{"but not for ever", func() {
			if p := b.Came(1000*second, "4", Place{Came: 1000 * second}); p.Came != 1000*second {
				t.Errorf("job 4 has the place %v", p)
			}
		}, Place{Came: 1}, 0},
	} {
		if c.do != nil {
			c.do()
		}
		if n, cost := b.ahead(c.p); n != c.want || cost[limit.Requests] != int64(c.want) {
			t.Errorf("%s: %d jobs ahead, which cost %v", c.what, n, cost)
		}
	}
	if len(b.jobs) != 0 || len(b.due) != 0 || b.cost != (limit.Cost{}) {
		t.Errorf("after all that the Book keeps %d jobs, %d instants, %v", len(b.jobs), len(b.due), b.cost)
	}
}

func TestTurn(t *testing.T) {
	never := func(int, limit.Cost) mono.Time { return limit.Never }
	unknown := func(int, limit.Cost) mono.Time { return limit.AfterSettle }
	for _, c := range []struct {
		what   string
		f      Forecast
		inLine int
		at     mono.Time
		near   bool
		nap    time.Duration
	}{
		{"at once", tenASecond(0), 9, 0, true, time.Millisecond},
		{"near", tenASecond(second / 5), 0, second / 5, true, 75 * time.Millisecond},
		{"far", tenASecond(0), 10, second, false, 875 * time.Millisecond},
		{"far, beside others that come back then", tenASecond(second), 3, second + 3*mono.Time(DefaultSpread), false, 905 * time.Millisecond},
		{"it never fits", never, 0, limit.Never, false, 0},
		{"only an answer makes room, for the first", unknown, 0, limit.AfterSettle, true, time.Second},
		{"only an answer makes room, for another", unknown, 1, limit.AfterSettle, false, time.Second},
	} {
		b := New(Config{})
		at, near := b.Turn(0, Place{}, c.inLine, limit.One, c.f)
		if at != c.at || near != c.near {
			t.Errorf("%s: at %v, near %v; want %v, %v", c.what, at, near, c.at, c.near)
		}
		if at == limit.Never {
			continue
		}
		if nap := b.Leave(0, "it", Place{}, limit.One, at); nap != c.nap {
			t.Errorf("%s: away for %v, want %v", c.what, nap, c.nap)
		}
	}
}

// A queue that brings jobs back late has them leave for less, so that they are in time.
func TestLateness(t *testing.T) {
	b, now := New(Config{}), mono.Time(0)
	for range 100 {
		nap := b.Leave(now, "it", Place{}, limit.One, now+10*second)
		now = now.Add(nap + 300*time.Millisecond)
		b.Came(now, "it", Place{})
	}
	nap := b.Leave(now, "it", Place{}, limit.One, now+10*second)
	if early := 10*time.Second - nap - 300*time.Millisecond; early < 115*time.Millisecond || early > 125*time.Millisecond {
		t.Errorf("it comes back %v before its turn", early)
	}
}

// Where other processes work on the jobs, too, nobody waits for one whose nap is over.
func TestMany(t *testing.T) {
	for many, want := range map[bool]int{false: 1, true: 0} {
		b := New(Config{Many: many})
		b.Leave(0, "it", Place{}, limit.One, second)
		b.Leave(0, "other", Place{}, limit.One, 3*second)
		if n := b.Soon(2 * second); n != 1 {
			t.Errorf("%d jobs come back within 2 s", n)
		}
		b.Came(second, "none", Place{})
		if n := b.Away() - 1; n != want {
			t.Errorf("many %v: %d jobs hold up others after their nap", many, n)
		}
	}
}

// FuzzBook compares a Book with a list of all jobs, and holds it to its laws: an earlier place has no
// later turn, and who is away is counted once.
func FuzzBook(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b, now := New(Config{}), mono.Time(0)
		type away struct {
			place  Place
			looked mono.Time
			cost   int64
		}
		model := map[string]away{}
		for range 400 {
			now = now.Add(time.Duration(rng.IntN(500)) * time.Millisecond)
			id := fmt.Sprint(rng.IntN(40))
			cost := limit.Cost{limit.Requests: 1, limit.Tokens: rng.Int64N(100)}
			first := Place{Came: now, Order: rng.Int64N(3)}
			p := b.Came(now, id, first)
			if m, ok := model[id]; ok && now < m.looked.Add(kept) && m.place.Before(first) {
				first = m.place
			}
			if p != first {
				t.Fatalf("%s: place %v, want %v", id, p, first)
			}
			delete(model, id)
			if rng.IntN(4) == 0 {
				continue
			}
			turn, _ := b.Turn(now, p, rng.IntN(3), cost, tenASecond(now.Add(time.Second)))
			later, _ := b.Turn(now, Place{Came: now.Add(time.Hour)}, 2, cost, tenASecond(now.Add(time.Second)))
			if turn > later {
				t.Fatalf("%s: its turn is at %v, and that of a newer one at %v", id, turn, later)
			}
			nap := b.Leave(now, id, p, cost, turn)
			model[id] = away{p, now.Add(nap + late), cost[limit.Tokens]}
			n, tokens := 0, int64(0)
			for _, m := range model {
				if now < m.looked {
					n, tokens = n+1, tokens+m.cost
				}
			}
			if b.Away() != n || b.cost[limit.Tokens] != tokens || b.cost[limit.Requests] != int64(n) {
				t.Fatalf("away %d at a cost of %v, want %d at %d tokens", b.Away(), b.cost, n, tokens)
			}
			if !slices.IsSortedFunc(b.away, func(a, c *job) int { return cmp.Or(a.place.compare(c.place), cmp.Compare(a.id, c.id)) }) {
				t.Fatal("the jobs are not in order")
			}
		}
	})
}

func BenchmarkBook(b *testing.B) {
	book := New(Config{})
	f := tenASecond(60 * second)
	for i := range 100_000 {
		book.Leave(0, fmt.Sprint(i), Place{Order: int64(i)}, limit.One, 60*second)
	}
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i % 100_000)
		p := book.Came(0, id, Place{})
		at, _ := book.Turn(0, p, 0, limit.One, f)
		book.Leave(0, id, p, limit.One, at)
	}
}
