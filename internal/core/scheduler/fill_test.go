package scheduler_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A hundred in any 10 s. A ticket that went at 0 s has some until 10 s, and one that went at 8 s
// has all others until 18 s. Then the first in line goes.
func TestFillWakes(t *testing.T) {
	for _, c := range []struct {
		name         string
		early        int64 // free from 10 s on
		first        int64
		behind       []int64
		at10, at18   string
		wake, wake10 mono.Time
	}{
		{"a 20 goes when it may, and delays nobody", 20, 80, []int64{20}, "b", "a", 10 * second, 18 * second},
		{"a 25 would delay the first: nobody wakes for it", 25, 80, []int64{25}, "", "a", 18 * second, 18 * second},
		{"the first that may, not the first in line", 20, 80, []int64{30, 20}, "c", "a", 10 * second, 18 * second},
		{"all that may", 20, 80, []int64{15, 10, 5}, "bd", "a", 10 * second, 18 * second},
		{"the fourth behind the first is looked at", 20, 80, []int64{90, 90, 90, 20}, "e", "a", 10 * second, 18 * second},
		{"the fifth is not", 20, 80, []int64{90, 90, 90, 90, 20}, "", "a", 18 * second, 18 * second},
	} {
		l := scheduler.New(scheduler.Config{Fill: 4})
		r, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: 10 * time.Second, Margin: -1})
		if err != nil {
			t.Fatal(err)
		}
		lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(r, scheduler.Sharing{})})
		goes := func(now mono.Time, n int64) {
			cost := limit.Cost{limit.Requests: n}
			pass, at := l.Try(now, lane, &cost, &cost)
			if at > now {
				t.Fatalf("%s: %d at %v goes at %v", c.name, n, now, at)
			}
			l.Settle(now, pass, &accepted)
		}
		goes(0, c.early)
		goes(8*second, 100-c.early)
		for i, n := range append([]int64{c.first}, c.behind...) {
			u := ticket(string(rune('a'+i)), 8*second)
			u.Cost = limit.Cost{limit.Requests: n}
			want(t, l.Enter(8*second, lane, u), scheduler.Waiting)
		}
		got := [...]any{next(l, 8*second), l.Wake(), next(l, 10*second), l.Wake(), next(l, 18*second-1), next(l, 18*second)}
		if got != [...]any{"", c.wake, c.at10, c.wake10, "", c.at18} {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A ticket that goes ahead of the first counts as any other.
func TestFillIsCounted(t *testing.T) {
	l := scheduler.New(scheduler.Config{Fill: 4})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(rolling(t, 100, 10*time.Second), scheduler.Sharing{})})
	for i, n := range []int64{90, 80, 10} { // the last has room, and the one before it has to wait for the first
		u := ticket("", 0)
		u.Cost = limit.Cost{limit.Requests: n}
		l.Enter(0, lane, u)
		next(l, 0)
		if u.State == scheduler.Granted {
			l.Settle(0, u.Pass, &accepted)
		}
		want(t, lane.Granted(), []uint64{1, 1, 2}[i])
	}
}

// A lane may be filled where others of its Scheduler are not.
func TestFillOfALane(t *testing.T) {
	for _, c := range []struct {
		line, lane int
		want       string
	}{{0, 0, ""}, {0, 4, "b"}, {4, 0, "b"}, {4, 1, "b"}} {
		l := scheduler.New(scheduler.Config{Fill: c.line})
		lane := l.Lane(scheduler.LaneConfig{Fill: c.lane}, []*scheduler.Limit{l.Limit(rolling(t, 100, 10*time.Second), scheduler.Sharing{})})
		first := limit.Cost{limit.Requests: 90}
		pass, _ := l.Try(0, lane, &first, &first)
		l.Settle(0, pass, &accepted)
		for i, n := range []int64{80, 10} {
			u := ticket(string(rune('a'+i)), 0)
			u.Cost = limit.Cost{limit.Requests: n}
			want(t, l.Enter(0, lane, u), scheduler.Waiting)
		}
		if got := next(l, 0); got != c.want {
			t.Errorf("Fill %d of the line, %d of the lane: %q goes ahead, want %q", c.line, c.lane, got, c.want)
		}
	}
}

// The forecast for a ticket that may pass the first does not count the first, however few may pass. So a
// ticket that goes at once is not refused for its deadline.
func TestFillIsForeseen(t *testing.T) {
	for fill := range 3 {
		l := scheduler.New(scheduler.Config{})
		lane := l.Lane(scheduler.LaneConfig{Fill: fill}, []*scheduler.Limit{l.Limit(rolling(t, 100, 10*time.Second), scheduler.Sharing{})})
		first := limit.Cost{limit.Requests: 90}
		pass, _ := l.Try(0, lane, &first, &first)
		l.Settle(0, pass, &accepted)
		a, b := ticket("a", 0), ticket("b", 0)
		a.Cost, b.Cost, b.Deadline = limit.Cost{limit.Requests: 80}, limit.Cost{limit.Requests: 10}, 5*second
		want(t, l.Enter(0, lane, a), scheduler.Waiting)
		l.Enter(0, lane, b)
		next(l, 0)
		want(t, b.State, map[bool]scheduler.State{false: scheduler.Late, true: scheduler.Granted}[fill > 0])
	}
}

