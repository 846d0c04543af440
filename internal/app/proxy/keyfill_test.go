package proxy

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// strict is a server that allows 20 requests in any second for each key. It counts a request up to
// delay after its sending, and answers up to delay later. A request that bad answers does not count.
type strict struct {
	began time.Time
	delay time.Duration
	bad   func(w http.ResponseWriter, key string) bool

	mu      sync.Mutex
	keys    map[string]rule.Server
	served  map[string]int
	spoiled int // by bad
	refused int
	last    time.Duration // when it served the last one
}

func newStrict(delay time.Duration, bad func(http.ResponseWriter, string) bool) *strict {
	return &strict{began: time.Now(), delay: delay, bad: bad, keys: map[string]rule.Server{}, served: map[string]int{}}
}

func (s *strict) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	time.Sleep(rand.N(s.delay + 1))
	defer func() { time.Sleep(rand.N(s.delay + 1)) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad(w, key) {
		s.spoiled++
		return
	}
	if s.keys[key] == nil {
		s.keys[key], _ = rule.NewRolling(rule.RollingConfig{Limit: 20, Window: time.Second})
	}
	if s.last = time.Since(s.began); s.keys[key].Arrive(mono.Time(s.last), 1) {
		s.served[key]++
		return
	}
	s.refused++
	w.WriteHeader(http.StatusTooManyRequests)
}

// forget has the counts begin anew.
func (s *strict) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began, s.served, s.spoiled, s.keys = time.Now(), map[string]int{}, 0, map[string]rule.Server{}
}

// threeKeys is a Config of three keys, of 20 requests a second each.
func threeKeys(t *testing.T) Config {
	c := to(mustURL(t, "http://server.test"), "20/s")
	c.MaxWait = 10 * time.Minute
	c.Clients.Header = "X-Who"
	c.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}}
	for _, name := range []string{"K1", "K2", "K3"} {
		c.Upstreams[0].Keys = append(c.Upstreams[0].Keys, Key{Name: name, Secret: Secret("secret-" + name)})
	}
	return c
}

// flood sends requests of 8 clients at once, all of which have to be served.
func flood(t *testing.T, client func() *http.Client, all int) {
	t.Helper()
	var running sync.WaitGroup
	for i := range 8 {
		h := client()
		for j := range all / 8 {
			running.Go(func() {
				time.Sleep(time.Duration(8*j+i) * time.Microsecond) // none comes at the same instant as another
				r, _ := http.NewRequest("GET", "http://proxy.test/x", nil)
				r.Header.Set("X-Who", fmt.Sprint(i))
				resp, err := h.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				b, _ := io.ReadAll(resp.Body)
				if resp.Body.Close(); resp.StatusCode != 200 {
					t.Errorf("%d %s", resp.StatusCode, b)
				}
			})
		}
	}
	running.Wait()
}

// After three requests that the server denied with every key, a request fails at once. The answer has the server's words,
// and says when one asks again.
func TestAllKeysAreDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c := to(mustURL(t, "http://up.test"), "20/s")
		c.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}}
		c.Upstreams[0].Keys = []Key{{Name: "A", Secret: "sk-a-0123456789"}, {Name: "B", Secret: "sk-b-0123456789"}}
		x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Error(w, "account is closed", http.StatusUnauthorized)
		}), c)
		for range 3 {
			if resp, text := x.do("GET", "/", ""); resp.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s", resp.Status, text)
			}
		}
		before := asked
		resp, text := x.do("GET", "/", "")
		if resp.StatusCode != http.StatusBadGateway || resp.Header.Get("Retry-After") != "1" || asked != before ||
			!strings.Contains(text, "no-key-left") || !strings.Contains(text, "401 Unauthorized: account is closed") {
			t.Errorf("%s, Retry-After %q, %d sent:\n%s", resp.Status, resp.Header.Get("Retry-After"), asked-before, text)
		}
	})
}

// Several keys are filled evenly, each up to its limit, and the server refuses nothing. If one is
// banned, without credit or revoked, the others are filled as before. After Readmit the excluded
// one is filled, too.
func TestKeysAreFilled(t *testing.T) {
	says := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	for _, c := range []struct {
		name  string
		delay time.Duration
		bad   func(http.ResponseWriter)
	}{
		{"all", 0, nil},
		{"all, and a path that varies", 50 * time.Millisecond, nil},
		{"banned", 50 * time.Millisecond, says(429, `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`)},
		{"unpaid", 50 * time.Millisecond, says(429, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`)},
		{"denied", 50 * time.Millisecond, says(401, "")},
	} {
		name, bad := c.name, c.bad
		if need.Fewer(true, race.Enabled) && name != "all" && name != "banned" {
			continue // the same goroutines, and the same way out of use
		}
		synctest.Test(t, func(t *testing.T) {
			s := newStrict(c.delay, func(w http.ResponseWriter, key string) bool {
				if bad == nil || key != "secret-K2" {
					return false
				}
				w.Header().Set("Content-Type", "application/problem+json")
				bad(w)
				return true
			})
			const all = 480
			// Of a key 20 go at once, and each of them makes room for another a second after its
			// answer.
			longest := func(keys int) time.Duration {
				return time.Duration(all/20/keys-1)*(time.Second+2*c.delay) + time.Second
			}
			virtually(t, s, threeKeys(t), func(p *Proxy, client func() *http.Client) {
				flood(t, client, all)
				keys := 3
				if bad != nil {
					keys = 2
				}
				t.Logf("%s: %v by %v, %d spoiled, %d refused", name, s.served, s.last, s.spoiled, s.refused)
				for key, n := range s.served {
					if d := n - all/keys; d < -20 || d > 20 {
						t.Errorf("%s: %d were served with %s, expected %d", name, n, key, all/keys)
					}
				}
				if len(s.served) != keys || s.last > longest(keys) || s.spoiled > 3*20 {
					t.Errorf("%s: %v were served in %v, expected %d keys and %v; %d went with the key that is bad", name, s.served, s.last, keys, longest(keys), s.spoiled)
				}
				if bad == nil {
					return
				}
				if k := p.Sources()[0].Snapshot().Keys[1]; k.State == observe.KeyOK || !strings.Contains(p.events(), "no request goes with the key any more") {
					t.Errorf("%s: %+v, %s", name, k, p.events())
				}
				bad = nil
				if again := p.Readmit(); fmt.Sprint(again) != "[K2 of server.test]" || len(p.Readmit()) > 0 {
					t.Errorf("%s: tried again are %v", name, again)
				}
				time.Sleep(2 * time.Second)
				s.forget()
				if flood(t, client, all); s.served["secret-K2"] < all/3-20 || s.last > longest(3) {
					t.Errorf("%s: tried again, %v were served in %v", name, s.served, s.last)
				}
			})
			if s.refused > 0 {
				t.Errorf("%s: %d were refused", name, s.refused)
			}
		})
	}
}

// events is what happened, as the page has it.
func (p *Proxy) events() string { return fmt.Sprint(p.Sources()[0].Snapshot().Events) }
