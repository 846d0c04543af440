package transport_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// All keys are unknown to the server, one or several. After three requests it is asked by one request after 1 s, 2 s,
// 4 s and so on. Others fail at once with its words. The log has them once. A call ends that, and so does a request
// that is served.
func TestAllKeysAreDenied(t *testing.T) {
	const why = `403 Forbidden: {"error":"unknown key"}`
	for _, names := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c", "d"}} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			b := newKeyed()
			for _, name := range names {
				b.answers[name] = always(403, `{"error":"unknown key"}`)
			}
			tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, names...),
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			began := time.Now()
			timeline := []struct {
				at   float64 // seconds
				asks bool    // the server gets the request; otherwise it fails
				next float64 // when another asks, if it fails
			}{
				{0, true, 0}, {0, true, 0}, {0, true, 0}, {0, false, 1}, {0.999, false, 1}, {1, true, 0}, {1, false, 3},
				{2.9, false, 3}, {3, true, 0}, {6.9, false, 7}, {7, true, 0}, {20, true, 0}, {20, false, 36},
			}
			for n, c := range timeline {
				at, next := began.Add(seconds(c.at)[0]), began.Add(seconds(c.next)[0])
				time.Sleep(time.Until(at))
				status, _, err := do(t, tr, get(t, "http://a.test/"))
				e, _ := errors.AsType[*transport.Error](err)
				switch {
				case c.asks && (status != 403 || err != nil || len(b.count()) == 0):
					t.Errorf("%d keys, step %d at %v s: %d, %v; it was not sent", len(names), n, c.at, status, err)
				case !c.asks && (!errors.Is(err, transport.ErrKeys) || len(b.count()) > 0 || !e.Ready.Equal(next) ||
					!strings.Contains(err.Error(), "a.test") || !strings.Contains(err.Error(), why)):
					t.Errorf("%d keys, step %d at %v s: %v, want ErrKeys with the host, its words and %v s",
						len(names), n, c.at, err, c.next)
				}
				k := tr.Snapshot().Keys[0]
				if denied := k.State == observe.KeyDenied; denied != (n >= 2) || denied && !strings.Contains(k.Why, why) {
					t.Errorf("%d keys, step %d: %+v", len(names), n, k)
				}
			}
			line := `level=WARN msg="all keys are denied" host=a.test status=403 answer=` + strconv.Quote(why) + ` asked_again_in=1s`
			if strings.Count(log.String(), line) != 1 || strings.Count(log.String(), "level=WARN") != 1 {
				t.Errorf("%d keys: want one line\n%s\nin\n%s", len(names), line, log.String())
			}
			b.answers["a"] = nil
			if !tr.Readmit("a") || tr.Readmit("a") {
				t.Errorf("%d keys: Readmit reports otherwise", len(names))
			}
			var all sync.WaitGroup
			for range 100 { // with the key that serves, or with it at last
				all.Go(func() {
					if status, _, err := do(t, tr, get(t, "http://a.test/")); status != 200 && len(names) <= 3 || err != nil {
						t.Errorf("%d keys, readmitted: %d, %v", len(names), status, err)
					}
				})
			}
			all.Wait()
			if k := tr.Snapshot().Keys[0]; k.State != observe.KeyOK {
				t.Errorf("%d keys, after one was served: %+v", len(names), k)
			}
		})
	}
}

// A server that denies every key says nothing of another server, and its requests in line fail at once. After the
// pause one of many requests goes alone. The others fail if it is denied, and go if it is served.
func TestOneServerDeniesAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		var asked atomic.Int64
		deny := true
		b.answers["a"] = func(r *http.Request) *http.Response {
			time.Sleep(100 * time.Millisecond)
			if r.Host == "b.test" {
				return reply(200, "")
			}
			if asked.Add(1); deny {
				return reply(401, "who?")
			}
			return reply(200, "")
		}
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 2, "a")})
		crowd := func() (out map[string]int) {
			var all sync.WaitGroup
			var mu sync.Mutex
			out = map[string]int{}
			for range 50 {
				all.Go(func() {
					status, _, err := do(t, tr, get(t, "http://a.test/"))
					mu.Lock()
					defer mu.Unlock()
					if out[strconv.Itoa(status)]++; errors.Is(err, transport.ErrKeys) {
						out["ErrKeys"]++
					}
				})
			}
			all.Wait()
			return out
		}
		began := time.Now()
		if out := crowd(); out["ErrKeys"]+out["401"] != 50 || asked.Load() > 4 || time.Since(began) > 2*time.Second {
			t.Errorf("%v, %d asked, after %v", out, asked.Load(), time.Since(began))
		}
		if status, _, err := do(t, tr, get(t, "http://b.test/")); status != 200 || err != nil {
			t.Errorf("elsewhere: %d, %v", status, err)
		}
		time.Sleep(2 * time.Second)
		asked.Store(0)
		if out := crowd(); out["ErrKeys"] != 49 || asked.Load() != 1 {
			t.Errorf("after the pause: %v, %d asked", out, asked.Load())
		}
		time.Sleep(4 * time.Second)
		deny = false
		if out := crowd(); out["200"] != 50 {
			t.Errorf("served again: %v", out)
		}
	})
}

