package pacek8s_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/paceline-go/paceline"
	pacek8s "github.com/paceline-go/paceline/contrib/k8s"
	"github.com/paceline-go/paceline/contrib/xrate"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// server is an API server that accepts 20 requests in any window, strictly. It asks a refused
// client to return in a second.
type server struct {
	mu               sync.Mutex
	rule             rule.Rule
	began, last      time.Time
	arrived, refused int
}

func newServer(t *testing.T, window time.Duration) *server {
	r, err := rule.NewRolling(rule.RollingConfig{Limit: 20, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	return &server{rule: r, began: time.Now()}
}

func (s *server) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = time.Now()
	now := mono.Of(s.began, s.last)
	ok := s.rule.Fits(now, 1)
	s.rule.Count(now, 1, ok)
	s.arrived++
	w.Header().Set("Content-Type", "application/json")
	if !ok {
		s.refused++
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}
	io.WriteString(w, "{}")
}

// network is the way to a server, in memory and so in virtual time: up to 50 ms each way.
type network struct {
	*server
	mu  sync.Mutex
	rng *rand.Rand
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	there, back := time.Duration(n.rng.Int64N(int64(50*time.Millisecond))), time.Duration(n.rng.Int64N(int64(50*time.Millisecond)))
	n.mu.Unlock()
	time.Sleep(there)
	w := httptest.NewRecorder()
	n.ServeHTTP(w, r)
	time.Sleep(back)
	return w.Result(), nil
}

// call gets n pods from 30 goroutines by three clients, and returns the number of failures. A
// controller has such a client for each group of APIs.
func call(t *testing.T, cfg *rest.Config, n int) (failed int) {
	t.Helper()
	cfg.ContentConfig = rest.ContentConfig{NegotiatedSerializer: serializer.NewCodecFactory(runtime.NewScheme())}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var clients [3]*rest.RESTClient
	for i := range clients {
		var err error
		if clients[i], err = rest.UnversionedRESTClientFor(cfg); err != nil {
			t.Fatal(err)
		}
	}
	for g := range 30 {
		client := clients[g%len(clients)]
		wg.Go(func() {
			for i := g; i < n; i += 30 {
				if _, err := client.Get().AbsPath("/api/v1/namespaces/default/pods", fmt.Sprint(i)).DoRaw(t.Context()); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// At full rate nothing is refused. With Wrap the answers are known. A RateLimiter has the promise
// of at most 50 ms. With client-go's own limiter at the server's rate, some are refused.
func TestFullRate(t *testing.T) {
	for _, c := range []struct {
		name  string
		apply func(*rest.Config) error
		least float64 // served in a second, of 20
		clean bool    // none may be refused
	}{
		{"Wrap", func(cfg *rest.Config) error {
			_, err := pacek8s.Wrap(cfg, transport.Config{Limiter: limit.MustRolling(20, time.Second)})
			return err
		}, 18.5, true},
		{"RateLimiter", func(cfg *rest.Config) error {
			r, err := pacek8s.New(xrate.Config{Limiter: limit.MustRolling(20, time.Second), Within: 50 * time.Millisecond})
			cfg.RateLimiter = r
			return err
		}, 18.5, true},
		{"client-go, burst 20", func(cfg *rest.Config) error {
			cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(20, 20)
			return nil
		}, 0, false},
		{"client-go, burst 1", func(cfg *rest.Config) error {
			cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(20, 1)
			return nil
		}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, time.Second)
				cfg := &rest.Config{Host: "http://server.test", Transport: &network{server: s, rng: rand.New(rand.NewPCG(1, 2))}}
				if err := c.apply(cfg); err != nil {
					t.Fatal(err)
				}
				failed := call(t, cfg, 600)
				rate := float64(s.arrived-s.refused) / s.last.Sub(s.began).Seconds()
				t.Logf("%d of %d refused, %.2f served a second, %d calls failed", s.refused, s.arrived, rate, failed)
				if c.clean != (s.refused == 0) || failed > 0 || rate < c.least {
					t.Errorf("want none refused: %v, none failed, %v a second at least", c.clean, c.least)
				}
				if c.clean && s.arrived != 600 {
					t.Errorf("%d arrived of 600", s.arrived)
				}
			})
		})
	}
}

// Over sockets, on a machine that may stall.
func TestOverHTTP(t *testing.T) {
	s := newServer(t, 200*time.Millisecond)
	host := httptest.NewServer(s)
	defer host.Close()
	cfg := &rest.Config{Host: host.URL}
	paced, err := pacek8s.Wrap(cfg, transport.Config{Limiter: limit.MustRolling(20, 200*time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if failed := call(t, cfg, 100); failed > 0 || s.refused > 0 || s.arrived != 100 {
		t.Errorf("%d calls failed, %d of %d refused", failed, s.refused, s.arrived)
	}
	if n := paced.Stats().Attempts; n != 100 {
		t.Errorf("%d attempts by way of the Transport, of 100", n)
	}
}

// client-go alone sends refused requests again, and all requests wait.
func TestRetriesDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		cfg := &rest.Config{Host: "http://server.test", Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			asked++
			w := httptest.NewRecorder()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return w.Result(), nil
		})}
		if _, err := pacek8s.Wrap(cfg, transport.Config{Limiter: limit.MustRolling(20, time.Second)}); err != nil {
			t.Fatal(err)
		}
		if failed := call(t, cfg, 1); failed != 1 || asked != 11 {
			t.Errorf("%d calls failed after %d attempts, want client-go's 1 and 10", failed, asked)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := pacek8s.New(xrate.Config{Limiter: limit.MustRolling(2, time.Second), Within: 500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Stop()
		if r.QPS() != 2 || !r.TryAccept() || !r.TryAccept() || r.TryAccept() {
			t.Errorf("QPS %v; want 2, and that two may go", r.QPS())
		}
		began := time.Now()
		if r.Accept(); time.Since(began) < 1500*time.Millisecond || time.Since(began) > 1510*time.Millisecond {
			t.Errorf("the third went after %v", time.Since(began))
		}
		r.Accept()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Wait(ctx); !errors.Is(err, paceline.ErrDeadline) {
			t.Errorf("%v, want that its turn comes too late", err)
		}
	})
}

func TestErrors(t *testing.T) {
	for want, c := range map[string]xrate.Config{
		"pacek8s: MaxWaiting 3: a RateLimiter has no bound on those who wait, as Accept cannot fail": {Limiter: limit.MustRolling(1, time.Second), Within: time.Second, MaxWaiting: 3},
		"xrate: the Limiter is nil": {Within: time.Second},
	} {
		if _, err := pacek8s.New(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	cfg := &rest.Config{QPS: 7}
	for want, c := range map[string]transport.Config{
		"pacek8s: Base is set, to a *http.Transport: what sends is made by the rest.Config": {Base: http.DefaultTransport},
		"pacek8s: transport: Attempts -1 is negative":                                       {Attempts: -1},
	} {
		if _, err := pacek8s.Wrap(cfg, c); err == nil || err.Error() != want || cfg.QPS != 7 || cfg.WrapTransport != nil {
			t.Errorf("%v, want %s, and the rest.Config as it was", err, want)
		}
	}
}
