package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
)

// quota is a server that allows so many an hour of each key, and counts what it refuses.
type quota struct {
	most int

	mu      sync.Mutex
	in      map[string][]time.Time
	refused int
}

func (q *quota) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, now := r.Header.Get("Authorization"), time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.in == nil {
		q.in = map[string][]time.Time{}
	}
	for len(q.in[key]) > 0 && now.Sub(q.in[key][0]) >= time.Hour {
		q.in[key] = q.in[key][1:]
	}
	if len(q.in[key]) >= q.most {
		q.refused++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	q.in[key] = append(q.in[key], now)
}

// asks sends a request with a field, and returns the status of its answer, and of a refusal the kind
// and the wait. It needs no
// connection.
func (x *proxied) asks(path, field, value string) (status int, kind string, wait time.Duration) {
	r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
	r.Header.Set(field, value)
	x.proxy.ServeHTTP(w, r)
	if w.Code == 200 {
		return w.Code, "", 0
	}
	var p problem
	_ = json.Unmarshal(w.Body.Bytes(), &p)
	seconds, _ := strconv.Atoi(w.Header().Get("Retry-After"))
	return w.Code, strings.TrimPrefix(p.Type, Kinds), time.Duration(seconds) * time.Second
}

// An app goes round the keys of more tenants than are at hand, with two an hour each, also by ten
// endpoints. The server refuses none of them.
func TestMoreKeysThanAreAtHand(t *testing.T) {
	for _, c := range []struct{ keys, endpoints int }{{350, 1}, {50, 10}} {
		synctest.Test(t, func(t *testing.T) {
			q := &quota{most: 2 * c.endpoints}
			conf := to(mustURL(t, "http://upstream.test"), fmt.Sprintf("%d/h", q.most))
			conf.MaxWait, conf.atHand = -1, 300
			x := virtual(t, q, conf)
			got := map[string]int{}
			for round := range 3 {
				for key := range c.keys {
					for e := range c.endpoints {
						status, kind, _ := x.asks("/api/"+strings.Repeat("x", e+1), "Authorization", fmt.Sprintf("Bearer tenant-%06d-secret", key))
						got[fmt.Sprint(round, " ", status, " ", kind)]++
					}
				}
			}
			n := c.keys * c.endpoints
			if q.refused > 0 || got["0 200 "] != n || got["1 200 "] != n || got["2 429 wait-too-long"] != n {
				t.Errorf("%d keys, %d endpoints: the server refused %d; %v", c.keys, c.endpoints, q.refused, got)
			}
		})
	}
}

// At the bound a new key is refused with the time at which there is room. Keys that are known go on.
func TestTooManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{most: 2}
		conf := to(mustURL(t, "http://upstream.test"), "2/h")
		conf.MaxWait, conf.Bounds.Frozen, conf.atHand = -1, 20_000, 100
		x := virtual(t, q, conf)
		full, first := 0, -1
		for key := range 300 {
			switch status, kind, wait := x.asks("/", "Authorization", fmt.Sprint("Bearer ", key)); {
			case status == 200:
			case kind != "too-many-keys" || status != 429 || wait > time.Hour+time.Second || wait < time.Minute:
				t.Fatalf("key %d: %d %s, in %v", key, status, kind, wait)
			default:
				if full++; first < 0 {
					first = key
				}
			}
		}
		if full == 0 || first+full != 300 {
			t.Fatalf("from key %d on %d were refused", first, full)
		}
		for key := range 50 {
			if status, kind, _ := x.asks("/", "Authorization", fmt.Sprint("Bearer ", key)); status != 200 {
				t.Fatalf("key %d is known: %d %s", key, status, kind)
			}
		}
		s := x.proxy.routes[0].transport.Snapshot().Frozen
		if s.Refused != int64(full) || s.Bytes < 15_000 || s.Most != 20_000 || s.Partitions == 0 {
			t.Errorf("%+v", s)
		}
		if log := x.log.String(); !strings.Contains(log, "MaxFrozen") {
			t.Error("nothing is in the log")
		}
		time.Sleep(time.Hour + time.Second)
		if status, kind, _ := x.asks("/", "Authorization", "Bearer new"); status != 200 || q.refused > 0 {
			t.Errorf("nothing counts any more: %d %s; the server refused %d", status, kind, q.refused)
		}
	})
}

