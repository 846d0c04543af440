package service

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// businesses are providers of business software.
func businesses() []*tableRow {
	return []*tableRow{hubspot(), zendesk(), dockerHub(), monday()}
}

func hubspotSet(name string, tenSeconds, perDay int64) limitSet {
	return limitSet{name, []provider.Policy{
		policy("10 seconds", tenSeconds, requests, 10*time.Second, rolling, perKey),
		policy("day", perDay, requests, day, calendar, perKey),
	}}
}

func hubspot() *tableRow {
	return &tableRow{
		name: "hubspot", about: "HubSpot's API: ten seconds that roll, days, and searches that are told nothing",
		limits:  []limitSet{hubspotSet("hubspot:free", 100, 250_000), hubspotSet("hubspot:professional", 190, 625_000)},
		extra:   []provider.Policy{policy("search", 5, requests, time.Second, rolling, perResource)},
		assumed: "days end at midnight UTC, where HubSpot's do in the zone of the account; a search counts in all three",
		cost: func(a *asked, p *provider.Policy) int64 {
			if p.Name == "search" && !strings.HasSuffix(a.path(), "/search") {
				return 0
			}
			return 1
		},
		api: hubspotAPI(),
		speak: func(a *reply) {
			a.set("X-HubSpot-Correlation-Id", fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n))
			ten, days := a.limit("10 seconds"), a.limit("day")
			if a.limit("search") == nil {
				a.set("X-HubSpot-RateLimit-Max", ten.Limit)
				a.set("X-HubSpot-RateLimit-Remaining", ten.Left)
				a.set("X-HubSpot-RateLimit-Interval-Milliseconds", ten.Window.Milliseconds())
				a.set("X-HubSpot-RateLimit-Daily", days.Limit)
				a.set("X-HubSpot-RateLimit-Daily-Remaining", days.Left)
				a.set("X-HubSpot-RateLimit-Secondly", 10) // not enforced for years
				a.set("X-HubSpot-RateLimit-Secondly-Remaining", 9)
			}
			if a.by == nil {
				return
			}
			name := map[string]string{"10 seconds": "TEN_SECONDLY_ROLLING", "day": "DAILY", "search": "SECONDLY"}[a.by.Name]
			a.body = object{
				"status": "error", "message": fmt.Sprintf("You have reached your %s limit.", strings.ToLower(name)),
				"errorType":     "RATE_LIMIT",
				"correlationId": a.header.Get("X-HubSpot-Correlation-Id"), "policyName": name,
				"groupName": "publicapi:private-apps:1",
			}
		},
	}
}

func zendeskSet(name string, perMinute int64) limitSet {
	return set(name, policy("requests", perMinute, requests, time.Minute, calendar, perKey))
}

func zendesk() *tableRow {
	return &tableRow{
		name: "zendesk", about: "Zendesk's API: minutes of an account, and of endpoints in a field for each",
		limits: []limitSet{zendeskSet("zendesk:team", 200), zendeskSet("zendesk:professional", 400),
			zendeskSet("zendesk:enterprise", 700)},
		extra: []provider.Policy{
			policy("tickets-index", 100, requests, time.Minute, calendar, perRoute),
			policy("incremental export", 10, requests, time.Minute, calendar, perResource),
			policy("deep pages of tickets", 50, requests, time.Minute, calendar, perResource),
			policy("updates of tickets", 100, requests, time.Minute, calendar, perResource),
		},
		assumed: "in minutes of the clock; the list of tickets has the limit of the documentation's example",
		cost: func(a *asked, p *provider.Policy) int64 {
			switch p.Name {
			case "tickets-index":
				return one(a.Method == http.MethodGet && strings.TrimSuffix(a.path(), ".json") == "/api/v2/tickets")
			case "incremental export":
				return one(strings.HasPrefix(a.path(), "/api/v2/incremental/"))
			case "deep pages of tickets":
				if a.URL == nil || a.Method != http.MethodGet || !strings.HasPrefix(a.path(), "/api/v2/tickets") {
					return 0
				}
				page, _ := strconv.Atoi(a.URL.Query().Get("page"))
				return one(page > 500)
			case "updates of tickets":
				return one(a.Method == http.MethodPut && strings.HasPrefix(a.path(), "/api/v2/tickets/"))
			}
			return 1
		},
		route: func(*asked) string { return "endpoint" }, // the limit is of one endpoint, whatever its path
		speak: func(a *reply) {
			a.set("X-Zendesk-Zorg", "yes")
			l := a.limit("requests")
			a.set("X-Rate-Limit", l.Limit)
			a.set("X-Rate-Limit-Remaining", l.Left)
			a.fields("RateLimit-", l, a.in(l.Whole))
			if l := a.limit("tickets-index"); l != nil {
				a.set("Zendesk-RateLimit-Tickets-Index",
					fmt.Sprintf("total=%d; remaining=%d; resets=%d", l.Limit, l.Left, a.in(l.Whole)))
			}
			if a.by == nil {
				return
			}
			what := "API"
			if a.by.Name == "incremental export" {
				what = "incremental export API"
			}
			a.body = object{"error": "APIRateLimitExceeded",
				"description": fmt.Sprintf("Number of allowed %s requests per minute exceeded", what)}
			a.retryAfter()
		},
	}
}

