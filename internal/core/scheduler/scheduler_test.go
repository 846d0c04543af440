package scheduler_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

const second = mono.Time(time.Second)

// rolling is n requests in any window, by a clock that is ours.
func rolling(t testing.TB, n int64, window time.Duration) limit.Limiter {
	t.Helper()
	r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: -1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func slots(t testing.TB, n int64) limit.Limiter {
	t.Helper()
	c, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: n, Late: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ticket(name string, now mono.Time) *scheduler.Ticket {
	return &scheduler.Ticket{Cost: limit.One, Place: now, Deadline: limit.Never, Of: name}
}

var accepted = limit.Outcome{Result: limit.Accepted}

// next returns the names of those that have a verdict.
func next(l *scheduler.Scheduler, now mono.Time) (names string) {
	for t := l.Next(now); t != nil; t = l.Next(now) {
		names += t.Of.(string)
	}
	return names
}

func want(t *testing.T, got, want any) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// A lane before one limiter is a line, first come, first served.
func TestOneLaneOneLimit(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(slots(t, 1), scheduler.Sharing{})})
	a, b, c := ticket("a", 0), ticket("b", 0), ticket("c", 0)
	want(t, l.Enter(0, lane, a), scheduler.Granted)
	want(t, l.Enter(0, lane, b), scheduler.Waiting)
	want(t, l.Enter(0, lane, c), scheduler.Waiting)
	want(t, c.Ahead, 1)
	want(t, l.Wake(), limit.Never)
	l.Settle(second, a.Pass, &accepted)
	want(t, next(l, second), "b")
	want(t, l.Leave(second, c), true)
	l.Settle(second, b.Pass, &accepted)
	want(t, next(l, second), "")
	_, at := l.Try(second, lane, &limit.One, &limit.One)
	want(t, at, second)
}

// Pending is true when a driver has to call Next: while a ticket has a verdict, or is to be looked
// at, or the instant has come.
func TestPending(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	pending := func(now mono.Time, expected bool) {
		t.Helper()
		pending, _, _ := l.Due(now)
		want(t, pending, expected)
	}
	r := must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1}))
	m := l.Limit(r, scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
	a, b, c := ticket("a", 0), ticket("b", 0), ticket("c", 0)
	l.Enter(0, lane, a)
	l.Enter(0, lane, b)
	pending(0, false)
	l.Enter(0, lane, c)
	want(t, next(l, 0), "")
	pending(mono.Time(time.Hour), false) // only an answer can change that
	l.Settle(0, a.Pass, &accepted)
	pending(0, true) // there is news
	want(t, next(l, 0), "")
	pending(second-1, false)
	want(t, l.Wake(), second)
	pending(second, true)
	l.Tick(second)
	pending(second, true)
	d := ticket("d", second)
	l.Enter(second, lane, d) // serves c, whose verdict the driver has not read
	pending(second, true)
	want(t, l.Next(second), c)
	pending(second, false)
	want(t, next(l, second), "")
	want(t, d.State, scheduler.Waiting)
	l.Settle(second, b.Pass, &accepted)
	want(t, next(l, second), "")
	// A ticket that does not fit any more is refused when the limit is looked at again.
	big := ticket("big", second)
	big.Cost = limit.Cost{limit.Requests: 2}
	want(t, l.Enter(second, lane, big), scheduler.Waiting)
	if err := r.SetLimit(second, 1); err != nil {
		t.Fatal(err)
	}
	l.Review(second, m)
	pending(second, true)
	want(t, next(l, second), "big")
	want(t, big.State, scheduler.Never)
	pending(second, false)
}

// No ticket holds room that others could use while it waits for another limit. Thirty wait for a
// slow model, and two hundred for a fast one on the same route.
func TestSlowModelHoldsUpNobody(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	route := l.Limit(rolling(t, 20, time.Second), scheduler.Sharing{})
	slow, fast := l.Limit(rolling(t, 1, 4*time.Second), scheduler.Sharing{}), l.Limit(rolling(t, 1000, time.Second), scheduler.Sharing{})
	first := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{slow, route})
	other := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{fast, route})
	var under []*scheduler.Ticket
	enter := func(a *scheduler.Lane, name string) {
		u := ticket(name, 0)
		if l.Enter(0, a, u) == scheduler.Granted {
			under = append(under, u)
		}
	}
	for range 30 {
		enter(first, "s")
	}
	for range 200 {
		enter(other, "f")
	}
	want(t, len(under), 20) // one slow, nineteen fast
	left := 200 - 19
	now := mono.Time(0)
	for left > 0 {
		for _, u := range under {
			l.Settle(now, u.Pass, &accepted)
		}
		under = under[:0]
		for u := l.Next(now); u != nil; u = l.Next(now) {
			under = append(under, u)
			if u.Of == "f" {
				left--
			}
		}
		if left > 0 && len(under) == 0 {
			now = l.Wake()
		}
	}
	if now > 11*second {
		t.Fatalf("the fast ones were through at %v", now)
	}
}

// A request surely uses all of its cost if it has no unit of which it may use less.
func TestAsk(t *testing.T) {
	for unit := range (limit.Cost{}) {
		c := limit.Cost{limit.Requests: 1}
		c[unit] = 2
		var u scheduler.Ticket
		if u.Ask(&c); u.Metered != (c.Least() != c) || u.Metered && u.Least != c.Least() {
			t.Errorf("%v: metered %t, at least %v", c, u.Metered, u.Least)
		}
	}
}

// A review refuses tickets that are too late now that others have come before them, and does not
// count those as ahead.
func TestReviewCountsThoseBefore(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	m := l.Limit(must(limit.NewSpacing(time.Second)), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
	want(t, l.Enter(0, lane, ticket("gone", 0)), scheduler.Granted)
	for i, deadline := range []mono.Time{limit.Never, limit.Never, 3 * second, 4 * second} {
		u := ticket(string(rune('a'+i)), 0)
		u.Deadline = deadline
		want(t, l.Enter(0, lane, u), scheduler.Waiting)
	}
	l.Review(0, m)
	want(t, next(l, 0), "")
	want(t, l.Enter(0, lane, ticket("first", -second)), scheduler.Waiting)
	l.Review(0, m)
	want(t, next(l, 0), "c")
}
