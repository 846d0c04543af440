package transport_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Limits are lowered, raised and joined by another while requests wait. Those go by the new limits,
// in the order of arrival, and earlier requests still count.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "") })
		first := rolling(t, 2, 10*time.Second, limit.Requests)
		var asked []provider.Scope
		tr := mustNew(t, transport.Config{Base: b, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return limit.NewVarying(first)
		}})
		var all sync.WaitGroup
		var order []int
		var mu sync.Mutex
		for i := range 8 {
			all.Go(func() {
				do(t, tr, get(t, "http://a.test/"))
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
			synctest.Wait() // they come one after another
		}
		change := func(f func(now mono.Time, v *limit.Varying)) {
			tr.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
				asked = append(asked, p.Scope)
				f(now, l.(*limit.Varying))
			})
		}
		time.Sleep(5 * time.Second) // two went at 0
		change(func(now mono.Time, _ *limit.Varying) {
			if err := first.SetLimit(now, 4); err != nil { // two more at once
				t.Error(err)
			}
		})
		time.Sleep(1 * time.Second)
		change(func(now mono.Time, _ *limit.Varying) {
			if err := first.SetLimit(now, 1); err != nil { // none until all four are out of the window, at 15
				t.Error(err)
			}
		})
		time.Sleep(14 * time.Second)
		synctest.Wait()
		if got, want := b.at(), seconds(0, 0, 5, 5, 15); !slices.Equal(got, want) {
			t.Fatalf("sent at %v, want %v", got, want)
		}
		change(func(now mono.Time, v *limit.Varying) { // at 20
			if err := first.SetLimit(now, 100); err != nil {
				t.Error(err)
			}
			v.Change(now, first, rolling(t, 1, 3*time.Second, limit.Requests))
		})
		all.Wait()
		if got, want := b.at(), seconds(0, 0, 5, 5, 15, 20, 23, 26); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
		slices.Sort(order[0:2]) // went at the same instant
		slices.Sort(order[2:4])
		if !slices.IsSorted(order) {
			t.Errorf("they went in the order %v", order)
		}
		if want := []provider.Scope{provider.Key, provider.Key, provider.Key}; !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
	})
}

// Drain lets the requests in flight end, and refuses those that wait: for a limit, for another key's limit,
// or after a refusal, whose caller gets that answer. It returns with the end of the last.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(10*time.Second, func(n int, r *http.Request) *http.Response {
			if r.URL.Path == "/refused" {
				return reply(429, "", "Retry-After", "60")
			}
			if r.URL.Path == "/failed" {
				return reply(500, "")
			}
			return reply(200, "fine")
		})
		anHour := backoff.Policy{Base: time.Hour, Max: time.Hour, Jitter: -1}
		tr := mustNew(t, transport.Config{Base: b, UntilBody: true, Backoff: anHour, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return rolling(t, 2, time.Hour, limit.Requests)
			}
			return nil
		}})
		began := time.Now()
		type end struct {
			status int
			err    error
			at     time.Duration
		}
		ends := map[string]end{}
		var mu sync.Mutex
		var all sync.WaitGroup
		ask := func(name, host, path string) {
			all.Go(func() {
				resp, err := tr.RoundTrip(get(t, "http://"+host+path, "Authorization", "Bearer "+name))
				e := end{err: err, at: time.Since(began)}
				if err == nil {
					e.status = resp.StatusCode
					time.Sleep(5 * time.Second) // the body is read slowly
					resp.Body.Close()
				}
				mu.Lock()
				defer mu.Unlock()
				ends[name+path] = e
			})
			synctest.Wait()
		}
		ask("k", "a.test", "/first")
		ask("k", "a.test", "/second")
		ask("k", "a.test", "/waits")
		ask("l", "b.test", "/refused") // its answer comes at 10 s
		ask("o", "e.test", "/failed")
		time.Sleep(12 * time.Second)
		ask("m", "c.test", "/late") // in flight to 22 s, read to 27 s
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Drain(ctx); err != context.DeadlineExceeded {
			t.Errorf("Drain: %v while requests are in flight", err)
		}
		var drains sync.WaitGroup
		for range 2 {
			drains.Go(func() {
				if err := tr.Drain(t.Context()); err != nil || time.Since(began) != 27*time.Second {
					t.Errorf("Drain: %v after %v", err, time.Since(began))
				}
			})
		}
		ask("n", "d.test", "/after")
		drains.Wait()
		all.Wait()
		for name, want := range map[string]end{
			"k/first": {200, nil, 10 * time.Second}, "k/second": {200, nil, 10 * time.Second},
			"k/waits": {0, transport.ErrDrained, 12 * time.Second}, "l/refused": {429, nil, 12 * time.Second}, "o/failed": {500, nil, 12 * time.Second},
			"m/late": {200, nil, 22 * time.Second}, "n/after": {0, transport.ErrDrained, 13 * time.Second},
		} {
			got := ends[name]
			if got.status != want.status || !errors.Is(got.err, want.err) || got.at != want.at {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
			if e, ok := errors.AsType[*transport.Error](got.err); want.err != nil &&
				(!ok || got.err.Error() != "transport: "+e.Partition.String()+": it is drained and sends nothing more") {
				t.Errorf("%s: %v", name, got.err)
			}
		}
		if n := len(b.at()); n != 5 {
			t.Errorf("%d were sent", n)
		}
	})
}
