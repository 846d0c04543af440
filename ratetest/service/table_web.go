package service

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// APIs of the web.
func webs() []*tableRow {
	return []*tableRow{
		herokuRow(),
		githubRow(),
		shopifyRow(),
		stripeRow(),
		discordRow(),
		xRow(),
		slackRow(),
		notionRow(),
		redditRow(),
		oktaRow(),
		atlassianRow(),
	}
}

func herokuRow() *tableRow {
	return &tableRow{
		name: "heroku", about: "Heroku's Platform API: what is left of a bucket, and nothing else",
		limits: []limitSet{
			set("heroku", policy("requests", 4500, requests, time.Hour, inBucket, perKey)),
		},
		speak: func(a *reply) {
			a.set("RateLimit-Remaining", a.tightest().Left)
			a.set("RateLimit-Multiplier", 1)
			a.refused(object{"id": "rate_limit",
				"message": "Your account reached the API rate limit\nPlease wait a few minutes before making new requests",
				"url":     "https://devcenter.heroku.com/articles/platform-api-reference#rate-limits"})
		},
	}
}

func githubRow() *tableRow {
	return &tableRow{
		name: "github", about: "GitHub's REST API: primary limits, and secondary ones of requests at once",

		limits: []limitSet{
			set("github", policy("requests", 5000, requests, time.Hour, anchored, perResource),
				policy("concurrent", 100, concurrent, 0, atOnce, perKey)),
			set("github:unauthenticated", policy("requests", 60, requests, time.Hour, anchored, perIP)),
			set("github:search", policy("requests", 30, requests, time.Minute, anchored, perKey)),
		},
		extra: []provider.Policy{
			policy("search", 30, requests, time.Minute, anchored, perResource),
			policy("code_search", 10, requests, time.Minute, anchored, perResource),
			policy("graphql", 5000, weight, time.Hour, anchored, perResource),
			policy("without a token", 60, requests, time.Hour, anchored, perResource),
			policy("search without a token", 10, requests, time.Minute, anchored, perResource),
		},
		cost: func(a *asked, p *provider.Policy) int64 {
			switch name := githubLimit(a); p.Name {
			case "requests":
				return one(name == "requests" || name == "without a token" && p.Scope == perIP)
			case "concurrent":
				return 1
			case "graphql":
				return one(name == p.Name) * calledLists(a.Body)
			default:
				return one(name == p.Name)
			}
		},
		api: githubAPI(),
		speak: func(a *reply) {
			a.set("X-GitHub-Media-Type", "github.v3; format=json")
			a.set("X-GitHub-Request-Id", fmt.Sprintf("%04X:1", a.n))
			resource := githubCounts(a.asked)
			l := a.limit(githubLimit(a.asked))
			if l == nil {
				a.body = object{"resources": object{}}
				return
			}
			if resource == "core" && a.preset == "github:search" {
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
			if a.by.Rule == provider.Concurrency {
				a.set("Retry-After", 60)
				a.body = object{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try " +
					"again.", "documentation_url": about}
				return
			}
			a.body = object{"message": "API rate limit exceeded for user ID 1.", "documentation_url": about}
		},
	}
}

// githubCounts returns the resource of a request; empty: it counts in none.
func githubCounts(a *asked) string {
	path := a.path()
	switch {
	case path == "/rate_limit":
		return ""
	case path == "/graphql":
		return "graphql"
	case path == "/search/code":
		return "code_search"
	case strings.HasPrefix(path, "/search/"):
		return "search"
	}
	return "core"
}

// githubLimit returns the limit of a request's resource; empty: it counts in none.
func githubLimit(a *asked) string {
	limit := githubCounts(a)
	if limit == "core" {
		limit = "requests"
	}
	switch {
	case a.Keyed:
		return limit
	case limit == "requests":
		return "without a token"
	case limit == "search":
		return "search without a token"
	}
	return limit
}

func shopifyRow() *tableRow {
	return &tableRow{
		name: "shopify", about: "Shopify's Admin API: REST by calls in a leaking bucket, GraphQL by the cost of queries",

		limits: []limitSet{
			set("shopify", policy("requests", 40, requests, 20*time.Second, inBucket, perResource)),
		},
		extra: []provider.Policy{{Name: "query cost", Unit: provider.Weight, Scope: provider.Resource, Rule: provider.Bucket,
			Limit: 50, Window: time.Second, Burst: 1000}},
		cost: func(a *asked, p *provider.Policy) int64 {
			switch graph := queriesShopify(a); {
			case graph != (p.Name == "query cost"):
				return 0
			case graph:
				return queryCost(a.Body)
			}
			return 1
		},
		resource: func(a *asked) string { return map[bool]string{true: "graphql", false: "rest"}[queriesShopify(a)] },
		api:      shopifyAPI(),
		speak: func(a *reply) {
			a.set("X-Shopid", 1)
			a.set("X-Shopify-Api-Version", "2025-01")
			if l := a.limit("requests"); l != nil {
				a.set("X-Shopify-Shop-Api-Call-Limit", fmt.Sprintf("%d/%d", l.Used(), most(&l.Policy)))
				if a.refused(object{"errors": "Exceeded 2 calls per second for api client. Reduce request rates to resume " +
					"uninterrupted service."}) && a.wait > 0 {
					a.set("Retry-After", strconv.FormatFloat(host.RoundUp(a.wait, 100*time.Millisecond).Seconds(), 'f', 1, 64))
				}
				return
			}
			l := a.limit("query cost")
			cost := object{"requestedQueryCost": l.Cost, "actualQueryCost": l.Cost, "throttleStatus": object{
				"maximumAvailable": most(&l.Policy), "currentlyAvailable": l.Left,
				"restoreRate": float64(l.Limit) / l.Window.Seconds(),
			}}
			a.body = object{"data": object{}, "extensions": object{"cost": cost}}
			if a.by == nil {
				return
			}
			a.status = http.StatusOK
			if a.never {
				a.body = object{"errors": []object{{"message": "Query cost is too high",
					"extensions": object{"code": "MAX_COST_EXCEEDED", "cost": l.Cost, "maxCost": most(&l.Policy)}}}}
				return
			}
			cost["actualQueryCost"] = nil
			a.body = object{"errors": []object{{"message": "Throttled", "extensions": object{"code": "THROTTLED"}}},
				"extensions": object{"cost": cost}}
		},
	}
}

func queriesShopify(a *asked) bool { return strings.HasSuffix(a.path(), "/graphql.json") }

func stripeRow() *tableRow {
	return &tableRow{
		name: "stripe", about: "Stripe's API: a field says which limiter refused",
		limits: []limitSet{
			set("stripe", policy("requests", 100, requests, time.Second, inBucket, perKey)),
			set("stripe:sandbox", policy("requests", 25, requests, time.Second, inBucket, perKey)),
		},
		assumed: "a bucket, as Stripe's engineers describe theirs",
		api:     stripeAPI(),
		speak: func(a *reply) {
			a.set("Stripe-Version", "2026-08-26.dahlia")
			a.set("Request-Id", fmt.Sprintf("req_%014d", a.n))
			if a.refused(object{"error": object{
				"type": "rate_limit_error", "code": "rate_limit",
				"message": "Request rate limit exceeded. Learn more about rate limits at https://docs.stripe.com/rate-limits.",
			}}) {
				a.set("Stripe-Should-Retry", a.wait > 0)
				reason := "global-rate"
				if a.by.Rule == provider.Concurrency {
					reason = "global-concurrency"
				}
				a.set("Stripe-Rate-Limited-Reason", reason)
			}
		},
	}
}

func discordRow() *tableRow {
	return &tableRow{
		name: "discord", about: "Discord's API: the bucket of a route, and a limit of the bot's",
		limits: []limitSet{
			set("discord", policy("requests", 50, requests, time.Second, anchored, perKey)),
		},
		extra: []provider.Policy{policy("route", 5, requests, 5*time.Second, anchored, perRoute)},
		assumed: "in intervals that begin with a request; the limit of routes is made up, as Discord says to read it from " +
			"answers",
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
			a.body = object{"message": "You are being rate limited.",
				"retry_after": host.RoundUp(a.wait, time.Millisecond).Seconds(), "global": a.by.Name != "route"}
		},
	}
}

