package proxy

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// numbering is a Config for an exchange with nonces.
func numbering(t testing.TB, keys ...string) Config {
	c := to(mustURL(t, "http://exchange.test"), "20/s")
	c.MaxWait = time.Hour
	u := &c.Upstreams[0]
	for _, k := range keys {
		u.Keys = append(u.Keys, Key{Name: "K-" + k, Secret: Secret(k)})
	}
	u.Query = []Field{{"api_key", "{key}"}, {"nonce", "{nonce}"}}
	return c
}

// exchanging is an exchange, which wants rising nonces.
func exchanging(t testing.TB, before latency.Law, keys ...string) *ratetest.Exchange {
	t.Helper()
	x, err := ratetest.NewExchange(ratetest.Config{Keys: keys, Before: before, After: before, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// orders sends n requests at once, and returns how many were not served.
func orders(t testing.TB, h *http.Client, n int) (failed int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		all.Go(func() {
			resp, err := h.Post("http://proxy.test"+ratetest.Path+fmt.Sprintf("?nonce=1&req_id=%d", i), "application/x-www-form-urlencoded", strings.NewReader("side=buy"))
			if err != nil {
				t.Error(err)
				return
			}
			text, _ := io.ReadAll(resp.Body) // what is read is only shown
			resp.Body.Close()
			if resp.StatusCode != 200 {
				mu.Lock()
				failed++
				mu.Unlock()
				t.Logf("%d %s", resp.StatusCode, text)
			}
		})
	}
	all.Wait()
	return failed
}

// The gap of an upstream is that of its targets whose requests have a nonce, and of no other.
func TestGapAtTargets(t *testing.T) {
	key := []Key{{Name: "K", Secret: "s"}}
	u := &Upstream{NonceGap: 50 * time.Millisecond, NonceUnit: time.Millisecond, Targets: []Target{
		{Name: "numbers", Keys: key, Query: []Field{{"api_key", "{key}"}, {"nonce", "{nonce}"}}},
		{Name: "plain", Keys: key, Header: []Field{{"Authorization", "Bearer {key}"}}},
	}}
	all := u.keys()
	if len(all) != 2 || !all[0].Ordered || all[0].Gap != u.NonceGap || all[1].Ordered || all[1].Gap != 0 {
		t.Errorf("%+v", all)
	}
	if x := u.at(0); x.NonceUnit != u.NonceUnit || u.at(1).NonceUnit != 0 {
		t.Errorf("units of %v and %v", x.NonceUnit, u.at(1).NonceUnit)
	}
}

// A server that wants rising nonces refuses nothing: of a key, one request is in flight at a time or, with a gap, several. Without
// the order it would refuse some, as the last row shows.
func TestNoncesRise(t *testing.T) {
	for name, c := range map[string]struct {
		latency latency.Law
		gap     time.Duration
		within  time.Duration
	}{
		"no latency":         {latency.Constant(0), 0, 4 * time.Second},
		"one in flight":      {latency.Uniform(0, 50*time.Millisecond), 0, 7 * time.Second},
		"gaps of the spread": {latency.Uniform(300*time.Millisecond, 340*time.Millisecond), 50 * time.Millisecond, 6 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := exchanging(t, c.latency, "key1", "key2")
			conf := numbering(t, "key1", "key2")
			conf.Upstreams[0].NonceGap = c.gap
			began := time.Now()
			virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) {
				if failed := orders(t, client(), 160); failed > 0 {
					t.Errorf("%s: %d failed", name, failed)
				}
			})
			took, total := time.Since(began), server.Report().Judge.Total
			if total.Accepted != 160 || total.Total() != 160 || took > c.within+time.Second {
				t.Errorf("%s: %v in %v, want 160 accepted within %v", name, total, took, c.within)
			}
		})
	}
}

// A gap that is too small is noticed: what the server refuses for its number goes again with another.
func TestNonceGapTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := exchanging(t, latency.Uniform(0, 200*time.Millisecond), "key1")
		conf := numbering(t, "key1")
		conf.Upstreams[0].NonceGap, conf.Upstreams[0].Attempts = 20*time.Millisecond, 10
		virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) {
			if failed := orders(t, client(), 40); failed > 0 {
				t.Errorf("%d failed", failed)
			}
		})
		if total := server.Report().Judge.Total; total.Accepted != 40 || total.BadNonce == 0 {
			t.Errorf("%v, want 40 accepted and some refused for their order", total)
		}
	})
}

