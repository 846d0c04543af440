package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/transport"
)

// A server's Retry-After holds for a request that it could not serve, as for one that it refused.
// Where the wait is longer than the request's deadline or than MaxRetryAfter, the answer is returned
// at once, and the record of the attempt says that it does not go again.
func TestAskedWaits(t *testing.T) {
	for _, c := range []struct {
		name     string
		asked    string
		deadline time.Duration // 0: none
		sent     []time.Duration
		again    bool // of the first attempt
		ended    time.Duration
	}{
		{"a wait", "7", 0, seconds(0, 7), true, 7 * time.Second},
		{"a wait within the deadline", "7", 8 * time.Second, seconds(0, 7), true, 7 * time.Second},
		{"a wait beyond the deadline", "7", 6 * time.Second, seconds(0), false, 0},
		{"the longest wait", "30", 0, seconds(0, 30), true, 30 * time.Second},
		{"a wait longer than any", "31", 0, seconds(0), false, 0},
		{"a wait twice as long as any", "60", 0, seconds(0), false, 0},
	} {
		for _, status := range []int{429, 500, 502, 503, 504, 529} {
			t.Run(c.name+" "+http.StatusText(status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newBase(0, func(n int, _ *http.Request) *http.Response {
						if n == 1 {
							return reply(status, "", "Retry-After", c.asked)
						}
						return reply(200, "")
					})
					var first transport.Attempt
					tr := mustNew(t, transport.Config{Base: b, MaxRetryAfter: 30 * time.Second, Backoff: backoff.Policy{Jitter: -1}, Ended: func(a transport.Attempt) {
						if a.Number == 1 {
							first = a
						}
					}})
					r := get(t, "http://a.test/")
					if c.deadline > 0 {
						ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
						defer cancel()
						r = r.WithContext(ctx)
					}
					began := time.Now()
					want := 200
					if len(c.sent) == 1 {
						want = status
					}
					if got, _, err := do(t, tr, r); got != want || err != nil || time.Since(began) != c.ended {
						t.Errorf("%d, %v after %v, want %d after %v", got, err, time.Since(began), want, c.ended)
					}
					if got := b.at(); !slices.Equal(got, c.sent) {
						t.Errorf("sent at %v, want %v", got, c.sent)
					}
					if first.Again != c.again || (first.Why == "") != c.again {
						t.Errorf("goes again: %v, %q, want %v", first.Again, first.Why, c.again)
					}
				})
			})
		}
	}
}

// While a partition stays away for longer than MaxRetryAfter, nobody waits for it: not a request
// that comes then, and not one that was under way and whose own answer asks for less.
func TestNobodyWaitsLongerThanTheLongestWait(t *testing.T) {
	for asked, waits := range map[string]bool{"29": true, "33": false, "59": false, "70": false} {
		t.Run(asked, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := roundTripper(func(r *http.Request) (*http.Response, error) {
					switch r.URL.Path {
					case "/long":
						return reply(429, "", "Retry-After", asked), nil
					case "/under-way":
						time.Sleep(time.Second)
						return reply(429, "", "Retry-After", "2"), nil
					}
					return reply(200, ""), nil
				})
				var mu sync.Mutex
				ended := map[string]transport.Attempt{}
				tr := mustNew(t, transport.Config{Base: b, MaxRetryAfter: 30 * time.Second, Attempts: 2, Backoff: backoff.Policy{Jitter: -1}, Ended: func(a transport.Attempt) {
					mu.Lock()
					defer mu.Unlock()
					ended[a.Request.URL.Path] = a
				}})
				var all sync.WaitGroup
				all.Go(func() { do(t, tr, get(t, "http://a.test/under-way")) })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				do(t, tr, get(t, "http://a.test/long").WithContext(ctx))
				time.Sleep(2 * time.Second)
				began := time.Now()
				_, _, err := do(t, tr, get(t, "http://a.test/later"))
				if late := time.Since(began); errors.Is(err, transport.ErrPaused) == waits || (late > 0) != waits {
					t.Errorf("one that comes: %v after %v", err, late)
				}
				all.Wait()
				mu.Lock()
				defer mu.Unlock()
				if a := ended["/under-way"]; a.Again != waits && a.Number == 1 || !waits && !strings.Contains(a.Why, "stays away") {
					t.Errorf("one under way: attempt %d, again %v, %q", a.Number, a.Again, a.Why)
				}
			})
		})
	}
}

// A pause that one host asks for is its own: a limit that hosts share lets the others go on, and the
// host itself after the pause.
func TestAPauseIsOfOneHost(t *testing.T) {
	for name, config := range map[string]func() transport.Config{
		"the limit of all": func() transport.Config {
			return transport.Config{Limiter: rolling(t, 10, time.Second, limit.Requests)}
		},
		"the limit of a client": func() transport.Config {
			own := func() limit.Limiter { return rolling(t, 10, time.Second, limit.Requests) }
			return transport.Config{Client: func(*http.Request) transport.Client { return transport.Client{Name: "c", Limit: own} }}
		},
	} {
		for _, status := range []int{429, 500, -500, 502, 503} {
			fields := []string{"Retry-After", "30"}
			if status < 0 { // the answer also states what is left
				status, fields = -status, append(fields, "X-RateLimit-Limit", "100", "X-RateLimit-Remaining", "50")
			}
			t.Run(fmt.Sprint(name, " ", status, " ", len(fields)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					refused := false
					c := config()
					c.Attempts = 1
					c.Base = roundTripper(func(r *http.Request) (*http.Response, error) {
						if r.URL.Host == "a.test" && !refused {
							refused = true
							return reply(status, "", fields...), nil
						}
						return reply(200, ""), nil
					})
					tr := mustNew(t, c)
					do(t, tr, get(t, "http://a.test/"))
					for i, c := range []struct {
						host  string
						after time.Duration
					}{{"b.test", 0}, {"c.test", 0}, {"a.test", 30 * time.Second}} {
						if i == 2 && len(fields) > 2 { // the failure is of that request alone
							c.after = 0
						}
						began := time.Now()
						if got, _, err := do(t, tr, get(t, "http://"+c.host+"/")); got != 200 || err != nil || time.Since(began) != c.after {
							t.Errorf("%s: %d, %v after %v, want %v", c.host, got, err, time.Since(began), c.after)
						}
					}
				})
			})
		}
	}
}