// The first of a lane goes when it was foreseen to, by any way, however many pass it. More goes
// than in a strict order. Ways share a limit in every other net. No request is in flight for long,
// so that forecasts hold.
func TestFillOfWaysDelaysNobody(t *testing.T) {
	var went [2]int
	for seed := range uint64(300) {
		for i, fill := range []int{0, 8} {
			rng := rand.New(rand.NewPCG(seed, 1))
			l := scheduler.New(scheduler.Config{Fill: fill})
			var ways [][]*scheduler.Limit
			shared := l.Limit(rolling(t, 60, 10*time.Second), scheduler.Sharing{})
			for range 1 + rng.IntN(3) {
				way := []*scheduler.Limit{l.Limit(rolling(t, 15+rng.Int64N(20), time.Duration(2+rng.IntN(8))*time.Second), scheduler.Sharing{})}
				if seed%2 == 0 {
					way = append(way, shared)
				}
				ways = append(ways, way)
			}
			lane := l.Lane(scheduler.LaneConfig{}, ways...)
			foreseen, of := limit.Never, (*scheduler.Ticket)(nil)
			for now := mono.Time(0); now < 60*second; now += second / 10 {
				if rng.IntN(2) == 0 {
					u := ticket("x", now)
					u.Cost = limit.Cost{limit.Requests: 1 + rng.Int64N(3)*rng.Int64N(6)}
					if l.Enter(now, lane, u) == scheduler.Granted {
						l.Settle(now, u.Pass, &accepted)
					}
				}
				for u := l.Next(now); u != nil; u = l.Next(now) {
					went[i]++
					if u == of && now > foreseen {
						t.Fatalf("seed %d, Fill %d: foreseen at %v, it goes at %v", seed, fill, foreseen, now)
					}
					l.Settle(now, u.Pass, &accepted)
				}
				if first := lane.First(); first != of {
					foreseen, of = limit.Never, first
					for _, w := range ways {
						at := now
						for _, m := range w {
							if of != nil {
								at = max(at, m.Limiter.Ready(now, of.Cost))
							}
						}
						foreseen = min(foreseen, (at+second/10-1)/(second/10)*(second/10)) // when it is next looked at
					}
				}
			}
		}
	}
	if went[1] < went[0]*101/100 {
		t.Errorf("%d went after a wait, %d in a strict order", went[1], went[0])
	}
}

// A way of 100 in 10 s has 95 used until 10 s. Another of 120 has 50 used until 12 s. 92 go by the
// first way at 10 s, and 40 by the second at once.
func TestFillByAnotherWay(t *testing.T) {
	l := scheduler.New(scheduler.Config{Fill: 1})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(rolling(t, 100, 10*time.Second), scheduler.Sharing{})}, []*scheduler.Limit{l.Limit(rolling(t, 120, 10*time.Second), scheduler.Sharing{})})
	for way, n := range []int64{95, 50} {
		cost := limit.Cost{limit.Requests: n}
		now := mono.Time(way) * 2 * second
		pass, at := l.Try(now, lane, &cost, &cost)
		if at > now || pass.Way.Index != way {
			t.Fatalf("%d at %v: by way %d at %v", n, now, pass.Way.Index, at)
		}
		l.Settle(now, pass, &accepted)
	}
	goes := func(now mono.Time) (names string) {
		for u := l.Next(now); u != nil; u = l.Next(now) {
			names += u.Of.(string) + string(rune('0'+u.Pass.Way.Index))
			l.Settle(now, u.Pass, &accepted)
		}
		return names
	}
	come := func(name string, n int64) string {
		u := ticket(name, 3*second)
		u.Cost = limit.Cost{limit.Requests: n}
		want(t, l.Enter(3*second, lane, u), scheduler.Waiting)
		return goes(3 * second)
	}
	got := [...]string{
		come("a", 92), come("b", 40), come("c", 92), // b goes at once
		come("d", 20),                          // it is behind two, of which one is looked at
		goes(10*second - 1), goes(10 * second), // then a goes by the first way, and d, which moves up, by the second
		goes(13*second - 1), goes(13 * second),
	}
	if want := [...]string{"", "b1", "", "", "", "a0d1", "", "c1"}; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The first of a lane may go by two ways at one instant. Nothing goes ahead that it would have no room beside, by either:
// a ticket by each of them would delay it.
func TestFillLeavesBothOfEqualWays(t *testing.T) {
	l := scheduler.New(scheduler.Config{Fill: 8})
	lane, _ := ways(l, rolling(t, 100, 10*time.Second), rolling(t, 100, 10*time.Second))
	most := limit.Cost{limit.Requests: 95}
	for range 2 {
		pass, _ := l.Try(0, lane, &most, &most)
		l.Settle(0, pass, &accepted)
	}
	first, small, none := ticket("first", 0), ticket("small", 0), ticket("none", 0)
	first.Cost, small.Cost, none.Cost = limit.Cost{limit.Requests: 98}, limit.Cost{limit.Requests: 2}, limit.Cost{limit.Requests: 3}
	want(t, l.Enter(0, lane, first), scheduler.Waiting)
	l.Enter(0, lane, none)
	l.Enter(0, lane, small)
	want(t, next(l, 0), "small")
	want(t, none.State, scheduler.Waiting)
	want(t, next(l, 10*second), "firstnone")
}
