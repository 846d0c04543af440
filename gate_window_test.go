package paceline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
)

// TestNeverMoreInAnyWindow has 256 goroutines take all that one Gate gives, in real time. The server is a list of when
// their requests arrived, by a clock that it reads itself: after the Permit, before its Settle. No closed window of
// these may hold more than the limit, however the goroutines are held up in between.
func TestNeverMoreInAnyWindow(t *testing.T) {
	const goroutines, n, window, enough = 256, 100, 20 * ms, 500
	for _, c := range []struct {
		name    string
		precise bool
		// tries are out of 4; who does not try waits.
		tries int
	}{
		{"all wait", false, 0},
		{"all wait, precise", true, 0},
		{"all try", false, 4},
		{"half try, half wait", false, 2},
		{"half try, half wait, precise", true, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Margin 1: the server's windows are closed, and its clock is ours.
			r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: 1})
			try(t, err)
			g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: r, Precise: c.precise})
			try(t, err)
			var server struct {
				mu       sync.Mutex
				arrivals []time.Duration
			}
			base := time.Now()
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			var wg sync.WaitGroup
			for seed := range uint64(goroutines) {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(seed, 17))
					for ctx.Err() == nil {
						var p paceline.Permit
						var ok bool
						if rng.IntN(4) < c.tries {
							p, _, ok = g.TryWait(limit.One)
						} else {
							var err error
							p, err = g.Wait(ctx, limit.One)
							ok = err == nil
						}
						if !ok {
							runtime.Gosched()
							continue
						}
						if rng.IntN(16) == 0 {
							p.Settle(limit.Outcome{Result: limit.Unsent})
							continue
						}
						if rng.IntN(4) == 0 {
							runtime.Gosched() // the path
						}
						server.mu.Lock()
						if server.arrivals = append(server.arrivals, time.Since(base)); len(server.arrivals) == enough {
							cancel()
						}
						server.mu.Unlock()
						p.Settle(accepted)
					}
				})
			}
			wg.Wait()
			at := server.arrivals
			if !slices.IsSorted(at) {
				t.Fatal("the server's clock went back")
			}
			most, oldest := 0, 0
			for i, a := range at {
				for a-at[oldest] > window {
					oldest++
				}
				most = max(most, i-oldest+1)
			}
			told := fmt.Sprintf("%d arrivals in %v, at most %d in %v", len(at), time.Since(base), most, window)
			if most > n {
				t.Errorf("%s: the limit is %d", told, n)
			}
			if g.Waiting() != 0 || g.Armed() || g.Spinning() {
				t.Errorf("at the end %d wait, timer set: %v, spinning: %v", g.Waiting(), g.Armed(), g.Spinning())
			}
			t.Log(told)
		})
	}
}
