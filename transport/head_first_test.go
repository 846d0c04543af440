package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/transport"
)

// latent takes a time for each answer of a Base.
type latent struct {
	of   http.RoundTripper
	took time.Duration
}

func (s latent) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.of.RoundTrip(r)
	time.Sleep(s.took)
	return resp, err
}

// One of two targets answers 502 or 503 for 10 of 60 seconds. All requests are POSTs, as many as both can
// take. Callers get the answers to what was on its way with the first one, and no more.
func TestPostsWhileATargetIsAway(t *testing.T) {
	for _, status := range []int{502, 503} {
		synctest.Test(t, func(t *testing.T) {
			const took, long, n = 100 * time.Millisecond, time.Minute, 840
			d := deploy("a.test", "b.test")
			a, b := d.limited(t, "a.test", 600, time.Minute), d.limited(t, "b.test", 240, time.Minute)
			a.away, a.back, a.status = 20*time.Second, 30*time.Second, status
			tr := mustNew(t, transport.Config{Base: latent{d, took}, Targets: []transport.Target{perMinute(t, "a", 600, 0), perMinute(t, "b", 240, 0)}})
			var wg sync.WaitGroup
			var failed, served atomic.Int64
			for range n {
				wg.Go(func() {
					code, _, err := do(t, tr, request(t, "POST", "https://llm.test/x", "{}"))
					switch {
					case err != nil || code != 200:
						failed.Add(1)
					case time.Since(d.began) <= long:
						served.Add(1)
					}
				})
				time.Sleep(long / n)
			}
			wg.Wait()
			back := a.answered[slices.IndexFunc(a.answered, func(at time.Duration) bool { return at >= a.back })] - a.back
			last := a.failed[len(a.failed)-1] - a.failed[0]
			used := int(served.Load()) + a.probes // what came while it was away counts, too
			t.Logf("%d: %d failed, the last %v after the first, %d probes, %d of %d served, %.1f %% used, back %v late", status,
				failed.Load(), last, a.probes-len(a.failed), served.Load(), n, 100*float64(used)/n, back)
			if failed.Load() != int64(len(a.failed)) || last > took || a.probes > 20 {
				t.Errorf("%d failed: they came at %v, of %d requests while it was away", failed.Load(), a.failed, a.probes)
			}
			if back > 2*time.Second+took || a.refused+b.refused > 0 || float64(used) < 0.99*n {
				t.Errorf("%d of %d served, %d and %d refused, back %v late", served.Load(), n, a.refused, b.refused, back)
			}
		})
	}
}

// answering is a Base whose answers a function makes.
type answering func(r *http.Request) (*http.Response, error)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A HEAD asks in the place of a POST: at the target's own URL, with its key, without the body. A target
// whose HEAD tells nothing is probed by the POST itself, and so is the only target that is left.
func TestHeadGoesFirst(t *testing.T) {
	for _, c := range []struct {
		name, other string
		head        int // the answer to it; 0: none comes
		want        []string
		took        time.Duration // of the POST after the failed one
	}{
		{"it is answered", "b", 503, []string{"POST a", "HEAD a k 0", "POST b"}, 0},
		{"no HEAD is answered", "b", 0, []string{"POST a", "HEAD a k 0", "POST b"}, 2 * time.Second},
		{"the answer tells nothing", "b", 501, []string{"POST a", "HEAD a k 0", "POST b"}, 0},
		{"no other target", "", 503, []string{"POST a", "POST a"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var came []string
				base := answering(func(r *http.Request) (*http.Response, error) {
					body := ""
					if r.Body != nil {
						b, _ := io.ReadAll(r.Body)
						body = string(b)
						r.Body.Close()
					}
					line := r.Method + " " + r.URL.Host[:1]
					if r.Method == "HEAD" {
						line += fmt.Sprint(" ", r.Header.Get("Authorization"), " ", len(body)+int(r.ContentLength))
						if r.URL.Path != "/x" || r.Header.Get("Content-Type") != "" {
							t.Errorf("%v %v", r.URL, r.Header)
						}
					}
					mu.Lock()
					came = append(came, line)
					mu.Unlock()
					switch {
					case r.Method == "HEAD" && c.head == 0:
						<-r.Context().Done()
						return nil, r.Context().Err()
					case r.Method == "HEAD":
						return reply(c.head, ""), nil
					case r.URL.Host == "a.test":
						return reply(503, ""), nil
					}
					return reply(200, ""), nil
				})
				targets := []transport.Target{{Name: "a", Host: "a.test", Models: map[string]string{"m": "n"}}}
				if c.other != "" {
					targets = append(targets, transport.Target{Name: "b", Host: "b.test", After: transport.Never})
				}
				tr := mustNew(t, transport.Config{Base: base, Targets: targets,
					Keys: []transport.Key{{Name: "k", Apply: func(r *http.Request) { r.Header.Set("Authorization", "k") }}}})
				post := func() int {
					code, _, err := do(t, tr, request(t, "POST", "https://llm.test/x", `{"model":"m"}`, "Content-Type", "application/json"))
					if err != nil {
						t.Fatal(err)
					}
					return code
				}
				if code := post(); code != 503 {
					t.Error(code)
				}
				time.Sleep(time.Second)
				began := time.Now()
				post()
				if took := time.Since(began); took != c.took || fmt.Sprint(came) != fmt.Sprint(c.want) {
					t.Errorf("after %v: %q, want %q", took, came, c.want)
				}
				if c.head != 503 { // the next probe is a POST
					time.Sleep(2 * time.Second)
					if code := post(); code != 503 || came[len(came)-1] != "POST a" {
						t.Errorf("%d: %q", code, came)
					}
				}
			})
		})
	}
}

