package scheduler_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// until is a limit at which everything may go from an instant on.
type until struct{ t mono.Time }

func (u until) Ready(now mono.Time, _ limit.Cost) mono.Time { return max(now, u.t) }
func (until) Admit(*limit.Sent)                             {}
func (until) Settle(mono.Time, *limit.Sent, *limit.Outcome) {}

// Ask names the way by which the cost may go first, and of that way the limit that lets it go last.
// Without waiting tickets Expect gives the same.
func TestAskOfSeveralWays(t *testing.T) {
	for _, tc := range []struct {
		ways [][]mono.Time
		want mono.Time
	}{
		{[][]mono.Time{{10, 30}, {20, 5}}, 20},
		{[][]mono.Time{{20, 5}, {10, 30}}, 20},
		{[][]mono.Time{{10, 30, 20}}, 30},
		{[][]mono.Time{{limit.Never, 1}, {7, 8}}, 8},
		{[][]mono.Time{{limit.AfterSettle, 1}, {7, 8}}, 3}, // an answer may come now
		{[][]mono.Time{{limit.AfterSettle, 1}, {limit.Never, 8}}, limit.AfterSettle},
		{[][]mono.Time{{1, 2}, {50, 1}}, 3}, // now
	} {
		l := scheduler.New(scheduler.Config{})
		var ways [][]*scheduler.Limit
		for _, way := range tc.ways {
			var limits []*scheduler.Limit
			for _, at := range way {
				limits = append(limits, l.Limit(until{at}, scheduler.Sharing{}))
			}
			ways = append(ways, limits)
		}
		lane := l.Lane(scheduler.LaneConfig{}, ways...)
		cost, least := limit.One, limit.One.Least()
		if at, ahead := l.Ask(3, lane, &cost, &least); at != tc.want || ahead != 0 {
			t.Errorf("%v: asked, %d with %d ahead, want %d", tc.ways, at, ahead, tc.want)
		}
		if at, ahead := l.Expect(3, lane, &cost, 3); at != tc.want && tc.want < limit.AfterSettle || ahead != 0 {
			t.Errorf("%v: expected, %d with %d ahead, want %d", tc.ways, at, ahead, tc.want)
		}
	}
}

// Of hundreds of lanes with an earlier place each ticket counts once: up to as many as are looked
// at one by one the guess is exact.
func TestExpectBehindHundreds(t *testing.T) {
	for _, lanes := range []int{1, 255, 256} {
		l := scheduler.New(scheduler.Config{})
		m := l.Limit(rolling(t, 1, time.Second), scheduler.Sharing{})
		var all []*scheduler.Lane
		for range lanes {
			all = append(all, l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m}))
		}
		own := all[lanes/2]
		first := ticket("first", 0)
		want(t, l.Enter(0, own, first), scheduler.Granted)
		l.Settle(0, first.Pass, &accepted)
		waiting, mine := 0, 0
		for i, a := range all {
			for range 1 + i%2*4 {
				want(t, l.Enter(1, a, ticket("one", 1)), scheduler.Waiting)
				if waiting++; a == own {
					mine++
				}
			}
		}
		cost := limit.One
		at, ahead := l.Expect(2, own, &cost, 2)
		if want := mono.Time(waiting+1) * mono.Time(time.Second+time.Second/500); ahead != mine || at < mono.Time(waiting+1)*mono.Time(time.Second) || at > want {
			t.Errorf("%d lanes, %d wait: expected at %v with %d ahead, want about %d s, %d", lanes, waiting, time.Duration(at), ahead, waiting+1, mine)
		}
	}
}

// Behind a ticket that waits for an answer no instant is known; and changes are counted.
func TestExpectBehindAnAnswer(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(slots(t, 1), scheduler.Sharing{})})
	cost, least := limit.One, limit.One.Least()
	if at, ahead := l.Expect(5, lane, &cost, 5); at != 5 || ahead != 0 {
		t.Errorf("where it could go at once: at %v with %d ahead", at, ahead)
	}
	want(t, l.Enter(5, lane, ticket("open", 5)), scheduler.Granted)
	want(t, l.Enter(6, lane, ticket("waits", 6)), scheduler.Waiting)
	if at, ahead := l.Expect(7, lane, &cost, 7); at < limit.AfterSettle || ahead != 1 {
		t.Errorf("at %v with %d ahead", at, ahead)
	}
	if at, ahead := l.Ask(7, lane, &cost, &least); at < limit.AfterSettle || ahead != 1 {
		t.Errorf("at %v with %d ahead", at, ahead)
	}
}
