package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

const ms = time.Millisecond

var (
	bg       = context.Background()
	accepted = limit.Outcome{Result: limit.Accepted}
)

// witness is a Limiter that notes the order of admitted costs, by their limit.Other. It also notes
// that the Gate asks immediately before every Admit, at the same instant (law 10).
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

func (w *witness) Admit(s *limit.Sent) {
	if !w.ready || w.at != s.At || w.cost != s.Cost {
		w.t.Errorf("admitted %v at %v without asking just before", s.Cost, s.At)
	}
	w.ready = false
	w.log = append(w.log, admission{s.Cost[limit.Other], s.At})
	w.Limiter.Admit(s)
}

func (w *witness) Settle(now mono.Time, l *limit.Sent, o *limit.Outcome) {
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

// waiting starts a Wait and returns once it is in line, or over. It sends the result at the end.
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
		// The waiter can only learn of the cancelling here, and only act when Update releases the
		// lock: granted by then.
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
		wait(bg, 25, "paceline: cost 25 weight is larger than the limit of 10 weight")
		(<-waiting(bg, g, weight(0, 10))).p.Settle(accepted)
		line := waiting(bg, g, weight(1, 10))

		soon, cancel := context.WithTimeout(bg, 400*ms)
		defer cancel()
		e := wait(soon, 2, "paceline: cost 2 weight could go 1.6s after the deadline at the earliest, with 1 ahead when it came")
		if d := time.Until(e.Ready); d != 2*time.Second || time.Until(e.Deadline) != 400*ms || e.Waited != 0 || e.Ahead != 1 {
			t.Errorf("%+v", e)
		}
		p := (<-line).p
		soon, cancel = context.WithTimeout(bg, 400*ms)
		defer cancel()
		e = wait(soon, 2, "paceline: cost 2 weight could go 600ms after the deadline at the earliest")
		if e.Waited != 0 {
			t.Errorf("%+v", e)
		}
		inFlight := g
		g = paceline.NewGate(concurrency(t, 1)) // at an unknown instant
		one, _, _ := g.TryWait(limit.One)
		e = wait(soon, 2, "paceline: cost 1 request had no turn before the deadline, after 400ms in line")
		one.Settle(accepted)
		g = inFlight
		if e.Waited != 400*ms || !e.Ready.IsZero() || !e.Timeout() {
			t.Errorf("%+v", e)
		}
		sulk := errors.New("the user left")
		given, giveUp := context.WithCancelCause(bg)
		time.AfterFunc(200*ms, func() { giveUp(sulk) })
		e = wait(given, 2, "paceline: cost 2 weight had no turn: context canceled (the user left), after 200ms in line")
		if !errors.Is(e, sulk) || !errors.Is(e, context.Canceled) || errors.Is(e, paceline.ErrDeadline) || e.Timeout() {
			t.Errorf("%+v", e)
		}
		wait(given, 2, "paceline: cost 1 request + 2 weight had no turn: context canceled (the user left)")
		p.Settle(accepted)
	})
}
