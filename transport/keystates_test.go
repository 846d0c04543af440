package transport_test

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// telling is a provider whose answers say themselves, in a field, how they refuse.
type telling struct{}

func (telling) Name() string { return "telling" }

func (telling) Read(_ time.Time, r provider.Response) (o provider.Observation) {
	if o.Refusal = provider.Refusal(r.Header.Get("Refusal")); o.Refusal == provider.RateLimited {
		o.RetryAfter = time.Minute
	}
	return o
}

func concerns(s provider.Scope) func(transport.Partition, provider.Observation) provider.Scope {
	return func(transport.Partition, provider.Observation) provider.Scope { return s }
}

// A Snapshot has each key that requests came with, in order, with what keeps its requests away and how many are under way.
func TestKeysOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stay := make(chan struct{})
		var all sync.WaitGroup
		tr := mustNew(t, transport.Config{
			Attempts: 1, Provider: telling{}, Scope: concerns(provider.Key), MaxPause: 20 * time.Second, // a probe goes before the end
			Base: roundTripper(func(r *http.Request) (*http.Response, error) {
				switch why := r.Header.Get("Why"); why {
				case "":
				case "stay":
					<-stay
				default:
					return reply(429, "", "Refusal", why), nil
				}
				return reply(200, ""), nil
			}),
			Partition: func(r *http.Request) transport.Partition {
				return transport.Partition{Host: r.URL.Host, Key: r.Header.Get("Key"), Route: r.URL.Path}
			},
		})
		began := time.Now()
		for _, c := range []struct{ host, key, why string }{
			{"b.test", "1", ""}, {"a.test", "2", ""}, {"a.test", "1", string(provider.Banned)},
			{"b.test", "3", string(provider.RateLimited)}, {"a.test", "3", ""}, {"b.test", "", ""}, // the last has no key
		} {
			do(t, tr, get(t, "http://"+c.host+"/", "Key", c.key, "Why", c.why))
		}
		for _, path := range []string{"/one", "/two"} {
			all.Go(func() { do(t, tr, get(t, "http://b.test"+path, "Key", "1", "Why", "stay")) })
		}
		synctest.Wait()
		type state struct {
			host, name, state string
			inFlight          int
			sent              int64
		}
		var got []state
		for _, k := range tr.Snapshot().Keys {
			got = append(got, state{k.Host, k.Name, k.State, k.InFlight, k.Sent})
			if (k.State == observe.KeyOK) != (k.Why == "") || (k.State == observe.KeyOK) != k.Until.IsZero() {
				t.Errorf("%+v", k)
			}
			if k.State == observe.KeyPaused && !k.Until.Equal(began.Add(time.Minute)) {
				t.Errorf("paused until %v", k.Until)
			}
		}
		want := []state{
			{"a.test", "1", observe.KeyBanned, 0, 1}, {"a.test", "2", observe.KeyOK, 0, 1}, {"a.test", "3", observe.KeyOK, 0, 1},
			{"b.test", "1", observe.KeyOK, 2, 3}, {"b.test", "3", observe.KeyPaused, 0, 1},
		}
		if !slices.Equal(got, want) {
			t.Errorf("keys are\n%+v, want\n%+v", got, want)
		}
		close(stay)
		all.Wait()
	})
}

// A key is out when it is refused for good. A refusal of the address, or of all clients, does not
// concern it.
func TestWhoseBan(t *testing.T) {
	for scope, state := range map[provider.Scope]string{
		provider.Key: observe.KeyBanned, provider.IP: observe.KeyOK, provider.All: observe.KeyOK,
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{
				Attempts: 1, Provider: telling{}, Scope: concerns(scope), Keys: []transport.Key{{Name: "a", Apply: func(*http.Request) {}}},
				Base: newBase(0, func(int, *http.Request) *http.Response { return reply(403, "", "Refusal", string(provider.Banned)) }),
			})
			do(t, tr, get(t, "http://a.test/"))
			if k := tr.Snapshot().Keys[0]; k.State != state {
				t.Errorf("banned, scope %s: the key is %s, want %s", scope, k.State, state)
			}
			_, _, err := do(t, tr, get(t, "http://b.test/"))
			if out := state != observe.KeyOK; errors.Is(err, transport.ErrKeys) != out || out && !strings.Contains(err.Error(), "a: the server has banned it") {
				t.Errorf("banned, scope %s: elsewhere %v, which is to say why each key is out", scope, err)
			}
		})
	}
}

