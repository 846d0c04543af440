package transport_test

import (
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
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

func nobody(*http.Request) transport.Client { return transport.Client{} }

// A change of a setting that must stay is refused, with its name; all others may change.
func TestWithRefuses(t *testing.T) {
	keys := func(names ...string) (all []transport.Key) {
		for _, name := range names {
			all = append(all, transport.Key{Name: name, Apply: func(*http.Request) {}})
		}
		return all
	}
	was := transport.Config{Base: newBase(0, ok), Fill: 2, MaxWaiting: 3, Client: nobody, Adaptive: &limit.AdaptiveConfig{}, Keys: keys("a", "b")}
	plain := transport.Config{Base: newBase(0, ok)}
	for _, tc := range []struct {
		name   string
		was    transport.Config
		change func(c *transport.Config)
		says   string // empty: it may
	}{
		{"nothing", was, func(*transport.Config) {}, ""},
		{"what is not shared", was, func(c *transport.Config) { c.Attempts, c.MaxRetryAfter = 9, time.Second }, ""},
		{"a Limiter", plain, func(c *transport.Config) { c.Limiter = limit.MustRolling(1, time.Second) }, "With a Limiter"},
		{"Fill", was, func(c *transport.Config) { c.Fill = 1 }, "With Fill 1, MaxWaiting 3: they were 2 and 3"},
		{"MaxWaiting", was, func(c *transport.Config) { c.MaxWaiting = 4 }, "With Fill 2, MaxWaiting 4: they were 2 and 3"},
		{"no Client", was, func(c *transport.Config) { c.Client = nil }, "Client or Adaptive"},
		{"a Client", plain, func(c *transport.Config) { c.Client = nobody }, "Client or Adaptive"},
		{"no Adaptive", was, func(c *transport.Config) { c.Adaptive = nil }, "Client or Adaptive"},
		{"an Adaptive", plain, func(c *transport.Config) { c.Adaptive = &limit.AdaptiveConfig{} }, "Client or Adaptive"},
		{"another key", was, func(c *transport.Config) { c.Keys = keys("a", "c") }, ""},
		{"a key less", was, func(c *transport.Config) { c.Keys = keys("a") }, ""},
		{"no key", was, func(c *transport.Config) { c.Keys = nil }, "With or without Keys, where it was the other"},
		{"no key that is not away", was, func(c *transport.Config) { c.Keys = []transport.Key{{Name: "a", Away: true}} }, "With or without Keys"},
		{"a key that there was not", was, func(c *transport.Config) { c.Keys = keys("d"); c.Keys[0].Was = "c" }, `With the key "d", which was "c": there was no such key`},
		{"two of one", was, func(c *transport.Config) { c.Keys = keys("d", "e"); c.Keys[0].Was, c.Keys[1].Was = "a", "a" }, `With the key "e", which was "a", as another one was, too`},
		{"the name of one that is gone", was, func(c *transport.Config) { c.Keys = keys("a"); c.Keys[0].Was = "b" }, `With "b" in place of "a", which is gone`},
		{"names exchanged", was, func(c *transport.Config) { c.Keys[0].Was, c.Keys[1].Was = "b", "a" }, ""},
		{"an Account", was, func(c *transport.Config) { c.Keys[0].Account = "b" }, `in one Account, where they were in two`},
		{"another target", was, func(c *transport.Config) { c.Keys[0].Target = "t" }, `there is none of that name`},
		{"Ordered", was, func(c *transport.Config) { c.Keys[0].Ordered = true }, `With the key "a": it is Ordered, or has a Gap, as it was not`},
		{"what makes no sense", was, func(c *transport.Config) { c.Attempts = -1 }, "Attempts -1 is negative"},
	} {
		tr := mustNew(t, tc.was)
		c := tc.was
		c.Keys = slices.Clone(c.Keys)
		tc.change(&c)
		next, err := tr.With(c)
		if tc.says == "" && (err != nil || next == nil) || tc.says != "" && (err == nil || next != nil || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.says)
		}
	}
}

// Both send within one limit, each by its own configuration, and share the known facts about a
// server.
func TestWithSharesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, other := newBase(0, ok), newBase(0, func(int, *http.Request) *http.Response { return reply(500, "") })
		c := transport.Config{Base: b, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 2, 10*time.Second, limit.Requests)
		}}
		tr := mustNew(t, c)
		c.Base, c.Attempts = other, 1
		next, err := tr.With(c)
		if err != nil {
			t.Fatal(err)
		}
		do(t, tr, get(t, "http://a.test/"))
		do(t, next, get(t, "http://a.test/"))
		do(t, next, get(t, "http://a.test/"))
		do(t, tr, get(t, "http://a.test/"))
		if got, want := slices.Concat(b.at(), other.at()), seconds(0, 10, 0, 10); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
		if n := tr.Stats().Attempts; n != 4 || next.Stats().Attempts != 4 {
			t.Errorf("%d attempts, want 4", n)
		}
	})
}

