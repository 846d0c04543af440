package service

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// llms are providers of language models.
func llms() []*tableRow {
	return []*tableRow{
		groqRow(),
		azureOpenaiRow(),
		geminiRow(),
		mistralRow(),
		deepseekRow(),
	}
}

func groqRow() *tableRow {
	return &tableRow{
		name: "groq", about: "Groq's API: requests and tokens, of a minute and of a day",
		limits: []limitSet{
			set("groq:free", policy("requests per minute", 30, requests, time.Minute, inBucket, perModel),
				policy("requests", 1000, requests, day, inBucket, perModel),
				policy("tokens", 8000, allTokens, time.Minute, inBucket, perModel),
				policy("tokens per day", 200_000, allTokens, day, inBucket, perModel)),
		},
		assumed: "tokens are estimated: one per four bytes of the body, and max_tokens",
		cost:    tokensToo,
		api:     groqVendor().api(),
		speak: func(a *reply) {
			a.set("X-Groq-Region", "ratetest")
			a.set("X-Request-Id", fmt.Sprintf("req_%020d", a.n))
			// Requests are always those of a day, tokens those of a minute.
			for _, name := range []string{"requests", "tokens"} {
				l := a.limit(name)
				a.set("X-Ratelimit-Limit-"+name, l.Limit)
				a.set("X-Ratelimit-Remaining-"+name, l.Left)
				a.set("X-Ratelimit-Reset-"+name, host.RoundUp(l.Whole.Sub(a.now), time.Millisecond))
			}
			if a.by == nil {
				return
			}
			what := map[string]string{"tokens": "tokens per minute (TPM)", "tokens per day": "tokens per day (TPD)",
				"requests": "requests per day (RPD)", "requests per minute": "requests per minute (RPM)"}[a.by.Name]
			says := fmt.Sprintf("Rate limit reached for model `%s` in organization `org_ratetest` service tier `on_demand` on "+
				"%s: Limit %d, Used %d, Requested %d. Please try again in %v.",
				a.Model, what, a.by.Limit, a.by.Used(), a.by.Cost, host.RoundUp(a.wait, time.Millisecond))
			if a.never {
				a.status = http.StatusRequestEntityTooLarge
				says = fmt.Sprintf("Request too large for model `%s` in organization `org_ratetest` service tier `on_demand` on "+
					"%s: Limit %d, Requested %d, please reduce your message size and try again.",
					a.Model, what, a.by.Limit, a.by.Cost)
			}
			a.retryAfter()
			kind, _, _ := strings.Cut(a.by.Name, " ")
			a.body = object{"error": object{"message": says, "type": kind, "code": "rate_limit_exceeded"}}
		},
	}
}

func azureOpenaiRow() *tableRow {
	return &tableRow{
		name: "azure-openai", about: "Azure OpenAI: tokens of a minute, and requests of its tenth, of a deployment",
		limits: []limitSet{set("azure-openai", policy("requests", 120, requests, 10*time.Second, calendar, perModel),
			policy("tokens", 120_000, allTokens, time.Minute, calendar, perModel))},
		assumed: "a deployment of 120,000 tokens a minute, to which 720 requests belong; intervals are those of the clock; " +
			"tokens are estimated: one per four bytes of the body, and max_tokens",
		cost: tokensToo,
		api:  azureVendor().api(),
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
	}
}

func geminiRow() *tableRow {
	return &tableRow{
		name: "gemini", about: "The Gemini API's free tier: everything in the body of a refusal",
		limits: []limitSet{set("gemini",
			policy("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", 10, requests, time.Minute, anchored, perModel),
			policy("GenerateContentInputTokensPerModelPerMinute-FreeTier", 250_000, inputTokens, time.Minute, anchored,
				perModel),
			policy("GenerateRequestsPerDayPerProjectPerModel-FreeTier", 250, requests, day, calendar, perModel))},
		assumed: "the limits of gemini-2.5-flash; minutes begin with a request; days begin at midnight Pacific Standard " +
			"Time, in summer too; tokens are estimated: one per four bytes of the body",
		midnight: 8 * time.Hour,
		cost:     tokensToo,
		api:      geminiVendor().api(),
		speak: func(a *reply) {
			if a.by == nil {
				return
			}
			var violations []object
			for _, l := range a.limits {
				metric := "generativelanguage.googleapis.com/generate_content_free_tier_requests"
				if l.Unit == provider.Input {
					metric = "generativelanguage.googleapis.com/generate_content_free_tier_input_token_count"
				}
				if l.Over {
					violations = append(violations, object{
						"quotaMetric": metric, "quotaId": l.Name, "quotaValue": fmt.Sprint(l.Limit),
						"quotaDimensions": object{"location": "global", "model": a.Model},
					})
				}
			}
			details := []object{{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}}
			says := "You exceeded your current quota, please check your plan and billing details."
			if a.wait > 0 {
				// A daily quota too asks for less than a minute.
				delay := seconds(min(a.wait, time.Minute)) + "s"
				says += " Please retry in " + delay + "."
				details = append(details, object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
			}
			a.body = object{"error": object{"code": 429, "message": says, "status": "RESOURCE_EXHAUSTED", "details": details}}
		},
	}
}

func mistralRow() *tableRow {
	return &tableRow{
		name: "mistral", about: "Mistral's API: requests and tokens of a minute that rolls, and never when to come back",
		limits: []limitSet{set("mistral", policy("requests", 50, requests, time.Minute, rolling, perModel),
			policy("tokens", 50_000, allTokens, time.Minute, rolling, perModel))},
		assumed: "the limits of mistral-small in the free plan; tokens are estimated: one per four bytes of the body, and " +
			"max_tokens, all of which is produced",
		cost: tokensToo,
		api:  mistralVendor().api(),
		speak: func(a *reply) {
			a.set("Mistral-Correlation-Id", fmt.Sprintf("00000000-0000-4000-8000-%012x", a.n))
			for _, family := range []struct{ name, field string }{{"requests", "req"}, {"tokens", "tokens"}} {
				if l := a.limit(family.name); a.by == nil || a.by == l { // of a refusal, only the limit that refused
					a.set("X-Ratelimit-Limit-"+family.field+"-Minute", l.Limit)
					a.set("X-Ratelimit-Remaining-"+family.field+"-Minute", l.Left)
				}
			}
			a.set("X-Ratelimit-Tokens-Query-Cost", a.Tokens+a.Output)
			a.refused(object{"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "param": nil,
				"code": "1300", "raw_status_code": 429})
		},
	}
}

// The limits and the 429 are those of api-docs.deepseek.com/quick_start/rate_limit, looked up in 2026-11.
func deepseekRow() *tableRow {
	limits := func(name string, n int64) limitSet {
		return set(name, policy("concurrent", n, concurrent, 0, atOnce, perModel))
	}
	return &tableRow{
		name: "deepseek", about: "DeepSeek's API: requests at once of a model; answers state no limit",
		limits:  []limitSet{limits("deepseek:pro", 500), limits("deepseek:flash", 2500)},
		assumed: "each model has the limit of the set; a refusal has the form of the other errors",
		api:     deepseekVendor().api(),
		speak: func(a *reply) {
			a.set("X-Ds-Trace-Id", fmt.Sprintf("%032x", a.n))
			a.refused(object{"error": object{"message": "Rate Limit Reached", "type": "rate_limit_error", "param": nil,
				"code": nil}})
		},
	}
}
