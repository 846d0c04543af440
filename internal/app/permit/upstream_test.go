package permit

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// counted is a server behind a proxy, beside the programs that send to it by permits.
type counted struct {
	*door
	proxy *proxy.Proxy

	mu       sync.Mutex
	arrivals []time.Time
}

// countedAt has an upstream "api.example.com" with a limit.
func countedAt(t *testing.T, text string, upstream func(*proxy.Upstream), c Config) *counted {
	t.Helper()
	l, err := rate.ParseCounted(text)
	if err != nil {
		t.Fatal(err)
	}
	s := &counted{}
	up := fakeconn.New()
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { s.arrives() })}
	served := make(chan struct{})
	go func() { _ = server.Serve(up); close(served) }()
	u := proxy.Upstream{Name: "api.example.com", To: &url.URL{Scheme: "http", Host: "api.example.com"},
		Limits: []proxy.Limit{{Limit: l}}}
	if upstream != nil {
		upstream(&u)
	}
	s.proxy, err = proxy.New(proxy.Config{Listen: "127.0.0.1:0", Admin: proxy.Off, Open: true, Dial: up.Dial, MaxWait: time.Hour,
		State: filepath.Join(t.TempDir(), "proxy.state"), Log: slog.New(slog.DiscardHandler), Upstreams: []proxy.Upstream{u}})
	if err != nil {
		t.Fatal(err)
	}
	main := fakeconn.New()
	running := s.proxy.Start(main, nil)
	t.Cleanup(func() { // after the door, which has permits of the proxy
		running.Stop()
		running.Stop()
		if err := running.Wait(); err != nil {
			t.Error(err)
		}
		server.Close()
		<-served
		time.Sleep(time.Second)
	})
	c.Proxy = func() *proxy.Proxy { return s.proxy }
	s.door = open(t, c)
	return s
}

func (s *counted) arrives() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrivals = append(s.arrivals, time.Now())
}

// most is the largest number of arrivals in any window.
func (s *counted) most(window time.Duration) (most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.arrivals, time.Time.Compare)
	for i, j := 0, 0; j < len(s.arrivals); j++ {
		for s.arrivals[j].Sub(s.arrivals[i]) >= window {
			i++
		}
		most = max(most, j-i+1)
	}
	return most
}

// get sends by the proxy.
func (s *counted) get(t *testing.T, header http.Header) int {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil)
	r.Header = header
	w := httptest.NewRecorder()
	s.proxy.ServeHTTP(w, r)
	return w.Code
}

const atUpstream = `{"limit":"api.example.com"}`

// Requests by HTTP and programs with permits count in one limit: no window has more than that, and all of
// it is used.
func TestUpstreamCountsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countedAt(t, "10/s", nil, Config{})
		began := time.Now()
		var all sync.WaitGroup
		for range 30 {
			all.Go(func() {
				if status := s.get(t, http.Header{}); status != http.StatusOK {
					t.Errorf("the proxy answers %d", status)
				}
			})
			all.Go(func() {
				c := s.program()
				p := s.granted(c, atUpstream)
				time.Sleep(20 * time.Millisecond)
				s.arrives()
				s.says(c, "/v1/settle", settled(p.Permits[0], `"result":"accepted"`))
			})
		}
		all.Wait()
		if most := s.most(time.Second); most != 10 {
			t.Errorf("%d requests in a second, expected 10 at most, and that many", most)
		}
		if spent := time.Since(began); spent < 5*time.Second || spent > 5500*time.Millisecond {
			t.Errorf("60 requests took %v", spent)
		}
	})
}

