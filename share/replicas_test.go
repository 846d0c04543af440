package share_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/transport"
)

// The steps of "A service of several replicas" in docs/http-client.md: after Begin and the Join of a Member
// that is closed at once, the first request goes within half a second. A replica with another limit learns
// of it from Join.
func TestStartOfAReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ctx := newMemory(), context.Background()
		if _, err := share.Begin(ctx, share.Config{Store: store, Name: "partner/a", Own: twenty}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			began := time.Now()
			probe, err := share.Limiter(store, "partner/a", twenty)
			if err != nil {
				t.Fatal(err)
			}
			if err := probe.Join(ctx); err != nil {
				t.Fatal(err)
			}
			probe.Close(ctx)
			var members []*share.Member
			tr := transport.Must(transport.Config{
				Base: ratetest.InMemory(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
				Keys: []transport.Key{{Name: "a", Apply: func(*http.Request) {}}},
				Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope != provider.Key {
						return nil
					}
					return twenty()
				},
				Share: func(p transport.Partition, made func() limit.Limiter) limit.Limiter {
					member, err := share.Limiter(store, "partner/"+p.Key, made)
					if err != nil {
						t.Error(err)
					}
					members = append(members, member)
					return member
				},
			})
			resp, err := (&http.Client{Transport: tr}).Get("http://partner.test/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if took := time.Since(began); took > time.Second/2 || len(members) != 1 {
				t.Errorf("the first request took %v, with %d Members", took, len(members))
			}
			if err := tr.Drain(ctx); err != nil {
				t.Error(err)
			}
			for _, m := range members {
				if err := m.Close(ctx); err != nil {
					t.Error(err)
				}
			}
		}
		other, err := share.Limiter(store, "partner/a", func() limit.Limiter { return limit.MustRolling(25, time.Second) })
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Join(ctx); err == nil || !strings.Contains(err.Error(), "20 requests") {
			t.Errorf("Join of another limit: %v", err)
		}
	})
}
