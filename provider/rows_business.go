package provider

import (
	"strings"
	"time"
)

// Providers of what businesses run on: customers, support, shops, learning, clouds.
func businesses() []*row {
	return []*row{
		hubspot(), salesforce(), zendesk(), monday(), linear(), amazonSP(), aws(), microsoftGraph(), azureResources(), canvas(), procore(), datadog(), sentry(), twilio(), sendgrid(), fastly(), dropbox(), dockerHub(), trello(), bigCommerce(),
	}
}

func hubspot() *row {
	return &row{
		Provider: Provider{
			Name: "hubspot", Title: "HubSpot",
			Pages: []string{"paging/next/link", "paging/prev/link"},
			SDKs:  []Pattern{"hubspot.*", "@hubspot/*"},
			Hosts: []string{"api.hubapi.com", "api.hubspot.com"},
			Docs:  "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", AsOf: "2026-11",
			Limited: Key, Banned: Key, Refusers: theirOwn,
			Published: []Preset{
				{"hubspot:free", "an app in one account, free and starter", "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", "2026-11",
					[]Policy{named("10 seconds", per(100, Requests, 10*time.Second, Rolling, Key)), named("day", per(250_000, Requests, day, "", Key)), hubspotSearch}},
				{"hubspot:professional", "an app in one account, professional and enterprise", "https://developers.hubspot.com/docs/developer-tooling/platform/usage-guidelines", "2026-11",
					[]Policy{named("10 seconds", per(190, Requests, 10*time.Second, Rolling, Key)), named("day", per(625_000, Requests, day, "", Key)), hubspotSearch}},
			},
			Charges: from("https://developers.hubspot.com/changelog/increasing-our-api-limits", "2026-11",
				[]Charge{{On: "POST */search", Resource: "search"}}),
		},
		is: func(r *Response) bool { return sendsPrefix(r.Header, "X-Hubspot-") },
		// The fields of a second are still sent, and no longer enforced. Days end at midnight of
		// the account's zone.
		stated: []stated{
			{is: named("10 seconds", per(0, Requests, 10*time.Second, Rolling, Key)), limit: "X-HubSpot-RateLimit-Max", remaining: "X-HubSpot-RateLimit-Remaining", used: "-", reset: "-",
				window: "X-HubSpot-RateLimit-Interval-Milliseconds", per: time.Millisecond},
			{is: named("day", per(0, Requests, day, "", Key)), limit: "X-HubSpot-RateLimit-Daily", remaining: "X-HubSpot-RateLimit-Daily-Remaining", used: "-", reset: "-"},
		},
		refuse: []refused{
			{path: "policyName", is: []Pattern{"DAILY*"}, why: QuotaExhausted, by: "="},
			{path: "message", is: []Pattern{"*daily limit*"}, why: QuotaExhausted},
			{path: "policyName", is: []Pattern{"*SECONDLY*"}, why: RateLimited, by: "="},
			{path: "errorType", is: []Pattern{"RATE_LIMIT"}, why: RateLimited},
		},
	}
}

// hubspotSearch is of searches, which count in the other limits, too.
var hubspotSearch = of("search", named("search", per(5, Requests, time.Second, Rolling, Resource)))

