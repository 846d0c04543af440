package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

const ms = time.Millisecond

var (
	bg       = context.Background()
	accepted = limit.Outcome{Result: limit.Accepted}
)

// witness is a Limiter that notes in which order costs are admitted, by what they say in limit.Other, and that the Gate
// asks immediately before every Admit, at the same instant (law 10).
type witness struct {
	limit.Limiter
	t     testing.TB
	at    mono.Time
	cost  limit.Cost
	ready bool
	log   []admission
}

type admission struct {
	id int64
	at mono.Time
}

func (w *witness) Ready(now mono.Time, cost limit.Cost) mono.Time {
	at := w.Limiter.Ready(now, cost)
	w.at, w.cost, w.ready = now, cost, at <= now
	return at
}

func (w *witness) Admit(now mono.Time, cost limit.Cost) limit.Lease {
	if !w.ready || w.at != now || w.cost != cost {
		w.t.Errorf("admitted %v at %v without asking just before", cost, now)
	}
	w.ready = false
	w.log = append(w.log, admission{cost[limit.Other], now})
	return w.Limiter.Admit(now, cost)
}

func (w *witness) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	w.ready = false
	w.Limiter.Settle(now, l, o)
}

func (w *witness) order() string {
	var ids []string
	for _, a := range w.log {
		ids = append(ids, fmt.Sprint(a.id))
	}
	return strings.Join(ids, " ")
}

