package provider

import (
	"net/http"
	"strings"
	"time"
)

func webs() []*row {
	return []*row{
		stripe(), shopify(), github(), discord(), notion(), slack(), okta(), atlassian(), x(), cloudflare(), heroku(),
	}
}

// GitHub sends a window that begins with its first request, and a reset in seconds since 1970. Its
// secondary limits refuse with 403 or 429 while plenty is left of the primary one. It asks for the
// wait in Retry-After; otherwise until the reset if nothing remains; otherwise for at least a
// minute, and longer each time.
func github() *row {
	return &row{
		inBody: true,
		// GraphQL.
		refuse: []refused{{status: served, path: "errors.*.type", is: []Pattern{"RATE_LIMIT", "RATE_LIMITED"}, why: RateLimited}},
		Provider: Provider{
			Name: "github", Title: "GitHub",
			SDKs:  []Pattern{"github.GithubException*", "@octokit/*"},
			Hosts: []string{"api.github.com", "uploads.github.com", "api.githubcopilot.com"},
			Docs:  "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api", AsOf: "2026",
			Limited: Key, Banned: Key, Refusers: []Refuser{{"secondary", Key}},
			Published: []Preset{
				{"github", "REST, with a user's token", "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026",
					[]Policy{of("core", per(5000, Requests, time.Hour, Anchored, Resource)), named("concurrent", per(100, Concurrent, 0, Concurrency, Key)),
						of("search", named("search", per(30, Requests, time.Minute, Anchored, Resource))),
						of("code_search", named("code_search", per(10, Requests, time.Minute, Anchored, Resource))),
						of("graphql", named("graphql", per(5000, Weight, time.Hour, Anchored, Resource))),
						of("address core", named("without a token", per(60, Requests, time.Hour, Anchored, Resource))),
						of("address search", named("search without a token", per(10, Requests, time.Minute, Anchored, Resource)))}},
				{"github:unauthenticated", "REST, without a token", "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026",
					[]Policy{per(60, Requests, time.Hour, Anchored, IP)}},
				{"github:search", "search, with a token", "https://docs.github.com/en/rest/search/search#rate-limit", "2026",
					[]Policy{per(30, Requests, time.Minute, Anchored, Key)}},
			},
			// What asks for the limits costs nothing of them.
			Charges: from("https://docs.github.com/en/rest/rate-limit/rate-limit", "2026-11", []Charge{
				{On: "GET /rate_limit"},
				{On: "GET /search/*", Keyless: true, Resource: "address search"},
				{On: "GET /search/code", Resource: "code_search"},
				{On: "GET /search/*", Resource: "search"},
				{On: "POST /graphql", Cost: map[Unit]int64{Weight: 1}, Body: map[Unit]Expression{Weight: githubBound}, Resource: "graphql"},
				{On: "POST /app-manifests/*/conversions", Resource: "integration_manifest"},
				{On: "* /repos/*/dependency-graph/snapshots", Resource: "dependency_snapshots"},
				{On: "POST /repos/*/code-scanning/sarifs", Resource: "code_scanning_upload"},
				{On: "POST */actions/runners/registration-token", Resource: "actions_runner_registration"},
				{On: "* /scim/*", Resource: "scim"},
				{On: "* *", Keyless: true, Resource: "address core"},
				{On: "* *", Resource: "core"},
			}),
		},
		is: sends("X-GitHub-Request-Id", "X-GitHub-Media-Type"),
		read: func(r *reading) {
			resource, _ := r.field("X-RateLimit-Resource")
			p := Policy{Name: clip(resource), Unit: Requests, Scope: Key, Rule: Anchored, Limit: r.limit("X-RateLimit-Limit").N}
			if resource != "" {
				p.Scope, p.Resource = Resource, p.Name
			}
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
			if p.Limit == 60 && resource == "" {
				p.Scope = IP // for requests without a token: all of an address count together
			}
			remaining := r.count("X-RateLimit-Remaining")
			r.add(p, ServiceLimit{Resource: p.Resource, Remaining: remaining, Used: r.count("X-RateLimit-Used"), Reset: r.reset("X-RateLimit-Reset", 0), Whole: true})
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
}

// Heroku says how many tokens are left in a bucket of 4500 that gets 4500 more per hour, and
// nothing of resets. An account may have a multiple of that.
func heroku() *row {
	return &row{
		Provider: Provider{
			Name: "heroku", Title: "Heroku",
			Hosts: []string{"api.heroku.com"},
			Docs:  "https://devcenter.heroku.com/articles/platform-api-reference#rate-limits", AsOf: "2026",
			Limited: Key, Banned: Key,
			Published: []Preset{
				// 4500 tokens at most, about 75 more per minute; GCRA by the account of its
				// engineers (heroku.com/blog, "rate throttling").
				{"heroku", "Platform API, per account", "https://devcenter.heroku.com/articles/platform-api-reference#rate-limits", "2026",
					[]Policy{per(4500, Requests, time.Hour, Bucket, Key)}},
			},
		},
		is: func(r *Response) bool {
			return sends("RateLimit-Multiplier")(r) || mentions(r, `"rate_limit"`) && mentions(r, "devcenter.heroku.com")
		},
		read: func(r *reading) {
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
}

// Shopify's REST API says how much is in a bucket that leaks a twentieth of its size per second.
// Its GraphQL API says in the body what the query cost and what is left, and refuses with 200.
func shopify() *row {
	return &row{
		Provider: Provider{
			Name: "shopify", Title: "Shopify",
			SDKs:  []Pattern{"@shopify/*"},
			Hosts: []string{".myshopify.com"},
			Docs:  "https://shopify.dev/docs/api/usage/limits", AsOf: "2026",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"shopify", "REST, standard plan, per app and shop; answers state the points of GraphQL",
					"https://shopify.dev/docs/api/admin-rest/usage/rate-limits", "2026-11",
					[]Policy{of("rest", per(40, Requests, 20*time.Second, Bucket, Resource)),
						of("graphql", named("query cost", per(0, Weight, time.Second, Bucket, Resource)))}},
			},
			Charges: from("https://shopify.dev/docs/apps/build/apis/graphql-admin/rate-limits", "2026-11",
				[]Charge{{On: "* */graphql.json", Resource: "graphql", Body: map[Unit]Expression{Weight: shopifyBound},
					Answer: map[Unit]Expression{Weight: jsonPath("extensions.cost.actualQueryCost")}, Learns: true},
					{On: "* *", Resource: "rest"}}),
		},
		inBody: true,
		is: func(r *Response) bool {
			return sendsPrefix(r.Header, "X-Shopify-") || sends("X-Shopid")(r) || mentions(r, `"throttleStatus"`)
		},
		read: func(r *reading) {
			const name = "X-Shopify-Shop-Api-Call-Limit"
			if v, ok := r.field(name); ok {
				used, size, both := strings.Cut(v, "/")
				u, s := r.number(name, strings.TrimSpace(used)), r.number(name, strings.TrimSpace(size))
				if both && u.OK && s.OK && s.N > 0 {
					p := of("rest", Policy{Unit: Requests, Rule: Bucket, Limit: s.N, Window: 20 * time.Second, WindowSource: Documented})
					r.add(p, ServiceLimit{Resource: p.Resource, Used: u, Remaining: Count{max(0, s.N-u.N), true}})
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
		p := of("graphql", Policy{Name: "query cost", Unit: Weight, Rule: Bucket, Limit: int64(t.Maximum), Window: wait(t.Maximum, t.Restore)})
		left := min(t.Available, t.Maximum)
		l := ServiceLimit{Resource: p.Resource, Remaining: Count{int64(left), true}, Whole: true}
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

// wait returns how long n takes at a rate per second, rounded up to the millisecond, and at most
// MaxWait.
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

// Stripe does not state what is left; a field names the limiter that refused. A 429 with the code
// lock_timeout is no limit: another request has locked the object.
func stripe() *row {
	return &row{
		Provider: Provider{
			Name: "stripe", Title: "Stripe",
			SDKs:  []Pattern{"stripe.*", "com.stripe.*", "stripe"},
			Hosts: []string{"api.stripe.com", "files.stripe.com"},
			Docs:  "https://docs.stripe.com/rate-limits", AsOf: "2026",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"global-*", Key}, {"endpoint-*", Route}, {"resource-specific", Route}, {"*", ""}},
			Published: []Preset{
				{"stripe", "live mode, per account", "https://docs.stripe.com/rate-limits", "2026",
					[]Policy{per(100, Requests, time.Second, "", Key)}},
				{"stripe:sandbox", "per account", "https://docs.stripe.com/rate-limits", "2026",
					[]Policy{per(25, Requests, time.Second, "", Key)}},
			},
		},
		is: sends("Stripe-Rate-Limited-Reason", "Stripe-Version", "Stripe-Should-Retry"),
		read: func(r *reading) {
			var body struct {
				Error struct {
					Code string `json:"code"`
					Type string `json:"type"`
				} `json:"error"`
			}
			// 409: the same idempotency key is in use.
			if r.Status == http.StatusConflict || r.Status >= 400 && r.object(&body) && body.Error.Code == "lock_timeout" {
				r.refuse(Conflict)
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
		refuse: []refused{
			// Versions of the API before 2015-09-18 refuse so, and accounts of others are made
			// under a limit of their own.
			{status: []int{400}, path: "error.code", is: []Pattern{"rate_limit"}, why: RateLimited},
			{status: []int{400}, path: "error.message", is: []Pattern{"*creating accounts too quickly*"}, why: RateLimited, by: "endpoint-rate"},
		},
	}
}

// Discord names the bucket in which a route counts. Its resets have fractions; the one that counts
// from now is preferred. If the limit of something shared refuses, the fields are still the
// bucket's own, and only Retry-After is right. A page instead of JSON is the ban of an address that
// had too many refusals.
func discord() *row {
	return &row{
		Provider: Provider{
			Name: "discord", Title: "Discord",
			SDKs:  []Pattern{"discord.*", "discord.js"},
			Hosts: []string{"discord.com", "discordapp.com", "canary.discord.com", "ptb.discord.com"},
			Docs:  "https://discord.com/developers/docs/topics/rate-limits", AsOf: "2026",
			Limited: Route, Banned: IP, Refusers: []Refuser{{"global", Key}, {"shared", Route}},
			Published: []Preset{
				{"discord", "per bot, besides the limits of each route", "https://discord.com/developers/docs/topics/rate-limits", "2026",
					[]Policy{per(50, Requests, time.Second, "", Key),
						of("*", named("route", per(0, Requests, 0, "", Resource)))}},
			},
			// A route's limit is of one channel, guild or webhook: its first identifier. What follows
			// differs from object to object.
			Charges: from("https://docs.discord.com/developers/topics/rate-limits", "2026-11", []Charge{
				{On: "* *channels/*/messages/*/*", Resource: "{method} channel {2} reactions"},
				{On: "* *channels/*/messages/*", Resource: "{method} channel {2} message"},
				{On: "* *channels/*/messages", Resource: "{method} channel {2} messages"},
				{On: "* *channels/*/*", Resource: "{method} channel {2}"},
				{On: "* *guilds/*/members/*", Resource: "{method} guild {2} member"},
				{On: "* *guilds/*/*", Resource: "{method} guild {2}"},
				{On: "* *webhooks/*/*", Resource: "{method} webhook {2}"},
			}),
		},
		is: sends("X-RateLimit-Bucket", "X-RateLimit-Scope", "X-RateLimit-Global"),
		read: func(r *reading) {
			bucket, _ := r.field("X-RateLimit-Bucket")
			p := Policy{Name: clip(bucket), Unit: Requests, Scope: Route, Limit: r.limit("X-RateLimit-Limit").N}
			r.looked.at("X-RateLimit-Reset") // it says the same in another form
			reset := r.reset("X-RateLimit-Reset-After", 0)
			if reset.IsZero() {
				reset = r.reset("X-RateLimit-Reset", 0)
			}
			remaining := r.count("X-RateLimit-Remaining")
			first := r.Status < 300 && remaining.OK && p.Limit > 0 && remaining.N == p.Limit-1
			if first && reset.After(r.now) {
				// The window begins with this request, so the reset states its length.
				p.Window, p.WindowSource = (reset.Sub(r.now) + tenth - 1).Truncate(tenth), Stated
			}
			r.add(p, ServiceLimit{Remaining: remaining, Reset: reset, Whole: true})
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
}

const tenth = 100 * time.Millisecond

// X counts in windows of 15 minutes, per user or app and endpoint, and at some endpoints also in
// windows of a day. Its 429 may come while requests remain. Only the body states that a monthly cap
// on posts is reached.
func x() *row {
	return &row{
		Provider: Provider{
			Name: "x", Title: "X",
			SDKs:  []Pattern{"tweepy.*", "twitter-api-v2"},
			Hosts: []string{"api.x.com", "api.twitter.com", "upload.twitter.com"},
			Docs:  "https://docs.x.com/x-api/fundamentals/rate-limits", AsOf: "2026",
			Limited: Route, Banned: Key, Refusers: []Refuser{{"usage cap*", Key}},
			Published: []Preset{
				{"x", "a user or an app, each endpoint; answers state how many",
					"https://docs.x.com/x-api/fundamentals/rate-limits", "2026-11",
					[]Policy{named("15 minutes", per(0, Requests, 15*time.Minute, Anchored, Route))}},
			},
		},
		is: func(r *Response) bool {
			return sends("X-App-Limit-24hour-Limit", "X-User-Limit-24hour-Limit", "X-App-Limit-24hour-Remaining", "X-User-Limit-24hour-Remaining")(r) ||
				sends("X-Rate-Limit-Limit")(r) && sends("X-Transaction-Id", "X-Transaction", "X-Access-Level", "X-Twitter-Response-Tags")(r)
		},
		read: func(r *reading) {
			p := Policy{Name: "15 minutes", Unit: Requests, Scope: Route, Rule: Anchored, Window: 15 * time.Minute, WindowSource: Documented}
			p.Limit = r.limit("X-Rate-Limit-Limit").N
			r.add(p, ServiceLimit{Remaining: r.count("X-Rate-Limit-Remaining"), Reset: r.reset("X-Rate-Limit-Reset", 0), Whole: true})
			for _, who := range []string{"app", "user"} {
				name := "X-" + who + "-Limit-24hour-"
				p := Policy{Name: "24 hours, " + who, Unit: Requests, Scope: Key, Rule: Anchored, Window: 24 * time.Hour, Limit: r.limit(name + "Limit").N}
				r.add(p, ServiceLimit{Remaining: r.count(name + "Remaining"), Reset: r.reset(name+"Reset", 0), Whole: true})
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
}

// Slack states nothing until it refuses. Then it sends Retry-After, in whole seconds, for one
// method of one workspace.
func slack() *row {
	return &row{
		Provider: Provider{
			Name: "slack", Title: "Slack",
			SDKs:  []Pattern{"slack_sdk.*", "@slack/*"},
			Hosts: []string{"slack.com", ".slack.com", "hooks.slack.com"},
			Docs:  "https://docs.slack.dev/apis/web-api/rate-limits", AsOf: "2026",
			Silent: true, Limited: Route, Banned: Key,
			Published: []Preset{
				// Slack has tiers of methods; each allows a number "or more", and bursts without a
				// promise.
				{"slack:tier1", "a method of tier 1, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
					[]Policy{per(1, Requests, time.Minute, "", Route)}},
				{"slack:tier2", "a method of tier 2, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
					[]Policy{per(20, Requests, time.Minute, "", Route)}},
				{"slack:tier3", "a method of tier 3, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
					[]Policy{per(50, Requests, time.Minute, "", Route)}},
				{"slack:tier4", "a method of tier 4, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
					[]Policy{per(100, Requests, time.Minute, "", Route)}},
			},
		},
		inBody: true,
		is:     sends("X-Slack-Req-Id", "X-Slack-Unique-Id", "X-Slack-Backend"),
		read: func(r *reading) {
			var body struct {
				Error string `json:"error"`
			}
			r.object(&body)
			switch body.Error {
			case "ratelimited", "rate_limited":
				r.refuse(RateLimited) // older methods refuse with 200
			case "service_unavailable", "team_added_to_org":
				r.refuse(Overloaded)
			}
		},
	}
}

// Notion sends Retry-After in whole seconds, and the reason in the body.
func notion() *row {
	return &row{
		Provider: Provider{
			Name: "notion", Title: "Notion",
			SDKs:  []Pattern{"notion_client.*", "@notionhq/*"},
			Hosts: []string{"api.notion.com"},
			Docs:  "https://developers.notion.com/reference/request-limits", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"public_api_endpoint_*", Route}, {"public_api_*", Key}, {"*", ""}},
			Published: []Preset{
				// Fixed windows of 60 s. A workspace also has its own limit, of an unpublished
				// number.
				{"notion", "per connection; all plans but Business and Enterprise", "https://developers.notion.com/reference/request-limits", "2026-11",
					[]Policy{per(180, Requests, time.Minute, "", Key)}},
				{"notion:business", "per connection; Business and Enterprise", "https://developers.notion.com/reference/request-limits", "2026-11",
					[]Policy{per(600, Requests, time.Minute, "", Key)}},
			},
		},
		is: sends("X-Notion-Request-Id"),
		read: func(r *reading) {
			var body struct {
				Code string `json:"code"`
				More struct {
					Reason   string   `json:"rate_limit_reason"`
					Retry    any      `json:"retry_after"`
					Guidance []string `json:"retry_guidance"`
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
			case "service_overload":
				r.refuse(Overloaded)
			case "service_unavailable":
				r.refuse(Overloaded)
				if len(body.More.Guidance) > 0 {
					// It may have done the work before it ran out of time. With a wait this would
					// look like a refusal, which may be sent again.
					r.RetryAfter = 0
					r.note("it may have been carried out: %s", strings.Join(body.More.Guidance, " "))
					return
				}
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
}

// Reddit states approximately, in decimals, how much is used and left within ten minutes, and how
// many seconds of these are left.
func reddit() *row {
	return &row{
		Provider: Provider{
			Name: "reddit", Title: "Reddit", Kind: "Web",
			SDKs:  []Pattern{"prawcore.*", "praw.*"},
			Hosts: []string{"oauth.reddit.com", "www.reddit.com", "api.reddit.com"},
			Docs:  "https://support.reddithelp.com/hc/en-us/articles/16160319875092-Reddit-Data-API-Wiki", AsOf: "2026",
			Limited: Key, Banned: Key,
			Published: []Preset{
				// 100 per minute on the average of ten minutes; the fields of an OAuth client state
				// 1000 per 600 s.
				{"reddit", "OAuth client", "https://support.reddithelp.com/hc/en-us/articles/16160319875092-Reddit-Data-API-Wiki", "2026",
					[]Policy{per(1000, Requests, 10*time.Minute, Anchored, Key)}},
			},
		},
		is: func(r *Response) bool {
			return sends("X-RateLimit-Used")(r) && sends("X-RateLimit-Remaining")(r) && !sends("X-RateLimit-Limit", "RateLimit-Limit")(r)
		},
		read: func(r *reading) {
			used, remaining := r.count("X-RateLimit-Used"), r.count("X-RateLimit-Remaining")
			p := Policy{Unit: Requests, Scope: Key, Rule: Anchored, Window: 10 * time.Minute, WindowSource: Documented}
			if used.OK && remaining.OK && used.N+remaining.N > 0 {
				p.Limit, p.Source = min(used.N+remaining.N, MaxCount), Inferred
			}
			r.add(p, ServiceLimit{Used: used, Remaining: remaining, Reset: r.reset("X-RateLimit-Reset", 0), Whole: true})
		},
	}
}

// Okta counts per endpoint and minute, with resets in seconds since 1970. A limit of 0 means that
// too many requests were open at once; the reset is then a guess.
func okta() *row {
	return &row{
		Provider: Provider{
			Name: "okta", Title: "Okta",
			Hosts: []string{".okta.com", ".oktapreview.com", ".okta-emea.com"},
			Docs:  "https://developer.okta.com/docs/reference/rl-best-practices/", AsOf: "2026",
			Limited: Route, Banned: Key,
			Published: []Preset{
				{"okta", "an organization, each endpoint; answers state how many",
					"https://help.okta.com/en-us/content/topics/security/api-rate-limits.htm", "2026-11",
					[]Policy{per(0, Requests, time.Minute, "", Route),
						named("concurrent", per(75, Concurrent, 0, Concurrency, Key))}},
			},
		},
		is: sends("X-Okta-Request-Id"),
		read: func(r *reading) {
			reset := r.reset("X-Rate-Limit-Reset", 0)
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
}

// Atlassian has three limits at once, and states which one refused. Its X-RateLimit fields are
// those of the endpoint. Its RateLimit fields are the IETF draft's, and those of the app; fields
// that begin with Beta are not enforced yet.
func atlassian() *row {
	return &row{
		Provider: Provider{
			Name: "atlassian", Title: "Atlassian",
			Pages: []string{"nextPage"},
			SDKs:  []Pattern{"jira.exceptions.*", "atlassian.*"},
			Hosts: []string{".atlassian.net", "api.atlassian.com", "api.bitbucket.org"},
			Docs:  "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", AsOf: "2026",
			Limited: Key, Banned: Key, Refusers: []Refuser{{"*-quota-*", Key}, {"*-burst-*", Route}, {"*-per-issue-*", Route}, {"*", ""}},
			Published: []Preset{
				{"atlassian", "Jira and Confluence apps, points of the global pool", "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", "2026-03",
					[]Policy{per(65_000, Weight, time.Hour, Calendar, Key),
						named("burst", per(0, Requests, time.Second, "", Route))}},
				{"jira", "Jira with an API token, bursts of each endpoint; answers state how many",
					"https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", "2026-11",
					[]Policy{named("burst", per(0, Requests, time.Second, "", Route))}},
			},
		},
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
			if p.Limit = r.limit("X-RateLimit-Limit").N; p.Limit > 0 && !quota {
				p.Window, p.WindowSource = time.Second, Documented // "burst rate limit (per second)"
			}
			r.add(p, ServiceLimit{Remaining: r.count("X-RateLimit-Remaining"), Reset: r.reset("X-RateLimit-Reset", 0), Whole: quota})
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
}
