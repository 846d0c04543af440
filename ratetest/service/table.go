package service

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/ratetest/internal/host"
)

const day = 24 * time.Hour

// tableRow is a provider: what it limits, and how it says so. To add one, write what its documentation says; nothing here
// knows how package quota reads it.
type tableRow struct {
	name, about string
	// presets are names of published limits, the default first, and own such as none are published of.
	presets []string
	own     []limitSet
	// extra are limits besides, in each of the sets.
	extra []quota.Policy
	// assume is how limits count of which the documentation does not say how, and assumed says so to people.
	assume  quota.Rule
	assumed string
	// midnight is when the provider's days begin, after midnight UTC.
	midnight time.Duration
	// cost is what a request takes of a limit, 0 if it does not count in it. Nil: 1.
	cost func(a *asked, p *quota.Policy) int64
	// route is what limits of a route are of, besides a key. Nil: method and path.
	route func(a *asked) string
	ban   *banRule
	// speak writes an answer: status and body are set for one that was served, status for one that was not.
	speak func(a *reply)
}

type limitSet struct {
	name     string
	policies []quota.Policy
}

// sets returns copies of its sets of limits.
func (r *tableRow) sets() []limitSet {
	var all []limitSet
	for _, name := range r.presets {
		p, ok := quota.LookupPreset(name)
		if !ok {
			panic("ratetest: no preset " + name)
		}
		all = append(all, limitSet{name, append(p.Policies, r.extra...)})
	}
	for _, s := range r.own {
		all = append(all, limitSet{s.name, append(append([]quota.Policy(nil), s.policies...), r.extra...)})
	}
	return all
}

func policy(name string, n int64, unit quota.Unit, window time.Duration, rule quota.Rule, scope quota.Scope) quota.Policy {
	return quota.Policy{Name: name, Unit: unit, Scope: scope, Rule: rule, Limit: n, Window: window}
}

type object = map[string]any

func (a *reply) set(name string, v any) { a.header.Set(name, fmt.Sprint(v)) }

// limit returns a limit that the request counts in, nil if it does not.
func (a *reply) limit(name string) *standing {
	for i := range a.limits {
		if a.limits[i].Name == name {
			return &a.limits[i]
		}
	}
	return nil
}

// tightest returns the limit that refused, or of which least is left; nil if the request counts in none.
func (a *reply) tightest() *standing {
	if a.by != nil {
		return a.by
	}
	var t *standing
	for i := range a.limits {
		if l := &a.limits[i]; t == nil || l.Left < t.Left {
			t = l
		}
	}
	return t
}

// fields writes limit, remaining and reset under names that begin alike.
func (a *reply) fields(prefix string, l *standing, reset any) {
	a.set(prefix+"Limit", l.Limit)
	a.set(prefix+"Remaining", l.Left)
	a.set(prefix+"Reset", reset)
}

// in returns whole seconds until an instant, up.
func (a *reply) in(t time.Time) int64 { return wholeSeconds(t.Sub(a.now)) }

func wholeSeconds(d time.Duration) int64 {
	return int64(host.RoundUp(max(d, 0), time.Second) / time.Second)
}

// secondOf is an instant in whole seconds since 1970, up.
func secondOf(t time.Time) int64 { return atSecond(t).Unix() }

func atSecond(t time.Time) time.Time {
	if whole := t.Truncate(time.Second); whole.Before(t) {
		return whole.Add(time.Second)
	}
	return t
}

func milliOf(t time.Time) int64 { return t.Add(time.Millisecond - 1).UnixMilli() }

// retryAfter asks a refused client to wait, in whole seconds, up. One that can never pass is not asked to.
func (a *reply) retryAfter() {
	if a.wait > 0 {
		a.set("Retry-After", wholeSeconds(a.wait))
	}
}

// refused writes the body of a refusal and reports whether it is one.
func (a *reply) refused(body any) bool {
	if a.by == nil {
		return false
	}
	a.body = body
	return true
}

// tokensToo is the cost where tokens count: their estimate.
func tokensToo(a *asked, p *quota.Policy) int64 {
	switch p.Unit {
	case quota.Tokens:
		return a.Tokens + a.Output
	case quota.Input:
		return a.Tokens
	case quota.Output:
		return a.Output
	}
	return 1
}

