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

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/transport"
)

// rekeyed is a Transport whose keys change, each with one request in 10 s. Its server notes with which secret each
// request came, and when.
type rekeyed struct {
	t    *testing.T
	c    transport.Config
	now  *transport.Transport
	base *base
	asks sync.WaitGroup

	mu     sync.Mutex
	served []string
	denies string // a secret
}

func newRekeyed(t *testing.T, c transport.Config, keys ...transport.Key) *rekeyed {
	x := &rekeyed{t: t}
	x.base = newBase(0, func(_ int, r *http.Request) *http.Response {
		x.mu.Lock()
		defer x.mu.Unlock()
		secret := r.Header.Get("Authorization")
		x.served = append(x.served, fmt.Sprintf("%s %v", secret, time.Since(x.base.begin)))
		if secret == x.denies {
			return reply(401, "")
		}
		return ok(0, r)
	})
	c.Base, c.Keys = x.base, keys
	c.Limit = func(p transport.Partition) limit.Limiter {
		if p.Scope != "key" {
			return nil
		}
		return rolling(t, 1, 10*time.Second, limit.Requests)
	}
	x.c, x.now = c, mustNew(t, c)
	return x
}

// k is a key with a secret. was is its name before.
func k(name, secret, was string) transport.Key {
	return transport.Key{Name: name, Was: was, Apply: func(r *http.Request) { r.Header.Set("Authorization", secret) }}
}

func gone(k transport.Key) transport.Key {
	k.Away, k.Apply = true, nil
	return k
}

// ask sends requests at once. They wait.
func (x *rekeyed) ask(n int) {
	now := x.now
	for range n {
		x.asks.Go(func() {
			if status, _, err := do(x.t, now, get(x.t, "http://a.test/")); status != 200 {
				x.t.Errorf("%d %v", status, err)
			}
		})
	}
	synctest.Wait()
}

func (x *rekeyed) with(keys ...transport.Key) {
	x.t.Helper()
	c := x.c
	c.Keys = keys
	next, err := x.now.With(c)
	if err != nil {
		x.t.Fatal(err)
	}
	x.now = next
	synctest.Wait()
}

func (x *rekeyed) want(want ...string) {
	x.t.Helper()
	x.asks.Wait()
	if slices.Sort(x.served); !slices.Equal(x.served, want) {
		x.t.Errorf("served %q, want %q", x.served, want)
	}
}

// Keys come, go and come back while requests wait. Those go with the keys of the day, in their order, and what a key
// has sent counts for as long as ever.
func TestOtherKeys(t *testing.T) {
	for name, run := range map[string]func(x *rekeyed){
		"one more": func(x *rekeyed) {
			x.ask(4)
			time.Sleep(time.Second)
			x.with(k("a", "1", ""), k("b", "2", ""))
			x.want("1 0s", "1 10s", "2 11s", "2 1s")
		},
		"one less, and back": func(x *rekeyed) {
			x.with(k("a", "1", ""), k("b", "2", ""))
			x.ask(4)
			time.Sleep(time.Second)
			x.with(k("b", "2", ""))
			time.Sleep(time.Second)
			x.with(k("b", "2", ""), k("a", "1", ""))
			x.want("1 0s", "1 10s", "2 0s", "2 10s")
		},
		"gone for good": func(x *rekeyed) {
			x.with(k("a", "1", ""), k("b", "2", ""))
			x.ask(4)
			x.with(k("b", "2", ""))
			x.want("1 0s", "2 0s", "2 10s", "2 20s")
		},
		"away, under another name": func(x *rekeyed) {
			x.with(k("a", "1", ""), k("b", "2", ""))
			x.ask(4)
			x.with(k("a", "2", "b"), gone(k("a before", "", "a")))
			time.Sleep(time.Second)
			x.with(k("a", "2", ""), k("c", "1", "a before"))
			x.want("1 0s", "1 10s", "2 0s", "2 10s")
		},
		"a name for another": func(x *rekeyed) {
			x.with(k("a", "1", ""), k("b", "2", ""))
			x.ask(3)
			x.with(k("b", "1", "a"), k("a", "2", "b"))
			x.ask(1)
			x.want("1 0s", "1 10s", "2 0s", "2 10s")
		},
		"another secret": func(x *rekeyed) {
			x.ask(2)
			x.with(k("a", "2", ""))
			x.want("1 0s", "2 10s")
		},
		"the former secret of another key": func(x *rekeyed) {
			x.ask(4)
			x.with(k("a", "2", ""))
			time.Sleep(time.Second)
			back := k("b", "1", "")
			back.Like = "a"
			x.with(k("a", "2", ""), back)
			x.want("1 0s", "1 10s", "2 10s", "2 20s")
		},
		"a crowd, with a bound": func(x *rekeyed) {
			x.ask(3)
			x.with(k("a", "1", ""), k("b", "2", ""))
			x.want("1 0s", "1 10s", "2 0s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(newRekeyed(t, transport.Config{MaxWaiting: 3}, k("a", "1", ""))) })
		})
	}
}

// A bound on how many wait is for those that come. It refuses none that waited before the keys changed.
func TestOtherKeysRefuseNoneThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRekeyed(t, transport.Config{MaxWaiting: 20}, k("a", "1", ""))
		x.ask(21)
		for i := range 10 {
			for range 10 { // they come meanwhile
				x.asks.Go(func() {
					if _, _, err := do(t, x.now, get(t, "http://a.test/")); err != nil && !errors.Is(err, paceline.ErrFull) {
						t.Error(err)
					}
				})
			}
			c := x.c
			c.Keys = []transport.Key{k(fmt.Sprint("a", i+1), "1", strings.TrimSuffix(fmt.Sprint("a", i), "0"))}
			next, err := x.now.With(c)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			x.now = next
		}
		x.asks.Wait()
		if n := len(x.served); n < 21 {
			t.Errorf("%d are served, want 21 and those that found room", n)
		}
	})
}

// Under another name, a key is out of use, paused and counted as it was.
func TestKeyUnderAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRekeyed(t, transport.Config{}, k("a", "1", ""), k("b", "2", ""), k("c", "3", ""))
		x.denies = "1"
		for range 9 {
			x.ask(1)
			time.Sleep(10 * time.Second)
		}
		x.asks.Wait()
		x.now.Rest("b", time.Time{})
		x.with(k("x", "1", "a"), k("y", "2", "b"), k("z", "3", "c"))
		states := map[string]string{}
		for _, k := range x.now.Snapshot().Keys {
			if states[k.Name] = k.State; k.Counts.Sent < 3 {
				t.Errorf("%+v", k)
			}
		}
		if want := map[string]string{"x": observe.KeyDenied, "y": observe.KeyPaused, "z": observe.KeyOK}; fmt.Sprint(states) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", states, want)
		}
		x.served = nil
		x.ask(3)
		x.now.Resume("y")
		x.asks.Wait()
		if slices.ContainsFunc(x.served, func(s string) bool { return s[0] == '1' }) {
			t.Errorf("by a key that is out: %q", x.served)
		}
	})
}

// A request in flight with a key that is denied, and gone by then, goes again with the one in its place.
func TestDeniedByAKeyThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRekeyed(t, transport.Config{}, k("a", "1", ""))
		x.base.latency = time.Second
		x.denies = "1"
		x.ask(1)
		x.with(k("b", "2", ""))
		x.want("1 1s", "2 2s")
	})
}
