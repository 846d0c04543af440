package window_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// Two orders of a symbol in any second, and at most two symbols at once.
func ExampleKeyed() {
	like, err := window.NewLog(2, time.Second)
	if err != nil {
		panic(err)
	}
	orders, err := window.NewKeyed[string](2, like)
	if err != nil {
		panic(err)
	}
	for _, o := range []struct {
		at     time.Duration
		symbol string
	}{{0, "AAPL"}, {0, "MSFT"}, {1, "AAPL"}, {2, "AAPL"}, {3, "TSLA"}, {time.Second + 1, "TSLA"}} {
		now := mono.Time(o.at)
		switch log, ok := orders.Get(now, o.symbol); {
		case !ok:
			fmt.Println(o.symbol, "at", now, "refused: too many symbols")
		case log.Take(now):
			fmt.Println(o.symbol, "at", now, "sent")
		default:
			fmt.Println(o.symbol, "at", now, "not before", log.Ready(now))
		}
	}
	// Output:
	// AAPL at 0s sent
	// MSFT at 0s sent
	// AAPL at 1ns sent
	// AAPL at 2ns not before 1.000000001s
	// TSLA at 3ns refused: too many symbols
	// TSLA at 1.000000001s sent
}

// The slots of each symbol, for debugging.
func ExampleKeyed_All() {
	like, err := window.NewSlots(10*time.Second, time.Second)
	if err != nil {
		panic(err)
	}
	shares, err := window.NewKeyed[string](100, like)
	if err != nil {
		panic(err)
	}
	for _, e := range []struct {
		at     mono.Time
		symbol string
		n      int64
	}{{mono.Time(6500 * ms), "MSFT", 2}, {mono.Time(8800 * ms), "AAPL", 6}, {mono.Time(12700 * ms), "MSFT", 1}} {
		if slots, ok := shares.Get(e.at, e.symbol); ok {
			slots.Add(e.at, e.n)
		}
	}
	for symbol, slots := range shares.All() {
		fmt.Println(symbol, slots)
	}
	// Output:
	// AAPL total 6: 6 at 8s
	// MSFT total 3: 2 at 6s, 1 at 12s
}

func TestKeyedArguments(t *testing.T) {
	like := must(window.NewLog(1, 1))
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(window.NewKeyed[string](0, like)), "NewKeyed: keys 0 is not from 1"},
		{second(window.NewKeyed[string](1<<26+1, like)), "NewKeyed: keys 67108865 is not"},
		{second(window.NewKeyed[string](1, (*window.Slots)(nil))), "like is nil"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("error %v, want one that says %q", c.err, c.want)
		}
	}
}

// The counters of keys have the size of the model, and nothing of what it counts.
func TestKeyedCountersAreLikeTheModel(t *testing.T) {
	for _, c := range []struct{ window, precision time.Duration }{{10, 1}, {10, 3}, {10, 10}, {7, 2}, {1, 1}} {
		like := must(window.NewSlots(c.window, c.precision))
		like.Add(5, 3)
		got, _ := must(window.NewKeyed[int](1, like)).Get(5, 1)
		if got.Total(5) != 0 || got.Len() != like.Len() {
			t.Errorf("%+v: total %d in %d slots, want 0 in %d", c, got.Total(5), got.Len(), like.Len())
		}
	}
}

// keyedModel is a Keyed as its doc comment says it: plain counters in a slice, in the order of last
// use.
type keyedModel[C window.Counter[C]] struct {
	keys  []int
	plain map[int]C
}

// checkKeyed does the steps of a timeline with a Keyed, and with one counter for each key that is
// never forgotten. Each count is the same. Keys are refused only if so many are in use.
func checkKeyed[C window.Counter[C]](t *testing.T, most int, start int64, w time.Duration, ops []byte, make func() C,
	add func(C, mono.Time, int64), count func(C, mono.Time) int64,
) {
	t.Helper()
	k := must(window.NewKeyed[int](most, make()))
	m := keyedModel[C]{plain: map[int]C{}}
	last := mono.Min
	for i, s := range timeline(start, w, ops) {
		key, now := s.take, max(s.now, last)
		last = now
		m.keys = slices.DeleteFunc(m.keys, func(other int) bool { return other == key })
		for range 2 { // forgotten, in the order of last use
			if len(m.keys) > 0 && count(m.plain[m.keys[0]], now) == 0 {
				m.keys = m.keys[1:]
			}
		}
		c, ok := k.Get(s.now, key)
		if _, kept := find(k, key); ok != kept {
			t.Fatalf("step %d: key %d: found %v, but kept %v", i, key, ok, kept)
		}
		if room := len(m.keys) < most; ok != room {
			t.Fatalf("step %d, at %d: key %d has a counter: %v, but %d of %d other keys are in use", i, now, key, ok, len(m.keys), most)
		}
		if !ok {
			continue
		}
		m.keys = append(m.keys, key)
		plain, known := m.plain[key]
		if !known {
			plain = make()
			m.plain[key] = plain
		}
		add(c, s.now, s.n) // by the caller's now
		add(plain, now, s.n)
		if got, want := count(c, s.now), count(plain, now); got != want {
			t.Fatalf("step %d, at %d: key %d counts %d, want %d", i, now, key, got, want)
		}
		if got := slices.Collect(first(k)); !slices.Equal(got, m.keys) {
			t.Fatalf("step %d, at %d: keys %v, want %v", i, now, got, m.keys)
		}
	}
}

