package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// ways is a lane of ways that have a limit each.
func ways(l *scheduler.Scheduler, limits ...limit.Limiter) (*scheduler.Lane, []*scheduler.Limit) {
	var all []*scheduler.Limit
	var each [][]*scheduler.Limit
	for _, m := range limits {
		all = append(all, l.Limit(m, scheduler.Sharing{}))
		each = append(each, all[len(all)-1:])
	}
	return l.Lane(scheduler.LaneConfig{}, each...), all
}

// A lane whose limits were its own leaves nothing behind at a limit that others come to share. This
// holds while no ticket waits in it. It also holds while one does, after a ticket with an earlier
// right has gone.
func TestWaysThatOthersComeToShare(t *testing.T) {
	for _, more := range []bool{false, true} {
		l := scheduler.New(scheduler.Config{})
		lane, m := ways(l, slots(t, 1), slots(t, 1))
		a, b, c := ticket("a", 0), ticket("b", 0), ticket("c", 10)
		want(t, l.Enter(0, lane, a), scheduler.Granted)
		want(t, l.Enter(0, lane, b), scheduler.Granted)
		want(t, l.Enter(10, lane, c), scheduler.Waiting)
		if more {
			want(t, l.Enter(30, lane, ticket("e", 30)), scheduler.Waiting)
		}
		l.Settle(30, b.Pass, &accepted)
		want(t, next(l, 30), "c") // it waited for both, and what it waited for of a's is still there
		other := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m[0]})
		want(t, l.Enter(30, other, ticket("d", 20)), scheduler.Waiting)
		l.Settle(40, a.Pass, &accepted)
		want(t, next(l, 40), "d") // before e, by its place
	}
}

// Ways that were ready at one instant go by their turns, whenever it was found out.
func TestWaysReadyAtOneInstant(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane, _ := ways(l, slots(t, 9), slots(t, 9), slots(t, 1))
	var got strings.Builder
	var last *scheduler.Ticket
	goes := func(now mono.Time) {
		u := ticket("", now)
		want(t, l.Enter(now, lane, u), scheduler.Granted)
		got.WriteString(fmt.Sprint(u.Pass.Way.Index))
		if u.Pass.Way.Index == 2 {
			last = u
		}
	}
	for range 5 {
		goes(0) // 01201
	}
	goes(second) // 0, which is asked again at 1 s
	goes(second) // 1
	l.Settle(second, last.Pass, &accepted)
	for range 3 {
		goes(second) // 2 was used before those
	}
	want(t, got.String(), "0120101"+"201")
}

// For a refused cost Try returns when the first of the ways will be ready.
func TestTryOfWays(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane, _ := ways(l, rolling(t, 1, 5*time.Second), rolling(t, 1, 2*time.Second), slots(t, 1))
	for range 3 {
		p, at := l.Try(0, lane, &limit.One, &limit.One)
		want(t, at, mono.Time(0))
		if p.Way.Index < 2 {
			l.Settle(0, p, &accepted)
		}
	}
	_, at := l.Try(0, lane, &limit.One, &limit.One)
	want(t, at, 2*second)
	_, at = l.Try(0, lane, &limit.Cost{2}, &limit.One)
	want(t, at, limit.AfterSettle) // the slot: it reads no cost
}

// A lane waits for the limit by which it will go soonest, in any of its ways.
func TestAtIsTheSoonestWay(t *testing.T) {
	for first := range 3 {
		l := scheduler.New(scheduler.Config{})
		var limits []limit.Limiter
		for i := range 3 {
			every := time.Minute
			if i == first {
				every = time.Second
			}
			limits = append(limits, limit.MustRolling(1, every))
		}
		lane, m := ways(l, limits...)
		if on, _ := lane.At(); on != nil {
			t.Errorf("nobody waits, for %v", on)
		}
		for range 3 {
			u := ticket("", 0)
			want(t, l.Enter(0, lane, u), scheduler.Granted)
			l.Settle(0, u.Pass, &accepted)
		}
		want(t, l.Enter(0, lane, ticket("a", 0)), scheduler.Waiting)
		on, at := lane.At()
		if soonest := m[first].Limiter.Ready(0, limit.One); on != m[first] || at != soonest {
			t.Errorf("it waits until %v; way %d is ready at %v", at, first, soonest)
		}
	}
}

