package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit/mono"
)

// turning is a server that refuses all beyond its limit, which changes. What arrived before counts in the new limit.
type turning struct {
	mu      sync.Mutex
	began   time.Time
	rule    rule.Rule
	arrived []mono.Time
	refused int
	of      map[string]int // by client, or by key: the field Who

	inFlight, most int // most: since the last look
}

func (s *turning) limit(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := rate.ParseLimit(text)
	if err != nil {
		panic(err)
	}
	if s.rule, err = rule.NewRolling(rule.RollingConfig{Limit: l.N, Window: l.Per}); err != nil {
		panic(err)
	}
	for _, at := range s.arrived {
		s.rule.Fits(at, 1)
		s.rule.Count(at, 1, true)
	}
}

func (s *turning) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	at := mono.Of(s.began, time.Now())
	if s.rule.Arrive(at, 1) {
		s.arrived = append(s.arrived, at)
		s.of[r.Header.Get("Who")]++
	} else {
		s.refused++
		w.WriteHeader(http.StatusTooManyRequests)
	}
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.mu.Unlock()
	time.Sleep(70 * time.Millisecond)
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
}

// took returns how many arrived since the last call, and of whom.
func (s *turning) took() (n int, of map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, each := range s.of {
		n += each
	}
	of, s.of, s.most = s.of, map[string]int{}, 0
	return n, of
}

// turned runs clients that always ask, against a server of 20/s, with what steer does beside them.
func turned(t *testing.T, c Config, clients []string, steer func(x *proxied, s *turning)) {
	synctest.Test(t, func(t *testing.T) {
		s := &turning{began: time.Now(), of: map[string]int{}}
		s.limit("20/s")
		c.Live, c.MaxWait, c.Bounds.Stall = true, time.Hour, time.Hour
		x := virtual(t, s, c)
		var all sync.WaitGroup
		done := make(chan struct{})
		for i := range 20 * len(clients) {
			all.Go(func() {
				name := clients[i%len(clients)]
				for {
					select {
					case <-done:
						return
					default:
					}
					if code, body := x.direct("Client", name, "Who", name); code != 200 {
						t.Errorf("%s: %d %s", name, code, body)
						return
					}
				}
			})
		}
		steer(x, s)
		close(done)
		all.Wait()
		if s.refused > 0 {
			t.Errorf("the server refused %d", s.refused)
		}
	})
}

