package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/frontend"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
)

// Of several limits in one, each states when one more would fit there, or that it is unknown.
// Waiting requests are shown at the limit for which they wait.
func TestSnapshotOfWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := time.Time{}
		g := paceline.NewGate(frontend.Several(3, time.Minute, 4))
		words := limit.Cost{limit.Requests: 1, limit.Tokens: 2}
		must(g.Wait(t.Context(), words)).Settle(accepted)
		must(g.Wait(t.Context(), words)).Settle(accepted)
		open := must(g.Wait(t.Context(), limit.Cost{limit.Other: 1}))
		s := g.Snapshot()
		frontend.Shows(t, &s, "", "few", 0, 2./3, none, false)
		frontend.Shows(t, &s, "", "words", 0, 4./5, none, false) // one more would fit, though not two
		frontend.Shows(t, &s, "", "open", 0, 1./4, none, false)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go g.Wait(ctx, words)
		}
		synctest.Wait()
		s = g.Snapshot()
		frontend.Shows(t, &s, "", "day", 0, 2./100, none, false)
		frontend.Shows(t, &s, "", "few", 0, 2./3, none, false)
		frontend.Shows(t, &s, "", "words", 2, 4./5, none, false)
		frontend.Shows(t, &s, "", "open", 0, 1./4, none, false)
		open.Settle(accepted)
		cancel()
	})
}

// Ask returns an instant if time decides. It returns none if the cost could go at once, or if only
// an answer decides.
func TestAskTellsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, none := time.Now(), time.Time{}
		g := paceline.NewGate(frontend.Several(2, time.Minute, 1))
		asks := func(cost limit.Cost, want time.Time) {
			t.Helper()
			if at, ahead, err := g.Ask(cost); !at.Equal(want) || ahead != 0 || err != nil {
				t.Errorf("%v: %v, %d ahead, %v, want %v", cost, at, ahead, err, want)
			}
		}
		asks(limit.One, none)
		open := must(g.Wait(t.Context(), limit.One))
		asks(limit.One, none)
		open.Settle(accepted)
		asks(limit.One, none)
		must(g.Wait(t.Context(), limit.One)).Settle(accepted)
		asks(limit.One, began.Add(time.Minute))
		asks(limit.Cost{limit.Tokens: 5}, none)
		var e *paceline.WaitError
		if at, ahead, err := g.Ask(limit.Cost{limit.Tokens: 6}); !at.IsZero() || ahead != 0 || !errors.As(err, &e) || e.Reason != paceline.ErrNever || e.Rule.Name != "words" {
			t.Errorf("%v, %d ahead, %v", at, ahead, err)
		}
	})
}

// Each of many waiting requests is counted, though the lock is released in between. Only so many
// lanes have an estimate of their last, those that wait the longest. The lock is not held for longer than that takes.
func TestSnapshotOfManyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		m := j.Limit(paceline.LimitConfig{Limiter: limit.Named("hour", limit.MustRolling(1, time.Hour)), Whose: observe.Whose{Host: "h"}})
		ctx, cancel := context.WithCancel(t.Context())
		must(j.Lane(paceline.LaneConfig{Client: "first"}, []*paceline.Limit{m}).Wait(ctx, limit.One)).Settle(accepted)
		const many = 70
		var lanes []*paceline.Lane
		for i := range many {
			lanes = append(lanes, j.Lane(paceline.LaneConfig{Client: fmt.Sprint(i)}, []*paceline.Limit{m}))
		}
		for i := range lanes { // the last lane waits the longest
			go lanes[many-1-i].Wait(ctx, limit.One)
			time.Sleep(time.Millisecond)
		}
		s := j.Snapshot()
		told := 0
		for _, c := range s.Clients {
			if c.LastGoes.IsZero() {
				continue
			}
			if told++; c.LongestWait <= (many-64)*time.Millisecond {
				t.Errorf("%s waits for %v, and its last is told", c.Name, c.LongestWait)
			}
		}
		if s.Waiting != many || len(s.Clients) != many+1 || len(s.Limits) != 1 || s.Limits[0].Waiting != many || told != 64 {
			t.Errorf("%d of %d wait, %d clients, limits %+v; of %d it is told when their last goes", s.Waiting, many, len(s.Clients), s.Limits, told)
		}
		cancel()
	})
}

