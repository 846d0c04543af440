package transport_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// clients distinguishes clients by a header field, as in the map; others are just a name.
func clients(all map[string]transport.Client) func(*http.Request) transport.Client {
	return func(r *http.Request) transport.Client {
		c := all[r.Header.Get("Client")]
		c.Name = r.Header.Get("Client")
		return c
	}
}

// going notes who is sent when.
type going struct {
	mu    sync.Mutex
	begin time.Time
	names []string
	at    []time.Duration
}

func newGoing() *going { return &going{begin: time.Now()} }

func (g *going) RoundTrip(r *http.Request) (*http.Response, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = append(g.names, r.Header.Get("Client"))
	g.at = append(g.at, time.Since(g.begin))
	return reply(200, "fine"), nil
}

func (g *going) sent() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.names)
}

// count returns how often each was sent, from the first on to the last.
func (g *going) count(from, to int) map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := map[string]int{}
	for _, name := range g.names[from:min(to, len(g.names))] {
		n[name]++
	}
	return n
}

// crowd has so many requests wait until the test ends or they go.
type crowd struct {
	ctx    context.Context
	cancel func()
	all    sync.WaitGroup
}

func newCrowd(t *testing.T) *crowd {
	c := new(crowd)
	c.ctx, c.cancel = context.WithCancel(t.Context())
	return c
}

func (c *crowd) ask(t *testing.T, tr *transport.Transport, n int, client string, url func(i int) string) {
	for i := range n {
		r := get(t, url(i), "Client", client).WithContext(c.ctx)
		c.all.Go(func() {
			if resp, err := tr.RoundTrip(r); err == nil {
				resp.Body.Close()
			}
		})
	}
}

func (c *crowd) leave() {
	c.cancel()
	c.all.Wait()
}

func root(int) string { return "http://a.test/" }

// steady is a limit without bursts: one request, or a tenth of the tokens, every 100 ms, or what the rate says.
func steady(t testing.TB, perSecond int64, unit limit.Unit) limit.Limiter {
	t.Helper()
	if unit == limit.Requests {
		return rolling(t, 1, time.Second/time.Duration(perSecond), unit)
	}
	return rolling(t, perSecond/10, time.Second/10, unit)
}

// With 10,000 requests of one client in line, another's single request goes after two service
// intervals at most. The counted unit does not matter, nor whether the 10,000 are for one model or
// for many.
func TestClientDoesNotWaitForAnother(t *testing.T) {
	tokens := func(_ *http.Request, c limit.Cost) limit.Cost {
		c[limit.Tokens] = 1000
		return c
	}
	one := func(l limit.Limiter) func(transport.Partition) limit.Limiter {
		return func(p transport.Partition) limit.Limiter {
			if p.Scope != "key" {
				return nil
			}
			return l
		}
	}
	models := func(r *http.Request) transport.Partition {
		return transport.Partition{Host: r.URL.Host, Model: strings.TrimPrefix(r.URL.Path, "/")}
	}
	for name, c := range map[string]struct {
		config func() transport.Config
		url    func(i int) string
	}{
		"requests": {func() transport.Config { return transport.Config{Limiter: steady(t, 10, limit.Requests)} }, root},
		"tokens": {func() transport.Config {
			return transport.Config{Limiter: steady(t, 10_000, limit.Tokens), Cost: tokens}
		}, root},
		"both": {func() transport.Config {
			return transport.Config{Limiter: limit.NewAll(rolling(t, 600, time.Minute, limit.Requests), steady(t, 10_000, limit.Tokens)), Cost: tokens}
		}, root},
		"of a key": {func() transport.Config { return transport.Config{Limit: one(steady(t, 10, limit.Requests))} }, root},
		"many routes": {func() transport.Config { return transport.Config{Limit: one(steady(t, 10, limit.Requests))} },
			func(i int) string {
				return "http://a.test/" + strings.Repeat("x", 1+i%30) + strings.Repeat("y", i/30%30)
			}},
		"many models": {func() transport.Config {
			return transport.Config{Limit: one(steady(t, 10_000, limit.Tokens)), Cost: tokens, Partition: models}
		}, func(i int) string { return "http://a.test/m" + strconv.Itoa(i%500) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, g := c.config(), newGoing()
				config.Client, config.Base = clients(nil), g
				tr := mustNew(t, config)
				all := newCrowd(t)
				many := 3000 // enough for the time; and once as many as it says
				if name == "requests" {
					many = 10_000
				}
				if race.Enabled { // which is slow; some 100 go
					many = 400
				}
				all.ask(t, tr, many, "many", c.url)
				defer all.leave()
				time.Sleep(5050 * time.Millisecond)
				for range 5 {
					began := time.Now()
					if _, _, err := do(t, tr, get(t, "http://a.test/mine", "Client", "one")); err != nil {
						t.Fatal(err)
					}
					if d := time.Since(began); d > 200*time.Millisecond {
						t.Errorf("it waited for %v", d)
					}
					time.Sleep(time.Second)
				}
				if n := g.sent(); n < 99 || n > 110 {
					t.Errorf("%d went in 10 s at 10 a second", n)
				}
			})
		})
	}
}