// The zero of the scale is the driver's: before it a lane goes by its ways as after it.
func TestWaysBeforeZero(t *testing.T) {
	var want []string
	for _, zero := range []mono.Time{0, mono.Time(-time.Hour)} {
		l := scheduler.New(scheduler.Config{})
		lane, _ := ways(l, slots(t, 2), slots(t, 1), slots(t, 1))
		var got []string
		var open []*scheduler.Ticket
		for i := range 12 {
			now := zero.Add(time.Duration(i) * time.Second)
			u := ticket(fmt.Sprint(i), now)
			state := l.Enter(now, lane, u)
			got = append(got, fmt.Sprint(i, state))
			if state == scheduler.Granted {
				got = append(got, fmt.Sprint("by ", u.Pass.Way.Index))
				open = append(open, u)
			}
			if i%3 == 2 {
				l.Settle(now, open[0].Pass, &accepted)
				open = open[1:]
				for u := l.Next(now); u != nil; u = l.Next(now) {
					got = append(got, fmt.Sprint("then ", u.Pass.Way.Index))
					open = append(open, u)
				}
			}
		}
		if want == nil {
			want = got
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("from %v on: %v, want %v", zero, got, want)
		}
	}
}

// A ticket with a head start learns how many of its lane are ahead. It is all of them in a short
// line, and at least some in a long one.
func TestAheadIsCounted(t *testing.T) {
	for _, waiting := range []int{10, 300} {
		for before := 0; before <= waiting; before += 1 + waiting/40 {
			l := scheduler.New(scheduler.Config{})
			m := l.Limit(slots(t, 1), scheduler.Sharing{})
			lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
			want(t, l.Enter(0, lane, ticket("first", 0)), scheduler.Granted)
			for i := range waiting {
				want(t, l.Enter(1, lane, ticket("", mono.Time(10*i+10))), scheduler.Waiting)
			}
			u := ticket("late", mono.Time(10*before+5))
			want(t, l.Enter(1, lane, u), scheduler.Waiting)
			if least := min(before, 64); u.Ahead > before || u.Ahead < least {
				t.Errorf("%d of %d are before it: told %d", before, waiting, u.Ahead)
			}
		}
	}
}

// A ticket that is too large for a limit holds up no other there. It takes nothing from the next in
// its lane, which fits, and has the right of its own place.
func TestWaysOfWhoComesAfterOneTooLarge(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane, m := ways(l, rolling(t, 1, time.Second), rolling(t, 5, time.Hour))
	goes := func(w *scheduler.Lane, n int64) {
		cost := limit.Cost{limit.Requests: n}
		p, at := l.Try(0, w, &cost, nil)
		want(t, at, mono.Time(0))
		l.Settle(0, p, &accepted)
	}
	other := l.Lane(scheduler.LaneConfig{}, m[:1])
	goes(other, 1)
	goes(lane, 5)
	big := ticket("big", 0)
	big.Cost = limit.Cost{limit.Requests: 5}
	want(t, l.Enter(0, lane, big), scheduler.Waiting)
	small := ticket("small", 10)
	want(t, l.Enter(0, lane, small), scheduler.Waiting)
	want(t, l.Enter(0, other, ticket("later", 20)), scheduler.Waiting)
	want(t, l.Leave(500*ms, big), true)
	want(t, next(l, 500*ms), "")
	want(t, next(l, second), "small")
	l.Settle(second, small.Pass, &accepted)
	want(t, next(l, 2*second), "later")
}

// A Try counts as a ticket that goes, in a lane of one way and of several.
func TestTryIsCounted(t *testing.T) {
	for n := 1; n <= 3; n++ {
		l := scheduler.New(scheduler.Config{})
		lane, _ := ways(l, []limit.Limiter{slots(t, 1), slots(t, 1), slots(t, 1)}[:n]...)
		for i := range 5 {
			l.Try(0, lane, &limit.One, nil)
			want(t, lane.Granted(), uint64(min(i+1, n)))
		}
	}
}