// A refusal that a program reports keeps the requests of others away, in the words of HTTP as in those of
// a result.
func TestUpstreamPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countedAt(t, "100/s", nil, Config{})
		c := s.program()
		for _, ends := range []string{`"status":429,"header":{"Retry-After":"7"}`, `"result":"refused","retry_after":6.5`} {
			p := s.granted(c, atUpstream)
			s.says(c, "/v1/settle", settled(p.Permits[0], ends))
			began := time.Now()
			if got := s.says(c, "/v1/acquire", `{"limit":"api.example.com","max_wait":1}`); got.kind() != "wait-too-long" && got.kind() != "paused" ||
				got.status != http.StatusTooManyRequests || got.WaitMS < 6500 {
				t.Errorf("%s, then a permit: %+v", ends, got)
			}
			if status := s.get(t, http.Header{}); status != http.StatusOK || time.Since(began) < 6900*time.Millisecond {
				t.Errorf("%s: a request by HTTP has %d after %v", ends, status, time.Since(began))
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// Each end of a permit does at an upstream what it does at a limit.
func TestUpstreamEnds(t *testing.T) {
	for _, row := range []struct {
		name, ends string
		next       time.Duration // when the next one goes
	}{
		{"accepted", `"result":"accepted"`, 10 * time.Second},
		{"unsent", `"result":"unsent"`, 0},
		{"unknown", `"result":"unknown"`, 15 * time.Second}, // it may arrive for 5 s
		{"answered", `"status":200`, 10 * time.Second},
		{"fewer tokens", `"result":"accepted","actual":{"weight":1}`, 0},
		{"its holder ends", "", 16 * time.Second}, // a second after its grant
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := countedAt(t, "10 weight/10s", nil, Config{})
				c := s.program()
				p := s.granted(c, `{"limit":"api.example.com","cost":{"weight":9}}`)
				if s.Held() != 1 {
					t.Errorf("%d are held", s.Held())
				}
				if row.ends == "" {
					c.CloseIdleConnections()
				} else if got := s.says(c, "/v1/settle", settled(p.Permits[0], row.ends)); got.Settled != 1 || s.Held() != 0 {
					t.Errorf("%+v, %d are held", got, s.Held())
				}
				began := time.Now()
				s.granted(c, `{"limit":"api.example.com","cost":{"weight":9}}`)
				if went := time.Since(began); went < row.next || went > row.next+50*time.Millisecond {
					t.Errorf("the next one went after %v, expected %v", went, row.next)
				}
			})
		})
	}
}

// A permit lives for as long as its program renews it, also after the upstream's time for an answer.
func TestUpstreamRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countedAt(t, "1/s", func(u *proxy.Upstream) { u.AnswerTimeout = 30 * time.Second }, Config{})
		c := s.program()
		const next = `{"limit":"api.example.com","max_wait":20}`
		held := func() string {
			p := s.granted(c, next)
			for range 10 {
				time.Sleep(8 * time.Second)
				if got := s.says(c, "/v1/renew", fmt.Sprintf("[%q]", p.Permits[0])); got.Renewed != 1 {
					t.Fatalf("not renewed: %+v", got)
				}
			}
			return p.Permits[0]
		}
		for _, row := range []struct {
			ends string
			next time.Duration
		}{{`"result":"unsent"`, 0}, {`"result":"accepted"`, time.Second}, {"", 16 * time.Second}} { // at last its program dies
			id := held()
			if got := s.says(c, "/v1/acquire", `{"limit":"api.example.com","max_wait":1}`); got.status != http.StatusTooManyRequests {
				t.Errorf("another permit while one is held: %+v", got)
			}
			if row.ends != "" {
				s.says(c, "/v1/settle", settled(id, row.ends))
			}
			began := time.Now()
			p := s.granted(c, next)
			if went := time.Since(began); went < row.next-time.Second || went > row.next+50*time.Millisecond {
				t.Errorf("after %s: the next one went after %v, expected %v", row.ends, went, row.next)
			}
			s.says(c, "/v1/settle", settled(p.Permits[0], `"result":"unsent"`))
		}
	})
}

// Keys have limits of their own, and a permit is of the key that its program names.
func TestUpstreamCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countedAt(t, "1/h", nil, Config{})
		c := s.program()
		if status := s.get(t, http.Header{"Authorization": {"Bearer one"}}); status != http.StatusOK {
			t.Fatal(status)
		}
		if got := s.says(c, "/v1/acquire", `{"limit":"api.example.com","max_wait":1,"credential":"Bearer one"}`); got.kind() != "wait-too-long" {
			t.Errorf("the key that has sent: %+v", got)
		}
		s.granted(c, `{"limit":"api.example.com","max_wait":1,"credential":"Bearer two"}`)
	})
}

// A batch at an upstream has what may go now. A call that hangs up, and a Server that closes, free what
// they hold; refusals name what is wrong.
func TestUpstreamBatchAndRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := countedAt(t, "5/s", nil, Config{})
		c := s.program()
		if p := s.granted(c, `{"limit":"api.example.com","n":50}`); len(p.Permits) != 5 {
			t.Errorf("%d permits at once", len(p.Permits))
		}
		if got := s.says(c, "/v1/acquire", `{"limit":"elsewhere.example.com"}`); got.kind() != "no-limit" ||
			got.Detail != `no limit is called "elsewhere.example.com", expected one of api.example.com` {
			t.Errorf("another host: %+v", got)
		}
		r, err := s.program().Get("http://paceline/v1/ask?limit=api.example.com")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK {
			t.Errorf("ask: %s", b)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		models := func(u *proxy.Upstream) {
			u.Targets = []proxy.Target{{Name: "a", To: u.To, Limits: u.Limits, Models: map[string]string{"small": "small-1"}}}
			u.To, u.Limits = nil, nil
		}
		s := countedAt(t, "5/s", models, Config{})
		if got := s.says(s.program(), "/v1/acquire", atUpstream); got.status != http.StatusBadRequest ||
			got.Type != proxy.Kinds+"no-model" || s.Held() != 0 {
			t.Errorf("targets with names of models: %+v", got)
		}
	})
}

