package quota

import (
	"slices"
	"time"
)

// Preset is what a provider publishes about its limits, under a name: "heroku", "openai:tier1". A part after a colon is a tier,
// a market or a mode. Published limits change, and an account may have others: what a response states goes before.
type Preset struct {
	Name  string
	About string
	// Source is where it is published, AsOf the year, or the year and month, in which it was read there.
	Source, AsOf string
	// Policies have Source Documented.
	Policies []Policy
}

// Presets returns all presets, sorted by name.
func Presets() []Preset {
	all := slices.Clone(presets)
	for i := range all {
		all[i].Policies = slices.Clone(all[i].Policies)
	}
	return order(all, func(p Preset) string { return p.Name })
}

// LookupPreset returns the preset of a name.
func LookupPreset(name string) (Preset, bool) {
	for _, p := range presets {
		if p.Name == name {
			p.Policies = slices.Clone(p.Policies)
			return p, true
		}
	}
	return Preset{}, false
}

// documented returns the policies of a preset that is there.
func documented(name string) []Policy {
	p, ok := LookupPreset(name)
	if !ok {
		panic("quota: no preset " + name)
	}
	return p.Policies
}

// per writes the rows below.
func per(limit int64, unit Unit, window time.Duration, rule Rule, scope Scope) Policy {
	return Policy{Name: string(unit), Unit: unit, Scope: scope, Rule: rule, Limit: limit, Window: window, Source: Documented, WindowSource: Documented}
}

// bucket is a bucket that holds another amount than flows in per window.
func bucket(burst, limit int64, unit Unit, window time.Duration, scope Scope) Policy {
	p := per(limit, unit, window, Bucket, scope)
	p.Burst = burst
	return p
}

// named gives a policy a name of its own.
func named(name string, p Policy) Policy {
	p.Name = name
	return p
}

const day = 24 * time.Hour

