package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share/sharetest"
)

// strictServer counts in a rolling window, and answers what is over it with 429.
type strictServer struct {
	base time.Time

	mu            sync.Mutex
	rule          rule.Amendable
	sent, refused int
	last          time.Time
}

func newStrictServer(t *testing.T, n int64, w time.Duration) *strictServer {
	t.Helper()
	r, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: w})
	if err != nil {
		t.Fatal(err)
	}
	return &strictServer{base: time.Now(), rule: r}
}

func (s *strictServer) dial(context.Context, string, string) (net.Conn, error) {
	return fakeconn.Conn(func() int {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent++
		s.last = time.Now()
		if !s.rule.Arrive(mono.Of(s.base, s.last), 1) {
			s.refused++
			return http.StatusTooManyRequests
		}
		return http.StatusOK
	}), nil
}

func (s *strictServer) all() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

func sharingConfig(t *testing.T, s *strictServer, store *sharetest.Memory, text string, keys ...string) Config {
	t.Helper()
	l, err := rate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	u := Upstream{To: &url.URL{Scheme: "http", Host: "server"}, Limits: []Limit{{Limit: l}}, InFlight: 40}
	for i, k := range keys {
		u.Keys = append(u.Keys, Key{Name: fmt.Sprintf("K%d", i), Secret: Secret(k)})
	}
	if len(keys) > 0 {
		u.Header = []Field{{Name: "Authorization", Value: "Bearer {key}"}}
	}
	return Config{
		Upstreams: []Upstream{u}, Dial: s.dial, Share: ShareBy{Store: "memory:"},
		Shared: sharestore.New(sharestore.Config{Store: store, Address: "memory:"}),
	}
}

func ask(p *Proxy, credential string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/x", nil)
	r.RemoteAddr, r.Host = "127.0.0.1:1", "127.0.0.1:7878"
	if credential != "" {
		r.Header.Set("Authorization", credential)
	}
	p.ServeHTTP(w, r)
	return w.Code
}

// Three proxies with a store keep to a limit together, over a restart too, and what each is called
// there does not tell the key.
func TestShared(t *testing.T) {
	for name, c := range map[string]struct {
		keys       []string
		credential string
		live       bool
		second     bool // there is another upstream, whose limits are its own
	}{
		"no key": {}, "keys of the proxy": {keys: []string{"sk-secret"}}, "the client's own": {credential: "Bearer sk-secret"},
		"live": {keys: []string{"sk-secret"}, live: true}, "one of two upstreams": {keys: []string{"sk-secret"}, second: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, store := newStrictServer(t, 20, 10*time.Second), new(sharetest.Memory)
				var configs []Config
				var proxies []*Proxy
				start := func() *Proxy {
					config := sharingConfig(t, s, store, "20/10s", c.keys...)
					if config.Live = c.live; c.second {
						config.Upstreams[0].Name = "api"
						config.Upstreams = append(config.Upstreams, Upstream{Path: "/b", To: &url.URL{Scheme: "http", Host: "other"}})
					}
					if err := config.CheckShared(t.Context()); err != nil {
						t.Fatal(err)
					}
					p, err := New(config)
					if err != nil {
						t.Fatal(err)
					}
					configs, proxies = append(configs, config), append(proxies, p)
					return p
				}
				var wg sync.WaitGroup
				for range 3 {
					p := start()
					for range 20 {
						wg.Go(func() {
							if code := ask(p, c.credential); code != 200 {
								t.Errorf("status %d", code)
							}
						})
					}
				}
				wg.Wait()
				for _, c := range configs {
					c.Shared.Close()
				}
				before := s.last
				if code := ask(start(), c.credential); code != 200 {
					t.Errorf("after a restart: %d", code)
				}
				if d := s.last.Sub(before); d < 9*time.Second {
					t.Errorf("after a restart it went %v after the last", d)
				}
				if s.sent != 61 || s.refused > 0 {
					t.Errorf("%d of %d refused", s.refused, s.sent)
				}
				names := []string{"default", "default/in flight"}
				if name != "no key" { // what counts without a key is looked at, and has no request
					of := map[bool]string{false: "default/", true: "default/api/"}[c.second]
					key := of + configs[0].Shared.Key("sk-secret")
					names = []string{of + "in flight", key, key + "/in flight"}
				}
				if got, _ := store.Names(t.Context()); !slices.Equal(got, names) || strings.Contains(fmt.Sprint(got), "sk-secret") {
					t.Errorf("the limits are called %q, want %q", got, names)
				}
				for i := range proxies {
					configs[i].Shared.Close()
					proxies[i].close()
				}
			})
		})
	}
}

