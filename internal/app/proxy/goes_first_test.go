package proxy

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An order does not wait for the market data of the same client, which fill the limit. The data have the rest, and
// the server refuses nothing.
func TestOrdersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStrictServer(t, 20, time.Second)
		conf := to(mustURL(t, "http://server.test"), "20/s")
		conf.MaxWait, conf.Dial = time.Hour, s.dial
		conf.Upstreams[0].First = []string{"POST /order", "DELETE /order/*"}
		conf.Clients.Header = "X-Who"
		p, err := New(conf)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		all := newCrowd(t, p)
		defer func() { all.leave(); all.asking.Wait() }()
		all.join("bot", 900, same("/depth"))
		time.Sleep(2 * time.Second)
		before := s.all()
		var waits []time.Duration
		for i := range 60 {
			time.Sleep(500*time.Millisecond + time.Duration(i)*time.Millisecond)
			method, path := "POST", "/order"
			if i%2 == 1 {
				method, path = "DELETE", "/order/7"
			}
			waited, _ := all.asks(method, "bot", path)
			waits = append(waits, waited)
		}
		slices.Sort(waits)
		if median, longest := waits[30], waits[59]; median != 0 || longest > 500*time.Millisecond {
			t.Errorf("orders wait for %v in the median, and %v at most", median, longest)
		}
		if n := s.all() - before; n < 32*18 || s.refused > 0 { // 32 s
			t.Errorf("%d were sent in 32 s of 20/s, and %d refused", n, s.refused)
		}
		if waited, _ := all.asks("GET", "bot", "/order"); waited < 10*time.Second {
			t.Errorf("a GET waited for %v, and is no order", waited)
		}
	})
}

// Orders without end leave data their part, and both lines count in the client's own limit.
func TestDataBesideOrders(t *testing.T) {
	for own, least := range map[string]int{"": 10, "1/s": 0} {
		t.Run("own limit "+own, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				served := &tally{n: map[string]int{}}
				conf := to(mustURL(t, "http://server.test"), "4/s")
				conf.MaxWait = time.Hour
				conf.Upstreams[0].First = []string{"GET /order"}
				bot := Client{Name: "bot"}
				if own != "" {
					l := limitsOf(own)
					bot.Limits = append(bot.Limits, l[0].Limit)
				}
				conf.Clients = Clients{Header: "X-Who", List: []Client{bot}}
				all := newCrowd(t, virtual(t, served, conf).proxy)
				all.join("bot", 300, same("/depth"))
				all.join("bot", 400, same("/order"))
				time.Sleep(20 * time.Second)
				if n := served.lately(); n["/depth"] > n["/order"]/4 {
					t.Errorf("within the head start: %v", n)
				}
				time.Sleep(50 * time.Second) // it is used up
				served.lately()
				time.Sleep(15 * time.Second)
				n := served.lately()
				if n["/depth"] < least || n["/order"] < n["/depth"]-2 {
					t.Errorf("in 15 s: %v, want %d data", n, least)
				}
				if sum := n["/depth"] + n["/order"]; own != "" && sum > 16 {
					t.Errorf("%d of a client with %s", sum, own)
				}
			})
		})
	}
}

// The part that is free for orders is free at their upstream alone.
func TestFirstFreeOfOneUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := &tally{n: map[string]int{}}
		conf := to(mustURL(t, "http://server.test"), "20/m")
		conf.MaxWait = time.Hour
		other := conf.Upstreams[0]
		other.Path, other.Name = "/b", "other"
		conf.Upstreams = append(conf.Upstreams, other)
		conf.Upstreams[0].First, conf.Upstreams[0].FirstFree = []string{"POST /order"}, 0.25
		conf.Clients.Header = "X-Who"
		all := newCrowd(t, virtual(t, served, conf).proxy)
		all.join("bot", 40, same("/depth"))
		all.join("bot", 20, same("/b/all")) // in the line of those that wait, they would change its part
		time.Sleep(61 * time.Second)
		if n := served.lately(); n["/depth"] != 30 || n["/all"] != 20 {
			t.Errorf("served in two windows: %v, want 15 each where orders go first, and 20 elsewhere", n)
		}
	})
}

func TestFirstIsChecked(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`Upstreams[0].First[1]: want a method and a path`: func(c *Config) { c.Upstreams[0].First = []string{"POST /order", "/x"} },
		"FirstFree: no request goes first":                func(c *Config) { c.Upstreams[0].FirstFree = 0.2 },
		"FirstFree: 1, expected less than 1":              func(c *Config) { c.Upstreams[0].First, c.Upstreams[0].FirstFree = []string{"POST *"}, 1 },
		`"bot (first)" is what a line of the client "bot" is called`: func(c *Config) {
			c.Upstreams[0].First = []string{"POST *"}
			c.Clients.List = []Client{{Name: "bot (first)"}}
		},
	} {
		conf := to(mustURL(t, "http://server.test"), "20/m")
		change(&conf)
		_, err := conf.Checked()
		if bad, is := errors.AsType[*ConfigError](err); !is || !strings.Contains(bad.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	conf := to(mustURL(t, "http://server.test"), "20/m")
	conf.Clients.List = []Client{{Name: "bot (first)"}} // nothing goes first
	if _, err := conf.Checked(); err != nil {
		t.Error(err)
	}
	all := newClients(&conf, new(clientele))
	for name, want := range map[string]string{"bot (first)": "bot (first)", "x (first)": "x", "x (beside first at y)": "x", "x (batch)": "x"} {
		r, _ := http.NewRequest("GET", "/", nil)
		r.Header.Set("X-Who", name)
		if got := all.byName(name).Name; name != "bot (first)" && got != want {
			t.Errorf("%q is the client %q, want %q", name, got, want)
		}
	}
}

func TestIsLineOf(t *testing.T) {
	for name, want := range map[string]bool{"bot": true, "bot (first)": true, "bot (beside first at api)": true, "bots": false, "bot (batch)": false, "b": false} {
		if got := IsLineOf(name, "bot"); got != want {
			t.Errorf("%q is a line of bot: %v", name, got)
		}
	}
}