// A waiting client has its part by weight, in its usage: three times as many requests, or half as
// many that are six times as large.
func TestClientWeights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{Base: g, Limiter: steady(t, 10, limit.Requests), Client: clients(map[string]transport.Client{"b": {Weight: 3}})})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1000, "a", root)
		all.ask(t, tr, 1000, "b", root)
		time.Sleep(41 * time.Second)
		for i := 4; i+100 <= 404; i += 100 {
			if n := g.count(i, i+100); n["b"] < 74 || n["b"] > 76 {
				t.Errorf("of 100 from %d on: %v, want 25 and 75", i, n)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{
			Base: g, Limiter: steady(t, 10_000, limit.Tokens), Client: clients(map[string]transport.Client{"b": {Weight: 3}}),
			Cost: func(r *http.Request, c limit.Cost) limit.Cost {
				if c[limit.Tokens] = 100; r.Header.Get("Client") == "b" {
					c[limit.Tokens] = 600
				}
				return c
			},
		})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1000, "a", root)
		all.ask(t, tr, 1000, "b", root)
		time.Sleep(20 * time.Second)
		if n := g.count(15, 315); n["b"] < 99 || n["b"] > 101 {
			t.Errorf("of 300: %v, want 200 and 100", n)
		}
	})
}

// A limit of requests and tokens is shared in the unit of which each client needs the larger part.
// A client with small prompts sends many, one with large prompts few, and neither delays the other.
func TestClientsShareSeveralUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{
			Base: g, Limiter: limit.NewAll(rolling(t, 100, time.Second, limit.Requests), rolling(t, 600_000, time.Minute, limit.Tokens), rolling(t, 1_000_000, 24*time.Hour, limit.Requests)), Client: clients(nil),
			Cost: func(r *http.Request, c limit.Cost) limit.Cost {
				if c[limit.Tokens] = 10; r.Header.Get("Client") == "large" {
					c[limit.Tokens] = 1000
				}
				return c
			},
		})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 5000, "small", root)
		all.ask(t, tr, 5000, "large", root)
		time.Sleep(time.Second)
		from := g.sent()
		time.Sleep(40 * time.Second)
		// Ten small ones are a tenth of the requests of a second, and one large one a tenth of its tokens.
		n := g.count(from, g.sent())
		if r := float64(n["small"]) / float64(n["large"]); r < 9 || r > 11 {
			t.Errorf("%v went, want 10 small ones for each large one", n)
		}
		if n["large"] < 350 {
			t.Errorf("%v went: 40 s are worth 400 large ones without the others", n)
		}
	})
}

// While a host is down one request at a time probes it. Clients take turns at that as at a limit. So the requests of one
// do not use up the probes of all.
func TestClientsTakeTurnsAtProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		down := roundTripper(func(r *http.Request) (*http.Response, error) {
			httptrace.ContextClientTrace(r.Context()).GetConn("a.test:80")
			_, _ = g.RoundTrip(r)
			return nil, errRefused
		})
		tr := mustNew(t, transport.Config{Base: down, Client: clients(nil), MaxOutage: time.Hour})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 50, "a", root)
		time.Sleep(time.Minute)
		from := g.sent()
		all.ask(t, tr, 50, "b", root)
		time.Sleep(10 * time.Minute)
		if n := g.count(from, from+20); n["b"] < 9 || n["b"] > 11 {
			t.Errorf("of 20 probes: %v, want 10 of each", n)
		}
	})
}

