package transport_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// busy is a server that takes 100 ms for a request, and refuses more than so many at once.
type busy struct {
	most            int64
	status          int
	fields          []string
	now             atomic.Int64
	served, refused atomic.Int64
}

func (b *busy) RoundTrip(r *http.Request) (*http.Response, error) {
	defer b.now.Add(-1)
	if b.now.Add(1) > b.most {
		b.refused.Add(1)
		time.Sleep(5 * time.Millisecond)
		return reply(b.status, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, b.fields...), nil
	}
	time.Sleep(100 * time.Millisecond)
	b.served.Add(1)
	return reply(200, ""), nil
}

// hammer has so many clients ask for so long, each again as soon as it is answered.
func hammer(t *testing.T, tr *transport.Transport, clients int, d time.Duration) {
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for range clients {
		all.Go(func() {
			for time.Now().Before(end) {
				if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// 60 clients at a server that takes 10 requests at once: without a bound most of what they send is refused, with it few are.
func TestAdaptive(t *testing.T) {
	race.Without(t) // TestWhatATransportSays has an adaptive limit, too
	for _, c := range []struct {
		name     string
		status   int
		fields   []string
		adaptive *limit.AdaptiveConfig
		refused  [2]float64 // the share
	}{
		{"none", 529, nil, nil, [2]float64{0.5, 1}},
		{"529", 529, nil, new(limit.AdaptiveConfig), [2]float64{0.001, 0.05}},
		{"503", 503, []string{"Retry-After", "0"}, new(limit.AdaptiveConfig), [2]float64{0.001, 0.05}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &busy{most: 10, status: c.status, fields: c.fields}
				tr := mustNew(t, transport.Config{Base: b, Attempts: 1, Adaptive: c.adaptive, MaxOutage: time.Hour})
				hammer(t, tr, 60, 20*time.Second)
				b.served.Store(0)
				b.refused.Store(0)
				hammer(t, tr, 60, 30*time.Second)
				served, refused := float64(b.served.Load()), float64(b.refused.Load())
				if share := refused / (served + refused); share < c.refused[0] || share > c.refused[1] {
					t.Errorf("%.0f served, %.0f refused: %.2f%%", served, refused, 100*share)
				}
				if c.adaptive == nil {
					return
				}
				if served < 0.85*3000 {
					t.Errorf("%.0f served of the 3000 that it can", served)
				}
				if n := tr.Partitions()[0].Most; n < 6 || n > 12 {
					t.Errorf("the bound is %d", n)
				}
			})
		})
	}
}

// A refusal of one model does not bound another, nor does a 429 that names a limit. When no leaf
// has a model any more, its bound is forgotten.
func TestAdaptivePerModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := map[string]*http.Response{}
		tr := mustNew(t, transport.Config{
			Attempts: 1, Adaptive: &limit.AdaptiveConfig{Initial: 20}, MaxPartitions: 3, MaxRetryAfter: -1,
			Partition: func(r *http.Request) transport.Partition {
				return transport.Partition{Host: r.URL.Host, Model: strings.TrimPrefix(r.URL.Path, "/")}
			},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if resp := refuses[r.URL.Path]; resp != nil {
					return resp, nil
				}
				return reply(200, ""), nil
			}),
		})
		most := func(want map[string]int64) {
			t.Helper()
			got := map[string]int64{}
			for _, p := range tr.Partitions() {
				got[p.Partition.Model] = p.Most
			}
			for model, n := range want {
				if got[model] != n {
					t.Errorf("bounds %v, want %d for %q", got, n, model)
				}
			}
		}
		refuses["/busy"] = reply(529, "")
		refuses["/limited"] = reply(429, "", "RateLimit-Policy", `"day";q=1000;w=86400`, "RateLimit", `"day";r=0;t=2`)
		for _, model := range []string{"busy", "quick", "limited"} {
			do(t, tr, get(t, "http://a.test/"+model))
		}
		most(map[string]int64{"busy": 1, "quick": 20, "limited": 20})
		delete(refuses, "/busy")
		for _, other := range []string{"x", "y", "z"} {
			time.Sleep(time.Second)
			do(t, tr, get(t, "http://a.test/"+other))
		}
		do(t, tr, get(t, "http://a.test/busy"))
		most(map[string]int64{"busy": 20})
	})
}

func TestAdaptiveConfigIsChecked(t *testing.T) {
	if _, err := transport.New(transport.Config{Adaptive: &limit.AdaptiveConfig{Min: 3, Max: 2}}); err == nil || !strings.Contains(err.Error(), "Min 3 is above Max 2") {
		t.Error(err)
	}
}

// A refusal that names no limit is taken for one of how many there are at once; one that is about something else is not.
func TestAdaptiveRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		refused *http.Response
		most    int64
	}{
		"in no words":    {reply(429, ""), 1},
		"naming a limit": {reply(429, "", "RateLimit", `"day";r=0;t=2`), 20},
		"not paid":       {reply(429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`), 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{
				Attempts: 1, Adaptive: &limit.AdaptiveConfig{Initial: 20}, MaxRetryAfter: -1,
				Base: roundTripper(func(*http.Request) (*http.Response, error) { return c.refused, nil }),
			})
			do(t, tr, get(t, "http://a.test/"))
			if n := tr.Partitions()[0].Most; n != c.most {
				t.Errorf("%s: the bound is %d, want %d", name, n, c.most)
			}
		})
	}
}
