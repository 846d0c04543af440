package quota

import (
	"net/http"
	"strings"
	"time"
)

// GitHub sends a window that begins with its first request and a reset in seconds since 1970. What it calls secondary limits
// refuse with 403 or 429 while the primary one has plenty left: it asks for Retry-After, else the reset if nothing remains,
// else a minute at least, and more each time.
// https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
var github = &dialect{
	name:     "github",
	refusers: []Pattern{"secondary"},
	hosts:    []string{"api.github.com", "uploads.github.com", "api.githubcopilot.com"},
	is:       sends("X-GitHub-Request-Id", "X-GitHub-Media-Type"),
	read: func(r *reading) {
		resource, _ := r.field("X-RateLimit-Resource")
		p := Policy{Name: clip(resource), Unit: Requests, Scope: Key, Rule: Anchored, Limit: r.limit("X-RateLimit-Limit").N}
		switch resource {
		case "core", "graphql":
			p.Window = time.Hour
		case "search", "code_search":
			p.Window = time.Minute
		}
		if p.Window > 0 {
			p.WindowSource = Documented
		}
		if resource == "graphql" {
			p.Unit = Weight // points
		}
		if p.Limit == 60 && (resource == "core" || resource == "") || p.Limit == 10 && resource == "search" {
			p.Scope = IP // what requests without a token have, all of an address together
		}
		remaining := r.count("X-RateLimit-Remaining")
		r.add(p, ServiceLimit{Remaining: remaining, Used: r.count("X-RateLimit-Used"), Reset: r.at("X-RateLimit-Reset", epoch), Whole: true})
		if r.Status != http.StatusForbidden && r.Status != http.StatusTooManyRequests {
			return
		}
		var body struct {
			Message string `json:"message"`
		}
		r.object(&body)
		secondary := strings.Contains(body.Message, "secondary rate limit") || strings.Contains(body.Message, "abuse detection")
		spent := remaining.OK && remaining.N == 0
		switch {
		case secondary:
			r.refuse(RateLimited)
			r.by("secondary")
			if r.RetryAfter == 0 && !spent {
				r.RetryAfter = time.Minute
				r.note("the server does not say how long; its documentation asks for a minute at least, and for more each time")
			}
		case spent || r.RetryAfter > 0 || strings.Contains(body.Message, "rate limit exceeded"):
			r.refuse(RateLimited)
		}
		// Any other 403 is about permissions.
	},
}

// Heroku says how many tokens are left of a bucket of 4500 that gets 4500 more per hour, and nothing of resets. An account may
// have a multiple of that.
// https://devcenter.heroku.com/articles/platform-api-reference#rate-limits
var heroku = &dialect{
	name:  "heroku",
	hosts: []string{"api.heroku.com"},
	is: func(r *Response) bool {
		return sends("RateLimit-Multiplier")(r) || mentions(r, `"rate_limit"`) && mentions(r, "devcenter.heroku.com")
	},
	read: func(r *reading) {
		if v, _ := r.field("Retry-After"); r.RetryAfter == MaxWait {
			// Its older API wrote the instant there.
			if t, err := epoch(v); err == nil {
				r.Problems = nil
				r.RetryAfter = r.instant("Retry-After", v, t).Sub(r.now)
				r.note("Retry-After: %s is an instant, as Heroku's older API wrote it", clip(v))
			}
		}
		p := documented("heroku")[0]
		if m := r.count("RateLimit-Multiplier"); m.OK && m.N > 1 && m.N <= 1000 {
			p.Limit *= m.N
		}
		r.add(p, ServiceLimit{Remaining: r.count("RateLimit-Remaining")})
		if r.Status == http.StatusTooManyRequests {
			r.note("a token comes back every %v", (p.Window / time.Duration(p.Limit)).Round(time.Millisecond))
		}
	},
}