// Each name is a client with its own limit, however many come after it.
func TestMoreClientsThanAreAtHand(t *testing.T) {
	for _, most := range []int{0, 70} {
		synctest.Test(t, func(t *testing.T) {
			twice, _ := rate.ParseLimit("2/d")
			conf := to(mustURL(t, "http://upstream.test"))
			conf.MaxWait, conf.atHand = -1, 100
			conf.Clients = Clients{Header: "X-Who", Most: most, Default: Client{Limits: []rate.Limit{twice}}}
			x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), conf)
			served := 0
			for range 3 {
				for i := range 350 {
					if status, _, _ := x.asks("/", "X-Who", fmt.Sprint("name-", i)); status == 200 {
						served++
					}
				}
			}
			want := 2 * 350
			if most > 0 {
				want = 2*most + 2 // the others are one client
			}
			if served != want {
				t.Errorf("of %d clients at a time: %d are served, want %d", most, served, want)
			}
			time.Sleep(25 * time.Hour)
			x.asks("/", "X-Who", "new")
			if status, _, _ := x.asks("/", "X-Who", "new"); status != 200 {
				t.Errorf("of %d clients at a time: a name whose place is free: %d", most, status)
			}
		})
	}
}

// A change of the limits reaches the keys that are not at hand, with what they have sent.
func TestApplyReachesFrozenKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{most: 100}
		conf := to(mustURL(t, "http://upstream.test"), "3/h")
		conf.MaxWait, conf.atHand, conf.Live = -1, 5, true
		x := virtual(t, q, conf)
		others := func() {
			for i := range 20 {
				x.asks("/", "Authorization", fmt.Sprint("Bearer other ", i))
			}
		}
		for range 2 {
			x.asks("/", "Authorization", "Bearer one")
		}
		others()
		for _, c := range []struct {
			limits []string
			status int
			wait   time.Duration
		}{
			{[]string{"100/m", "3/h"}, 200, 0},
			{[]string{"3/h", "100/m"}, 429, time.Hour},
			{[]string{"4/h", "10/s"}, 200, 0},
			{[]string{"4/d"}, 429, 24 * time.Hour},
		} {
			conf.Listen, conf.Admin = x.proxy.config.Listen, x.proxy.config.Admin
			conf.Upstreams = to(conf.Upstreams[0].To, c.limits...).Upstreams
			if err := x.proxy.Apply(conf); err != nil {
				t.Fatal(err)
			}
			status, kind, wait := x.asks("/", "Authorization", "Bearer one")
			if off := wait - c.wait; status != c.status || off < 0 || off > time.Minute {
				t.Errorf("%v: %d %s, in %v, want %d in %v", c.limits, status, kind, wait, c.status, c.wait)
			}
			others()
		}
	})
}

// An upstream that is taken out of the configuration and comes back goes on where it was.
func TestApplyUpstreamComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quota{most: 3}
		conf := to(mustURL(t, "http://upstream.test"), "3/h")
		conf.MaxWait, conf.Live = -1, true
		x := virtual(t, q, conf)
		apply := func(c Config) {
			c.Listen, c.Admin = x.proxy.config.Listen, x.proxy.config.Admin
			if err := x.proxy.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			x.asks("/", "Authorization", "Bearer one")
		}
		other := conf
		other.Upstreams = to(mustURL(t, "http://another.test")).Upstreams
		for range 2 {
			apply(other)
			apply(conf)
			if status, kind, wait := x.asks("/", "Authorization", "Bearer one"); status != 429 || kind != "wait-too-long" || wait < 50*time.Minute || q.refused > 0 {
				t.Errorf("%d %s, in %v; the server refused %d", status, kind, wait, q.refused)
			}
		}
		apply(other)
		time.Sleep(100 * 24 * time.Hour)
		apply(other)
		if n := len(x.proxy.former); n != 0 {
			t.Errorf("%d are kept, and nothing counts", n)
		}
	})
}
