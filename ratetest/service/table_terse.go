package service

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// terse are providers with one limit or two, of which answers state little. They have no endpoints.
func terse() []*tableRow {
	return []*tableRow{
		alpacaRow(), arxivRow(), cohereRow(), crossrefRow(), deribitRow(), fastlyRow(), huggingfaceRow(), linearRow(),
		graphRow(), openrouterRow(), perplexityRow(), replicateRow(), edgarRow(), trelloRow(), twilioRow(),
	}
}

func alpacaRow() *tableRow {
	return &tableRow{
		name: "alpaca", about: "Alpaca's trading API: a minute of an account, in X-RateLimit fields",
		limits:  []limitSet{set("alpaca", policy("requests", 200, requests, time.Minute, calendar, perKey))},
		assumed: "in minutes of the clock",
		speak: func(a *reply) {
			l := a.limit("requests")
			a.fields("X-RateLimit-", l, secondOf(l.Whole))
			a.refused(object{"code": 42910000, "message": "rate limit exceeded"})
		},
	}
}

func arxivRow() *tableRow {
	return &tableRow{
		name: "arxiv", about: "arXiv's API: one request in three seconds, one at a time, of an address",
		limits: []limitSet{set("arxiv", policy("requests", 1, requests, 3*time.Second, inBucket, perIP),
			policy("concurrent", 1, concurrent, 0, atOnce, perIP))},
		assumed: "three seconds apart, and the refusal has no JSON",
		speak:   func(a *reply) { a.refused("Rate exceeded.") },
	}
}

func cohereRow() *tableRow {
	return &tableRow{
		name: "cohere", about: "Cohere's API: a minute of an endpoint, and with a trial key a month of all",
		limits: []limitSet{
			set("cohere:trial", policy("requests", 20, requests, time.Minute, rolling, perRoute),
				policy("month", 1000, requests, 30*day, anchored, perKey)),
			set("cohere:production", policy("requests", 500, requests, time.Minute, rolling, perRoute)),
		},
		assumed: "in any minute, and in months of thirty days that begin with a request",
		speak: func(a *reply) {
			if l := a.limit("requests"); a.preset == "cohere:trial" {
				a.set("X-Trial-Endpoint-Call-Limit", l.Limit)
				a.set("X-Trial-Endpoint-Call-Remaining", l.Left)
			}
			a.refused(object{"message": "You are using a Trial key, which is limited to 20 API calls / minute."})
		},
	}
}

func crossrefRow() *tableRow {
	limits := func(name string, n, open int64) limitSet {
		return set(name, policy("requests", n, requests, time.Second, rolling, perIP),
			policy("concurrent", open, concurrent, 0, atOnce, perIP))
	}
	return &tableRow{
		name: "crossref", about: "Crossref's API: a second of an address, and requests at once, in fields without a reset",
		limits:  []limitSet{limits("crossref:public", 5, 1), limits("crossref:polite", 10, 3)},
		assumed: "in any second",
		speak: func(a *reply) {
			a.set("X-Rate-Limit-Limit", a.limit("requests").Limit)
			a.set("X-Rate-Limit-Interval", "1s")
			a.set("X-Concurrency-Limit", a.limit("concurrent").Limit)
			a.set("X-Api-Pool", strings.TrimPrefix(a.preset, "crossref:"))
			a.refused(object{"status": "failed", "message-type": "rate-limit-exceeded"})
		},
	}
}

func deribitRow() *tableRow {
	return &tableRow{
		name: "deribit", about: "Deribit's API: credits of a sub-account in a bucket, refused with a code",
		limits:  []limitSet{set("deribit", bucket(100, 20, requests, time.Second, perKey))},
		assumed: "a request costs one credit of a hundred; a refusal has status 400, and ends no session",
		speak: func(a *reply) {
			a.body = object{"jsonrpc": "2.0", "result": object{}, "usDiff": 100}
			if a.refused(object{"jsonrpc": "2.0", "usDiff": 100,
				"error": object{"code": 10028, "message": "too_many_requests"}}) {
				a.status = http.StatusBadRequest
			}
		},
	}
}

func fastlyRow() *tableRow {
	return &tableRow{
		name: "fastly", about: "Fastly's API: an hour of the requests that change something",
		limits:  []limitSet{set("fastly", policy("requests", 1000, requests, time.Hour, anchored, perKey))},
		assumed: "an hour begins with a request",
		cost: func(a *asked, _ *provider.Policy) int64 {
			return one(a.Method != http.MethodGet && a.Method != http.MethodHead)
		},
		speak: func(a *reply) {
			if l := a.limit("requests"); l != nil {
				a.set("Fastly-RateLimit-Remaining", l.Left)
				a.set("Fastly-RateLimit-Reset", secondOf(l.Whole))
			}
			a.refused(object{"msg": "Rate limit exceeded"})
		},
	}
}

func huggingfaceRow() *tableRow {
	limit := func(name string, n int64, scope provider.Scope) limitSet {
		return set(name, policy("requests", n, requests, 5*time.Minute, calendar, scope))
	}
	return &tableRow{
		name: "huggingface", about: "Hugging Face's hub: five minutes of a user or an address, in the IETF draft's fields",
		limits:  []limitSet{limit("huggingface:free", 1000, perKey), limit("huggingface:anonymous", 500, perIP)},
		assumed: "in five minutes of the clock",
		speak: func(a *reply) {
			a.structured(func(*standing) string { return "api" })
			a.refused(object{"error": "You have reached your API rate limit"})
		},
	}
}