// direct sends a request without a connection to the proxy.
func (x *proxied) direct(fields ...string) (status int, body string) {
	r := httptest.NewRequest("GET", "/", nil)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	x.proxy.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (x *proxied) turn(t daemon.Turn, want string) {
	x.t.Helper()
	said, err := x.proxy.Turn(t)
	if err != nil {
		said = err.Error()
	}
	if said != want {
		x.t.Errorf("%+v: %q, want %q", t, said, want)
	}
}

// A limit that is lowered, raised, or gets another window holds at a strict server that changes at the same
// instant, and is used in full.
func TestTurnLimit(t *testing.T) {
	turned(t, to(mustURL(t, "http://server.test"), "20/s"), []string{"a"}, func(x *proxied, s *turning) {
		time.Sleep(5 * time.Second)
		for _, c := range []struct {
			from, to    string
			wait        time.Duration // until a window has passed
			least, most int           // in 20 s
		}{
			{"20/s", "5/s", time.Second, 90, 100},
			{"5/s", "20/s", time.Second, 370, 400},
			{"20/s", "60/10s", 10 * time.Second, 110, 120},
			{"60/10s", "20/s", 10 * time.Second, 370, 400},
		} {
			s.limit(c.to)
			x.turn(daemon.Turn{Knob: daemon.Limit, Value: c.to}, fmt.Sprintf("limit %s is %s now", c.from, c.to))
			if got := strings.Join(x.proxy.Settings().Limits, " "); got != c.to {
				t.Errorf("the limits are %s, want %s", got, c.to)
			}
			time.Sleep(c.wait)
			s.took()
			time.Sleep(20 * time.Second)
			if n, _ := s.took(); n < c.least || n > c.most {
				t.Errorf("%s to %s: %d in 20 s, want %d to %d", c.from, c.to, n, c.least, c.most)
			}
		}
	})
}

// A weight, a client's own limit and a bound in flight change while all clients wait.
func TestTurnWeightAndInFlight(t *testing.T) {
	c := to(mustURL(t, "http://server.test"), "20/s")
	c.Clients = Clients{Header: "Client", List: []Client{{Name: "a"}, {Name: "b", Limits: ratesOf("8/s")}}}
	turned(t, c, []string{"a", "b"}, func(x *proxied, s *turning) {
		want := func(what string, a, b int) {
			t.Helper()
			time.Sleep(3 * time.Second)
			s.took()
			time.Sleep(20 * time.Second)
			if _, of := s.took(); of["a"] < a-15 || of["a"] > a+15 || of["b"] < b-15 || of["b"] > b+15 {
				t.Errorf("%s: %v in 20 s, want a near %d, b near %d", what, of, a, b)
			}
		}
		want("b has 8/s", 224, 150)
		x.turn(daemon.Turn{Knob: daemon.Limit, Name: "client b", Value: "2/s"}, "limit client b: 8/s is 2/s now")
		want("b has 2/s", 337, 37)
		x.turn(daemon.Turn{Knob: daemon.Limit, Name: "client b: 2/s", Value: "20/s"}, "limit client b: 2/s is 20/s now")
		want("equal", 187, 187)
		x.turn(daemon.Turn{Knob: daemon.Share, Name: "a", Value: "3"}, "client a: weight 1 is 3 now")
		want("3 to 1", 280, 93)
		x.turn(daemon.Turn{Knob: daemon.Share, Name: "b", Value: "0.5"}, "client b: weight 1 is 0.5 now")
		want("6 to 1", 320, 53)

		x.turn(daemon.Turn{Knob: daemon.Concurrency, Value: "1"}, "server.test: 1 in flight at most for each key")
		time.Sleep(time.Second)
		s.took()
		time.Sleep(20 * time.Second)
		s.mu.Lock()
		most := s.most
		s.mu.Unlock()
		if n, _ := s.took(); most != 1 || n < 240 || n > 290 {
			t.Errorf("one in flight: %d in 20 s, %d at once", n, most)
		}
		x.turn(daemon.Turn{Knob: daemon.Concurrency, Value: "0"}, "server.test: any number of requests in flight")
		want("6 to 1 again", 320, 53)
		set := x.proxy.Settings()
		if len(set.InFlight) != 0 || len(set.Changes) != 6 || fmt.Sprint(set.Clients) != "[{a 3} {b 0.5} {default 1}]" {
			t.Errorf("%+v", set)
		}
	})
}

// A paused key rests until its instant, or until the end of its pause, and so does an upstream. The answer
// to a request that cannot wait so long says why. Another configuration ends changes, and not pauses.
func TestTurnPause(t *testing.T) {
	c := to(mustURL(t, "http://server.test"), "8/s")
	c.Upstreams[0].Keys = []Key{{Name: "K1", Secret: "one"}, {Name: "K2", Secret: "two"}}
	c.Upstreams[0].Header = []Field{{Name: "Who", Value: "{key}"}}
	turned(t, c, []string{"a"}, func(x *proxied, s *turning) {
		want := func(what string, one, two int) {
			t.Helper()
			time.Sleep(2 * time.Second)
			s.took()
			time.Sleep(20 * time.Second)
			if _, of := s.took(); of["one"] < one-16 || of["one"] > one || of["two"] < two-16 || of["two"] > two {
				t.Errorf("%s: %v in 20 s, want %d and %d", what, of, one, two)
			}
		}
		want("both", 160, 160)
		until := time.Now().Add(30 * time.Second)
		x.turn(daemon.Turn{Knob: daemon.Pause, Name: "K1", Until: until}, "K1 paused until "+until.Format(time.DateTime))
		want("K1 is paused", 0, 160)
		time.Sleep(10 * time.Second)
		want("after its pause", 160, 160)
		x.turn(daemon.Turn{Knob: daemon.Pause, Name: "server.test"}, "server.test paused until paceline ctl resume")
		if code, body := x.direct(FieldMaxWait, "3"); code != 429 || !strings.Contains(body, "are paused by the user") || !strings.Contains(body, `proxy.md#paused"`) {
			t.Errorf("%d %s", code, body)
		}
		want("all are paused", 0, 0)
		x.turn(daemon.Turn{Knob: daemon.Limit, Value: "4/s"}, "limit 8/s is 4/s now")
		next := x.proxy.turns.base
		next.MaxWait = 2 * time.Hour
		if err := x.proxy.Apply(next); err != nil {
			t.Error(err)
		}
		if set := x.proxy.Settings(); len(set.Changes) != 1 || set.Limits[0] != "4/s" || len(set.Pauses) != 1 {
			t.Errorf("%+v", set)
		}
		want("still paused", 0, 0)
		moved := x.proxy.turns.base
		moved.Upstreams = append([]Upstream(nil), moved.Upstreams...)
		moved.Upstreams[0].To = mustURL(t, "http://other.test")
		if err := x.proxy.Apply(moved); err != nil {
			t.Error(err)
		}
		if code, body := x.direct(FieldMaxWait, "3"); code != 429 || !strings.Contains(body, "are paused by the user") {
			t.Errorf("at another server: %d %s", code, body)
		}
		x.turn(daemon.Turn{Knob: daemon.Resume}, "all requests resumed")
	})
}

// What cannot be meant or changed is an error with what was expected, and nothing changes.
func TestTurnRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := to(mustURL(t, "http://one.test"), "20/s", "500/m")
		c.Upstreams[0].Name, c.Upstreams[0].Path = "one", "/one"
		two := to(mustURL(t, "http://two.test"), "20/s").Upstreams[0]
		two.Name, two.Path, two.Keys, two.Header = "two", "/two", []Key{{Name: "K", Secret: "k", Limits: ratesOf("7/h")}}, []Field{{Name: "X", Value: "{key}"}}
		free := to(mustURL(t, "http://free.test")).Upstreams[0]
		free.Name, free.Path = "free", "/free"
		c.Upstreams = append(c.Upstreams, two, free)
		c.Clients.List = []Client{{Name: "ann", Keys: []KeyHash{HashKey("k")}, Limits: ratesOf("3/s")}}
		c.Live = true
		x := virtual(t, http.NotFoundHandler(), c)
		const all = "one: 20/s or one: 500/m or two: 20/s or two key K: 7/h or client ann: 3/s"
		for _, c := range []struct {
			knob, name, value, want string
		}{
			{daemon.Limit, "", "9/s", "9/s may be for each of several limits; expected the name of one before it: one: 20/s or one: 500/m or two: 20/s or two key K: 7/h"},
			{daemon.Limit, "20/s", "9/s", "9/s may be for each of several limits; expected the name of one before it: one: 20/s or two: 20/s"},
			{daemon.Limit, "3/h", "9/s", `no limit "3/h", expected ` + all},
			{daemon.Limit, "two: 20/s", "9 tokens/s", `"9 tokens/s" counts tokens, and 20/s counts requests; expected the same`},
			{daemon.Limit, "two: 20/s", "quick", `"quick" does not say per what time, expected 100/min, 4500/h, 200000 tokens/d, 50k input/m, 20k output/m, 5USD/d`},
			{daemon.Concurrency, "", "3", "3 in flight at which upstream? expected its name before it: one or two or free"},
			{daemon.Concurrency, "three", "3", `no upstream "three", expected one or two or free`},
			{daemon.Concurrency, "one", "-3", `"-3" requests in flight, expected 1 or more; or 0 for as many as at the start`},
			{daemon.Concurrency, "free", "3", "free has no limit of the configuration, so its bound in flight cannot come or go; expected a new start"},
			{daemon.Share, "bob", "3", `no client "bob" is in the configuration, expected ann or default for each other one`},
			{daemon.Share, "ann", "0", `a weight of "0", expected above 0 and up to a million`},
			{daemon.Pause, "K9", "", `no key or upstream "K9", expected K or free or one or two, or no name for all requests`},
			{daemon.Pause, "ann", "", `"ann" is a client, and pauses are of keys and upstreams; expected paceline ctl limit 'client ann' 1/d to stop it, and none in place of 1/d to end that`},
			{daemon.Resume, "client ann", "", `"ann" is a client, and pauses are of keys and upstreams; expected paceline ctl limit 'client ann' 1/d to stop it, and none in place of 1/d to end that`},
			{"speed", "", "", "a proxy has no speed; expected pause, resume, limit, share or concurrency"},
		} {
			x.turn(daemon.Turn{Knob: c.knob, Name: c.name, Value: c.value}, c.want)
		}
		if set := x.proxy.Settings(); strings.Join(set.Limits, " or ") != all || len(set.Changes) != 0 {
			t.Errorf("%+v", set)
		}
		x.turn(daemon.Turn{Knob: daemon.Limit, Name: "one", Value: "9/s"}, "limit one: 20/s is 9/s now")
		x.turn(daemon.Turn{Knob: daemon.Limit, Name: "20/s", Value: "600/m"}, "limit two: 20/s is 600/m now")
		x.turn(daemon.Turn{Knob: daemon.Limit, Name: "two key K", Value: "8/h"}, "limit two key K: 7/h is 8/h now")
		x.turn(daemon.Turn{Knob: daemon.Limit, Value: "400/m"}, "400/m may be for each of several limits; expected the name of one before it: one: 9/s or one: 500/m or two: 600/m or two key K: 8/h")
	})
}

