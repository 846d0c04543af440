package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
)

// TestServiceIsJudged: a random schedule of several keys, routes and methods, under latency, with
// small limits. The judge agrees with every decision of every provider, and again from the log
// alone. It detects a false log.
func TestServiceIsJudged(t *testing.T) {
	for i, p := range service.All() {
		for n, preset := range p.Presets {
			if race.Enabled && n > 0 {
				break
			}
			t.Run(preset, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					config := service.Config{Provider: p.Name, Preset: preset, Before: latency.Uniform(0, 20*ms), After: latency.Uniform(0, 100*ms), Seed: uint64(i)}
					window := time.Hour // the shortest
					for _, l := range newServer(t, config).Limits() {
						small := provider.Policy{Name: l.Name, Limit: min(l.Limit, 3), Burst: min(l.Burst, 4)}
						if l.Window >= 24*time.Hour || l.Unit == provider.Tokens || l.Unit == provider.Input || l.Burst > 100 {
							small.Limit, small.Burst = min(l.Limit, 40), min(l.Burst, 30)
						}
						if l.Unit == provider.Weight && p.Name == "google" { // a change at YouTube costs 50, a list at Drive 100
							small.Limit = map[bool]int64{true: 400, false: 100}[l.Window >= 24*time.Hour]
						}
						config.Limits = append(config.Limits, small)
						if l.Window > 0 {
							window = min(window, l.Window)
						}
					}
					if !hasRate(t, p.Name) { // all that counts is the time of the answers
						window, config.Limits[0].Limit = 100*ms, 1
					}
					var log bytes.Buffer
					config.LogTo = &log
					s := newServer(t, config)
					var clients sync.WaitGroup
					for c := range 6 {
						clients.Go(func() {
							rng := rand.New(rand.NewPCG(uint64(i), uint64(c)))
							for range 60 {
								time.Sleep(time.Duration(rng.ExpFloat64() * float64([]time.Duration{0, window / 100, window}[rng.IntN(3)])))
								sends(s, []string{"", "a", "b"}[rng.IntN(3)], []string{
									"GET /v2/x/manifests/y", "POST /order", "GET /search/x", "GET /depth?limit=5000", `POST /graphql.json {"query":"mutation"}`,
									`POST /v1/models/m:x {"model":"m","max_tokens":3}`, `POST /api/v5/trade/order {"instId":"A-B"}`, "POST /0/private/Ledgers",
									"GET /drive/v3/files",
								}[rng.IntN(9)])
							}
						})
					}
					clients.Wait()
					r := s.Report()
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					if n := r.Accepted + r.Limited + r.TooLarge + r.AfterBan + r.Unauthorized; n != 360 || r.Accepted < 3 || r.Limited < 1 || r.Accepted > 358 || r.Wrong != 0 {
						t.Errorf("%+v", r)
					}
					for _, l := range r.Limits {
						if l.WorstPercent > 100 {
							t.Errorf("%+v", l)
						}
					}
					text := log.String()
					again, err := service.Judge(config, strings.NewReader(text))
					r.Dropped, r.Peak, r.Elapsed = 0, 0, 0
					if err != nil || !reflect.DeepEqual(again, r) {
						t.Errorf("by the log %v\n%+v, by the server\n%+v", err, again, r)
					}
					// The same log with verdicts that break the rule.
					for text, lie := range map[string]string{
						strings.Replace(text, `"verdict":"limited"`, `"verdict":"accepted"`, 1): "one that was refused passed",
						flipped(text, "accepted", "limited"):                                    "one that passed was refused",
					} {
						if again, err := service.Judge(config, strings.NewReader(text)); err != nil || again.Wrong == 0 {
							t.Errorf("%s, and nobody notices: %v", lie, err)
						}
					}
				})
			})
		}
	}
}

// flipped changes the verdict of the first request with a cost: there is certainly room for it.
func flipped(text, from, to string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if strings.Contains(l, `"verdict":"`+from+`"`) && strings.Contains(l, `"counts":[`) {
			lines[i] = strings.Replace(l, `"verdict":"`+from+`"`, `"verdict":"`+to+`"`, 1)
			break
		}
	}
	return strings.Join(lines, "")
}

