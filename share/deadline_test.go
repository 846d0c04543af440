package share_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// A request behind a line that the whole limit cannot send before its deadline fails at once. Nobody
// goes before the instant that Ask foresaw, whatever the other processes want or give back.
func TestDeadlineBehindALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, own := newMemory(), share.Config{Name: "it", Own: twenty}
		own.Store = store
		if made, err := share.Begin(context.Background(), own); err != nil || !made {
			t.Fatal(made, err)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		foreseen := 0
		one := func(g *paceline.Gate) {
			asked, _, _ := g.Ask(limit.One)
			p, err := g.Wait(context.Background(), limit.One)
			if err != nil {
				t.Error(err)
				return
			}
			if now := time.Now(); now.Before(asked) {
				t.Errorf("it went %v before the instant that Ask foresaw", asked.Sub(now))
			}
			mu.Lock()
			defer mu.Unlock()
			if !asked.IsZero() {
				foreseen++
			}
			p.Settle(limit.Outcome{Result: limit.Accepted})
		}
		others, otherGate := member(t, own)
		m, gate := member(t, own)
		for range 15 { // it holds grants that it gives back
			one(otherGate)
		}
		one(gate)
		for range 100 {
			all.Go(func() { one(gate) })
			all.Go(func() { time.Sleep(time.Second / 2); one(gate) })
		}
		for range 10 {
			all.Go(func() { one(otherGate) })
		}
		synctest.Wait()
		for _, wait := range []time.Duration{time.Second, 3900 * time.Millisecond} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			_, err := gate.Wait(ctx, limit.One)
			cancel()
			var e *paceline.WaitError
			if !errors.As(err, &e) || e.Waited != 0 || !time.Now().Equal(began) || e.Ready.Sub(began) < 3900*time.Millisecond || e.Ready.Sub(began) > 6*time.Second {
				t.Errorf("behind 100 with a deadline in %v: after %v %v, want at once, and 4 to 6 s", wait, time.Since(began), err)
			}
		}
		time.Sleep(time.Second)
		others.Close(context.Background())
		all.Wait()
		if foreseen < 100 {
			t.Errorf("Ask foresaw %d", foreseen)
		}
		m.Close(context.Background())
	})
}