// Limits that are new in the store send nothing for 7 s and a window, unless it was stated that they are new. Those of
// a client's own key are not known when the proxy begins.
func TestSharedNew(t *testing.T) {
	const quiet = 17 * time.Second
	for _, c := range []struct {
		name       string
		keys       []string
		credential string
		states     bool
		begins     bool
	}{
		{name: "not stated", keys: []string{"sk-secret"}},
		{name: "a key of the proxy", keys: []string{"sk-secret"}, states: true, begins: true},
		{name: "no key", states: true, begins: true},
		{name: "the client's own", credential: "Bearer sk-secret", states: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, store := newStrictServer(t, 20, 10*time.Second), new(sharetest.Memory)
				if c.states {
					if err := sharestore.StateNew(t.Context(), store, sharestore.DefaultName); err != nil {
						t.Fatal(err)
					}
				}
				config := sharingConfig(t, s, store, "20/10s", c.keys...)
				checked, err := config.Checked()
				if err == nil {
					err = checked.CheckShared(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				p, err := New(config)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if code := ask(p, c.credential); code != 200 {
					t.Errorf("status %d", code)
				}
				if took := time.Since(began); c.begins != (took < 2*time.Second) || !c.begins && took < quiet-time.Second {
					t.Errorf("the first went after %v", took)
				}
				config.Shared.Close()
				p.close()
			})
		})
	}
}

// A limit that cannot be shared, or that differs from the one in the store, is an error before the
// first request.
func TestSharedRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 20, time.Second), new(sharetest.Memory)
		first := sharingConfig(t, s, store, "20/s")
		p, err := New(first)
		if err != nil {
			t.Fatal(err)
		}
		if code := ask(p, ""); code != 200 {
			t.Errorf("status %d", code)
		}
		for want, change := range map[string]func(*Config){
			`"30/s" here`: func(c *Config) { c.Upstreams[0].Limits[0].N = 30 },
			"Upstreams[0].Arrivals: what a promise of latencies gains cannot be shared": func(c *Config) { c.Upstreams[0].Arrivals.OneWayMax = time.Millisecond },
			"Upstreams[0].Auto":                        func(c *Config) { c.Upstreams[0].Auto, c.Upstreams[0].Limits = true, nil },
			"State: beside a store":                    func(c *Config) { c.State = "file" },
			"Share.Weight: -1 is not between":          func(c *Config) { c.Share.Weight = -1 },
			"Share.Least: 2 is not between":            func(c *Config) { c.Share.Least = 2 },
			"Share: there is no store":                 func(c *Config) { c.Share = ShareBy{Name: "x"} },
			"Upstreams[0].Limits: share: a *limit.Pro": func(c *Config) { c.Upstreams[0].Preset, c.Upstreams[0].Limits = "anthropic:start", nil },
		} {
			c := sharingConfig(t, s, store, "20/s")
			change(&c)
			checked, err := c.Checked()
			if err == nil {
				err = checked.CheckShared(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		store.Away(errors.New("no route to it"))
		if err := first.CheckShared(t.Context()); err == nil || !strings.Contains(err.Error(), "memory: cannot be reached: no route to it") {
			t.Errorf("without the store: %v", err)
		}
		store.Away(nil)
		first.Shared.Close()
		p.close()
	})
}