// However many keys there are, all requests to a host count together in the host's own limit.
func TestKeysShareTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{
			Base: b, Keys: []transport.Key{{Name: "a", Apply: func(*http.Request) {}}, {Name: "b", Apply: func(*http.Request) {}}, {Name: "c", Apply: func(*http.Request) {}}},
			Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope == provider.IP {
					return rolling(t, 2, 10*time.Second, limit.Requests)
				}
				return rolling(t, 1, time.Second, limit.Requests)
			},
		})
		for range 5 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if got, want := b.at(), seconds(0, 0, 10, 10, 20); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
	})
}

// A pause of the host stops the requests of all keys. It is told once, and not once for each key.
func TestPauseOfSeveralKeysIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{
			Attempts: 1, Provider: telling{}, Scope: concerns(provider.IP), Keys: keys(t, 5, "a", "b", "c"),
			Base: newBase(0, func(int, *http.Request) *http.Response {
				return reply(429, "", "Refusal", string(provider.RateLimited))
			}),
		})
		do(t, tr, get(t, "http://a.test/"))
		all := tr.Partitions()
		if len(all) != 1 || len(all[0].Pauses) != 1 || all[0].Pauses[0].Partition.Scope != provider.IP {
			t.Errorf("%+v", all)
		}
	})
}

// A request is in the limits of its client, its host and its key, and of its route and model with
// that key. It is also in the limit of all requests.
func TestPartitionIn(t *testing.T) {
	var all []transport.Partition
	for i := range 32 {
		some := func(bit int, value string) string {
			if i>>bit&1 == 1 {
				return value
			}
			return ""
		}
		all = append(all, transport.Partition{Host: "h" + some(0, "2"), Key: some(1, "k"), Model: some(2, "m"), Route: some(3, "r"), Client: some(4, "c")})
	}
	for _, p := range all {
		for _, q := range all {
			for scope, want := range map[provider.Scope]bool{
				provider.All:          true,
				transport.ScopeClient: p.Client == q.Client,
				provider.IP:           p.Host == q.Host,
				provider.Key:          p.Host == q.Host && p.Key == q.Key,
				provider.Model:        p.Host == q.Host && p.Key == q.Key && p.Model == q.Model, // without a model, too
				provider.Route:        p.Host == q.Host && p.Key == q.Key && p.Route == q.Route && p.Route != "",
			} {
				of := transport.Partition{Scope: scope}
				switch scope {
				case transport.ScopeClient:
					of.Client = q.Client
				case provider.Route:
					of.Host, of.Key, of.Route = q.Host, q.Key, q.Route
				case provider.Model:
					of.Host, of.Key, of.Model = q.Host, q.Key, q.Model
				case provider.Key:
					of.Host, of.Key = q.Host, q.Key
				case provider.IP:
					of.Host = q.Host
				}
				if got := p.In(of); got != want {
					t.Errorf("%v in %v: %v", p, of, got)
				}
			}
		}
	}
}

// A request without a path, as OPTIONS of all of a server, is a route of its own.
func TestRouteWithoutAPath(t *testing.T) {
	for path, route := range map[string]string{"*": "OPTIONS *", "": "OPTIONS ", "a/7/b": "OPTIONS a/*/b", "7": "OPTIONS *"} {
		r := request(t, http.MethodOptions, "http://a.test/", "")
		r.URL.Path = path
		if got := transport.PartitionOf(r).Route; got != route {
			t.Errorf("%q: %q, want %q", path, got, route)
		}
	}
	if got := transport.PartitionOf(&http.Request{URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/x"}}).Route; got != "GET /x" {
		t.Errorf("without a method: %q", got)
	}
}
