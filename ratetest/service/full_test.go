package service_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// fullRow is a client at the full rate of a provider's published limits: its key, its requests, and
// the time that it sends.
type fullRow struct {
	provider, preset, request string
	long                      time.Duration
}

// midnight is the beginning of the provider's day, after midnight UTC.
func (c fullRow) midnight() time.Duration {
	return map[string]time.Duration{"gemini": 8 * time.Hour, "google": 8 * time.Hour}[c.provider]
}

func (c fullRow) String() string { return fmt.Sprintf("%s %s %.40s", c.provider, c.preset, c.request) }

var fullRate = []fullRow{
	{"ietf", "", "GET /", 5 * time.Minute},
	{"cloudflare", "", "GET /", 15 * time.Minute},
	{"generic", "", "GET /", 5 * time.Minute},
	{"x-ratelimit-epoch", "", "GET /", 5 * time.Minute},
	{"x-ratelimit-seconds", "", "GET /", 5 * time.Minute},
	{"heroku", "", "GET /apps", time.Hour},
	{"github", "", "GET /user", time.Hour},
	{"github", "", "GET /search/code", 5 * time.Minute},
	{"shopify", "", "GET /admin/api/2025-01/products.json", 10 * time.Minute},
	{"shopify", "", `POST /admin/api/2025-01/graphql.json {"query":"{products(first:98){nodes{id}}}"}`, 10 * time.Minute},
	{"stripe", "", "POST /v1/charges", 20 * time.Second},
	{"discord", "", "POST /api/v10/channels/1/messages", 2 * time.Minute},
	{"x", "", "GET /2/tweets", time.Hour},
	{"slack", "", "POST /api/conversations.list", 5 * time.Minute},
	{"slack", "slack:tier1", "POST /api/conversations.list", 30 * time.Minute},
	{"notion", "", "GET /v1/users", 10 * time.Minute},
	{"reddit", "", "GET /api/v1/me", 30 * time.Minute},
	{"okta", "", "GET /api/v1/users", 5 * time.Minute},
	{"atlassian", "", "GET /rest/api/3/issue/1", 20 * time.Second},
	{"groq", "", `POST /openai/v1/chat/completions {"model":"m","max_tokens":9}`, 20 * time.Minute},
	{"groq", "", `POST /openai/v1/chat/completions {"model":"m","max_tokens":2986}`, 10 * time.Minute},
	{"azure-openai", "", `POST /openai/deployments/d/chat/completions {"max_tokens":9}`, 5 * time.Minute},
	{"azure-openai", "", `POST /openai/deployments/d/chat/completions {"max_tokens":2994}`, 5 * time.Minute},
	{"gemini", "", `POST /v1beta/models/gemini-2.5-flash:generateContent {}`, 20 * time.Minute},
	{"binance", "", "GET /api/v3/depth?limit=5000", 5 * time.Minute},
	{"binance-spot", "", "POST /api/v3/order", 5 * time.Minute},
	{"binance-futures", "", "GET /fapi/v1/depth?limit=500", 5 * time.Minute},
	{"bybit", "", "GET /v5/order/realtime", 20 * time.Second},
	{"kraken", "", "POST /0/private/Balance", 20 * time.Minute},
	{"kraken", "kraken:pro", "POST /0/private/Ledgers", 20 * time.Minute},
	{"coinbase", "", "GET /orders", 2 * time.Minute},
	{"okx", "", "GET /api/v5/account/balance", 2 * time.Minute},
	{"cme", "", "POST /", 12 * time.Second},
	{"etherscan", "", "GET /api?module=account", 2 * time.Minute},
	{"gitlab", "", "GET /api/v4/user", 3 * time.Minute},
	{"gitlab", "", "GET /api/v4/projects/1/jobs", 5 * time.Minute},
	{"twitch", "", "GET /helix/users", 5 * time.Minute},
	{"hubspot", "", "GET /crm/v3/objects/contacts", 2 * time.Minute},
	{"hubspot", "hubspot:professional", "POST /crm/v3/objects/contacts/search", 2 * time.Minute},
	{"zendesk", "", "GET /api/v2/users", 5 * time.Minute},
	{"zendesk", "zendesk:enterprise", "GET /api/v2/tickets.json", 5 * time.Minute},
	{"mistral", "", `POST /v1/chat/completions {"model":"m","max_tokens":9}`, 10 * time.Minute},
	{"mistral", "", `POST /v1/chat/completions {"model":"m","max_tokens":1988}`, 10 * time.Minute},
	{"docker-hub", "", "GET /v2/library/alpine/manifests/latest", 18 * time.Hour},
	{"docker-hub", "docker-hub:personal", "GET /v2/library/alpine/manifests/latest", 18 * time.Hour},
	{"strava", "", "POST /api/v3/activities", 45 * time.Minute},
	{"strava", "", "GET /api/v3/athlete", 45 * time.Minute},
	{"spotify", "", "GET /v1/me", 10 * time.Minute},
	{"riot", "", "GET /lol/status/v4/platform-data", 20 * time.Minute},
	{"alpaca", "", "GET /v2/orders", 3 * time.Minute},
	{"arxiv", "", "GET /api/query", time.Minute},
	{"cohere", "", "POST /v2/chat", 5 * time.Minute},
	{"cohere", "cohere:production", "POST /v2/chat", 3 * time.Minute},
	{"crossref", "", "GET /works/1", time.Minute},
	{"deribit", "", "GET /api/v2/public/get_order_book", time.Minute},
	{"fastly", "", "POST /service/1/purge_all", 3 * time.Hour},
	{"huggingface", "", "GET /api/models", 15 * time.Minute},
	{"linear", "", "POST /graphql {}", time.Hour},
	{"microsoft-graph", "", "GET /v1.0/me/messages", 10 * time.Minute},
	{"openrouter", "", "POST /api/v1/chat/completions {}", 10 * time.Minute},
	{"perplexity", "", "POST /chat/completions {}", time.Minute},
	{"replicate", "", "POST /v1/predictions", 3 * time.Minute},
	{"sec-edgar", "", "GET /submissions/x.json", 20 * time.Second},
	{"trello", "", "GET /1/boards/A", time.Minute},
	{"monday", "", `POST /v2 {"query":"{me{id}}"}`, 30 * time.Hour},
	{"google", "google:drive", "GET /drive/v3/files", 2 * time.Minute},
	{"google", "google:drive-queries", "GET /drive/v3/files", 2 * time.Minute},
	{"google", "google:youtube", "GET /youtube/v3/search", 30 * time.Hour},
}