// TestServiceBans: the banned client or address, the length of the ban, and package provider's
// reading.
func TestServiceBans(t *testing.T) {
	type step struct {
		at      time.Duration
		key     string
		request string
		status  int
		refusal provider.Refusal
		wait    time.Duration // as read
	}
	many := func(n int, s step) (all []step) {
		for range n {
			all = append(all, s)
		}
		return all
	}
	join := func(all ...[]step) (out []step) {
		for _, s := range all {
			out = append(out, s...)
		}
		return out
	}
	heavy := "GET /api/v3/depth?limit=5000" // 250 of 6000
	for _, c := range []struct {
		provider string
		limits   []provider.Policy
		steps    []step
		bans     int
	}{
		// From noon, when an interval of the clock begins. Ten refusals of an address, whatever its
		// keys, are a ban of two minutes. The next ten are a ban of four. A request that passes in
		// between resets the count.
		{"binance", nil, join(
			many(24, step{0, "a", heavy, 200, provider.None, 0}),
			many(9, step{sec, "a", heavy, 429, provider.RateLimited, 59 * sec}),
			many(24, step{60 * sec, "b", heavy, 200, provider.None, 0}),
			many(9, step{61 * sec, "b", heavy, 429, provider.RateLimited, 59 * sec}),
			many(1, step{62 * sec, "a", heavy, 429, provider.RateLimited, 58 * sec}),
			many(2, step{62 * sec, "b", "GET /api/v3/ping", 418, provider.Banned, 120 * sec}),
			many(1, step{182*sec - ms, "b", "GET /api/v3/ping", 418, provider.Banned, sec}),
			many(24, step{182 * sec, "b", heavy, 200, provider.None, 0}),
			many(10, step{182 * sec, "b", heavy, 429, provider.RateLimited, 58 * sec}),
			many(1, step{183 * sec, "b", heavy, 418, provider.Banned, 239 * sec}),
			many(1, step{422 * sec, "b", heavy, 200, provider.None, 0}),
		), 2},
		// The limit of an address answers 403 at once, and for ten minutes. The limit of an
		// endpoint answers 200.
		{"bybit", []provider.Policy{{Name: "requests", Limit: 60}}, join(
			many(50, step{0, "a", "GET /v5/one", 200, provider.None, 0}),
			many(1, step{0, "a", "GET /v5/one", 200, provider.RateLimited, sec + ms}),
			many(10, step{0, "b", "GET /v5/two", 200, provider.None, 0}),
			many(1, step{0, "c", "GET /v5/three", 403, provider.Banned, 10 * time.Minute}),
			many(1, step{10*time.Minute - ms, "c", "GET /v5/three", 403, provider.Banned, 10 * time.Minute}), // the answer does not state the length
			many(1, step{10 * time.Minute, "c", "GET /v5/three", 200, provider.None, 0}),
		), 1},
		// Four rejections after the 3 requests that pass log the session out, and that session
		// alone.
		{"cme", []provider.Policy{{Name: "reject", Limit: 3}, {Name: "logout", Limit: 7}}, join(
			many(3, step{0, "a", "POST /", 200, provider.None, 0}),
			many(3, step{sec, "a", "POST /", 429, provider.RateLimited, 0}),
			many(1, step{sec, "a", "POST /", 403, provider.None, 0}),
			many(1, step{sec, "b", "POST /", 200, provider.None, 0}),
			many(1, step{11*sec - ms, "a", "POST /", 403, provider.None, 0}),
			many(1, step{11 * sec, "a", "POST /", 200, provider.None, 0}),
		), 1},
	} {
		t.Run(c.provider, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour)))
				start := time.Now()
				s := newServer(t, service.Config{Provider: c.provider, Limits: c.limits})
				d, ok := provider.Lookup(c.provider)
				if !ok {
					d, _ = provider.Lookup("generic")
				}
				for i, step := range c.steps {
					at(start, step.at)
					r := sends(s, step.key, step.request)
					o := d.Read(time.Now(), r)
					var wait time.Duration
					if back, ok := o.ComeBack(time.Now()); ok {
						wait = time.Until(back)
					}
					if step.refusal == provider.None {
						wait = 0
					}
					if r.Status != step.status || o.Refusal != step.refusal || wait != step.wait {
						t.Fatalf("step %d, at %v: %d, %q, wait %v, want %d, %q, %v: %v %s", i, step.at, r.Status, o.Refusal, wait, step.status, step.refusal, step.wait, r.Header, r.Body)
					}
				}
				if r := s.Report(); r.Bans != c.bans || r.Wrong != 0 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// TestServiceAtOnce: too many requests at once, and package provider's reading of the refusal.
