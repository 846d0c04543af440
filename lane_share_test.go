package paceline_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// A party in two lanes has no more of a limit than one in a single lane, and no more places in
// line. Its foreseen instant counts its own goroutines and those beside it.
func TestShareOfTwoLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		m := []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: mustRolling(t, 1, time.Second), Fair: true})}
		two := j.Class(paceline.ClassConfig{MaxWaiting: 20})
		first, second, alone := j.Lane(paceline.LaneConfig{Share: two}, m), j.Lane(paceline.LaneConfig{Share: two}, m), j.Lane(paceline.LaneConfig{}, m)
		var mu sync.Mutex
		went := map[*paceline.Lane]int{}
		var wg sync.WaitGroup
		for range 10 {
			for _, a := range []*paceline.Lane{first, second, alone, alone} {
				goes(t, &wg, a, 0, func() {
					mu.Lock()
					defer mu.Unlock()
					went[a]++
				})
			}
		}
		synctest.Wait()
		if two.Waiting() < 19 {
			t.Fatalf("%d wait", two.Waiting())
		}
		if two.Waiting() == 19 { // one has gone
			goes(t, &wg, first, 0, func() {})
			synctest.Wait()
		}
		began := time.Now()
		at, ahead := second.Expect(limit.One)
		if d := at.Sub(began); ahead != 20 || d < 39*time.Second || d > 41*time.Second {
			t.Errorf("%d ahead, expected after %v", ahead, d)
		}
		_, _, err := second.WaitTurn(t.Context(), limit.One, paceline.Turn{})
		if e, _ := errors.AsType[*paceline.WaitError](err); !errors.Is(err, paceline.ErrFull) || e.Ahead != 20 || !e.Ready.Equal(at) {
			t.Errorf("%v: %+v", err, e)
		}
		two.Set(paceline.ClassConfig{})
		_, _, err = second.WaitTurn(t.Context(), limit.One, paceline.Turn{MaxWait: 20 * time.Second})
		if e, _ := errors.AsType[*paceline.WaitError](err); !errors.Is(err, paceline.ErrDeadline) || e.Ahead != 20 || !e.Ready.Equal(at) || !e.Deadline.Equal(began.Add(20*time.Second)) || time.Since(began) > 0 {
			t.Errorf("%v: %+v", err, e)
		}
		time.Sleep(20*time.Second + time.Millisecond)
		mu.Lock()
		if n := went[first] + went[second]; n < 9 || n > 12 || went[first] < 4 || went[second] < 4 {
			t.Errorf("after 20 s they went %d and %d times, and the one alone %d", went[first], went[second], went[alone])
		}
		mu.Unlock()
		wg.Wait()
		if s := second.Stats(); s.Full != 1 || s.Late != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A Turn with an earlier Came has an earlier place in line.
func TestTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: mustRolling(t, 1, time.Second)})})
		came := time.Now()
		if p, _, err := a.WaitTurn(t.Context(), limit.One, paceline.Turn{MaxWait: 1}); err != nil {
			t.Fatal(err) // it need not wait
		} else {
			p.Settle(limit.Outcome{Result: limit.Accepted})
		}
		time.Sleep(time.Millisecond)
		var wg sync.WaitGroup
		for range 3 {
			goes(t, &wg, a, 0, func() {})
		}
		synctest.Wait()
		p, s, err := a.WaitTurn(t.Context(), limit.One, paceline.Turn{Came: came, MaxWait: 1500 * time.Millisecond})
		if err != nil || s.Waited != 999*time.Millisecond {
			t.Fatalf("%v after %v", err, s.Waited)
		}
		p.Settle(limit.Outcome{Result: limit.Accepted})
		wg.Wait()
	})
}

func mustRolling(t *testing.T, n int64, window time.Duration) limit.Limiter {
	t.Helper()
	l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: -1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
