package paceline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// asked counts how often the Gate asks its Limiter.
type asked struct {
	limit.Limiter
	n int
}

func (a *asked) Ready(now mono.Time, cost limit.Cost) mono.Time {
	a.n++
	return a.Limiter.Ready(now, cost)
}

func TestRefusalIsRepeatedUntilSomethingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		r := rolling(t, 10, time.Second)
		a := &asked{Limiter: r}
		g := paceline.NewGate(a)
		var permits []paceline.Permit
		step := func(what string, n int64, want string, wantAsked bool) {
			t.Helper()
			a.n = 0
			p, retry, ok := g.TryWait(weight(0, n))
			got := fmt.Sprint(retry)
			switch {
			case ok:
				permits = append(permits, p)
				got = "ok"
			case retry == paceline.RetryAfterSettle:
				got = "after settle"
			case retry == paceline.RetryNever:
				got = "never"
			}
			if got != want || (a.n > 0) != wantAsked {
				t.Errorf("%v, %s, %d: %s, limiter asked: %v; want %s, %v", time.Since(begin), what, n, got, a.n > 0, want, wantAsked)
			}
		}
		step("empty", 6, "ok", true)
		step("room", 4, "ok", true)
		step("full", 1, "after settle", true)
		step("again", 1, "after settle", false)
		step("dearer", 2, "after settle", true)
		step("again", 2, "after settle", false)
		step("too dear", 11, "never", true)
		step("again", 11, "never", false)
		step("the first", 1, "after settle", true)
		permits[0].Settle(accepted)
		step("6 settled at 0 s", 1, "1s", true)
		time.Sleep(300 * ms)
		step("time passes", 1, "700ms", false)
		step("dearer: needs the open 4", 7, "after settle", true)
		step("cheaper", 1, "700ms", true)
		permits[1].Settle(limit.Outcome{Result: limit.Unsent})
		step("4 unsent", 4, "ok", true)
		step("full", 1, "700ms", true)
		step("again", 1, "700ms", false)
		g.Update(func(now mono.Time) {
			if g.Hinted() {
				t.Error("during Update refusals are repeated")
			}
			if err := r.SetLimit(now, 11); err != nil {
				t.Error(err)
			}
		})
		step("limit raised", 1, "ok", true)
		step("full", 5, "700ms", true)
		step("again", 5, "700ms", false)
		time.Sleep(700*ms - 1)
		step("1 ns before", 5, "1ns", false)
		time.Sleep(time.Nanosecond)
		step("on time", 5, "ok", true) // 10 are open, 1 is free
		for _, p := range permits[2:] {
			p.Settle(accepted)
		}

		// A line: nobody may overtake it, and what was said before does not hold.
		step("full", 2, "1s", true)
		ctx, cancel := context.WithCancel(bg)
		head := waiting(ctx, g, weight(1, 11))
		step("the head came", 2, "1s", true)
		step("again", 2, "1s", false)
		behind := waiting(bg, g, weight(2, 1))
		step("one behind it is no news", 2, "1s", false)
		time.Sleep(100 * ms)
		step("time passes", 2, "900ms", false)
		cancel()
		<-head
		synctest.Wait()
		step("the head gave up, the next went", 2, "900ms", true)
		(<-behind).p.Settle(limit.Outcome{Result: limit.Unsent})
		step("it was not sent", 1, "ok", true)
	})
}

// A TryWait while the head's timer is late serves the line, even if its refusal was until later.
func TestRefusalIsNotRepeatedPastTheHeadsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(rolling(t, 10, time.Second))
		for range 2 {
			p, _, _ := g.TryWait(weight(0, 5))
			p.Settle(accepted)
			time.Sleep(100 * ms)
		}
		head := waiting(bg, g, weight(1, 1)) // at 1 s
		for range 2 {
			if _, retry, _ := g.TryWait(weight(0, 10)); retry != 900*ms { // at 1.1 s
				t.Fatalf("retry in %v, want 900ms", retry)
			}
		}
		g.Misfire(time.Hour)
		time.Sleep(850 * ms)
		if _, retry, ok := g.TryWait(weight(0, 10)); ok || retry != paceline.RetryAfterSettle {
			t.Errorf("retry in %v, want after the settle of the head", retry)
		}
		if s := state(time.Now(), head); s != "ok" {
			t.Errorf("the head: %s, want ok", s)
		}
	})
}