// structured is the IETF draft as it is since -08.
func (a *reply) structured(name func(*standing) string) {
	var policies, limits []string
	for i := range a.limits {
		l := &a.limits[i]
		if l.Whole.IsZero() {
			continue
		}
		n := strconv.Quote(name(l))
		policies = append(policies, fmt.Sprintf("%s;q=%d;w=%d", n, l.Limit, wholeSeconds(l.Window)))
		limits = append(limits, fmt.Sprintf("%s;r=%d;t=%d", n, l.Left, a.in(l.Whole)))
	}
	if policies != nil {
		a.set("RateLimit-Policy", strings.Join(policies, ", "))
		a.set("RateLimit", strings.Join(limits, ", "))
	}
}

func ownName(l *standing) string { return l.Name }

func (a *reply) violated() []string {
	names := []string{}
	for _, l := range a.limits {
		if l.Over {
			names = append(names, l.Name)
		}
	}
	return names
}

// ietfLimits are those of the draft's examples.
var ietfLimits = []quota.Policy{
	policy("burst", 100, quota.Requests, time.Minute, quota.Anchored, quota.Key),
	policy("daily", 1000, quota.Requests, day, quota.Anchored, quota.Key),
}

var table = []*tableRow{
	{
		name: "ietf", about: "The IETF draft's RateLimit fields; ietf:07 and ietf:06 are its earlier generations",
		own:     []limitSet{{"ietf", ietfLimits}, {"ietf:07", ietfLimits}, {"ietf:06", ietfLimits}},
		assumed: "both limits are the draft's examples; it leaves open how they count: in intervals that begin with a request",
		speak: func(a *reply) {
			var windows []string
			for _, l := range a.limits {
				windows = append(windows, fmt.Sprintf("%d;w=%d", l.Limit, wholeSeconds(l.Window)))
			}
			switch l := a.tightest(); a.preset {
			case "ietf:07":
				a.set("RateLimit", fmt.Sprintf("limit=%d, remaining=%d, reset=%d", l.Limit, l.Left, a.in(l.Whole)))
				a.set("RateLimit-Policy", strings.Join(windows, ", "))
			case "ietf:06":
				a.fields("RateLimit-", l, a.in(l.Whole))
				a.set("RateLimit-Policy", strings.Join(windows, ", "))
			default:
				a.structured(ownName)
			}
			if a.refused(object{
				"type": "https://iana.org/assignments/http-problem-types#quota-exceeded", "title": "Request cannot be satisfied as assigned quota has been exceeded",
				"violated-policies": a.violated(),
			}) {
				a.set("Content-Type", "application/problem+json")
				a.retryAfter()
			}
		},
	},
	{
		name: "cloudflare", about: "Cloudflare's client API", presets: []string{"cloudflare"},
		assume: quota.Anchored, assumed: "in intervals that begin with a request",
		speak: func(a *reply) {
			a.structured(func(*standing) string { return "default" })
			if a.refused(object{
				"success": false, "errors": []object{{"code": 971, "message": "Please wait and consider throttling your request speed"}},
				"messages": []string{}, "result": nil,
			}) {
				a.retryAfter()
			}
		},
	},
	{
		name: "generic", about: "Any server: 429 and Retry-After, in seconds, or with generic:date as a date",
		own: []limitSet{
			{"generic", []quota.Policy{policy("requests", 100, quota.Requests, time.Minute, quota.Rolling, quota.Key)}},
			{"generic:date", []quota.Policy{policy("requests", 100, quota.Requests, time.Minute, quota.Rolling, quota.Key)}},
		},
		assumed: "the limit is made up",
		speak: func(a *reply) {
			l := a.tightest()
			a.set("X-RateLimit-Limit", l.Limit)
			a.set("X-RateLimit-Remaining", l.Left)
			if a.refused(object{"error": "too many requests"}) && a.wait > 0 {
				a.retryAfter()
				if a.preset == "generic:date" {
					a.set("Retry-After", atSecond(a.now.Add(a.wait)).UTC().Format(http.TimeFormat))
				}
			}
		},
	},
	{
		name: "x-ratelimit-epoch", about: "X-RateLimit fields whose reset counts from 1970",
		own:     []limitSet{{"x-ratelimit-epoch", []quota.Policy{policy("requests", 60, quota.Requests, time.Minute, quota.Calendar, quota.Key)}}},
		assumed: "the limit is made up, of minutes of the clock",
		speak: func(a *reply) {
			l := a.tightest()
			a.fields("X-RateLimit-", l, secondOf(l.Whole))
			a.refused(object{"error": "too many requests"})
		},
	},
	{
		name: "x-ratelimit-seconds", about: "X-RateLimit fields whose reset counts from now",
		own:     []limitSet{{"x-ratelimit-seconds", []quota.Policy{policy("requests", 60, quota.Requests, time.Minute, quota.Anchored, quota.Key)}}},
		assumed: "the limit is made up, of minutes that begin with a request",
		speak: func(a *reply) {
			l := a.tightest()
			a.fields("X-RateLimit-", l, a.in(l.Whole))
			a.refused(object{"error": "too many requests"})
		},
	},
	{
		name: "heroku", about: "Heroku's Platform API: what is left of a bucket, and nothing else", presets: []string{"heroku"},
		speak: func(a *reply) {
			a.set("RateLimit-Remaining", a.tightest().Left)
			a.set("RateLimit-Multiplier", 1)
			a.refused(object{"id": "rate_limit", "message": "Your account reached the API rate limit\nPlease wait a few minutes before making new requests",
				"url": "https://devcenter.heroku.com/articles/platform-api-reference#rate-limits"})
		},
	},
	{
		name: "github", about: "GitHub's REST API: primary limits, and secondary ones of requests at once",
		presets: []string{"github", "github:unauthenticated", "github:search"},
		extra:   []quota.Policy{policy("search", 30, quota.Requests, time.Minute, quota.Anchored, quota.Key)},
		cost: func(a *asked, p *quota.Policy) int64 {
			if searching := strings.HasPrefix(a.path(), "/search/"); p.Name == "search" && !searching || p.Name == "requests" && searching {
				return 0
			}
			return 1
		},
		speak: func(a *reply) {
			a.set("X-GitHub-Media-Type", "github.v3; format=json")
			a.set("X-GitHub-Request-Id", fmt.Sprintf("%04X:1", a.n))
			l, resource := a.limit("requests"), "core"
			if l == nil {
				l, resource = a.limit("search"), "search"
			} else if a.preset == "github:search" {
				resource = "search"
			}
			a.fields("X-RateLimit-", l, secondOf(l.Whole))
			a.set("X-RateLimit-Used", l.Used())
			a.set("X-RateLimit-Resource", resource)
			if a.by == nil {
				return
			}
			a.status = http.StatusForbidden
			about := "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"
			if a.by.Rule == quota.Concurrency {
				a.set("Retry-After", 60)
				a.body = object{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", "documentation_url": about}
				return
			}
			a.body = object{"message": "API rate limit exceeded for user ID 1.", "documentation_url": about}
		},
	},
	{
		name: "shopify", about: "Shopify's Admin API: REST by calls in a leaking bucket, GraphQL by the cost of queries",
		presets: []string{"shopify"},
		extra:   []quota.Policy{{Name: "query cost", Unit: quota.Weight, Scope: quota.Key, Rule: quota.Bucket, Limit: 50, Window: time.Second, Burst: 1000}},
		cost: func(a *asked, p *quota.Policy) int64 {
			switch graph := strings.HasSuffix(a.path(), "/graphql.json"); {
			case graph != (p.Name == "query cost"):
				return 0
			case graph:
				return queryCost(a.Body)
			}
			return 1
		},
		speak: func(a *reply) {
			a.set("X-Shopid", 1)
			a.set("X-Shopify-Api-Version", "2025-01")
			if l := a.limit("requests"); l != nil {
				a.set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", l.Used(), most(&l.Policy)))
				if a.refused(object{"errors": "Exceeded 2 calls per second for api client. Reduce request rates to resume uninterrupted service."}) && a.wait > 0 {
					a.set("Retry-After", strconv.FormatFloat(host.RoundUp(a.wait, 100*time.Millisecond).Seconds(), 'f', 1, 64))
				}
				return
			}
			l := a.limit("query cost")
			cost := object{"requestedQueryCost": l.Cost, "actualQueryCost": l.Cost, "throttleStatus": object{
				"maximumAvailable": most(&l.Policy), "currentlyAvailable": l.Left, "restoreRate": float64(l.Limit) / l.Window.Seconds(),
			}}
			a.body = object{"data": object{}, "extensions": object{"cost": cost}}
			if a.by == nil {
				return
			}
			a.status = http.StatusOK
			if a.never {
				a.body = object{"errors": []object{{"message": "Query cost is too high", "extensions": object{"code": "MAX_COST_EXCEEDED", "cost": l.Cost, "maxCost": most(&l.Policy)}}}}
				return
			}
			cost["actualQueryCost"] = nil
			a.body = object{"errors": []object{{"message": "Throttled", "extensions": object{"code": "THROTTLED"}}}, "extensions": object{"cost": cost}}
		},
	},
	{
		name: "stripe", about: "Stripe's API: a field says which limiter refused", presets: []string{"stripe", "stripe:sandbox"},
		assume: quota.Bucket, assumed: "a bucket, as Stripe's engineers describe theirs",
		speak: func(a *reply) {
			a.set("Stripe-Version", "2026-08-26.dahlia")
			a.set("Request-Id", fmt.Sprintf("req_%014d", a.n))
			if a.refused(object{"error": object{
				"type": "rate_limit_error", "code": "rate_limit", "message": "Request rate limit exceeded. Learn more about rate limits at https://docs.stripe.com/rate-limits.",
			}}) {
				a.set("Stripe-Should-Retry", a.wait > 0)
				reason := "global-rate"
				if a.by.Rule == quota.Concurrency {
					reason = "global-concurrency"
				}
				a.set("Stripe-Rate-Limited-Reason", reason)
			}
		},
	},
	{
		name: "discord", about: "Discord's API: the bucket of a route, and a limit of the bot's", presets: []string{"discord"},
		extra:   []quota.Policy{policy("route", 5, quota.Requests, 5*time.Second, quota.Anchored, quota.Route)},
		assume:  quota.Anchored,
		assumed: "in intervals that begin with a request; the limit of routes is made up, as Discord says to read it from answers",
		speak: func(a *reply) {
			if a.by != nil && a.by.Name != "route" {
				a.set("X-RateLimit-Global", true)
				a.set("X-RateLimit-Scope", "global")
			} else {
				l := a.limit("route")
				h := fnv.New32a()
				h.Write([]byte(l.Who))
				after := host.RoundUp(l.Whole.Sub(a.now), time.Millisecond)
				a.fields("X-RateLimit-", l, seconds(time.Duration(milliOf(l.Whole))*time.Millisecond))
				a.set("X-RateLimit-Reset-After", seconds(after))
				a.set("X-RateLimit-Bucket", fmt.Sprintf("%08x", h.Sum32()))
			}
			if a.by == nil {
				return
			}
			if a.by.Name == "route" {
				a.set("X-RateLimit-Scope", "user")
			}
			a.retryAfter()
			a.body = object{"message": "You are being rate limited.", "retry_after": host.RoundUp(a.wait, time.Millisecond).Seconds(), "global": a.by.Name != "route"}
		},
	},
	{
		name: "x", about: "X's API v2: windows of 15 minutes, of a user and an endpoint",
		own:     []limitSet{{"x", []quota.Policy{policy("15 minutes", 900, quota.Requests, 15*time.Minute, quota.Anchored, quota.Route)}}},
		assumed: "the limit of each endpoint is that of the documentation's example",
		speak: func(a *reply) {
			l := a.tightest()
			a.set("X-Transaction-Id", fmt.Sprintf("%016x", a.n))
			a.fields("X-Rate-Limit-", l, secondOf(l.Whole))
			a.refused(object{"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429})
		},
	},
	{
		name: "slack", about: "Slack's Web API: Retry-After when it refuses, and nothing before",
		presets: []string{"slack:tier3", "slack:tier1", "slack:tier2", "slack:tier4"},
		assume:  quota.Rolling, assumed: "in any minute, for each method and token, without the bursts that Slack does not promise",
		route: func(a *asked) string { return strings.TrimPrefix(a.path(), "/api/") },
		speak: func(a *reply) {
			a.set("X-Slack-Req-Id", fmt.Sprintf("%032x", a.n))
			a.body = object{"ok": a.by == nil}
			if a.refused(object{"ok": false, "error": "ratelimited"}) {
				a.retryAfter()
			}
		},
	},
	{
		name: "notion", about: "Notion's API: three requests per second on average",
		own:     []limitSet{{"notion", []quota.Policy{policy("requests", 3, quota.Requests, time.Second, quota.Bucket, quota.Key)}}},
		assumed: "three may come at once: Notion promises some bursts and does not say how large",
		speak: func(a *reply) {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n)
			a.set("X-Notion-Request-Id", id)
			if a.refused(object{
				"object": "error", "status": 429, "code": "rate_limited", "message": "You have been rate limited. Please try again in a few minutes.", "request_id": id,
				"additional_data": object{"rate_limit_reason": "public_api_request_rate_limit", "retry_after": fmt.Sprint(wholeSeconds(a.wait))},
			}) {
				a.retryAfter()
			}
		},
	},
	{
		name: "reddit", about: "Reddit's Data API: what is used and left of ten minutes", presets: []string{"reddit"},
		speak: func(a *reply) {
			l := a.tightest()
			a.set("X-Ratelimit-Used", l.Used())
			a.set("X-Ratelimit-Remaining", fmt.Sprintf("%d.0", l.Left))
			a.set("X-Ratelimit-Reset", a.in(l.Whole))
			a.refused(object{"message": "Too Many Requests", "error": 429})
		},
	},
	{
		name: "okta", about: "Okta's API: minutes of an endpoint, and requests at once",
		own: []limitSet{{"okta", []quota.Policy{
			policy("requests", 600, quota.Requests, time.Minute, quota.Anchored, quota.Route), policy("concurrent", 75, quota.Concurrent, 0, quota.Concurrency, quota.Key),
		}}},
		assumed: "minutes begin with a request, and each endpoint has the limit of the documentation's example",
		speak: func(a *reply) {
			a.set("X-Okta-Request-Id", fmt.Sprintf("req%022d", a.n))
			l := a.limit("requests")
			a.fields("X-Rate-Limit-", l, secondOf(l.Whole))
			if a.refused(object{"errorCode": "E0000047", "errorSummary": "API call exceeded rate limit due to too many requests.", "errorLink": "E0000047", "errorCauses": []string{}}) &&
				a.by.Rule == quota.Concurrency {
				a.set("X-Rate-Limit-Limit", 0)
				a.set("X-Rate-Limit-Remaining", 0)
				a.set("X-Rate-Limit-Reset", secondOf(a.now)+60)
			}
		},
	},
	{
		name: "atlassian", about: "Jira's and Confluence's API: points of an hour, and bursts of an endpoint", presets: []string{"atlassian"},
		extra:   []quota.Policy{policy("burst", 100, quota.Requests, time.Second, quota.Anchored, quota.Route)},
		assumed: "a request costs one point; bursts count in seconds that begin with a request",
		speak: func(a *reply) {
			points, burst := a.limit("weight"), a.limit("burst")
			a.set("Atl-Traceid", fmt.Sprintf("%032x", a.n))
			n := `"global-app-quota"`
			a.set("RateLimit-Policy", fmt.Sprintf("%s;q=%d;w=%d", n, points.Limit, wholeSeconds(points.Window)))
			a.set("RateLimit", fmt.Sprintf("%s;r=%d;t=%d", n, points.Left, a.in(points.Whole)))
			shown := burst
			if a.by == points {
				shown = points
			}
			a.fields("X-RateLimit-", shown, atSecond(shown.Whole).UTC().Format(time.RFC3339))
			if shown.Left*5 < shown.Limit || points.Left*5 < points.Limit {
				a.set("X-RateLimit-NearLimit", true)
			}
			if a.refused(object{"errorMessages": []string{"Rate limit exceeded."}}) {
				a.set("RateLimit-Reason", map[bool]string{true: "jira-quota-global-based", false: "jira-burst-based"}[a.by == points])
				a.retryAfter()
			}
		},
	},
	{
		name: "groq", about: "Groq's API: requests and tokens, of a minute and of a day", presets: []string{"groq:free"},
		assumed: "tokens are estimated: one per four bytes of the body, and max_tokens",
		cost:    tokensToo,
		speak: func(a *reply) {
			a.set("X-Groq-Region", "ratetest")
			a.set("X-Request-Id", fmt.Sprintf("req_%020d", a.n))
			for _, name := range []string{"requests", "tokens"} { // requests are always those of a day, tokens those of a minute
				l := a.limit(name)
				a.set("X-Ratelimit-Limit-"+name, l.Limit)
				a.set("X-Ratelimit-Remaining-"+name, l.Left)
				a.set("X-Ratelimit-Reset-"+name, host.RoundUp(l.Whole.Sub(a.now), time.Millisecond))
			}
			if a.by == nil {
				return
			}
			what := map[string]string{"tokens": "tokens per minute (TPM)", "tokens per day": "tokens per day (TPD)", "requests": "requests per day (RPD)", "requests per minute": "requests per minute (RPM)"}[a.by.Name]
			says := fmt.Sprintf("Rate limit reached for model `%s` in organization `org_ratetest` service tier `on_demand` on %s: Limit %d, Used %d, Requested %d. Please try again in %v.",
				a.Model, what, a.by.Limit, a.by.Used(), a.by.Cost, host.RoundUp(a.wait, time.Millisecond))
			if a.never {
				a.status = http.StatusRequestEntityTooLarge
				says = fmt.Sprintf("Request too large for model `%s` in organization `org_ratetest` service tier `on_demand` on %s: Limit %d, Requested %d, please reduce your message size and try again.",
					a.Model, what, a.by.Limit, a.by.Cost)
			}
			a.retryAfter()
			kind, _, _ := strings.Cut(a.by.Name, " ")
			a.body = object{"error": object{"message": says, "type": kind, "code": "rate_limit_exceeded"}}
		},
	},
	{
		name: "azure-openai", about: "Azure OpenAI: tokens of a minute, and requests of its tenth, of a deployment",
		own: []limitSet{{"azure-openai", []quota.Policy{
			policy("requests", 120, quota.Requests, 10*time.Second, quota.Calendar, quota.Model), policy("tokens", 120_000, quota.Tokens, time.Minute, quota.Calendar, quota.Model),
		}}},
		assumed: "a deployment of 120,000 tokens a minute, to which 720 requests belong; intervals are those of the clock; tokens are estimated: one per four bytes of the body, and max_tokens",
		cost:    tokensToo,
		speak: func(a *reply) {
			a.set("Apim-Request-Id", fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n))
			a.set("X-Ms-Region", "Ratetest")
			for _, name := range []string{"requests", "tokens"} {
				l := a.limit(name)
				a.set("X-Ratelimit-Limit-"+name, l.Limit)
				a.set("X-Ratelimit-Remaining-"+name, l.Left)
				a.set("X-Ratelimit-Reset-"+name, a.in(l.Whole))
			}
			if a.by == nil {
				return
			}
			what := "call rate limit"
			if a.by.Name == "tokens" {
				what = "token rate limit"
			}
			says := fmt.Sprintf("Requests to the ChatCompletions_Create Operation have exceeded %s of your current pricing tier.", what)
			if a.wait > 0 {
				a.set("Retry-After-Ms", host.RoundUp(a.wait, time.Millisecond).Milliseconds())
				a.retryAfter()
				says += fmt.Sprintf(" Please retry after %d seconds.", wholeSeconds(a.wait))
			}
			a.body = object{"error": object{"code": "429", "message": says}}
		},
	},
	{
		name: "gemini", about: "The Gemini API's free tier: everything in the body of a refusal",
		own: []limitSet{{"gemini", []quota.Policy{
			policy("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", 10, quota.Requests, time.Minute, quota.Anchored, quota.Model),
			policy("GenerateContentInputTokensPerModelPerMinute-FreeTier", 250_000, quota.Input, time.Minute, quota.Anchored, quota.Model),
			policy("GenerateRequestsPerDayPerProjectPerModel-FreeTier", 250, quota.Requests, day, quota.Calendar, quota.Model),
		}}},
		assumed:  "the limits of gemini-2.5-flash; minutes begin with a request; days begin at midnight Pacific Standard Time, in summer too; tokens are estimated: one per four bytes of the body",
		midnight: 8 * time.Hour,
		cost:     tokensToo,
		speak: func(a *reply) {
			if a.by == nil {
				return
			}
			var violations []object
			for _, l := range a.limits {
				metric := "generativelanguage.googleapis.com/generate_content_free_tier_requests"
				if l.Unit == quota.Input {
					metric = "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count"
				}
				if l.Over {
					violations = append(violations, object{
						"quotaMetric": metric, "quotaId": l.Name, "quotaValue": fmt.Sprint(l.Limit), "quotaDimensions": object{"location": "global", "model": a.Model},
					})
				}
			}
			details := []object{{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}}
			says := "You exceeded your current quota, please check your plan and billing details."
			if a.wait > 0 {
				// A quota of a day asks for less than a minute, too.
				delay := seconds(min(a.wait, time.Minute)) + "s"
				says += " Please retry in " + delay + "."
				details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
			}
			a.body = object{"error": object{"code": 429, "message": says, "status": "RESOURCE_EXHAUSTED", "details": details}}
		},
	},
	binanceRow("binance", "Binance's API, as spot", "binance"),
	binanceRow("binance-spot", "Binance spot: weight of an address, orders of an account, by the clock; bans", "binance"),
	binanceRow("binance-futures", "Binance USDⓈ-M futures: weight of an address, orders of an account, by the clock; bans", "binance:futures"),
	{
		name: "bybit", about: "Bybit's API v5: a second of an endpoint, refused with 200; 403 and a ban for an address", presets: []string{"bybit"},
		extra:   []quota.Policy{policy("endpoint", 50, quota.Requests, time.Second, quota.Rolling, quota.Route)},
		assumed: "every endpoint has 50 per second; a ban takes ten minutes, the least that is documented",
		ban:     &banRule{scope: quota.IP, by: "requests", after: 1, atOnce: true, first: 10 * time.Minute, most: 10 * time.Minute},
		speak: func(a *reply) {
			if !a.until.IsZero() {
				a.set("Content-Type", "text/html")
				a.body = "<html><head><title>403 Forbidden</title></head><body>access too frequent</body></html>\n"
				return
			}
			l := a.limit("endpoint")
			a.set("X-Bapi-Limit", l.Limit)
			a.set("X-Bapi-Limit-Status", l.Left)
			a.set("X-Bapi-Limit-Reset-Timestamp", a.now.UnixMilli())
			a.body = object{"retCode": 0, "retMsg": "OK", "result": object{}, "retExtInfo": object{}, "time": a.now.UnixMilli()}
			if a.refused(object{"retCode": 10006, "retMsg": "Too many visits!", "result": object{}, "retExtInfo": object{}, "time": a.now.UnixMilli()}) {
				a.status = http.StatusOK
				a.set("X-Bapi-Limit-Reset-Timestamp", milliOf(a.now.Add(a.wait)))
			}
		},
	},
	{
		name: "kraken", about: "Kraken's spot REST API: a counter that decays, refused with 200; histories count twice, orders not",
		presets: []string{"kraken:starter", "kraken:intermediate", "kraken:pro"},
		cost: func(a *asked, _ *quota.Policy) int64 {
			switch call := a.path()[strings.LastIndexByte(a.path(), '/')+1:]; call {
			case "Ledgers", "QueryLedgers", "TradesHistory", "ClosedOrders":
				return 2
			case "AddOrder", "AddOrderBatch", "EditOrder", "AmendOrder", "CancelOrder", "CancelOrderBatch", "CancelAll":
				return 0
			}
			return 1
		},
		speak: func(a *reply) {
			a.body = object{"error": []string{}, "result": object{"unixtime": a.now.Unix()}}
			if a.refused(object{"error": []string{"EAPI:Rate limit exceeded"}}) {
				a.status = http.StatusOK
			}
		},
	},
	{
		name: "coinbase", about: "Coinbase Exchange: lazily filled buckets, of a profile, or of an address without a key",
		presets: []string{"coinbase"},
		extra:   []quota.Policy{{Name: "public", Unit: quota.Requests, Scope: quota.IP, Rule: quota.Bucket, Limit: 10, Window: time.Second, Burst: 15}},
		cost: func(a *asked, p *quota.Policy) int64 {
			if a.Keyed == (p.Scope == quota.IP) {
				return 0
			}
			return 1
		},
		speak: func(a *reply) {
			if a.by != nil {
				a.body = object{"message": map[bool]string{true: "Public rate limit exceeded", false: "Private rate limit exceeded"}[a.by.Scope == quota.IP]}
			}
		},
	},
	{
		name: "okx", about: "OKX's API v5: two seconds of an endpoint and instrument; orders of a sub-account", presets: []string{"okx"},
		extra:  []quota.Policy{policy("endpoint", 60, quota.Requests, 2*time.Second, "", quota.Route)},
		assume: quota.Rolling, assumed: "in any two seconds; every endpoint has 60",
		cost: func(a *asked, p *quota.Policy) int64 {
			if p.Name == "orders" && (a.Method != http.MethodPost || !strings.HasPrefix(a.path(), "/api/v5/trade/order") && a.path() != "/api/v5/trade/amend-order") {
				return 0
			}
			return 1
		},
		route: func(a *asked) string {
			instrument := ""
			if a.URL != nil {
				instrument = a.URL.Query().Get("instId")
			}
			if m := okxInstrument.FindSubmatch(a.Body); m != nil && instrument == "" {
				instrument = string(m[1])
			}
			return strings.TrimSpace(a.Method + " " + a.path() + " " + instrument)
		},
		speak: func(a *reply) {
			a.body = object{"code": "0", "msg": "", "data": []string{}}
			if a.by != nil {
				a.body = map[bool]object{true: {"code": "50061", "msg": "Sub-account rate limit exceeded. Please try again later."}, false: {"code": "50011", "msg": "Too Many Requests"}}[a.by.Name == "orders"]
			}
		},
	},
	{
		name: "cme", about: "CME's messaging controls, over HTTP: three seconds that begin with a message, rejects and log-out", presets: []string{"cme"},
		assumed: "the log-out takes ten seconds; what answers say is made up, the rule is theirs",
		ban:     &banRule{scope: quota.Key, by: "reject", beyond: "logout", atOnce: true, first: 10 * time.Second, most: 10 * time.Second},
		cost:    func(_ *asked, p *quota.Policy) int64 { return map[string]int64{"reject": 1}[p.Name] },
		speak: func(a *reply) {
			switch {
			case !a.until.IsZero():
				a.body = object{"message": "logout", "reason": "message rate above the log-out threshold"}
			case a.by != nil:
				a.body = object{"message": "reject", "reason": "message rate above the reject threshold"}
			}
		},
	},
}

var okxInstrument = regexp.MustCompile(`"instId"\s*:\s*"([^"]{1,60})"`)

// seconds writes a duration in seconds, without zeros at the end.
func seconds(d time.Duration) string {
	s := strings.TrimRight(fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second), "0")
	return strings.TrimSuffix(s, ".")
}

