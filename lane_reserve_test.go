package paceline_test

import (
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