// defaultPreset has the default sets that are not named after their provider alone.
var defaultPreset = map[string]string{
	"slack": "slack:tier3", "cohere": "cohere:trial", "crossref": "crossref:public", "huggingface": "huggingface:free",
	"monday":          "monday:standard",
	"microsoft-graph": "microsoft-graph:outlook", "openrouter": "openrouter:free", "perplexity": "perplexity:tier0",
}

// limiterOf returns a client's limiter for a published limit. If the way of counting is not
// published, any window of its length has at most the limit. That keeps every kind but a rule of
// its own.
func limiterOf(t *testing.T, p provider.Policy, base time.Time, midnight time.Duration) limit.Limiter {
	t.Helper()
	var l limit.Limiter
	var err error
	switch unit, _ := classify.UnitOf(p.Unit); p.Rule {
	case provider.Bucket:
		l, err = limit.NewBucket(limit.BucketConfig{Limit: p.Limit, Window: p.Window, Burst: p.Burst, Unit: unit})
	case provider.Calendar:
		l, err = limit.NewCalendar(limit.CalendarConfig{Limit: p.Limit, Window: p.Window, Phase: mono.Of(base, time.Unix(0, 0).Add(midnight)), Unit: unit})
	case provider.Anchored:
		l, err = limit.NewAnchored(limit.AnchoredConfig{Limit: p.Limit, Window: p.Window, Unit: unit})
	case provider.Concurrency:
		l, err = limit.NewConcurrency(limit.ConcurrencyConfig{Limit: p.Limit})
	default:
		l, err = limit.NewRolling(limit.RollingConfig{Limit: p.Limit, Window: p.Window, Unit: unit})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// path is a way to a server without a socket. It sees everything that arrives at the client.
type path struct {
	server *service.Server
	silent bool // no field of an answer's header arrives

	mu       sync.Mutex
	statuses map[int]int
	sent     int
	last     time.Time
	gap      time.Duration // the longest between two requests
}

// RoundTrip implements http.RoundTripper.
func (p *path) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	now := time.Now()
	if p.sent++; p.sent > 1 {
		p.gap = max(p.gap, now.Sub(p.last))
	}
	p.last = now
	p.mu.Unlock()
	resp, err := ratetest.InMemory(p.server).RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if p.silent {
		resp.Header = http.Header{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statuses[resp.StatusCode]++
	return resp, nil
}

// client is a Transport with the published limits in which a request counts.
type client struct {
	*path
	transport *transport.Transport
	possible  map[string]float64 // requests, by each limit
	windows   []time.Duration    // of the limits in which the request counts
	takes     []int              // how many requests each of them takes
	fills     int                // number of requests that reach the first limit
	window    time.Duration      // the window of the first limit
}

func (c *fullRow) client(t *testing.T, dialect provider.Dialect, silent bool) *client {
	t.Helper()
	// The cost of the request, from another server.
	var log bytes.Buffer
	sends(newServer(t, service.Config{Provider: c.provider, Preset: c.preset, LogTo: &log}), "k", c.request)
	var line service.Line
	if err := json.NewDecoder(&log).Decode(&line); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour))) // noon, when limits by the clock begin

	config := service.Config{Provider: c.provider, Preset: c.preset, Before: latency.Constant(time.Millisecond), After: latency.Constant(time.Millisecond)}
	s := newServer(t, config)
	published, _ := provider.LookupPreset(cmp.Or(c.preset, defaultPreset[c.provider], c.provider))
	start := time.Now()
	x := &client{path: &path{server: s, silent: silent, statuses: map[int]int{}}, possible: map[string]float64{}}
	var cost limit.Cost
	counted := map[provider.Scope][]provider.Policy{}
	for _, p := range s.Limits() {
		i := slices.IndexFunc(line.Counts, func(n service.Count) bool { return n.Policy == p.Name })
		if i < 0 {
			continue
		}
		n := line.Counts[i].Cost
		for _, q := range published.Policies {
			if q.Name == p.Name {
				p.Rule = q.Rule // as far as it is published
			}
		}
		counted[p.Scope] = append(counted[p.Scope], p)
		unit, _ := classify.UnitOf(p.Unit)
		cost[unit] = n
		if p.Rule == provider.Concurrency {
			continue
		}
		x.windows, x.takes = append(x.windows, p.Window), append(x.takes, int(max(p.Limit, p.Burst)/n))
		can := float64(p.Limit) * c.long.Seconds() / p.Window.Seconds()
		if p.Rule == provider.Bucket {
			can += float64(cmp.Or(p.Burst, p.Limit))
		} else {
			can = max(can, float64(p.Limit))
		}
		if p.Rule == provider.Calendar { // a day begins at noon here, and the last day of the run does not end in it
			since := start.Add(-c.midnight()).Sub(time.Unix(0, 0)) % p.Window
			can = float64(p.Limit) * math.Ceil(float64(since+c.long)/float64(p.Window))
		}
		x.possible[p.Name] = can / float64(n)
		if fills := int(max(p.Limit, p.Burst) / n); x.fills == 0 || fills < x.fills {
			x.fills, x.window = fills, p.Window
		}
	}
	resource := ""
	if counted[provider.Resource] != nil { // read as another provider, it counts there all the same
		method, target, _ := strings.Cut(c.request, " ")
		path, _, _ := strings.Cut(target, " ")
		r, err := http.NewRequest(method, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, resource = provider.ChargesOf(c.provider).Of(r)
	}
	var err error
	x.transport, err = transport.New(transport.Config{
		Partition: func(r *http.Request) transport.Partition {
			p := transport.PartitionOf(r)
			p.Resource = resource
			return p
		},
		Base: x.path, Provider: dialect, Attempts: 1, MaxRetryAfter: 90 * 24 * time.Hour,
		Cost: func(*http.Request, limit.Cost) limit.Cost { return cost },
		Limit: func(p transport.Partition) limit.Limiter {
			var all []limit.Limiter
			for _, policy := range counted[p.Scope] {
				all = append(all, limiterOf(t, policy, start, c.midnight()))
			}
			if all == nil {
				return nil
			}
			return limit.NewAll(all...)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// send runs 40 goroutines that send a request without rest. They do so for the time long, or most
// times if most is not zero.
func (x *client) send(t *testing.T, request string, long time.Duration, most int) {
	ctx, cancel := context.WithCancel(t.Context()) // the client must not see the end in advance and give up early
	defer cancel()
	defer time.AfterFunc(long, cancel).Stop()
	method, rest, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(rest, " ")
	var workers sync.WaitGroup
	for range 40 {
		workers.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, method, "http://fake.test"+path, strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer k")
				resp, err := x.transport.RoundTrip(r)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%s: %v", request, err)
					}
					return
				}
				resp.Body.Close()
				x.mu.Lock()
				enough := most > 0 && x.sent >= most
				x.mu.Unlock()
				if enough {
					cancel()
				}
			}
		})
	}
	workers.Wait()
}

