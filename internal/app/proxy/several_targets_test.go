package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// regions are servers by their hosts, each with a limit. One is away for some time.
type regions struct {
	began      time.Time
	mu         sync.Mutex
	judges     map[string]rule.Amendable
	away       string
	from, till time.Duration
	served     map[string]int
	refused    int
	failed     []time.Duration // when requests of programs came while it was away
	back       time.Duration   // the first answer of the one that was away
}

func newRegions(t *testing.T, perMinute map[string]int64) *regions {
	r := &regions{began: time.Now(), judges: map[string]rule.Amendable{}, served: map[string]int{}}
	for host, n := range perMinute {
		j, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		r.judges[host] = j
	}
	return r
}

func (s *regions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Since(s.began)
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Host == s.away && at >= s.from && at < s.till {
		if r.Method != http.MethodHead {
			s.failed = append(s.failed, at)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	j, now := s.judges[r.Host], mono.Time(at)
	fits := j.Fits(now, 1)
	if j.Count(now, 1, fits); !fits {
		s.refused++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	s.served[r.Host]++
	if r.Host == s.away && at >= s.till && s.back == 0 {
		s.back = at
	}
}

// region is a target with a limit.
func region(t *testing.T, name, limits string, after time.Duration) Target {
	return Target{Name: name, To: mustURL(t, "http://"+name+".test"), Limits: limitsOf(limits), After: after}
}

// Programs at once through the proxy get from two targets what both allow, and no refusal.
func TestTargetsServeTheSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newRegions(t, map[string]int64{"a.test": 600, "b.test": 240})
		conf := Config{MaxWait: 10 * time.Minute, Upstreams: []Upstream{{Name: "llm", Targets: []Target{region(t, "a", "600/m", 0), region(t, "b", "240/m", 0)}}}}
		virtually(t, s, conf, func(_ *Proxy, client func() *http.Client) {
			const long, programs = 3 * time.Minute, 40
			sendAtOnce(t, client, "GET", programs, long, nil)
			ceiling := 840 * int(long/time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			sum := s.served["a.test"] + s.served["b.test"] - programs // those that waited at the end are of the next minute
			t.Logf("%d of %d: %.1f %%, %v, %d refused", sum, ceiling, 100*float64(sum)/float64(ceiling), s.served, s.refused)
			if float64(sum) < 0.99*float64(ceiling) || s.refused > 0 {
				t.Errorf("%d of %d served, %d refused", sum, ceiling, s.refused)
			}
		})
	})
}

// sendAtOnce sends from programs at once for a time, each request after the answer to the one before, and
// counts the answers that are failures.
func sendAtOnce(t *testing.T, client func() *http.Client, method string, programs int, long time.Duration, pause func()) (failed int) {
	began := time.Now()
	var done sync.WaitGroup
	var mu sync.Mutex
	for range programs {
		c := client()
		done.Go(func() {
			for time.Since(began) < long {
				r, err := http.NewRequest(method, "http://proxy/x", strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					mu.Lock()
					failed++
					mu.Unlock()
				}
				if pause != nil {
					pause()
				}
			}
		})
	}
	done.Wait()
	return failed
}

// One target is away for 10 of 60 seconds. It fails programs at most once, or, if they send POSTs, with what
// came at one instant. It is used again at most 2 s late.
func TestOneTargetIsAway(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		synctest.Test(t, func(t *testing.T) {
			s := newRegions(t, map[string]int64{"a.test": 600, "b.test": 600})
			s.away, s.from, s.till = "a.test", 20*time.Second, 30*time.Second
			conf := Config{Upstreams: []Upstream{{Name: "llm", Targets: []Target{region(t, "a", "600/m", 0), region(t, "b", "600/m", 0)}}}}
			virtually(t, s, conf, func(p *Proxy, client func() *http.Client) {
				failed := sendAtOnce(t, client, method, 8, time.Minute, func() { time.Sleep(time.Second) })
				s.mu.Lock()
				defer s.mu.Unlock()
				t.Logf("%s: %d failed, back %v late, %v served", method, failed, s.back-s.till, s.served)
				if method == "GET" && failed > 1 || failed > len(s.failed) || s.back-s.till > 2*time.Second || s.refused > 0 {
					t.Errorf("%s: %d failed, back %v late, %d refused", method, failed, s.back-s.till, s.refused)
				}
				if method == "POST" && s.failed[len(s.failed)-1] > s.failed[0] {
					t.Errorf("POSTs failed at %v", s.failed)
				}
				targets := map[string]bool{}
				for _, l := range p.Sources()[0].Snapshot().Limits {
					targets[l.Target] = true
				}
				if !targets["a"] || !targets["b"] {
					t.Errorf("a Snapshot names the targets %v", targets)
				}
			})
		})
	}
}