// A client without a limit of its own gets one while the proxy runs, by its name in the file, in its field, or by its
// address. Others go on as they did. With none, the limits of the configuration hold again.
func TestTurnCurbsAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Config{Live: true, MaxWait: -1,
			Clients:   Clients{Header: "Who", List: []Client{{Name: "listed"}, {Name: "bound", Limits: []rate.Limit{{N: 2, Per: time.Minute, Text: "2/m"}}}}},
			Upstreams: []Upstream{{Name: "api", To: mustURL(t, "http://api.test/"), Limits: limitsOf("1000/s")}}})
		served := func(who string) (n int) {
			for range 4 {
				if resp, _ := x.do("GET", "/", "", "Who", who); resp.StatusCode == 200 {
					n++
				}
			}
			time.Sleep(2 * time.Minute)
			return n
		}
		turn := func(name, value, want string) {
			t.Helper()
			said, err := x.proxy.Turn(daemon.Turn{Knob: daemon.Limit, Name: name, Value: value})
			if text := said + fmt.Sprint(err); !strings.Contains(text, want) {
				t.Errorf("%s %s: %s, want %s", name, value, text, want)
			}
		}
		for _, c := range []struct{ who, value, said string }{
			{"listed", "1/m", "client listed: its limit is 1/m now"}, {"stranger", "3/m", "client stranger: its limit is 3/m now"},
			{"bound", "1/m", "limit client bound: 2/m is 1/m now"},
		} {
			before, other := served(c.who), served("other")
			turn("client "+c.who, c.value, c.said)
			if n := served(c.who); fmt.Sprintf("%d/m", n) != c.value || served("other") != other {
				t.Errorf("%s: %d were served with %s", c.who, n, c.value)
			}
			turn("client "+c.who, NoLimit, "client "+c.who+": the limits of the configuration hold, which are "+map[string]string{"bound": "2/m"}[c.who])
			if n := served(c.who); n != before {
				t.Errorf("%s: %d were served as before, want %d", c.who, n, before)
			}
		}
		turn("client 192.0.2.7", "1/m", "client 192.0.2.7: its limit is 1/m now")
		turn("client nobody", NoLimit, `no client "nobody" is in the configuration, expected listed or bound or stranger`)
		turn("client bound: 5/m", "1/m", "no limit")
	})
}

