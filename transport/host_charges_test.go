package transport_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// perResource are limits of one request a second for each resource, and three for the key.
func perResource(t *testing.T) func(transport.Partition) limit.Limiter {
	return func(p transport.Partition) limit.Limiter {
		switch p.Scope {
		case provider.Resource:
			return rolling(t, 1, time.Second, limit.Requests)
		case provider.Key:
			return rolling(t, 3, time.Second, limit.Requests)
		}
		return nil
	}
}

// A limit of a resource holds for its requests alone, and the key's for all.
func TestResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{Base: b, Limit: perResource(t), Charges: []provider.Charge{
			{On: "GET /search/*", Resource: "search"}, {On: "GET /books*", Resource: "{path} {query:of}"},
		}})
		for _, path := range []string{"/search/a", "/books?of=1", "/x", "/search/b", "/books?of=2", "/books?of=1"} {
			do(t, tr, get(t, "http://a.test"+path))
		}
		// The second search waits a second; the last book waits for its own resource.
		if want := seconds(0, 0, 0, 1, 1, 1); !slices.Equal(b.at(), want) {
			t.Errorf("sent at %v, want %v", b.at(), want)
		}
	})
}

// What an answer says by Config.Actual replaces the admitted cost, and nothing else does.
func TestActualCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		costs := limit.Cost{limit.Weight: 1}
		tr := mustNew(t, transport.Config{Base: b, Limiter: rolling(t, 10, time.Second, limit.Weight),
			Cost:   func(*http.Request, limit.Cost) limit.Cost { return limit.Cost{limit.Weight: 6} },
			Actual: func(a *http.Response) (limit.Cost, bool) { return costs, a.Request.URL.Path == "/cheap" }})
		for _, path := range []string{"/cheap", "/cheap", "/dear", "/dear"} {
			do(t, tr, get(t, "http://a.test"+path))
		}
		// 1 and 1 and 6 are within 10 at once; the last has to wait.
		if want := seconds(0, 0, 0, 1); !slices.Equal(b.at(), want) {
			t.Errorf("sent at %v, want %v", b.at(), want)
		}
	})
}

// The charge of a request counts in limits of weight and orders, before Config.Cost.
func TestChargesCost(t *testing.T) {
	for _, c := range []struct {
		host   string
		config transport.Config
		route  string
		want   limit.Cost
	}{
		{"api.binance.com", transport.Config{}, "GET /api/v3/depth?limit=5000", limit.Cost{limit.Requests: 1, limit.Weight: 250}},
		{"api.binance.com", transport.Config{}, "POST /api/v3/order", limit.Cost{limit.Requests: 1, limit.Weight: 1, limit.Orders: 1}},
		{"a.test", transport.Config{Preset: "binance"}, "GET /api/v3/ticker/24hr", limit.Cost{limit.Requests: 1, limit.Weight: 80}},
		{"a.test", transport.Config{}, "GET /api/v3/ticker/24hr", limit.Cost{limit.Requests: 1}},
		{"api.binance.com", transport.Config{Charges: []provider.Charge{{On: "GET *", Cost: map[provider.Unit]int64{provider.Weight: 7}}}}, "GET /api/v3/depth", limit.Cost{limit.Requests: 1, limit.Weight: 7}},
		{"api.binance.com", transport.Config{Cost: func(_ *http.Request, c limit.Cost) limit.Cost { c[limit.Weight] *= 2; return c }}, "GET /api/v3/depth", limit.Cost{limit.Requests: 1, limit.Weight: 10}},
	} {
		var got limit.Cost
		c.config.Base, c.config.Ended = newBase(0, ok), func(a transport.Attempt) { got = a.Cost }
		method, path, _ := strings.Cut(c.route, " ")
		do(t, mustNew(t, c.config), request(t, method, "https://"+c.host+path, ""))
		if got != c.want {
			t.Errorf("%s of %s: %v, want %v", c.route, c.host, got, c.want)
		}
	}
	_, err := transport.New(transport.Config{Charges: []provider.Charge{{On: "GET"}}})
	if err == nil || !strings.Contains(err.Error(), "transport: Charges: provider: charge 1") {
		t.Error(err)
	}
}