// one is 1 if the request counts, and 0 if not.
func one(counts bool) int64 {
	if counts {
		return 1
	}
	return 0
}

func dockerHub() *tableRow {
	return &tableRow{
		name: "docker-hub", about: "Docker Hub: pulls in six hours that roll, of an address or a user; whoever asks with " +
			"HEAD is told, and counts for nothing",
		limits: []limitSet{
			set("docker-hub:unauthenticated", policy("requests", 100, requests, 6*time.Hour, rolling, perIP)),
			set("docker-hub:personal", policy("requests", 200, requests, 6*time.Hour, rolling, perKey)),
		},
		assumed: "the other limit, of all requests of an address, is not published and not enforced",
		cost: func(a *asked, _ *provider.Policy) int64 {
			switch {
			case !strings.Contains(a.path(), "/manifests/"):
				return 0
			case a.Method == http.MethodHead:
				return looks
			}
			return 1
		},
		speak: func(a *reply) {
			a.set("Docker-Distribution-Api-Version", "registry/2.0")
			l := a.limit("requests")
			if l == nil {
				return
			}
			a.set("RateLimit-Limit", fmt.Sprintf("%d;w=%d", l.Limit, wholeSeconds(l.Window)))
			a.set("RateLimit-Remaining", fmt.Sprintf("%d;w=%d", l.Left, wholeSeconds(l.Window)))
			source := a.Addr
			if l.Scope == provider.Key && a.Keyed {
				source = fmt.Sprintf("00000000-0000-4000-8000-%012d", 1)
			}
			a.set("Docker-RateLimit-Source", source)
			what := "pull rate limit"
			if l.Scope == provider.IP {
				what = "unauthenticated pull rate limit"
			}
			a.refused(object{"errors": []object{{
				"code":    "TOOMANYREQUESTS",
				"message": fmt.Sprintf("You have reached your %s. https://www.docker.com/increase-rate-limit", what),
			}}})
		},
	}
}

// The limits and the refusals are those of developer.monday.com/api-reference/docs/rate-limits and of its
// changelog for version 2025-07. What a query costs is that of community.monday.com, thread 17444, and of the
// examples of the documentation. All looked up in 2026-11.
func monday() *tableRow {
	reads := policy("reads", 5_000_000, weight, time.Minute, anchored, perKey)
	plan := func(name string, calls int64) limitSet {
		return set("monday:"+name, reads, policy("day", calls, requests, day, calendar, perKey))
	}
	return &tableRow{
		name: "monday", about: "monday.com's GraphQL API: calls of a day by the plan, and complexity of a minute",
		limits: []limitSet{plan("standard", 1000), plan("pro", 10_000), plan("enterprise", 25_000), set("monday", reads)},
		extra:  []provider.Policy{policy("writes", 5_000_000, weight, time.Minute, anchored, perKey)},
		assumed: "which fields are lists; a minute begins with its first call; requests at once and of an address are " +
			"free",
		cost: func(a *asked, p *provider.Policy) int64 {
			if p.Unit == requests {
				return 1
			}
			points, mutates := complexity(a.Body)
			if mutates != (p.Name == "writes") {
				return 0
			}
			return points
		},
		speak: speakMonday,
	}
}

// speakMonday answers a query, of which it has the complexity alone, if that is asked for.
func speakMonday(a *reply) {
	data := object{}
	a.body = object{"data": data, "account_id": 1}
	_, fields, _ := asksGraph(a.Body)
	for _, f := range fields {
		if l := cmp.Or(a.limit("reads"), a.limit("writes")); f.name == "complexity" && l != nil {
			data["complexity"] = object{"before": l.Left + l.Cost, "query": l.Cost, "after": l.Left, "reset_in_x_seconds": a.in(l.Whole)}
		}
	}
	code, message := "COMPLEXITY_BUDGET_EXHAUSTED", "Complexity budget exhausted"
	extensions := object{}
	switch {
	case a.by == nil:
		return
	case a.by.Name == "day":
		code, message = "DAILY_LIMIT_EXCEEDED", "Daily limit exceeded"
	default:
		extensions["retry_in_seconds"] = wholeSeconds(a.wait)
	}
	extensions["code"] = code
	a.refused(object{"errors": []object{{"message": message, "extensions": extensions}}, "account_id": 1})
}
