package share_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/transport"
)

// A process that begins with another limit than its store has sends nothing. Its requests fail at once,
// with both limits, and its Snapshot says so; when the store has its limit, they go. While the store is away,
// requests wait, and the Snapshot says so.
func TestRefusedByTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		begin := func(n int64) {
			own := share.Config{Store: store, Name: "it", Own: func() limit.Limiter { return limit.MustRolling(n, time.Second) }}
			if made, err := share.Begin(context.Background(), own); err != nil || !made {
				t.Fatal(made, err)
			}
		}
		begin(20)
		var member *share.Member
		tr := transport.Must(transport.Config{
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Key {
					return nil
				}
				return limit.MustRolling(25, time.Second)
			},
			Base: ratetest.InMemory(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
			Share: func(_ transport.Partition, made func() limit.Limiter) (l limit.Limiter) {
				var err error
				if member, err = share.Limiter(store, "it", made); err != nil {
					t.Error(err)
				}
				return member
			},
		})
		get := func() (took time.Duration, err error) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
			began := time.Now()
			resp, err := tr.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			return time.Since(began), err
		}
		state := func(want, why string) {
			t.Helper()
			some := false
			for _, l := range tr.Snapshot().Limits {
				if l.Store != "" {
					if some = true; l.Store != want || !strings.Contains(l.StoreWhy, why) {
						t.Errorf("%s is %s: %s, want %s: %s", l.Name, l.Store, l.StoreWhy, want, why)
					}
				}
			}
			if !some {
				t.Error("no limit is in a store")
			}
		}
		for range 3 {
			took, err := get()
			if !errors.Is(err, paceline.ErrNever) || took > 100*time.Millisecond ||
				!strings.Contains(err.Error(), "25 requests") || !strings.Contains(err.Error(), "20 requests") {
				t.Errorf("after %v: %v", took, err)
			}
			state(observe.StoreRefused, "20 requests")
			time.Sleep(time.Second)
		}
		store.set(func() { clear(store.blobs) })
		begin(25)
		get() // it asks again
		time.Sleep(2 * time.Second)
		if took, err := get(); err != nil {
			t.Errorf("with its limit in the store: after %v: %v", took, err)
		}
		state(observe.StoreOK, "")
		store.set(func() { store.away = errors.New("unplugged") })
		time.Sleep(5 * time.Second)
		if took, err := get(); took != 5*time.Second || !strings.Contains(err.Error(), "the store of its limit: unplugged") {
			t.Errorf("without the store: after %v: %v", took, err)
		}
		state(observe.StoreAway, "unplugged")
		member.Close(context.Background())
	})
}