// rolling is n weight in any second, exactly; unknown outcomes have arrived.
func rolling(t testing.TB, n int64, window time.Duration) *limit.Rolling {
	t.Helper()
	r, err := limit.NewRolling(limit.RollingConfig{
		Limit: n, Window: window, Unit: limit.Weight, Margin: -1, Arrivals: limit.Arrivals{Late: -1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func concurrency(t testing.TB, n int64) *limit.Concurrency {
	t.Helper()
	c, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// weight is a cost of n by request id.
func weight(id, n int64) limit.Cost { return limit.Cost{limit.Weight: n, limit.Other: id} }

// ending prints how a Wait ended: "ok", "never", "deadline (ready 1s)", "canceled".
func ending(start time.Time, err error) string {
	var e *paceline.WaitError
	switch {
	case err == nil:
		return "ok"
	case !errors.As(err, &e):
		return fmt.Sprintf("not a WaitError: %v", err)
	case errors.Is(err, paceline.ErrNever):
		return "never"
	case errors.Is(err, paceline.ErrDeadline) && errors.Is(err, context.DeadlineExceeded) && os.IsTimeout(err):
		if e.Ready.IsZero() {
			return "deadline"
		}
		return fmt.Sprintf("deadline (ready %v)", e.Ready.Sub(start))
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return fmt.Sprintf("odd error: %v", err)
}

func TestTimelines(t *testing.T) {
	// Each request asks for weight at an instant; takes rtt once it may go; and ends by itself.
	type request struct {
		at       time.Duration
		weight   int64
		deadline time.Duration // instant; 0: none
		cancel   time.Duration // instant; 0: never
		rtt      time.Duration
		want     string
	}
	for _, c := range []struct {
		name     string
		limit    int64 // per second
		requests []request
		order    string // of service
	}{
		{"first come, first served, whatever the cost", 10, []request{
			{at: 0, weight: 10, want: "0s ok"},
			{at: 1 * ms, weight: 4, want: "1s ok"},
			{at: 2 * ms, weight: 6, want: "1s ok"},
			{at: 3 * ms, weight: 1, want: "2s ok"},
			{at: 4 * ms, weight: 9, want: "2s ok"},
		}, "0 1 2 3 4"},
		{"the head holds up those that would fit", 10, []request{
			{at: 0, weight: 6, want: "0s ok"},
			{at: 1 * ms, weight: 5, want: "1s ok"},
			{at: 2 * ms, weight: 1, want: "1s ok"},
			{at: 3 * ms, weight: 0, want: "1s ok"},
		}, "0 1 2 3"},
		{"a window starts when the answer is read", 10, []request{
			{at: 0, weight: 10, rtt: 300 * ms, want: "0s ok"},
			{at: 1 * ms, weight: 10, rtt: 50 * ms, want: "1.3s ok"},
			{at: 2 * ms, weight: 10, want: "2.35s ok"},
		}, "0 1 2"},
		{"a head that gives up lets the next go at once", 10, []request{
			{at: 0, weight: 6, want: "0s ok"},
			{at: 1 * ms, weight: 5, cancel: 100 * ms, want: "100ms canceled"},
			{at: 2 * ms, weight: 4, want: "100ms ok"},
			{at: 3 * ms, weight: 10, want: "1.1s ok"},
		}, "0 2 3"},
		{"giving up in the middle and at the end changes nothing for the others", 10, []request{
			{at: 0, weight: 10, want: "0s ok"},
			{at: 1 * ms, weight: 10, want: "1s ok"},
			{at: 2 * ms, weight: 10, cancel: 1500 * ms, want: "1.5s canceled"},
			{at: 3 * ms, weight: 10, want: "2s ok"},
			{at: 4 * ms, weight: 10, cancel: 5 * ms, want: "5ms canceled"},
			{at: 6 * ms, weight: 10, want: "3s ok"},
		}, "0 1 3 5"},
		{"a cost larger than the limit fails at once, line or no line", 10, []request{
			{at: 0, weight: 11, want: "0s never"},
			{at: 1 * ms, weight: 10, want: "1ms ok"},
			{at: 2 * ms, weight: 1, want: "1.001s ok"},
			{at: 3 * ms, weight: 11, want: "3ms never"},
		}, "1 2"},
		{"a deadline before the earliest instant fails at once and says when it could", 10, []request{
			{at: 0, weight: 10, want: "0s ok"},
			{at: 1 * ms, weight: 1, deadline: 999 * ms, want: "1ms deadline (ready 1s)"},
			{at: 2 * ms, weight: 1, deadline: 1001 * ms, want: "1s ok"},
		}, "0 2"},
		{"so does one before the head's turn", 10, []request{
			{at: 0, weight: 6, want: "0s ok"},
			{at: 1 * ms, weight: 5, want: "1s ok"},
			{at: 2 * ms, weight: 1, deadline: 500 * ms, want: "2ms deadline (ready 1s)"},
		}, "0 1"},
		{"a deadline that the line makes late fails as soon as that is known", 10, []request{
			{at: 0, weight: 10, want: "0s ok"},
			{at: 1 * ms, weight: 10, want: "1s ok"},
			{at: 2 * ms, weight: 1, deadline: 1500 * ms, want: "1s deadline (ready 2s)"},
			{at: 3 * ms, weight: 1, want: "2s ok"},
		}, "0 1 3"},
		{"with nothing known about the earliest instant it waits for the deadline", 10, []request{
			{at: 0, weight: 10, rtt: 700 * ms, want: "0s ok"},
			{at: 1 * ms, weight: 1, deadline: 600 * ms, want: "600ms deadline"},
			{at: 2 * ms, weight: 1, deadline: 1000 * ms, want: "700ms deadline (ready 1.7s)"},
			{at: 3 * ms, weight: 1, want: "1.7s ok"},
		}, "0 3"},
		{"its own earliest instant counts although the head's is unknown", 10, []request{
			{at: 0, weight: 8, want: "0s ok"},
			{at: 1 * ms, weight: 2, rtt: 500 * ms, want: "1ms ok"},
			{at: 2 * ms, weight: 10, want: "1.501s ok"}, // the open 2 must settle first
			{at: 3 * ms, weight: 8, deadline: 900 * ms, want: "3ms deadline (ready 1s)"},
		}, "0 1 2"},
		{"a context that is done gets nothing, even if there is room", 10, []request{
			{at: 2 * ms, weight: 1, cancel: 1 * ms, want: "2ms canceled"},
			{at: 3 * ms, weight: 1, deadline: 1 * ms, want: "3ms deadline"},
			{at: 4 * ms, weight: 1, deadline: 5 * ms, want: "4ms ok"},
		}, "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := &witness{Limiter: rolling(t, c.limit, time.Second), t: t}
				g := paceline.NewGate(w)
				got := make([]string, len(c.requests))
				var wg sync.WaitGroup
				for i, r := range c.requests {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(bg)
						defer cancel()
						if r.deadline > 0 {
							ctx, cancel = context.WithDeadline(ctx, start.Add(r.deadline))
							defer cancel()
						}
						if r.cancel > 0 {
							time.AfterFunc(r.cancel, cancel)
						}
						time.Sleep(r.at)
						p, err := g.Wait(ctx, weight(int64(i), r.weight))
						got[i] = fmt.Sprint(time.Since(start), " ", ending(start, err))
						if err == nil {
							time.Sleep(r.rtt)
							p.Settle(accepted)
						}
					})
				}
				wg.Wait()
				for i, r := range c.requests {
					if got[i] != r.want {
						t.Errorf("request %d at %v of weight %d: %s, want %s", i, r.at, r.weight, got[i], r.want)
					}
				}
				if w.order() != c.order {
					t.Errorf("served in the order %s, want %s", w.order(), c.order)
				}
				if g.Waiting() != 0 || g.Armed() {
					t.Errorf("at the end %d wait, timer set: %v", g.Waiting(), g.Armed())
				}
			})
		})
	}
}

// waiting starts a Wait and returns once it is in line, or over. What it got is sent when it ends.
func waiting(ctx context.Context, g *paceline.Gate, cost limit.Cost) <-chan result {
	ended := make(chan result, 1)
	go func() {
		p, err := g.Wait(ctx, cost)
		ended <- result{p, err}
	}()
	synctest.Wait()
	return ended
}

type result struct {
	p   paceline.Permit
	err error
}

// state prints which of the waits ended, and how: "ok - never".
func state(start time.Time, waits ...<-chan result) string {
	synctest.Wait()
	var s []string
	for _, c := range waits {
		select {
		case r := <-c:
			s = append(s, ending(start, r.err))
		default:
			s = append(s, "-")
		}
	}
	return strings.Join(s, ", ")
}

func TestGrantThatRacesWithGivingUpWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rolling(t, 1, time.Second)
		g := paceline.NewGate(r)
		ctx, cancel := context.WithCancel(bg)
		first := <-waiting(bg, g, weight(0, 1))
		second := waiting(ctx, g, weight(1, 1))
		third := waiting(bg, g, weight(2, 1))
		// The waiter can only hear of the cancelling here, and only act when Update lets go of the lock: granted by then.
		g.Update(func(now mono.Time) {
			cancel()
			if err := r.SetLimit(now, 2); err != nil {
				t.Error(err)
			}
		})
		won := <-second
		if won.err != nil {
			t.Fatalf("granted while it gave up: %v, want the Permit", won.err)
		}
		fourth := waiting(bg, g, weight(3, 1)) // in the second's place, which must have been left clean
		if s := state(time.Now(), third, fourth); s != "-, -" {
			t.Fatalf("those behind: %s, want still waiting", s)
		}
		won.p.Settle(limit.Outcome{Result: limit.Unsent})
		(<-third).p.Settle(limit.Outcome{Result: limit.Unsent})
		(<-fourth).p.Settle(accepted)
		first.p.Settle(accepted)
	})
}

func TestUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		r := rolling(t, 10, time.Second)
		g := paceline.NewGate(r)
		set := func(n int64) {
			g.Update(func(now mono.Time) {
				if now != mono.Time(time.Since(start)) {
					t.Errorf("now is %v, want %v", now, time.Since(start))
				}
				if err := r.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
		}
		open := <-waiting(bg, g, weight(0, 10)) // never settled: only Update makes room
		soon, cancel := context.WithTimeout(bg, 700*ms)
		defer cancel()
		a, b, c, d := waiting(bg, g, weight(1, 5)), waiting(bg, g, weight(2, 9)), waiting(bg, g, weight(3, 2)), waiting(bg, g, weight(4, 3))
		time.Sleep(500 * ms)
		if s := state(start, a, b, c, d); s != "-, -, -, -" {
			t.Fatal(s)
		}
		set(8) // not the head: it fails all the same, and those behind go on waiting
		if s := state(start, b, a, c, d); s != "never, -, -, -" {
			t.Fatal(s)
		}
		set(15)
		if s := state(start, a, c, d); s != "ok, -, -" {
			t.Fatal(s)
		}
		set(20)
		if s := state(start, c, d); s != "ok, ok" {
			t.Fatal(s)
		}
		e, f, h := waiting(bg, g, weight(5, 9)), waiting(soon, g, weight(6, 1)), waiting(bg, g, weight(7, 2))
		set(4)                                                                // the head
		if s := state(start, e, f, h); s != "never, deadline (ready 1s), -" { // all that is open counts until then at least
			t.Fatal(s)
		}
		time.Sleep(time.Second)
		if s := state(start, h); s != "-" {
			t.Fatal(s)
		}
		// 10 weight of a settled request leave at 2.5 s, the 10 open of a, c and d stay.
		open.p.Settle(accepted)
		set(12)
		time.Sleep(999 * ms)
		if s := state(start, h); s != "-" {
			t.Fatal(s)
		}
		time.Sleep(ms)
		if s := state(start, h); s != "ok" {
			t.Fatal(s)
		}
		if g.Waiting() != 0 {
			t.Errorf("%d wait", g.Waiting())
		}
	})
}

func TestUpdateThatMakesADeadlineHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		cool, err := limit.NewCooldown(0)
		if err != nil {
			t.Fatal(err)
		}
		g := paceline.NewGate(cool)
		g.Update(func(now mono.Time) { cool.Extend(now.Add(time.Hour)) })
		ctx, cancel := context.WithTimeout(bg, 2*time.Hour)
		defer cancel()
		head, behind := waiting(bg, g, limit.One), waiting(ctx, g, limit.One)
		time.Sleep(time.Minute)
		g.Update(func(now mono.Time) { cool.Extend(now.Add(3 * time.Hour)) })
		if s := state(start, head, behind); s != "-, deadline (ready 3h1m0s)" {
			t.Fatal(s)
		}
		(<-head).p.Settle(accepted)
		if d := time.Since(start); d != 3*time.Hour+time.Minute {
			t.Errorf("the head went at %v, want 3h1m", d)
		}
	})
}

func TestUpdateThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := concurrency(t, 1)
		g := paceline.NewGate(c)
		<-waiting(bg, g, limit.One)
		next := waiting(bg, g, limit.One)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is lost")
				}
			}()
			g.Update(func(now mono.Time) {
				if err := c.SetLimit(now, 2); err != nil {
					t.Error(err)
				}
				panic("half way")
			})
		}()
		if s := state(time.Now(), next); s != "ok" {
			t.Errorf("the head after the panic: %s, want ok", s)
		}
	})
}

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

func TestDeadlineAtTheEarliestInstantIsWorthWaitingFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		g := paceline.NewGate(rolling(t, 1, time.Second))
		(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
		ctx, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		at := waiting(ctx, g, weight(1, 1))
		behind := waiting(ctx, g, weight(2, 1))
		time.Sleep(500 * ms)
		g.Update(func(mono.Time) {}) // asks about it again
		if s := state(start, at, behind); s != "-, deadline (ready 2s)" {
			t.Errorf("before the deadline: %s, want it in line, and nobody behind it", s)
		}
		<-at // which of the two events of that instant comes first is chance
		if d := time.Since(start); d != time.Second {
			t.Errorf("gave up at %v, want 1s", d)
		}
	})
}

func TestSettleTwicePanicsAndTheGateLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(concurrency(t, 1))
		p, _, _ := g.TryWait(limit.One)
		p.Settle(accepted)
		q, _, _ := g.TryWait(limit.One)
		next := waiting(bg, g, limit.One)
		for name, p := range map[string]paceline.Permit{"settled": p, "zero": {}} {
			func() {
				defer func() {
					if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "settle") {
						t.Errorf("%s Permit: panic %v, want one about settling", name, r)
					}
				}()
				p.Settle(accepted)
			}()
		}
		q.Settle(accepted)
		(<-next).p.Settle(accepted)
	})
	defer func() {
		if recover() == nil {
			t.Error("NewGate(nil) did not panic")
		}
	}()
	paceline.NewGate(nil)
}

func TestTryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(rolling(t, 10, time.Second))
		try := func(n int64, wait time.Duration) paceline.Permit {
			t.Helper()
			p, retry, ok := g.TryWait(weight(0, n))
			if ok != (wait == 0) || retry != wait {
				t.Fatalf("weight %d: ok %v, retry %v; want retry %v", n, ok, retry, wait)
			}
			return p
		}
		try(11, paceline.RetryNever)
		p := try(4, 0)
		try(7, paceline.RetryAfterSettle)
		p.Settle(accepted)
		time.Sleep(100 * ms)
		try(7, 900*ms)
		try(2, 0).Settle(accepted)
		try(9, time.Second)

		line := waiting(bg, g, weight(1, 9))
		try(1, time.Second) // would fit, but does not overtake
		try(9, time.Second)
		try(11, paceline.RetryNever)
		p = (<-line).p
		one := try(1, 0)                              // 9 + 1 open
		line = waiting(bg, g, weight(2, 10))          // nobody knows when
		try(0, paceline.RetryAfterSettle)             // would fit
		try(11, paceline.RetryNever)                  // would not
		p.Settle(limit.Outcome{Result: limit.Unsent}) // still 1 open
		try(9, paceline.RetryAfterSettle)
		if s := state(time.Now(), line); s != "-" {
			t.Error(s)
		}
		g.Update(func(mono.Time) {}) // changes nothing
		ctx, cancel := context.WithCancel(bg)
		behind := waiting(ctx, g, weight(3, 1))
		cancel()
		if s := state(time.Now(), behind, line); s != "canceled, -" {
			t.Error(s)
		}
		one.Settle(limit.Outcome{Result: limit.Unsent})
		(<-line).p.Settle(accepted)
	})
}

func TestWaitErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(rolling(t, 10, time.Second))
		wait := func(ctx context.Context, n int64, want string) *paceline.WaitError {
			t.Helper()
			_, err := g.Wait(ctx, limit.Cost{limit.Weight: n, limit.Requests: 1})
			var e *paceline.WaitError
			if !errors.As(err, &e) || err.Error() != want {
				t.Fatalf("%v, want %s", err, want)
			}
			return e
		}
		wait(bg, 25, "paceline: cost 1 request + 25 weight is larger than the limit of 10 weight")
		(<-waiting(bg, g, weight(0, 10))).p.Settle(accepted)
		line := waiting(bg, g, weight(1, 10))

		soon, cancel := context.WithTimeout(bg, 400*ms)
		defer cancel()
		e := wait(soon, 2, "paceline: cost 1 request + 2 weight could go 1.6s after the deadline at the earliest, with 1 ahead")
		if d := time.Until(e.Ready); d != 2*time.Second || time.Until(e.Deadline) != 400*ms || e.Waited != 0 || e.Ahead != 1 {
			t.Errorf("%+v", e)
		}
		p := (<-line).p
		soon, cancel = context.WithTimeout(bg, 400*ms)
		defer cancel()
		e = wait(soon, 2, "paceline: cost 1 request + 2 weight could go 600ms after the deadline at the earliest")
		if e.Waited != 0 {
			t.Errorf("%+v", e)
		}
		inFlight := g
		g = paceline.NewGate(concurrency(t, 1)) // of which nobody can tell
		one, _, _ := g.TryWait(limit.One)
		e = wait(soon, 2, "paceline: cost 1 request + 2 weight had no turn before the deadline, after 400ms in line")
		one.Settle(accepted)
		g = inFlight
		if e.Waited != 400*ms || !e.Ready.IsZero() || !e.Timeout() {
			t.Errorf("%+v", e)
		}
		sulk := errors.New("the user left")
		given, giveUp := context.WithCancelCause(bg)
		time.AfterFunc(200*ms, func() { giveUp(sulk) })
		e = wait(given, 2, "paceline: cost 1 request + 2 weight had no turn: context canceled (the user left), after 200ms in line")
		if !errors.Is(e, sulk) || !errors.Is(e, context.Canceled) || errors.Is(e, paceline.ErrDeadline) || e.Timeout() {
			t.Errorf("%+v", e)
		}
		wait(given, 2, "paceline: cost 1 request + 2 weight had no turn: context canceled (the user left)")
		p.Settle(accepted)
	})
}

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
	if kept := g.Freed(); kept > 1024 {
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

// TestStress runs everything at once, in real time, for the race detector.
func TestStress(t *testing.T) {
	for _, precise := range []bool{false, true} {
		t.Run(fmt.Sprintf("precise=%v", precise), func(t *testing.T) { stress(t, precise) })
	}
}

func stress(t *testing.T, precise bool) {
	const inFlight = 3
	c := concurrency(t, inFlight)
	r, err := limit.NewRolling(limit.RollingConfig{Limit: 50, Window: ms, Arrivals: limit.Arrivals{Late: -1}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: limit.NewAll(r, c), Precise: precise})
	if err != nil {
		t.Fatal(err)
	}
	var open, most, sent, gaveUp, refused atomic.Int64
	use := func(p paceline.Permit) {
		n := open.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		open.Add(-1)
		sent.Add(1)
		p.Settle(accepted)
	}
	var wg sync.WaitGroup
	end := time.Now().Add(150 * ms)
	for seed := range uint64(16) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for time.Now().Before(end) {
				switch rng.IntN(4) {
				case 0:
					if p, _, ok := g.TryWait(limit.One); ok {
						use(p)
					} else {
						refused.Add(1)
						runtime.Gosched()
					}
				default:
					ctx, cancel := context.WithTimeout(bg, time.Duration(rng.IntN(300))*time.Microsecond)
					if rng.IntN(3) == 0 {
						go cancel()
					}
					p, err := g.Wait(ctx, limit.Cost{limit.Requests: 1 + rng.Int64N(10)})
					cancel()
					if err == nil {
						use(p)
					} else {
						gaveUp.Add(1)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for n := int64(1); time.Now().Before(end); n = n%inFlight + 1 {
			g.Update(func(now mono.Time) {
				if err := c.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(200 * time.Microsecond)
		}
	})
	wg.Wait()
	t.Logf("%d sent, %d gave up, %d refused", sent.Load(), gaveUp.Load(), refused.Load())
	if most.Load() > inFlight || sent.Load() == 0 || gaveUp.Load() == 0 {
		t.Errorf("%d in flight at most, want %d; %d sent, %d gave up", most.Load(), inFlight, sent.Load(), gaveUp.Load())
	}
	if g.Waiting() != 0 || g.Armed() {
		t.Errorf("%d still wait; timer set: %v", g.Waiting(), g.Armed())
	}
	// Nothing leaked: the whole of both limits is there.
	g.Update(func(now mono.Time) {
		if err := c.SetLimit(now, 1); err != nil {
			t.Error(err)
		}
	})
	p, err := g.Wait(bg, limit.Cost{limit.Requests: 50})
	if err != nil {
		t.Fatal(err)
	}
	p.Settle(accepted)
}

// FuzzGate runs a program of waits, cancellations, settles and changes of the limit on a Gate and on a model of it, which
// is a list, a formula and no lock: both must serve the same requests in the same order at the same instants, and fail
// the same ones with the same reason at the same instants. No window may hold more than the largest limit in force.
//
// With Fill, in the model: one of the next goes ahead if the head can then go no later than before; so unless the limit falls
// the head goes no later than was foreseen when another went, and nobody is overtaken more than Fill times.
func FuzzGate(f *testing.F) {
	f.Add([]byte("\x01\x05\x01\x06\x01\x12\x00\x03\x04\x00\x01\x30\x01\x4f\x00\x0b\x02\x03"), byte(0))
	f.Add([]byte("wait settle wait update wait try cancel settle advance"), byte(0))
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 7))
		program := make([]byte, 160)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program, byte(seed%5))
	}
	f.Fuzz(func(t *testing.T, program []byte, fill byte) {
		synctest.Test(t, func(t *testing.T) { runProgram(t, program[:min(len(program), 400)], int(fill%8)) })
	})
}