// Requests come at the rate that two targets allow, and one is away for 10 of 60 seconds. At least 99 % are served
// within the minute. One is failed at most, and the target is used again at most 2 s late.
func TestATargetIsAwayAtTheCeiling(t *testing.T) {
	race.Without(t) // TestOneTargetIsAway has these goroutines
	const all, ceiling, rtt = 840, time.Minute / 840, 20 * time.Millisecond
	for i, c := range []struct{ away, method string }{{"a.test", "POST"}, {"b.test", "POST"}, {"a.test", "GET"}, {"b.test", "GET"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newRegions(t, map[string]int64{"a.test": 600, "b.test": 240})
			s.away, s.from = c.away, time.Duration(5+7*i)*time.Second
			s.till = s.from + 10*time.Second
			far := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(rtt / 2)
				s.ServeHTTP(w, r)
				time.Sleep(rtt / 2)
			})
			conf := Config{MaxWait: 10 * time.Minute, Upstreams: []Upstream{{Name: "llm", Targets: []Target{region(t, "a", "600/m", 0), region(t, "b", "240/m", 0)}}}}
			virtually(t, far, conf, func(_ *Proxy, client func() *http.Client) {
				var served, failed atomic.Int64
				var done sync.WaitGroup
				idle := make(chan *http.Client, all)
				for range all {
					if len(idle) == 0 {
						idle <- client()
					}
					by := <-idle
					done.Go(func() {
						r, err := http.NewRequest(c.method, "http://proxy/x", strings.NewReader("{}"))
						if err != nil {
							t.Error(err)
							return
						}
						resp, err := by.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
						if resp.StatusCode == 200 {
							served.Add(1)
						} else {
							failed.Add(1)
						}
						idle <- by
					})
					time.Sleep(ceiling)
				}
				time.Sleep(rtt)
				in := served.Load()
				done.Wait()
				late := s.back - s.till
				t.Logf("%v: %d of %d within the minute, %d failed, back %v late, %d refused", c, in, all, failed.Load(), late, s.refused)
				if in < all*99/100 || failed.Load() > 1 || late > 2*time.Second || s.refused > 0 {
					t.Errorf("%v: %d of %d within the minute, %d failed, back %v late, %d refused", c, in, all, failed.Load(), late, s.refused)
				}
			})
		})
	}
}

// A request goes to each target in the target's words: its path, its model, its key and fields.
func TestRequestsInTheWordsOfATarget(t *testing.T) {
	var got []string
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got = append(got, fmt.Sprint(r.Method, " ", r.URL, " ", string(b), " ", r.Header["Authorization"], r.Header["Api-Key"], r.Header["X-Team"], r.Header["X-Of"]))
	})
	base := func(path string) *url.URL { v := *u; v.Path = path; return &v }
	azure := Target{Name: "azure", To: base("/x"), Path: "/openai/deployments/{model}{rest}?api-version=2025-01-01", Models: map[string]string{"gpt-4o": "prod 4o"},
		Keys: []Key{{Name: "B", Secret: second}}, Header: []Field{{"Api-Key", "{key}"}, {"X-Of", "azure"}}}
	plain := Target{Name: "plain", To: base(""), Keys: []Key{{Name: "A", Secret: ours}}, After: Never}
	conf := func(targets ...Target) Config {
		return Config{Upstreams: []Upstream{{Name: "llm", Path: "/llm", Targets: targets, Header: []Field{{"Authorization", "Bearer {key}"}, {"X-Team", "blue"}}}}}
	}
	x := start(t, conf(azure, plain))
	chat := `{"messages":[],"model":"gpt-4o"}`
	x.do("POST", "/llm/v1/chat/completions?a=1", chat, "Authorization", "Bearer sdk-insists")
	x.do("POST", "/llm/v1/chat/completions", `{"model":"o1"}`)
	x.do("GET", "/llm/v1/models", "")
	y := start(t, conf(plain))
	y.do("POST", "/llm/v1/chat/completions?a=1", chat, "Authorization", "Bearer sdk-insists")
	want := []string{
		`POST /x/openai/deployments/prod%204o/chat/completions?a=1&api-version=2025-01-01 {"messages":[],"model":"prod 4o"} [] [` + second + `] [blue] [azure]`,
		`POST /x/openai/deployments/o1/chat/completions?api-version=2025-01-01 {"model":"o1"} [] [` + second + `] [blue] [azure]`,
		`GET /v1/models  [Bearer ` + ours + `] [] [blue] []`,
		`POST /v1/chat/completions?a=1 ` + chat + ` [Bearer ` + ours + `] [] [blue] []`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	z := start(t, conf(azure))
	if resp, text := z.do("POST", "/llm/v1/chat/completions", `{"messages":[]}`); resp.StatusCode != http.StatusBadRequest ||
		!strings.Contains(text, Kinds+"no-model") || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("without a model, where each target has names of models: %d, %s", resp.StatusCode, text)
	}
	log := x.log.String()
	if strings.Count(log, "target=azure") != 2 || strings.Count(log, "target=plain") != 1 || strings.Contains(log, ours) || strings.Contains(log, second) {
		t.Error(log)
	}
}