// Numbers rise over a restart and over a changed configuration, and in a unit of their own.
func TestNoncesRiseOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := exchanging(t, latency.Constant(time.Millisecond), "key1")
		state := filepath.Join(t.TempDir(), "state")
		for range 3 {
			conf := numbering(t, "key1")
			conf.State, conf.Live, conf.clock = state, true, bubbleClock
			conf.Upstreams[0].NonceUnit = time.Microsecond
			virtually(t, server, conf, func(p *Proxy, client func() *http.Client) {
				h := client()
				for _, path := range []string{"a", "b"} {
					if failed := orders(t, h, 5); failed > 0 {
						t.Errorf("%d failed", failed)
					}
					changed := p.latest.Load().config
					changed.Upstreams = []Upstream{conf.Upstreams[0]}
					changed.Upstreams[0].Header = []Field{{"X-Path", Secret(path + "{key}")}} // another way to the server
					if err := p.Apply(changed); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
		all := server.Records()
		if total := server.Report().Judge.Total; total.Accepted != 30 || total.Total() != 30 || len(all[0].Nonce) != len("946684800000000") {
			t.Errorf("%v; the first nonce is %q", total, all[0].Nonce)
		}
	})
}

// If the server has had larger numbers of a key, one line says so, and names the unit. A key in order has none.
func TestNoncesTooLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := exchanging(t, latency.Constant(time.Millisecond), "key1", "key2")
		micros := httptest.NewRequest("GET", fmt.Sprintf("%s?api_key=key1&nonce=%d", ratetest.Path, time.Now().UnixMicro()), nil)
		server.ServeHTTP(httptest.NewRecorder(), micros)
		conf := numbering(t, "key1", "key2")
		var log bytes.Buffer
		conf.Log, conf.Upstreams[0].Attempts = slog.New(slog.NewTextHandler(&log, nil)), 3
		virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) { orders(t, client(), 40) })
		if total := server.Report().Judge.Total; total.BadNonce < lags {
			t.Fatalf("%v: few nonces were refused", total)
		}
		said := log.String()
		if strings.Count(said, "larger nonces") != 1 || !strings.Contains(said, "nonce_unit (--nonce-unit)") || !strings.Contains(said, "key=K-key1") {
			t.Errorf("it says: %s", said)
		}
	})
}

// Another unit in the file holds at once.
func TestNonceUnitChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := exchanging(t, latency.Constant(time.Millisecond), "key1")
		conf := numbering(t, "key1")
		conf.Live = true
		virtually(t, server, conf, func(p *Proxy, client func() *http.Client) {
			h := client()
			failed := orders(t, h, 3)
			changed := p.latest.Load().config
			changed.Upstreams = slices.Clone(changed.Upstreams)
			changed.Upstreams[0].NonceUnit = time.Microsecond
			if err := p.Apply(changed); err != nil {
				t.Fatal(err)
			}
			if failed += orders(t, h, 3); failed > 0 {
				t.Errorf("%d failed", failed)
			}
		})
		all := server.Records()
		if before, after := all[0].Nonce, all[len(all)-1].Nonce; len(all) != 6 || len(after) != len(before)+3 {
			t.Errorf("of %d nonces the first is %q and the last %q", len(all), before, after)
		}
	})
}

// Numbers are for keys of the proxy, in one process.
func TestNoncesAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"Upstreams[0].Keys: none, and a header":  func(c *Config) { c.Upstreams[0].Keys, c.Upstreams[0].Query = nil, c.Upstreams[0].Query[1:] },
		"Upstreams[0].NonceGap: -1s is negative": func(c *Config) { c.Upstreams[0].NonceGap = -time.Second },
		"Upstreams[0].NonceUnit: 1s, and no header field or parameter": func(c *Config) {
			c.Upstreams[0].Query, c.Upstreams[0].NonceUnit = c.Upstreams[0].Query[:1], time.Second
		},
		"Upstreams[1].Keys: the key K of other is one of exchange.test, too": func(c *Config) {
			u := c.Upstreams[0]
			u.Name, u.Path, u.Keys = "other", "/other", []Key{{Name: "K", Secret: "key1"}}
			c.Upstreams = append(c.Upstreams, u)
		},
		"Upstreams[0].Header: {nonce} beside a store that limits are sha": func(c *Config) { c.Share.Store = "sqlite:x" },
	} {
		c := numbering(t, "key1")
		change(&c)
		if _, err := c.Checked(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Each key has numbers of its own, and so has each unit. What one key uses up takes no other ahead of the clock, which a restart
// begins with.
func TestNumbersOfEachKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		clock := uint64(time.Now().Unix())
		for i, c := range []struct {
			of   numbered
			want uint64
		}{
			{numbered{"a", "K1", time.Second}, clock}, {numbered{"a", "K1", time.Second}, clock + 1}, {numbered{"a", "K1", time.Second}, clock + 2},
			{numbered{"a", "K2", time.Second}, clock}, {numbered{"b", "K1", time.Second}, clock},
			{numbered{"a", "K1", time.Millisecond}, 1000 * clock}, {numbered{"a", "K1", time.Second}, clock + 3},
		} {
			if got := n.next(c.of); got != c.want {
				t.Errorf("%d: %+v gets %d, expected %d", i, c.of, got, c.want)
			}
		}
	})
}
