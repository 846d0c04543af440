package paceline_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestSettleWakesOnlyTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{Limiter: concurrency(t, 1), t: t}
		g := paceline.NewGate(w)
		p := (<-waiting(bg, g, weight(0, 1))).p
		var line []<-chan result
		for id := range int64(5) {
			line = append(line, waiting(bg, g, weight(id+1, 1)))
		}
		if g.Armed() {
			t.Error("the timer is set although nobody knows when the head may go")
		}
		for i, c := range line {
			p.Settle(accepted)
			synctest.Wait()
			ticks, wakes := g.Counts()
			if wakes != uint64(i+1) || ticks != 0 {
				t.Fatalf("settle %d: %d waiters woken and %d ticks, want %d and 0", i, wakes, ticks, i+1)
			}
			p = (<-c).p
		}
		p.Settle(accepted)
		if w.order() != "0 1 2 3 4 5" {
			t.Errorf("served in the order %s", w.order())
		}
	})
}

func TestEarlyAndStaleTicksAreHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := rolling(t, 1, time.Second)
		g := paceline.NewGate(r)
		g.Tick() // before there ever was a timer
		(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
		a, b := waiting(bg, g, weight(1, 1)), waiting(bg, g, weight(2, 1))
		for range 3 {
			time.Sleep(300 * ms)
			g.Tick()
			if s := state(start, a, b); s != "-, -" || !g.Armed() {
				t.Fatalf("after an early tick: %s, timer set: %v", s, g.Armed())
			}
		}
		(<-a).p.Settle(accepted)
		if d := time.Since(start); d != time.Second {
			t.Errorf("served at %v, want 1s", d)
		}
		// A timer set for later than needed is set again.
		time.Sleep(500 * ms)
		g.Update(func(now mono.Time) {
			if err := r.SetLimit(now, 2); err != nil {
				t.Error(err)
			}
		})
		(<-b).p.Settle(accepted)
		if d := time.Since(start); d != 1500*ms {
			t.Errorf("served at %v, want 1.5s", d)
		}
		g.Tick()
		if ticks, _ := g.Counts(); ticks != 1+3+1+1 || g.Armed() {
			t.Errorf("%d ticks, timer set: %v; want one of the timer and five by hand", ticks, g.Armed())
		}
	})
}

func TestTimerThatFiresAtTheWrongTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := paceline.NewGate(rolling(t, 1, time.Second))
		(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
		early := waiting(bg, g, weight(1, 1))
		g.Misfire(100 * ms)
		p := (<-early).p
		if d := time.Since(start); d != time.Second {
			t.Fatalf("a timer fired early and the head was served at %v, want 1s", d)
		}
		p.Settle(accepted)

		late := waiting(bg, g, weight(2, 1))
		g.Misfire(time.Hour)
		time.Sleep(1200 * ms)
		_, retry, ok := g.TryWait(weight(3, 1)) // finds the head overdue
		if ok || retry != paceline.RetryAfterSettle {
			t.Errorf("a newcomer beside an overdue head: ok %v, retry %v; want the head served first", ok, retry)
		}
		if s := state(start, late); s != "ok" {
			t.Errorf("the overdue head: %s, want ok", s)
		}
		if g.Armed() {
			t.Error("nobody waits and the timer is set")
		}
	})
}

func TestTimerStopsWithTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(rolling(t, 1, time.Second))
		(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
		ctx, cancel := context.WithCancel(bg)
		only := waiting(ctx, g, weight(1, 1))
		cancel()
		<-only
		time.Sleep(24 * time.Hour)
		if ticks, _ := g.Counts(); ticks != 0 {
			t.Errorf("%d ticks for a line that is gone", ticks)
		}
	})
}

func TestNothingIsStarted(t *testing.T) {
	before := runtime.NumGoroutine()
	g := paceline.NewGate(rolling(t, 1, 20*ms))
	for range 3 { // the second and third wait for the timer
		p, err := g.Wait(bg, weight(0, 1))
		if err != nil {
			t.Fatal(err)
		}
		p.Settle(accepted)
	}
	// The timer's callback may still be on its way out.
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}
	if n := runtime.NumGoroutine(); n > before || g.Armed() {
		t.Errorf("%d goroutines, %d before; timer set: %v", n, before, g.Armed())
	}
}