// A request that costs nothing of what a limit counts uses next to nothing of it. So a client that has sent many of
// these goes as soon as any other with a request that costs something.
func TestClientWhoseRequestsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{Base: g, Limiter: steady(t, 1000, limit.Tokens), Client: clients(nil),
			Cost: func(r *http.Request, c limit.Cost) limit.Cost {
				if c[limit.Tokens] = 100; r.URL.Path == "/free" {
					c[limit.Tokens] = 0
				}
				return c
			},
		})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1000, "busy", root)
		time.Sleep(10 * time.Second)
		from := g.sent()
		all.ask(t, tr, 50, "a", func(int) string { return "http://a.test/free" })
		synctest.Wait()
		if n := g.count(from, g.sent()); n["a"] != 50 {
			t.Errorf("%v went at once, want 50 that cost nothing", n)
		}
		from = g.sent()
		all.ask(t, tr, 1, "a", root)
		time.Sleep(300 * time.Millisecond)
		if n := g.count(from, g.sent()); n["a"] != 1 || n["busy"] < 1 {
			t.Errorf("then %v went, want one of each at least", n)
		}
	})
}

// The line of one client is bounded, and others come and go as if it were not there. A request that
// gives up makes room at once.
func TestClientMaxWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{
			Base: g, Limiter: limit.Named("tier 1", steady(t, 1, limit.Requests)), Client: clients(map[string]transport.Client{"a": {MaxWaiting: 3}}),
		})
		do(t, tr, get(t, "http://a.test/", "Client", "c"))
		first, rest := newCrowd(t), newCrowd(t)
		defer rest.leave()
		rest.ask(t, tr, 2, "a", func(i int) string { return "http://a.test/" + string(rune('a'+i)) })
		synctest.Wait()
		first.ask(t, tr, 1, "a", root)
		synctest.Wait()
		full := func() *transport.Error {
			t.Helper()
			began := time.Now()
			_, _, err := do(t, tr, get(t, "http://a.test/elsewhere", "Client", "a"))
			e, ok := errors.AsType[*transport.Error](err)
			if !ok || !errors.Is(err, paceline.ErrFull) || time.Since(began) > 0 {
				t.Fatalf("the fourth: %v after %v", err, time.Since(began))
			}
			return e
		}
		e := full()
		if e.Client != "a" || e.Ahead != 3 || e.Name != "tier 1" || e.Unit != limit.Requests || time.Until(e.Ready) != 4*time.Second {
			t.Errorf("%+v; ready in %v", e, time.Until(e.Ready))
		}
		if want := "transport: all requests client \"a\": paceline: cost 1 request has no place in line: too many wait already, with 3 ahead when it came"; e.Error() != want {
			t.Errorf("%q, want %q", e, want)
		}
		began := time.Now()
		if _, _, err := do(t, tr, get(t, "http://a.test/", "Client", "b")); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("another: %v after %v", err, time.Since(began))
		}
		rest.ask(t, tr, 1, "a", root) // for the one that has gone meanwhile
		synctest.Wait()
		full()
		first.leave()
		rest.ask(t, tr, 1, "a", root)
		synctest.Wait()
		full()
		time.Sleep(4 * time.Second)
		if n := g.count(0, 100); n["a"] != 4 || n["b"] != 1 {
			t.Errorf("%v went", n)
		}
	})
}

// The description of a client may change with each request, and may change back. The line is as long as the latest
// request says.
func TestClientChangesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := 1 // as the first request says, so that 1 is what it changes back to
		tr := mustNew(t, transport.Config{
			Base: newGoing(), Limiter: rolling(t, 1, time.Hour, limit.Requests),
			Client: func(*http.Request) transport.Client { return transport.Client{Name: "a", MaxWaiting: most} },
		})
		do(t, tr, get(t, "http://a.test/"))
		for _, most = range []int{1, 3, 1, 2, 1} {
			ctx, leave := context.WithCancel(t.Context())
			var line sync.WaitGroup
			for range most {
				line.Go(func() {
					if _, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx)); !errors.Is(err, context.Canceled) {
						t.Errorf("within a line of %d: %v", most, err)
					}
				})
				synctest.Wait()
			}
			began := time.Now()
			time.AfterFunc(time.Minute, leave) // no deadline, which would be a reason to refuse it
			if _, _, err := do(t, tr, get(t, "http://a.test/").WithContext(ctx)); !errors.Is(err, paceline.ErrFull) || time.Since(began) > 0 {
				t.Errorf("behind a line of %d: %v after %v", most, err, time.Since(began))
			}
			leave()
			line.Wait()
		}
	})
}

