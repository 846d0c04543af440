package transport_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/transport"
)

// ordering is a server that wants numbers in X-Nonce to rise, and takes a while to look at each.
type ordering struct {
	delay func(n uint64) time.Duration

	mu            sync.Mutex
	last          uint64
	open, most    int
	served, stale int
}

func (o *ordering) RoundTrip(r *http.Request) (*http.Response, error) {
	n, err := strconv.ParseUint(r.Header.Get("X-Nonce"), 10, 64)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	o.open++
	o.most = max(o.most, o.open)
	o.mu.Unlock()
	time.Sleep(o.delay(n))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open--
	if n <= o.last {
		o.stale++
		return reply(400, `{"error":"Invalid nonce"}`), nil
	}
	o.last = n
	o.served++
	return reply(200, "fine"), nil
}

// numbered is a key whose requests have numbers.
func numbered(last *atomic.Uint64, gap time.Duration) transport.Key {
	return transport.Key{Name: "a", Ordered: true, Gap: gap, Apply: func(r *http.Request) { r.Header.Set("X-Nonce", fmt.Sprint(last.Add(1))) }}
}

// Requests of an Ordered key go one at a time, or a Gap apart. What is refused for its number goes again with another, a POST too.
func TestOrderedKeys(t *testing.T) {
	for _, c := range []struct {
		name        string
		gap         time.Duration
		delay       func(n uint64) time.Duration
		most, stale int // in flight at a time; refused
	}{
		{"one at a time", 0, func(n uint64) time.Duration { return time.Duration(1+n%7) * time.Second }, 1, 0},
		{"a gap", time.Second, func(uint64) time.Duration { return 10 * time.Second }, 11, 0},
		{"a gap that is too small once", time.Second, func(n uint64) time.Duration {
			if n == 3 {
				return 2500 * time.Millisecond // and the fourth arrives before
			}
			return time.Second
		}, 3, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			server, last := &ordering{delay: c.delay}, new(atomic.Uint64)
			tr := mustNew(t, transport.Config{Base: server, Keys: []transport.Key{numbered(last, c.gap)}})
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					r, _ := http.NewRequest("POST", "http://a.test/order", strings.NewReader("side=buy"))
					if status, body, err := do(t, tr, r); status != 200 || err != nil {
						t.Errorf("%s: %d %s %v", c.name, status, body, err)
					}
				})
			}
			all.Wait()
			if server.served != 20 || server.stale != c.stale || server.most > c.most || c.gap > 0 && server.most < 2 {
				t.Errorf("%s: %d served, %d refused, %d in flight at a time", c.name, server.served, server.stale, server.most)
			}
		})
	}
}

// A number that is refused where nobody orders them, or at the last attempt, is the caller's to see.
func TestRefusedNumbersAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &ordering{last: 1 << 60, delay: func(uint64) time.Duration { return time.Second }}
		for _, ordered := range []bool{true, false} {
			k := numbered(new(atomic.Uint64), 0)
			k.Ordered = ordered
			server.stale = 0
			tr := mustNew(t, transport.Config{Base: server, Keys: []transport.Key{k}, Attempts: 4})
			status, body, err := do(t, tr, get(t, "http://a.test/"))
			if want := map[bool]int{true: 4, false: 1}[ordered]; status != 400 || body != `{"error":"Invalid nonce"}` || err != nil || server.stale != want {
				t.Errorf("ordered %v: %d %s %v after %d attempts, want %d", ordered, status, body, err, server.stale, want)
			}
		}
	})
}

func TestOrderedKeysAreChecked(t *testing.T) {
	key := numbered(new(atomic.Uint64), 0)
	for want, change := range map[string]func(*transport.Config){
		"Keys[0]: Gap -1s is negative":             func(c *transport.Config) { c.Keys[0].Gap = -time.Second },
		`Keys[0]: "a" has a Gap and is not Ordere`: func(c *transport.Config) { c.Keys[0].Ordered, c.Keys[0].Gap = false, time.Second },
		"Keys[0]: Fill 3: a Gap does not foresee":  func(c *transport.Config) { c.Fill, c.Keys[0].Gap = 3, time.Second },
	} {
		c := transport.Config{Keys: []transport.Key{key}}
		change(&c)
		if _, err := transport.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