// An answer about a resource is no news of another: neither the key nor the request's own resource
// stays away.
func TestAnswersOfAnotherResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, r *http.Request) *http.Response {
			if r.URL.Path != "/user" {
				return reply(200, "", "X-RateLimit-Resource", "core", "X-RateLimit-Remaining", "99")
			}
			return reply(200, "", "X-RateLimit-Resource", "search", "X-RateLimit-Limit", "30", "X-RateLimit-Remaining", "0",
				"X-RateLimit-Reset", fmt.Sprint(time.Now().Unix()+60))
		})
		tr := mustNew(t, transport.Config{Base: b})
		for _, path := range []string{"/user", "/repos", "/search/x"} {
			do(t, tr, get(t, "https://api.github.com"+path))
		}
		if want := seconds(0, 0, 0); !slices.Equal(b.at(), want) {
			t.Errorf("sent at %v, want %v", b.at(), want)
		}
	})
}

// What an answer says of a resource is that resource's: its requests wait, and no others.
func TestAResourceIsSpent(t *testing.T) {
	for _, c := range []struct {
		name, host string
		config     transport.Config
		spent      string
		fields     []string
		paths      []string
		want       []time.Duration
	}{
		{"a search at GitHub", "api.github.com", transport.Config{}, "/search/x", []string{"X-RateLimit-Resource", "search", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "946684860"},
			[]string{"/search/x", "/user", "/search/y"}, seconds(0, 0, 60)},
		{"a limit of the key holds for core", "api.github.com", transport.Config{Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope == provider.Key {
				return rolling(t, 2, 9*time.Second, limit.Requests)
			}
			return nil
		}}, "/user", []string{"X-RateLimit-Resource", "core", "X-RateLimit-Remaining", "50", "X-RateLimit-Reset", "946684860"},
			[]string{"/user", "/search/y", "/user"}, seconds(0, 0, 9)},
		{"a channel at Discord", "discord.com", transport.Config{}, "/api/v10/channels/1/messages", []string{"X-RateLimit-Bucket", "b", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset-After", "5"},
			[]string{"/api/v10/channels/1/messages", "/api/v10/channels/2/messages", "/api/v10/channels/1/messages"}, seconds(0, 0, 5)},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(0, func(_ int, r *http.Request) *http.Response {
					if r.URL.Path == c.spent {
						return reply(200, "", c.fields...)
					}
					return reply(200, "")
				})
				c.config.Base = b
				tr := mustNew(t, c.config)
				for _, path := range c.paths {
					do(t, tr, get(t, "https://"+c.host+path))
				}
				if !slices.Equal(b.at(), c.want) {
					t.Errorf("sent at %v, want %v", b.at(), c.want)
				}
			})
		})
	}
}

// The widest way has each scope, the client's own limit, the one for all, the way to the host, the
// room and the newcomer's. It fits the scheduler.
func TestTheWidestWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := func() limit.Limiter { return rolling(t, 1000, time.Second, limit.Requests) }
		b := newBase(time.Second, func(int, *http.Request) *http.Response {
			return reply(200, "", "Openai-Organization", "o")
		})
		tr := mustNew(t, transport.Config{
			Base: b, Limiter: one(), Limit: func(transport.Partition) limit.Limiter { return one() }, Adaptive: &limit.AdaptiveConfig{},
			Client:  func(*http.Request) transport.Client { return transport.Client{Name: "c", Limit: one} },
			Charges: []provider.Charge{{On: "* *", Resource: "all"}},
		})
		for _, key := range []string{"a", "b"} { // the second is new, beside one that was here before
			do(t, tr, get(t, "https://api.openai.com/deployments/m/x", "Authorization", "Bearer "+key))
		}
		got := map[provider.Scope]bool{}
		for _, l := range tr.Snapshot().Limits {
			switch {
			case l.Resource != "":
				got[provider.Resource] = true
			case l.Route != "":
				got[provider.Route] = true
			case l.Model != "":
				got[provider.Model] = true
			case l.Client != "":
				got[transport.ScopeClient] = true
			case l.Key != "":
				got[provider.Key] = true
			case l.Host != "":
				got[provider.IP] = true
			default:
				got[provider.All] = true
			}
		}
		// Besides them there are the way to the host, the room and the newcomer's.
		if n := len(got) + 3; n != 10 || n > scheduler.MaxLimits {
			t.Errorf("%d limits, want 10 and at most %d: %v", n, scheduler.MaxLimits, got)
		}
	})
}

// Requests that an earlier version recorded have no resource, and count in each of their key.
func TestRequestsWithoutAResource(t *testing.T) {
	old := transport.Partition{Host: "h", Key: "k", Route: "GET /user"}
	search := old
	search.Resource = "search"
	core := transport.Partition{Scope: provider.Resource, Host: "h", Key: "k", Resource: "core"}
	if !old.In(core) || search.In(core) || old.In(transport.Partition{Scope: provider.Resource, Host: "h", Key: "j", Resource: "core"}) {
		t.Error("a request of an earlier version counts in each resource of its key, and no other does")
	}
}
