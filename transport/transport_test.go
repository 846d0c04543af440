package transport_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Two per second, counted from their answers.
func TestWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(100*time.Millisecond, ok)
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 2, time.Second, limit.Requests)})
		for range 5 {
			if status, body, err := do(t, tr, get(t, "http://a.test/")); status != 200 || body != "fine" || err != nil {
				t.Fatal(status, body, err)
			}
		}
		// Answers at 0.1, 0.2, 1.2, 1.3: the third may go at 1.1.
		if got, want := b.at(), seconds(0, 0.1, 1.1, 1.2, 2.2); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// One thousand goroutines, random latency: no window of arrivals holds more than the limit, each request goes once, and
// the limit is used.
func TestAThousandGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, most = 1000, 50
		var mu sync.Mutex
		var arrived []time.Time
		tr := mustNew(t, transport.Config{
			Limiter: limit.MustRolling(most, time.Second),
			Base: roundTripper(func(*http.Request) (*http.Response, error) {
				time.Sleep(rand.N(40 * time.Millisecond))
				mu.Lock()
				arrived = append(arrived, time.Now())
				mu.Unlock()
				time.Sleep(rand.N(40 * time.Millisecond))
				return reply(200, ""), nil
			}),
		})
		start := time.Now()
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
					t.Error(status, err)
				}
			})
		}
		wg.Wait()
		slices.SortFunc(arrived, time.Time.Compare)
		if len(arrived) != n {
			t.Fatalf("%d arrived, want %d", len(arrived), n)
		}
		for i := most; i < n; i++ {
			if d := arrived[i].Sub(arrived[i-most]); d < time.Second {
				t.Fatalf("%d arrived within %v", most+1, d)
			}
		}
		if took := time.Since(start); took > 22*time.Second {
			t.Errorf("it took %v, want about %v", took, (n/most-1)*1050*time.Millisecond)
		}
	})
}

// A deadline that cannot be met fails at once, and says when it could have been.
func TestDeadlineSaysWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 1, 10*time.Second, limit.Requests)})
		client := &http.Client{Transport: tr, Timeout: 4 * time.Second}
		start := time.Now()
		resp, err := client.Get("http://a.test/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		_, err = client.Get("http://a.test/")
		var e *transport.Error
		if !errors.As(err, &e) || !errors.Is(err, paceline.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) || !os.IsTimeout(err) {
			t.Fatalf("got %v", err)
		}
		if want := start.Add(10 * time.Second); !e.Ready.Equal(want) {
			t.Errorf("ready at %v, want %v", e.Ready, want)
		}
		if !strings.Contains(err.Error(), "in 10 s at the earliest (1 request per 10s), after its deadline") {
			t.Errorf("the error does not say when, and for which limit: %v", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("it waited %v", time.Since(start))
		}
		if got := b.at(); len(got) != 1 {
			t.Errorf("sent at %v", got)
		}
	})
}

// So does one behind a line for several keys, which carry the line together.
func TestDeadlineBehindALineOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Base: newBase(0, ok), Keys: keys(t, 20, "a", "b", "c")})
		get := func(wait time.Duration) (ready, failed time.Duration) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.test/", nil)
			resp, err := tr.RoundTrip(req)
			var e *transport.Error
			if errors.As(err, &e) {
				return e.Ready.Sub(start), time.Since(start)
			} else if err != nil {
				t.Error(err)
				return 0, 0
			}
			resp.Body.Close()
			return 0, time.Since(start)
		}
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() { get(time.Minute) })
		}
		synctest.Wait()
		for _, wait := range []time.Duration{900 * time.Millisecond, 4900 * time.Millisecond} {
			if ready, failed := get(wait); ready < 5*time.Second || ready > 5100*time.Millisecond || failed != 0 {
				t.Errorf("a deadline in %v failed after %v, with a turn in %v; want at once, and in 5 s", wait, failed, ready)
			}
		}
		if ready, took := get(6 * time.Second); ready != 0 || took > 5100*time.Millisecond {
			t.Errorf("with 6 s it took %v", took)
		}
		all.Wait()
	})
}

