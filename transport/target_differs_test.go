package transport_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// priced is a target with a price of input, and a limit of so many millionths of a dollar a minute.
func priced(t testing.TB, name string, millionths int64) transport.Target {
	return transport.Target{Name: name, Host: name + ".test", Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Key {
			return nil
		}
		return rolling(t, millionths, time.Minute, limit.Money)
	}}
}

// A request waits at each target with its cost there. So a cheap target takes at once what it can, also
// where the dear one's cost would never fit it.
func TestEachTargetAsksForItsCost(t *testing.T) {
	prices := map[string]float64{"dear": 5, "cheap": 1}
	size := int64(len(chatOf("m"))) // the most input tokens that it may have
	for _, c := range []struct {
		dear, cheap int64 // how many requests each target may take in a minute
	}{{2, 10}, {1, 3}, {4, 4}} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy("dear.test", "cheap.test")
			slow := roundTripper(func(r *http.Request) (*http.Response, error) {
				time.Sleep(time.Second)
				return d.RoundTrip(r)
			})
			tr := mustNew(t, transport.Config{Base: slow, Tokens: estimator(t), Attempts: 1,
				Price: func(p transport.Partition, _ string) (provider.ModelInfo, bool) {
					return provider.ModelInfo{Input: prices[p.Target]}, true
				},
				Targets: []transport.Target{priced(t, "dear", 5*size*c.dear), priced(t, "cheap", size*c.cheap)}})
			var all sync.WaitGroup
			for range c.dear + c.cheap {
				all.Go(func() {
					status, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("m")))
					if status != 200 || err != nil {
						t.Error(status, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(d.began); took != time.Second {
				t.Errorf("the last answer came after %v, want all of them after 1s", took)
			}
			if n := len(d.of["dear.test"].answered); n != int(c.dear) {
				t.Errorf("%d went to the dear target, want %d", n, c.dear)
			}
		})
	}
}

// An error names the cost of the request at the target whose limit it never fits.
func TestNeverFitsTellsTheCostThere(t *testing.T) {
	prices := map[string]float64{"dear": 5, "cheap": 1}
	size := int64(len(chatOf("m")))
	tr := mustNew(t, transport.Config{Base: deploy("dear.test", "cheap.test"), Tokens: estimator(t), Attempts: 1,
		Price: func(p transport.Partition, _ string) (provider.ModelInfo, bool) {
			return provider.ModelInfo{Input: prices[p.Target]}, true
		},
		Targets: []transport.Target{priced(t, "cheap", size-1), priced(t, "dear", 5*size-1)}})
	_, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("m")))
	e, ok := errors.AsType[*transport.Error](err)
	if !ok || !errors.Is(err, paceline.ErrNever) {
		t.Fatalf("%v", err)
	}
	cost := int64(prices[e.Partition.Target]) * size
	if e.Unit != limit.Money || e.Size != cost || e.Limit != cost-1 {
		t.Errorf("at %q, %d of %v and the limit is %d: want %d and %d", e.Partition.Target, e.Size, e.Unit, e.Limit, cost, cost-1)
	}
}

// The copy of a slow request goes by any target that has room for its cost there. The dear target's cost would
// never fit the cheap one.
func TestACopyAsksForItsCost(t *testing.T) {
	prices := map[string]float64{"dear": 5, "cheap": 1}
	size := int64(len(chatOf("m")))
	for room, want := range map[int64]time.Duration{1: 3 * time.Second, 0: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy("dear.test", "cheap.test")
			slow := roundTripper(func(r *http.Request) (*http.Response, error) {
				wait := time.Second
				if r.URL.Host == "dear.test" {
					wait = 10 * time.Second
				}
				select {
				case <-time.After(wait):
					return d.RoundTrip(r)
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			})
			tr := mustNew(t, transport.Config{Base: slow, Tokens: estimator(t), Attempts: 1, Hedge: transport.Hedge{After: 2 * time.Second, Share: 1},
				Price: func(p transport.Partition, _ string) (provider.ModelInfo, bool) {
					return provider.ModelInfo{Input: prices[p.Target]}, true
				},
				Targets: []transport.Target{priced(t, "dear", 5*size), priced(t, "cheap", size*room+1)}})
			r := request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("m"))
			r.Header.Set("Idempotency-Key", "1")
			status, _, err := do(t, tr, r)
			if took := time.Since(d.began); status != 200 || err != nil || took != want {
				t.Errorf("with room for %d at the cheap target: %d, %v after %v, want %v", room, status, err, took, want)
			}
		})
	}
}
