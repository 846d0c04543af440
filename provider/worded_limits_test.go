package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/provider"
)

// TestWordsOfRefusals reads each word for a refusal that a provider documents, with statuses that
// decide nothing by themselves. Answers with most of these words were never published. After a
// change: -update, and read the difference beside the page.
func TestWordsOfRefusals(t *testing.T) {
	var b strings.Builder
	tell := func(dialect string, status int, body string, fields ...string) {
		o := read(t, dialect, noon, respond(status, body, fields...))
		fmt.Fprintf(&b, "%s %d %s %s\n  %s, wait %v\n", dialect, status, body, strings.Join(fields, ", "), refusal(&o), o.RetryAfter)
		for _, p := range o.Policies {
			fmt.Fprintf(&b, "  %q: %d %s, %d at once, per %v (%s) of the %s, %s, %s %s\n", p.Name, p.Limit, p.Unit, p.Burst, p.Window, p.WindowSource, p.Scope, p.Rule, p.Source, p.Partition)
		}
		for _, l := range o.Limits {
			fmt.Fprintf(&b, "  %q: %v left and %v used of %s of the %s", l.Policy, l.Remaining, l.Used, l.Unit, l.Scope)
			if !l.Reset.IsZero() {
				fmt.Fprintf(&b, ", again in %v, whole %v", l.Reset.Sub(noon), l.Whole)
			}
			b.WriteString("\n")
		}
		for _, n := range append(o.Notes, o.Problems...) {
			fmt.Fprintf(&b, "  %s\n", n)
		}
	}
	each := func(dialect string, status int, body string, words ...string) {
		for _, w := range words {
			tell(dialect, status, strings.Replace(body, "*", w, 1))
		}
	}

	each("kraken", 200, `{"error":["*"]}`, "EAPI:Rate limit exceeded", "EService:Throttled", "EService:Throttled: 1768478460", "EService:Throttled:soon", "EGeneral:Too many requests",
		"EOrder:Rate limit exceeded", "EOrder:Orders limit exceeded", "EOrder:Positions limit exceeded", "EGeneral:Temporary lockout", "EAPI:Invalid nonce", "EService:Unavailable", "EService:Busy", "EAPI:Busy", "EOther: Throttled")
	tell("kraken", 200, `{"error":["EGeneral:Temporary lockout"]}`, "Retry-After: 7")
	tell("kraken", 200, `{"error":["EService:Throttled: 1768478460"]}`, "Retry-After: 7")
	each("okx", 200, `{"code":*}`, `"50011"`, `"50061"`, `"50001"`, `"50013"`, `"50026"`, `"0"`, `50011`, `50013`, `[]`)
	each("bybit", 200, `{"retCode":*}`, "0", "10006", "10018")
	each("bybit", 200, `{"ret_code":*}`, "0", "10006", "10018")
	each("bybit", 403, "*", "", "from your country")
	each("slack", 200, `{"error":"*"}`, "ratelimited", "rate_limited", "service_unavailable", "team_added_to_org", "invalid_auth")
	each("stripe", 400, `{"error":{"code":"*"}}`, "lock_timeout", "rate_limit")
	each("anthropic", 400, `{"error":{"type":"*"}}`, "rate_limit_error", "overloaded_error", "billing_error", "request_too_large", "invalid_request_error", "api_error")
	each("anthropic", 400, `{"error":{"type":"invalid_request_error","message":"*"}}`, "Your credit balance is too low", "You will regain access on 2026-01-16 at 00:00 UTC.", "You will regain access on Friday")
	tell("anthropic", 429, "", "X-Should-Retry: false", "Anthropic-RateLimit-Unified-Status: rejected", "Anthropic-RateLimit-Unified-Reset: 1768478460")
	tell("anthropic", 429, "", "Anthropic-RateLimit-Unified-Status: rejected", "Anthropic-RateLimit-Unified-Reset: 1768478460", "Retry-After: 7")
	tell("anthropic", 429, "", "Anthropic-RateLimit-Unified-Status: allowed", "Anthropic-RateLimit-Unified-Reset: 1768478460", "X-Should-Retry: true")
	each("openai", 400, `{"error":{"code":"*"}}`, "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "a_spend_limit_exceeded", "capacity_exceeded", "resource_unavailable", "slow_down", "server_is_overloaded", "other")
	each("openai", 400, `{"error":{"message":"*"}}`, "You have no credits remaining", "The model is currently overloaded", "Request too large", "no")
	tell("openai", 413, `{"error":{}}`)
	tell("groq", 498, `{"error":{}}`)
	each("openai", 429, `{"error":{"message":"*"}}`, "Request too large", "Reached on tokens per min (TPM): Limit 30000, Used 28770, Requested 4351. Please try again in 6.242s.", "Reached on requests per day (RPD): Limit 200, Requested 201.",
		"Reached on requests per min (RPM): Limit 0", "Reached on images: Limit 3", "try again in a while", "Reached on tokens per day (TPD): Limit 500, Used 600")
	each("gemini", 429, `{"error":{"status":"*"}}`, "RESOURCE_EXHAUSTED", "UNAVAILABLE", "OTHER")
	each("gemini", 400, `{"error":{"status":"*"}}`, "RESOURCE_EXHAUSTED", "UNAVAILABLE", "OTHER")
	each("gemini", 400, `{"error":{"message":"Your prepayment *"}}`, "credits are depleted", "is here")
	for _, metric := range []string{"requests", "input_token_count", "output_token_count", "token_count"} {
		for _, id := range []string{"PerDayPerProjectPerModel", "PerMinutePerProject", "PerHour"} {
			tell("gemini", 429, fmt.Sprintf(`{"error":{"details":[{"@type":"google.rpc.QuotaFailure","violations":[{"quotaMetric":%q,"quotaId":%q,"quotaValue":"20"}]}]}}`, metric, id))
		}
	}
	each("gemini", 429, `{"error":{"details":[{"@type":"google.rpc.ErrorInfo","metadata":{"quota_limit":"*"}},{"@type":"google.rpc.RetryInfo","retryDelay":"36s"}]}}`, "DefaultPerDay", "DefaultPerMinute", "")
	each("vertex", 429, `{"error":{"message":"*"}}`, "Resource exhausted", "Resource has been exhausted", "Quota exceeded")
	each("shopify", 200, `{"errors":[{"extensions":{"code":"*"}}],"extensions":{"cost":{"requestedQueryCost":500,"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":400,"restoreRate":50}}}}`, "THROTTLED", "MAX_COST_EXCEEDED", "OTHER")
	each("shopify", 200, `{"extensions":{"cost":{"throttleStatus":*}}}`, `{"maximumAvailable":1000,"currentlyAvailable":1000,"restoreRate":50}`, `{"maximumAvailable":1000,"currentlyAvailable":1000}`, `{"maximumAvailable":0.5,"currentlyAvailable":0,"restoreRate":1}`, `{"maximumAvailable":1,"currentlyAvailable":0,"restoreRate":0.0003}`, `{"maximumAvailable":1000,"currentlyAvailable":-1,"restoreRate":50}`, `{"maximumAvailable":1000,"currentlyAvailable":2000,"restoreRate":50}`)
	tell("shopify", 200, "", "X-Shopify-Shop-Api-Call-Limit: 41/40")
	tell("shopify", 200, "", "X-Shopify-Shop-Api-Call-Limit: 40/40")
	each("discord", 429, `{"retry_after":0.25*}`, "", `,"global":true`, `,"message":"You are blocked from accessing our API"`)
	tell("discord", 429, "", "X-RateLimit-Scope: shared")
	tell("discord", 429, "", "X-RateLimit-Scope: global")
	tell("discord", 429, "", "X-RateLimit-Bucket: b")
	tell("discord", 429, `{"retry_after":1}`, "X-RateLimit-Bucket: b", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1768478460")
	each("x", 429, `{"title":"*"}`, "UsageCapExceeded", "Too Many Requests")
	each("xai", 429, `{"code":"resource-exhausted","error":"Too many of team t and model m. Your team's rate limit is - * You can view"}`, "Tokens per Minute (actual/limit): 65605/16,000.",
		"Requests per Second (actual/limit): 2/2", "Requests per Minute (actual/limit): 0/0.", "Requests per Minute (actual/limit): all/2", "Requests per Minute (actual/limit): 3 of 2", "Requests per Minute (actual/limit): 3")
	each("sentry", 429, `"*"`, "Limit is 70 requests in 1 seconds", "Limit is 1e9 requests in 1 seconds", "Limit is many; Limit is 5 requests in 99999999 seconds", "Limit is 99999999999999999999 requests in 0.5 seconds")
	each("monday", 200, `{"error_code":"complexityBudgetExhausted","error_message":"budget remaining * seconds"}`, "3 out of 10000000 reset in 16", "3 out of 0 reset in 16", "3 out of 5 reset in 99999999", "3 out of 5 reset in 0")
	tell("sentry", 200, `"Limit is 70 requests in 1 seconds"`)
	for _, fields := range []string{"Policy: 1;w=1, 15000;w=2592000", "Policy: 2;w=1, 15000;w=2592000", "Policy: 1;w=", "Policy: 1", "Reset: 5", "Reset: soon, 7", "Window: 3"} {
		tell("generic", 429, "", "X-RateLimit-Limit: 1, 15000", "X-RateLimit-Remaining: 0, 14523", "X-RateLimit-"+fields)
	}
	tell("generic", 200, "", "X-RateLimit-Limit: 1, 15000", "X-RateLimit-Remaining: 14523")
	tell("generic", 200, "", "X-RateLimit-Limit: 1, many", "X-RateLimit-Remaining: 1, 7", "X-RateLimit-Reset: 1, 7")
	each("notion", 400, `{"code":"*"}`, "rate_limited", "service_overload", "service_unavailable", "conflict_error", "other")
	each("notion", 429, `{"code":"rate_limited","additional_data":{"rate_limit_reason":"public_api_request_blocked","retry_after":*}}`, "3", `"3"`, "null", `"x"`)
	each("github", 403, `{"message":"*"}`, "secondary rate limit", "abuse detection", "API rate limit exceeded", "Must have admin rights")
	for _, kind := range []string{"quota-exceeded", "temporary-reduced-capacity", "abnormal-usage-detected", "other"} {
		tell("ietf", 400, fmt.Sprintf(`{"type":"https://iana.org/assignments/http-problem-types#%s","violated-policies":["a","b"]}`, kind), "Content-Type: application/problem+json")
	}
	tell("ietf", 400, `{"type":"#quota-exceeded"}`, "Content-Type: application/json")
	tell("ietf", 200, "", `RateLimit-Policy: "a";q=5;w=60;qu="content-bytes";pk=:YQ==:, "b";q=2;qu="concurrent-requests";burst=3, "c";q=1;qu="other"`, `RateLimit: "a";r=3;t=7, "b";r=1, "c";r=0`)
	tell("ietf", 200, "", "RateLimit: limit=5, remaining=3, reset=7")
	tell("ietf", 200, "", "RateLimit: limit=0, remaining=3")
	tell("ietf", 200, "", "RateLimit: limit=(1 2), other=1")
	for _, usage := range []string{`{"call_count":28,"total_time":99,"total_cputime":25}`, `{"call_count":100}`, `{"a":[{"call_count":101,"estimated_time_to_regain_access":3}]}`, `{"acc_id_util_pct":100,"reset_time_duration":60}`, `{"acc_id_util_pct":99,"reset_time_duration":60}`, "{"} {
		tell("meta", 200, "", "X-App-Usage: "+usage)
	}
	golden.Compare(t, "words.txt", b.String())
}

// TestOfNobody: the results for a dialect that is not in the table, and for no dialect.
func TestOfNobody(t *testing.T) {
	limited, banned, names := provider.Whom("nobody")
	if limited != provider.Key || banned != provider.Key || len(names) != 1 || !names[0].Pattern.Match("anything") {
		t.Errorf("refusals concern %q and %q, by %v", limited, banned, names)
	}
	if p, ok := provider.LookupProvider("nobody"); ok {
		t.Errorf("%+v", p)
	}
	if p, ok := provider.LookupPreset("nobody"); ok {
		t.Errorf("%+v", p)
	}
	if o := (provider.Observation{}); o.Vouched(1) {
		t.Error("a wait of which nobody said anything is vouched for")
	}
}

// TestRatesInWords: a refusal by anybody may state its limits in words. What was used, and what
// another plan would allow, are none.
func TestRatesInWords(t *testing.T) {
	for message, want := range map[string]string{
		"You have reached the rate limit of this model. The maximum rate limit for this model is 600 RPM (10 QPS) and 180000 TPM.": "600 requests 1m0s, 10 requests 1s, 180000 tokens 1m0s",
		"Rate limit of 20 requests per minute exceeded":                           "20 requests 1m0s",
		"Rate limit exceeded: 5 calls/second":                                     "5 requests 1s",
		"Limited to 1,000 queries per 10 minutes.":                                "1000 requests 10m0s",
		"Your limit is 0.6 queries per minute.":                                   "1 requests 1m40s",
		"Quota: 50 requests a day":                                                "50 requests 24h0m0s",
		"You used 65 requests per minute.":                                        "",
		"Rate limit exceeded. You sent 65 requests per minute.":                   "",
		"Limit reached, current usage 65 requests per minute":                     "",
		"Rate limit exceeded. Paid plans have a limit of 600 requests per minute": "",
		"Rate limit exceeded. Upgrade for a limit of 600 RPM":                     "",
		"Limit 5 exceeded, 10 requests in flight":                                 "",
		"The limit is 3 requests per century":                                     "",
		"The limit is 99,999,999,999,999 calls/hour":                              "17592186044416 requests 1h0m0s",
	} {
		o := refusedWith(t, 429, message)
		var got []string
		for _, p := range o.Policies {
			got = append(got, fmt.Sprintf("%d %s %v", p.Limit, p.Unit, p.Window))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s\n\t%s, want %s", message, got, want)
		}
	}
}
