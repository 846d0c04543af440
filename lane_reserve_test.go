package paceline_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// People beside a batch of goroutines that leaves a quarter free do not wait. The batch still has the
// rest. A bound of its own, here in flight, leaves nothing.
func TestReserveOfAClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		m := j.Limit(paceline.LimitConfig{Limiter: mustRolling(t, 20, time.Second), Fair: true})
		four, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
		if err != nil {
			t.Fatal(err)
		}
		own := j.Limit(paceline.LimitConfig{Limiter: four, Fair: true, Own: true})
		batch := j.Lane(paceline.LaneConfig{Share: j.Class(paceline.ClassConfig{Reserve: 0.25})}, []*paceline.Limit{own, m})
		people := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{m})
		end := time.Now().Add(time.Minute)
		var wg sync.WaitGroup
		sent := make([]int, 8)
		for i := range sent {
			wg.Go(func() {
				for ; time.Now().Before(end); sent[i]++ {
					if err := batch.Do(t.Context(), limit.One, func() error { time.Sleep(10 * time.Millisecond); return nil }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var waits []time.Duration
		for time.Now().Before(end) {
			time.Sleep(500 * time.Millisecond)
			p, s, err := people.WaitWithStats(t.Context(), limit.One)
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, s.Waited)
			p.Settle(limit.Outcome{Result: limit.Accepted})
		}
		wg.Wait()
		if longest := slices.Max(waits); longest > 0 {
			t.Errorf("people wait up to %v", longest)
		}
		all := 0
		for _, n := range sent {
			all += n
		}
		if least := int(0.95 * (0.75*20*60 - float64(len(waits)))); all < least || all > 15*61 {
			t.Errorf("the batch sent %d, want at least %d", all, least)
		}
	})
}

// What a class leaves free is named: where its goroutines waited, and in a Snapshot. Of two rules it is the
// one that has too little left. A wait for the limit itself is none.
func TestReserveIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		m := j.Limit(paceline.LimitConfig{Limiter: limit.NewAll(limit.Named("hour", mustRolling(t, 1000, time.Hour)), limit.Named("minute", mustRolling(t, 20, time.Minute))), Fair: true})
		batch := j.Lane(paceline.LaneConfig{Client: "batch", Reserve: 0.25}, []*paceline.Limit{m})
		people := j.Lane(paceline.LaneConfig{}, []*paceline.Limit{m})
		waited := func(a *paceline.Lane) string {
			_, s, err := a.WaitWithStats(t.Context(), limit.One)
			if err != nil {
				t.Fatal(err)
			}
			return s.Reason()
		}
		for range 15 {
			waited(batch)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go batch.Wait(ctx, limit.One)
		synctest.Wait()
		for _, l := range j.Snapshot().Limits {
			if n := map[string]int{"hour": 0, "minute": 1}[l.Name]; l.Waiting != n || l.WaitingReserve != n || !l.Next.IsZero() {
				t.Errorf("%+v", l)
			}
		}
		cancel()
		synctest.Wait()
		for range 5 {
			if why := waited(people); why != "" {
				t.Errorf("people waited for %s", why)
			}
		}
		go batch.Wait(t.Context(), limit.One)
		synctest.Wait()
		for _, l := range j.Snapshot().Limits {
			if l.WaitingReserve != 0 || l.Waiting != 0 && l.Name != "minute" {
				t.Errorf("for the limit itself: %+v", l)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		j := group(t, paceline.GroupConfig{})
		m := j.Limit(paceline.LimitConfig{Limiter: limit.Named("20/m", mustRolling(t, 20, time.Minute))})
		batch := j.Lane(paceline.LaneConfig{Reserve: 0.25}, []*paceline.Limit{m})
		for range 15 {
			must(batch.Wait(t.Context(), limit.One)).Settle(accepted)
		}
		if _, s, err := batch.WaitWithStats(t.Context(), limit.One); err != nil || s.Reason() != "reserve of 20/m" || len(s.Limits) != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