func linearRow() *tableRow {
	return &tableRow{
		name: "linear", about: "Linear's GraphQL API: requests and complexity of an hour, in leaking buckets",
		limits: []limitSet{set("linear", policy("requests", 2500, requests, time.Hour, inBucket, perKey),
			policy("complexity", 3_000_000, weight, time.Hour, inBucket, perKey))},
		assumed: "a query costs two points",
		cost:    func(_ *asked, p *provider.Policy) int64 { return 1 + one(p.Unit == weight) },
		speak: func(a *reply) {
			for _, name := range []string{"requests", "complexity"} {
				l := a.limit(name)
				a.fields("X-RateLimit-"+strings.ToUpper(name[:1])+name[1:]+"-", l, milliOf(l.Whole))
			}
			a.body = object{"data": object{}}
			if a.refused(object{"errors": []object{{"message": "Rate limit exceeded",
				"extensions": object{"code": "RATELIMITED", "statusCode": 429}}}}) {
				a.status = http.StatusBadRequest
			}
		},
	}
}

func graphRow() *tableRow {
	return &tableRow{
		name: "microsoft-graph", about: "Microsoft Graph, Outlook: ten minutes of an app and a mailbox, and requests at once",
		limits: []limitSet{set("microsoft-graph:outlook", policy("requests", 10_000, requests, 10*time.Minute, rolling, perKey),
			policy("concurrent", 4, concurrent, 0, atOnce, perKey))},
		assumed: "in any ten minutes",
		speak: func(a *reply) {
			code := "TooManyRequests"
			if a.by != nil && a.by.Rule == provider.Concurrency {
				code = "ApplicationThrottled"
			}
			if a.refused(object{"error": object{"code": code, "message": "Too many requests"}}) {
				a.retryAfter()
			}
		},
	}
}

func openrouterRow() *tableRow {
	return &tableRow{
		name: "openrouter", about: "OpenRouter's free models: a minute and a day of an account, in the words of a refusal",
		limits: []limitSet{set("openrouter:free", policy("requests", 20, requests, time.Minute, rolling, perKey),
			policy("day", 50, requests, day, calendar, perKey))},
		assumed: "in any minute, and days end at midnight UTC",
		speak: func(a *reply) {
			if a.by != nil {
				per := map[bool]string{true: "day", false: "min"}[a.by.Name == "day"]
				a.body = object{"error": object{"code": 429, "message": "Rate limit exceeded: free-models-per-" + per}}
			}
		},
	}
}

func perplexityRow() *tableRow {
	return &tableRow{
		name: "perplexity", about: "Perplexity's API: a leaking bucket of one a second, and status 429",
		limits: []limitSet{set("perplexity:tier0", policy("requests", 1, requests, time.Second, inBucket, perKey))},
		speak: func(a *reply) {
			a.refused(object{"error": object{"message": "Request rate limit exceeded", "type": "rate_limit", "code": 429}})
		},
	}
}

func replicateRow() *tableRow {
	return &tableRow{
		name: "replicate", about: "Replicate's API: a minute of an endpoint, and a refusal that says when",
		limits:  []limitSet{set("replicate", policy("requests", 600, requests, time.Minute, rolling, perRoute))},
		assumed: "in any minute",
		speak: func(a *reply) {
			a.refused(object{"status": 429, "retry_after": wholeSeconds(a.wait),
				"detail": fmt.Sprintf("Request was throttled. Expected available in %d seconds.", wholeSeconds(a.wait))})
		},
	}
}

func edgarRow() *tableRow {
	return &tableRow{
		name: "sec-edgar", about: "The SEC's EDGAR: ten a second of an address, and a page that refuses",
		limits:  []limitSet{set("sec-edgar", policy("requests", 10, requests, time.Second, rolling, perIP))},
		assumed: "in any second; a refusal prolongs nothing",
		speak: func(a *reply) {
			if a.refused("<html><head><title>SEC.gov | Request Rate Threshold Exceeded</title></head></html>\n") {
				a.set("Content-Type", "text/html")
				a.status = http.StatusForbidden
			}
		},
	}
}

func trelloRow() *tableRow {
	return &tableRow{
		name: "trello", about: "Trello's API: ten seconds of a key and of a token, in fields without a reset",
		limits: []limitSet{set("trello", policy("key", 300, requests, 10*time.Second, rolling, perKey),
			policy("token", 100, requests, 10*time.Second, rolling, perKey))},
		assumed: "in any ten seconds; each key has one token",
		speak: func(a *reply) {
			for _, name := range []string{"key", "token"} {
				l, prefix := a.limit(name), "X-Rate-Limit-Api-"+strings.ToUpper(name[:1])+name[1:]+"-"
				a.set(prefix+"Max", l.Limit)
				a.set(prefix+"Remaining", l.Left)
				a.set(prefix+"Interval-Ms", l.Window.Milliseconds())
			}
			if a.by != nil {
				a.body = object{"error": "API_" + strings.ToUpper(a.by.Name) + "_LIMIT_EXCEEDED",
					"message": "Rate limit exceeded"}
			}
		},
	}
}

// The code and the field are those of www.twilio.com/docs/api/errors/20429, looked up in 2026-11.
func twilioRow() *tableRow {
	return &tableRow{
		name: "twilio", about: "Twilio's API: requests at once of an account, and in a field how many there are",
		limits:  []limitSet{set("twilio", policy("concurrent", 100, concurrent, 0, atOnce, perKey))},
		assumed: "a hundred at once, as Twilio publishes no number",
		speak: func(a *reply) {
			a.set("Twilio-Request-Id", fmt.Sprintf("RQ%032x", a.n))
			a.set("Twilio-Concurrent-Requests", a.limit("concurrent").Used())
			a.refused(object{"code": 20429, "message": "Too Many Requests", "status": 429,
				"more_info": "https://www.twilio.com/docs/errors/20429"})
		},
	}
}
