package paceline_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func precise(t testing.TB, l limit.Limiter) *paceline.Gate {
	t.Helper()
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: l, Precise: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGateConfig(t *testing.T) {
	if g, err := paceline.NewGateWith(paceline.GateConfig{Precise: true}); err == nil || g != nil {
		t.Errorf("no Limiter: %v, %v; want an error", g, err)
	}
	if d := paceline.NewGate(concurrency(t, 1)).Lead(0); d != 0 {
		t.Errorf("not asked to be precise, the timer goes off %v early", d)
	}
	if d := precise(t, concurrency(t, 1)).Lead(0); d != 1200*time.Microsecond {
		t.Errorf("asked to be precise, the timer goes off %v early, want 1.2ms", d)
	}
}

// In virtual time no goroutine may wait for the clock by reading it: it would not move.
func TestPreciseInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		g := precise(t, rolling(t, 1, time.Second))
		for i := range 3 {
			p, err := g.Wait(bg, weight(0, 1))
			if err != nil {
				t.Fatal(err)
			}
			if at := time.Since(begin); at != time.Duration(i)*time.Second {
				t.Errorf("request %d went at %v, want %ds", i, at, i)
			}
			p.Settle(accepted)
		}
		if ticks, _ := g.Counts(); ticks != 2 {
			t.Errorf("the timer went off %d times, want 2", ticks)
		}
	})
}

// spinning waits until the Gate does or does not spin.
func spinning(t *testing.T, g *paceline.Gate, want bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); g.Spinning() != want; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("for 10 s it has been so that spinning is %v", !want)
		}
	}
}

// In real time: the timer fires long before the head's instant, and a change of the head meanwhile
// is seen.
func TestSpin(t *testing.T) {
	const lead = time.Hour // so that whoever waits spins
	cool, err := limit.NewCooldown(0)
	if err != nil {
		t.Fatal(err)
	}
	gap, err := limit.NewSpacing(20 * ms)
	if err != nil {
		t.Fatal(err)
	}
	a := &asked{Limiter: limit.NewAll(gap, cool)}
	w := &witness{Limiter: a, t: t}
	g := precise(t, w)
	g.Lead(lead)
	enter := func(ctx context.Context, id int64) <-chan result {
		ended := make(chan result, 1)
		n := g.Waiting()
		go func() {
			p, err := g.Wait(ctx, weight(id, 1))
			ended <- result{p, err}
		}()
		for g.Waiting() == n {
			runtime.Gosched()
		}
		return ended
	}
	after := func(d time.Duration) (t mono.Time) {
		g.Update(func(now mono.Time) {
			t = now.Add(d)
			cool.Extend(t)
		})
		return t
	}
	times := func() (n int) { // the limiter was asked, not counting those of this question
		g.Update(func(mono.Time) { n, a.n = a.n, -1 })
		return n
	}

	// Two in line: the first goes when it may and not before, and the same spin serves the second.
	due := after(20 * ms)
	first, second := enter(bg, 1), enter(bg, 2)
	(<-first).p.Settle(accepted)
	(<-second).p.Settle(accepted)
	for i, at := range []mono.Time{due, w.log[0].at.Add(20 * ms)} {
		if got := w.log[i].at; got < at {
			t.Errorf("request %d went %v early", i+1, at.Sub(got))
		}
	}
	spinning(t, g, false)
	if ticks, _ := g.Counts(); ticks != 0 {
		t.Errorf("the timer called back %d times, and both were due soon from the beginning", ticks)
	}
	if n := g.Waiting(); n != 0 || g.Armed() {
		t.Errorf("at the end %d wait, timer set: %v", n, g.Armed())
	}

	// A long spin: it asks nobody, and a callback of the timer neither joins nor ends it.
	after(lead / 2)
	ctx, cancel := context.WithCancel(bg)
	head := enter(ctx, 3)
	spinning(t, g, true)
	ticked := make(chan struct{})
	go func() {
		g.Tick()
		close(ticked)
	}()
	select {
	case <-ticked:
	case <-time.After(10 * time.Second):
		t.Error("two spin")
	}
	if !g.Spinning() {
		t.Error("the timer ended the spin")
	}
	times()
	for range 1000 {
		runtime.Gosched()
	}
	if n := times(); n != 0 {
		t.Errorf("the limiter was asked %d times in a spin", n)
	}
	// The head gives up: nothing is left to spin for.
	cancel()
	if r := <-head; r.err == nil {
		t.Error("half an hour is over")
	}
	spinning(t, g, false)
	if g.Armed() {
		t.Error("the timer is set for nobody")
	}

	// The instant moves out of reach: the timer takes over, once; and comes back.
	ctx, cancel = context.WithCancel(bg)
	defer cancel()
	head = enter(ctx, 4)
	spinning(t, g, true)
	after(3 * lead)
	spinning(t, g, false)
	if !g.Armed() {
		t.Error("nobody spins, and the timer is not set")
	}
	g.Lead(4 * lead)
	g.Misfire(0)
	spinning(t, g, true)
	cancel()
	<-head
	spinning(t, g, false)

	// Another's Settle serves a spinner, and the next one spins in its place.
	g = precise(t, rolling(t, 2, lead/2))
	g.Lead(lead)
	p, _, _ := g.TryWait(weight(0, 1))
	p.Settle(accepted)
	p, _, _ = g.TryWait(weight(0, 1))
	ctx, cancel = context.WithCancel(bg)
	defer cancel()
	first, second = enter(bg, 1), enter(ctx, 2)
	spinning(t, g, true)
	p.Settle(limit.Outcome{Result: limit.Unsent})
	p = (<-first).p
	if p == (paceline.Permit{}) {
		t.Fatal("the first was not served")
	}
	spinning(t, g, true)
	cancel()
	<-second
	p.Settle(accepted)
	spinning(t, g, false)
}

