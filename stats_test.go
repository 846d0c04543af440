package paceline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// Every admitted request is in flight or settled, and every other is counted by its reason.
func TestStatsAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := paceline.NewGate(concurrency(t, 3))
		var open []paceline.Permit
		for range 3 {
			p, err := gate.Wait(t.Context(), limit.One)
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, p)
		}
		for i, r := range []limit.Result{limit.Failed, limit.Unsent, limit.Accepted} {
			if s := gate.Stats(); s.InFlight != 3-i || s.Admitted != 3 || s.Accepted+s.Failed+s.Unsent != int64(i) {
				t.Errorf("after %d: %+v", i, s)
			}
			open[i].Settle(limit.Outcome{Result: r})
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		gate.Wait(over, limit.One)
		for range 3 {
			if _, err := gate.Wait(t.Context(), limit.One); err != nil {
				t.Fatal(err)
			}
		}
		soon, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		gate.Wait(soon, limit.One)
		if s := gate.Stats(); s.Cancelled != 2 || s.InFlight != 3 || s.Admitted != 6 || s.Failed != 1 || s.Unsent != 1 || s.Accepted != 1 || s.Waiting != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// The common limits of two waits are added up, wherever either has them.
func TestWaitStatsAddsTheSame(t *testing.T) {
	of := func(names ...string) (s paceline.WaitStats) {
		for i, name := range names {
			s.Limits = append(s.Limits, paceline.LimitWait{Limit: name, Waited: time.Duration(9 - i)})
			s.Waited += time.Duration(9 - i)
		}
		return s
	}
	for _, c := range [][2]paceline.WaitStats{{of("a", "b"), of("a")}, {of("a", "b"), of("b", "a")}, {of("a"), of("c", "a")}} {
		sum := c[0].Add(c[1])
		all, seen := time.Duration(0), map[string]bool{}
		for _, l := range sum.Limits {
			if seen[l.Limit] {
				t.Errorf("%s is there twice: %+v", l.Limit, sum)
			}
			seen[l.Limit] = true
			all += l.Waited
		}
		if all != sum.Waited || sum.Waited != c[0].Waited+c[1].Waited {
			t.Errorf("%+v and %+v: %+v", c[0], c[1], sum)
		}
	}
}

// A request that never went is counted by the reason: too large, too late, or no room to wait.
func TestStatsByWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := paceline.NewGate(limit.MustRolling(3, time.Minute))
		for range 2 {
			_, err := gate.Wait(t.Context(), limit.Cost{limit.Requests: 4})
			if !errors.Is(err, paceline.ErrNever) {
				t.Error(err)
			}
		}
		for range 3 {
			if _, err := gate.Wait(t.Context(), limit.One); err != nil {
				t.Fatal(err)
			}
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := gate.Wait(soon, limit.One); !errors.Is(err, paceline.ErrDeadline) {
			t.Error(err)
		}
		if s := gate.Stats(); s.Never != 2 || s.Late != 1 || s.Full != 0 || s.Admitted != 3 {
			t.Errorf("%+v", s)
		}
	})
}