// Salesforce counts the requests of an organization in a rolling window of 24 hours. One field
// states the usage and the limit.
func salesforce() *row {
	return &row{
		Provider: Provider{
			Name: "salesforce", Title: "Salesforce",
			SDKs:  []Pattern{"simple_salesforce.*", "jsforce"},
			Hosts: []string{".salesforce.com", ".force.com"},
			Docs:  "https://developer.salesforce.com/docs/atlas.en-us.264.0.api_rest.meta/api_rest/headers_api_usage.htm", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		is: sends("Sforce-Limit-Info"),
		read: func(r *reading) {
			const name = "Sforce-Limit-Info"
			v, _ := r.field(name)
			for item := range strings.FieldsFuncSeq(v, func(c rune) bool { return c == ';' || c == ',' }) {
				what, numbers, _ := strings.Cut(strings.TrimSpace(item), "=")
				numbers, _, _ = strings.Cut(numbers, "(") // the name of the app
				used, limit, ok := strings.Cut(numbers, "/")
				if !ok {
					r.problem("%s: %q is not used/limit; ignored", name, clip(item))
					continue
				}
				p := Policy{Name: clip(what), Unit: Requests, Scope: Key, Limit: r.number(name, limit).N}
				if what == "api-usage" {
					p.Rule, p.Window, p.WindowSource = Rolling, day, Documented
				}
				u := r.number(name, used)
				l := ServiceLimit{Used: u}
				if u.OK && p.Limit > 0 {
					l.Remaining = Count{max(0, p.Limit-u.N), true}
				}
				r.add(p, l)
			}
		},
		refuse: []refused{
			{path: "*.message", is: []Pattern{"*Concurrent*"}, why: TooMany},
			{path: "*.errorCode", is: []Pattern{"REQUEST_LIMIT_EXCEEDED"}, why: QuotaExhausted},
			{path: "*.errorCode", is: []Pattern{"SERVER_UNAVAILABLE"}, why: Overloaded},
			{is: []Pattern{"sf:REQUEST_LIMIT_EXCEEDED", "LOGIN_RATE_EXCEEDED"}, why: QuotaExhausted},
		},
	}
}

// Zendesk has a limit of the account, and others of endpoints, each in a field like this:
// total=100; remaining=99; resets=41.
func zendesk() *row {
	return &row{
		Provider: Provider{
			Name: "zendesk", Title: "Zendesk",
			Pages: []string{"next_page", "previous_page", "links/next", "links/prev"},
			SDKs:  []Pattern{"zenpy.*"},
			Hosts: []string{".zendesk.com", "api.zopim.com"},
			Docs:  "https://developer.zendesk.com/api-reference/introduction/rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: Key, Refusers: []Refuser{{"endpoint", Route}},
			Published: []Preset{
				{"zendesk:team", "support and help center, per account", "https://developer.zendesk.com/api-reference/introduction/rate-limits", "2026-11", append([]Policy{per(200, Requests, time.Minute, "", Key)}, zendeskEndpoints...)},
				{"zendesk:professional", "support and help center, per account", "https://developer.zendesk.com/api-reference/introduction/rate-limits", "2026-11", append([]Policy{per(400, Requests, time.Minute, "", Key)}, zendeskEndpoints...)},
				{"zendesk:enterprise", "support and help center, per account", "https://developer.zendesk.com/api-reference/introduction/rate-limits", "2026-11", append([]Policy{per(700, Requests, time.Minute, "", Key)}, zendeskEndpoints...)},
			},
			Charges: from("https://developer.zendesk.com/api-reference/introduction/rate-limits", "2026-11", []Charge{
				{On: "GET /api/v2/incremental/*", Resource: "incremental export"},
				{On: "GET /api/v2/tickets*?page>500", Resource: "deep pages of tickets"},
				{On: "PUT /api/v2/tickets/*", Resource: "updates of tickets"},
			}),
		},
		is: func(r *Response) bool {
			return sendsPrefix(r.Header, "Zendesk-Ratelimit-") || sendsPrefix(r.Header, "X-Zendesk-") || sends("X-Rate-Limit")(r) && sends("X-Rate-Limit-Remaining")(r)
		},
		stated: []stated{
			{is: named("account", per(0, Requests, time.Minute, "", Key)), limit: "X-Rate-Limit", remaining: "X-Rate-Limit-Remaining", used: "-", reset: "RateLimit-Reset"},
		},
		read: func(r *reading) {
			for _, name := range r.names("Zendesk-Ratelimit-") {
				v, _ := r.field(name)
				p := Policy{Name: strings.ToLower(strings.TrimPrefix(name, "Zendesk-Ratelimit-")), Unit: Requests, Scope: Route}
				var l ServiceLimit
				for item := range strings.SplitSeq(v, ";") {
					key, value, _ := strings.Cut(strings.TrimSpace(item), "=")
					switch key {
					case "total":
						p.Limit = r.number(name, value).N
					case "remaining":
						l.Remaining = r.number(name, value)
					case "resets":
						l.Reset = r.moment(name, value, 0)
					}
				}
				r.add(p, l)
			}
		},
		refuse: []refused{
			{path: "description", is: []Pattern{"*export*", "*updating a single*", "*per hour*"}, why: RateLimited, by: "endpoint"},
			{path: "error", is: []Pattern{"APIRateLimitExceeded"}, why: RateLimited},
		},
	}
}

// zendeskEndpoints are of endpoints, for the account, in each plan without an add-on.
var zendeskEndpoints = []Policy{
	of("incremental export", named("incremental export", per(10, Requests, time.Minute, "", Resource))),
	of("deep pages of tickets", named("deep pages of tickets", per(50, Requests, time.Minute, "", Resource))),
	of("updates of tickets", named("updates of tickets", per(100, Requests, time.Minute, "", Resource))),
}

// monday.com refuses with status 200, by codes in the body; it sends the IETF draft since 2026.
func monday() *row {
	return &row{
		Provider: Provider{
			Name: "monday", Title: "monday.com",
			Hosts: []string{"api.monday.com", ".monday.com"},
			Docs:  "https://developer.monday.com/api-reference/docs/rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: Key, Refusers: []Refuser{{"IP_RATE_LIMIT_EXCEEDED", IP}, {"*", ""}},
			Published: []Preset{
				{"monday", "complexity of an app, per account; calls per day depend on the plan",
					"https://developer.monday.com/api-reference/docs/rate-limits", "2026-11",
					[]Policy{named("reads", per(5_000_000, Weight, time.Minute, "", Key))}},
				mondayPlan("standard", "Basic and Standard plans", 1000), mondayPlan("pro", "Pro plan", 10_000), mondayPlan("enterprise", "Enterprise plan", 25_000),
			},
			// Reads and writes have a budget each. Nothing but the text of a query tells them apart, so both count in one.
			Charges: from("https://community.monday.com/t/complexity-field-weights/17444", "2026-11",
				[]Charge{{On: "POST /v2", Body: map[Unit]Expression{Weight: mondayBound},
					Answer: map[Unit]Expression{Weight: jsonPath("data.complexity.query")}, Learns: true}}),
		},
		inBody: true,
		read:   func(r *reading) { r.ietf() },
		refuse: []refused{
			{status: gentle, path: "errors.*.extensions.code", is: []Pattern{"DAILY_LIMIT_EXCEEDED"}, why: QuotaExhausted, by: "=", note: "the calls of a day are used up; they are back at midnight UTC"},
			{status: gentle, path: "errors.*.extensions.code", is: []Pattern{"*oncurrency*", "*CONCURRENCY*"}, why: TooMany, by: "="},
			{status: gentle, path: "errors.*.extensions.code", is: []Pattern{"COMPLEXITY_BUDGET_EXHAUSTED", "ComplexityException", "*RATE_LIMIT*", "RateLimitExceeded"}, why: RateLimited, by: "=", waitAt: "errors.*.extensions.retry_in_seconds"},
			{status: gentle, path: "error_code", is: []Pattern{"ComplexityException", "complexityBudgetExhausted", "*RATE_LIMIT*"}, why: RateLimited, by: "="},
			{status: gentle, path: "errors.*.message", is: []Pattern{"*Rate Limit Exceeded*"}, why: RateLimited},
		},
		worded: []worded{{says: "budget remaining {left} out of {limit} reset in {wait} second", is: named("complexity", per(0, Weight, time.Minute, "", Key))}},
	}
}

// mondayPlan has the calls per day of a plan, too, which end at midnight UTC.
func mondayPlan(name, about string, calls int64) Preset {
	return Preset{"monday:" + name, "an app, " + about + ", calls per day and complexity, per account",
		"https://support.monday.com/hc/en-us/articles/26471164460690-API-Rate-Limits", "2026-11",
		[]Policy{named("reads", per(5_000_000, Weight, time.Minute, "", Key)),
			named("day", per(calls, Requests, day, Calendar, Key))}}
}

// gentle are the statuses with which GraphQL servers answer; their errors are answers, too.
var gentle = []int{200, 400, 403, 429}

// Linear counts requests and the complexity of queries per hour, and refuses with 400.
func linear() *row {
	return &row{
		Provider: Provider{
			Name: "linear", Title: "Linear",
			Hosts: []string{"api.linear.app"},
			Docs:  "https://linear.app/developers/rate-limiting", AsOf: "2026-11",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"linear", "a user's API keys together", "https://linear.app/developers/rate-limiting", "2026-11",
					[]Policy{named("requests", per(2500, Requests, time.Hour, Bucket, Key)), named("complexity", per(3_000_000, Weight, time.Hour, Bucket, Key))}},
			},
		},
		is:     sends("X-RateLimit-Complexity-Limit", "X-RateLimit-Complexity-Remaining"),
		inBody: true,
		stated: []stated{
			{names: "X-RateLimit-Requests-*", is: named("requests", per(0, Requests, time.Hour, "", Key))},
			{names: "X-RateLimit-Complexity-*", is: named("complexity", per(0, Weight, time.Hour, "", Key))},
			{names: "X-RateLimit-Endpoint-Requests-*", called: "X-RateLimit-Endpoint-Name", is: named("endpoint", per(0, Requests, 0, "", Route))},
		},
		refuse: []refused{{status: gentle, path: "errors.*.extensions.code", is: []Pattern{"RATELIMITED"}, why: RateLimited}},
	}
}