// Interactive requests go before those in bulk, even if both came at once. If interactive ones
// never stop, the bulk has its part.
func TestClientHeadStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{
			Base: g, Limiter: steady(t, 10, limit.Requests), Client: clients(map[string]transport.Client{"talk": {HeadStart: time.Minute}}),
		})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 5000, "bulk", root)
		synctest.Wait()
		next := func(n int) {
			t.Helper()
			from := g.sent()
			all.ask(t, tr, n, "talk", root)
			time.Sleep(time.Duration(n) * 100 * time.Millisecond)
			if went := g.count(from, from+n); went["bulk"] > 0 || went["talk"] < n-1 {
				t.Errorf("at %v: of the next %d %v went", time.Since(g.begin), n, went)
			}
		}
		next(50) // both have come now
		time.Sleep(90*time.Second + time.Millisecond)
		next(250) // it has not used what would have been its half of the last minute
		time.Sleep(90 * time.Second)

		// It never stops: what it has not used is worth half a minute, and then both have half.
		from := g.sent()
		all.ask(t, tr, 5000, "talk", root)
		time.Sleep(2 * time.Minute)
		if n := g.count(from, from+1200); n["bulk"] < 300-10 || n["bulk"] > 460 {
			t.Errorf("in 2 min %v went: a minute may be its own", n)
		}
		from = g.sent()
		time.Sleep(time.Minute)
		if n := g.count(from, from+600); n["bulk"] < 298 || n["bulk"] > 302 {
			t.Errorf("in the next minute %v went", n)
		}
	})
}

// The log has once that most of a client's money is used, and once that all is, and so again the next day.
func TestClientMoneyIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		tr := mustNew(t, transport.Config{
			Base: newGoing(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Cost: func(_ *http.Request, c limit.Cost) limit.Cost { c[limit.Money] = 100_000; return c },
			Client: clients(map[string]transport.Client{"a": {Limit: func() limit.Limiter {
				return limit.NewAll(limit.Named("year", rolling(t, 365_000_000, 365*24*time.Hour, limit.Money)), limit.Named("day", rolling(t, 1_000_000, 24*time.Hour, limit.Money)))
			}}}),
		})
		for day := range 3 {
			for i := range 10 {
				for _, client := range []string{"a", "b"} {
					if status, _, err := do(t, tr, get(t, "http://a.test/", "Client", client)); status != 200 {
						t.Fatal(status, err)
					}
				}
				most, all := strings.Count(log.String(), "has used most of its money\" client=a limit=day used_usd=0.8 of_usd=1"), strings.Count(log.String(), "fits\" client=a limit=day used_usd=1 of_usd=1")
				if wantMost, wantAll := day+(i+3)/10, day+(i+1)/10; most != wantMost || all != wantAll || strings.Count(log.String(), "money") != most+all {
					t.Fatalf("day %d, after request %d:\n%s", day, i, log.String())
				}
				time.Sleep(time.Second)
			}
			time.Sleep(24 * time.Hour)
		}
	})
}

// A client's own limit holds for all hosts and routes, and lasts while it is idle for long. It
// delays no other client.
func TestClientLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		made := 0
		tr := mustNew(t, transport.Config{
			Base: g, Limiter: rolling(t, 100, time.Second, limit.Requests), MaxPartitions: 4, Idle: time.Minute,
			Cost: func(_ *http.Request, c limit.Cost) limit.Cost { c[limit.Money] = 300_000; return c },
			Client: clients(map[string]transport.Client{"a": {Limit: func() limit.Limiter {
				made++
				return limit.NewAll(rolling(t, 3, time.Minute, limit.Requests), limit.Named("budget", rolling(t, 1_200_000, 24*time.Hour, limit.Money)))
			}}}),
		})
		ask := func(client, url string) time.Duration {
			t.Helper()
			began := time.Now()
			if _, _, err := do(t, tr, get(t, url, "Client", client)); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		for i := range 3 {
			if d := ask("a", fmt.Sprintf("http://%c.test/", 'a'+i)); d > 0 {
				t.Errorf("its request %d waited for %v", i, d)
			}
		}
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1, "a", func(int) string { return "http://d.test/" })
		synctest.Wait()
		if d := ask("b", "http://d.test/"); d > 0 {
			t.Errorf("another waited for %v", d)
		}
		time.Sleep(2 * time.Hour) // what it did is forgotten, but for what counts
		for i := range 50 {
			ask("stranger"+strconv.Itoa(i), "http://a.test/")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		_, _, err := do(t, tr, get(t, "http://a.test/", "Client", "a").WithContext(ctx))
		e, _ := errors.AsType[*transport.Error](err)
		if !errors.Is(err, paceline.ErrDeadline) || e.Name != "budget" || e.Unit != limit.Money || e.Partition != (transport.Partition{Scope: transport.ScopeClient, Client: "a"}) {
			t.Fatalf("%v: %+v", err, e)
		}
		if d := e.Ready.Sub(g.begin); d != 24*time.Hour {
			t.Errorf("ready at %v", d)
		}
		if made != 2 {
			t.Errorf("Limit was asked %d times, want once more as it was frozen", made)
		}
		if _, clients := transport.Frozen(tr); clients != 0 {
			t.Errorf("%d clients are frozen, and it is at hand", clients)
		}
		time.Sleep(25 * time.Hour)
		for i := range 50 {
			ask("stranger"+strconv.Itoa(i), "http://a.test/")
		}
		if _, clients := transport.Frozen(tr); clients != 0 {
			t.Errorf("%d clients are frozen, want it forgotten when nothing counts", clients)
		}
		if ask("a", "http://a.test/"); made != 3 {
			t.Errorf("Limit was asked %d times", made)
		}
	})
}