// Where a Limiter is known, load does not begin slowly after a pause. The configuration of With names none, since the one there is
// goes on, and new partitions begin as before.
func TestWithKeepsTheLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(time.Second, func(n int, r *http.Request) *http.Response {
			if n == 1 {
				return reply(429, "", "Retry-After", "5")
			}
			return ok(n, r)
		})
		c := transport.Config{Base: b, Limiter: rolling(t, 100, time.Second, limit.Requests), MaxWait: atMost(time.Minute)}
		tr := mustNew(t, c)
		c.Limiter = nil
		next, err := tr.With(c)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { do(t, next, get(t, "http://a.test/")) })
			time.Sleep(1500 * time.Millisecond)
		}
		all.Wait()
		if got, want := b.at(), seconds(0, 6, 6, 6, 6); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// The latest configuration decides how long requests wait for a refusing server, for existing
// partitions too.
func TestWithChangesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 2 {
				return reply(429, "", "Retry-After", "30")
			}
			return reply(200, "")
		})
		c := transport.Config{Base: b}
		tr := mustNew(t, c)
		do(t, tr, get(t, "http://a.test/"))
		c.MaxRetryAfter = 5 * time.Second
		next, err := tr.With(c)
		if err != nil {
			t.Fatal(err)
		}
		if status, _, err := do(t, next, get(t, "http://a.test/")); status != 429 || err != nil {
			t.Errorf("%d, %v, want the refusal", status, err)
		}
		for _, each := range []*transport.Transport{next, tr} {
			if _, _, err := do(t, each, get(t, "http://a.test/")); !errors.Is(err, transport.ErrPaused) {
				t.Errorf("while the server wants 30 s: %v", err)
			}
		}
		time.Sleep(26 * time.Second)
		if status, _, err := do(t, next, get(t, "http://a.test/")); status != 200 || err != nil {
			t.Errorf("4 s before its end: %d, %v", status, err)
		}
		if got, want := b.at(), seconds(0, 0, 30); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A client's own limit is changed like others, and its usage is remembered for as long as the new
// window is.
func TestChangeOfAClientsWindow(t *testing.T) {
	for _, changes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{
				Base: newBase(0, ok), MaxPartitions: 10,
				Client: func(r *http.Request) transport.Client {
					c := transport.Client{Name: r.Header.Get("Client")}
					if c.Name == "own" {
						c.Limit = func() limit.Limiter { return rolling(t, 5, time.Second, limit.Requests) }
					}
					return c
				},
			})
			do(t, tr, get(t, "http://a.test/", "Client", "own"))
			do(t, tr, get(t, "http://a.test/", "Client", "another"))
			if changes {
				tr.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
					if p.Scope != transport.ScopeClient || p.Client != "own" {
						t.Errorf("asked for %v", p)
					}
					if err := l.(*limit.Rolling).SetWindow(now, 100*time.Hour); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(50 * time.Hour)
			for i := range 20 { // its partition is forgotten, and it with it unless something counts
				do(t, tr, get(t, "http://a.test/", "Client", string(rune('a'+i))))
				time.Sleep(time.Second)
			}
			if _, clients := transport.Frozen(tr); changes != (clients == 1) {
				t.Errorf("changed %v: %d clients are frozen", changes, clients)
			}
		})
	}
}

// How many clients are remembered is as the Transport that With returned has it; where clients are in common, as their Clients do.
func TestWithBoundsClients(t *testing.T) {
	for _, inCommon := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := transport.Config{
				Base: newGoing(), MaxPartitions: 1000,
				Client: func(r *http.Request) transport.Client {
					return transport.Client{Name: r.Header.Get("Client"), Limit: func() limit.Limiter { return rolling(t, 1, 12*time.Hour, limit.Requests) }}
				},
			}
			if inCommon {
				c.MaxPartitions = 10
				var err error
				if c.Clients, err = transport.NewClients(transport.ClientsConfig{Most: 50}); err != nil {
					t.Fatal(err)
				}
			}
			tr := mustNew(t, c)
			if c.MaxPartitions = 10; !inCommon {
				c.MaxPartitions = 50
			}
			next, err := tr.With(c)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 300 {
				do(t, next, get(t, "http://a.test/", "Client", fmt.Sprint(i)))
				time.Sleep(time.Second)
			}
			if _, names, _ := transport.Remembered(next); names < 50 || names > 100 {
				t.Errorf("in common %v: %d clients are remembered, want some 50", inCommon, names)
			}
		})
	}
}