// untilSpinning yields until somebody spins: from then on a bubble's clock stands still. How often that takes is the scheduler's affair.
func untilSpinning(g *paceline.Gate) {
	for !g.Spinning() {
		runtime.Gosched()
	}
}

// The timer goes off early by the lead, not by more: the very first one of a Gate, and when it is set again.
func TestTimerGoesOffEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap, lead = 3 * time.Second, time.Second
		s, err := limit.NewSpacing(gap)
		try(t, err)
		g := paceline.NewGate(s)
		g.Lead(lead)
		for n := range uint64(2) {
			g.Update(func(now mono.Time) { limittest.Admit(s, now, limit.One) })
			ctx, cancel := context.WithCancel(bg)
			line := waiting(ctx, g, weight(1, 1))
			time.Sleep(gap - lead - time.Nanosecond)
			synctest.Wait()
			if ticks, _ := g.Counts(); ticks != n || g.Spinning() {
				t.Errorf("1 ns before: %d callbacks, want %d; spinning: %v", ticks, n, g.Spinning())
			}
			time.Sleep(time.Nanosecond)
			untilSpinning(g)
			if ticks, _ := g.Counts(); ticks != n+1 {
				t.Errorf("on time: %d callbacks, want %d", ticks, n+1)
			}
			cancel()
			<-line
			if g.Spinning() || g.Armed() {
				t.Errorf("for nobody: spinning: %v, timer set: %v", g.Spinning(), g.Armed())
			}
		}
	})
}

// A spinner whose instant moves out of reach sleeps again. It goes at that instant.
func TestSpinnerThatSleepsAgainIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap, lead = 3 * time.Second, time.Second
		s := must(limit.NewSpacing(gap))
		g := paceline.NewGate(s)
		g.Lead(lead)
		moved := func() { g.Update(func(now mono.Time) { limittest.Admit(s, now, limit.One) }) }
		moved()
		line := waiting(bg, g, weight(1, 1))
		time.Sleep(gap - lead)
		untilSpinning(g)
		moved()
		synctest.Wait()
		if g.Spinning() {
			t.Error("somebody spins for an instant that is out of reach")
		}
		g.Lead(0)
		g.Misfire(gap)
		began := time.Now()
		(<-line).p.Settle(accepted)
		if d := time.Since(began); d != gap {
			t.Errorf("it went after %v, want %v", d, gap)
		}
	})
}

// Spinners give up, are overtaken by Settles and changes, and hand over, all at once. None is lost
// or served twice.
func TestSpinUnderStress(t *testing.T) {
	r := rolling(t, 5, 300*time.Microsecond)
	w := &witness{Limiter: r, t: t}
	g := precise(t, w)
	var wg sync.WaitGroup
	var ok, failed atomic.Int64
	end := time.Now().Add(100 * ms)
	for seed := range uint64(8) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 5))
			for time.Now().Before(end) {
				ctx, cancel := context.WithTimeout(bg, time.Duration(50+rng.IntN(1000))*time.Microsecond)
				if rng.IntN(4) == 0 {
					time.AfterFunc(time.Duration(rng.IntN(300))*time.Microsecond, cancel)
				}
				p, err := g.Wait(ctx, weight(int64(seed), 1+rng.Int64N(4)))
				if err == nil {
					ok.Add(1)
					p.Settle(limit.Outcome{Result: [...]limit.Result{limit.Accepted, limit.Unsent}[rng.IntN(2)]})
				} else {
					failed.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Go(func() {
		for n := int64(4); time.Now().Before(end); n = n%5 + 4 {
			g.Update(func(now mono.Time) {
				if err := r.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(100 * time.Microsecond)
		}
	})
	wg.Wait()
	if ok.Load() == 0 || failed.Load() == 0 || int(ok.Load()) != len(w.log) {
		t.Errorf("%d served, %d failed, %d admitted", ok.Load(), failed.Load(), len(w.log))
	}
	if g.Waiting() != 0 || g.Armed() || g.Spinning() {
		t.Errorf("at the end %d wait, timer set: %v, spinning: %v", g.Waiting(), g.Armed(), g.Spinning())
	}
}