// A limit further on is asked before the wait for one before it.
func TestDeadlineOfAWiderLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := &ledger{}
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{
			Base: b, Limiter: leases.new(rolling(t, 1, time.Hour, limit.Requests)),
			Limit: func(p transport.Partition) limit.Limiter {
				switch p.Scope {
				case provider.Route:
					return leases.new(rolling(t, 100, time.Second, limit.Requests))
				case provider.Key:
					return leases.new(rolling(t, 1, 5*time.Second, limit.Requests))
				}
				return nil
			},
		})
		do(t, tr, get(t, "http://a.test/"))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := tr.RoundTrip(get(t, "http://a.test/").WithContext(ctx))
		var e *transport.Error
		if !errors.As(err, &e) || e.Partition.Scope != provider.All || e.Ready.Sub(start) != time.Hour || time.Since(start) != 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		// The limit of 5 s was not used up by it.
		if _, err := tr.RoundTrip(get(t, "http://a.test/").WithContext(ctx)); !errors.As(err, &e) || e.Ready.Sub(start) != time.Hour {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if _, err := tr.RoundTrip(get(t, "http://a.test/").WithContext(ctx)); !errors.As(err, &e) || e.Partition.Scope != provider.All {
			t.Error(err)
		}
		if n, err := leases.open(); n != 0 || err != nil {
			t.Errorf("%d leases are open, %v", n, err)
		}
	})
}

// A request that is cancelled in line leaves it, and costs nothing.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 1, 10*time.Second, limit.Requests)})
		do(t, tr, get(t, "http://a.test/"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		body := &closed{Reader: strings.NewReader("x")}
		r := get(t, "http://a.test/").WithContext(ctx)
		r.Method, r.Body = http.MethodPost, body
		_, err := tr.RoundTrip(r)
		if !errors.Is(err, context.Canceled) || time.Since(b.begin) != 3*time.Second {
			t.Errorf("after %v: %v", time.Since(b.begin), err)
		}
		if body.n != 1 {
			t.Errorf("its body was closed %d times", body.n)
		}
		do(t, tr, get(t, "http://a.test/"))
		if got, want := b.at(), seconds(0, 10); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A thousand are refused at the same time: one pause, of what the server asked, and then each goes once more.
func TestRefusalPausesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		b := newBase(50*time.Millisecond, func(i int, _ *http.Request) *http.Response {
			if i <= n {
				return reply(429, `{"error":"slow down"}`, "Retry-After", "7")
			}
			return reply(200, "fine")
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: limit.MustRolling(1e6, time.Millisecond)})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				if status, body, err := do(t, tr, get(t, "http://a.test/")); status != 200 || body != "fine" || err != nil {
					t.Error(status, body, err)
				}
			})
		}
		wg.Wait()
		got := b.at()
		slices.Sort(got)
		if len(got) != 2*n || got[n-1] != 0 || got[n] != 7050*time.Millisecond || got[2*n-1] != got[n] {
			t.Errorf("%d sent; the first again at %v, the last at %v", len(got), got[n], got[len(got)-1])
		}
		if s := tr.Stats(); s.Pauses != 1 || s.Refused != n || s.Resent != n || s.Attempts != 2*n {
			t.Errorf("%+v", s)
		}
	})
}

// A refusal without a stated time begins one pause, not one per request. The pauses are 100 ms, 200
// ms, 400 ms, and 100 ms again after an answer.
func TestPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		refuse.Store(true)
		b := newBase(10*time.Millisecond, func(int, *http.Request) *http.Response {
			if refuse.Load() {
				return reply(429, "")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: limit.MustRolling(1e6, time.Millisecond), Attempts: 1, Backoff: backoff.Policy{Jitter: -1}})
		round := func() {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			}
			wg.Wait()
		}
		for range 4 {
			round()
		}
		refuse.Store(false)
		round()
		refuse.Store(true)
		round()
		round()
		var got []time.Duration
		for i, at := range b.at() {
			if i%20 == 0 {
				got = append(got, at)
			}
		}
		if want := seconds(0, 0.11, 0.32, 0.73, 1.54, 1.55, 1.66); !slices.Equal(got, want) {
			t.Errorf("rounds at %v, want %v", got, want)
		}
		if s := tr.Stats(); s.Pauses != 6 {
			t.Errorf("%d pauses, want 6", s.Pauses)
		}
	})
}