// hasRate reports whether a provider has limits besides those of requests at once. TestServiceAtOnce has the others.
func hasRate(t *testing.T, name string) bool {
	all := newServer(t, service.Config{Provider: name}).Limits()
	return slices.ContainsFunc(all, func(p provider.Policy) bool { return p.Rule != provider.Concurrency })
}

// silences says whether the answers to row i have their fields, in each run. Without them a run tries the
// limiter against the server's rule alone, as that with them does too: one row in four does both.
func silences(i int) []bool {
	return need.Fewer([]bool{false, true}[:1+(i%4)/3], []bool{false, true})
}

// TestServiceAtFullRate: a client with the published limits that never rests is not refused. It
// gets 98 % of the server's limit in that time, with or without header fields. A run is three
// windows of all limits but hourly ones; PACELINE_LONG=1 adds those.
func TestServiceAtFullRate(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range fullRate {
		covered[c.provider] = true
	}
	for _, p := range service.All() {
		if hasRate(t, p.Name) && !covered[p.Name] {
			t.Errorf("%s has no client", p.Name)
		}
	}
	for i, c := range fullRate {
		if need.Long() {
			c.long *= 3 // of hours, too
		}
		for _, silent := range silences(i) {
			if race.Enabled && (silent || c.long >= 2*time.Minute) {
				continue // thousands of requests each, by the same goroutines; other rows cover its limits of concurrency
			}
			t.Run(fmt.Sprintf("%s silent=%v", c, silent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c.run(t, silent)
				})
			})
		}
	}
}