// Amazon's Selling Partner API says how many requests per second it allows, as 0.0167.
func amazonSP() *row {
	return &row{
		Provider: Provider{
			Name: "amazon-sp", Title: "Amazon SP-API",
			Hosts: []string{"sellingpartnerapi-na.amazon.com", "sellingpartnerapi-eu.amazon.com", "sellingpartnerapi-fe.amazon.com",
				"sandbox.sellingpartnerapi-na.amazon.com", "sandbox.sellingpartnerapi-eu.amazon.com", "sandbox.sellingpartnerapi-fe.amazon.com"},
			Docs: "https://developer-docs.amazon.com/sp-api/docs/usage-plans-and-rate-limits", AsOf: "2026-11",
			Limited: Route, Banned: Key,
		},
		is: sends("X-Amzn-RateLimit-Limit"),
		read: func(r *reading) {
			const name = "X-Amzn-RateLimit-Limit"
			v, ok := r.field(name)
			if !ok {
				return
			}
			gap, err := rate(v)
			if gap, ok := r.bound(name, v, gap, err); ok {
				r.add(Policy{Unit: Requests, Scope: Route, Rule: Bucket, Limit: 1, Window: gap}, ServiceLimit{})
			}
		},
		// Despite its name it is the rate.
		refuse: []refused{{path: "errors.*.code", is: []Pattern{"QuotaExceeded"}, why: RateLimited}},
	}
}