// A refusal stops what it concerns, and nothing else.
func TestRefusalPausesItsScope(t *testing.T) {
	const host = "http://a.test"
	one := []string{"Authorization", "Bearer one"}
	two := []string{"Authorization", "Bearer two"}
	for _, tc := range []struct {
		name         string
		plain        bool // no model
		config       transport.Config
		provider     string
		status       int
		body         string
		header       []string
		stopped, run []*http.Request // after GET a.test/x/1 with key one, for model m
	}{
		{
			name: "nobody says: the key", status: 429,
			stopped: []*http.Request{get(t, host+"/y", one...)},
			run:     []*http.Request{get(t, host+"/x/1", two...), get(t, "http://b.test/x/1", one...), get(t, host+"/x/1")},
		},
		{
			name: "the model", status: 429, provider: "openai", header: []string{"X-Ratelimit-Limit-Requests", "5", "X-Ratelimit-Remaining-Requests", "0"},
			stopped: []*http.Request{get(t, host+"/y", append(one, "Model", "m")...)},
			run:     []*http.Request{get(t, host+"/x/1", append(one, "Model", "n")...), get(t, host+"/x/1", append(two, "Model", "m")...)},
		},
		{
			name: "the route", status: 429, provider: "slack", body: `{"ok":false,"error":"ratelimited"}`,
			stopped: []*http.Request{get(t, host+"/x/2", one...)},
			run:     []*http.Request{get(t, host+"/y/1", one...), get(t, host+"/x/1", two...)},
		},
		{
			name: "of what is used up, the widest", status: 429, provider: "x",
			header:  []string{"X-Rate-Limit-Limit", "5", "X-Rate-Limit-Remaining", "0", "X-App-Limit-24hour-Limit", "9", "X-App-Limit-24hour-Remaining", "0"},
			stopped: []*http.Request{get(t, host+"/y/1", one...)},
			run:     []*http.Request{get(t, host+"/x/1", two...)},
		},
		{
			name: "the address", status: 418, provider: "binance",
			stopped: []*http.Request{get(t, host+"/x/1", two...), get(t, host+"/y")},
			run:     []*http.Request{get(t, "http://b.test/x/1", one...)},
		},
		{
			name: "the server is overloaded", status: 503, plain: true,
			stopped: []*http.Request{get(t, host+"/x/1", two...)},
			run:     []*http.Request{get(t, "http://b.test/x/1", one...)},
		},
		{
			name: "the caller says: the address", status: 429,
			config:  transport.Config{Scope: func(transport.Partition, provider.Observation) provider.Scope { return provider.IP }},
			stopped: []*http.Request{get(t, host+"/x/1", two...)},
			run:     []*http.Request{get(t, "http://b.test/x/1", one...)},
		},
		{
			name: "with 200", status: 200, provider: "bybit", body: `{"retCode":10006,"retMsg":"Too many visits!"}`, header: []string{"Content-Type", "application/json"},
			stopped: []*http.Request{get(t, host+"/x/2", one...)},
			run:     []*http.Request{get(t, host+"/z", one...)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(n int, _ *http.Request) *http.Response {
					if n == 1 {
						return reply(tc.status, tc.body, append(tc.header, "Retry-After", "30")...)
					}
					return reply(200, "{}")
				})
				c := tc.config
				c.Base, c.Attempts = b, 1
				c.Provider, _ = provider.Lookup(tc.provider)
				c.Partition = func(r *http.Request) transport.Partition {
					p := transport.PartitionOf(r)
					p.Model = r.Header.Get("Model")
					return p
				}
				tr := mustNew(t, c)
				first := get(t, host+"/x/1", one...)
				if !tc.plain {
					first.Header.Set("Model", "m")
				}
				do(t, tr, first)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				for _, r := range tc.run {
					if _, _, err := do(t, tr, r.Clone(ctx)); err != nil {
						t.Errorf("%v %v was stopped: %v", r.URL, r.Header, err)
					}
				}
				for _, r := range tc.stopped {
					_, _, err := do(t, tr, r.Clone(ctx))
					var e *transport.Error
					if !errors.As(err, &e) || e.Ready.Sub(b.begin) != 30*time.Second {
						t.Errorf("%v %v was not stopped until 30 s: %v", r.URL, r.Header, err)
					}
				}
				if took := time.Since(b.begin); took != 0 {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// A paused request does not block others that may go, and goes when its pause is over.
func TestPausedKeyDoesNotBlockTheSharedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(429, "", "Retry-After", "20")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 1, time.Second, limit.Requests)})
		var wg sync.WaitGroup
		wg.Go(func() { do(t, tr, get(t, "http://a.test/one", "X-Api-Key", "one")) })
		synctest.Wait()
		for range 3 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/two", "X-Api-Key", "two")) })
		}
		wg.Wait()
		if got, want := b.at(), seconds(0, 1, 2, 3, 20); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A request that waits for the limit of all, after that of its key, goes only when a pause that has
