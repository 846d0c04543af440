package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

// said is the facts in a provider's answers about one of the Service's limits.
type said struct {
	policy string // the Service's name for it
	limit  string // the name under which package provider reads it
	// Which facts are stated: the limit, the amount left, the amount used.
	most, left, used bool
	reset            time.Duration // the unit of the instant of the full reset, rounded up; 0: not stated
}

// spoken is the form in which a provider states its limits. The units are those of its
// documentation. The client's reading is never too early, and late by less than one unit.
type spoken struct {
	provider, preset string
	requests         []string // METHOD path body, in turn
	limits           []provider.Policy
	says             []said
	// The client reads a refusal as this kind, and by these policies. wait is the unit of the wait
	// in the refusal, or of the reset in its place. 0: no time is stated.
	refusal provider.Refusal
	by      []string
	wait    time.Duration
	dialect string // if it differs from the provider's
}

const (
	sec = time.Second
	ms  = time.Millisecond
)

// years puts a limit of a day out of the way.
var years = []provider.Policy{{Name: "daily", Limit: 100_000}}

var providers = []spoken{
	{provider: "ietf", requests: []string{"GET /"}, limits: years, says: []said{{"burst", "burst", true, true, false, sec}, {"daily", "daily", true, true, false, sec}}, refusal: provider.RateLimited, by: []string{"burst"}, wait: sec},
	{provider: "ietf", requests: []string{"GET /"}, limits: []provider.Policy{{Name: "daily", Limit: 40}}, says: []said{{"daily", "daily", true, true, false, sec}}, refusal: provider.QuotaExhausted, by: []string{"daily"}, wait: sec},
	{provider: "ietf", preset: "ietf:07", requests: []string{"GET /"}, limits: years, says: []said{{"burst", "1m", true, true, false, sec}}, refusal: provider.RateLimited, by: []string{"burst"}, wait: sec},
	{provider: "ietf", preset: "ietf:06", requests: []string{"GET /"}, limits: years, says: []said{{"burst", "1m", true, true, false, sec}}, refusal: provider.RateLimited, by: []string{"burst"}, wait: sec},
	{provider: "cloudflare", requests: []string{"GET /client/v4/zones"}, says: []said{{"requests", "default", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "generic", requests: []string{"GET /"}, says: []said{{"requests", "", true, true, false, 0}}, refusal: provider.RateLimited, wait: sec},
	{provider: "generic", preset: "generic:date", requests: []string{"GET /"}, says: []said{{"requests", "", true, true, false, 0}}, refusal: provider.RateLimited, wait: 2 * sec}, // two dates without a fraction
	{provider: "x-ratelimit-epoch", requests: []string{"GET /"}, says: []said{{"requests", "", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "x-ratelimit-seconds", requests: []string{"GET /"}, says: []said{{"requests", "", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "heroku", requests: []string{"GET /apps"}, says: []said{{"requests", "requests", true, true, false, 0}}, refusal: provider.RateLimited},
	{provider: "github", requests: []string{"GET /user"}, says: []said{{"requests", "core", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "github", requests: []string{"GET /search/issues"}, says: []said{{"search", "search", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "github", preset: "github:unauthenticated", requests: []string{"GET /user"}, says: []said{{"requests", "core", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "shopify", requests: []string{"GET /admin/api/2025-01/products.json"}, says: []said{{"requests", "", true, true, true, 0}}, refusal: provider.RateLimited, wait: 100 * ms},
	// The level is stated in whole points, of which there are 50 per second.
	{provider: "shopify", requests: []string{`POST /admin/api/2025-01/graphql.json {"query":"{products(first:160){nodes{id}}}"}`, `POST /admin/api/2025-01/graphql.json {"query":"mutation{x}"}`},
		says: []said{{"query cost", "query cost", false, true, false, 21 * ms}}, refusal: provider.RateLimited, wait: 21 * ms},
	{provider: "stripe", requests: []string{"POST /v1/charges"}, refusal: provider.RateLimited, by: []string{"global-rate"}},
	{provider: "discord", requests: []string{"POST /api/v10/channels/1/messages"}, says: []said{{"route", "*", true, true, false, ms}}, refusal: provider.RateLimited, wait: sec},
	{provider: "discord", requests: []string{"GET /api/v10/gateway"}, limits: []provider.Policy{{Name: "route", Limit: 9000}}, refusal: provider.RateLimited, by: []string{"global"}, wait: sec},
	{provider: "x", requests: []string{"GET /2/tweets"}, says: []said{{"15 minutes", "15 minutes", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "slack", requests: []string{"POST /api/conversations.list"}, refusal: provider.RateLimited, wait: sec},
	{provider: "slack", preset: "slack:tier1", requests: []string{"POST /api/x"}, refusal: provider.RateLimited, wait: sec},
	{provider: "notion", requests: []string{"GET /v1/users"}, refusal: provider.RateLimited, by: []string{"public_api_request_rate_limit"}, wait: sec},
	{provider: "reddit", requests: []string{"GET /api/v1/me"}, says: []said{{"requests", "", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "okta", requests: []string{"GET /api/v1/users"}, says: []said{{"requests", "", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "atlassian", requests: []string{"GET /rest/api/3/issue/1"}, says: []said{{"burst", "endpoint", true, true, false, sec}, {"weight", "global-app-quota", true, true, false, sec}}, refusal: provider.RateLimited, by: []string{"jira-burst-based"}, wait: sec},
	{provider: "atlassian", requests: []string{"GET /rest/api/3/issue/1"}, limits: []provider.Policy{{Name: "weight", Limit: 60}}, says: []said{{"weight", "global-app-quota", true, true, false, sec}}, refusal: provider.QuotaExhausted, by: []string{"jira-quota-global-based"}, wait: sec},
	{provider: "groq", requests: []string{`POST /openai/v1/chat/completions {"model":"m","max_tokens":50}`}, says: []said{{"requests", "requests", true, true, false, ms}, {"tokens", "tokens", true, true, false, ms}}, refusal: provider.RateLimited, by: []string{"RPM"}, wait: sec},
	{provider: "groq", requests: []string{`POST /openai/v1/chat/completions {"model":"m","max_tokens":1500}`}, says: []said{{"requests", "requests", true, true, false, ms}, {"tokens", "tokens", true, true, false, ms}}, refusal: provider.RateLimited, by: []string{"tokens"}, wait: sec},
	{provider: "groq", requests: []string{`POST /openai/v1/chat/completions {"model":"m","max_tokens":3000}`}, limits: []provider.Policy{{Name: "tokens per day", Limit: 7000}}, refusal: provider.QuotaExhausted, by: []string{"TPD"}, wait: sec},
	{provider: "azure-openai", requests: []string{`POST /openai/deployments/d/chat/completions {"max_tokens":9}`}, says: []said{{"requests", "requests", true, true, false, sec}, {"tokens", "tokens", true, true, false, sec}}, refusal: provider.RateLimited, wait: ms},
	{provider: "azure-openai", requests: []string{`POST /openai/deployments/d/chat/completions {"max_tokens":9000}`}, says: []said{{"requests", "requests", true, true, false, sec}, {"tokens", "tokens", true, true, false, sec}}, refusal: provider.RateLimited, wait: ms},
	{provider: "gemini", requests: []string{`POST /v1beta/models/gemini-2.5-flash:generateContent {}`}, refusal: provider.RateLimited, by: []string{"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}, wait: time.Nanosecond},
	{provider: "binance", requests: []string{"GET /api/v3/depth?limit=5000"}, says: []said{{"weight", "x-mbx-used-weight-1m", false, false, true, ms}}, refusal: provider.RateLimited, wait: sec},
	{provider: "binance-spot", requests: []string{"GET /api/v3/depth?limit=5000", "GET /api/v3/ping"}, says: []said{{"weight", "x-mbx-used-weight-1m", true, true, true, ms}}, refusal: provider.RateLimited, wait: sec},
	{provider: "binance-spot", requests: []string{"POST /api/v3/order"}, says: []said{{"weight", "x-mbx-used-weight-1m", true, true, true, ms}, {"orders", "x-mbx-order-count-10s", true, true, true, ms}, {"orders per day", "x-mbx-order-count-1d", true, true, true, ms}}, refusal: provider.RateLimited, wait: sec},
	{provider: "binance-futures", requests: []string{"GET /fapi/v1/depth?limit=1000"}, says: []said{{"weight", "x-mbx-used-weight-1m", true, true, true, ms}}, refusal: provider.RateLimited, wait: sec},
	{provider: "bybit", requests: []string{"GET /v5/order/realtime"}, says: []said{{"50/s", "", true, true, false, 0}}, refusal: provider.RateLimited, wait: ms},
	{provider: "kraken", requests: []string{"POST /0/private/Balance", "POST /0/private/Ledgers"}, refusal: provider.RateLimited, by: []string{"EAPI:Rate limit exceeded"}},
	{provider: "kraken", preset: "kraken:pro", requests: []string{"POST /0/private/Balance"}, refusal: provider.RateLimited, by: []string{"EAPI:Rate limit exceeded"}},
	{provider: "coinbase", requests: []string{"GET /orders"}, refusal: provider.RateLimited, by: []string{"key"}},
	{provider: "okx", requests: []string{"GET /api/v5/account/balance"}, refusal: provider.RateLimited, by: []string{"endpoint"}},
	{provider: "okx", requests: []string{`POST /api/v5/trade/order {"instId":"BTC-USDT"}`}, limits: []provider.Policy{{Name: "orders", Limit: 40}}, refusal: provider.RateLimited, by: []string{"sub-account orders"}},
	{provider: "etherscan", requests: []string{"GET /api?module=account"}, refusal: provider.RateLimited},
	{provider: "etherscan", requests: []string{"GET /api?module=account"}, limits: []provider.Policy{{Name: "requests", Limit: 100}, {Name: "day", Limit: 40}}, refusal: provider.QuotaExhausted},
	{provider: "gitlab", requests: []string{"GET /api/v4/user"}, says: []said{{"requests", "throttle_authenticated_api", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "gitlab", preset: "gitlab:unauthenticated", requests: []string{"GET /api/v4/user"}, refusal: provider.RateLimited, wait: sec},
	// The fields show a limit with much left, and not the limit that refused.
	{provider: "gitlab", requests: []string{"GET /api/v4/projects/1/jobs"}, says: []said{{"requests", "throttle_authenticated_api", true, true, true, sec}}, refusal: provider.RateLimited, by: []string{"endpoint"}},
	// The reset is for the full limit: at most a minute and the rest of a second after one request
	// would pass.
	{provider: "twitch", requests: []string{"GET /helix/users"}, says: []said{{"requests", "requests", true, true, false, sec}}, refusal: provider.RateLimited, wait: 77 * ms},
	{provider: "hubspot", requests: []string{"GET /crm/v3/objects/contacts"}, says: []said{{"10 seconds", "10 seconds", true, true, false, 0}, {"day", "day", true, true, false, 0}}, refusal: provider.RateLimited, by: []string{"TEN_SECONDLY_ROLLING"}},
	{provider: "hubspot", preset: "hubspot:professional", requests: []string{"POST /crm/v3/objects/contacts"}, limits: []provider.Policy{{Name: "day", Limit: 100}}, says: []said{{"day", "day", true, true, false, 0}}, refusal: provider.QuotaExhausted, by: []string{"DAILY"}},
	{provider: "hubspot", requests: []string{"POST /crm/v3/objects/contacts/search"}, refusal: provider.RateLimited, by: []string{"SECONDLY"}},
	{provider: "zendesk", requests: []string{"GET /api/v2/users"}, says: []said{{"requests", "account", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "zendesk", preset: "zendesk:enterprise", requests: []string{"GET /api/v2/tickets.json"}, says: []said{{"requests", "account", true, true, false, sec}, {"tickets-index", "tickets-index", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "zendesk", requests: []string{"GET /api/v2/incremental/tickets.json"}, says: []said{{"requests", "account", true, true, false, sec}}, refusal: provider.RateLimited, by: []string{"endpoint"}, wait: sec},
	{provider: "mistral", requests: []string{`POST /v1/chat/completions {"model":"m","max_tokens":9}`}, says: []said{{"requests", "requests", true, true, false, 0}}, refusal: provider.RateLimited},
	{provider: "mistral", requests: []string{`POST /v1/chat/completions {"model":"m","max_tokens":2000}`}, says: []said{{"tokens", "tokens", true, true, false, 0}}, refusal: provider.RateLimited},
	{provider: "docker-hub", requests: []string{"GET /v2/library/alpine/manifests/latest"}, says: []said{{"requests", "6h", true, true, false, 0}}, refusal: provider.RateLimited},
	{provider: "docker-hub", preset: "docker-hub:personal", requests: []string{"GET /v2/library/alpine/manifests/latest"}, says: []said{{"requests", "6h", true, true, false, 0}}, refusal: provider.RateLimited},
	{provider: "strava", requests: []string{"POST /api/v3/activities"}, limits: []provider.Policy{{Name: "day", Limit: 100_000}}, says: []said{{"15 minutes", "15 minutes", true, true, true, sec}, {"day", "day", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "strava", requests: []string{"GET /api/v3/athlete"}, limits: []provider.Policy{{Name: "reads, day", Limit: 100_000}, {Name: "day", Limit: 100_000}}, says: []said{{"15 minutes", "15 minutes", true, true, true, sec}, {"reads, 15 minutes", "reads, 15 minutes", true, true, true, sec}, {"reads, day", "reads, day", true, true, true, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "strava", requests: []string{"GET /api/v3/athlete"}, limits: []provider.Policy{{Name: "reads, day", Limit: 40}}, says: []said{{"reads, day", "reads, day", true, true, true, sec}}, refusal: provider.QuotaExhausted, wait: sec},
	{provider: "spotify", requests: []string{"GET /v1/me"}, refusal: provider.RateLimited, wait: sec},
	{provider: "spotify", requests: []string{"GET /v1/me"}, limits: []provider.Policy{{Name: "day", Limit: 80}}, refusal: provider.RateLimited, wait: sec},
	{provider: "riot", requests: []string{"GET /lol/status/v4/platform-data"}, says: []said{{"1 second", "app, 1s", true, true, true, 0}, {"2 minutes", "app, 2m", true, true, true, 0}, {"method", "method, 1m", true, true, true, 0}}, refusal: provider.RateLimited, by: []string{"application"}, wait: sec},
	{provider: "riot", requests: []string{"GET /lol/status/v4/platform-data"}, limits: []provider.Policy{{Name: "method", Limit: 9}}, says: []said{{"method", "method, 1m", true, true, true, 0}}, refusal: provider.RateLimited, by: []string{"method"}, wait: sec},
	{provider: "alpaca", requests: []string{"GET /v2/orders"}, says: []said{{"requests", "requests", true, true, false, sec}}, refusal: provider.RateLimited, wait: sec},
	{provider: "arxiv", requests: []string{"GET /api/query"}, refusal: provider.RateLimited, wait: 3 * sec},
	{provider: "cohere", requests: []string{"POST /v2/chat"}, limits: []provider.Policy{{Name: "month", Limit: 100_000}}, refusal: provider.RateLimited},
	{provider: "cohere", preset: "cohere:production", requests: []string{"POST /v2/chat"}, refusal: provider.RateLimited},
	{provider: "crossref", requests: []string{"GET /works/1"}, refusal: provider.RateLimited},
	{provider: "deribit", requests: []string{"GET /api/v2/public/get_order_book"}, refusal: provider.RateLimited},
	{provider: "fastly", requests: []string{"POST /service/1/purge_all"}, refusal: provider.RateLimited, wait: sec},
	{provider: "huggingface", requests: []string{"GET /api/models"}, refusal: provider.RateLimited, wait: sec},
	{provider: "linear", requests: []string{"POST /graphql {}"}, refusal: provider.RateLimited, wait: 2 * time.Hour},
	{provider: "monday", requests: []string{`POST /v2 {"query":"{me{id}}"}`}, refusal: provider.QuotaExhausted,
		by: []string{"DAILY_LIMIT_EXCEEDED"}},
	{provider: "monday", requests: []string{`POST /v2 {"query":"{me{id}}"}`},
		limits:  []provider.Policy{{Name: "reads", Limit: 500}, {Name: "day", Limit: 100_000}},
		refusal: provider.RateLimited, by: []string{"COMPLEXITY_BUDGET_EXHAUSTED"}, wait: sec},
	{provider: "microsoft-graph", requests: []string{"GET /v1.0/me/messages"}, limits: []provider.Policy{{Name: "requests", Limit: 1000}}, refusal: provider.RateLimited, wait: sec},
	{provider: "openrouter", requests: []string{"POST /api/v1/chat/completions {}"}, limits: []provider.Policy{{Name: "day", Limit: 100_000}}, refusal: provider.RateLimited},
	{provider: "perplexity", requests: []string{"POST /chat/completions {}"}, refusal: provider.RateLimited},
	{provider: "replicate", requests: []string{"POST /v1/predictions"}, refusal: provider.RateLimited, wait: sec},
	{provider: "sec-edgar", requests: []string{"GET /submissions/x.json"}, refusal: provider.RateLimited, wait: 10 * time.Minute},
	{provider: "google", preset: "google:drive", requests: []string{"GET /drive/v3/files/A?alt=media"},
		limits: []provider.Policy{{Name: "weight", Limit: 1000}}, refusal: provider.RateLimited,
		by: []string{"userRateLimitExceeded"}},
	{provider: "google", preset: "google:drive-queries", requests: []string{"GET /drive/v3/files"},
		limits: []provider.Policy{{Name: "queries", Limit: 1000}}, refusal: provider.RateLimited, by: []string{"userRateLimitExceeded"}},
	{provider: "google", preset: "google:youtube", requests: []string{"PUT /youtube/v3/captions"}, refusal: provider.QuotaExhausted, by: []string{"quotaExceeded"}},
	{provider: "trello", requests: []string{"GET /1/boards/A"}, refusal: provider.RateLimited},
	{provider: "cme", dialect: "generic", requests: []string{"POST /"}, refusal: provider.RateLimited},
}

// at sleeps until d after start.
func at(start time.Time, d time.Duration) { time.Sleep(time.Until(start.Add(d))) }

func newServer(t testing.TB, c service.Config) *service.Server {
	t.Helper()
	s, err := service.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sends makes a request of "METHOD path body".
func sends(s http.Handler, key, request string) provider.Response {
	method, rest, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(rest, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return provider.Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes()}
}

// TestServiceSpeaks: package provider reads from the answers the limits that the server enforces. A
// refused client that waits the stated time passes. A client that waits one unit less does not.
func TestServiceSpeaks(t *testing.T) {
	race.Without(t) // one request after another; TestServiceIsJudged has six clients at each server
	covered := map[string]bool{}
	rounds, least := need.Fewer(4, 12), need.Fewer(1, 2)
	for i, p := range providers {
		covered[p.provider] = true
		t.Run(fmt.Sprintf("%s %s %s", p.provider, p.preset, p.requests[0]), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { p.run(t, uint64(i), rounds, least) })
		})
	}
	for _, s := range service.All() {
		if !covered[s.Name] && hasRate(t, s.Name) {
			t.Errorf("%s has no test", s.Name)
		}
	}
}

// run sends bursts in so many rounds, of which least reach a limit.
func (p *spoken) run(t *testing.T, seed uint64, rounds, least int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var log bytes.Buffer
	config := service.Config{Provider: p.provider, Preset: p.preset, Limits: p.limits, LogTo: &log}
	time.Sleep(time.Duration(rng.Int64N(int64(time.Hour)))) // no round instant
	s := newServer(t, config)
	dialect, ok := provider.Lookup(map[bool]string{true: p.provider, false: p.dialect}[p.dialect == ""])
	if strings.HasPrefix(p.provider, "x-ratelimit-") { // what anybody may send
		dialect, ok = provider.Lookup("generic")
	}
	if !ok {
		t.Fatal("no such dialect")
	}
	policies := map[string]provider.Policy{}
	for _, l := range s.Limits() {
		policies[l.Name] = l
	}
	n := 0
	send := func() (line service.Line, o provider.Observation) {
		t.Helper()
		log.Reset()
		r := sends(s, "secret", p.requests[n%len(p.requests)])
		first, _, _ := bytes.Cut(log.Bytes(), []byte("\n")) // another line is of an answer
		if err := json.Unmarshal(first, &line); err != nil {
			t.Fatalf("%v: %s", err, &log)
		}
		o = dialect.Read(time.Now(), r)
		if len(o.Problems) > 0 {
			t.Fatalf("%v: %d %v %s", o.Problems, r.Status, r.Header, r.Body)
		}
		if by := line.By != ""; by != (o.Refusal != provider.None) || by && o.Refusal != p.refusal {
			t.Fatalf("refused by %q, read as %q, want %q: %d %v %s", line.By, o.Refusal, p.refusal, r.Status, r.Header, r.Body)
		}
		if o.Refusal != provider.None && p.by != nil && !reflect.DeepEqual(o.RefusedBy, p.by) {
			t.Fatalf("refused by %q, read as %q", line.By, o.RefusedBy)
		}
		for _, v := range p.says {
			v.check(t, policies[v.policy], line, o)
		}
		if t.Failed() {
			t.Fatalf("request %d: %d %v %s\n%+v", n, r.Status, r.Header, r.Body, line)
		}
		return line, o
	}
	refusals, passed := 0, 0
	for range rounds {
		burst := rng.IntN(300)
		if refusals < least { // the test must reach a limit of 5000 too
			burst = 7000
		}
		for range burst {
			n++
			line, o := send()
			if line.By == "" {
				passed++
				continue
			}
			refusals++
			wait, truth := time.Duration(0), time.Duration(line.Wait)
			if at, ok := o.ComeBack(time.Now()); ok != (p.wait > 0) {
				t.Fatalf("it says when to come back: %v", ok)
			} else if ok {
				wait = time.Until(at)
			} else {
				wait = truth
			}
			unit := max(p.wait, ms) // of the server's clock
			if wait < truth || wait >= truth+unit {
				t.Fatalf("it asks to wait %v, and %v would do", wait, truth)
			}
			if early := wait - unit; early > 0 {
				time.Sleep(early)
				if line, _ := send(); line.By == "" {
					t.Fatalf("it asked to wait %v, and after %v the request passed", wait, early)
				}
				wait -= early
			}
			time.Sleep(wait)
			if line, _ := send(); line.By != "" {
				t.Fatalf("it asked to wait, and then: %+v", line)
			}
			break
		}
		if line, _ := send(); line.By == "" {
			time.Sleep(time.Duration(rng.Int64N(int64(3 * time.Second))))
		} else {
			time.Sleep(time.Duration(rng.Int64N(int64(line.Wait))))
		}
	}
	if refusals < least || passed == 0 {
		t.Errorf("%d refused, %d passed: too few to tell", refusals, passed)
	}
	if r := s.Report(); r.Wrong != 0 {
		t.Errorf("%+v", r.FirstWrong)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// check compares the reading of a limit with the server's count.
func (v *said) check(t *testing.T, p provider.Policy, line service.Line, o provider.Observation) {
	t.Helper()
	var truth *service.Count
	for i := range line.Counts {
		if line.Counts[i].Policy == v.policy {
			truth = &line.Counts[i]
		}
	}
	if truth == nil {
		t.Errorf("it does not count in %s", v.policy)
		return
	}
	// On a refusal, some providers state only the limit that refused.
	found := false
	for _, l := range o.Limits {
		if l.Policy != v.limit && v.limit != "*" {
			continue
		}
		found = true
		full := p.Limit
		if p.Burst > 0 && p.Rule == provider.Bucket {
			full = p.Burst
		}
		if v.left && l.Remaining != (provider.Count{N: truth.Left, OK: true}) {
			t.Errorf("%s: %d left, read as %+v", v.policy, truth.Left, l.Remaining)
		}
		if v.used && l.Used != (provider.Count{N: full - truth.Left, OK: true}) {
			t.Errorf("%s: %d of %d left, used read as %+v", v.policy, truth.Left, full, l.Used)
		}
		if v.reset == 0 {
			if !l.Reset.IsZero() && line.By == "" { // some providers state it on a refusal
				t.Errorf("%s: reset %v", v.policy, l.Reset)
			}
		} else if late := time.Until(l.Reset) - time.Duration(truth.Whole); truth.Whole > 0 && (late < -v.slack() || late >= v.reset) {
			t.Errorf("%s: whole in %v, read %v later", v.policy, time.Duration(truth.Whole), late)
		}
		if q, ok := o.Policy(l.Policy); v.most && (!ok || q.Limit != p.Limit || q.Window != 0 && q.WindowSource != provider.Inferred && q.Window != p.Window) {
			t.Errorf("%s: enforced %+v, read %+v", v.policy, p, q)
		}
		if q, ok := o.Policy(l.Policy); ok && q.Scope == provider.Route && p.Scope == provider.Resource {
			p.Scope = provider.Route // it says the endpoint's, and a charge says which that is
		} else if ok && q.Scope == provider.Resource && p.Scope == provider.IP {
			p.Scope = provider.Resource // without a key, the resource of no key is that of the address
		}
		if q, ok := o.Policy(l.Policy); ok && (q.Unit != p.Unit || q.Scope != "" && q.Scope != p.Scope || q.Rule != "" && q.Rule != p.Rule) {
			t.Errorf("%s: enforced %+v, read %+v", v.policy, p, q)
		}
	}
	if !found {
		t.Errorf("%s is not read: %+v", v.policy, o.Limits)
	}
}

// slack is the most by which a reset may be too early. It is not zero only if the client computes
// the reset from a level in whole points.
func (v *said) slack() time.Duration {
	if v.policy == "query cost" {
		return v.reset
	}
	return 0
}