func xRow() *tableRow {
	return &tableRow{
		name: "x", about: "X's API v2: windows of 15 minutes, of a user and an endpoint",
		limits:  []limitSet{set("x", policy("15 minutes", 900, requests, 15*time.Minute, anchored, perRoute))},
		assumed: "the limit of each endpoint is that of the documentation's example",
		speak: func(a *reply) {
			l := a.tightest()
			a.set("X-Transaction-Id", fmt.Sprintf("%016x", a.n))
			a.fields("X-Rate-Limit-", l, secondOf(l.Whole))
			a.refused(object{"title": "Too Many Requests", "detail": "Too Many Requests", "type": "about:blank", "status": 429})
		},
	}
}

func slackRow() *tableRow {
	return &tableRow{
		name: "slack", about: "Slack's Web API: Retry-After when it refuses, and nothing before",

		limits: []limitSet{
			set("slack:tier3", policy("requests", 50, requests, time.Minute, rolling, perRoute)),
			set("slack:tier1", policy("requests", 1, requests, time.Minute, rolling, perRoute)),
			set("slack:tier2", policy("requests", 20, requests, time.Minute, rolling, perRoute)),
			set("slack:tier4", policy("requests", 100, requests, time.Minute, rolling, perRoute)),
		},
		assumed: "in any minute, for each method and token, without the bursts that Slack does not promise",
		route:   func(a *asked) string { return strings.TrimPrefix(a.path(), "/api/") },
		api:     slackAPI(),
		speak: func(a *reply) {
			a.set("X-Slack-Req-Id", fmt.Sprintf("%032x", a.n))
			a.body = object{"ok": a.by == nil}
			if a.refused(object{"ok": false, "error": "ratelimited"}) {
				a.retryAfter()
			}
		},
	}
}