// run lets a client send for the time of the row, and compares its requests with the limit.
func (c fullRow) run(t *testing.T, silent bool) {
	d, _ := provider.Lookup(c.provider)
	x := c.client(t, d, silent)
	most := math.Inf(1)
	for _, can := range x.possible {
		most = min(most, can)
	}
	if many := need.Fewer(1_500.0, 20_000); most > many && !need.Long() && c.long >= 3*time.Hour || most > need.Fewer(4_000, math.Inf(1)) {
		t.Skipf("%.0f requests", most)
	}
	x.send(t, c.request, c.long, 0)
	r := x.server.Report()
	share, binds := 0.0, ""
	for name, can := range x.possible {
		if v := float64(r.Accepted) / can; v > share {
			share, binds = v, name
		}
	}
	t.Logf("%d accepted in %v, %.2f %% of %s", r.Accepted, c.long, 100*share, binds)
	if r.Limited+r.TooLarge+r.AfterBan != 0 || len(x.statuses) != 1 || r.Wrong != 0 || share < 0.98 || share > 1.0001 {
		t.Errorf("%.2f %% of %s, %v: %+v", 100*share, binds, x.statuses, r)
	}
}

// windowsOf returns the windows of an hour and more in which a request counts. Each occurs once,
// and the row's own window is left out.
func (c fullRow) windowsOf(t *testing.T) (long []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		for _, w := range c.client(t, nil, false).windows {
			if w >= time.Hour && 3*w != c.long && !slices.Contains(long, w) {
				long = append(long, w)
			}
		}
	})
	return long
}

