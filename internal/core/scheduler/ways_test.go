package scheduler_test

import (
	"fmt"
	"slices"
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

// withoutRest lets lanes send for a minute, six requests at a time, each lane from an instant on. Answers
// come after a second. It returns how many requests of each lane went.
func withoutRest(l *scheduler.Scheduler, answer *limit.Outcome, from []mono.Time, ways ...[]*scheduler.Limit) []int {
	type sent struct {
		*scheduler.Ticket
		lane int
		ends mono.Time
	}
	var open []sent
	went, lanes := make([]int, len(ways)), make([]*scheduler.Lane, len(ways))
	for i, way := range ways {
		lanes[i] = l.Lane(scheduler.LaneConfig{}, way)
	}
	goes := func(now mono.Time, k *scheduler.Ticket) {
		i := k.Of.(int)
		went[i]++
		open = append(open, sent{k, i, now + second})
	}
	comes := func(now mono.Time, i int) {
		k := &scheduler.Ticket{Cost: limit.One, Place: now, Deadline: limit.Never, Of: i}
		if l.Enter(now, lanes[i], k) == scheduler.Granted {
			goes(now, k)
		}
	}
	drain := func(now mono.Time) {
		for k := l.Next(now); k != nil; k = l.Next(now) {
			goes(now, k)
		}
	}
	for now := mono.Time(0); now < 60*second; now += 10 * ms {
		for i := range lanes {
			for n := 0; n < 6 && from[i] == now; n++ {
				comes(now, i)
			}
		}
		for i := 0; i < len(open); i++ {
			if s := open[i]; s.ends <= now {
				open = slices.Delete(open, i, i+1)
				i--
				l.Settle(now, s.Pass, answer)
				drain(now)
				comes(now, s.lane)
				l.Touch(ways[0][0]) // as after each answer that states what is left
			}
		}
		drain(now)
	}
	return went
}

// A ticket that waits for a limit of its own, and claims its place at a shared one, leaves the other
// places to others. Before, nobody else went until its minute was over.
func TestClaimLeavesTheRest(t *testing.T) {
	for _, c := range []struct {
		search limit.Limiter
		want   int // one goes a window after the answer to the one before
	}{{rolling(t, 2, time.Minute), 2}, {rolling(t, 1, 5*time.Second), 10}} {
		l := scheduler.New(scheduler.Config{})
		search, places := l.Limit(c.search, scheduler.Sharing{}), l.Limit(slots(t, 4), scheduler.Sharing{})
		all := []*scheduler.Limit{places}
		went := withoutRest(l, &accepted, make([]mono.Time, 3), []*scheduler.Limit{search, places}, all, all)
		if others := went[1] + went[2]; went[0] != c.want || others < 3*60*9/10 {
			t.Errorf("%d searches and %d others went, want %d, and the most that three places serve: 180", went[0], others, c.want)
		}
	}
}

// Others use more than they ask for. So they delay a claim that they should not, each at another of
// its limits. After some times nobody goes ahead of it.
func TestClaimOutlivesWrongCosts(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	x, y := l.Limit(rolling(t, 2, time.Second), scheduler.Sharing{}), l.Limit(rolling(t, 2, time.Second), scheduler.Sharing{})
	twice := limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 2}}
	went := withoutRest(l, &twice, []mono.Time{100 * ms, 0, second}, []*scheduler.Limit{x, y}, []*scheduler.Limit{x}, []*scheduler.Limit{y})
	if went[0] == 0 {
		t.Errorf("%v went: the first lane starves", went)
	}
}