var (
	throttling = []Pattern{"*ThrottlingException*", "*ThrottledException*", "Throttling*", "*#Throttling*", "*TooManyRequestsException*", "*ProvisionedThroughputExceeded*",
		"*RequestLimitExceeded*", "*BandwidthLimitExceeded*", "*LimitExceededException*", "*RequestThrottled*", "*SlowDown*", "*EC2Throttled*"}
	inTheWay = []Pattern{"*PriorRequestNotComplete*", "*TransactionInProgressException*"}
)

// The services of Amazon refuse with 400, 429 or 503, by a code in a field, in JSON or in XML.
func aws() *row {
	return &row{
		Provider: Provider{
			Name: "aws", Title: "AWS",
			SDKs:  []Pattern{"botocore.*", "boto3.*", "software.amazon.awssdk.*", "com.amazonaws.*", "@aws-sdk/*", "aws-sdk"},
			Hosts: []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"},
			Docs:  "https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html", AsOf: "2026-11",
			Silent: true, Limited: Route, Banned: Key,
		},
		inBody: true, // a batch of which some was not processed
		is: func(r *Response) bool {
			return r.Status >= 400 && (sends("X-Amzn-Errortype", "X-Amz-Retry-After")(r) || mentions(r, "com.amazon") && mentions(r, `"__type"`) ||
				mentions(r, "<Code>SlowDown<") || mentions(r, "<Code>RequestLimitExceeded<") || mentions(r, "(ThrottlingException)"))
		},
		read: func(r *reading) {
			r.anybody() // a service behind an API gateway may have fields of its own
			const name = "X-Amz-Retry-After"
			if v, ok := r.field(name); ok && r.RetryAfter == 0 {
				d, err := scaled(v, time.Millisecond)
				r.orRetryAfter(name, v, d, err)
			}
		},
		refuse: []refused{
			{header: "X-Amzn-Errortype", is: inTheWay, why: Conflict},
			{header: "X-Amzn-Errortype", is: throttling, why: RateLimited},
			{path: "__type", is: inTheWay, why: Conflict},
			{path: "__type", is: throttling, why: RateLimited},
			{path: "code", is: throttling, why: RateLimited},
			{is: []Pattern{"<Code>PriorRequestNotComplete<"}, why: Conflict},
			{is: []Pattern{"<Code>SlowDown<", "<Code>Throttling", "<Code>RequestLimitExceeded<", "<Code>RequestThrottled", "<Code>ThrottledException<", "<Code>TooManyRequests", "(ThrottlingException)"}, why: RateLimited},
			{status: []int{429}, path: "message", is: []Pattern{"Limit Exceeded"}, why: QuotaExhausted, note: "the quota of the usage plan is used up"},
		},
	}
}