// begun meanwhile is over.
func TestPauseBeginsDuringTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(429, "", "Retry-After", "30")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Attempts: 1, Limiter: rolling(t, 1, 10*time.Second, limit.Requests)})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/", "X-Api-Key", "one")) })
			synctest.Wait()
		}
		wg.Wait()
		if got, want := b.at(), seconds(0, 31); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// For an unknown limit, a pause ends with one request and not with all.
func TestBeginsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, func(n int, _ *http.Request) *http.Response {
			if n <= 15 {
				return reply(429, "", "Retry-After", "9")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b})
		var wg sync.WaitGroup
		for range 15 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		}
		wg.Wait()
		got := map[time.Duration]int{}
		for _, at := range b.at() {
			got[at]++
		}
		for at, n := range map[float64]int{0: 15, 10: 1, 11: 2, 12: 4, 13: 8} {
			if got[seconds(at)[0]] != n {
				t.Errorf("at %v s: %d, want %d", at, got[seconds(at)[0]], n)
			}
		}
	})
}

// A request without an answer makes no room for more.
func TestBeginsSlowlyWithoutAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, nil)
		tr := mustNew(t, transport.Config{Attempts: 1, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if b.serve = func(int, *http.Request) *http.Response { return reply(429, "", "Retry-After", "9") }; len(b.at()) > 0 {
				b.RoundTrip(r)
				return nil, io.ErrUnexpectedEOF
			}
			return b.RoundTrip(r)
		})})
		do(t, tr, get(t, "http://a.test/"))
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		}
		wg.Wait()
		if got, want := b.at(), seconds(0, 10, 11, 12); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// An answer to what was sent before a refusal came does not end the row of refusals.
func TestOldAnswersDoNotEndARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 2 {
				time.Sleep(50 * time.Millisecond)
				return reply(200, "")
			}
			return reply(429, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: limit.MustRolling(1e6, time.Millisecond), Attempts: 1, Backoff: backoff.Policy{Jitter: -1}})
		var wg sync.WaitGroup
		b.latency = 10 * time.Millisecond
		for range 2 {
			wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			synctest.Wait()
		}
		wg.Wait()
		for range 2 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if got, want := b.at(), seconds(0, 0, 0.11, 0.32); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A server asks for longer than any wait. Its refusal is returned at once, and requests in line
// fail, and so do later ones.
func TestLongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, func(n int, _ *http.Request) *http.Response {
			if n == 1 {
				return reply(429, `{"error":{"code":"quota"}}`, "Retry-After", "31536000") // a year
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, MaxPause: -1, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return rolling(t, 1, time.Minute, limit.Requests)
			}
			return nil
		}})
		var wg sync.WaitGroup
		fails := func() {
			_, _, err := do(t, tr, get(t, "http://a.test/"))
			var e *transport.Error
			if !errors.Is(err, transport.ErrPaused) || !errors.As(err, &e) || e.Refusal != provider.RateLimited {
				t.Errorf("got %v", err)
			} else if want := b.begin.Add(time.Second + provider.MaxWait); !e.Ready.Equal(want) {
				t.Errorf("until %v, want %v", e.Ready, want)
			}
		}
		wg.Go(func() {
			status, body, err := do(t, tr, get(t, "http://a.test/"))
			if status != 429 || body != `{"error":{"code":"quota"}}` || err != nil {
				t.Error(status, body, err)
			}
		})
		synctest.Wait()
		for range 50 { // in line, behind the first
			wg.Go(fails)
		}
		wg.Wait()
		fails()
		if took := time.Since(b.begin); took != time.Second || len(b.at()) != 1 {
			t.Errorf("%d sent in %v", len(b.at()), took)
		}
		// Four minutes before its end it is a pause like another.
		time.Sleep(provider.MaxWait - 4*time.Minute)
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
			t.Error(status, err)
		}
		if got, want := b.at()[1], time.Second+provider.MaxWait; got != want {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A Retry-After that the deadline does not allow: the refusal is returned at once.
func TestRetryAfterAgainstTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response { return reply(429, "later", "Retry-After", "8") })
		var last transport.Attempt
		tr := mustNew(t, transport.Config{Base: b, Ended: func(a transport.Attempt) { last = a }})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		status, body, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx))
		if status != 429 || body != "later" || err != nil || time.Since(b.begin) != 0 {
			t.Errorf("after %v: %d %q %v", time.Since(b.begin), status, body, err)
		}
		if last.Again || !strings.Contains(last.Why, "8s") || last.Said.RetryAfter != 8*time.Second {
			t.Errorf("%+v", last)
		}
	})
}