// A target has no connections for 5 s, and then answers 503 for 5 s, as one that starts. No POST fails.
func TestTargetStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		a := d.of["a.test"]
		a.away, a.back = 5*time.Second, 15*time.Second
		tr := mustNew(t, transport.Config{Base: d, Targets: []transport.Target{perMinute(t, "a", 600, 0), perMinute(t, "b", 600, 0)}})
		for range 100 {
			if time.Since(d.began) == 10*time.Second {
				a.status = 503
			}
			if code, _, err := do(t, tr, request(t, "POST", "https://llm.test/x", "{}")); err != nil || code != 200 {
				t.Errorf("after %v: %d, %v", time.Since(d.began), code, err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		if last := a.answered[len(a.answered)-1]; last < a.back || len(a.failed) > 0 {
			t.Errorf("its latest answer came after %v, %d POSTs failed", last, len(a.failed))
		}
	})
}

// One answer of 500 or 504 may be the fault of its request: the target stays in use. After one 503 it is in
// use again within 300 ms, with all its load, though its answers take long.
func TestOneFailureOfATarget(t *testing.T) {
	for _, status := range []int{500, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			const long = 20 * time.Second // of an answer
			var mu sync.Mutex
			at := map[string]int{}
			failed := false
			base := answering(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				at[r.Method+" "+r.URL.Host]++
				fails := r.URL.Path == "/broken" && !failed
				failed = failed || fails
				mu.Unlock()
				if fails {
					return reply(status, ""), nil
				}
				if r.Method == "HEAD" {
					return reply(405, ""), nil
				}
				time.Sleep(long)
				return reply(200, ""), nil
			})
			tr := mustNew(t, transport.Config{Base: base, Targets: []transport.Target{{Name: "a", Host: "a.test"}, {Name: "b", Host: "b.test", After: transport.Never}}})
			var wg sync.WaitGroup
			post := func(path string) {
				wg.Go(func() { do(t, tr, request(t, "POST", "https://llm.test"+path, "{}")) })
				synctest.Wait()
			}
			for range 20 {
				post("/x")
			}
			post("/broken")
			for range 3 { // a HEAD goes with the third
				time.Sleep(100 * time.Millisecond)
				post("/x")
			}
			before := at["POST a.test"]
			for range 100 {
				post("/x")
			}
			if n := at["POST a.test"] - before; n != 100 {
				t.Errorf("after one %d the target takes %d of 100", status, n)
			}
			if n := at["POST b.test"]; (status == 503) != (n > 0) || n > 2 || at["HEAD a.test"] > 1 {
				t.Errorf("after one %d: %v", status, at)
			}
			wg.Wait()
		})
	}
}
