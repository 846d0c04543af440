package paceline_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
)

// A drained lane refuses those that wait and those that come, for the reason given. In another lane they go on in
// their order, beyond its bound, and are counted there alone.
func TestDrainOfALane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, err := paceline.NewGroup(paceline.GroupConfig{MaxWaiting: 2})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		one := j.Limit(paceline.LimitConfig{Limiter: rolling(t, 1, time.Second)})
		was := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{one})
		next := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{one})
		gone := errors.New("its limits are others")
		wait := func(lane *paceline.Lane, turn paceline.Turn) <-chan result {
			ended := make(chan result, 1)
			go func() {
				p, _, err := lane.WaitTurn(bg, weight(0, 1), turn)
				ended <- result{p, err}
				if err == nil {
					p.Settle(accepted)
				}
			}()
			synctest.Wait()
			return ended
		}
		wait(was, paceline.Turn{})
		first, second := wait(was, paceline.Turn{}), wait(was, paceline.Turn{})
		was.Drain(gone)
		third := wait(was, paceline.Turn{})
		for _, ended := range []<-chan result{first, second, third} {
			if r := <-ended; !errors.Is(r.err, gone) {
				t.Errorf("%v, want that %v", r.err, gone)
			}
		}
		came := time.Now()
		later := wait(next, paceline.Turn{})
		second = wait(next, paceline.Turn{Came: came.Add(-time.Millisecond), Again: true})
		first = wait(next, paceline.Turn{Came: came.Add(-2 * time.Millisecond), Again: true})
		if full := wait(next, paceline.Turn{}); !errors.Is((<-full).err, paceline.ErrFull) {
			t.Error("one more waits than may")
		}
		for i, ended := range []<-chan result{first, second, later} {
			if r := <-ended; r.err != nil || time.Since(start) != time.Duration(i+1)*time.Second {
				t.Errorf("the turn %d: %v after %v", i, r.err, time.Since(start))
			}
		}
		if s := was.Stats(); s.Admitted != 1 || s.Cancelled != 0 {
			t.Errorf("%+v, want one that was admitted", s)
		}
		was.Retire()
	})
}
