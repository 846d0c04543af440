package shared_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
	"github.com/paceline-go/paceline/limit/window/shared"
)

func newKeyed(tb testing.TB, keys, limit int) *shared.Keyed[int, *window.Log] {
	like, err := window.NewLog(limit, time.Second)
	if err != nil {
		tb.Fatal(err)
	}
	k, err := shared.NewKeyed[int](keys, like)
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

// Goroutines send orders of accounts. Each account may send 3 in any second.
func ExampleKeyed() {
	like, err := window.NewLog(3, time.Second)
	if err != nil {
		panic(err)
	}
	orders, err := shared.NewKeyed[string](1000, like)
	if err != nil {
		panic(err)
	}
	var sent atomic.Int64
	var all sync.WaitGroup
	now := mono.Time(0) // in production: mono.Of(began, time.Now()), in each goroutine
	for _, account := range []string{"a", "b"} {
		for range 5 {
			all.Go(func() {
				if orders.Do(now, account, func(l *window.Log) bool { return l.Take(now) }) {
					sent.Add(1)
				}
			})
		}
	}
	all.Wait()
	fmt.Println(sent.Load(), "of", orders.Len(), "accounts")
	orders.Each(func(_ string, l *window.Log) bool {
		fmt.Println(l.Count(now))
		return true
	})
	// Output:
	// 6 of 2 accounts
	// 3
	// 3
}

// However goroutines meet, exactly the limit of each key passes, and no key beyond the bound.
func TestKeyedOfManyGoroutines(t *testing.T) {
	const keys, limit, goroutines = 5, 40, 16
	k := newKeyed(t, keys, limit)
	var passed [keys + 3]atomic.Int64
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := range 400 {
				key, now := (g+i)%len(passed), mono.Time(i%7)
				if k.Do(now, key, func(l *window.Log) bool { return l.Take(now) }) {
					passed[key].Add(1)
				}
			}
		})
	}
	all.Wait()
	full := 0
	for key := range passed {
		switch n := passed[key].Load(); n {
		case limit:
			full++
		case 0:
		default:
			t.Errorf("key %d: %d passed, want %d or none", key, n, limit)
		}
	}
	if full != keys || k.Len() != keys {
		t.Errorf("%d keys have used their limit and %d are kept, want %d", full, k.Len(), keys)
	}
	seen := 0
	k.Each(func(int, *window.Log) bool { seen++; return seen < 2 })
	if seen != 2 {
		t.Errorf("Each went on to %d keys after false at the second", seen)
	}
}

func TestBadArguments(t *testing.T) {
	if k, err := shared.NewKeyed[int](0, (*window.Log)(nil)); err == nil || k != nil {
		t.Errorf("%v, %v: want an error", k, err)
	}
}

func BenchmarkKeyed(b *testing.B) {
	take := func(k *shared.Keyed[int, *window.Log], now mono.Time, key int) {
		k.Do(now, key, func(l *window.Log) bool { return l.Take(now) })
	}
	b.Run("one goroutine", func(b *testing.B) {
		k := newKeyed(b, 100, 300)
		var now mono.Time
		key := 0
		b.ReportAllocs()
		for b.Loop() {
			if key++; key >= 100 {
				key = 0
			}
			now += 40_000
			take(k, now, key)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		k := newKeyed(b, 100, 300)
		var clock atomic.Int64
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				now := clock.Add(40_000)
				take(k, mono.Time(now), int(now/40_000)%100)
			}
		})
	})
}
