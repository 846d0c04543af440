package transport_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// A joining key's usage of a long window counts for both keys, even if a short window beside it has
// no usage any more.
func TestJoiningForgetsNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{"a": "org", "b": "org"}, sent: map[string][]time.Duration{}, begin: time.Now()}
		named := o.of
		o.of = map[string]string{}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return limit.NewAll(rolling(t, 2, time.Second, limit.Requests), rolling(t, 6, time.Hour, limit.Requests))
		}})
		var all sync.WaitGroup
		send := func(key string) {
			all.Go(func() { do(t, tr, get(t, "https://api.openai.com/v1/models", "Authorization", "Bearer "+key)) })
			synctest.Wait()
		}
		for range 4 {
			send("b")
			time.Sleep(10 * time.Second)
		}
		o.of = named
		send("a")
		send("b") // of the hour's 6 all are used
		time.Sleep(time.Minute)
		send("a")
		all.Wait()
		// A short window does not lose the minute in between, and the hour begins with the answer
		// that named the owner.
		if at := o.sent["a"]; len(at) != 2 || at[1] < time.Hour || len(o.sent["b"]) != 5 {
			t.Errorf("a: sent at %v, b at %v", at, o.sent["b"])
		}
	})
}

// A joining key's requests in flight keep their number, for limits that count each as one whatever
// its cost.
func TestJoiningForgetsNoneInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{"a": "org", "b": "org"}, answer: make(chan struct{}), sent: map[string][]time.Duration{}, begin: time.Now()}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			l, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 5})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}})
		muted(t, tr)
		var all sync.WaitGroup
		send := func(key, path string) {
			all.Go(func() { do(t, tr, get(t, "https://api.openai.com/v1/models"+path, "Authorization", "Bearer "+key)) })
			synctest.Wait()
		}
		for range 3 {
			send("b", "/slow")
		}
		send("a", "")
		send("b", "")
		time.Sleep(time.Second)
		for range 4 {
			send("a", "/slow")
		}
		// The request of b whose answer named the owner is answered.
		if n := len(o.sent["a"]) - 1 + 3; n != 5 {
			t.Errorf("%d in flight", n)
		}
		close(o.answer)
		all.Wait()
		if n := transport.Active(tr); n != 0 || len(o.sent["a"]) != 5 {
			t.Errorf("%d under way; sent at %v", n, o.sent["a"])
		}
	})
}

// A joining key's requests in flight count too, where output counts as it is produced.
func TestJoiningForgetsNoOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{"a": "org", "b": "org"}, answer: make(chan struct{}), sent: map[string][]time.Duration{}, begin: time.Now()}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			l, err := limit.NewProduced(limit.ProducedConfig{Limit: 1000, Window: time.Minute, PerSecond: -1})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}, Cost: func(r *http.Request, c limit.Cost) limit.Cost {
			if c[limit.Output] = 1; r.URL.Path == "/v1/models/slow" {
				c[limit.Output] = 400
			}
			return c
		}})
		muted(t, tr)
		var all sync.WaitGroup
		send := func(key, path string) {
			all.Go(func() { do(t, tr, get(t, "https://api.openai.com/v1/models"+path, "Authorization", "Bearer "+key)) })
			synctest.Wait()
		}
		send("a", "")
		send("b", "/slow")
		send("b", "/slow")
		send("b", "")
		time.Sleep(time.Second)
		for range 3 {
			send("a", "/slow")
		}
		if n := len(o.sent["a"]) - 1; n > 1 {
			t.Errorf("%d of 400 go beside two, of 1000", n)
		}
		close(o.answer)
		all.Wait()
		if n := transport.Active(tr); n != 0 || len(o.sent["a"]) != 4 || o.sent["a"][3] > 5*time.Minute {
			t.Errorf("%d under way; sent at %v", n, o.sent["a"])
		}
	})
}

// A joining key's usage of a long window does not count in a short one.
func TestJoiningDoesNotFillShortWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{}, sent: map[string][]time.Duration{}, begin: time.Now()}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return limit.NewAll(rolling(t, 2, 10*time.Second, limit.Requests), rolling(t, 60, time.Hour, limit.Requests))
		}})
		send := func(key string) {
			do(t, tr, get(t, "https://api.openai.com/v1/models", "Authorization", "Bearer "+key))
		}
		for range 4 {
			send("a")
			time.Sleep(20 * time.Second)
		}
		o.of = map[string]string{"a": "org", "b": "org"}
		send("b")
		time.Sleep(20 * time.Second)
		send("a")
		send("a")
		if at := o.sent["a"]; at[5] != at[4] {
			t.Errorf("of two in 10 s, a's second waited for %v", at[5]-at[4])
		}
	})
}

// A newcomer's request in flight counts in the limits to which the key belongs in the end, also if the key
// was on its own in between.
func TestJoiningByTwoMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{"a": "org", "b": "org"}, answer: make(chan struct{}), sent: map[string][]time.Duration{}, begin: time.Now()}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 2, time.Minute, limit.Requests)
		}})
		var all sync.WaitGroup
		send := func(key, path string, within time.Duration) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				do(t, tr, get(t, "https://api.openai.com/v1/models"+path, "Authorization", "Bearer "+key).WithContext(ctx))
			})
			synctest.Wait()
		}
		send("a", "", time.Hour)
		send("b", "/slow", time.Hour)
		time.Sleep(time.Second)
		send("b", "", 5*time.Second) // has no room with a, goes on its own, and is named
		time.Sleep(29 * time.Second)
		close(o.answer) // at 30 s: it counts until 90 s
		synctest.Wait()
		send("a", "", time.Hour)
		send("a", "", time.Hour)
		all.Wait()
		if a, b := o.sent["a"], o.sent["b"]; !slices.Equal(a, seconds(0, 61, 90)) || !slices.Equal(b, seconds(0, 1)) {
			t.Errorf("a: sent at %v, b at %v", a, b)
		}
		if n := transport.Active(tr); n != 0 {
			t.Errorf("%d are still under way", n)
		}
	})
}