// Requests of a session go to one target, by each of the ways to name a session.
func TestSessionsOfPrograms(t *testing.T) {
	long := strings.Repeat("Be brief. ", 500)
	for by, c := range map[string]struct{ body, field string }{
		"prompt_cache_key": {`{"prompt_cache_key":"S","messages":[]}`, ""},
		"user":             {`{"user":"S","messages":[]}`, ""},
		AffinityByHeader:   {`{}`, "S"},
		AffinityByPrefix:   {`{"system":"S` + long + `","messages":[]}`, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			homes := map[string]map[string]bool{}
			var mu sync.Mutex
			server := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				session := string(b) + r.Header.Get("X-Session")
				mu.Lock()
				defer mu.Unlock()
				if homes[session] == nil {
					homes[session] = map[string]bool{}
				}
				homes[session][r.Host] = true
			})
			conf := Config{Upstreams: []Upstream{{Name: "llm", Targets: []Target{region(t, "a", "600/m", 0), region(t, "b", "600/m", 0)}, Affinity: Affinity{By: by}}}}
			if by == AffinityByHeader {
				conf.Upstreams[0].Affinity.Header = "X-Forwarded-User" // which no server gets
			}
			x := virtual(t, server, conf)
			used := map[string]bool{}
			for range 3 {
				for _, name := range []string{"one", "two", "three"} { // an odd number: in turn, each would change its target
					fields := []string{}
					if c.field != "" {
						fields = []string{"X-Session", name, "X-Forwarded-User", name}
					}
					if resp, text := x.do("POST", "/v1/chat/completions", strings.Replace(c.body, "S", name, 1), fields...); resp.StatusCode != 200 {
						t.Fatal(resp.StatusCode, text)
					}
				}
			}
			mu.Lock()
			for session, at := range homes {
				if len(at) != 1 {
					t.Errorf("by %s: %.40s went to %v", by, session, at)
				}
				for host := range at {
					used[host] = true
				}
			}
			mu.Unlock()
			if len(used) != 2 || len(homes) != 3 {
				t.Errorf("by %s: %d sessions at %v", by, len(homes), used)
			}
			x.stop()
		})
	}
}

// Limits of a target change while the proxy runs, and what was sent still counts. Another path makes it
// another target.
func TestTargetsChange(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	conf := func(limit, path string) Config {
		return Config{Live: true, MaxWait: -1, Upstreams: []Upstream{{Name: "llm", Targets: []Target{
			{Name: "a", To: u, Limits: limitsOf(limit), Path: path}, {Name: "b", To: u, Limits: limitsOf("1/h")}}}}}
	}
	x := start(t, conf("2/h", ""))
	ok := func(want int) {
		t.Helper()
		n := 0
		for range 8 {
			if resp, _ := x.do("GET", "/", ""); resp.StatusCode == 200 {
				n++
			}
		}
		if n != want {
			t.Errorf("%d went, want %d", n, want)
		}
	}
	ok(3)
	for _, c := range []struct {
		limit, path string
		want        int
	}{{"4/h", "", 2}, {"4/h", "/x{path}", 5}} {
		next := conf(c.limit, c.path)
		next.Listen, next.Admin = x.proxy.config.Listen, x.proxy.config.Admin
		if err := x.proxy.Apply(next); err != nil {
			t.Fatal(err)
		}
		ok(c.want)
	}
}

// The place of a request in the state file names its target, and older files have none.
func TestPlacesOfTargets(t *testing.T) {
	for _, p := range []place{
		{Owner: "llm", Partition: transport.Partition{Target: "a|b", Host: "h", Key: "k"}},
		{Owner: "llm", Partition: transport.Partition{Host: "h", Resource: "search"}},
		{Owner: "llm", Partition: transport.Partition{Host: "h", Route: "GET /"}},
	} {
		again, err := journal.ParsePlace(p.String())
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%v is read as %v: %v", p, again, err)
		}
	}
	a := transport.Partition{Target: "a", Host: "h", Key: "k"}
	if scope := (transport.Partition{Scope: provider.Key, Target: "b", Host: "h", Key: "k"}); a.In(scope) {
		t.Error("a request to one target counts at another")
	}
}
