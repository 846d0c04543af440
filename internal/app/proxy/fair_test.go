package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// crowd is requests that wait in a proxy, each without a connection: 10,000 of those would be
// 40,000 goroutines more.
type crowd struct {
	t      *testing.T
	p      *Proxy
	ctx    context.Context
	leave  context.CancelFunc
	asking sync.WaitGroup
}

func newCrowd(t *testing.T, p *Proxy) *crowd {
	c := &crowd{t: t, p: p}
	c.ctx, c.leave = context.WithCancel(t.Context())
	t.Cleanup(func() { c.leave(); c.asking.Wait() })
	return c
}

// ask is one request of a client, and how long it waited by what its answer says.
func (c *crowd) ask(who, path string) (waited time.Duration, ok bool) {
	return c.asks("GET", who, path)
}

// asks is ask with another method.
func (c *crowd) asks(method, who, path string) (waited time.Duration, ok bool) {
	r := httptest.NewRequestWithContext(c.ctx, method, path, nil)
	r.Header.Set("X-Who", who)
	w := httptest.NewRecorder()
	defer func() {
		if gone := recover(); gone != nil && gone != http.ErrAbortHandler { // which is how a request ends whose client leaves
			panic(gone)
		}
	}()
	c.p.ServeHTTP(w, r)
	ms, err := strconv.Atoi(w.Header().Get(FieldWaited))
	if w.Code != 200 || err != nil {
		c.t.Errorf("%s of %s: %d %s", path, who, w.Code, w.Body)
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}

// join has so many requests of a client get in line.
func (c *crowd) join(who string, n int, path func(i int) string) {
	for i := range n {
		c.asking.Go(func() { c.ask(who, path(i)) })
	}
	synctest.Wait()
}

// tally is a server that counts what it serves, by path.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (s *tally) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n[r.URL.Path]++
}

// lately returns what was served since it was asked last.
func (s *tally) lately() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.n = map[string]int{} }()
	return s.n
}

func same(path string) func(int) string { return func(int) string { return path } }

// With 10,000 requests of one client in line, another client's single request has its turn after
// two service intervals at most. That holds for one key or several, one route or many, one upstream
// or two, and also if the many have a head start.
func TestClientsAreFair(t *testing.T) {
	const tenth = time.Second / 10
	for name, c := range map[string]struct {
		change   func(*Config)
		path     func(i int) string
		interval time.Duration // between two turns of one key
	}{
		"one key": {func(*Config) {}, same("/a"), tenth},
		"many routes": {func(*Config) {}, func(i int) string {
			return "/a/" + string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		}, tenth},
		"three keys": {func(c *Config) {
			keyed := threeKeys(t).Upstreams[0]
			c.Upstreams[0].Limits, c.Upstreams[0].Header, c.Upstreams[0].Keys = limitsOf("1/300ms"), keyed.Header, keyed.Keys
		}, same("/a"), 3 * tenth},
		"two upstreams": {func(c *Config) {
			other := c.Upstreams[0]
			other.Path, other.Name = "/b", "other"
			c.Upstreams = append(c.Upstreams, other)
		}, func(i int) string { return []string{"/a", "/b/x"}[i%2] }, tenth},
		"a head start of the many": {func(c *Config) {
			c.Clients.List = []Client{{Name: "many", HeadStart: time.Second, MaxWaiting: 10_000}}
		}, same("/a"), tenth},
	} {
		t.Run(name, func(t *testing.T) {
			many := need.Fewer(600, 3000) // enough for the time; and once as many as it says
			if name == "one key" {
				many = 10_000
			}
			if race.Enabled { // which is slow; some 300 are served
				many = 600
			}
			synctest.Test(t, func(t *testing.T) {
				served := &tally{n: map[string]int{}}
				conf := to(mustURL(t, "http://server.test"), "1/100ms")
				conf.MaxWait = time.Hour
				conf.Clients = Clients{Header: "X-Who", Default: Client{MaxWaiting: 10_000}}
				c.change(&conf)
				all := newCrowd(t, virtual(t, served, conf).proxy)
				all.join("many", many, c.path)
				time.Sleep(20*time.Second + tenth/2)
				served.lately()
				for range 5 {
					if waited, ok := all.ask("one", "/mine"); ok && waited > 2*c.interval {
						t.Errorf("it waited for %v, with an interval of %v", waited, c.interval)
					}
					time.Sleep(time.Second)
				}
				n := 0
				for _, each := range served.lately() {
					n += each
				}
				if n < 45 || n > 120 {
					t.Errorf("%d were served in 5 to 11 s", n)
				}
			})
		})
	}
}

// Interactive requests go before bulk requests, by a head start, and bulk requests never starve.
// Without a head start each client has its part by weight.
func TestBulkIsNotStarved(t *testing.T) {
	race.Without(t) // TestClientsAreFair has these goroutines
	synctest.Test(t, func(t *testing.T) {
		served := &tally{n: map[string]int{}}
		conf := to(mustURL(t, "http://server.test"), "1/100ms")
		conf.MaxWait = time.Hour
		conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "people", HeadStart: 10 * time.Second}, {Name: "bulk"}, {Name: "heavy", Weight: 3}}}
		all := newCrowd(t, virtual(t, served, conf).proxy)
		all.join("bulk", 1500, same("/bulk"))
		served.lately()
		time.Sleep(30*time.Second + 50*time.Millisecond)
		if n := served.lately(); n["/bulk"] < 295 {
			t.Errorf("alone: %v", n)
		}
		all.join("people", 40, same("/people"))
		time.Sleep(4200 * time.Millisecond)
		if n := served.lately(); n["/people"] != 40 {
			t.Errorf("a few of people's, who have not asked for anything: %v", n)
		}
		time.Sleep(30 * time.Second)
		served.lately()
		all.join("people", 1000, same("/people"))
		time.Sleep(time.Minute)
		if n := served.lately(); n["/bulk"] < 245 || n["/people"] < 300 {
			t.Errorf("in the first minute of all that people want: %v, where 10 s may be theirs alone", n)
		}
		time.Sleep(time.Minute)
		if n := served.lately(); n["/bulk"] < 295 || n["/people"] < 295 {
			t.Errorf("in the next minute: %v, expected a half each", n)
		}
		all.join("heavy", 800, same("/heavy"))
		time.Sleep(30 * time.Second)
		if n := served.lately(); n["/heavy"] < 175 || n["/heavy"] > 185 || n["/bulk"] < 57 || n["/people"] < 57 {
			t.Errorf("beside who has the weight of three: %v, expected 180, 60, 60", n)
		}
	})
}
