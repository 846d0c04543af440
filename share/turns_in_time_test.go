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
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share"
)

// take waits for a permit, and returns it and how long that took.
func take(t *testing.T, gate *paceline.Gate) (paceline.Permit, time.Duration) {
	began := time.Now()
	p, err := gate.Wait(t.Context(), limit.One)
	if err != nil {
		t.Error(err)
	}
	return p, time.Since(began)
}

// Demand that comes while the Member sleeps until a later turn, since a request is in flight, is
// served by a turn at once.
func TestDemandWakesTheMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, gate := member(t, share.Config{Store: newMemory(), Name: "it", Own: twenty})
		defer m.Close(context.Background())
		long, _ := take(t, gate)
		for i := range 20 {
			time.Sleep(5*time.Second + 130*ms)
			p, waited := take(t, gate)
			p.Settle(limit.Outcome{Result: limit.Accepted})
			if waited > 20*ms {
				t.Errorf("request %d waited for %v, and a turn takes 6 ms", i, waited)
			}
		}
		long.Settle(limit.Outcome{Result: limit.Accepted})
	})
}

// Requests that come one by one, well within the limit, find their grants there, although none of
// them is answered yet.
func TestGrantsAreFetchedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := func() limit.Limiter { return limit.MustRolling(400, 2*time.Second) }
		m, gate := member(t, share.Config{Store: newMemory(), Name: "it", Own: own})
		defer m.Close(context.Background())
		var all []paceline.Permit
		for i := range 100 {
			time.Sleep(70 * ms)
			p, waited := take(t, gate)
			if all = append(all, p); waited > 0 && i >= 10 {
				t.Errorf("request %d waited for %v", i, waited)
			}
		}
		for _, p := range all {
			p.Settle(limit.Outcome{Result: limit.Accepted})
		}
	})
}

// A request counts from when it went by the node's clock, whatever the driver's says: one may be hours ahead of the other.
func TestClocksOfDriverAndNode(t *testing.T) {
	for _, apart := range []time.Duration{-time.Hour, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			m, err := share.New(share.Config{Store: newMemory(), Name: "it", Own: twenty})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close(context.Background())
			m.Attach(paceline.NewGate(m))
			srv, base := newServer(20, time.Second), time.Now().Add(-2*time.Hour)
			now := func() mono.Time { return mono.Of(base, time.Now().Add(apart)) }
			for n := range uint64(100) {
				for m.Ready(now(), limit.One) > now() {
					time.Sleep(10 * ms)
				}
				s := limit.Sent{At: now(), Number: n + 1, Cost: limit.One}
				m.Admit(&s)
				if !m.Fresh(&s) {
					t.Fatalf("%v apart, request %d may not be written when it goes", apart, n)
				}
				srv.request()
				m.Settle(now(), &s, &limit.Outcome{Result: limit.Accepted})
			}
			if srv.refused > 0 {
				t.Errorf("%v apart, %d of 100 are refused", apart, srv.refused)
			}
		})
	}
}

// A turn fetches for all that wait at the driver, not for the first of them alone.
func TestATurnFetchesForAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		var gates []*paceline.Gate
		for range 2 {
			m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
			defer m.Close(context.Background())
			p, _ := take(t, gate)
			p.Settle(limit.Outcome{Result: limit.Accepted})
			gates = append(gates, gate)
		}
		for range 5 {
			time.Sleep(10 * time.Second)
			began := time.Now()
			var all sync.WaitGroup
			for range 15 {
				all.Go(func() {
					p, _ := take(t, gates[0])
					p.Settle(limit.Outcome{Result: limit.Accepted})
				})
			}
			if all.Wait(); time.Since(began) > 350*ms { // two turns, a Poll apart
				t.Errorf("the last of 15 that were there together went after %v", time.Since(began))
			}
		}
	})
}

// Weights divide what is not enough for all. A Least is had nevertheless.
func TestWeightAndLeast(t *testing.T) {
	for _, c := range []struct {
		first, second share.Config
		part          float64 // of the first
	}{
		{share.Config{Weight: 1}, share.Config{Weight: 3}, 0.25},
		{share.Config{Weight: 0.001, Least: 0.5}, share.Config{}, 0.5},
		{share.Config{Weight: 0.001}, share.Config{}, 0.001},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, s := newMemory(), newServer(20, time.Second)
			var all sync.WaitGroup
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var counts [2]int
			for i, c := range []share.Config{c.first, c.second} {
				c.Store, c.Name, c.Own = store, "it", twenty
				m, gate := member(t, c)
				defer m.Close(context.Background())
				send(ctx, &all, gate, s, 30, &counts[i])
			}
			all.Wait()
			if got := float64(counts[0]) / float64(s.sent); got < c.part-0.05 || got > c.part+0.05 || s.refused > 0 {
				t.Errorf("%v and %v: the first sent %.2f of %d, and %d were refused", c.first.Weight, c.second.Weight, got, s.sent, s.refused)
			}
		})
	}
}

// Close reports that the store could not be told, and by which error.
func TestCloseWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, gone := newMemory(), errors.New("the store is away")
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		take(t, gate)
		store.set(func() { store.away = gone })
		if err := m.Close(t.Context()); !errors.Is(err, gone) {
			t.Errorf("Close says %v", err)
		}
	})
}