// TestServiceAtFullRateForDays is TestServiceAtFullRate for three windows of each limit of an hour
// or more, a day, or a month. It runs those with at most some thousand requests, and all with
// PACELINE_LONG=1.
func TestServiceAtFullRateForDays(t *testing.T) {
	race.Without(t) // what is concurrent in it is in TestServiceAtFullRate, too
	for i, c := range fullRate {
		for _, w := range c.windowsOf(t) {
			c := c
			c.long = 3 * w
			for _, silent := range silences(i) {
				t.Run(fmt.Sprintf("%s %v silent=%v", c, w, silent), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { c.run(t, silent) })
				})
			}
		}
	}
}

// TestServiceMisread: the same client is configured for another provider. It is not refused either.
// It is never away for longer than the hour after which a stack sends a probe.
func TestServiceMisread(t *testing.T) {
	names := provider.Names()
	all := need.Long()
	race.Without(t) // what is concurrent in it is in the others, too
	for i, c := range fullRate {
		as := names
		if !all { // anybody's words, and those of one that is another for each
			as = need.Fewer([]string{"generic", names[i*11%len(names)]}[i%2:][:1], []string{"generic", names[i*11%len(names)]})
		}
		for _, name := range as {
			if name == c.provider {
				continue
			}
			t.Run(fmt.Sprintf("%s read as %s", c, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d, _ := provider.Lookup(name)
					x := c.client(t, d, false)
					if x.fills > need.Fewer(2_000, math.MaxInt) {
						t.Skipf("%d requests", x.fills)
					}
					enough := x.fills + 100
					x.send(t, c.request, 30*time.Hour, enough)
					r := x.server.Report()
					if r.Limited+r.TooLarge+r.AfterBan != 0 || r.Wrong != 0 {
						t.Errorf("%v: %+v", x.statuses, r)
					}
					t.Logf("%d sent; the longest away %v", x.sent, x.gap)
					longest := x.window
					for i, w := range x.windows {
						if x.takes[i] < enough { // it is used up, such as a day's 50, and known to the client
							longest = max(longest, w)
						}
					}
					if away := max(x.gap, time.Since(x.last)); away > time.Hour+longest {
						t.Errorf("away for %v; sent %d", away, x.sent)
					}
				})
			})
		}
	}
}

// TestServiceAfterARefusal: a bucket refuses and states when it is full. The client goes on as the
// bucket is refilled, and does not wait until it is full.
func TestServiceAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, service.Config{Provider: "twitch"})
		for range 800 { // a stranger with the same key
			sends(s, "k", "GET /helix/users")
		}
		p := &path{server: s, statuses: map[int]int{}}
		d, _ := provider.Lookup("twitch")
		rt, err := transport.New(transport.Config{Base: p, Provider: d, Attempts: 5})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 20 {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fake.test/helix/users", nil)
			r.Header.Set("Authorization", "Bearer k")
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		took := time.Since(start)
		t.Logf("%v, %v", took, p.statuses)
		if want := 20 * time.Minute / 800; took < want || took > want*5/4 || p.statuses[http.StatusTooManyRequests] > 2 {
			t.Errorf("20 requests took %v, of a bucket that gives them in %v: %v", took, want, p.statuses)
		}
	})
}
