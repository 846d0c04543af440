package transport_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// People beside a client in bulk that leaves a quarter free do not wait, and it has the rest. Its own
// limit is used whole, here all of its six in flight.
func TestClientReserves(t *testing.T) {
	for _, reserve := range []float64{0, 0.25} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(10*time.Millisecond, ok)
			six := func() limit.Limiter {
				l, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 6})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			tr := mustNew(t, transport.Config{
				Base: b, Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope != "key" {
						return nil
					}
					return rolling(t, 20, time.Second, limit.Requests)
				},
				Client: clients(map[string]transport.Client{"bulk": {Reserve: reserve, Limit: six}, "ann": {}}),
			})
			end := time.Now().Add(time.Minute)
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() {
					for time.Now().Before(end) {
						do(t, tr, get(t, "http://a.test/", "Client", "bulk"))
					}
				})
			}
			var waits []time.Duration
			time.Sleep(5 * time.Second)
			for time.Now().Before(end) {
				came := time.Now()
				do(t, tr, get(t, "http://a.test/", "Client", "ann"))
				waits = append(waits, time.Since(came)-10*time.Millisecond)
				time.Sleep(500 * time.Millisecond)
			}
			wg.Wait()
			slices.Sort(waits)
			median, longest := waits[len(waits)/2], waits[len(waits)-1]
			t.Logf("reserve %v: median %v, longest %v", reserve, median, longest)
			if reserve == 0 && median < 20*time.Millisecond || reserve > 0 && longest > 0 {
				t.Errorf("reserve %v: people wait %v in the middle, and up to %v", reserve, median, longest)
			}
			if n, least := len(b.at()), 0.95*0.75*20*60; float64(n) < least {
				t.Errorf("reserve %v: %d were sent, want at least %.0f", reserve, n, least)
			}
		})
	}
}

// sendsInASecond has a Transport send as much as it may, and returns how much that was in each second.
func sendsInASecond(t *testing.T, tr *transport.Transport, b *base, seconds int) []int {
	t.Helper()
	var wg sync.WaitGroup
	began, end := len(b.at()), time.Now().Add(time.Duration(seconds)*time.Second)
	for range 60 {
		wg.Go(func() {
			for time.Now().Before(end) {
				if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	went := make([]int, seconds)
	first := b.at()[began]
	for _, at := range b.at()[began:] {
		if i := int((at - first) / time.Second); i < seconds {
			went[i]++
		}
	}
	return went
}

// Requests that wait go as soon as With lets more of a limit be used, and not when their old turn comes. This is so for
// limits of partitions and for the one that all requests share.
func TestMoreUseIsUsedAtOnce(t *testing.T) {
	own := func(c *transport.Config, l limit.Limiter) {
		c.Limit = func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.IP {
				return nil
			}
			return l
		}
	}
	shared := func(c *transport.Config, l limit.Limiter) { c.Limiter = l }
	for _, c := range []struct {
		name string
		was  transport.Config
		give func(c *transport.Config, l limit.Limiter)
	}{
		{"half of a partition's", transport.Config{Use: 0.5}, own}, {"half of the shared one", transport.Config{Use: 0.5}, shared},
		{"a partition's rises", transport.Config{Ramp: time.Hour}, own}, {"the shared one rises", transport.Config{Ramp: time.Hour}, shared},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, ok)
			c.was.Base = b
			c.give(&c.was, rolling(t, 10, time.Hour, limit.Requests))
			tr := mustNew(t, c.was)
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			}
			time.Sleep(time.Minute)
			before := len(b.at())
			now := c.was
			now.Use, now.Ramp, now.Limiter = 1, 0, nil
			if _, err := tr.With(now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if went := b.at(); before > 5 || len(went) != 10 || went[9] != time.Minute {
				t.Errorf("%s: %d of 10 went before, then %v; want all by a minute", c.name, before, went)
			}
			all.Wait()
		})
	}
}

// A part of the limit is used, also after With, and the load rises slowly at the start and after a
// refusal that says that it rose too quickly.
func TestUseAndRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var surged atomic.Bool
		b := newBase(0, func(int, *http.Request) *http.Response {
			if surged.CompareAndSwap(true, false) {
				const why = `{"error":{"message":"Too quickly.","code":"limit_burst_rate"}}`
				return reply(429, why, "Retry-After", "1")
			}
			return reply(200, "fine")
		})
		c := transport.Config{Base: b, Use: 0.5, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != "key" {
				return nil
			}
			return rolling(t, 40, time.Second, limit.Requests)
		}}
		tr := mustNew(t, c)
		if went := sendsInASecond(t, tr, b, 4); slices.Max(went) != 20 || slices.Min(went) != 20 {
			t.Errorf("with half of 40 a second: %v", went)
		}
		c.Use = 0
		tr, err := tr.With(c)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if went := sendsInASecond(t, tr, b, 4); slices.Max(went) != 40 || slices.Min(went) != 40 {
			t.Errorf("with all of it: %v", went)
		}
		surged.Store(true)
		went := sendsInASecond(t, tr, b, 62)
		for i, n := range went {
			if most := (i + 2) * 40 / 60; n > max(most, 1) && i > 1 && i < 60 {
				t.Errorf("second %d after a load that rose too quickly: %d, more than %d (%v)", i, n, most, went)
				break
			}
		}
		if went[61] < 39 {
			t.Errorf("a minute later %d go", went[61])
		}
		c.Ramp = 4 * time.Second
		if tr, err = tr.With(c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if went := sendsInASecond(t, tr, b, 6); went[0] > 10 || went[1] > 20 || went[2] > 30 || went[5] < 39 {
			t.Errorf("with a ramp of 4 s: %v", went)
		}
	})
	for want, c := range map[string]transport.Config{"Use 2": {Use: 2}, "Ramp -1s": {Ramp: -time.Second}} {
		if _, err := transport.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