// The server's remainder is kept to; a statement above the limit is not.
func TestHintsTighten(t *testing.T) {
	for _, tc := range []struct {
		name   string
		fields []string
		want   []time.Duration
	}{
		{"nothing said", nil, seconds(0, 0, 1, 1)},
		{"less", []string{"RateLimit-Limit", "2", "RateLimit-Remaining", "0", "RateLimit-Reset", "6"}, seconds(0, 6, 12, 18)},
		{"more", []string{"RateLimit-Limit", "900", "RateLimit-Remaining", "899", "RateLimit-Reset", "6"}, seconds(0, 0, 1, 1)},
		{"something is left", []string{"RateLimit-Limit", "2", "RateLimit-Remaining", "1", "RateLimit-Reset", "1"}, seconds(0, 0, 1, 1)},
		{"of several the one of which least is left", []string{"RateLimit-Policy", `"burst";q=5;w=6, "day";q=1000;w=86400`, "RateLimit", `"burst";r=0;t=6, "day";r=700;t=3000`}, seconds(0, 6, 12, 18)},
		{"in another order", []string{"RateLimit-Policy", `"burst";q=5;w=6, "day";q=1000;w=86400`, "RateLimit", `"day";r=700;t=3000, "burst";r=0;t=6`}, seconds(0, 6, 12, 18)},
		{"a limit of 0", []string{"RateLimit-Limit", "0", "RateLimit-Remaining", "-1", "RateLimit-Reset", "60"}, seconds(0, 0, 1, 1)},
		{"a limit of -1", []string{"RateLimit-Limit", "-1", "RateLimit-Remaining", "-1", "RateLimit-Reset", "-1"}, seconds(0, 0, 1, 1)},
		{"a reset in the past", []string{"X-RateLimit-Limit", "2", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "Fri, 31 Dec 1999 23:00:00 GMT"}, seconds(0, 0, 1, 1)},
		{"a year", []string{"RateLimit-Limit", "2", "RateLimit-Remaining", "0", "RateLimit-Reset", "31536000"}, seconds(0, 3600, 7200, 10800)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(int, *http.Request) *http.Response { return reply(200, "", tc.fields...) })
				tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 2, time.Second, limit.Requests)})
				for range 4 {
					do(t, tr, get(t, "http://a.test/"))
				}
				if got := b.at(); !slices.Equal(got, tc.want) {
					t.Errorf("sent at %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// A bucket refills evenly: a request that finds it empty waits for one, not for all.
func TestHintsOfABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response {
			return reply(200, "", "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "1m0s")
		})
		openai, _ := provider.Lookup("openai")
		tr := mustNew(t, transport.Config{Base: b, Provider: openai})
		for range 4 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if got, want := b.at(), seconds(0, 1, 2, 3); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// Requests that were in flight at the first statement about a bucket count in it until they end,
// and no longer.
func TestHintsOfABucketWithSomeInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, func(n int, _ *http.Request) *http.Response {
			time.Sleep(time.Duration(min(n, 4)) * time.Second)
			return reply(200, "", "X-Ratelimit-Limit-Requests", "60", "X-Ratelimit-Remaining-Requests", "5", "X-Ratelimit-Reset-Requests", "55m")
		})
		openai, _ := provider.Lookup("openai")
		tr := mustNew(t, transport.Config{Base: b, Provider: openai})
		var wg sync.WaitGroup
		send := func(n int) {
			for range n {
				wg.Go(func() { do(t, tr, get(t, "http://a.test/")) })
			}
		}
		send(3) // answered after 2, 3 and 4 s
		time.Sleep(2500 * time.Millisecond)
		send(4) // 5 are left, and 2 of those may be what is in flight; the fourth waits for one of them to end
		wg.Wait()
		send(5)
		wg.Wait()
		got := b.at()
		for i, want := range map[int]float64{3: 2.5, 4: 2.5, 5: 2.5, 6: 3} {
			if got[i] != seconds(want)[0] {
				t.Errorf("sent at %v", got)
				break
			}
		}
		if got[7] != got[11] {
			t.Errorf("when nothing was in flight 5 were not sent at once: %v", got[7:])
		}
	})
}