func TestServiceAtOnce(t *testing.T) {
	for _, c := range []struct {
		provider string
		limits   []provider.Policy
		status   int
		refusal  provider.Refusal
		by       []string
	}{
		{"github", nil, 403, provider.RateLimited, []string{"secondary"}},
		{"okta", nil, 429, provider.TooMany, nil},
		{"twilio", nil, 429, provider.TooMany, nil},
		{"deepseek", []provider.Policy{{Name: "concurrent", Limit: 20}}, 429, provider.TooMany, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, service.Config{Provider: c.provider, Limits: c.limits, After: latency.Constant(sec)})
			most := 0
			for _, l := range s.Limits() {
				if l.Rule == provider.Concurrency {
					most = int(l.Limit)
				}
			}
			d, _ := provider.Lookup(c.provider)
			refused := 0
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range most + 5 {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Microsecond)
					r := sends(s, "k", "GET /user")
					o := d.Read(time.Now(), r)
					want := c.refusal
					if i < most {
						want = provider.None
					}
					if o.Refusal != want || want != provider.None && (r.Status != c.status || !reflect.DeepEqual(o.RefusedBy, c.by)) {
						t.Errorf("%s: request %d: %d, %+v, want %q", c.provider, i, r.Status, o, want)
					}
					mu.Lock()
					defer mu.Unlock()
					if o.Refusal != provider.None {
						refused++
					}
				})
			}
			all.Wait()
			if r := sends(s, "k", "GET /user"); r.Status != 200 {
				t.Errorf("%s: when all are answered: %d", c.provider, r.Status)
			}
			if r := s.Report(); refused != 5 || r.Limited != 5 || r.Wrong != 0 {
				t.Errorf("%s: %d, %+v", c.provider, refused, r)
			}
		})
	}
}

// TestServiceTooLarge: a request that costs more than a limit never passes. The answer states that
// where the provider does.
func TestServiceTooLarge(t *testing.T) {
	for _, c := range []struct{ provider, request string }{
		{"groq", `POST /openai/v1/chat/completions {"model":"m","max_tokens":50000}`},
		{"shopify", `POST /admin/api/2025-01/graphql.json {"query":"{products(first:2000){nodes{id}}}"}`},
	} {
		s := newServer(t, service.Config{Provider: c.provider})
		d, _ := provider.Lookup(c.provider)
		r := sends(s, "k", c.request)
		o := d.Read(time.Now(), r)
		if _, ok := o.ComeBack(time.Now()); o.Refusal != provider.TooLarge || ok {
			t.Errorf("%s: %d %s: %+v", c.provider, r.Status, r.Body, o)
		}
		if got := s.Report(); got.TooLarge != 1 || got.Wrong != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// TestGeminiDay: a daily quota refuses until midnight Pacific time. The refusal nevertheless asks
// for a wait of less than a minute.
func TestGeminiDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(30 * time.Hour))) // two hours before midnight
		start := time.Now()
		s := newServer(t, service.Config{Provider: "gemini", Limits: []provider.Policy{{Name: "GenerateRequestsPerDayPerProjectPerModel-FreeTier", Limit: 2}}})
		d, _ := provider.Lookup("gemini")
		for i, step := range []struct {
			at      time.Duration
			refusal provider.Refusal
			wait    time.Duration
		}{
			{0, provider.None, 0}, {0, provider.None, 0}, {0, provider.QuotaExhausted, 2 * time.Hour}, {2*time.Hour - ms, provider.QuotaExhausted, ms}, {2 * time.Hour, provider.None, 0},
		} {
			at(start, step.at)
			r := sends(s, "k", "POST /v1beta/models/gemini-2.5-flash:generateContent {}")
			o := d.Read(time.Now(), r)
			if back, _ := o.ComeBack(time.Now()); o.Refusal != step.refusal || time.Until(back) != step.wait {
				t.Errorf("step %d: %s: %+v", i, r.Body, o)
			}
		}
	})
}

