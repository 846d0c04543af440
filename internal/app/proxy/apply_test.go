package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// status sends a GET and returns the status and the body.
func (x *proxied) status(path string, header ...string) (int, string) {
	r, err := http.NewRequest(http.MethodGet, x.url+path, nil)
	if err != nil {
		x.t.Error(err)
		return 0, ""
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		x.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Error(err)
	}
	return resp.StatusCode, string(body)
}

// live starts a proxy whose configuration changes, and returns what changes it.
func live(t *testing.T, c Config) (x *proxied, apply func(Config)) {
	c.Live = true
	x = start(t, c)
	return x, func(next Config) {
		t.Helper()
		if next.Listen, next.Admin = x.proxy.config.Listen, x.proxy.config.Admin; next.Bounds == (Bounds{}) {
			next.Bounds = x.proxy.config.Bounds
		}
		if err := x.proxy.Apply(next); err != nil {
			t.Error(err)
		}
	}
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello "+r.Header.Get("X-Version")) }

// Under load, limits are lowered and raised, come and go, and so does all else: nothing is dropped,
// and a strict server refuses nothing.
func TestApplyUnderLoad(t *testing.T) {
	exchange, err := ratetest.NewExchange(ratetest.Config{
		Keys: []string{"mine"}, Limit: 40, Window: 250 * time.Millisecond, AnyNonce: true,
		Before: latency.Uniform(0, 20*time.Millisecond), After: latency.Uniform(0, 20*time.Millisecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := upstreamOf(t, exchange.ServeHTTP)
	one := func(limits ...string) Config {
		c := to(server, limits...)
		c.Upstreams[0].Query = []Field{{Name: "api_key", Value: "mine"}}
		return c
	}
	next := []func() Config{
		func() Config { return one("40/250ms") },
		func() Config { return one("5/250ms") },
		func() Config { return one("40/250ms", "10/50ms") },
		func() Config { return one("40/500ms") }, // another window
		func() Config { return one("40/500ms", "40/250ms") },
		func() Config { // other settings, with the same limits
			c := one("40/250ms")
			c.Upstreams[0].Attempts, c.Upstreams[0].ConnectTimeout, c.MaxWait = 5, 7*time.Second, 2*time.Minute
			return c
		},
		func() Config {
			c := one("40/250ms")
			c.Upstreams[0].InFlight, c.Upstreams[0].Header = 7, []Field{{Name: "X-A", Value: "b"}}
			return c
		},
		func() Config { // a client with limits of its own
			c := one("40/250ms")
			c.Clients.Default.Limits = ratesOf("4/100ms")
			return c
		},
	}
	x, apply := live(t, one("40/250ms"))
	var sent, bad atomic.Int64
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer all.Wait() // also where an apply ends the test: a goroutine that goes on would keep the proxy from closing
	defer stop()
	for range 30 {
		all.Go(func() {
			for ctx.Err() == nil {
				n := sent.Add(1)
				if code, body := x.status(fmt.Sprintf("%s?nonce=%d", ratetest.Path, n)); code != http.StatusOK || !strings.Contains(body, `"OK"`) {
					bad.Add(1)
					t.Errorf("request %d: %d %s", n, code, body)
				}
			}
		})
	}
	for range 3 {
		for _, c := range next {
			time.Sleep(100 * time.Millisecond)
			apply(c())
		}
	}
	apply(one("40/250ms"))
	stop()
	all.Wait()
	report := exchange.Report()
	if refused := report.Judge.Total.Limited; refused != 0 || bad.Load() != 0 || int64(report.Received) != sent.Load() || sent.Load() < 60 {
		t.Errorf("%d sent, %d of them wrong, %d received, %d refused", sent.Load(), bad.Load(), report.Received, refused)
	}
}

// Earlier requests still count after a change, in both directions.
func TestApplyForgetsNoWindow(t *testing.T) {
	server := upstreamOf(t, hello)
	x, apply := live(t, to(server, "1000/h"))
	expect := func(what string, want ...int) {
		t.Helper()
		for i, want := range want {
			if code, body := x.status("/"); code != want {
				t.Errorf("%s: request %d: %d, want %d: %s", what, i, code, want, body)
			}
		}
	}
	expect("1000/h", 200, 200, 200)
	apply(to(server, "2/h"))
	expect("three were sent, and two may be", 429)
	apply(to(server, "5/h"))
	expect("five may be", 200, 200, 429)
	c := to(server, "5/h")
	c.MaxWait, c.Upstreams[0].Attempts, c.Upstreams[0].AnswerTimeout = 30*time.Second, 1, time.Minute
	apply(c) // the way is another, the limits are those
	expect("the same, by other settings", 429)
	apply(to(server, "7/2h"))
	expect("in another time", 200, 200, 429)
	apply(to(server, "7/2h", "7/h"))
	expect("beside one that takes its place", 429)
	apply(to(server, "7/h"))
	expect("which remembers what that did", 429)
	apply(to(server, "7/2h"))
	expect("and back", 429)
	apply(to(server, "7/month@Asia/Tokyo"))
	expect("by the clock of a place", 429)
	apply(to(server, "8/month@Asia/Tokyo"))
	expect("one more there", 200, 429)
	apply(to(server, "9/month@Europe/Berlin"))
	expect("one more in another place", 200, 429)
	apply(to(server, "9/w@Europe/Berlin"))
	expect("in weeks", 429)
	apply(to(server, "10/2h"))
	expect("in any two hours again", 200, 429)
	apply(to(server, "7/2h", "1000/s"))
	expect("beside another", 429)
	apply(to(server, "1000/s"))
	expect("without it", 200, 200)
	c = to(server, "1000/s")
	c.Clients.Default.Limits = ratesOf("2/h")
	apply(c) // is new, and knows nothing of before
	expect("a client's own", 200, 200, 429)
	c.Clients.Default.Limits = ratesOf("3/h")
	apply(c)
	expect("a client's own, raised", 200, 429)
	other := to(server, "8/h")
	other.Upstreams[0].Limits[0].Scope = provider.IP
	apply(other)
	expect("of all", 200, 200, 200, 200, 200, 200, 200, 200, 429)
}

func ratesOf(texts ...string) (all []rate.Limit) {
	for _, l := range limitsOf(texts...) {
		all = append(all, l.Limit)
	}
	return all
}

// waiting waits until so many requests are under way.
func (x *proxied) waiting(n int) {
	x.t.Helper()
	for end := time.Now().Add(10 * time.Second); x.proxy.visits.count() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			x.t.Fatalf("%d requests are under way, want %d", x.proxy.visits.count(), n)
		}
	}
}

// Those who wait go by the new limit at once.
func TestApplyReachesWhoWaits(t *testing.T) {
	server := upstreamOf(t, hello)
	first := to(server, "1/h")
	first.MaxWait = 20 * time.Hour
	x, apply := live(t, first)
	x.status("/")
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if code, body := x.status("/"); code != 200 {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	x.waiting(5)
	apply(to(server, "6/h"))
	all.Wait()
	if code, _ := x.status("/"); code != 429 {
		t.Errorf("the seventh of six an hour: %d", code)
	}
}

// An upstream is taken away while requests wait for it: they go, and others do not get there any
// more.
func TestApplyRemovesAnUpstream(t *testing.T) {
	server, other := upstreamOf(t, hello), upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "other") })
	both := Config{Upstreams: []Upstream{{Name: "a", To: server, Path: "/a", Limits: limitsOf("1/300ms")}, {Name: "b", To: other, Path: "/b"}}}
	x, apply := live(t, both)
	x.status("/a")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if code, body := x.status("/a"); code != 200 || !strings.HasPrefix(body, "hello") {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	x.waiting(3)
	apply(Config{Upstreams: both.Upstreams[1:]})
	if code, _ := x.status("/a"); code != http.StatusNotFound {
		t.Errorf("/a is still there: %d", code)
	}
	if code, body := x.status("/b"); code != 200 || body != "other" {
		t.Errorf("%d %s", code, body)
	}
	all.Wait()
}

// Fields of requests, clients and destinations change from then on.
func TestApplyChangesTheRest(t *testing.T) {
	server := upstreamOf(t, hello)
	version := func(v string) Config {
		c := to(server)
		c.Upstreams[0].Header = []Field{{Name: "X-Version", Value: Secret(v)}}
		return c
	}
	x, apply := live(t, version("1"))
	if _, body := x.status("/"); body != "hello 1" {
		t.Error(body)
	}
	apply(version("2"))
	if _, body := x.status("/"); body != "hello 2" {
		t.Error(body)
	}
	keyed := version("2")
	keyed.Clients.List = []Client{{Name: "alice", Keys: []KeyHash{HashKey("alice's")}}}
	apply(keyed)
	if code, _ := x.status("/"); code != http.StatusUnauthorized {
		t.Errorf("without a key: %d", code)
	}
	if code, _ := x.status("/", FieldKey, "alice's"); code != 200 {
		t.Errorf("with a key: %d", code)
	}
}

// Other TLS, or another time to connect, needs new connections. Any other change keeps those that there are.
func TestApplyKeepsConnections(t *testing.T) {
	server := mustURL(t, "https://api.test")
	of := func(change func(u *Upstream)) Config {
		c := to(server)
		change(&c.Upstreams[0])
		return c
	}
	for what, c := range map[string]struct {
		change func(u *Upstream)
		keeps  bool
	}{
		"attempts":          {func(u *Upstream) { u.Attempts = 7 }, true},
		"a time to connect": {func(u *Upstream) { u.ConnectTimeout = 7 * time.Second }, false},
		"TLS":               {func(u *Upstream) { u.TLS = &tls.Config{ServerName: "other.test"} }, false},
	} {
		x, apply := live(t, of(func(*Upstream) {}))
		before := x.proxy.latest.Load().routes[0].way.base
		apply(of(c.change))
		if keeps := x.proxy.latest.Load().routes[0].way.base == before; keeps != c.keeps {
			t.Errorf("with other %s, the connections are kept: %v", what, keeps)
		}
	}
}

// A configuration that is wrong, or cannot be applied, changes nothing.
func TestApplyWholeOrNotAtAll(t *testing.T) {
	server := upstreamOf(t, hello)
	x, _ := live(t, to(server, "2/h"))
	x.status("/")
	x.status("/")
	for field, wrong := range map[string]func(*Config){
		"Upstreams[1].Path": func(c *Config) { c.Upstreams = append(c.Upstreams, c.Upstreams[0]) },
		"Upstreams[1].Preset": func(c *Config) {
			c.Upstreams = append(c.Upstreams, Upstream{To: server, Path: "/b", Preset: "no such"})
		},
		"Listen":             func(c *Config) { c.Listen = "127.0.0.1:1" },
		"Admin":              func(c *Config) { c.Admin = Off },
		"State":              func(c *Config) { c.State = "here" },
		"Bounds.Connections": func(c *Config) { c.Bounds.Connections = 7 },
	} {
		c := to(server, "1000/h")
		c.Listen, c.Admin = x.proxy.config.Listen, x.proxy.config.Admin
		c.Upstreams[0].Header = []Field{{Name: "X-Version", Value: "9"}}
		wrong(&c)
		e, ok := errors.AsType[*ConfigError](x.proxy.Apply(c))
		if !ok || e.Field != field {
			t.Errorf("%s: %v", field, e)
		}
		if code, body := x.status("/"); code != 429 || strings.Contains(body, "hello") {
			t.Errorf("%s: it is applied: %d %s", field, code, body)
		}
	}
	still := start(t, to(server))
	if err := still.proxy.Apply(to(server)); err == nil {
		t.Error("one that is not Live changed")
	}
}

// Sources are the present upstreams, also if another server is behind the name.
func TestApplySources(t *testing.T) {
	first, second := upstreamOf(t, hello), upstreamOf(t, hello)
	one := to(first, "100/s")
	one.Upstreams[0].Name = "api"
	x, apply := live(t, one)
	names := func() (all []string, sent int64) {
		for _, s := range x.proxy.Sources() {
			is := s.Snapshot()
			all, sent = append(all, is.Name), sent+is.Sent
		}
		slices.Sort(all)
		return all, sent
	}
	x.status("/")
	if all, sent := names(); !slices.Equal(all, []string{"api"}) || sent != 1 {
		t.Errorf("before: %q, %d sent", all, sent)
	}
	two := one
	two.Upstreams = append(slices.Clone(one.Upstreams), Upstream{Name: "more", Path: "/more", To: second})
	apply(two)
	x.status("/more/x")
	x.status("/")
	if all, sent := names(); !slices.Equal(all, []string{"api", "more"}) || sent != 3 {
		t.Errorf("with another: %q, %d sent", all, sent)
	}
	moved := two
	moved.Upstreams = slices.Clone(two.Upstreams[:1])
	moved.Upstreams[0].To = second
	apply(moved)
	x.status("/")
	if all, sent := names(); !slices.Equal(all, []string{"api"}) || sent != 1 {
		t.Errorf("with another server: %q, %d sent", all, sent)
	}
}