// FuzzHint runs a program on two Gates. One may repeat its refusals; the other must ask the limiter
// each time. Both must answer alike, in full. The program chooses the limiter.
func FuzzHint(f *testing.F) {
	f.Add([]byte("\x00\x02\x05\x02\x05\x03\x00\x02\x05\x00\x03\x02\x05"))
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 11))
		program := make([]byte, 241)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		program[0] = byte(seed)
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		if len(program) > 0 {
			synctest.Test(t, func(t *testing.T) { compareHinted(t, program[0], program[1:min(len(program), 400)]) })
		}
	})
}

// hintLimiters are the kinds that FuzzHint tries, with a change of each.
var hintLimiters = []func(t testing.TB) (l limit.Limiter, change func(now mono.Time, n int64)){
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		r := rolling(t, 8, 20*ms)
		return r, func(now mono.Time, n int64) { try(t, r.SetLimit(now, n)) }
	},
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		c := concurrency(t, 3)
		return c, func(now mono.Time, n int64) { try(t, c.SetLimit(now, n)) }
	},
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		c, err := limit.NewCooldown(10 * ms)
		try(t, err)
		s, err := limit.NewSpacing(3 * ms)
		try(t, err)
		r := rolling(t, 8, 20*ms)
		return limit.NewAll(r, s, c), func(now mono.Time, n int64) { c.Extend(now.Add(time.Duration(n) * ms)) }
	},
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		b, err := limit.NewBucket(limit.BucketConfig{Limit: 8, Window: 20 * ms, Unit: limit.Weight})
		try(t, err)
		return b, func(mono.Time, int64) {}
	},
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		a, err := limit.NewAnchored(limit.AnchoredConfig{Limit: 8, Window: 20 * ms, Unit: limit.Weight})
		try(t, err)
		return a, func(now mono.Time, n int64) { try(t, a.SetLimit(now, n)) }
	},
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		w, err := limit.NewWeighted(limit.WeightedConfig{Limit: 8, Window: 20 * ms, Unit: limit.Weight})
		try(t, err)
		return w, func(now mono.Time, n int64) { try(t, w.SetLimit(now, n)) }
	},
	func(t testing.TB) (limit.Limiter, func(mono.Time, int64)) {
		c, err := limit.NewCalendar(limit.CalendarConfig{Limit: 8, Window: 20 * ms, Unit: limit.Weight, Skew: ms})
		try(t, err)
		return c, func(now mono.Time, n int64) { try(t, c.SetLimit(now, n)) }
	},
}

func try(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Error(err)
	}
}

func compareHinted(t *testing.T, kind byte, program []byte) {
	type granted struct {
		id int
		paceline.Permit
	}
	type side struct {
		gate    *paceline.Gate
		change  func(mono.Time, int64)
		permits []granted // in the same order on both sides
		ended   chan granted
	}
	var sides [2]*side
	for i := range sides {
		l, change := hintLimiters[int(kind)%len(hintLimiters)](t)
		sides[i] = &side{paceline.NewGate(l), change, nil, make(chan granted, len(program))}
	}
	all, stop := context.WithCancel(bg)
	defer synctest.Wait()
	defer stop()
	at, id := time.Now(), 0

	for ; len(program) >= 2; program = program[2:] {
		id++
		op, arg := program[0]%8, int(program[1])
		cost := weight(0, int64(1+arg%4))
		if arg >= 250 {
			cost[limit.Weight] = 11 // never
		}
		switch op {
		case 0:
			time.Sleep(time.Duration(arg%8) * ms / 2)
			synctest.Wait()
		case 1, 2, 3, 4:
			var said [2]string
			for i, s := range sides {
				if i == 1 {
					s.gate.ForgetHint()
				}
				p, retry, ok := s.gate.TryWait(cost)
				if ok {
					s.permits = append(s.permits, granted{id, p})
				}
				said[i] = fmt.Sprint(ok, " ", retry)
			}
			if said[0] != said[1] {
				t.Fatalf("kind %d at %v: TryWait(%v) says %s, and when it asks the limiter %s", kind, time.Since(at), cost, said[0], said[1])
			}
		case 5:
			after := time.Duration(arg%16)*ms + time.Duration(id)*501 // so that no two things happen at once
			for _, s := range sides {
				id := id
				go func() {
					ctx, cancel := context.WithCancel(all)
					time.AfterFunc(after, cancel)
					if p, err := s.gate.Wait(ctx, cost); err == nil {
						s.ended <- granted{id, p}
					}
				}()
				synctest.Wait()
			}
		case 6:
			for _, s := range sides {
				if n := len(s.permits); n > 0 {
					k := arg % n
					p := s.permits[k]
					s.permits = append(s.permits[:k], s.permits[k+1:]...)
					p.Settle(limit.Outcome{Result: [...]limit.Result{limit.Accepted, limit.Limited, limit.Unsent}[arg%3]})
				}
			}
		case 7:
			for _, s := range sides {
				s.gate.Update(func(now mono.Time) { s.change(now, int64(4+arg%6)) })
			}
		}
		synctest.Wait()
		for _, s := range sides {
			for len(s.ended) > 0 {
				s.permits = append(s.permits, <-s.ended)
			}
			slices.SortFunc(s.permits, func(a, b granted) int { return a.id - b.id })
		}
		if a, b := len(sides[0].permits), len(sides[1].permits); a != b {
			t.Fatalf("kind %d at %v: %d permits are open, and %d where the limiter is always asked", kind, time.Since(at), a, b)
		}
	}
	for _, s := range sides {
		for _, p := range s.permits {
			p.Settle(accepted)
		}
	}
}