// TestServiceShares: which requests share a limit. Two requests each; the limit is one.
func TestServiceShares(t *testing.T) {
	for _, c := range []struct {
		provider, limit          string
		key1, one, key2, another string
		shared                   bool
	}{
		{"heroku", "requests", "a", "GET /x", "a", "POST /y", true},
		{"heroku", "requests", "a", "GET /x", "b", "GET /x", false},
		{"heroku", "requests", "", "GET /x", "", "GET /x", true},
		{"binance", "weight", "a", "GET /x", "b", "GET /y", true}, // of the address
		{"x", "15 minutes", "a", "GET /x", "a", "GET /y", false},
		{"x", "15 minutes", "a", "GET /x", "a", "POST /x", false},
		{"slack", "requests", "a", "GET /api/x", "a", "POST /api/x", true}, // of the method's name
		{"slack", "requests", "a", "GET /api/x", "a", "GET /api/y", false},
		{"okx", "endpoint", "a", "GET /p?instId=A", "a", "GET /p?instId=B", false},
		{"okx", "endpoint", "a", `POST /p {"instId":"A"}`, "a", `POST /p {"instId": "A"}`, true},
		{"gitlab", "requests", "a", "GET /x", "a", "POST /y", true},
		{"gitlab", "600/min", "a", "GET /api/v4/projects/1/jobs", "a", "GET /api/v4/projects/2/jobs", true},
		{"gitlab", "600/min", "a", "GET /api/v4/projects/1/jobs", "a", "GET /api/v4/groups/2/projects", false},
		{"okx", "20/2s", "a", "GET /api/v5/market/ticker?instId=A", "a", "GET /api/v5/market/ticker?instId=B", true},
		{"okx", "10/2s", "a", "GET /api/v5/public/funding-rate?instId=A", "a", "GET /api/v5/public/funding-rate?instId=B", false},
		{"bybit", "50/s", "a", "GET /v5/order/realtime", "a", "GET /v5/order/history", false},
		{"kraken", "public", "a", "GET /0/public/Trades?pair=A", "a", "GET /0/public/Trades?pair=B", false},
		{"kraken", "public", "a", "GET /0/public/Time", "a", "GET /0/public/Ticker?pair=B", true},
		{"github", "requests", "a", "GET /user", "a", "GET /search/issues", false},
		{"gitlab", "600/min", "a", "GET /x", "a", "GET /x", false},
		{"twitch", "requests", "a", "GET /x", "b", "GET /x", false},
		{"hubspot", "search", "a", "POST /crm/v3/objects/contacts/search", "a", "POST /crm/v3/objects/deals/search", true},
		{"hubspot", "search", "a", "POST /crm/v3/objects/contacts/search", "a", "POST /crm/v3/objects/contacts", false},
		{"zendesk", "tickets-index", "a", "GET /api/v2/tickets", "a", "GET /api/v2/tickets.json", true},
		{"zendesk", "tickets-index", "a", "GET /api/v2/tickets", "a", "POST /api/v2/tickets", false},
		{"zendesk", "incremental export", "a", "GET /api/v2/incremental/users", "a", "GET /api/v2/incremental/tickets.json", true},
		{"mistral", "requests", "a", `POST /p {"model":"m"}`, "a", `POST /p {"model":"n"}`, false},
		{"docker-hub", "requests", "a", "GET /v2/x/manifests/1", "b", "GET /v2/y/manifests/2", true}, // of the address
		{"docker-hub", "requests", "a", "GET /v2/x/manifests/1", "a", "HEAD /v2/x/manifests/1", false},
		{"docker-hub", "requests", "a", "GET /v2/x/manifests/1", "a", "GET /v2/x/blobs/1", false},
		{"strava", "reads, day", "a", "GET /x", "a", "GET /y", true},
		{"strava", "reads, day", "a", "GET /x", "a", "POST /y", false},
		{"spotify", "day", "a", "GET /x", "a", "GET /y", true},
		{"riot", "method", "a", "GET /x", "a", "GET /y", false},
		{"riot", "2 minutes", "a", "GET /x", "a", "GET /y", true},
		{"etherscan", "requests", "a", "GET /x", "a", "GET /y", true},
		{"etherscan", "address", "", "GET /x", "", "GET /y", true},
		{"etherscan", "address", "a", "GET /x", "", "GET /x", false},
		{"groq", "requests per minute", "a", `POST /p {"model":"m"}`, "a", `POST /q {"model":"m"}`, true},
		{"groq", "requests per minute", "a", `POST /p {"model":"m"}`, "a", `POST /p {"model":"n"}`, false},
		{"gemini", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "a", `POST /v1/models/m:x {}`, "a", `POST /v1/models/n:x {}`, false},
	} {
		s := newServer(t, service.Config{Provider: c.provider, Limits: []provider.Policy{{Name: c.limit, Limit: 1, Window: time.Hour}}})
		sends(s, c.key1, c.one)
		sends(s, c.key2, c.another)
		if r := s.Report(); r.Accepted+r.Limited != 2 || (r.Limited == 1) != c.shared {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// TestDockerHubLooks: a HEAD request gets the amount left, refused or not, and uses none of it.
func TestDockerHubLooks(t *testing.T) {
	s := newServer(t, service.Config{Provider: "docker-hub", Limits: []provider.Policy{{Name: "requests", Limit: 2}}})
	for i, step := range []struct {
		method, left string
		status       int
	}{{"HEAD", "2", 200}, {"GET", "1", 200}, {"HEAD", "1", 200}, {"GET", "0", 200}, {"GET", "0", 429}, {"HEAD", "0", 200}} {
		r := sends(s, "", step.method+" /v2/library/alpine/manifests/latest")
		if left := r.Header.Get("RateLimit-Remaining"); r.Status != step.status || left != step.left+";w=21600" || r.Header.Get("Docker-RateLimit-Source") != "192.0.2.1" {
			t.Errorf("step %d: %d, %v", i, r.Status, r.Header)
		}
	}
	if r := s.Report(); r.Accepted != 5 || r.Limited != 1 || r.Wrong != 0 || r.Limits[0].Cost != 2 {
		t.Errorf("%+v", r)
	}
}

// TestStravaCountsRefusals: a request refused by the quarter of an hour still counts in the day.
func TestStravaCountsRefusals(t *testing.T) {
	s := newServer(t, service.Config{Provider: "strava", Limits: []provider.Policy{{Name: "15 minutes", Limit: 3}, {Name: "day", Limit: 8}}})
	for i, used := range []string{"1,1", "2,2", "3,3", "3,4", "3,5"} {
		if r := sends(s, "k", "POST /api/v3/activities"); r.Header.Get("X-RateLimit-Usage") != used || (r.Status == 200) != (i < 3) {
			t.Errorf("request %d: %d, %v, want %s", i, r.Status, r.Header, used)
		}
	}
	if r := s.Report(); r.Wrong != 0 {
		t.Errorf("%+v", r)
	}
}

// TestServiceScale: a clock ten times as fast. Latencies and windows follow it, and so do times in
// answers.
func TestServiceScale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		s := newServer(t, service.Config{Provider: "x-ratelimit-seconds", Scale: 10, Before: latency.Constant(sec), Limits: []provider.Policy{{Name: "requests", Limit: 1}}})
		for i, want := range []int{200, 429} {
			if r := sends(s, "k", "GET /"); r.Status != want {
				t.Fatalf("request %d: %d", i, r.Status)
			}
		}
		if took := time.Since(start); took != 200*ms {
			t.Errorf("took %v", took)
		}
		at(start, 6*sec)
		r := sends(s, "k", "GET /")
		if date, err := http.ParseTime(r.Header.Get("Date")); err != nil || date.Sub(start) != 61*sec || r.Status != 200 {
			t.Errorf("after a minute by its clock: %d, %v", r.Status, r.Header)
		}
		if r := s.Report(); r.Elapsed != 61*sec {
			t.Errorf("%v", r.Elapsed)
		}
	})
}

