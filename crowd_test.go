package paceline_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// many goroutines: 10,000, and fewer where the race detector makes each ten times as dear.
var many = 10_000

func init() {
	if race.Enabled {
		many = 2000
	}
}

func TestTenThousandWaiters(t *testing.T) {
	for _, c := range []struct {
		name    string
		limiter func() limit.Limiter
	}{
		{"20 per second", func() limit.Limiter { return rolling(t, 20, time.Second) }},
		{"1 per second", func() limit.Limiter { return rolling(t, 1, time.Second) }},
		{"5 in flight", func() limit.Limiter { return concurrency(t, 5) }},
		{"both", func() limit.Limiter { return limit.NewAll(rolling(t, 300, time.Minute), concurrency(t, 5)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &witness{Limiter: c.limiter(), t: t}
				g := paceline.NewGate(w)
				var wg sync.WaitGroup
				for id := range int64(many) {
					wg.Go(func() {
						time.Sleep(time.Duration(id)) // arrive one after the other
						p, err := g.Wait(bg, weight(id, 1))
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(time.Duration(50+id*7919%100) * ms)
						p.Settle(accepted)
					})
				}
				wg.Wait()
				if len(w.log) != many {
					t.Fatalf("%d admitted", len(w.log))
				}
				for i, a := range w.log {
					if a.id != int64(i) {
						t.Fatalf("served as number %d: the %d. to arrive", i, a.id)
					}
				}
				ticks, wakes := g.Counts()
				t.Logf("%.2f wake-ups per admission (%d ticks, %d waiters)", float64(ticks+wakes)/float64(many), ticks, wakes)
				if ticks+wakes > uint64(2*many) {
					t.Errorf("%d ticks and %d waiters woken for %d admissions, want at most 2 each", ticks, wakes, many)
				}
			})
		})
	}
}

func TestThoseWhoGiveUpDelayNobody(t *testing.T) {
	last := func(others int) (at mono.Time) {
		synctest.Test(t, func(t *testing.T) {
			w := &witness{Limiter: rolling(t, 1, time.Second), t: t}
			g := paceline.NewGate(w)
			(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
			ctx, cancel := context.WithCancel(bg)
			var canceled atomic.Int32
			for id := range int64(others) {
				go func() {
					if _, err := g.Wait(ctx, weight(id, 1)); errors.Is(err, context.Canceled) {
						canceled.Add(1)
					}
				}()
			}
			synctest.Wait()
			line := waiting(bg, g, weight(int64(many), 1))
			time.Sleep(500 * ms)
			cancel()
			(<-line).p.Settle(accepted)
			synctest.Wait()
			if canceled.Load() != int32(others) || len(w.log) != 2 {
				t.Errorf("%d of %d gave up, %d admitted", canceled.Load(), others, len(w.log))
			}
			at = w.log[1].at
		})
		return at
	}
	alone, crowd := last(0), last(many-1)
	if alone != mono.Time(time.Second) || crowd != alone {
		t.Errorf("the last goes at %v alone and at %v after %d gave up; want 1s", alone, crowd, many-1)
	}
}

func TestWaitersAreSmall(t *testing.T) {
	g := paceline.NewGate(concurrency(t, 1))
	p, _, _ := g.TryWait(limit.One)
	ctx, cancel := context.WithCancel(bg)
	var wg sync.WaitGroup
	used := func() (heap, stacks uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the first only moves what pools hold aside
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.StackInuse
	}
	heap, stacks := used()
	for range many {
		wg.Go(func() {
			if _, err := g.Wait(ctx, limit.One); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	for g.Waiting() != many {
		runtime.Gosched()
	}
	heapNow, stacksNow := used()
	each := (heapNow - heap) / uint64(many)
	t.Logf("%d bytes per waiter, and %d of stack", each, (stacksNow-stacks)/uint64(many))
	// With the runtime's own bookkeeping of a goroutine. The stacks are the runtime's choice: it learns how large to
	// make them from all that ran before.
	if each > 1500 {
		t.Errorf("%d bytes per waiter without its stack, want at most 1500", each)
	}
	cancel()
	wg.Wait()
	if kept := g.Freed(); kept < 0 || kept > 1024 {
		t.Errorf("%d waiters kept", kept)
	}
	p.Settle(accepted)
}

func TestNoAllocations(t *testing.T) {
	g := paceline.NewGate(limit.NewAll(limit.MustRolling(1<<40, time.Millisecond), concurrency(t, 1)))
	ctx, cancel := context.WithTimeout(bg, time.Hour)
	defer cancel()
	if n := testing.AllocsPerRun(1000, func() {
		p, err := g.Wait(ctx, limit.One)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, ok := g.TryWait(limit.One); ok {
			t.Fatal("two in flight")
		}
		p.Settle(accepted)
		p, _, ok := g.TryWait(limit.One)
		if !ok {
			t.Fatal("none in flight, refused")
		}
		p.Settle(accepted)
	}); n != 0 {
		t.Errorf("uncontended Wait, TryWait, Settle: %v allocations, want 0", n)
	}

	// In line too, once it has been as long before. One goroutine stands in line behind another all the time.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	pass := func() {
		p, err := g.Wait(ctx, limit.One)
		if err != nil {
			t.Error(err)
		}
		runtime.Gosched()
		p.Settle(accepted)
	}
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					pass()
				}
			}
		})
	}
	if n := testing.AllocsPerRun(1000, pass); n != 0 {
		t.Errorf("Wait in line: %v allocations, want 0", n)
	}
	close(stop)
	wg.Wait()
}

// Goroutines that wait one after the other reuse one place.
func TestPlacesAreUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(rolling(t, 1, time.Second))
		for range 5 {
			ctx, cancel := context.WithCancel(bg)
			for range 2 {
				go g.Wait(ctx, weight(0, 1))
			}
			synctest.Wait()
			cancel() // the first has gone, or waits as well
			synctest.Wait()
		}
		if n := g.Freed(); n > 2 {
			t.Errorf("for two at a time, %d places are kept", n)
		}
	})
}