// Shopify says of its REST API how much is in a bucket that leaks twentieths of itself per second; its GraphQL API says in the
// body what the query cost and what is left, and refuses with 200.
// https://shopify.dev/docs/api/usage/limits
var shopify = &dialect{
	name:   "shopify",
	inBody: true,
	hosts:  []string{".myshopify.com"},
	is: func(r *Response) bool {
		return sendsPrefix(r.Header, "X-Shopify-") || sends("X-Shopid")(r) || mentions(r, `"throttleStatus"`)
	},
	read: func(r *reading) {
		const name = "X-Shopify-Shop-Api-Call-Limit"
		if v, ok := r.field(name); ok {
			used, size, both := strings.Cut(v, "/")
			u, s := r.number(name, strings.TrimSpace(used)), r.number(name, strings.TrimSpace(size))
			if both && u.OK && s.OK && s.N > 0 {
				p := Policy{Unit: Requests, Scope: Key, Rule: Bucket, Limit: s.N, Window: 20 * time.Second, WindowSource: Documented}
				r.add(p, ServiceLimit{Used: u, Remaining: Count{max(0, s.N-u.N), true}})
			} else {
				r.problem("%s: %q is not used/size; ignored", name, clip(v))
			}
		}
		switch r.Status {
		case http.StatusPaymentRequired:
			r.refuse(Unpaid) // the shop is frozen
		case http.StatusLocked, 430: // 430: requests that look malicious
			r.refuse(Banned)
		}
		r.shopifyCost()
	},
}

func (r *reading) shopifyCost() {
	type cost struct {
		Requested float64 `json:"requestedQueryCost"`
		Throttle  struct {
			Maximum   float64 `json:"maximumAvailable"`
			Available float64 `json:"currentlyAvailable"`
			Restore   float64 `json:"restoreRate"`
		} `json:"throttleStatus"`
	}
	var body struct {
		Errors []struct {
			Extensions struct {
				Code string  `json:"code"`
				Cost float64 `json:"cost"`
				Max  float64 `json:"maxCost"`
			} `json:"extensions"`
		} `json:"errors"`
		Extensions struct {
			Cost cost `json:"cost"`
		} `json:"extensions"`
	}
	if !mentions(&r.Response, `"extensions"`) || !r.object(&body) {
		return
	}
	c := body.Extensions.Cost
	t := c.Throttle
	if t.Maximum >= 1 && t.Maximum <= MaxCount && t.Restore > 0 && t.Available >= 0 {
		p := Policy{Name: "query cost", Unit: Weight, Scope: Key, Rule: Bucket, Limit: int64(t.Maximum), Window: wait(t.Maximum, t.Restore)}
		left := min(t.Available, t.Maximum)
		l := ServiceLimit{Remaining: Count{int64(left), true}, Whole: true}
		if left < t.Maximum {
			l.Reset = r.now.Add(wait(t.Maximum-left, t.Restore))
		}
		r.add(p, l)
	} else if t.Maximum != 0 || t.Restore != 0 || t.Available != 0 {
		r.problem("body: throttleStatus has %g of %g and gets %g per second; ignored", t.Available, t.Maximum, t.Restore)
	}
	for _, e := range body.Errors {
		switch e.Extensions.Code {
		case "THROTTLED":
			r.refuse(RateLimited)
			if missing := c.Requested - t.Available; missing > 0 && t.Restore > 0 && r.RetryAfter == 0 {
				r.RetryAfter = wait(missing, t.Restore)
				r.note("the query needs %g points, %g are there and %g come back per second", c.Requested, t.Available, t.Restore)
			}
		case "MAX_COST_EXCEEDED":
			r.refuse(TooLarge)
		}
	}
}

// wait returns how long n takes at a rate per second, rounded up to the millisecond, MaxWait at most.
func wait(n, perSecond float64) time.Duration {
	ms := n / perSecond * 1000
	if !(ms < float64(MaxWait/time.Millisecond)) {
		return MaxWait
	}
	d := time.Duration(ms) * time.Millisecond
	if float64(d/time.Millisecond) < ms {
		d += time.Millisecond
	}
	return max(d, time.Millisecond)
}