// seer is a witness of a Limiter that foresees.
type seer struct{ *witness }

func (w seer) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	return w.Limiter.(limit.Foreseer).ReadyAfter(now, first, cost)
}

func runProgram(t *testing.T, program []byte, fill int) {
	const window = 20 * ms
	start := time.Now()
	r := rolling(t, 8, window)
	w := &witness{Limiter: r, t: t}
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: seer{w}, Fill: fill})
	try(t, err)
	var mu sync.Mutex
	got := map[int64]string{}
	m := &model{t: t, limit: 8, span: mono.Time(window), open: map[int64]int64{}, fill: fill}
	m.got = func(id int64) string {
		mu.Lock()
		defer mu.Unlock()
		return got[id]
	}

	all, stop := context.WithCancel(bg) // a failed test must end, too
	defer synctest.Wait()
	defer stop()

	permits := map[int64]paceline.Permit{}
	note := func(id int64, p paceline.Permit, err error) {
		mu.Lock()
		defer mu.Unlock()
		got[id] = fmt.Sprintf("%v %s", time.Since(start), ending(start, err))
		if err == nil {
			permits[id] = p
		}
	}
	most := int64(8)
	admitted, settled, sent := map[int64]mono.Time{}, map[int64]mono.Time{}, map[int64]int64{}
	settle := func(k int, result limit.Result) {
		mu.Lock()
		ids := make([]int64, 0, len(permits))
		for id := range permits {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if len(ids) == 0 {
			mu.Unlock()
			return
		}
		id := ids[k%len(ids)]
		p := permits[id]
		delete(permits, id)
		mu.Unlock()
		if result != limit.Unsent {
			settled[id], sent[id] = m.now, m.open[id]
		}
		p.Settle(limit.Outcome{Result: result})
		synctest.Wait()
		m.settle(id, result)
	}
	advance := func(d time.Duration) {
		time.Sleep(d)
		synctest.Wait()
		m.advance(m.now.Add(d))
	}

	id := int64(0)
	for ; len(program) >= 2; program = program[2:] {
		op, arg := program[0]%8, int(program[1])
		switch op {
		case 0, 1:
			advance(time.Duration(arg%12) * ms)
		case 2, 3, 4:
			id++
			cost := int64(arg % 10)
			// Contexts end at instants of their own, so that no two things happen at once.
			after := time.Duration(arg/40*4)*ms + time.Duration(id)*time.Microsecond
			ctx, cancel := context.WithCancel(all)
			q := &queued{id: id, cost: cost, deadline: limit.Never, cancel: limit.Never, foreseen: limit.Never}
			switch arg % 3 {
			case 0:
				ctx, cancel = context.WithTimeout(all, after)
				q.deadline = m.now.Add(after)
			case 1:
				time.AfterFunc(after, cancel)
				q.cancel = m.now.Add(after)
			}
			go func() {
				defer cancel()
				p, err := g.Wait(ctx, weight(q.id, cost))
				note(q.id, p, err)
			}()
			synctest.Wait()
			m.wait(q)
		case 5:
			id++
			cost := int64(arg % 10)
			p, retry, ok := g.TryWait(weight(id, cost))
			at := m.turn(cost)
			want := time.Duration(at)
			if at < limit.AfterSettle {
				want = at.Sub(m.now)
			}
			if ok != (want == 0) || retry != want {
				t.Fatalf("%v: TryWait(%d): ok %v, retry %v; want retry %v", m.now, cost, ok, retry, want)
			}
			if ok {
				note(id, p, nil)
				m.admit(id, cost)
			}
		case 6:
			settle(arg/4, [...]limit.Result{limit.Accepted, limit.Accepted, limit.Unknown, limit.Unsent}[arg%4])
		case 7:
			n := int64(3 + arg%7)
			most = max(most, n)
			g.Update(func(now mono.Time) {
				if err := r.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
			m.limit = n
			synctest.Wait()
			for _, q := range m.line {
				q.foreseen = limit.Never
			}
			m.review()
		}
		synctest.Wait()
		if g.Waiting() != len(m.line) {
			t.Fatalf("%v: %d wait, want %d", m.now, g.Waiting(), len(m.line))
		}
	}
	for len(m.line) > 0 || len(m.open) > 0 {
		for n := len(m.open); n > 0; n-- {
			settle(0, limit.Accepted)
			synctest.Wait()
		}
		if advance(window); m.now > mono.Time(time.Hour) {
			t.Fatalf("%d wait, %d open, and no end", len(m.line), len(m.open))
		}
	}
	if g.Armed() {
		t.Error("nobody waits and the timer is set")
	}

	if !slices.Equal(w.log, m.log) {
		t.Fatalf("served\n%v, want\n%v", w.log, m.log)
	}
	for id, want := range m.ended {
		if got[id] != want {
			t.Errorf("request %d: %s, want %s", id, got[id], want)
		}
	}
	if len(got) != len(m.ended) {
		t.Errorf("%d ended, want %d", len(got), len(m.ended))
	}

	for _, a := range w.log {
		admitted[a.id] = a.at
	}
	var arrivals []admission // id here is the cost
	for id, to := range settled {
		// Anywhere between sending and answer.
		from := admitted[id]
		arrivals = append(arrivals, admission{sent[id], from + mono.Time(id*id*7919)%(to-from+1)})
	}
	slices.SortFunc(arrivals, func(a, b admission) int { return int(a.at - b.at) })
	for i, a := range arrivals {
		sum := int64(0)
		for _, b := range arrivals[i:] {
			if b.at < a.at.Add(window) {
				sum += b.id
			}
		}
		if sum > most {
			t.Errorf("%d arrive in the window from %v, want at most %d", sum, a.at, most)
		}
	}
}

// model is a Gate on a rolling window without clock, lock or timer.
type model struct {
	now   mono.Time
	limit int64
	span  mono.Time
	open  map[int64]int64
	past  []admission // costs and when their answers were read
	line  []*queued
	log   []admission
	ended map[int64]string

	t    testing.TB
	fill int
	got  func(id int64) string // what has become of one
}

type queued struct {
	id, cost         int64
	deadline, cancel mono.Time
	foreseen         mono.Time // when it was to go when another went ahead of it as the head of the line
	passed           int
}

func (m *model) end(id int64, how string) {
	if m.ended == nil {
		m.ended = map[int64]string{}
	}
	m.ended[id] = fmt.Sprintf("%v %s", time.Duration(m.now), how)
}

func (m *model) ready(cost int64) mono.Time {
	open := cost
	for _, c := range m.open {
		open += c
	}
	fits := func(t mono.Time) bool {
		sum := open
		for _, p := range m.past {
			if p.at+m.span > t {
				sum += p.id
			}
		}
		return sum <= m.limit || cost == 0
	}
	switch {
	case fits(m.now):
		return m.now
	case cost > m.limit:
		return limit.Never
	case open > m.limit:
		return limit.AfterSettle
	}
	at := limit.Never
	for _, p := range m.past {
		if t := p.at + m.span; t > m.now && t < at && fits(t) {
			at = t
		}
	}
	return at
}

// turn is when a newcomer could go.
func (m *model) turn(cost int64) mono.Time {
	at := m.ready(cost)
	if len(m.line) > 0 {
		at = max(at, m.ready(m.line[0].cost))
	}
	return at
}

func (m *model) admit(id, cost int64) {
	m.open[id] = cost
	m.log = append(m.log, admission{id, m.now})
	m.end(id, "ok")
}

// hopeless ends q if it cannot be served any more. Whether it could be served in time is for the Gate to say; it must not be wrong.
func (m *model) hopeless(q *queued, at mono.Time) bool {
	if at == limit.Never {
		m.end(q.id, "never")
		return true
	}
	when, ready := m.refused(q)
	if when != m.now {
		return false
	}
	if true := m.soonest(q); ready <= q.deadline || ready > true {
		m.t.Errorf("%v: request %d, until %v, is refused until %v, and could go at %v", m.now, q.id, q.deadline, ready, true)
	}
	m.end(q.id, fmt.Sprintf("deadline (ready %v)", time.Duration(ready)))
	return true
}

// refused returns when the Gate refused q before its deadline, and until when; limit.Never: it did not.
func (m *model) refused(q *queued) (when, ready mono.Time) {
	at, verdict, ok := strings.Cut(m.got(q.id), " deadline (ready ")
	w, err := time.ParseDuration(at)
	if !ok || err != nil || mono.Time(w) >= q.deadline {
		return limit.Never, 0
	}
	r, err := time.ParseDuration(strings.TrimSuffix(verdict, ")"))
	if err != nil {
		m.t.Errorf("request %d: %v", q.id, err)
	}
	return mono.Time(w), mono.Time(r)
}

// soonest returns when q could go at best: all that is open is answered now, and those before it go as soon as they can and are
// answered at once. With fill the dearest of them may come after it.
func (m *model) soonest(q *queued) mono.Time {
	after := &model{now: m.now, limit: m.limit, span: m.span, past: slices.Clone(m.past)}
	for _, cost := range m.open {
		after.past = append(after.past, admission{cost, m.now})
	}
	ahead := m.line
	if i := slices.Index(m.line, q); i >= 0 {
		ahead = m.line[:i]
	}
	turn := m.now
	if len(ahead) > 0 && len(ahead) >= 2*m.fill { // the first goes before it: so many may not pass it
		turn = after.ready(ahead[0].cost)
	}
	var costs []int64
	for _, before := range ahead {
		costs = append(costs, before.cost)
	}
	if m.fill > 0 { // it may pass so many
		slices.Sort(costs)
		costs = costs[:max(len(costs)-m.fill, 0)]
	}
	for _, cost := range costs {
		if cost > 0 {
			after.now = max(after.now, after.ready(cost))
			after.past = append(after.past, admission{cost, after.now})
		}
	}
	return max(turn, after.ready(q.cost))
}

func (m *model) wait(q *queued) {
	own, head := m.ready(q.cost), m.now
	if len(m.line) > 0 {
		head = m.ready(m.line[0].cost)
	}
	near := len(m.line) > 0 && len(m.line) <= m.fill
	switch {
	case max(own, head) <= m.now:
		m.admit(q.id, q.cost)
	case m.hopeless(q, own):
	default:
		m.line = append(m.line, q)
		if near {
			m.pass()
		}
	}
}

func (m *model) serve() {
	for len(m.line) > 0 {
		q := m.line[0]
		at := m.ready(q.cost)
		if at <= m.now {
			if m.now > q.foreseen {
				m.t.Errorf("%v: request %d was to go at %v when another went ahead of it", m.now, q.id, q.foreseen)
			}
			m.admit(q.id, q.cost)
		} else if !m.hopeless(q, at) {
			m.pass()
			return
		}
		m.line = m.line[1:]
	}
}

// pass lets those go ahead of the head that leave it its instant.
func (m *model) pass() {
	head := m.line[0]
	for k := 1; k < len(m.line) && k <= m.fill; k++ { // who moves up is looked at, too
		q := m.line[k]
		at := m.ready(head.cost)
		if head.passed == m.fill || at >= limit.AfterSettle || m.ready(q.cost) > m.now {
			continue
		}
		m.open[q.id] = q.cost
		after := m.ready(head.cost)
		delete(m.open, q.id)
		if after > at {
			continue
		}
		m.admit(q.id, q.cost)
		head.foreseen = min(head.foreseen, at)
		for _, before := range m.line[:k] {
			if before.passed++; before.passed > m.fill {
				m.t.Errorf("%v: request %d is overtaken for the %d. time", m.now, before.id, before.passed)
			}
		}
		m.line = slices.Delete(m.line, k, k+1)
		k--
	}
}

func (m *model) review() {
	m.serve()
	n := len(m.line)
	for k := 0; k < len(m.line); {
		if q := m.line[k]; m.hopeless(q, m.ready(q.cost)) {
			m.line = slices.Delete(m.line, k, k+1)
		} else {
			k++
		}
	}
	if len(m.line) < n && m.fill > 0 { // others have moved up
		m.serve()
	}
}

func (m *model) settle(id int64, result limit.Result) {
	cost := m.open[id]
	delete(m.open, id)
	if result != limit.Unsent {
		m.past = append(m.past, admission{cost, m.now})
	}
	m.serve()
}

func (m *model) advance(to mono.Time) {
	for {
		next := to + 1
		for _, q := range m.line {
			next = min(next, q.deadline, q.cancel)
			if when, _ := m.refused(q); when > m.now {
				next = min(next, when)
			}
		}
		if len(m.line) > 0 {
			next = min(next, m.ready(m.line[0].cost))
			for _, q := range m.line[1:min(len(m.line), m.fill+1)] {
				if at := m.ready(q.cost); at > m.now {
					next = min(next, at)
				}
			}
		}
		if next > to {
			m.now = to
			return
		}
		m.now = next
		turn := m.ready(m.line[0].cost)
		m.line = slices.DeleteFunc(m.line, func(q *queued) bool {
			switch {
			case q.cancel == next:
				m.end(q.id, "canceled")
			case q.deadline == next && turn > next && turn < limit.AfterSettle:
				m.end(q.id, fmt.Sprintf("deadline (ready %v)", time.Duration(turn)))
			case q.deadline == next:
				m.end(q.id, "deadline")
			default:
				return false
			}
			return true
		})
		m.serve()
	}
}