// Microsoft Graph says in Retry-After how long to stay away, for a batch in each of its parts; what
// is sent meanwhile counts too.
func microsoftGraph() *row {
	return &row{
		Provider: Provider{
			Name: "microsoft-graph", Title: "Microsoft Graph",
			Pages: []string{"@odata.nextLink", "@odata.deltaLink"},
			SDKs:  []Pattern{"msgraph.*", "@microsoft/microsoft-graph-client"},
			Hosts: []string{"graph.microsoft.com", "graph.microsoft.us", "dod-graph.microsoft.us", "microsoftgraph.chinacloudapi.cn", ".sharepoint.com"},
			Docs:  "https://learn.microsoft.com/graph/throttling", AsOf: "2026-11",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"microsoft-graph:outlook", "an app and a mailbox", "https://learn.microsoft.com/graph/throttling-limits", "2026-11",
					[]Policy{per(10_000, Requests, 10*time.Minute, "", Key), named("concurrent", per(4, Concurrent, 0, Concurrency, Key))}},
			},
		},
		inBody: true,
		is:     sends("X-Ms-Ags-Diagnostic"),
		stated: []stated{{names: "RateLimit-*", is: named("resource units", per(0, Weight, time.Minute, "", Key))}},
		refuse: []refused{
			{path: "error.message", is: []Pattern{"*MailboxConcurrency*"}, why: TooMany},
			{path: "error.code", is: []Pattern{"TooManyRequests", "ApplicationThrottled", "activityLimitReached"}, why: RateLimited},
			{status: served, path: "responses.*.status", is: []Pattern{"429"}, why: RateLimited, waitAt: "responses.*.headers.Retry-After", note: "a part of the batch was refused"},
		},
	}
}

