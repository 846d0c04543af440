package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// In a lane without a ticket, a driver calls Try before it makes a ticket. That saves work and changes
// nothing: each request goes when it goes by Enter alone, in the same order.
func TestTryGoesAsEnter(t *testing.T) {
	for seed := range uint64(300) {
		tried, entered := history(t, seed, true), history(t, seed, false)
		if !slices.Equal(tried, entered) {
			n := 0
			for ; n < min(len(tried), len(entered)) && tried[n] == entered[n]; n++ {
			}
			t.Fatalf("seed %d: from the %d-th on, %q go, and %q by Enter alone", seed, n, tried[n:min(n+5, len(tried))],
				entered[n:min(n+5, len(entered))])
		}
	}
}

// history lets requests come at random to lanes of one or two limits, some of them fair, for 400 ms. It
// returns who went, and when. Lanes are mostly empty, and each limit is often full.
func history(t *testing.T, seed uint64, try bool) (went []string) {
	rng := rand.New(rand.NewPCG(seed, 1))
	l := scheduler.New(scheduler.Config{})
	limits := make([]*scheduler.Limit, 3)
	for i := range limits {
		var m limit.Limiter = slots(t, int64(rng.IntN(3)+1))
		if rng.IntN(2) == 0 {
			m = rolling(t, int64(rng.IntN(3)+1), 20*time.Millisecond)
		}
		limits[i] = l.Limit(m, scheduler.Sharing{Fair: rng.IntN(2) == 0})
	}
	lanes := make([]*scheduler.Lane, 4)
	for i := range lanes {
		way := []*scheduler.Limit{limits[rng.IntN(3)]}
		if other := limits[rng.IntN(3)]; other != way[0] && rng.IntN(2) == 0 {
			way = append(way, other)
		}
		lanes[i] = l.Lane(scheduler.LaneConfig{Weight: float64(rng.IntN(3) + 1)}, way)
	}
	var open []scheduler.Pass
	goes := func(now mono.Time, name string, p scheduler.Pass) {
		went, open = append(went, fmt.Sprint(name, " at ", now)), append(open, p)
	}
	drain := func(now mono.Time) {
		for k := l.Next(now); k != nil; k = l.Next(now) {
			goes(now, k.Of.(string), k.Pass)
		}
	}
	for n, now := 0, mono.Time(0); now < 400*ms; now += ms {
		for range rng.IntN(3) {
			lane, name := lanes[rng.IntN(len(lanes))], fmt.Sprint(n)
			n++
			if try && lane.Len() == 0 {
				if p, at := l.Try(now, lane, &limit.One, nil); at <= now {
					goes(now, name, p)
					drain(now)
					continue
				}
			}
			if k := ticket(name, now); l.Enter(now, lane, k) == scheduler.Granted {
				goes(now, name, k.Pass)
			}
			drain(now)
		}
		for range rng.IntN(3) {
			if len(open) > 0 {
				k := rng.IntN(len(open))
				l.Settle(now, open[k], &accepted)
				open = slices.Delete(open, k, k+1)
				drain(now)
			}
		}
		drain(now)
	}
	return went
}