// Names are strangers' text: however many there are, few are remembered, with limits of their own or without.
func TestClientStrangers(t *testing.T) {
	for _, limits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{
				Base: newGoing(), MaxPartitions: 50,
				Client: func(r *http.Request) transport.Client {
					c := transport.Client{Name: r.Header.Get("Client") + strings.Repeat("x", 10_000)}
					if limits {
						c.Limit = func() limit.Limiter { return rolling(t, 1, time.Hour, limit.Requests) }
					}
					return c
				},
			})
			for i := range 1000 {
				if _, _, err := do(t, tr, get(t, "http://a.test/", "Client", strconv.Itoa(i))); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
			}
			leaves, names, nodes := transport.Remembered(tr)
			if leaves > 50 || names > 100 || nodes > 100+3 {
				t.Errorf("limits %v: %d partitions, %d clients and %d nodes are remembered", limits, leaves, names, nodes)
			}
		})
	}
}

// A later description of a client holds from then on.
func TestClientChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		var weight atomic.Int64
		tr := mustNew(t, transport.Config{Base: g, Limiter: steady(t, 10, limit.Requests), Client: func(r *http.Request) transport.Client {
			c := transport.Client{Name: r.Header.Get("Client")}
			if c.Name == "b" {
				c.Weight = float64(weight.Load())
			}
			return c
		}})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 1000, "a", root)
		all.ask(t, tr, 1000, "b", root)
		time.Sleep(10 * time.Second)
		weight.Store(9)
		from := g.sent()
		all.ask(t, tr, 1, "b", root)
		time.Sleep(10 * time.Second)
		if n := g.count(from, from+100); n["b"] < 88 {
			t.Errorf("with nine times the weight: %v", n)
		}
	})
}

// Keys that turn out to be of one organization have one limit, and each client its part of that.
func TestClientsOfJoinedKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		tr := mustNew(t, transport.Config{
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				resp, _ := g.RoundTrip(r)
				resp.Header.Set("Openai-Organization", "org-1")
				return resp, nil
			}),
			Client: clients(map[string]transport.Client{"b": {Weight: 3}}),
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != "key" {
					return nil
				}
				return steady(t, 10, limit.Requests)
			},
		})
		all := newCrowd(t)
		defer all.leave()
		for i := range 800 {
			for c, client := range []string{"a", "b"} {
				r := get(t, "https://api.openai.com/v1/files", "Client", client, "Authorization", "Bearer k"+strconv.Itoa((i+c)%2)).WithContext(all.ctx)
				all.all.Go(func() {
					if resp, err := tr.RoundTrip(r); err == nil {
						resp.Body.Close()
					}
				})
			}
		}
		time.Sleep(20*time.Second + time.Millisecond)
		from := g.sent()
		time.Sleep(20 * time.Second)
		if n := g.count(from, g.sent()); n["a"]+n["b"] > 202 || n["a"]+n["b"] < 198 || n["b"] < 148 || n["b"] > 152 {
			t.Errorf("in 20 s at 10 a second %v went", n)
		}
	})
}

// A crowd of clients that abort all the time leaves nothing behind, and delays none.
func TestClientsThatGoAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{Base: newGoing(), Limiter: steady(t, 10, limit.Requests), Client: clients(nil)})
		for i := range 50 {
			gone := newCrowd(t)
			gone.ask(t, tr, 100, "many"+strconv.Itoa(i%5), root)
			time.Sleep(100 * time.Millisecond)
			gone.leave()
			began := time.Now()
			do(t, tr, get(t, "http://a.test/", "Client", "one"))
			if d := time.Since(began); d > 100*time.Millisecond {
				t.Fatalf("round %d: it waited for %v", i, d)
			}
		}
		for _, p := range tr.Partitions() {
			if p.Waiting != 0 || p.InFlight != 0 {
				t.Errorf("%v: %d wait, %d in flight", p.Partition, p.Waiting, p.InFlight)
			}
		}
	})
}