// Azure's resource manager says what remains of the reads and writes of a subscription or tenant,
// and of the operations of a resource:
// Microsoft.Compute/HighCostGet3Min;133,Microsoft.Compute/HighCostGet30Min;657.
func azureResources() *row {
	return &row{
		Provider: Provider{
			Name: "azure-resources", Title: "Azure Resource Manager",
			Pages: []string{"nextLink"},
			Hosts: []string{"management.azure.com", "management.usgovcloudapi.net", "management.chinacloudapi.cn"},
			Docs:  "https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		is: func(r *Response) bool { return sendsPrefix(r.Header, "X-Ms-Ratelimit-Remaining-") },
		read: func(r *reading) {
			const prefix, resource = "X-Ms-Ratelimit-Remaining-", "X-Ms-Ratelimit-Remaining-Resource"
			for _, name := range r.names(prefix) {
				if name != resource {
					p := Policy{Name: strings.ToLower(strings.TrimPrefix(name, prefix)), Unit: Requests, Scope: Key, Rule: Bucket}
					r.add(p, ServiceLimit{Remaining: r.count(name)})
				}
			}
			v, _ := r.field(resource)
			for i, item := range strings.Split(v, ",") {
				if what, n, ok := strings.Cut(strings.TrimSpace(item), ";"); ok && i < maxItems {
					r.add(Policy{Name: clip(what), Unit: Requests, Scope: Route}, ServiceLimit{Remaining: r.number(resource, n)})
				}
			}
		},
		refuse: []refused{
			{path: "error.code", is: []Pattern{"OperationNotAllowed", "TooManyRequests", "SubscriptionRequestsThrottled", "ResourceRequestsThrottled"}, status: []int{429}, why: RateLimited},
		},
	}
}

// Canvas counts the cost of requests in a bucket. It states how much is left in the bucket, but
// neither its size nor when there is more.
func canvas() *row {
	return &row{
		Provider: Provider{
			Name: "canvas", Title: "Canvas",
			Hosts: []string{".instructure.com"},
			Docs:  "https://developerdocs.instructure.com/services/canvas/basics/file.throttling", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		is: sends("X-Request-Cost", "X-Canvas-Meta"),
		read: func(r *reading) {
			if v, _ := r.field("X-Rate-Limit-Remaining"); strings.HasPrefix(v, "-") {
				r.add(Policy{Name: "cost", Unit: Weight, Scope: Key}, ServiceLimit{Remaining: Count{0, true}})
				return
			}
			r.add(Policy{Name: "cost", Unit: Weight, Scope: Key}, ServiceLimit{Remaining: r.count("X-Rate-Limit-Remaining")})
		},
		refuse: []refused{{is: []Pattern{"Rate Limit Exceeded"}, why: RateLimited}},
	}
}

// Procore has two limits, of an hour and of ten seconds. It sends the fields of the one that is
// nearer to its end.
func procore() *row {
	return &row{
		Provider: Provider{
			Name: "procore", Title: "Procore",
			Hosts: []string{"api.procore.com", "sandbox.procore.com", "login.procore.com"},
			Docs:  "https://developers.procore.com/documentation/content/rate-limiting", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		stated: []stated{{names: "X-Rate-Limit-*", is: per(0, Requests, 0, "", Key)}},
	}
}

func datadog() *row {
	return &row{
		Provider: Provider{
			Name: "datadog", Title: "Datadog",
			Pages: []string{"links/next"},
			SDKs:  []Pattern{"datadog_api_client.*", "@datadog/*"},
			Hosts: []string{".datadoghq.com", ".datadoghq.eu", ".ddog-gov.com"},
			Docs:  "https://docs.datadoghq.com/api/latest/rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		is:     sends("X-RateLimit-Period"),
		stated: []stated{{names: "X-RateLimit-*", called: "X-RateLimit-Name", window: "X-RateLimit-Period", is: per(0, Requests, 0, Calendar, Key)}},
	}
}

// Sentry's web API counts per caller and endpoint, both in windows and requests at once. Its
// ingestion has a field of its own: 60:transaction:key, 2700:default;error:organization.
func sentry() *row {
	return &row{
		Provider: Provider{
			Name: "sentry", Title: "Sentry",
			Hosts: []string{"sentry.io", ".sentry.io"},
			Docs:  "https://docs.sentry.io/api/ratelimits", AsOf: "2026-11",
			Limited: Route, Banned: Key,
		},
		is: func(r *Response) bool { return sendsPrefix(r.Header, "X-Sentry-Rate-Limit") },
		stated: []stated{
			{names: "X-Sentry-Rate-Limit-*", is: per(0, Requests, 0, "", Route)},
			{limit: "X-Sentry-Rate-Limit-ConcurrentLimit", remaining: "X-Sentry-Rate-Limit-ConcurrentRemaining", used: "-", reset: "-", is: named("concurrent", per(0, Concurrent, 0, Concurrency, Route))},
		},
		read: func(r *reading) {
			v, ok := r.field("X-Sentry-Rate-Limits")
			if !ok || r.Status < 400 || r.RetryAfter > 0 {
				return
			}
			for item := range strings.SplitSeq(v, ",") {
				s, _, _ := strings.Cut(strings.TrimSpace(item), ":")
				d, err := seconds(s)
				if d, ok := r.bound("X-Sentry-Rate-Limits", s, d, err); ok {
					r.RetryAfter = max(r.RetryAfter, d)
				}
			}
		},
		refuse: []refused{{path: "detail", is: []Pattern{"*concurrency*"}, why: TooMany}},
		worded: []worded{{says: "Limit is {limit} requests in {window} seconds", is: per(0, Requests, 0, "", Route)}},
	}
}

// Twilio refuses when too much is under way at once, for the account or for one telephone number.
func twilio() *row {
	return &row{
		Provider: Provider{
			Name: "twilio", Title: "Twilio",
			Pages: []string{"meta/next_page_url", "meta/previous_page_url", "meta/first_page_url"},
			SDKs:  []Pattern{"twilio.*", "com.twilio.*", "twilio"},
			Hosts: []string{".twilio.com"},
			Docs:  "https://www.twilio.com/docs/api/errors/20429", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key, Refusers: []Refuser{{"number", Route}},
			Published: []Preset{
				{"twilio", "requests at once of an account; how many is not published",
					"https://www.twilio.com/docs/api/errors/20429", "2026-11",
					[]Policy{named("concurrent", per(0, Concurrent, 0, Concurrency, Key))}},
			},
		},
		is: sends("Twilio-Concurrent-Requests", "Twilio-Request-Id"),
		refuse: []refused{
			{path: "code", is: []Pattern{"20429"}, why: TooMany},
			{path: "code", is: []Pattern{"60212"}, why: TooMany, by: "number"},
			{path: "code", is: []Pattern{"60202", "60203"}, why: RateLimited, by: "number"},
			{path: "code", is: []Pattern{"63038"}, why: QuotaExhausted},
		},
	}
}

func sendgrid() *row {
	return &row{
		Provider: Provider{
			Name: "sendgrid", Title: "SendGrid",
			Pages: []string{"_metadata/next", "_metadata/prev"},
			SDKs:  []Pattern{"@sendgrid/*"},
			Hosts: []string{"api.sendgrid.com"},
			Docs:  "https://www.twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/rate-limits", AsOf: "2026-11",
			Limited: Route, Banned: Key,
		},
		stated: []stated{{names: "X-RateLimit-*", is: per(0, Requests, 0, "", Route)}},
		refuse: []refused{{is: []Pattern{"Maximum credits exceeded"}, why: Unpaid}},
	}
}

// Fastly counts the requests that are not reads, and only its answers to those say so.
func fastly() *row {
	return &row{
		Provider: Provider{
			Name: "fastly", Title: "Fastly",
			Hosts: []string{"api.fastly.com", "rt.fastly.com"},
			Docs:  "https://www.fastly.com/documentation/reference/api/#rate-limiting", AsOf: "2026-11",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"fastly", "requests that change something, per user or token", "https://www.fastly.com/documentation/reference/api/#rate-limiting", "2026-11", []Policy{per(1000, Requests, time.Hour, "", Key)}},
			},
		},
		is:     sends("Fastly-RateLimit-Remaining", "Fastly-RateLimit-Reset"),
		stated: []stated{{names: "Fastly-RateLimit-*", is: per(1000, Requests, time.Hour, "", Key)}},
	}
}

// Dropbox states in the body which of two refusals it is: too many requests of a user, or
// conflicting writers.
func dropbox() *row {
	return &row{
		Provider: Provider{
			Name: "dropbox", Title: "Dropbox",
			SDKs:  []Pattern{"dropbox.*", "com.dropbox.*", "dropbox"},
			Hosts: []string{"api.dropboxapi.com", "content.dropboxapi.com", "notify.dropboxapi.com"},
			Docs:  "https://developers.dropbox.com/error-handling-guide", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key,
		},
		is: func(r *Response) bool { return sends("X-Dropbox-Request-Id")(r) },
		refuse: []refused{
			{path: "error_summary", is: []Pattern{"too_many_write_operations*"}, why: Conflict, waitAt: "error.retry_after", wait: time.Second},
			{path: "error_summary", is: []Pattern{"too_many_requests*"}, why: RateLimited, waitAt: "error.retry_after"},
		},
	}
}

// Docker Hub counts pulls in a rolling window of six hours, per address or user. An answer names
// the one that it counted for.
func dockerHub() *row {
	return &row{
		Provider: Provider{
			Name: "docker-hub", Title: "Docker Hub",
			Pages: []string{"next", "previous"},
			Hosts: []string{"registry-1.docker.io", "auth.docker.io", "index.docker.io", "hub.docker.com"},
			Docs:  "https://docs.docker.com/docker-hub/usage/", AsOf: "2026-11",
			Limited: Key, Banned: IP, Refusers: []Refuser{{"abuse", IP}},
			Published: []Preset{
				{"docker-hub:unauthenticated", "pulls per address", "https://docs.docker.com/docker-hub/usage/", "2026-11", []Policy{per(100, Requests, 6*time.Hour, Rolling, IP)}},
				{"docker-hub:personal", "pulls per user", "https://docs.docker.com/docker-hub/usage/", "2026-11", []Policy{per(200, Requests, 6*time.Hour, Rolling, Key)}},
			},
		},
		is: sends("Docker-RateLimit-Source"),
		read: func(r *reading) {
			if !r.ietf() {
				r.anybody()
			}
			source, _ := r.field("Docker-RateLimit-Source")
			scope := Key
			if strings.ContainsAny(source, ".:/") { // an address or a network; a user is a UUID
				scope = IP
			}
			for i := range r.Policies {
				r.Policies[i].Scope, r.Policies[i].Rule = scope, Rolling
			}
			for i := range r.Limits {
				r.Limits[i].Scope = scope
			}
		},
		refuse: []refused{
			{is: []Pattern{"HAP429"}, why: RateLimited, by: "abuse"},
			{path: "errors.*.code", is: []Pattern{"TOOMANYREQUESTS"}, why: RateLimited},
		},
	}
}

// Trello counts requests of an API key, of a token and of a member. It states the length of each
// window, but never its end.
func trello() *row {
	return &row{
		Provider: Provider{
			Name: "trello", Title: "Trello",
			Hosts: []string{"api.trello.com", "trello.com"},
			Docs:  "https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits/", AsOf: "2026-05",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"trello", "an API key and a token of it", "https://developer.atlassian.com/cloud/trello/guides/rest-api/rate-limits/", "2026-05",
					[]Policy{named("key", per(300, Requests, 10*time.Second, "", Key)), named("token", per(100, Requests, 10*time.Second, "", Key))}},
			},
		},
		is: sends("X-Rate-Limit-Api-Token-Max", "X-Rate-Limit-Api-Key-Max"),
		stated: []stated{
			{limit: "X-Rate-Limit-Api-Key-Max", remaining: "X-Rate-Limit-Api-Key-Remaining", used: "-", reset: "-", window: "X-Rate-Limit-Api-Key-Interval-Ms", per: time.Millisecond,
				is: named("key", per(0, Requests, 10*time.Second, "", Key))},
			{limit: "X-Rate-Limit-Api-Token-Max", remaining: "X-Rate-Limit-Api-Token-Remaining", used: "-", reset: "-", window: "X-Rate-Limit-Api-Token-Interval-Ms", per: time.Millisecond,
				is: named("token", per(0, Requests, 10*time.Second, "", Key))},
			{limit: "X-Rate-Limit-Member-Max", remaining: "X-Rate-Limit-Member-Remaining", used: "-", reset: "-", window: "X-Rate-Limit-Member-Interval-Ms", per: time.Millisecond,
				is: named("member", per(0, Requests, 10*time.Second, "", Key))},
		},
		refuse: []refused{{path: "error", is: []Pattern{"*_LIMIT_EXCEEDED"}, why: RateLimited}},
	}
}

// BigCommerce says in milliseconds how long its window is and when it ends.
func bigCommerce() *row {
	return &row{
		Provider: Provider{
			Name: "bigcommerce", Title: "BigCommerce",
			Hosts: []string{"api.bigcommerce.com"},
			Docs:  "https://developer.bigcommerce.com/docs/start/best-practices/api-rate-limits", AsOf: "2024-06",
			Limited: Key, Banned: Key,
		},
		is: sends("X-Rate-Limit-Requests-Quota", "X-Rate-Limit-Requests-Left"),
		stated: []stated{
			{limit: "X-Rate-Limit-Requests-Quota", remaining: "X-Rate-Limit-Requests-Left", used: "-", reset: "X-Rate-Limit-Time-Reset-Ms", unit: time.Millisecond,
				window: "X-Rate-Limit-Time-Window-Ms", per: time.Millisecond, is: per(0, Requests, 0, "", Key)},
		},
	}
}