// The answer names the key and the target of each permit, in whose limits it counts: where one of them has room
// again, the next permit names that one.
func TestUpstreamNamesKeysAndTargets(t *testing.T) {
	field := []proxy.Field{{Name: "X-Key", Value: "{key}"}}
	for _, row := range []struct {
		name          string
		upstream      func(u *proxy.Upstream)
		keys, targets []string // of the two permits that there are; nil: not named
	}{
		{"nothing to name", func(u *proxy.Upstream) { u.Limits[0].N = 2 }, nil, nil},
		{"keys", func(u *proxy.Upstream) {
			u.Header, u.Keys = field, []proxy.Key{{Name: "one", Secret: "sk-1"}, {Name: `t"wo`, Secret: "sk-2"}}
		}, []string{"one", `t"wo`}, nil},
		{"targets, one with a key", func(u *proxy.Upstream) {
			u.Targets = []proxy.Target{{Name: "eu", To: u.To, Limits: u.Limits}, {Name: "us", Limits: u.Limits, Header: field,
				To: &url.URL{Scheme: "http", Host: "us.example.com"}, Keys: []proxy.Key{{Name: "one", Secret: "sk-1"}}}}
			u.To, u.Limits = nil, nil
		}, []string{"", "one"}, []string{"eu", "us"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := countedAt(t, "1/h", row.upstream, Config{})
				c := s.program()
				p := s.granted(c, `{"limit":"api.example.com","n":5}`)
				sorted := func(names []string) []string { return slices.Sorted(slices.Values(names)) }
				if len(p.Permits) != 2 || !slices.Equal(sorted(p.Keys), row.keys) || !slices.Equal(sorted(p.Targets), row.targets) {
					t.Fatalf("%+v", p)
				}
				for i := range p.Permits { // each is free again by itself
					s.says(c, "/v1/settle", settled(p.Permits[i], `"result":"unsent"`))
					again := s.granted(c, atUpstream)
					for _, names := range [][2][]string{{p.Keys, again.Keys}, {p.Targets, again.Targets}} {
						if named := names[0] != nil && names[0][i] != ""; named && (len(names[1]) != 1 || names[1][0] != names[0][i]) {
							t.Errorf("of %q the permit %d is free again, and the next one is of %q", names[0], i, names[1])
						}
					}
				}
				if len(s.arrivals) > 0 {
					t.Errorf("%d requests were sent", len(s.arrivals))
				}
			})
		})
	}
}

// A client with a head start goes before those that wait, and others get their parts by weight: at a limit of
// the daemon as at a server.
func TestHeadStartsAndWeights(t *testing.T) {
	for _, name := range []string{"orders", "api.example.com"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := countedAt(t, "5/s", nil, Config{Limits: limitsOf(t, "orders=5/s"),
					Clients: []ClientConfig{{Name: "large", Weight: 3}, {Name: "ops", HeadStart: time.Minute}}})
				var mu sync.Mutex
				var went []string
				var all sync.WaitGroup
				join := func(client string, n int) {
					for range n {
						all.Go(func() {
							c := s.program()
							p := s.granted(c, `{"limit":"`+name+`","client":"`+client+`"}`)
							mu.Lock()
							went = append(went, client)
							mu.Unlock()
							s.says(c, "/v1/settle?client="+client, settled(p.Permits[0], `"result":"accepted"`))
						})
					}
					synctest.Wait()
				}
				join("first", 5)
				join("small", 24)
				join("large", 24)
				join("ops", 3)
				all.Wait()
				count := func(window []string, client string) (n int) { // those of a window go at once, in no order
					for _, one := range window {
						if one == client {
							n++
						}
					}
					return n
				}
				if n := count(went[5:10], "ops"); n != 3 {
					t.Errorf("%d with a head start go in the next window, expected 3: %v", n, went)
				}
				if n := count(went[5:35], "large"); n < 18 || n > 22 {
					t.Errorf("%d of 27 are of the client with weight 3, expected 20: %v", n, went)
				}
			})
		})
	}
}