func notionRow() *tableRow {
	return &tableRow{
		name: "notion", about: "Notion's API: a budget for each minute, of each connection",
		limits: []limitSet{
			set("notion", policy("requests", 180, requests, time.Minute, anchored, perKey)),
			set("notion:business", policy("requests", 600, requests, time.Minute, anchored, perKey)),
		},
		assumed: "a minute begins with a request, and the workspace has enough for all of its connections",
		api:     notionAPI(),
		speak: func(a *reply) {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n)
			a.set("X-Notion-Request-Id", id)
			if a.refused(object{
				"object": "error", "status": 429, "code": "rate_limited",
				"message": "You have been rate limited. Please try again in a few minutes.", "request_id": id,
				"additional_data": object{"rate_limit_reason": "public_api_request_rate_limit",
					"retry_after": fmt.Sprint(wholeSeconds(a.wait))},
			}) {
				a.retryAfter()
			}
		},
	}
}

func redditRow() *tableRow {
	return &tableRow{
		name: "reddit", about: "Reddit's Data API: what is used and left of ten minutes",
		limits: []limitSet{
			set("reddit", policy("requests", 1000, requests, 10*time.Minute, anchored, perKey)),
		},
		speak: func(a *reply) {
			l := a.tightest()
			a.set("X-Ratelimit-Used", l.Used())
			a.set("X-Ratelimit-Remaining", fmt.Sprintf("%d.0", l.Left))
			a.set("X-Ratelimit-Reset", a.in(l.Whole))
			a.refused(object{"message": "Too Many Requests", "error": 429})
		},
	}
}

func oktaRow() *tableRow {
	return &tableRow{
		name: "okta", about: "Okta's API: minutes of an endpoint, and requests at once",
		limits: []limitSet{set("okta", policy("requests", 600, requests, time.Minute, anchored, perRoute),
			policy("concurrent", 75, concurrent, 0, atOnce, perKey))},
		assumed: "minutes begin with a request, and each endpoint has the limit of the documentation's example",
		speak: func(a *reply) {
			a.set("X-Okta-Request-Id", fmt.Sprintf("req%022d", a.n))
			l := a.limit("requests")
			a.fields("X-Rate-Limit-", l, secondOf(l.Whole))
			if a.refused(object{"errorCode": "E0000047",
				"errorSummary": "API call exceeded rate limit due to too many requests.", "errorLink": "E0000047",
				"errorCauses": []string{}}) &&
				a.by.Rule == provider.Concurrency {
				a.set("X-Rate-Limit-Limit", 0)
				a.set("X-Rate-Limit-Remaining", 0)
				a.set("X-Rate-Limit-Reset", secondOf(a.now)+60)
			}
		},
	}
}

func atlassianRow() *tableRow {
	return &tableRow{
		name: "atlassian", about: "Jira's and Confluence's API: points of an hour, and bursts of an endpoint",
		limits: []limitSet{
			set("atlassian", policy("weight", 65_000, weight, time.Hour, calendar, perKey)),
			set("jira", policy("weight", 65_000, weight, time.Hour, calendar, perKey)),
		},
		extra:   []provider.Policy{policy("burst", 100, requests, time.Second, anchored, perRoute)},
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
				a.set("RateLimit-Reason",
					map[bool]string{true: "jira-quota-global-based", false: "jira-burst-based"}[a.by == points])
				a.retryAfter()
			}
		},
	}
}

var connection = regexp.MustCompile(`\b(?:first|last)\s*:\s*([0-9]{1,5})`)

// queryCost is the cost that Shopify documents. A mutation costs ten points. A connection costs
// two, and one per object. Anything else costs one.
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