// A client reaches the upstreams of its list alone. The answer names the client, the upstream and what is allowed.
func TestUpstreamsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(name string) Upstream {
			return Upstream{Name: name, Path: "/" + name, To: mustURL(t, "http://api.test/")}
		}
		c := Config{Clients: Clients{Header: "Who", List: []Client{{Name: "bot", Upstreams: []string{"market"}}, {Name: "desk"}},
			Default: Client{Upstreams: []string{"news", "market"}}}, Upstreams: []Upstream{at("market"), at("orders"), at("news")}}
		x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), c)
		for _, c := range []struct{ who, path, says string }{
			{"bot", "/market/x", ""}, {"bot", "/orders/x", "the client bot may not use the upstream orders; expected one of market"},
			{"desk", "/orders/x", ""}, {"another", "/orders", "the client another may not use the upstream orders; expected one of news, market"},
			{"another", "/news", ""},
		} {
			resp, body := x.do("GET", c.path, "", "Who", c.who)
			if status := map[bool]int{true: 200, false: 403}[c.says == ""]; resp.StatusCode != status || !strings.Contains(body, c.says) ||
				c.says != "" && !strings.Contains(body, "upstream-not-allowed") {
				t.Errorf("%s of %s: %d %s", c.path, c.who, resp.StatusCode, body)
			}
		}
		for _, bad := range [][]string{{}, {"market", "shop"}} {
			c.Clients.List[1].Upstreams = bad
			if _, err := c.Checked(); err == nil || !strings.Contains(err.Error(), "Clients.List[1].Upstreams: ") ||
				!strings.Contains(err.Error(), "expected one of market, orders, news") {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}