// TestWhatIsFreedIsFoundAtOnce has one place, which 256 goroutines are refused until it is free.
// Then each asks once more. One of them must get it, however often they have repeated a refusal.
// Refusals without the lock must see the Settle as soon as it has returned.
func TestWhatIsFreedIsFoundAtOnce(t *testing.T) {
	const goroutines, rounds = 256, 30
	g := paceline.NewGate(concurrency(t, 1))
	p, _, _ := g.TryWait(limit.One)
	for round := range rounds {
		var freed atomic.Bool
		var refused atomic.Int64
		winners := make(chan paceline.Permit, goroutines)
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for last, n := false, 0; !last; n++ {
					last = freed.Load()
					if p, _, ok := g.TryWait(limit.One); ok {
						winners <- p
						return
					}
					if n == 0 {
						refused.Add(1)
					}
					runtime.Gosched()
				}
			})
		}
		for refused.Load() < goroutines {
			runtime.Gosched()
		}
		p.Settle(limit.Outcome{Result: limit.Unsent})
		freed.Store(true)
		wg.Wait()
		if n := len(winners); n != 1 {
			t.Fatalf("round %d: %d of %d goroutines got the one place after it was free", round, n, goroutines)
		}
		p = <-winners
	}
}

// TestRefusalsAreNotMixedUp has two goroutines. One notes refusals of costs that are ready at
// different hours, as fast as it can. The other repeats those of one cost: it must never get the
// hour of another.
func TestRefusalsAreNotMixedUp(t *testing.T) {
	const costs = 2
	g := paceline.NewGate(concurrency(t, 1))
	// They differ in the last unit that is compared, and in the first.
	cost := func(k int64) limit.Cost { return limit.Cost{limit.Requests: k, limit.Other: k} }
	var done atomic.Bool
	var repeated atomic.Int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			retry, ok := g.Repeat(cost(1))
			if !ok {
				continue
			}
			repeated.Add(1)
			if retry <= time.Hour || retry > 2*time.Hour {
				t.Errorf("ready in 2 h: told %v", retry)
				return
			}
		}
	})
	end := time.Now().Add(150 * ms)
	for i := int64(0); i%1000 > 0 || time.Now().Before(end) || repeated.Load() == 0 && !t.Failed(); i++ {
		k := i % costs
		g.Hint(time.Duration(k+1)*time.Hour, cost(k))
	}
	done.Store(true)
	wg.Wait()
}

// A goroutine that prefers a way is let go by another path than TryWait. An earlier refusal is not repeated after that
// either.
func TestARefusalIsNotRepeatedAfterAWayWasPreferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		both := []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: rolling(t, 10, time.Second)})}
		own := []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: rolling(t, 10, time.Second)})}
		a, b := j.Lane(paceline.LaneConfig{Homes: true}, both, own), j.Lane(paceline.LaneConfig{}, both)
		if p, _, ok := b.TryWait(weight(0, 4)); ok {
			p.Settle(accepted)
		}
		time.Sleep(300 * ms)
		if _, retry, ok := b.TryWait(weight(0, 10)); ok || retry != 700*ms {
			t.Errorf("all of the limit: %v, %v; want a refusal for 700ms", retry, ok)
		}
		p, _, err := a.WaitTurn(bg, weight(0, 1), paceline.Turn{Homes: 1})
		if err != nil || p.Way() != 0 {
			t.Errorf("by way %d, %v", p.Way(), err)
		}
		if _, retry, ok := b.TryWait(weight(0, 10)); ok || retry != paceline.RetryAfterSettle {
			t.Errorf("while one is in flight: %v, %v; want a refusal until it is settled", retry, ok)
		}
	})
}
