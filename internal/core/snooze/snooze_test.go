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
		b.Leave(0, id, p, limit.One, turn, 0)
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
		b.Leave(now, id, Place{Came: 0, Order: order}, limit.One, now.Add(10*time.Second), 0)
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
		n := b.ahead(c.p)
		if cost := b.mean(n); n != c.want || cost[limit.Requests] != int64(c.want) {
			t.Errorf("%s: %d jobs ahead, which cost %v", c.what, n, cost)
		}
	}
	if len(b.jobs) != 0 || len(b.looks) != 0 || b.cost != (limit.Cost{}) {
		t.Errorf("after all that the Book keeps %d jobs, %d instants, %v", len(b.jobs), len(b.looks), b.cost)
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
		{"near", tenASecond(second / 5), 0, second / 5, true, 168_750 * time.Microsecond},
		{"far", tenASecond(0), 10, second, false, 968_750 * time.Microsecond},
		{"far, beside others that come back then", tenASecond(second), 3, second + 3*mono.Time(DefaultSpread), false, 998_750 * time.Microsecond},
		{"it never fits", never, 0, limit.Never, false, 0},
		{"only an answer makes room, for the first", unknown, 0, limit.AfterSettle, true, time.Second},
		{"only an answer makes room, and two wait for it", unknown, 2, limit.AfterSettle, false, time.Second},
	} {
		b := New(Config{})
		at, near := b.Turn(0, Place{}, c.inLine, limit.One, c.f)
		if at != c.at || near != c.near {
			t.Errorf("%s: at %v, near %v; want %v, %v", c.what, at, near, c.at, c.near)
		}
		if at == limit.Never {
			continue
		}
		if nap := b.Leave(0, "it", Place{}, limit.One, at, 0); nap != c.nap {
			t.Errorf("%s: away for %v, want %v", c.what, nap, c.nap)
		}
	}
}

// A job of a slow limit comes back earlier, so that two wait in workers.
func TestEarly(t *testing.T) {
	for each, want := range map[time.Duration]time.Duration{
		0: 50 * time.Millisecond, time.Millisecond: 50 * time.Millisecond, 60 * time.Millisecond: 120 * time.Millisecond,
		time.Hour: 200 * time.Millisecond,
	} {
		b := New(Config{MaxWait: 400 * time.Millisecond, Each: each})
		if nap := b.Leave(0, "it", Place{}, limit.One, second, 0); time.Second-nap != want {
			t.Errorf("a job each %v: it comes back %v before its turn, want %v", each, time.Second-nap, want)
		}
	}
}

// Room now is for those whose nap is over. If they do not come, it is for anybody: a queue may have others
// first.
func TestRoomThatNobodyComesFor(t *testing.T) {
	b := New(Config{})
	for i := range int64(20) {
		at := second
		if i >= 10 {
			at = 5 * second
		}
		b.Leave(0, fmt.Sprint(i), Place{Order: i}, limit.One, at, 0)
	}
	for _, c := range []struct {
		now, want mono.Time
	}{
		{second / 2, second / 2}, // ten may go at once, and nobody is due
		{second, 3 * second},     // the room is that of the ten that are due
		{second + second/2, second + second/2},
	} {
		if at, near := b.Turn(c.now, Place{Came: second}, 0, limit.One, tenASecond(c.now)); at != c.want || near != (at == c.now) {
			t.Errorf("at %v a newer job may go at %v, near %v; want %v", c.now, at, near, c.want)
		}
	}
}

// A queue that brings jobs back late has them leave for less, so that they are in time.
func TestLateness(t *testing.T) {
	b, now := New(Config{}), mono.Time(0)
	for range 100 {
		nap := b.Leave(now, "it", Place{}, limit.One, now+10*second, 0)
		now = now.Add(nap + 300*time.Millisecond)
		b.Came(now, "it", Place{})
	}
	nap := b.Leave(now, "it", Place{}, limit.One, now+10*second, 0)
	if early := 10*time.Second - nap - 300*time.Millisecond; early < 20*time.Millisecond || early > 32*time.Millisecond {
		t.Errorf("it comes back %v before its turn", early)
	}
}

// Where other processes work on the jobs, too, nobody waits for one whose nap is over.
func TestMany(t *testing.T) {
	for many, want := range map[bool]int{false: 1, true: 0} {
		b := New(Config{Many: many})
		b.Leave(0, "it", Place{}, limit.One, second, 0)
		b.Leave(0, "other", Place{}, limit.One, 3*second, 0)
		if n := b.Soon(2 * second); n != 1 {
			t.Errorf("%d jobs come back within 2 s", n)
		}
		if n := b.Away(second) - 1; n != want {
			t.Errorf("many %v: %d jobs hold up others after their nap", many, n)
		}
	}
}

// Where only answers make room, jobs come back by the time between those that went.
func TestWent(t *testing.T) {
	b, now := New(Config{}), mono.Time(0)
	unknown := func(int, limit.Cost) mono.Time { return limit.AfterSettle }
	for i := range int64(20) {
		b.Leave(now, fmt.Sprint(i), Place{Order: i}, limit.One, 100*second, 0)
	}
	for range 50 {
		b.Went(now)
		now = now.Add(400 * time.Millisecond)
	}
	for _, c := range []struct {
		order int64
		want  time.Duration
	}{{0, 300 * time.Millisecond}, {9, 1200 * time.Millisecond}} {
		at, near := b.Turn(now, Place{Order: c.order}, 2, limit.One, unknown)
		if at.Sub(now) != c.want || near {
			t.Errorf("job %d comes back after %v, near %v", c.order, at.Sub(now), near)
		}
	}
	if _, near := b.Turn(now, Place{Order: 9}, 1, limit.One, unknown); !near {
		t.Error("nobody waits in a worker for the next answer")
	}
}

// Jobs that only an answer makes room for come back one after another, as nobody knows when it comes.
func TestBlindNaps(t *testing.T) {
	b := New(Config{Spread: 100 * time.Millisecond})
	for i := range time.Duration(30) {
		nap := b.Leave(0, fmt.Sprint(i), Place{Order: int64(i)}, limit.One, limit.AfterSettle, 0)
		if want := blind + i*100*time.Millisecond; nap != want {
			t.Errorf("behind %d the nap is %v, want %v", i, nap, want)
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
			nap := b.Leave(now, id, p, cost, turn, 0)
			model[id] = away{p, now.Add(nap + b.late()), cost[limit.Tokens]}
			n, tokens := 0, int64(0)
			for _, m := range model {
				if now < m.looked {
					n, tokens = n+1, tokens+m.cost
				}
			}
			if b.Away(now) != n || b.cost[limit.Tokens] != tokens || b.cost[limit.Requests] != int64(n) {
				t.Fatalf("away %d at a cost of %v, want %d at %d tokens", b.Away(now), b.cost, n, tokens)
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
		book.Leave(0, fmt.Sprint(i), Place{Order: int64(i)}, limit.One, 60*second, 0)
	}
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i % 100_000)
		p := book.Came(0, id, Place{})
		at, _ := book.Turn(0, p, 0, limit.One, f)
		book.Leave(0, id, p, limit.One, at, 0)
	}
}
