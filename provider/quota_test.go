package provider_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// respond makes a response of "Name: value" lines.
func respond(status int, body string, fields ...string) provider.Response {
	h := http.Header{}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		h.Add(name, value)
	}
	return provider.Response{Status: status, Header: h, Body: []byte(body)}
}

func read(t *testing.T, dialect string, now time.Time, r provider.Response) provider.Observation {
	t.Helper()
	d, ok := provider.Lookup(dialect)
	if !ok {
		t.Fatalf("no dialect %q", dialect)
	}
	o := d.Read(now, r)
	check(t, dialect, now, o)
	return o
}

// A driver turns a Unit into a limit.Unit by its name.
func TestUnitsAreThoseOfLimit(t *testing.T) {
	for u, want := range map[provider.Unit]limit.Unit{
		provider.Requests: limit.Requests, provider.Weight: limit.Weight, provider.Orders: limit.Orders, provider.Input: limit.Input,
		provider.Output: limit.Output, provider.Tokens: limit.Tokens, provider.Money: limit.Money, provider.Other: limit.Other,
	} {
		if string(u) != want.String() {
			t.Errorf("%q is %q in limit", u, want)
		}
	}
	if provider.MaxCount != limit.MaxCost {
		t.Errorf("MaxCount %d, limit.MaxCost %d", int64(provider.MaxCount), int64(limit.MaxCost))
	}
}

// TestDetect: a response of a provider is read in its own dialect or in the generic one, but never
// in another's.
func TestDetect(t *testing.T) {
	silent := []string{"generic", "ietf"}
	family := map[string][]string{
		"binance-spot": {"binance"}, "binance-futures": {"binance"}, // their fields are the same
		"cloudflare": {}, "generic": {}, "ietf": {},
		"amazon-sp": {"aws"}, "bedrock": {"aws"}, "google": {"gemini"}, "vertex": {"gemini"}, "xai": {"openai"},
	}
	byHost := []string{ // nothing that they send is theirs alone
		"alpaca", "arxiv", "bitfinex", "huggingface", "monday", "npm", "ollama", "perplexity", "procore", "roblox", "sec-edgar", "sendgrid", "spotify", "together", "twilio", "twitch",
	}
	found := map[string]int{}
	for _, name := range provider.Names() {
		for _, s := range corpus.Load(t, "testdata", name) {
			got := provider.Detect(s.Response).Name()
			if got != name && !slices.Contains(silent, got) && !slices.Contains(family[name], got) {
				t.Errorf("%s is taken for %s", s.Name, got)
			}
			if got == name {
				found[name]++
			}
		}
	}
	for _, name := range provider.Names() {
		if _, shared := family[name]; found[name] == 0 && !shared && !slices.Contains(byHost, name) {
			t.Errorf("no response of %s is recognized", name)
		}
	}
}

// A refusal for which trying again is in vain must not look like a short wait, on any host.
func TestDetectUnpaid(t *testing.T) {
	r := corpus.File(t, "testdata/openai/insufficient_quota.http").Response
	if o := provider.Detect(r).Read(time.Now(), r); o.Dialect != "openai" || o.Refusal != provider.Unpaid {
		t.Errorf("%+v", o)
	}
}

// Fields that many servers send identify none, unless others are missing that those servers would
// send.
func TestDetectByWhatIsMissing(t *testing.T) {
	for fields, want := range map[string]bool{"Used Remaining": true, "Used Remaining Reset": true, "Used": false, "Remaining": false, "Used Remaining Limit": false, "Used Limit": false} {
		r := respond(200, "")
		for f := range strings.FieldsSeq(fields) {
			r.Header.Set("X-RateLimit-"+f, "7")
		}
		if got := provider.Detect(r).Name(); (got == "reddit") != want {
			t.Errorf("%s: %s", fields, got)
		}
	}
}