// While a proxy runs, limits that others have, too, do not change; the rest does.
func TestSharedApply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 20, time.Second), new(sharetest.Memory)
		c := sharingConfig(t, s, store, "20/s")
		c.Live = true
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		next := sharingConfig(t, s, store, "20/s")
		next.MaxWait = 3 * time.Second
		if err := p.Apply(next); err != nil {
			t.Errorf("another wait: %v", err)
		}
		for want, change := range map[string]func(*Config){
			"limits of server change": func(c *Config) { c.Upstreams[0].Limits[0].N = 30 },
			"where limits are shared": func(c *Config) { c.Share.Name = "other" },
			"limits of clients change": func(c *Config) {
				c.Clients.Default.Limits = []rate.Limit{{N: 1, Per: time.Second, Unit: limit.Requests}}
			},
			"where there are several upstr": func(c *Config) {
				c.Upstreams = append(c.Upstreams, Upstream{Name: "b", Path: "/b", To: &url.URL{Scheme: "http", Host: "b"}})
			},
			"limits of clients change, which others": func(c *Config) { c.Clients.Default.InFlight = 3 },
			"limits of server change, which others":  func(c *Config) { c.Upstreams[0].InFlight++ },
		} {
			next := sharingConfig(t, s, store, "20/s")
			change(&next)
			if err := p.Apply(next); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
		c.Shared.Close()
		p.close()
	})
}

// A client's own limit is one for all proxies and all of their upstreams.
func TestSharedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 1000, time.Second), new(sharetest.Memory)
		begin := time.Now()
		for _, path := range []string{"/other", "/more"} {
			c := sharingConfig(t, s, store, "1000/s")
			c.Clients.Default.Limits = ratesOf("3/10s")
			c.Upstreams = append(c.Upstreams, Upstream{Name: "more", Path: path, To: &url.URL{Scheme: "http", Host: "more"}})
			p, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/x", path, "/x", path, "/x", path} {
				w := httptest.NewRecorder()
				r := httptest.NewRequest("GET", path, nil)
				r.RemoteAddr, r.Host = "127.0.0.1:1", "127.0.0.1:7878"
				if p.ServeHTTP(w, r); w.Code != 200 {
					t.Errorf("%s: %d %s", path, w.Code, w.Body)
				}
			}
			c.Shared.Close()
			p.close()
		}
		if took := time.Since(begin); took < 30*time.Second {
			t.Errorf("12 requests took %v, of 3 in 10 s", took)
		}
		if got, _ := store.Names(t.Context()); !slices.Contains(got, "default/client 127.0.0.1") || slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, "more") && strings.Contains(s, "client") }) {
			t.Errorf("limits are called %q", got)
		}
	})
}

// Published limits and one's own are one limit in the store. A proxy with both finds them there, and
// one with half of them is refused at its start.
func TestSharedPresetAndLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 20, 10*time.Second), new(sharetest.Memory)
		of := func(preset string) *Config {
			c := sharingConfig(t, s, store, "20/10s", "sk-secret")
			c.Upstreams[0].InFlight, c.Upstreams[0].Preset = 0, preset
			return &c
		}
		first := of("discord")
		p, err := New(*first)
		if err != nil {
			t.Fatal(err)
		}
		if code := ask(p, ""); code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
		for preset, same := range map[string]bool{"discord": true, "": false, "github": false} {
			c, err := of(preset).Checked()
			if err == nil {
				err = c.CheckShared(t.Context())
			}
			if (err == nil) != same {
				t.Errorf("with preset %q: %v", preset, err)
			}
			c.Shared.Close()
		}
		first.Shared.Close()
		p.close()
	})
}

