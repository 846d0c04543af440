package transport_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
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
