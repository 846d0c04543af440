package transport_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/transport"
)

func atMost(d time.Duration) func(*http.Request) time.Duration {
	return func(*http.Request) time.Duration { return d }
}

// A request whose wait would be longer than its MaxWait fails before it waits. The error has the
// limit, the wait, and the number ahead. The others wait as long as they may.
func TestMaxWaitIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Base: newGoing(), Limiter: limit.Named("tier 1", rolling(t, 1, time.Second, limit.Requests)), MaxWait: atMost(10 * time.Second)})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 30, "", root)
		synctest.Wait()
		began := time.Now()
		_, _, err := do(t, tr, get(t, "http://a.test/"))
		e, ok := errors.AsType[*transport.Error](err)
		if !ok || !errors.Is(err, paceline.ErrDeadline) || !e.Timeout() || time.Since(began) > 0 {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		if e.MaxWait != 10*time.Second || e.Ready.Sub(began) != 11*time.Second || e.Ahead != 10 || e.Name != "tier 1" || e.Unit != limit.Requests {
			t.Errorf("%+v, ready in %v", e, e.Ready.Sub(began))
		}
		if want := "transport: all requests: its turn comes in 11 s at the earliest (tier 1: 1 request per 1s), and it waits for 10 s at most; 10 were ahead when it came"; e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
	})
}

// The line of others counts, too, as far as they go before it: among clients by their weights.
func TestMaxWaitForeseesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{
			Base: g, Limiter: rolling(t, 1, time.Second, limit.Requests), Client: clients(map[string]transport.Client{"heavy": {Weight: 3}}),
			MaxWait: func(r *http.Request) time.Duration {
				if r.Header.Get("Client") == "one" {
					return 30 * time.Second
				}
				return 0
			},
		})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1, "many", root)
		synctest.Wait()
		for i := range 50 {
			all.ask(t, tr, 1, "many", root)
			all.ask(t, tr, 1, "heavy", func(int) string { return "http://a.test/" + string(rune('a'+i%26)) })
		}
		synctest.Wait()
		// Of each five that go one is its own, one of many and three of heavy.
		var mu sync.Mutex
		n, last := 0, time.Duration(0)
		for range 20 {
			all.all.Go(func() {
				if _, _, err := do(t, tr, get(t, "http://a.test/", "Client", "one")); err == nil {
					mu.Lock()
					defer mu.Unlock()
					n, last = n+1, max(last, time.Since(g.begin))
				} else if e, _ := errors.AsType[*transport.Error](err); e.Client != "one" || time.Since(g.begin) > 0 || e.Ahead < 5 || e.Ahead > 7 || e.Ready.Sub(g.begin) < 31*time.Second || e.Ready.Sub(g.begin) > 36*time.Second {
					t.Errorf("%v after %v: %d ahead, ready in %v", err, time.Since(g.begin), e.Ahead, e.Ready.Sub(g.begin))
				}
			})
			synctest.Wait()
		}
		time.Sleep(40 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if n < 5 || n > 7 || last < 24*time.Second || last > 31*time.Second {
			t.Errorf("%d went, the last after %v; want the six or so that had to wait for 30 s", n, last)
		}
	})
}

// Only the wait for its turn counts: not how long an answer takes, nor its body, nor the pause after a failure.
func TestMaxWaitIsOfTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(5*time.Second, func(n int, r *http.Request) *http.Response {
			if n < 3 {
				return reply(503, "")
			}
			return reply(200, "fine")
		})
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 10, time.Second, limit.Requests), MaxWait: atMost(time.Second)})
		if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || time.Since(b.begin) < 15*time.Second {
			t.Errorf("%d, %v after %v", status, err, time.Since(b.begin))
		}
	})
}

// An unforeseen wait ends at MaxWait: here the instant of an answer is unknown.
func TestMaxWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		b := newBase(time.Minute, ok)
		tr := mustNew(t, transport.Config{Base: b, Limiter: slots, MaxWait: atMost(10 * time.Second)})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1, "", root)
		synctest.Wait()
		began := time.Now()
		_, _, err = do(t, tr, get(t, "http://a.test/"))
		e, _ := errors.AsType[*transport.Error](err)
		if !errors.Is(err, paceline.ErrDeadline) || time.Since(began) != 10*time.Second || e.MaxWait != 10*time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		if want := "transport: all requests: it had no turn (concurrency: 1 request at once), and waits for 10 s at most"; e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
		// An earlier deadline of its own is in the error.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = do(t, tr, get(t, "http://a.test/").WithContext(ctx))
		if e, _ := errors.AsType[*transport.Error](err); e == nil || e.MaxWait != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: %+v", err, e)
		}
	})
}