func find[C window.Counter[C]](k *window.Keyed[int, C], key int) (C, bool) {
	c, ok := maps.Collect(k.All())[key]
	return c, ok
}

func first[C window.Counter[C]](k *window.Keyed[int, C]) func(func(int) bool) {
	return func(yield func(int) bool) {
		for key := range k.All() {
			if !yield(key) {
				return
			}
		}
	}
}

// FuzzKeyed: each key is counted as by a counter of its own that is never forgotten. Keys are
// forgotten in the order of last use, and only when their window is empty.
func FuzzKeyed(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s.start, s.window, uint8(i+1), []byte(s.ops))
		f.Add(s.start, s.window, uint8(2), []byte(s.ops+s.ops))
	}
	f.Fuzz(func(t *testing.T, start, length int64, keys uint8, ops []byte) {
		w, most := time.Duration(length), int(keys%16)
		if w <= 0 || most == 0 {
			return
		}
		checkKeyed(t, most, start, w, ops, func() *window.Log { return must(window.NewLog(5, w)) },
			func(l *window.Log, now mono.Time, n int64) {
				for range n {
					l.Add(now)
				}
			},
			func(l *window.Log, now mono.Time) int64 { return int64(l.Count(now)) })
		checkKeyed(t, most, start, w, ops, func() *window.Runs { return must(window.NewRuns(w, 3)) },
			func(r *window.Runs, now mono.Time, n int64) { r.Add(now, n) },
			func(r *window.Runs, now mono.Time) int64 { return r.Total(now) })
		checkKeyed(t, most, start, w, ops, func() *window.Slots { return must(window.NewSlots(w, max(1, w/3))) },
			func(s *window.Slots, now mono.Time, n int64) { s.Add(now, n) },
			func(s *window.Slots, now mono.Time) int64 { return s.Total(now) })
	})
}

// A million keys that come and go need the memory of those in use at once. After a warm-up nothing
// is allocated.
func TestKeyedIsBounded(t *testing.T) {
	k := must(window.NewKeyed[int](1000, must(window.NewLog(3, 100))))
	var now mono.Time
	use := func(key int) {
		l, ok := k.Get(now, key)
		if !ok || l.Count(now) != 0 || !l.Take(now) {
			t.Fatalf("key %d at %d: ok %v", key, now, ok)
		}
	}
	for key := range 1_000_000 {
		now++
		use(key)
		if k.Len() > 102 {
			t.Fatalf("%d keys are kept, with 101 in the window", k.Len())
		}
	}
	key := 1_000_000
	if n := testing.AllocsPerRun(10_000, func() { now++; key++; use(key) }); n > 0.01 {
		t.Errorf("%v allocations for each new key", n)
	}
}

// The slots that are shown are those that the total counts.
func TestSlotsAllIsTheTotal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	s, seen := must(window.NewSlots(100, 7)), naive{}
	now := mono.Time(-500)
	for range 2000 {
		now += mono.Time(random.Int64N(30))
		n := random.Int64N(4)
		seen[now] += n
		s.Add(now, n)
		shown, before := int64(0), mono.Min
		for at, n := range s.All() {
			if exact := seen.since(at, at+6); n != exact || at <= before || at%7 != 0 {
				t.Fatalf("at %d: a slot from %d holds %d, want %d; the one before is of %d", now, at, n, exact, before)
			}
			shown, before = shown+n, at
		}
		if shown != s.Total(now) {
			t.Fatalf("at %d: %d in all slots, want %d", now, shown, s.Total(now))
		}
	}
}

// A Keyed costs a search in a map beside the counter alone.
func BenchmarkKeyed(b *testing.B) {
	alone := must(window.NewLog(300, time.Second))
	var now mono.Time
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			now += mono.Time(4 * ms)
			alone.Take(now)
		}
	})
	for _, keys := range []int{1, 100, 10_000} {
		k := must(window.NewKeyed[int](keys, must(window.NewLog(300, time.Second))))
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			b.ReportAllocs()
			step, key := mono.Time(4*ms)/mono.Time(keys), 0
			for b.Loop() {
				if key++; key >= keys {
					key = 0
				}
				now += step
				l, _ := k.Get(now, key)
				l.Take(now)
			}
		})
	}
	k := must(window.NewKeyed[int](1000, must(window.NewLog(3, 100))))
	b.Run("each key new", func(b *testing.B) {
		b.ReportAllocs()
		key := 0
		for b.Loop() {
			key++
			now++
			l, _ := k.Get(now, key)
			l.Take(now)
		}
	})
}