// Stripe counts nothing aloud: a field says which limiter refused. A 429 whose code is lock_timeout is none: somebody else
// has the object.
// https://docs.stripe.com/rate-limits
var stripe = &dialect{
	name:     "stripe",
	refusers: []Pattern{"global-*", "endpoint-*", "resource-specific", "*"},
	hosts:    []string{"api.stripe.com", "files.stripe.com"},
	is:       sends("Stripe-Rate-Limited-Reason", "Stripe-Version", "Stripe-Should-Retry"),
	read: func(r *reading) {
		var body struct {
			Error struct {
				Code string `json:"code"`
				Type string `json:"type"`
			} `json:"error"`
		}
		if r.Status >= 400 && r.object(&body) && body.Error.Code == "lock_timeout" {
			r.refuse(Conflict)
			return
		}
		if r.Status == http.StatusConflict {
			r.refuse(Conflict) // the same idempotency key is in use
		}
		reason, ok := r.field("Stripe-Rate-Limited-Reason")
		if !ok {
			return
		}
		r.by(reason)
		if strings.HasSuffix(reason, "-concurrency") {
			r.refuse(TooMany)
		} else {
			r.refuse(RateLimited)
		}
	},
}

// Discord names the bucket that a route counts in. Its resets have fractions; those that count from now go first. When the
// limit of something shared refuses, the fields are still the bucket's own, and only Retry-After is right. A page instead
// of JSON is the ban of an address that had too many refusals.
// https://discord.com/developers/docs/topics/rate-limits
var discord = &dialect{
	name:     "discord",
	refusers: []Pattern{"global", "shared"},
	hosts:    []string{"discord.com", "discordapp.com", "canary.discord.com", "ptb.discord.com"},
	is:       sends("X-RateLimit-Bucket", "X-RateLimit-Scope", "X-RateLimit-Global"),
	read: func(r *reading) {
		bucket, _ := r.field("X-RateLimit-Bucket")
		p := Policy{Name: clip(bucket), Unit: Requests, Scope: Route, Limit: r.limit("X-RateLimit-Limit").N}
		reset := r.after("X-RateLimit-Reset-After", seconds)
		if reset.IsZero() {
			reset = r.at("X-RateLimit-Reset", epoch)
		}
		r.add(p, ServiceLimit{Remaining: r.count("X-RateLimit-Remaining"), Reset: reset, Whole: true})
		if r.Status != http.StatusTooManyRequests {
			return
		}
		var body struct {
			Message string   `json:"message"`
			Retry   *float64 `json:"retry_after"`
			Global  bool     `json:"global"`
		}
		scope, named := r.field("X-RateLimit-Scope")
		switch ok := r.object(&body); {
		case !ok && !named && bucket == "", strings.Contains(body.Message, "blocked from accessing our API"):
			r.refuse(Banned)
			r.note("this is the ban of an address with too many refusals (10,000 in 10 minutes)")
		case body.Global || scope == "global":
			r.refuse(RateLimited)
			r.by("global")
		case scope == "shared":
			r.refuse(RateLimited)
			r.by("shared")
			r.note("the limit of something shared refused; it does not count against this key")
		default:
			r.refuse(RateLimited)
		}
		if body.Retry != nil {
			v := formatFloat(*body.Retry)
			d, err := seconds(v)
			r.orRetryAfter("retry_after", v, d, err)
		}
	},
}

