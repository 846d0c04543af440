package scheduler_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
)

// each is a ticket that costs so many requests by the first and by the second class of ways.
func each(name string, first, second int64) *scheduler.Ticket {
	t := ticket(name, 0)
	t.AskEach(&limit.Cost{limit.Requests: max(first, second)}, []limit.Cost{{limit.Requests: first}, {limit.Requests: second}})
	return t
}

// A ticket costs what its way costs, when it waits and once it goes.
func TestCostByClassOfWay(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	dear := l.Limit(rolling(t, 10, time.Second), scheduler.Sharing{})
	cheap := l.Limit(rolling(t, 3, 10*time.Second), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{Classes: []int{1, 0}}, []*scheduler.Limit{dear}, []*scheduler.Limit{cheap})
	went := map[int]int{}
	for range 5 { // two of 5 in 10, and three of 1 in 3
		u := each("u", 1, 5)
		want(t, l.Enter(0, lane, u), scheduler.Granted)
		went[u.Pass.Way.Index]++
		want(t, l.Sent(u.Pass).Cost[limit.Requests], []int64{5, 1}[u.Pass.Way.Index])
		l.Settle(0, u.Pass, &accepted)
	}
	want(t, went[0], 2)
	want(t, went[1], 3)
	next1 := each("next", 1, 5)
	want(t, l.Enter(0, lane, next1), scheduler.Waiting)
	at, _ := l.ExpectOf(0, lane, next1)
	want(t, l.Wake(), at)
	want(t, next(l, l.Wake()), "next")
	want(t, next1.Pass.Way.Index, 0)
}

// A ticket is refused if it fits by no way, with its cost there. The largest cost of all ways may fit none.
func TestNeverByClassOfWay(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	small := l.Limit(rolling(t, 3, time.Second), scheduler.Sharing{})
	large := l.Limit(rolling(t, 10, time.Second), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{Classes: []int{0, 1}}, []*scheduler.Limit{small}, []*scheduler.Limit{large})
	for _, c := range []struct {
		first, second int64
		want          scheduler.State
	}{{4, 11, scheduler.Never}, {3, 11, scheduler.Granted}, {4, 10, scheduler.Granted}} {
		u := each("u", c.first, c.second)
		want(t, l.Enter(0, lane, u), c.want)
	}
}

// In a lane of one way only the cost there counts.
func TestClassOfTheOnlyWay(t *testing.T) {
	l := scheduler.New(scheduler.Config{Fill: 4})
	m := l.Limit(rolling(t, 5, time.Second), scheduler.Sharing{})
	lane := l.Lane(scheduler.LaneConfig{Classes: []int{0}}, []*scheduler.Limit{m})
	for range 5 {
		u := each("u", 1, 99)
		want(t, l.Enter(0, lane, u), scheduler.Granted)
		want(t, u.Cost, limit.One)
	}
}