// Proxies with a store use a part of a limit together: the server here leaves them no more. They take all
// of the part, and are refused nothing.
func TestSharedUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, store := newStrictServer(t, 15, 10*time.Second), new(sharetest.Memory)
		var wg sync.WaitGroup
		for range 3 {
			config := sharingConfig(t, s, store, "20/10s")
			config.Upstreams[0].Use = 0.75
			if err := config.CheckShared(t.Context()); err != nil {
				t.Fatal(err)
			}
			p, err := New(config)
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			defer config.Shared.Close()
			for range 20 {
				wg.Go(func() {
					if code := ask(p, ""); code != 200 {
						t.Errorf("status %d", code)
					}
				})
			}
		}
		wg.Wait()
		if took := time.Since(s.base); s.sent != 60 || s.refused > 0 || took > 50*time.Second { // it begins with a window and 7 s
			t.Errorf("%d of %d refused, in %v; want 60 in four windows", s.refused, s.sent, took)
		}
		whole := sharingConfig(t, s, store, "20/10s")
		other, err := whole.Checked()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.CheckShared(t.Context()); err == nil || !strings.Contains(err.Error(), `"15/10s" where`) {
			t.Errorf("%v, want that the store has another limit", err)
		}
		c := sharingConfig(t, s, store, "20/10s")
		c.Upstreams[0].Use = 0.04
		const want = "Upstreams[0].Use: 4 % of 20 per 10s is less than 1"
		if _, err := c.Checked(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		ramp := sharingConfig(t, s, store, "20/10s")
		ramp.Upstreams[0].Ramp = time.Minute
		if other, err = ramp.Checked(); err != nil {
			t.Fatal(err)
		}
		if err := other.CheckShared(t.Context()); err == nil || !strings.Contains(err.Error(), "ramp 1m0s") {
			t.Errorf("%v, want that the limit in the store has no ramp", err)
		}
	})
}

// Two proxies have no more requests in flight together than one may have, of a client and of a key. One without a place
// says so when it refuses. A client of the list need not wait at a store that is stated to be new.
func TestSharedInFlight(t *testing.T) {
	for _, c := range []struct {
		whose, name string
		bound       func(c *Config)
	}{
		{"of client crew", "default/client crew/in flight", func(c *Config) {
			c.Clients.List = []Client{{Name: "crew", InFlight: 2, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}
		}},
		{"of server", "default/in flight", func(c *Config) { c.Upstreams[0].InFlight = 2 }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, store := newStrictServer(t, 1000, time.Second), new(sharetest.Memory)
			if err := sharestore.StateNew(t.Context(), store, sharestore.DefaultName); err != nil {
				t.Fatal(err)
			}
			var open, peak atomic.Int64
			dial := func(context.Context, string, string) (net.Conn, error) {
				return fakeconn.Conn(func() int {
					peak.Store(max(peak.Load(), open.Add(1)))
					time.Sleep(20 * time.Second)
					open.Add(-1)
					return http.StatusOK
				}), nil
			}
			var proxies []*Proxy
			for range 2 {
				config := sharingConfig(t, s, store, "1000/s")
				config.Dial, config.Upstreams[0].InFlight, config.MaxWait = dial, 0, time.Minute
				c.bound(&config)
				checked, err := config.Checked()
				if err == nil {
					err = checked.CheckShared(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				p, err := New(config)
				if err != nil {
					t.Fatal(err)
				}
				proxies = append(proxies, p)
			}
			began := time.Now()
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() { ask(proxies[0], "") })
			}
			time.Sleep(5 * time.Second)
			if open.Load() != 2 {
				t.Errorf("%s: after %v %d are in flight, want 2", c.name, time.Since(began), open.Load())
			}
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil)
			r.RemoteAddr, r.Host = "127.0.0.1:1", "127.0.0.1:7878"
			r.Header.Set("Paceline-Max-Wait", "2")
			proxies[1].ServeHTTP(w, r)
			says := "the request waited 2s and had no turn at server, by the limit " + c.name + " " + c.whose + ", here or in other processes of the store; "
			if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), says) {
				t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
			}
			for range 4 {
				wg.Go(func() {
					if code := ask(proxies[1], ""); code != http.StatusOK {
						t.Errorf("%s: status %d", c.name, code)
					}
				})
			}
			wg.Wait()
			if took := time.Since(began); peak.Load() != 2 || took > 65*time.Second {
				t.Errorf("%s: %d at once, want 2, and 6 requests of 20 s took %v", c.name, peak.Load(), took)
			}
			for _, p := range proxies {
				p.config.Shared.Close()
				p.close()
			}
		})
	}
}
