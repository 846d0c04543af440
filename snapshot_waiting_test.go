package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// several is a limiter of three: named, of requests and of tokens, and how many may be in flight.
func several(requests int64, window time.Duration, open int64) limit.Limiter {
	return limit.NewAll(
		limit.Named("day", limit.MustRolling(100, 24*time.Hour)),
		limit.Named("few", must(limit.NewRolling(limit.RollingConfig{Limit: requests, Window: window, Margin: -1}))),
		limit.Named("words", must(limit.NewRolling(limit.RollingConfig{Limit: 5, Window: window, Margin: -1, Unit: limit.Tokens}))),
		limit.Named("open", must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: open}))),
	)
}

// shown checks what a Snapshot has of one of the limits of whose key.
func shown(t *testing.T, s *paceline.Snapshot, key, name string, waiting int, share float64, next time.Time, unknown bool) {
	t.Helper()
	for _, l := range s.Limits {
		if l.Key != key || l.Name != name {
			continue
		}
		if l.Waiting != waiting || l.Share < share-1e-9 || l.Share > share+1e-9 || !l.Next.Equal(next) || l.NextUnknown != unknown {
			t.Errorf("%s %s: %d wait, a share of %v is used, next at %v, unknown %v; want %d, %v, %v, %v", key, name, l.Waiting, l.Share, l.Next, l.NextUnknown, waiting, share, next, unknown)
		}
		return
	}
	t.Errorf("no %s %s in %+v", key, name, s.Limits)
}

// Of several limits in one, each says when one more would fit there, be it not known; and those who wait are at the one that they wait for.
func TestSnapshotOfWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := time.Time{}
		g := paceline.NewGate(several(3, time.Minute, 4))
		words := limit.Cost{limit.Requests: 1, limit.Tokens: 2}
		must(g.Wait(t.Context(), words)).Settle(accepted)
		must(g.Wait(t.Context(), words)).Settle(accepted)
		open := must(g.Wait(t.Context(), limit.Cost{limit.Other: 1}))
		s := g.Snapshot()
		shown(t, &s, "", "few", 0, 2./3, none, false)
		shown(t, &s, "", "words", 0, 4./5, none, false) // one more would fit, though not two
		shown(t, &s, "", "open", 0, 1./4, none, false)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go g.Wait(ctx, words)
		}
		synctest.Wait()
		s = g.Snapshot()
		shown(t, &s, "", "day", 0, 2./100, none, false)
		shown(t, &s, "", "few", 0, 2./3, none, false)
		shown(t, &s, "", "words", 2, 4./5, none, false)
		shown(t, &s, "", "open", 0, 1./4, none, false)
		open.Settle(accepted)
		cancel()
	})
}

// Of a Pool, those who wait are at the limit of the key that is free first; each key says when one more would go.
func TestPoolSnapshotOfWhatIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, none := time.Now(), time.Time{}
		p := must(paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{Name: "a", Limiter: several(1, time.Minute, 2)}, {Name: "b", Limiter: several(1, 30*time.Second, 1)}},
			Send: func(_ context.Context, a dispatch.Attempt) dispatch.Answer {
				if a.Key == 1 {
					time.Sleep(20 * time.Second)
				}
				return dispatch.Answer{Outcome: accepted}
			},
		}))
		for i := range 5 {
			try(t, p.Submit(t.Context(), queue.Request{ID: fmt.Sprint(i), Cost: limit.Cost{limit.Requests: 1, limit.Tokens: 4}}))
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		time.Sleep(5 * time.Second)
		s := p.Snapshot()
		shown(t, &s, "a", "few", 3, 1, began.Add(time.Minute), false) // nobody knows of the other when
		shown(t, &s, "b", "few", 0, 0, none, true)                    // it counts from the answer on
		shown(t, &s, "b", "open", 0, 1, none, true)
		time.Sleep(20 * time.Second)
		s = p.Snapshot()
		shown(t, &s, "a", "day", 0, 1./100, began.Add(time.Minute), false)
		shown(t, &s, "a", "few", 0, 1, began.Add(time.Minute), false)
		shown(t, &s, "a", "words", 0, 4./5, began.Add(time.Minute), false)
		shown(t, &s, "a", "open", 0, 0, began.Add(time.Minute), false)
		shown(t, &s, "b", "few", 3, 1, began.Add(50*time.Second), false)
		shown(t, &s, "b", "open", 0, 0, began.Add(50*time.Second), false)
		cancel()
		<-done
	})
}