// The limit of a wait is known from the first moment on, however short the wait is.
func TestTheFirstWaitHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(limit.Named("gap", must(limit.NewSpacing(2*ms))))
		for range 2 {
			must(g.Wait(t.Context(), limit.One)).Settle(accepted)
		}
		for _, w := range g.Snapshot().Waits {
			if w.Limit != "" && w.Limit != "gap" || w.Count != 1 {
				t.Errorf("%d waited for %q", w.Count, w.Limit)
			}
		}
	})
}

// A request that waits for a limit without a known usage is in no other limit's line.
func TestWhoWaitsForWhatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		wide := j.Limit(paceline.LimitConfig{Limiter: limit.Named("wide", limit.MustRolling(100, time.Minute))})
		mute := j.Limit(paceline.LimitConfig{Limiter: struct{ limit.Limiter }{limit.MustRolling(1, time.Minute)}})
		lane := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{wide, mute})
		ctx, cancel := context.WithCancel(t.Context())
		must(lane.Wait(ctx, limit.One))
		for range 2 {
			go lane.Wait(ctx, limit.One)
		}
		synctest.Wait()
		s := j.Snapshot()
		frontend.Shows(t, &s, "", "wide", 0, 0, time.Time{}, false)
		if s.Waiting != 2 || len(s.Limits) != 1 {
			t.Errorf("%+v", s)
		}
		cancel()
	})
}

// Measuring one wait, for its limits and rounds, changes nothing in a Snapshot's counts of the
// others.
func TestWaitsOfWhoDoesNotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		second := j.Limit(paceline.LimitConfig{Limiter: limit.Named("second", limit.MustRolling(1, time.Second))})
		minute := j.Limit(paceline.LimitConfig{Limiter: limit.Named("minute", limit.MustRolling(4, time.Minute))})
		a := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{second, minute})
		for i := range 6 {
			if i == 1 || i == 2 {
				p, s, err := a.WaitWithStats(t.Context(), limit.One)
				try(t, err)
				if len(s.Limits) != 1 || s.Limits[0].Limit != "second" {
					t.Errorf("the wait was %+v", s)
				}
				p.Settle(accepted)
				continue
			}
			must(a.Wait(t.Context(), limit.One)).Settle(accepted)
		}
		count := map[string]int64{}
		for _, w := range j.Snapshot().Waits {
			count[w.Limit] = w.Count
		}
		if count["second"] != 4 || count["minute"] != 1 || count[""] != 1 || len(count) != 3 {
			t.Errorf("waits were for %v", count)
		}
	})
}

// Of two that wait for the same hour the second then waits for a gap of milliseconds, and that is what its wait was for.
func TestAShortWaitAfterALongOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		hour := j.Limit(paceline.LimitConfig{Limiter: limit.Named("hour", limit.MustRolling(2, time.Hour))})
		gap := j.Limit(paceline.LimitConfig{Limiter: limit.Named("gap", must(limit.NewSpacing(3*ms)))})
		before := j.Lane(paceline.LaneConfig{Client: "before"}, []*paceline.Limit{hour})
		for range 2 {
			must(before.Wait(t.Context(), limit.One)).Settle(accepted)
		}
		a := j.Lane(paceline.LaneConfig{Client: "c"}, []*paceline.Limit{gap, hour})
		for range 2 {
			go func() { must(a.Wait(t.Context(), limit.One)).Settle(accepted) }()
		}
		time.Sleep(2 * time.Hour)
		for _, w := range j.Snapshot().Waits {
			if w.Client == "c" && w.Count != map[string]int64{"hour": 1, "gap": 1}[w.Limit] {
				t.Errorf("%d waited for %q", w.Count, w.Limit)
			}
		}
	})
}
