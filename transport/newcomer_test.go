package transport_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// offices is a server that allows each organization so many requests in any window, and says whose key it is that asks.
type offices struct {
	of     map[string]string // by key
	limit  int
	window time.Duration
	path   func() time.Duration // of each leg
	fails  func(key string, n int) bool

	mu      sync.Mutex
	begin   time.Time
	counted map[string][]time.Duration // by organization
	served  map[string][]time.Duration // by key, when it arrived
	refused map[string]int             // by key
	asked   map[string]int
}

func newOffices(of map[string]string, limit int, window, leg time.Duration) *offices {
	return &offices{
		of: of, limit: limit, window: window, path: func() time.Duration { return leg }, fails: func(string, int) bool { return false }, begin: time.Now(),
		counted: map[string][]time.Duration{}, served: map[string][]time.Duration{}, refused: map[string]int{}, asked: map[string]int{},
	}
}

// legs are how long a request takes to get there and back.
func (o *offices) legs() (there, back time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.path(), o.path()
}

func (o *offices) RoundTrip(r *http.Request) (*http.Response, error) {
	there, back := o.legs()
	time.Sleep(there)
	defer time.Sleep(back)
	o.mu.Lock()
	defer o.mu.Unlock()
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	org, now := o.of[key], time.Since(o.begin)
	o.asked[key]++
	fails := o.fails(key, o.asked[key])
	n := 0
	for _, at := range o.counted[org] {
		if at > now-o.window {
			n++
		}
	}
	if n >= o.limit && !fails {
		o.refused[key]++
		return reply(429, "{}", "Openai-Organization", org), nil
	}
	o.counted[org] = append(o.counted[org], now)
	if fails {
		return nil, errors.New("cut off")
	}
	o.served[key] = append(o.served[key], now)
	return reply(200, "{}", "Openai-Organization", org), nil
}

// visitors sends requests of several keys through one Transport, which knows the limit of each.
type visitors struct {
	t   *testing.T
	tr  *transport.Transport
	all sync.WaitGroup
}

func (o *offices) visitors(t *testing.T, change func(*transport.Config)) *visitors {
	c := transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Key {
			return nil
		}
		return rolling(t, int64(o.limit), o.window, limit.Requests)
	}}
	if change != nil {
		change(&c)
	}
	return &visitors{t: t, tr: mustNew(t, c)}
}

func (c *visitors) send(n int, keys ...string) {
	for range n {
		for _, key := range keys {
			c.all.Go(func() {
				do(c.t, c.tr, get(c.t, "https://api.openai.com/v1/models", "Authorization", "Bearer "+key))
			})
		}
	}
}

func (c *visitors) wait() {
	c.t.Helper()
	c.all.Wait()
	if n := transport.Active(c.tr); n != 0 {
		c.t.Errorf("%d are still under way", n)
	}
}

// Keys of several organizations begin at once. None is refused, and those that share a limit keep
// to it together. A key that shares with no other loses one round trip by it.
func TestNewcomersOfSeveralOrganizations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffices(map[string]string{"a": "one", "b": "one", "c": "two", "d": "two", "e": "three"}, 60, time.Minute, 250*time.Millisecond)
		random := rand.New(rand.NewPCG(1, 2))
		o.path = func() time.Duration { return time.Duration(200+random.IntN(100)) * time.Millisecond }
		c := o.visitors(t, nil)
		c.send(1, "a")
		synctest.Wait()
		c.send(59, "a", "b", "c", "d", "e")
		c.send(1, "b", "c", "d", "e")
		c.wait()
		if len(o.refused) > 0 {
			t.Errorf("refused are %v", o.refused)
		}
		for org, keys := range map[string]int{"one": 2, "two": 2, "three": 1} {
			all := o.counted[org]
			if last := all[len(all)-1]; len(all) != 60*keys || keys == 1 && last > 5*time.Second || last > 2*time.Minute+5*time.Second {
				t.Errorf("organization %s: the last of %d arrived at %v", org, len(all), last)
			}
		}
	})
}

// A key comes later to a host where another key has used all there is. Both may be of the same
// organization, so its first request waits for its turn. The rest wait with it, until that answer
// shows that they need not.
func TestNewcomerAtAFullHost(t *testing.T) {
	for name, c := range map[string]struct {
		org         string
		first, last time.Duration // of the newcomer's
	}{"the same": {"one", time.Minute, 3 * time.Minute}, "another": {"two", time.Minute, time.Minute + time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffices(map[string]string{"a": "one", "b": c.org}, 60, time.Minute, 100*time.Millisecond)
			cl := o.visitors(t, nil)
			cl.send(150, "a")
			time.Sleep(5 * time.Second)
			cl.send(40, "b")
			cl.wait()
			b := o.served["b"]
			if len(o.refused) > 0 || len(b) != 40 || len(o.served["a"]) != 150 {
				t.Fatalf("%s: refused are %v, served %d and %d", name, o.refused, len(b), len(o.served["a"]))
			}
			slack := 2 * time.Second
			if b[0] < c.first || b[0] > c.first+slack || b[39] < c.last-slack || b[39] > c.last+5*slack {
				t.Errorf("%s: the newcomer's arrived from %v to %v", name, b[0], b[39])
			}
		})
	}
}