// X counts in windows of 15 minutes, per user or app and endpoint, and some endpoints besides in windows of a day. Its 429
// may come while requests remain; a cap on posts per month says so in the body only.
// https://docs.x.com/x-api/fundamentals/rate-limits
var x = &dialect{
	name:     "x",
	refusers: []Pattern{"usage cap*"},
	hosts:    []string{"api.x.com", "api.twitter.com", "upload.twitter.com"},
	is: func(r *Response) bool {
		return sends("X-App-Limit-24hour-Limit", "X-User-Limit-24hour-Limit", "X-App-Limit-24hour-Remaining", "X-User-Limit-24hour-Remaining")(r) ||
			sends("X-Rate-Limit-Limit")(r) && sends("X-Transaction-Id", "X-Transaction", "X-Access-Level", "X-Twitter-Response-Tags")(r)
	},
	read: func(r *reading) {
		p := Policy{Name: "15 minutes", Unit: Requests, Scope: Route, Rule: Anchored, Window: 15 * time.Minute, WindowSource: Documented}
		p.Limit = r.limit("X-Rate-Limit-Limit").N
		r.add(p, ServiceLimit{Remaining: r.count("X-Rate-Limit-Remaining"), Reset: r.at("X-Rate-Limit-Reset", epoch), Whole: true})
		for _, who := range []string{"app", "user"} {
			name := "X-" + who + "-Limit-24hour-"
			p := Policy{Name: "24 hours, " + who, Unit: Requests, Scope: Key, Rule: Anchored, Window: 24 * time.Hour, Limit: r.limit(name + "Limit").N}
			r.add(p, ServiceLimit{Remaining: r.count(name + "Remaining"), Reset: r.at(name+"Reset", epoch), Whole: true})
		}
		var body struct {
			Title  string `json:"title"`
			Period string `json:"period"`
		}
		if r.Status == http.StatusTooManyRequests && r.object(&body) && body.Title == "UsageCapExceeded" {
			r.refuse(QuotaExhausted)
			r.by(strings.TrimSpace("usage cap " + body.Period))
		}
	},
}

// Slack says nothing until it refuses: then Retry-After, in whole seconds, of one method of one workspace.
// https://docs.slack.dev/apis/web-api/rate-limits
var slack = &dialect{
	name:   "slack",
	inBody: true,
	hosts:  []string{"slack.com", ".slack.com", "hooks.slack.com"},
	is:     sends("X-Slack-Req-Id", "X-Slack-Unique-Id", "X-Slack-Backend"),
	read: func(r *reading) {
		var body struct {
			Error string `json:"error"`
		}
		if !r.object(&body) {
			return
		}
		switch body.Error {
		case "ratelimited", "rate_limited":
			r.refuse(RateLimited) // older methods say so with 200
		case "service_unavailable", "team_added_to_org":
			r.refuse(Overloaded)
		}
	},
}

// Notion gives whole seconds in Retry-After, and the reason in the body.
// https://developers.notion.com/reference/request-limits
var notion = &dialect{
	name:     "notion",
	refusers: []Pattern{"public_api_request_*", "*"},
	hosts:    []string{"api.notion.com"},
	is:       sends("X-Notion-Request-Id"),
	read: func(r *reading) {
		var body struct {
			Code string `json:"code"`
			More struct {
				Reason string `json:"rate_limit_reason"`
				Retry  any    `json:"retry_after"`
			} `json:"additional_data"`
		}
		if r.Status < 400 || !r.object(&body) {
			return
		}
		switch body.Code {
		case "rate_limited":
			if body.More.Reason == "public_api_request_blocked" {
				r.refuse(Banned)
			}
			r.refuse(RateLimited)
		case "service_overload", "service_unavailable":
			r.refuse(Overloaded)
		case "conflict_error":
			r.refuse(Conflict)
		}
		if body.More.Reason != "" {
			r.by(body.More.Reason)
		}
		switch v := body.More.Retry.(type) {
		case string:
			d, err := seconds(v)
			r.orRetryAfter("retry_after", v, d, err)
		case float64:
			d, err := seconds(formatFloat(v))
			r.orRetryAfter("retry_after", formatFloat(v), d, err)
		}
	},
}

// Reddit says approximately how much is used and left of ten minutes, in decimals, and how many seconds are left of them.
// https://support.reddithelp.com/hc/en-us/articles/16160319875092-Reddit-Data-API-Wiki
var reddit = &dialect{
	name:  "reddit",
	hosts: []string{"oauth.reddit.com", "www.reddit.com", "api.reddit.com"},
	is: func(r *Response) bool {
		return sends("X-RateLimit-Used")(r) && sends("X-RateLimit-Remaining")(r) && !sends("X-RateLimit-Limit", "RateLimit-Limit")(r)
	},
	read: func(r *reading) {
		used, remaining := r.count("X-RateLimit-Used"), r.count("X-RateLimit-Remaining")
		p := Policy{Unit: Requests, Scope: Key, Rule: Anchored, Window: 10 * time.Minute, WindowSource: Documented}
		if used.OK && remaining.OK && used.N+remaining.N > 0 {
			p.Limit, p.Source = min(used.N+remaining.N, MaxCount), Inferred
		}
		r.add(p, ServiceLimit{Used: used, Remaining: remaining, Reset: r.after("X-RateLimit-Reset", seconds), Whole: true})
	},
}