// Of a Pool's limits each says when a request with one of what it counts would go: of words one more goes where two do not.
func TestPoolSnapshotOfOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, none := time.Now(), time.Time{}
		p := must(paceline.NewPool(paceline.PoolConfig{
			Keys: []dispatch.Key{{Name: "a", Limiter: several(9, time.Minute, 9)}},
			Send: func(context.Context, dispatch.Attempt) dispatch.Answer { return dispatch.Answer{Outcome: accepted} },
		}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Run(ctx) }()
		for i, words := range []int64{4, 1} {
			try(t, p.Submit(t.Context(), queue.Request{ID: fmt.Sprint(i), Cost: limit.Cost{limit.Requests: 1, limit.Tokens: words}}))
			synctest.Wait()
			s, next := p.Snapshot(), []time.Time{none, began.Add(time.Minute)}[i]
			shown(t, &s, "a", "words", 0, []float64{4. / 5, 1}[i], next, false)
			shown(t, &s, "a", "few", 0, float64(i+1)/9, none, false)
		}
		cancel()
		<-done
	})
}

// Who asks when it could go hears an instant where time tells, and none where it could go at once or only an answer tells.
func TestAskTellsWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, none := time.Now(), time.Time{}
		g := paceline.NewGate(several(2, time.Minute, 1))
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
		if at, ahead, err := g.Ask(limit.Cost{limit.Tokens: 6}); !at.IsZero() || ahead != 0 || !errors.As(err, &e) || e.Reason != paceline.ErrNever || e.Bound.Name != "words" {
			t.Errorf("%v, %d ahead, %v", at, ahead, err)
		}
	})
}

// Of many that wait each is counted, though the lock is let go on the way and it is guessed of only so many when their last goes: the
// lock is not held for longer than that takes.
func TestSnapshotOfManyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := junction(t, paceline.JunctionConfig{})
		m := j.Limit(paceline.LimitConfig{Limiter: limit.Named("hour", limit.MustRolling(1, time.Hour)), Whose: paceline.Whose{Host: "h"}})
		ctx, cancel := context.WithCancel(t.Context())
		must(j.Lane(paceline.LaneConfig{Client: "first"}, []*paceline.Limit{m}).Wait(ctx, limit.One)).Settle(accepted)
		const many = 70
		for i := range many {
			go j.Lane(paceline.LaneConfig{Client: fmt.Sprint(i)}, []*paceline.Limit{m}).Wait(ctx, limit.One)
		}
		synctest.Wait()
		s := j.Snapshot()
		told := 0
		for _, c := range s.Clients {
			if !c.LastGoes.IsZero() {
				told++
			}
		}
		if s.Waiting != many || len(s.Clients) != many+1 || len(s.Limits) != 1 || s.Limits[0].Waiting != many || told != 64 {
			t.Errorf("%d of %d wait, %d clients, limits %+v; of %d it is told when their last goes", s.Waiting, many, len(s.Clients), s.Limits, told)
		}
		cancel()
	})
}

// What was waited for is known from the first moment on, however short the wait is.
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

// Who waits for a limit that cannot say how much of it is used is in no other's line.
func TestWhoWaitsForWhatSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := junction(t, paceline.JunctionConfig{})
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
		shown(t, &s, "", "wide", 0, 0, time.Time{}, false)
		if s.Waiting != 2 || len(s.Limits) != 1 {
			t.Errorf("%+v", s)
		}
		cancel()
	})
}

// Who wants to know what a wait was for, and how often, changes nothing in what a Snapshot counts of those who do not.
func TestWaitsOfWhoDoesNotAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := junction(t, paceline.JunctionConfig{})
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
		j := junction(t, paceline.JunctionConfig{})
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
