package transport_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// together returns so many Transports that have clients in common. Each client has a limit of its own: so many a second.
func together(t *testing.T, n int, base http.RoundTripper, perSecond int64, each transport.Config) (all []*transport.Transport, common *transport.Clients) {
	t.Helper()
	common, err := transport.NewClients(transport.ClientsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	each.Base, each.Clients = base, common
	each.Client = func(r *http.Request) transport.Client {
		return transport.Client{Name: r.Header.Get("Client"), MaxWaiting: 1000, Limit: func() limit.Limiter { return rolling(t, perSecond, time.Second, limit.Requests) }}
	}
	for range n {
		all = append(all, mustNew(t, each))
	}
	return all, common
}

// at is a URL at one of several servers.
func at(server int) func(int) string {
	return func(int) string { return "http://" + string(rune('a'+server)) + ".test/" }
}

// A client's limit is for its requests to three servers together. No second has more than 10 of
// them, and hardly any has fewer. Another client's requests are counted separately.
func TestClientsLimitOverTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		all, _ := together(t, 3, g, 10, transport.Config{})
		c := newCrowd(t)
		defer c.leave()
		for i, tr := range all {
			c.ask(t, tr, 100, "a", at(i))
			c.ask(t, tr, 50, "b", at(i))
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		for _, name := range []string{"a", "b"} {
			judge, err := rule.NewRolling(rule.RollingConfig{Limit: 10, Window: time.Second - 1}) // the limit has no margin
			if err != nil {
				t.Fatal(err)
			}
			n, over := 0, 0
			for i, at := range g.at {
				if g.names[i] != name {
					continue
				}
				if n++; !judge.Arrive(mono.Time(at), 1) {
					over++
				}
			}
			if over != 0 || n < 148 {
				t.Errorf("%s: %d sent in 15 s, %d of them beyond 10 a second", name, n, over)
			}
		}
	})
}

// How many requests of a client may wait is bounded over all servers, too.
func TestClientsMaxWaitingOverTransports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := together(t, 2, newGoing(), 1, transport.Config{})
		c := newCrowd(t)
		defer c.leave()
		c.ask(t, all[0], 601, "a", at(0)) // the first goes at once
		synctest.Wait()
		c.ask(t, all[1], 400, "a", at(1))
		synctest.Wait()
		if _, _, err := do(t, all[1], get(t, "http://b.test/", "Client", "a")); err == nil || !strings.Contains(err.Error(), "wait") {
			t.Errorf("with 1,000 in line: %v", err)
		}
	})
}

// A server that asks for ten minutes of pause delays no request to another server, even of a client
// of both with a shared limit.
func TestClientsOneServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGoing()
		away := newBase(0, func(n int, r *http.Request) *http.Response {
			if n <= 5 {
				return reply(200, "fine")
			}
			return reply(429, "", "Retry-After", "600")
		})
		all, _ := together(t, 2, byHost{"a.test": away, "b.test": g}, 10, transport.Config{MaxRetryAfter: time.Hour, Attempts: 100})
		c := newCrowd(t)
		defer c.leave()
		c.ask(t, all[0], 300, "a", at(0))
		c.ask(t, all[1], 300, "a", at(1))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n := g.sent(); n < 190 {
			t.Errorf("%d sent to the server that is there, in 20 s, want some 200", n)
		}
	})
}

// byHost sends to each server in its own way.
type byHost map[string]http.RoundTripper

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) { return b[r.URL.Host].RoundTrip(r) }

// The Snapshot of one Transport shows its own state, except for the usage of its clients' limits.
func TestClientsSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, _ := together(t, 2, newGoing(), 10, transport.Config{})
		for i := range 5 {
			tr := i % 2
			if _, _, err := do(t, all[tr], get(t, at(tr)(0), "Client", "a")); err != nil {
				t.Fatal(err)
			}
		}
		for i, tr := range all {
			s := tr.Snapshot()
			if want := int64(3 - i); s.Sent != want || len(s.Clients) != 1 || s.Clients[0].Sent != want {
				t.Errorf("Transport %d: %d sent, clients %+v", i, s.Sent, s.Clients)
			}
			found := false
			for _, l := range s.Limits {
				if found = l.Whose.Client == "a"; found {
					if l.Used != 5 {
						t.Errorf("Transport %d: used %d of the client's limit, want 5", i, l.Used)
					}
					break
				}
			}
			if !found {
				t.Errorf("Transport %d: no limit of the client in %+v", i, s.Limits)
			}
		}
	})
}

// A retired Transport is forgotten when its last request has ended, but its clients' usage is not.
func TestRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newBase(100*time.Millisecond, ok)
		all, common := together(t, 2, slow, 2, transport.Config{})
		var requests sync.WaitGroup
		for range 2 {
			requests.Go(func() {
				if _, _, err := do(t, all[0], get(t, "http://a.test/", "Client", "a")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		all[0].Retire()
		if leaves, clients, _ := transport.Remembered(all[0]); leaves != 1 || clients != 1 {
			t.Errorf("under way: %d partitions, %d clients", leaves, clients)
		}
		requests.Wait()
		if leaves, _, nodes := transport.Remembered(all[0]); leaves != 0 || nodes != 1 {
			t.Errorf("ended: %d partitions, %d limits, want that of the client", leaves, nodes)
		}
		begin := time.Now()
		if _, _, err := do(t, all[1], get(t, "http://b.test/", "Client", "a")); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begin); waited < 900*time.Millisecond {
			t.Errorf("at another server it waited for %v: what was sent is forgotten", waited)
		}
		if _, _, err := do(t, all[0], get(t, "http://a.test/", "Client", "b")); err != nil { // late, and served all the same
			t.Error(err)
		}
		if leaves, clients, _ := transport.Remembered(all[0]); leaves != 0 || clients != 2 {
			t.Errorf("after a late one: %d partitions, %d clients", leaves, clients)
		}
		changed := 0
		common.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
			changed++
			if p.Scope != transport.ScopeClient || l.(*limit.Rolling).SetLimit(now, 1000) != nil {
				t.Errorf("%v cannot be changed", p)
			}
		})
		begin = time.Now()
		for range 10 {
			do(t, all[1], get(t, "http://b.test/", "Client", "a"))
		}
		if took := time.Since(begin); changed != 2 || took > 1100*time.Millisecond {
			t.Errorf("%d limits changed; 10 requests took %v", changed, took)
		}
	})
}

// Impossible settings are refused.
func TestClientsConfig(t *testing.T) {
	common, err := transport.NewClients(transport.ClientsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	who := func(*http.Request) transport.Client { return transport.Client{} }
	for want, c := range map[string]transport.Config{
		"Clients without Client":    {Clients: common},
		"MaxWaiting 5 with Clients": {Clients: common, Client: who, MaxWaiting: 5},
	} {
		if _, err := transport.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, c := range []transport.ClientsConfig{{Most: -1}, {Idle: -1}} {
		if _, err := transport.NewClients(c); err == nil || !strings.Contains(err.Error(), "negative") {
			t.Errorf("%+v: %v", c, err)
		}
	}
	tr := mustNew(t, transport.Config{Clients: common, Client: who})
	if _, err := tr.With(transport.Config{Client: who}); err == nil || !strings.Contains(err.Error(), "other Clients") {
		t.Errorf("With other Clients: %v", err)
	}
}