// Okta counts per endpoint and minute, with resets in seconds since 1970. A limit of 0 is how it says that too many
// requests were open at once; the reset is then a guess.
// https://developer.okta.com/docs/reference/rl-best-practices/
var okta = &dialect{
	name:  "okta",
	hosts: []string{".okta.com", ".oktapreview.com", ".okta-emea.com"},
	is:    sends("X-Okta-Request-Id"),
	read: func(r *reading) {
		reset := r.at("X-Rate-Limit-Reset", epoch)
		limit, _ := r.field("X-Rate-Limit-Limit")
		left, _ := r.field("X-Rate-Limit-Remaining")
		if r.Status == http.StatusTooManyRequests && limit == "0" && left == "0" {
			r.refuse(TooMany)
			p := Policy{Unit: Concurrent, Scope: Key, Rule: Concurrency}
			r.add(p, ServiceLimit{Remaining: Count{0, true}, Reset: reset})
			r.note("too many requests were open at once; the reset is an estimate")
			return
		}
		p := Policy{Unit: Requests, Scope: Route, Window: time.Minute, WindowSource: Documented}
		p.Limit = r.limit("X-Rate-Limit-Limit").N
		r.add(p, ServiceLimit{Remaining: r.count("X-Rate-Limit-Remaining"), Reset: reset, Whole: true})
	},
}

// Atlassian has three limits at once and says which one refused. Its X-RateLimit fields are those of the endpoint, its
// RateLimit fields are the IETF draft's and those of the app; fields that begin with Beta are not enforced yet.
// https://developer.atlassian.com/cloud/jira/platform/rate-limiting/
var atlassian = &dialect{
	name:     "atlassian",
	refusers: []Pattern{"*-quota-*", "*-burst-*", "*-per-issue-*", "*"},
	hosts:    []string{".atlassian.net", "api.atlassian.com", "api.bitbucket.org"},
	is: func(r *Response) bool {
		return sends("Atl-Traceid", "Atl-Request-Id", "X-Arequestid", "X-RateLimit-NearLimit", "RateLimit-Reason", "Beta-RateLimit-Policy", "Beta-RateLimit")(r)
	},
	read: func(r *reading) {
		r.ietf()
		for i := range r.Policies {
			if strings.HasSuffix(r.Policies[i].Name, "-quota") {
				r.Policies[i].Unit = Weight // points
			}
		}
		for i := range r.Limits {
			if strings.HasSuffix(r.Limits[i].Policy, "-quota") {
				r.Limits[i].Unit = Weight
			}
		}
		reason, refused := r.field("RateLimit-Reason")
		p := Policy{Name: "endpoint", Unit: Requests, Scope: Route}
		quota := strings.Contains(reason, "-quota-")
		if quota {
			p = Policy{Name: "quota", Unit: Weight, Scope: Key, Window: time.Hour, WindowSource: Documented}
		}
		p.Limit = r.limit("X-RateLimit-Limit").N
		r.add(p, ServiceLimit{Remaining: r.count("X-RateLimit-Remaining"), Reset: r.at("X-RateLimit-Reset", rfc3339), Whole: quota})
		if near, _ := r.field("X-RateLimit-NearLimit"); near == "true" {
			r.note("less than a fifth is left")
		}
		if r.has("Beta-RateLimit") || r.has("Beta-Retry-After") {
			r.note("Beta- fields are announcements: nothing refuses by them yet")
		}
		if !refused || r.Status != http.StatusTooManyRequests {
			return
		}
		r.by(reason)
		switch {
		case quota:
			r.refuse(QuotaExhausted)
		case strings.Contains(reason, "concurrent"):
			r.refuse(TooMany)
		}
	},
}