// A server that repeats the key which it denies does not bring it into the log, the events or the error.
func TestDeniedKeyIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newKeyed()
		b.answers["a"] = always(401, "unknown key secret-of-a")
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, "a"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 {
			do(t, tr, get(t, "http://a.test/"))
		}
		_, _, err := do(t, tr, get(t, "http://a.test/"))
		if err == nil || !strings.Contains(err.Error(), "unknown key …") || !strings.Contains(log.String(), "unknown key …") {
			t.Errorf("%v, %s", err, log.String())
		}
		if all := fmt.Sprint(err, log.String(), tr.Snapshot().Events, tr.Snapshot().Keys); strings.Contains(all, "secret-of") {
			t.Errorf("the key is shown: %s", all)
		}
	})
}

// A short pause that the server asks for meanwhile does not end that.
func TestAPauseWhileAllKeysAreDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Keys: keys(t, 100, "a"), Attempts: 1, Scope: concerns(provider.IP),
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/slow" {
					time.Sleep(200 * time.Millisecond)
					return reply(429, "", "Retry-After-Ms", "100"), nil
				}
				return reply(401, ""), nil
			})})
		var all sync.WaitGroup
		all.Go(func() { do(t, tr, get(t, "http://a.test/slow")) })
		synctest.Wait()
		for range 3 {
			do(t, tr, get(t, "http://a.test/"))
		}
		all.Wait()
		time.Sleep(200 * time.Millisecond)
		if status, _, err := do(t, tr, get(t, "http://a.test/")); !errors.Is(err, transport.ErrKeys) {
			t.Errorf("after a pause: %d, %v", status, err)
		}
	})
}

// Two targets that deny their keys are asked as rarely as other servers are.
func TestTargetsDenyTheirKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := map[string]int{}
		apply := func(*http.Request) {}
		tr := mustNew(t, transport.Config{
			Targets: []transport.Target{{Name: "a", Host: "a.test"}, {Name: "b", Host: "b.test", After: time.Second}},
			Keys:    []transport.Key{{Name: "a", Target: "a", Apply: apply}, {Name: "b", Target: "b", Apply: apply}},
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				asked[r.URL.Host]++
				return reply(401, ""), nil
			}),
		})
		failed := 0
		for range 60 {
			if _, _, err := do(t, tr, get(t, "http://any.test/")); errors.Is(err, transport.ErrKeys) {
				failed++
			}
			time.Sleep(time.Second)
		}
		if asked["a.test"] > 16 || asked["b.test"] > 16 || failed < 40 {
			t.Errorf("asked %v, %d failed at once", asked, failed)
		}
	})
}

// Requests in order go on while others, which no key may make, are denied: twenty in a row are at fault themselves.
// A revoked key is then asked every 10 s.
func TestDeniedRequestsAmongServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newKeyed()
		b.answers["a"] = func(r *http.Request) *http.Response {
			if r.URL.Path == "/secret" {
				return reply(403, "")
			}
			return reply(200, "")
		}
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, "a")})
		for range 10 {
			for n := range 21 {
				path := "/secret"
				if n == 0 {
					path = "/"
				}
				if _, _, err := do(t, tr, get(t, "http://a.test"+path)); err != nil {
					t.Fatal(n, err)
				}
			}
		}
		b.answers["a"] = always(403, "revoked")
		b.count()
		for range 3600 {
			do(t, tr, get(t, "http://a.test/"))
			time.Sleep(time.Second)
		}
		if n := b.count()["a"]; n < 360 || n > 400 {
			t.Errorf("a revoked key was asked %d times in an hour", n)
		}
	})
}