var connection = regexp.MustCompile(`\b(?:first|last)\s*:\s*([0-9]{1,5})`)

// queryCost is what Shopify documents: ten points for a mutation, two and one per object for a connection, one otherwise.
func queryCost(body []byte) int64 {
	if strings.Contains(string(body), "mutation") {
		return 10
	}
	var cost int64
	for _, m := range connection.FindAllSubmatch(body, 100) {
		n, _ := strconv.ParseInt(string(m[1]), 10, 64)
		cost += 2 + n
	}
	return max(cost, 1)
}

// interval writes a window as Binance does: 1M, 10S.
func interval(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "D"}, {time.Hour, "H"}, {time.Minute, "M"}} {
		if d%u.unit == 0 {
			return fmt.Sprint(int64(d/u.unit)) + u.name
		}
	}
	return fmt.Sprint(int64(d/time.Second)) + "S"
}

// binanceRow is one of its markets.
func binanceRow(name, about, preset string) *tableRow {
	return &tableRow{
		name: name, about: about, presets: []string{preset},
		assumed: "ten refusals in a row are a ban: documented is that repeated ones are, from two minutes to three days",
		ban:     &banRule{scope: quota.IP, after: 10, first: 2 * time.Minute, most: 3 * day},
		cost: func(a *asked, p *quota.Policy) int64 {
			call := a.path()[strings.LastIndexByte(a.path(), '/')+1:]
			ordering := a.Method == http.MethodPost && (call == "order" || call == "batchOrders")
			if p.Unit == quota.Orders {
				return map[bool]int64{true: 1}[ordering]
			}
			switch call {
			case "exchangeInfo", "allOrders", "myTrades", "account":
				return 20
			case "depth":
				if a.URL != nil {
					if n, _ := strconv.Atoi(a.URL.Query().Get("limit")); n > 1000 {
						return 250
					} else if n > 500 {
						return 50
					} else if n > 100 {
						return 25
					}
				}
				return 5
			}
			return 1
		},
		speak: func(a *reply) {
			if !a.until.IsZero() {
				a.status = http.StatusTeapot
				a.set("Retry-After", a.in(a.until))
				a.body = object{"code": -1003, "msg": fmt.Sprintf("Way too much request weight used; IP banned until %d. Please use the websocket for live updates to avoid bans.", milliOf(a.until))}
				return
			}
			a.set("X-Mbx-Uuid", fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n))
			for i := range a.limits {
				l := &a.limits[i]
				field := "X-Mbx-Used-Weight-"
				if l.Unit == quota.Orders {
					field = "X-Mbx-Order-Count-"
				} else {
					a.set("X-Mbx-Used-Weight", l.Used())
				}
				a.set(field+interval(l.Window), l.Used())
			}
			if a.by == nil {
				return
			}
			a.retryAfter()
			if a.by.Unit == quota.Orders {
				a.body = object{"code": -1015, "msg": fmt.Sprintf("Too many new orders; current limit is %d orders per %v.", a.by.Limit, a.by.Window)}
				return
			}
			a.body = object{"code": -1003, "msg": fmt.Sprintf("Too much request weight used; current limit is %d request weight per %v.", a.by.Limit, a.by.Window)}
		},
	}
}