// Only if asked does what the server states change the limit.
func TestAdopt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(int, *http.Request) *http.Response {
			return reply(200, "", "RateLimit-Policy", `"default";q=3;w=10`, "RateLimit", `"default";r=3;t=10`)
		})
		calls := 0
		tr := mustNew(t, transport.Config{
			Base: b,
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.Key {
					return rolling(t, 1, 10*time.Second, limit.Requests)
				}
				return nil
			},
			Adopt: func(now mono.Time, p transport.Partition, l limit.Limiter, said []provider.Policy) {
				calls++
				if err := l.(*limit.Rolling).SetLimit(now, said[0].Limit); err != nil || p.Scope != provider.Key || len(said) != 1 {
					t.Error(err, p, said)
				}
			},
		})
		for range 4 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if got, want := b.at(), seconds(0, 0, 0, 10); !slices.Equal(got, want) || calls != 1 {
			t.Errorf("sent at %v, want %v; told %d times", got, want, calls)
		}
	})
}

// Whatever the Base does, the leave comes back, once: with a limit of one in flight the next request goes.
func TestSettledOnEveryPath(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(t *testing.T, r *http.Request) (*http.Response, error)
		want string // of the error, or of the panic
	}{
		{"an answer", func(*testing.T, *http.Request) (*http.Response, error) { return reply(200, ""), nil }, ""},
		{"an answer without a body", func(*testing.T, *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 204}, nil
		}, ""},
		{"a refusal without a body", func(*testing.T, *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 403}, nil
		}, ""},
		{"an error", func(*testing.T, *http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }, "unexpected EOF"},
		{"neither", func(*testing.T, *http.Request) (*http.Response, error) { return nil, nil }, "neither an answer nor an error"},
		{"a panic", func(*testing.T, *http.Request) (*http.Response, error) { panic("boom") }, "boom"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				tr := mustNew(t, transport.Config{Attempts: 1, Limiter: one, Base: roundTripper(func(r *http.Request) (*http.Response, error) { return tc.do(t, r) })})
				for range 3 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					got := func() (got string) {
						defer func() {
							if p := recover(); p != nil {
								got = p.(string)
							}
						}()
						resp, err := tr.RoundTrip(get(t, "http://a.test/").WithContext(ctx))
						if err != nil {
							return err.Error()
						}
						if resp.Body != nil {
							resp.Body.Close()
						}
						return ""
					}()
					cancel()
					if !strings.Contains(got, tc.want) || got == "" != (tc.want == "") {
						t.Errorf("got %q, want %q", got, tc.want)
					}
				}
			})
		})
	}
}

func TestNewNamesTheField(t *testing.T) {
	for _, tc := range []struct {
		config transport.Config
		want   string
	}{
		{transport.Config{Attempts: -1}, "Attempts -1"},
		{transport.Config{MaxBody: -1}, "MaxBody -1"},
		{transport.Config{MaxPartitions: -2}, "MaxPartitions -2"},
		{transport.Config{Idle: -time.Second}, "Idle -1s"},
		{transport.Config{StartFull: -time.Second}, "StartFull -1s"},
		{transport.Config{Backoff: backoff.Policy{Factor: 0.5}}, "Factor 0.5"},
		{transport.Config{Adopt: func(mono.Time, transport.Partition, limit.Limiter, []provider.Policy) {}}, "Limit is nil"},
	} {
		if _, err := transport.New(tc.config); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// closed counts how often it is closed.
type closed struct {
	io.Reader
	n int
}

func (c *closed) Close() error { c.n++; return nil }