// A client's own key is wrong. The log says so once, with the answer and without the key, and the events have it.
// Another client whose requests are served is not named, nor one that is denied now and then.
func TestOwnKeyIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newKeyed()
		b.answers["a"] = always(401, `{"error":"bad key secret-of-a"}`)
		b.answers["c"] = always(403, "not this")
		tr := mustNew(t, transport.Config{Base: b, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		ask := func(key string) {
			r := get(t, "http://a.test/")
			r.Header.Set("Authorization", "Bearer secret-of-"+key)
			if _, _, err := do(t, tr, r); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 12 {
			ask("a")
			ask("b")
			if ask("c"); n%2 == 1 {
				b.answers["c"] = always(403, "not this")
			} else {
				b.answers["c"] = nil
			}
			if told := strings.Contains(log.String(), "level=WARN"); told != (n >= 2) {
				t.Fatalf("after %d requests: %s", n+1, log.String())
			}
		}
		got := log.String()
		for _, want := range []string{`msg="requests are denied, each of the last ones with this key" host=a.test key=`, " status=401 ",
			`answer="401 Unauthorized: {\"error\":\"bad key …\"}" helps="a key that the server knows`} {
			if strings.Count(got, want) != 1 || strings.Count(got, "level=WARN") != 1 || strings.Contains(got, "secret-of") {
				t.Errorf("want one line with %s in\n%s", want, got)
			}
		}
		var kinds []string
		for _, e := range tr.Snapshot().Events {
			kinds = append(kinds, e.Kind)
		}
		if strings.Join(kinds, " ") != observe.EventDenied {
			t.Errorf("the events are %v", kinds)
		}
	})
}

// Requests that a key denied wait for another key, each in a lane of its own. Their waits are not logged one
// by one. A lane of two keys names the limit with its window, and says that there are two.
func TestWaitsOfDeniedRequestsAreNotAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newKeyed()
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 5, "a", "b"),
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		do(t, tr, get(t, "http://a.test/"))
		b.answers["a"], b.answers["b"] = always(403, ""), always(403, "")
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		}
		all.Wait()
		if n := strings.Count(log.String(), "waiting, next in"); n == 0 || n > 4 {
			t.Errorf("%d lines about waits:\n%s", n, &log)
		}
		if want := ` rule="5 requests per `; !strings.Contains(log.String(), want) || !strings.Contains(log.String(), " ways=2") {
			t.Errorf("no %s and ways=2 in\n%s", want, &log)
		}
	})
}

// bans is a server of 20 a second that bans for 10 s after ten refusals, and answers 403 then.
type bans struct {
	answer  time.Duration
	mu      sync.Mutex
	served  []time.Time
	refused int
	until   time.Time
	denied  int
}

func (s *bans) RoundTrip(*http.Request) (*http.Response, error) {
	status, after := s.judge(time.Now())
	time.Sleep(after)
	return reply(status, "", map[int][]string{429: {"Retry-After", "1"}}[status]...), nil
}

// judge returns the status of an answer, and after which time it comes.
func (s *bans) judge(now time.Time) (status int, after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer += time.Microsecond // answers come in the order of the requests
	for len(s.served) > 0 && now.Sub(s.served[0]) >= time.Second {
		s.served = s.served[1:]
	}
	switch {
	case now.Before(s.until):
		s.denied++
		return http.StatusForbidden, s.answer
	case len(s.served) < 20:
		s.served = append(s.served, now)
		return http.StatusOK, s.answer
	}
	if s.refused++; s.refused == 10 {
		s.refused, s.until = 0, now.Add(10*time.Second)
	}
	return http.StatusTooManyRequests, s.answer
}

// A denial after refusals, with nothing served since, is a ban of the key: requests wait, and one tests it at a time.
// Before, callers got 148 of 400 answers as 403, and with Keys 330 ErrKeys, too.
func TestBannedAfterRefusals(t *testing.T) {
	for _, c := range []struct {
		configured            int64
		clients, lost, denied int // at most
	}{{40, 40, 2, 20}, {40, 200, 4, 40}, {100, 40, 4, 50}} {
		for _, keyed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &bans{answer: 80 * time.Millisecond}
				limits := func(transport.Partition) limit.Limiter {
					return rolling(t, c.configured, time.Second, limit.Requests)
				}
				config := transport.Config{Base: s, MaxWait: atMost(2 * time.Minute), Limit: limits}
				if keyed {
					config.Limit = nil
					config.Keys = []transport.Key{{Name: "a", Apply: func(*http.Request) {}, Limit: limits}}
				}
				tr := mustNew(t, config)
				var all sync.WaitGroup
				var lost atomic.Int64
				for range c.clients {
					all.Go(func() {
						for range 400 / c.clients {
							switch status, _, err := do(t, tr, get(t, "http://a.test/")); {
							case err != nil || status != 200 && status != 403:
								t.Errorf("%d, %v", status, err)
							case status == 403:
								lost.Add(1)
							}
						}
					})
				}
				all.Wait()
				if int(lost.Load()) > c.lost || s.denied > c.denied || s.denied == 0 {
					t.Errorf("%d/s for %d clients, keyed %v: %d requests got a 403, and %d went into the ban; want at most %d and %d",
						c.configured, c.clients, keyed, lost.Load(), s.denied, c.lost, c.denied)
				}
			})
		}
	}
}