func TestServiceOverTCP(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	var log bytes.Buffer
	s := newServer(t, service.Config{Provider: "github", LogTo: &log, Limits: []provider.Policy{{Name: "requests", Limit: 1}}})
	if err := s.Start(""); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, want := range []int{200, 403} {
		q, _ := http.NewRequest("GET", s.URL()+"/user?x=1", nil)
		q.Header.Set("Authorization", "token hunter2")
		r, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != want || !json.Valid(body) || r.Header.Get("X-RateLimit-Limit") != "1" || len(r.Header.Values("Date")) != 1 {
			t.Errorf("%d, want %d: %v %s", r.StatusCode, want, r.Header, body)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, `"client":"key 1"`) {
		t.Error(text)
	}
	if r := sends(s, "k", "GET /"); r.Status != 503 {
		t.Errorf("%d after Close", r.Status)
	}
}

func TestServiceRefusesBadConfig(t *testing.T) {
	for want, c := range map[string]service.Config{
		`no Provider "slak"`:                            {Provider: "slak"},
		`no Provider ""`:                                {},
		`Preset "github": slack has slack:tier3, `:      {Provider: "slack", Preset: "github"},
		`no "orders": heroku has "requests"`:            {Provider: "heroku", Limits: []provider.Policy{{Name: "orders"}}},
		`"requests": limit -1 or burst 0 is not from 1`: {Provider: "heroku", Limits: []provider.Policy{{Name: "requests", Limit: -1}}},
		`"requests": rule: Window -1ns`:                 {Provider: "heroku", Limits: []provider.Policy{{Name: "requests", Window: -1}}},
		`"requests": no rule "often"`:                   {Provider: "heroku", Limits: []provider.Policy{{Name: "requests", Rule: "often"}}},
		"Scale 1001 is not above 0 and at most 1000":    {Provider: "heroku", Scale: 1001},
		"Scale -1 is not":                               {Provider: "heroku", Scale: -1},
	} {
		if _, err := service.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
	for want, log := range map[string]string{
		"line 1 of the log: unexpected end":   "{",
		`line 2 of the log: event "x" is no`:  `{"event":"request","verdict":"banned"}` + "\n" + `{"event":"x"}`,
		`verdict "x" is no line of a Service`: `{"event":"request","verdict":"x"}`,
		`no limit "x"`:                        `{"event":"request","verdict":"accepted","counts":[{"policy":"x","cost":1}]}`,
		"cost -1 is no line":                  `{"event":"request","verdict":"accepted","counts":[{"policy":"requests","cost":-1}]}`,
	} {
		if _, err := service.Judge(service.Config{Provider: "heroku"}, strings.NewReader(log)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", log, err, want)
		}
	}
}

// FuzzService: for any request, every provider answers once, with a status, and the judge agrees.
func FuzzService(f *testing.F) {
	f.Add("GET", "/", "Authorization", "Bearer x", []byte(nil))
	f.Add("POST", "/api/v5/trade/order", "Content-Type", "application/json", []byte(`{"instId":"A","model":"m","max_tokens":-5}`))
	f.Add("\x00", "//..//%zz", "X-Api-Key", strings.Repeat("k", 5000), []byte(`{"max_tokens":1e300}`))
	f.Add("", "", "", "", []byte(`{"query":"{a(first:99999){b}}","model":"\u0000`))
	f.Fuzz(func(t *testing.T, method, path, field, value string, body []byte) {
		for _, p := range service.All() {
			s := newServer(t, service.Config{Provider: p.Name})
			for _, u := range []*url.URL{{Path: path}, {Path: "/graphql.json", RawQuery: path}, nil} {
				r := &http.Request{Method: method, URL: u, Header: http.Header{field: {value}}, RemoteAddr: value}
				if len(body)%3 > 0 {
					r.Body = io.NopCloser(bytes.NewReader(body))
				}
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code < 200 || w.Body.Len() == 0 || strings.HasPrefix(w.Header().Get("Content-Type"), "application/") && !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s: %d %v %q", p.Name, w.Code, w.Header(), w.Body)
				}
			}
			if r := s.Report(); r.Wrong != 0 || r.Accepted+r.Limited+r.TooLarge+r.AfterBan+r.Unauthorized != 3 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestServiceStrangers: of ten thousands of keys the first have limits of their own. All others
// share one, so memory is bounded.
func TestServiceStrangers(t *testing.T) {
	s := newServer(t, service.Config{Provider: "okta", Limits: []provider.Policy{{Name: "requests", Limit: 1000, Window: time.Hour}}})
	for i := range 21_500 {
		sends(s, fmt.Sprint(i), "GET /"+strings.Repeat("x", i%500))
	}
	r := s.Report()
	if len(r.Limits) > 20_000+2 || r.Accepted != 10_000+1000 || r.Wrong != 0 {
		t.Errorf("%d limits, %d accepted, %v", len(r.Limits), r.Accepted, r.FirstWrong)
	}
}
