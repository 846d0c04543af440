package paceline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// TestStress runs everything at once, in real time, for the race detector.
func TestStress(t *testing.T) {
	for _, precise := range []bool{false, true} {
		t.Run(fmt.Sprintf("precise=%v", precise), func(t *testing.T) { stress(t, precise) })
	}
}

func stress(t *testing.T, precise bool) {
	const inFlight = 3
	c := concurrency(t, inFlight)
	r, err := limit.NewRolling(limit.RollingConfig{Limit: 50, Window: ms, Arrivals: limit.Arrivals{Late: -1}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: limit.NewAll(r, c), Precise: precise})
	if err != nil {
		t.Fatal(err)
	}
	var open, most, sent, gaveUp, refused atomic.Int64
	use := func(p paceline.Permit) {
		n := open.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		runtime.Gosched()
		open.Add(-1)
		sent.Add(1)
		p.Settle(accepted)
	}
	var wg sync.WaitGroup
	end := time.Now().Add(150 * ms)
	for seed := range uint64(16) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for time.Now().Before(end) {
				switch rng.IntN(4) {
				case 0:
					if p, _, ok := g.TryWait(limit.One); ok {
						use(p)
					} else {
						refused.Add(1)
						runtime.Gosched()
					}
				default:
					ctx, cancel := context.WithTimeout(bg, time.Duration(rng.IntN(300))*time.Microsecond)
					if rng.IntN(3) == 0 {
						go cancel()
					}
					p, err := g.Wait(ctx, limit.Cost{limit.Requests: 1 + rng.Int64N(10)})
					cancel()
					if err == nil {
						use(p)
					} else {
						gaveUp.Add(1)
					}
				}
			}
		})
	}
	wg.Go(func() {
		for n := int64(1); time.Now().Before(end); n = n%inFlight + 1 {
			g.Update(func(now mono.Time) {
				if err := c.SetLimit(now, n); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(200 * time.Microsecond)
		}
	})
	wg.Wait()
	t.Logf("%d sent, %d gave up, %d refused", sent.Load(), gaveUp.Load(), refused.Load())
	if most.Load() > inFlight || sent.Load() == 0 || gaveUp.Load() == 0 {
		t.Errorf("%d in flight at most, want %d; %d sent, %d gave up", most.Load(), inFlight, sent.Load(), gaveUp.Load())
	}
	if g.Waiting() != 0 || g.Armed() {
		t.Errorf("%d still wait; timer set: %v", g.Waiting(), g.Armed())
	}
	// Nothing leaked: the whole of both limits is there.
	g.Update(func(now mono.Time) {
		if err := c.SetLimit(now, 1); err != nil {
			t.Error(err)
		}
	})
	p, err := g.Wait(bg, limit.Cost{limit.Requests: 50})
	if err != nil {
		t.Fatal(err)
	}
	p.Settle(accepted)
}