var presets = []Preset{
	// 4500 tokens at most, about 75 more per minute; GCRA by the account of its engineers (heroku.com/blog, "rate throttling").
	{"heroku", "Platform API, per account", "https://devcenter.heroku.com/articles/platform-api-reference#rate-limits", "2026",
		[]Policy{per(4500, Requests, time.Hour, Bucket, Key)}},

	{"github", "REST, with a user's token", "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026",
		[]Policy{per(5000, Requests, time.Hour, Anchored, Key), named("concurrent", per(100, Concurrent, 0, Concurrency, Key))}},
	{"github:unauthenticated", "REST, without a token", "https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026",
		[]Policy{per(60, Requests, time.Hour, Anchored, IP)}},
	{"github:search", "search, with a token", "https://docs.github.com/en/rest/search/search#rate-limit", "2026",
		[]Policy{per(30, Requests, time.Minute, Anchored, Key)}},

	// OpenAI's tiers differ by model; these are gpt-4o's. The headers of a tier 1 account state the same: 500 and 30,000.
	{"openai:tier1", "gpt-4o, tier 1", "https://platform.openai.com/docs/models/gpt-4o", "2024-07",
		[]Policy{per(500, Requests, time.Minute, Bucket, Model), per(30_000, Tokens, time.Minute, Bucket, Model)}},
	{"openai:tier2", "gpt-4o, tier 2", "https://platform.openai.com/docs/models/gpt-4o", "2024-06",
		[]Policy{per(5000, Requests, time.Minute, Bucket, Model), per(450_000, Tokens, time.Minute, Bucket, Model)}},

	// Anthropic's tiers differ by model; these are of Claude Fable 5.
	{"anthropic:start", "Claude Fable 5, Start tier", "https://platform.claude.com/docs/en/api/rate-limits", "2026-10",
		[]Policy{per(1000, Requests, time.Minute, Bucket, Model), per(500_000, Input, time.Minute, Bucket, Model), per(100_000, Output, time.Minute, Bucket, Model)}},
	{"anthropic:scale", "Claude Fable 5, Scale tier", "https://platform.claude.com/docs/en/api/rate-limits", "2026-10",
		[]Policy{per(4000, Requests, time.Minute, Bucket, Model), per(4_000_000, Input, time.Minute, Bucket, Model), per(800_000, Output, time.Minute, Bucket, Model)}},

	// The message of a refusal states both: TPM 12,000 and TPD 100,000.
	{"groq:free", "llama-3.3-70b-versatile, on demand", "https://console.groq.com/docs/rate-limits", "2026-02",
		[]Policy{per(12_000, Tokens, time.Minute, Bucket, Model), named("tokens per day", per(100_000, Tokens, day, Bucket, Model))}},

	// Weight per address; orders per account. GET /api/v3/exchangeInfo states the same as rateLimits.
	{"binance", "spot", "https://developers.binance.com/docs/binance-spot-api-docs/rest-api/limits", "2026",
		[]Policy{per(6000, Weight, time.Minute, Calendar, IP), per(100, Orders, 10*time.Second, Calendar, Key), named("orders per day", per(200_000, Orders, day, Calendar, Key))}},
	{"binance:futures", "USDⓈ-M futures", "https://developers.binance.com/docs/derivatives/usds-margined-futures/general-info", "2026",
		[]Policy{per(2400, Weight, time.Minute, Calendar, IP), per(300, Orders, 10*time.Second, Calendar, Key), named("orders per minute", per(1200, Orders, time.Minute, Calendar, Key))}},

	// A counter of at most 15 or 20 that goes down by 0.33, 0.5 or 1 per second; most calls count 1, histories 2.
	{"kraken:starter", "spot REST, per key", "https://docs.kraken.com/api/docs/guides/spot-rest-ratelimits", "2026",
		[]Policy{bucket(15, 33, Weight, 100*time.Second, Key)}},
	{"kraken:intermediate", "spot REST, per key", "https://docs.kraken.com/api/docs/guides/spot-rest-ratelimits", "2026",
		[]Policy{bucket(20, 1, Weight, 2*time.Second, Key)}},
	{"kraken:pro", "spot REST, per key", "https://docs.kraken.com/api/docs/guides/spot-rest-ratelimits", "2026",
		[]Policy{bucket(20, 1, Weight, time.Second, Key)}},

	{"coinbase", "Exchange, private endpoints, per profile", "https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026",
		[]Policy{bucket(30, 15, Requests, time.Second, Key)}},
	{"coinbase:public", "Exchange, public endpoints, per address", "https://docs.cdp.coinbase.com/exchange/rest-api/rate-limits", "2026",
		[]Policy{bucket(15, 10, Requests, time.Second, IP)}},
	{"bybit", "v5, per address; endpoints have limits of their own", "https://bybit-exchange.github.io/docs/v5/rate-limit", "2026",
		[]Policy{per(600, Requests, 5*time.Second, Rolling, IP)}},
	{"okx", "orders of a sub-account; endpoints have limits of their own", "https://www.okx.com/docs-v5/en/#overview-rate-limits", "2026",
		[]Policy{per(1000, Orders, 2*time.Second, "", Key)}},
	// Messages above the first figure are rejected, at the second the session is logged out. The 3 s begin with a message.
	{"cme", "iLink, per session", "https://cmegroupclientsite.atlassian.net/wiki/spaces/EPICSANDBOX/pages/457317540/Messaging+Controls", "2026",
		[]Policy{named("reject", per(1500, Requests, 3*time.Second, Anchored, Key)), named("logout", per(2250, Requests, 3*time.Second, Anchored, Key))}},

	{"shopify", "REST, standard plan, per app and shop", "https://shopify.dev/docs/api/usage/limits", "2026",
		[]Policy{per(40, Requests, 20*time.Second, Bucket, Key)}},
	{"stripe", "live mode, per account", "https://docs.stripe.com/rate-limits", "2026",
		[]Policy{per(100, Requests, time.Second, "", Key)}},
	{"stripe:sandbox", "per account", "https://docs.stripe.com/rate-limits", "2026",
		[]Policy{per(25, Requests, time.Second, "", Key)}},
	{"discord", "per bot, besides the limits of each route", "https://discord.com/developers/docs/topics/rate-limits", "2026",
		[]Policy{per(50, Requests, time.Second, "", Key)}},
	{"cloudflare", "client API, per user", "https://developers.cloudflare.com/fundamentals/api/reference/limits/", "2026",
		[]Policy{per(1200, Requests, 5*time.Minute, "", Key)}},
	// Slack's tiers are of a method; each is "or more", with bursts that it does not promise.
	{"slack:tier1", "a method of tier 1, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
		[]Policy{per(1, Requests, time.Minute, "", Route)}},
	{"slack:tier2", "a method of tier 2, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
		[]Policy{per(20, Requests, time.Minute, "", Route)}},
	{"slack:tier3", "a method of tier 3, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
		[]Policy{per(50, Requests, time.Minute, "", Route)}},
	{"slack:tier4", "a method of tier 4, per workspace", "https://docs.slack.dev/apis/web-api/rate-limits", "2026",
		[]Policy{per(100, Requests, time.Minute, "", Route)}},
	// 100 per minute on the average of ten minutes; the fields of an OAuth client state 1000 per 600 s.
	{"reddit", "OAuth client", "https://support.reddithelp.com/hc/en-us/articles/16160319875092-Reddit-Data-API-Wiki", "2026",
		[]Policy{per(1000, Requests, 10*time.Minute, Anchored, Key)}},
	{"atlassian", "Jira and Confluence apps, points of the global pool", "https://developer.atlassian.com/cloud/jira/platform/rate-limiting/", "2026-03",
		[]Policy{per(65_000, Weight, time.Hour, Calendar, Key)}},
}