// If no request will go for long, a newcomer does not wait for others: one of its requests probes.
// If its key is of the same organization, that one is refused, and no other.
func TestNewcomerDoesNotWaitForLong(t *testing.T) {
	for org, want := range map[string][2]int{"one": {1, 0}, "two": {0, 40}} { // refused, and served in the first seconds
		synctest.Test(t, func(t *testing.T) {
			o := newOffices(map[string]string{"a": "one", "b": org}, 60, time.Hour, 100*time.Millisecond)
			cl := o.visitors(t, func(c *transport.Config) { c.Attempts, c.MaxRetryAfter = 1, 2*time.Hour })
			cl.send(70, "a")
			time.Sleep(5 * time.Second)
			cl.send(40, "b")
			time.Sleep(5 * time.Second)
			o.mu.Lock()
			refused, served := o.refused["b"], len(o.served["b"])
			o.mu.Unlock()
			if refused != want[0] || served != want[1] {
				t.Errorf("organization %s: %d refused and %d served, want %v", org, refused, served, want)
			}
			cl.wait()
			if o.refused["a"] > 0 || o.refused["b"] != want[0] {
				t.Errorf("refused are %v", o.refused)
			}
		})
	}
}

// A newcomer's requests count in its own limits too, once an answer shows which those are. This
// holds for requests under way, and for broken ones that may or may not count.
func TestNewcomerForgetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffices(map[string]string{"a": "one", "b": "two"}, 20, time.Minute, time.Second)
		o.fails = func(key string, n int) bool { return key == "b" && n <= 6 }
		cl := o.visitors(t, func(c *transport.Config) { c.Attempts = 1 })
		cl.send(1, "a")
		cl.send(6, "b")
		time.Sleep(3 * time.Second)
		cl.send(50, "b", "a")
		cl.wait()
		if len(o.refused) > 0 || len(o.served["b"]) != 50 || len(o.served["a"]) != 51 {
			t.Errorf("refused are %v, served %d and %d", o.refused, len(o.served["b"]), len(o.served["a"]))
		}
	})
}

// A newcomer waits with the known key of its organization whatever else limits its requests.
func TestNewcomerBesideAllOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffices(map[string]string{"a": "one", "b": "one"}, 20, time.Minute, 100*time.Millisecond)
		cl := o.visitors(t, func(c *transport.Config) {
			c.Limiter, c.Adaptive = rolling(t, 1000, time.Second, limit.Requests), &limit.AdaptiveConfig{Initial: 100}
			c.Client = func(*http.Request) transport.Client {
				return transport.Client{Name: "x", Limit: func() limit.Limiter { return rolling(t, 1000, time.Second, limit.Requests) }}
			}
			c.Partition = func(r *http.Request) transport.Partition {
				p := transport.PartitionOf(r)
				p.Model, p.Route = "model", "/route"
				return p
			}
		})
		cl.send(1, "a")
		synctest.Wait()
		cl.send(19, "a", "b")
		cl.wait()
		if len(o.refused) > 0 || len(o.served["b"]) != 19 {
			t.Errorf("refused are %v, served of b %d", o.refused, len(o.served["b"]))
		}
	})
}

// A key that was at a host before anybody knew its provider is a newcomer by its next path. What it
// sent before then counts in the limits of its organization, too.
func TestNewcomerThatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		answer := make(chan struct{})
		server := roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/v1/slow" {
				<-answer
			}
			return reply(200, "{}", "Openai-Organization", "one", "X-Ratelimit-Limit-Requests", "1000",
				"X-Ratelimit-Remaining-Requests", "900", "X-Ratelimit-Reset-Requests", "1s"), nil
		})
		tr := mustNew(t, transport.Config{Base: server, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 4, time.Minute, limit.Requests)
		}})
		send := func(path, key string) {
			do(t, tr, get(t, "https://gateway.test"+path, "Authorization", "Bearer "+key))
		}
		var slow sync.WaitGroup
		slow.Go(func() { send("/v1/slow", "b") })
		slow.Go(func() { send("/v1/slow", "b") })
		synctest.Wait()
		send("/v1/models", "a")
		send("/v1/models", "b") // with the two that are in flight all four are used
		if d := time.Since(begin); d != 0 {
			t.Errorf("the first four took %v", d)
		}
		time.AfterFunc(time.Minute, func() { close(answer) })
		send("/v1/models", "a")
		if d := time.Since(begin); d < time.Minute {
			t.Errorf("the fifth of one organization was sent after %v, with 4 a minute", d)
		}
		slow.Wait()
		if n := transport.Active(tr); n != 0 {
			t.Errorf("%d are still under way", n)
		}
	})
}