func TestForHost(t *testing.T) {
	for _, c := range []struct{ host, want string }{
		{"api.openai.com", "openai"},
		{"API.OpenAI.com:443", "openai"},
		{"api.openai.com.", "openai"},
		{"eu.api.openai.com", "openai"},
		{"my-resource.openai.azure.com", "azure-openai"},
		{"shop.myshopify.com", "shopify"},
		{"myshopify.com.evil.example", ""},
		{"evilmyshopify.com", ""},
		{"api.binance.com", "binance-spot"},
		{"fapi.binance.com", "binance-futures"},
		{"dapi.binance.com", "binance"},
		{"api.coinbase.com", "coinbase"},
		{"dev-1.okta.com", "okta"},
		{"localhost:8080", ""},
		{"[::1]:8080", ""},
		{"", ""},
		{":", ""},
	} {
		d, ok := provider.ForHost(c.host)
		if ok != (c.want != "") || ok && d.Name() != c.want {
			t.Errorf("ForHost(%q) = %v, want %q", c.host, d, c.want)
		}
	}
}

// TestComeBack: the server's statement at noon, and when to come back.
func TestComeBack(t *testing.T) {
	for _, c := range []struct {
		name, dialect string
		r             provider.Response
		after         time.Duration
		ok            bool
	}{
		{"served, some left", "ietf", respond(200, "", `RateLimit: "a";r=1;t=30`), 0, true},
		{"served, nothing left", "ietf", respond(200, "", `RateLimit: "a";r=0;t=30`), 30 * time.Second, true},
		{"the limit that is exhausted longest binds", "ietf", respond(429, "", `RateLimit: "a";r=0;t=30, "b";r=0;t=90, "c";r=5;t=999`), 90 * time.Second, true},
		{"Retry-After goes before resets", "ietf", respond(429, "", `RateLimit: "a";r=0;t=30`, "Retry-After: 7"), 7 * time.Second, true},
		{"of two budgets the later one binds", "openai", respond(429, "", "x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 1s", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 6m0s"), 6 * time.Minute, true},
		{"milliseconds go before seconds", "openai", respond(429, "", "Retry-After: 5", "Retry-After-Ms: 4321"), 4321 * time.Millisecond, true},
		{"milliseconds that cannot be read do not", "openai", respond(429, "", "Retry-After: 5", "Retry-After-Ms: soon"), 5 * time.Second, true},
		{"refused with room: its reset explains nothing", "x", respond(429, "", "x-rate-limit-limit: 900", "x-rate-limit-remaining: 800", "x-rate-limit-reset: 1768478700"), 0, false},
		{"refused with one left", "x", respond(429, "", "x-rate-limit-limit: 900", "x-rate-limit-remaining: 1", "x-rate-limit-reset: 1768478700"), 0, false},
		{"refused, and nobody says what is left", "x", respond(429, "", "x-rate-limit-limit: 900", "x-rate-limit-reset: 1768478700"), 5 * time.Minute, true},
		{"refused, and all is there again now", "x", respond(429, "", "x-rate-limit-limit: 900", "x-rate-limit-remaining: 0", "x-rate-limit-reset: 1768478400"), 0, false},
		{"refused, and nothing said", "generic", respond(429, ""), 0, false},
		{"served, nothing left, and no reset", "heroku", respond(200, "", "RateLimit-Remaining: 0"), 0, false},
		{"no credit: waiting does not help", "openai", respond(429, `{"error":{"code":"insufficient_quota"}}`, "Retry-After: 20"), 0, false},
		{"too large: waiting does not help", "groq", respond(413, `{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit 6000, Requested 14368"}}`, "Retry-After: 20"), 0, false},
		{"a bucket says when it is full: one is there before", "twitch", respond(429, "", "Ratelimit-Limit: 800", "Ratelimit-Remaining: 0", "Ratelimit-Reset: 1768478460"), 75 * time.Millisecond, true},
		{"a bucket of which nobody says how large it is", "twitch", respond(429, "", "Ratelimit-Remaining: 0", "Ratelimit-Reset: 1768478460"), time.Minute, true},
		{"a bucket of tokens: who knows how many are needed", "openai", respond(429, "", "x-ratelimit-limit-tokens: 30000", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 1m0s"), time.Minute, true},
		{"a date", "generic", respond(503, "", "Retry-After: Thu, 15 Jan 2026 12:02:00 GMT"), 2 * time.Minute, true},
		{"a date of RFC 850", "generic", respond(503, "", "Retry-After: Thursday, 15-Jan-26 12:02:00 GMT"), 2 * time.Minute, true},
		{"a fraction", "shopify", respond(429, "", "Retry-After: 2.0"), 2 * time.Second, true},
		{"a nanosecond more than it can count", "generic", respond(429, "", "Retry-After: 0.0000000001"), time.Nanosecond, true},
		{"a number that no clock has", "generic", respond(429, "", "Retry-After: 1e300"), provider.MaxWait, true},
		{"secondary limit: a minute", "github", respond(403, `{"message":"You have exceeded a secondary rate limit."}`, "X-RateLimit-Remaining: 4000"), time.Minute, true},
		{"secondary limit, primary spent: its reset", "github", respond(403, `{"message":"You have exceeded a secondary rate limit."}`, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1768479000"), 10 * time.Minute, true},
	} {
		o := read(t, c.dialect, noon, c.r)
		at, ok := o.ComeBack(noon)
		if ok != c.ok || ok && at.Sub(noon) != c.after {
			t.Errorf("%s: come back after %v, %v; want %v, %v\n%+v", c.name, at.Sub(noon), ok, c.after, c.ok, o)
		}
	}
}

// TestClocks reads the same answer on clocks that are wrong by minutes. A value that counts from
// now is the same wait on all of them. So is an instant of the server, because it states its own
// time too.
func TestClocks(t *testing.T) {
	for _, skew := range []time.Duration{0, time.Second, -time.Second, 3 * time.Minute, -3 * time.Minute, 20 * 24 * time.Hour} {
		now := noon.Add(skew)
		for _, c := range []struct {
			dialect string
			r       provider.Response
		}{
			{"github", respond(200, "", "Date: Thu, 15 Jan 2026 12:00:00 GMT", "X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1768478430")},
			{"anthropic", respond(200, "", "Date: Thu, 15 Jan 2026 12:00:00 GMT", "anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2026-01-15T12:00:30Z")},
			{"generic", respond(503, "", "Date: Thu, 15 Jan 2026 12:00:00 GMT", "Retry-After: Thu, 15 Jan 2026 12:00:30 GMT")},
			{"reddit", respond(200, "", "Date: Thu, 15 Jan 2026 12:00:00 GMT", "X-Ratelimit-Used: 9", "X-Ratelimit-Remaining: 0", "X-Ratelimit-Reset: 30")},
		} {
			at, ok := read(t, c.dialect, now, c.r).ComeBack(now)
			// Below two seconds the clocks are taken to agree: the wait is wrong by their difference, no more.
			slack := time.Duration(0)
			if skew.Abs() <= 2*time.Second && c.dialect != "reddit" && c.dialect != "generic" {
				slack = skew.Abs()
			}
			if wait := at.Sub(now); !ok || (wait-30*time.Second).Abs() > slack {
				t.Errorf("%s, our clock %v ahead: wait %v, want 30s", c.dialect, skew, wait)
			}
		}
	}
	// A Date of 1970 or 9999 is no reason to wait for years, or to go at once.
	for _, date := range []string{"Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		o := read(t, "github", noon, respond(200, "", "Date: "+date, "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1768478430"))
		if at, _ := o.ComeBack(noon); at.Sub(noon) != 30*time.Second {
			t.Errorf("Date %s: come back after %v, want 30s", date, at.Sub(noon))
		}
	}
}

// TestRefusals: statuses and bodies that look alike and ask for different decisions.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		dialect string
		r       provider.Response
		want    provider.Refusal
	}{
		{"generic", respond(200, ""), provider.None},
		{"generic", respond(500, ""), provider.None},
		{"generic", respond(403, ""), provider.None},
		{"generic", respond(403, "", "Retry-After: 1"), provider.RateLimited},
		{"generic", respond(418, ""), provider.None},
		{"binance", respond(418, ""), provider.Banned},
		{"generic", respond(503, ""), provider.Overloaded},
		{"notion", respond(529, ""), provider.Overloaded},
		{"github", respond(403, `{"message":"Must have admin rights"}`), provider.None},
		{"bybit", respond(403, ""), provider.Banned},
		{"stripe", respond(429, `{"error":{"code":"lock_timeout"}}`), provider.Conflict},
		{"stripe", respond(429, `{"error":{"code":"rate_limit"}}`), provider.RateLimited},
		{"openai", respond(429, `{"error":{"code":429,"message":"x"}}`), provider.RateLimited},
		{"openai", respond(429, `[1,2`), provider.RateLimited},
		{"openai", respond(400, `{"error":{"code":"billing_hard_limit_reached"}}`), provider.Unpaid},
		{"anthropic", respond(503, `{"error":{"type":"rate_limit_error"}}`), provider.RateLimited}, // the body knows better than the status
		{"anthropic", respond(503, `{"error":{"type":"overloaded_error"}}`), provider.Overloaded},
		{"openai", respond(200, `{"error":{"code":"insufficient_quota"}}`), provider.Unpaid},
		{"shopify", respond(200, `{"errors":[{"extensions":{"code":"THROTTLED"}}],"extensions":{}}`), provider.RateLimited},
		{"discord", respond(429, "<html>", "Content-Type: text/html"), provider.Banned},
		{"discord", respond(429, `{"retry_after":0.3,"global":false}`), provider.RateLimited},
		{"x", respond(429, `{"title":"UsageCapExceeded"}`), provider.QuotaExhausted},
		{"okta", respond(429, "", "X-Rate-Limit-Limit: 0", "X-Rate-Limit-Remaining: 0"), provider.TooMany},
		{"okta", respond(200, "", "X-Rate-Limit-Limit: 0", "X-Rate-Limit-Remaining: 0"), provider.None},
		{"ietf", respond(429, "", `RateLimit-Policy: "burst";q=10;w=60,"daily";q=1000;w=86400`, `RateLimit: "burst";r=0;t=5,"daily";r=20;t=500`), provider.RateLimited},
		{"ietf", respond(429, "", `RateLimit-Policy: "burst";q=10;w=60,"daily";q=1000;w=86400`, `RateLimit: "burst";r=0;t=5,"daily";r=0;t=500`), provider.QuotaExhausted},
	} {
		if o := read(t, c.dialect, noon, c.r); o.Refusal != c.want {
			t.Errorf("%s, %d %s %v: %q, want %q", c.dialect, c.r.Status, c.r.Body, c.r.Header, o.Refusal, c.want)
		}
	}
}

// TestGitHubResources: a limit that an answer names is that resource's. Without a name, the limits that
// GitHub has for requests without a token are those of an address.
func TestGitHubResources(t *testing.T) {
	for _, c := range []struct {
		limit, resource string
		want            provider.Scope
	}{{"60", "core", provider.Resource}, {"60", "", provider.IP}, {"10", "search", provider.Resource}, {"5000", "core", provider.Resource}, {"5000", "", provider.Key}, {"60", "graphql", provider.Resource}} {
		o := read(t, "github", noon, respond(200, "", "X-RateLimit-Limit: "+c.limit, "X-RateLimit-Remaining: 9", "X-RateLimit-Resource: "+c.resource))
		if o.Policies[0].Scope != c.want || o.Limits[0].Scope != c.want || o.Policies[0].Resource != c.resource || o.Limits[0].Resource != c.resource {
			t.Errorf("%s of %q: %+v", c.limit, c.resource, o)
		}
	}
}

// TestBody: no more of a body is read than promised, and a cut is noted.
func TestBody(t *testing.T) {
	long := `{"x":"` + strings.Repeat("y", provider.MaxBody) + `","error":{"code":"insufficient_quota"}}`
	o := read(t, "openai", noon, respond(429, long))
	if o.Refusal != provider.RateLimited || len(o.Problems) != 1 || !strings.Contains(o.Problems[0], "64 KiB") {
		t.Errorf("a body of %d bytes: %+v", len(long), o)
	}
	r := provider.Response{Status: 429}
	for _, name := range provider.Names() {
		read(t, name, noon, r) // neither header nor body
	}
}

// TestReadingsChangeNothing: a reading leaves the response as it is, and the next is the same.
func TestReadingsChangeNothing(t *testing.T) {
	for _, name := range provider.Names() {
		d, _ := provider.Lookup(name)
		for _, s := range corpus.Load(t, "testdata", name) {
			before := s.Response.Header.Clone()
			a := d.Read(s.Now, s.Response)
			for range 5 {
				if b := d.Read(s.Now, s.Response); !reflect.DeepEqual(a, b) {
					t.Fatalf("%s: read twice:\n%+v\n%+v", s.Name, a, b)
				}
			}
			if !reflect.DeepEqual(before, s.Response.Header) {
				t.Errorf("%s: the header changed", s.Name)
			}
		}
	}
}

func TestPresets(t *testing.T) {
	all := provider.Presets()
	if !slices.IsSortedFunc(all, func(a, b provider.Preset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted")
	}
	seen := map[string]bool{}
	for _, p := range all {
		if seen[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
		if !strings.HasPrefix(p.Source, "https://") || !strings.HasPrefix(p.AsOf, "202") || p.About == "" || len(p.Policies) == 0 {
			t.Errorf("%s: %+v", p.Name, p)
		}
		names := map[string]bool{}
		for _, v := range p.Policies {
			if v.Unpublished() { // its page names it, and has no number
				v.Limit, v.Window = 1, max(v.Window, 1)
			}
			if v.Limit <= 0 || v.Limit > provider.MaxCount || v.Source != provider.Documented || v.Window == 0 && v.Rule != provider.Concurrency || names[v.Name] {
				t.Errorf("%s: policy %+v", p.Name, v)
			}
			names[v.Name] = true
		}
	}
	for _, name := range []string{"heroku", "github", "openai:tier1", "binance", "cme"} {
		p, ok := provider.LookupPreset(name)
		if !ok {
			t.Errorf("no preset %s", name)
			continue
		}
		p.Policies[0].Limit = 1 // the caller's own
		if q, _ := provider.LookupPreset(name); q.Policies[0].Limit == 1 {
			t.Errorf("%s: the table can be changed from outside", name)
		}
	}
	// The tables that dialects fall back on.
	o := read(t, "heroku", noon, respond(200, "", "RateLimit-Remaining: 4498"))
	if p := o.Policies[0]; p.Limit != 4500 || p.Window != time.Hour || p.Source != provider.Documented {
		t.Errorf("heroku: %+v", p)
	}
}

// TestText: a server's text is printed.
func TestText(t *testing.T) {
	evil := "\x1b[2J\u202e\r\n" + strings.Repeat("A", 5000)
	for _, name := range provider.Names() {
		h := http.Header{}
		for _, s := range corpus.Load(t, "testdata", name) {
			for k := range s.Response.Header {
				h[k] = []string{evil}
			}
		}
		for _, status := range []int{200, 403, 418, 429, 503} {
			read(t, name, noon, provider.Response{Status: status, Header: h, Body: []byte(`{"error":{"message":"` + strings.Repeat("B", 200) + ` on x (TPM): Limit 1"}}`)})
		}
	}
	o := read(t, "ietf", noon, respond(200, "", `RateLimit: "`+strings.Repeat("n", 500)+`";r=1`))
	if n := len(o.Limits[0].Policy); n > 90 {
		t.Errorf("a name of %d bytes", n)
	}
}

// TestManyItems: a header with ten thousand policies costs no more than 32.
func TestManyItems(t *testing.T) {
	list := strings.TrimSuffix(strings.Repeat(`"p";q=5;w=1,`, 10_000), ",")
	o := read(t, "ietf", noon, respond(200, "", "RateLimit-Policy: "+list, "RateLimit: "+strings.ReplaceAll(list, "q", "r")))
	if len(o.Policies) != 1 || len(o.Limits) != 32 {
		t.Errorf("%d policies, %d limits; want 1 (they are all the same) and 32", len(o.Policies), len(o.Limits))
	}
	// Atlassian has one of its own besides.
	o = read(t, "atlassian", noon, respond(200, "", "RateLimit: "+strings.ReplaceAll(list, "q", "r"), "X-RateLimit-Remaining: 7"))
	if len(o.Limits) != 32 {
		t.Errorf("%d limits, want 32", len(o.Limits))
	}
	h := http.Header{}
	for i := range 1000 {
		h.Set("X-Ratelimit-Limit-F"+strings.Repeat("x", i), "5")
	}
	if o := read(t, "openai", noon, provider.Response{Status: 200, Header: h}); len(o.Policies) != 32 {
		t.Errorf("%d policies, want 32", len(o.Policies))
	}
}

func TestJSON(t *testing.T) {
	o := read(t, "discord", noon, respond(429, `{"retry_after":64.57,"global":false}`, "X-RateLimit-Bucket: b", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset-After: 0.75"))
	got, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"dialect":"discord","refusal":"rate limited","retry_after_seconds":64.57,"limits":[{"policy":"b","unit":"requests","scope":"route","remaining":0,"reset":"2026-01-15T12:00:00.75Z","whole_at_reset":true}]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, err := json.Marshal(provider.Observation{}); err != nil || string(got) != `{"dialect":""}` {
		t.Errorf("%s, %v", got, err)
	}
}

// A day of Google's ends at midnight in California, in summer and in winter, and on the days when the clock changes.
func TestGoogleDay(t *testing.T) {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Skip(err)
	}
	const body = `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
		{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"free_tier_requests","quotaId":"RequestsPerDay","quotaValue":"20"}]},
		{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"36s"}]}}`
	step := need.Fewer(7*time.Hour, time.Hour) // of each day some, in a week each hour
	for now := time.Date(2025, 1, 1, 0, 30, 0, 0, time.UTC); now.Year() < 2029; now = now.Add(step) {
		local := now.In(zone)
		want := time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone)
		if at, ok := read(t, "gemini", now, respond(429, body)).ComeBack(now); !ok || !at.Equal(want) {
			t.Fatalf("at %v: come back at %v, %v; want %v", now, at.UTC(), ok, want.UTC())
		}
	}
	o := read(t, "gemini", noon, respond(429, body))
	if o.RetryAfter != 0 || len(o.Notes) != 2 || !strings.Contains(o.Notes[0], "asks for 36s, and would refuse again") || !strings.Contains(o.Notes[1], "and that holds") {
		t.Errorf("of the two waits it does not say which holds: %v, %q", o.RetryAfter, o.Notes)
	}
	if o := read(t, "gemini", noon, respond(429, body, "Retry-After: 7")); o.RetryAfter != 7*time.Second {
		t.Errorf("what a header asks for is not what is said of every quota: %v", o.RetryAfter)
	}
}

// A policy with two names is one limit, whichever of them the remainder has. A name of several
// policies decides nothing.
func TestPolicyOfTwoNames(t *testing.T) {
	for _, c := range []struct{ policy, left, want string }{
		{`"fixed window";"api";q=500;w=300`, `"fixed window";r=499;t=20`, "api"},
		{`"fixed window";"api";q=500;w=300`, `"api";r=499;t=20`, "api"},
		{`"fixed window";"api";q=500;w=300`, `"fixed window";"api";r=499;t=20`, "api"},
		{`"fixed window";q=500;w=300`, `"fixed window";"api";r=499;t=20`, "fixed window"},
		{`"fixed window";"api";q=500;w=300, "fixed window";"pages";q=9;w=300`, `"fixed window";r=499;t=20`, "fixed window"},
		{`"fixed window";"api";q=500;w=300, "fixed window";"pages";q=9;w=300`, `"fixed window";"pages";r=8;t=20`, "pages"},
		{`"api";q=500;w=300`, `"other";r=499;t=20`, "other"},
	} {
		for _, dialect := range []string{"ietf", "generic", "huggingface"} {
			o := read(t, dialect, noon, respond(200, "", "RateLimit-Policy: "+c.policy, "RateLimit: "+c.left))
			if len(o.Limits) != 1 || o.Limits[0].Policy != c.want || len(o.Problems) > 0 {
				t.Errorf("%s: %s with %s: %+v, want that of %q", dialect, c.left, c.policy, o, c.want)
			}
		}
	}
}

// A client without a token at GitLab shares the limit of the address, as the name of the throttle
// says.
func TestGitLabWithoutAToken(t *testing.T) {
	for name, want := range map[string]provider.Scope{
		"throttle_unauthenticated_api": provider.IP, "throttle_unauthenticated_web": provider.IP, "throttle_unauthenticated": provider.IP, "throttle_authenticated_api": provider.Key, "": provider.Key,
	} {
		o := read(t, "gitlab", noon, respond(200, "", "RateLimit-Limit: 500", "RateLimit-Remaining: 499", "RateLimit-Reset: 1768478460", "RateLimit-Name: "+name))
		if len(o.Policies) != 1 || len(o.Limits) != 1 || o.Policies[0].Scope != want || o.Limits[0].Scope != want {
			t.Errorf("%q: %+v", name, o)
		}
	}
}
