package transport_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/transport"
)

// Ten clients of one quota, each a transport with a Fair that learns the remainder without a reset.
// They come to even shares with next to nothing refused, like a Gate with the same hints. The Fair
// is Config.Limiter, or the limit of a key.
func TestStrangersThroughTransport(t *testing.T) {
	for _, name := range []string{"Limiter", "Limit"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := ratetest.NewGCRA(ratetest.GCRAConfig{})
				if err != nil {
					t.Fatal(err)
				}
				begin := time.Now()
				const clients, span = 10, 30 * time.Minute
				var wg sync.WaitGroup
				var refused atomic.Int64
				served := make([]int, clients)
				for i := range clients {
					fair := func() limit.Limiter {
						f, err := fairshare.NewFair(fairshare.FairConfig{Limit: 4500, Window: time.Hour, Rng: rand.New(rand.NewPCG(uint64(i), 1))})
						if err != nil {
							t.Error(err)
						}
						return f
					}
					c := transport.Config{Base: roundTripper(func(r *http.Request) (*http.Response, error) {
						time.Sleep(30 * time.Millisecond)
						w := httptest.NewRecorder()
						g.ServeHTTP(w, r)
						time.Sleep(30 * time.Millisecond)
						return w.Result(), nil
					}), Attempts: 1000}
					if name == "Limiter" {
						c.Limiter = fair()
					} else {
						own := fair()
						c.Limit = func(p transport.Partition) limit.Limiter {
							if p.Scope == "key" {
								return own
							}
							return nil
						}
					}
					tr := mustNew(t, c)
					wg.Go(func() {
						for time.Since(begin) < span {
							if status, _, _ := do(t, tr, get(t, "http://a.test/")); status == 200 {
								served[i]++
							}
						}
						refused.Add(tr.Stats().Refused)
					})
				}
				wg.Wait()
				total, least, most := 0, 1<<30, 0
				for _, n := range served {
					total, least, most = total+n, min(least, n), max(most, n)
				}
				t.Logf("%d served, %d to %d each, %d refused", total, least, most, refused.Load())
				if share := float64(refused.Load()) / float64(total); share > 0.01 || float64(least) < 0.9*float64(most) {
					t.Errorf("%d served, %d to %d each, %d refused", total, least, most, refused.Load())
				}
			})
		})
	}
}