// If answers name no organization, no request waits for that.
func TestNoOrganizationIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffices(map[string]string{"a": "", "b": "", "c": ""}, 60, time.Hour, 100*time.Millisecond)
		o.limit = 240 // the server has a limit for each key
		cl := o.visitors(t, func(c *transport.Config) {
			c.Limit = func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Key {
					return nil
				}
				return rolling(t, 60, time.Hour, limit.Requests)
			}
		})
		cl.send(60, "a", "b", "c")
		cl.wait()
		for key, at := range o.served {
			if len(at) != 60 || at[59] > time.Second {
				t.Errorf("key %s: %d, the last at %v", key, len(at), at[len(at)-1])
			}
		}
		cl.send(60, "d") // it is known by now that answers name no organization
		cl.wait()
		if at := o.served["d"]; len(at) != 60 || at[59] != at[0] {
			t.Errorf("%d of a later key, from %v to %v", len(at), at[0], at[len(at)-1])
		}
	})
}

// A client gives up while all requests of its key wait for its answer. It blocks none of them.
func TestNewcomerLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffices(map[string]string{"a": "one", "b": "two"}, 60, time.Minute, 100*time.Millisecond)
		cl := o.visitors(t, nil)
		cl.send(150, "a")
		time.Sleep(time.Second)
		ctx, stop := context.WithCancel(t.Context())
		first := get(t, "https://api.openai.com/v1/models", "Authorization", "Bearer b").WithContext(ctx)
		cl.all.Go(func() {
			if _, _, err := do(t, cl.tr, first); err == nil {
				t.Error("it was sent")
			}
		})
		synctest.Wait()
		cl.send(10, "b")
		time.Sleep(time.Second)
		stop()
		cl.wait()
		if b := o.served["b"]; len(o.refused) > 0 || len(b) != 10 || b[9] > 4*time.Second {
			t.Errorf("refused are %v, the others of its key arrived at %v", o.refused, b)
		}
	})
}

// Keys at random, with their owners known in any order. Each request is served or refused once, and
// none is forgotten. At most one is refused of each key that came when several organizations were
// known. Keys of one organization are never refused.
func TestNewcomersAtRandom(t *testing.T) {
	seeds := uint64(60)
	if race.Enabled {
		seeds = 20
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			of, names := map[string]string{}, []string{}
			organizations := 1 + rng.IntN(3)
			for i := range 2 + rng.IntN(5) {
				key := fmt.Sprint("key", i)
				names, of[key] = append(names, key), fmt.Sprint("org", rng.IntN(organizations))
			}
			o := newOffices(of, 5+rng.IntN(40), time.Duration(1+rng.IntN(60))*time.Second, 0)
			paths, cuts := rand.New(rand.NewPCG(seed, 8)), rng.IntN(3) == 0 // of the server, which is asked under a lock
			o.path = func() time.Duration { return time.Duration(paths.IntN(2000)) * time.Millisecond }
			o.fails = func(string, int) bool { return cuts && paths.IntN(5) == 0 }
			cl := o.visitors(t, func(c *transport.Config) {
				c.Attempts = 1
				if seed%5 == 4 {
					c.MaxPartitions = 2
				}
			})
			n := map[string]int{}
			for _, key := range names {
				n[key] = 1 + rng.IntN(2*o.limit)
				cl.send(n[key], key)
				if rng.IntN(2) == 0 {
					time.Sleep(time.Duration(rng.IntN(5000)) * time.Millisecond)
				}
			}
			cl.wait()
			all, refused := 0, 0
			for _, key := range names {
				all += n[key] - o.asked[key]
				refused += o.refused[key]
			}
			if all != 0 {
				t.Errorf("seed %d: %d were not sent once", seed, all)
			}
			if seed%5 != 4 && refused > max(0, organizations-1)*len(names) {
				t.Errorf("seed %d: of %d organizations %v were refused", seed, organizations, o.refused)
			}
			if refused > 0 {
				t.Logf("seed %d: %d organizations, %d keys, refused %v", seed, organizations, len(names), o.refused)
			}
		})
	}
}

// A newcomer that is named before the first key counts with it until that key has a name. Then it takes along what it sent.
func TestNewcomerNamedBeforeTheFirstKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &organized{of: map[string]string{"a": "one", "b": "two"}, answer: make(chan struct{}),
			sent: map[string][]time.Duration{}, begin: time.Now()}
		tr := mustNew(t, transport.Config{Base: o, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 3, time.Minute, limit.Requests)
		}})
		var all sync.WaitGroup
		send := func(key, path string) {
			all.Go(func() { do(t, tr, get(t, "https://api.openai.com/v1/models"+path, "Authorization", "Bearer "+key)) })
			synctest.Wait()
		}
		send("a", "/slow")
		send("b", "")
		close(o.answer)
		synctest.Wait()
		for range 3 {
			send("b", "")
		}
		send("a", "")
		all.Wait()
		if a, b := o.sent["a"], o.sent["b"]; !slices.Equal(a, seconds(0, 0)) || !slices.Equal(b, seconds(0, 0, 0, 60)) {
			t.Errorf("a: sent at %v, b at %v", a, b)
		}
		if n := transport.Active(tr); n != 0 {
			t.Errorf("%d are still under way", n)
		}
	})
}