// Windows begin when answers come, so a line for several keys is slower than their limits. It is foreseen by the latest
// answers, and requests that cannot go in time fail at once. Before the first answer some wait in vain, until that
// shows.
func TestMaxWaitForeseesAnswers(t *testing.T) {
	waited := regexp.MustCompile(`, or 2 other keys: after [12][^ ]* s in line its turn comes in `)
	for _, c := range []struct {
		name         string
		gap          time.Duration // the longest between two requests
		served, late int           // at least; at most
		by           time.Duration // of those that fail late
	}{
		{"one by one", 16667 * time.Microsecond, 245, 4, 2 * time.Second},
		{"a crowd", 1, 120, 59, 1200 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 1))
			var mu sync.Mutex
			up := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(rng.Int64N(int64(d)))
			}
			config := transport.Config{MaxWait: atMost(2 * time.Second)}
			config.Base = roundTripper(func(*http.Request) (*http.Response, error) {
				time.Sleep(40*time.Millisecond + up(80*time.Millisecond))
				return reply(200, ""), nil
			})
			for _, name := range []string{"a", "b", "c"} {
				config.Keys = append(config.Keys, transport.Key{Name: name, Apply: func(*http.Request) {},
					Limit: func(transport.Partition) limit.Limiter { return rolling(t, 20, time.Second, limit.Requests) }})
			}
			tr := mustNew(t, config)
			var all sync.WaitGroup
			served, late := 0, 0
			for range 300 {
				time.Sleep(up(c.gap))
				all.Go(func() {
					began := time.Now()
					_, _, err := do(t, tr, get(t, "http://a.test/"))
					took := time.Since(began)
					mu.Lock()
					defer mu.Unlock()
					switch says := waited.MatchString(fmt.Sprint(err)); {
					case err == nil:
						served++
					case took == 0 && strings.Contains(err.Error(), ", or 2 other keys: its turn comes in "):
					case took == 0 || took > c.by || !says:
						t.Errorf("%s: after %v: %v", c.name, took, err)
					default:
						late++
					}
				})
			}
			if all.Wait(); served < c.served || late > c.late {
				t.Errorf("%s: %d served, %d failed late; want %d or more, and %d or fewer", c.name, served, late, c.served, c.late)
			}
		})
	}
}

// The waits of all attempts count together, and a refusal is returned when the pause that it asks for is too long.
func TestMaxWaitOfAllAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, r *http.Request) *http.Response { return reply(429, "", "Retry-After", "6") })
		tr := mustNew(t, transport.Config{Base: b, Attempts: 5, MaxWait: atMost(10 * time.Second)})
		status, _, err := do(t, tr, get(t, "http://a.test/"))
		if status != 429 || err != nil || len(b.at()) != 2 || time.Since(b.begin) != 6*time.Second {
			t.Errorf("%d, %v after %v and %v", status, err, b.at(), time.Since(b.begin))
		}
	})
}

// A request that is sent again keeps the place of its arrival, and Ahead does not count later
// arrivals.
func TestMaxWaitOfWhatIsSentAgain(t *testing.T) {
	for name, client := range map[string]func(*http.Request) transport.Client{"in one line": nil, "among clients": clients(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, ok)
				again := func(_ context.Context, a transport.Attempt, _ *http.Response) (bool, error) {
					return a.Request.URL.Path == "/first" && a.Number == 1, nil
				}
				two := backoff.Policy{Base: 2 * time.Second, Jitter: -1}
				tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 1, time.Second, limit.Requests), CheckRetry: again, Backoff: two, MaxWait: func(r *http.Request) time.Duration {
					if r.URL.Path == "/first" {
						return 3 * time.Second
					}
					return 0
				}, Client: client})
				all := newCrowd(t)
				defer all.leave()
				time.AfterFunc(time.Millisecond, func() { all.ask(t, tr, 100, "a", root) })
				status, _, err := do(t, tr, get(t, "http://a.test/first", "Client", "a"))
				sent := 0
				b.mu.Lock()
				for _, path := range b.paths {
					if path == "/first" {
						sent++
					}
				}
				b.mu.Unlock()
				if d := time.Since(b.begin); status != 200 || d > 4*time.Second || sent != 2 {
					t.Errorf("%d, %v after %v, sent %d times", status, err, d, sent)
				}
			})
		})
	}
}

// A limit that is shut while requests wait, and open again before they notice, holds none of them up: each goes in its
// turn.
func TestShutAndOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Base: newKeyed(), Keys: keys(t, 2, "a", "b")})
		began := time.Now()
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 || err != nil {
					t.Errorf("after %v: %d, %v", time.Since(began), status, err)
				}
			})
		}
		synctest.Wait()
		for range 3 {
			transport.ShutAndOpen(tr)
			synctest.Wait()
		}
		all.Wait()
		if took := time.Since(began); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("they took %v, want 2 s", took)
		}
	})
}
