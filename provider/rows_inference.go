package provider

import (
	"strings"
	"time"
)

// Providers that run language models, beside those in rows_llm.go. Most speak as OpenAI does, but
// count differently.
func inference() []*row {
	return []*row{
		mistral(), cerebras(), sambanova(), cohere(), fireworks(), huggingface(), openrouter(), replicate(), elevenlabs(), xai(), deepseek(), bedrock(), vertex(), ollama(), perplexity(), together(),
	}
}

// Mistral never says when there is more. It counts in sixty seconds that slide, and counts what was
// used, not what was asked for.
func mistral() *row {
	return &row{
		Provider: Provider{
			Name: "mistral", Title: "Mistral", Shares: dated,
			SDKs:   []Pattern{"mistralai.*", "@mistralai/*"},
			Models: modelsOf("mistral"), Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Requests: 1_000_000, Docs: "https://docs.mistral.ai/studio-api/batch-processing"},
			Hosts: []string{"api.mistral.ai", "api.eu.mistral.ai", "codestral.mistral.ai"},
			Docs:  "https://docs.mistral.ai/deployment/ai-studio/tier", AsOf: "2026-11",
			Limited: Model, Banned: Key,
			Tokens: countsUsed,
			Published: []Preset{
				{"mistral", "an organization and a model; answers state how many",
					"https://docs.mistral.ai/deployment/ai-studio/tier", "2026-11",
					[]Policy{per(0, Requests, time.Minute, Rolling, Model),
						per(0, Tokens, time.Minute, Rolling, Model)}},
			},
		},
		is: sends("X-RateLimit-Limit-Req-Minute", "X-RateLimit-Remaining-Req-Minute", "Mistral-Correlation-Id", "RateLimitBySize-Limit"),
		stated: []stated{
			{names: "X-RateLimit-*-Req-Minute", is: named("requests", per(0, Requests, time.Minute, Rolling, Model))},
			{names: "X-RateLimit-*-Tokens-Minute", is: named("tokens", per(0, Tokens, time.Minute, Rolling, Model))},
			{names: "RateLimitBySize-*", is: named("tokens", per(0, Tokens, time.Minute, "", Model))}, // until 2025
			{names: "X-RateLimitBySize-*-Minute", is: named("tokens", per(0, Tokens, time.Minute, "", Model))},
		},
		refuse: []refused{
			{path: "code", is: []Pattern{"3505", "3810"}, why: Overloaded},
			{path: "type", is: []Pattern{"service_tier_capacity_exceeded"}, why: Overloaded},
			{path: "message", is: []Pattern{"Service tier capacity exceeded*"}, why: Overloaded},
			{path: "type", is: []Pattern{"rate_limited"}, why: RateLimited},
		},
	}
}

// Cerebras states limits per minute, hour and day, and states nothing when it refuses.
func cerebras() *row {
	return &row{
		Provider: Provider{
			Name: "cerebras", Title: "Cerebras",
			SDKs:   []Pattern{"cerebras.cloud.sdk.*", "@cerebras/*"},
			Models: modelsOf("cerebras"),
			Hosts:  []string{"api.cerebras.ai"},
			Docs:   "https://inference-docs.cerebras.ai/support/rate-limits", AsOf: "2026-11",
			Limited: Model, Banned: Key,
			Tokens: countsSum,
		},
		is: func(r *Response) bool {
			return sends("X-RateLimit-Limit-Requests-Day", "X-RateLimit-Limit-Requests-Minute", "X-RateLimit-Remaining-Tokens-Minute")(r) && !sends("X-RateLimit-Limit-Requests")(r)
		},
		stated: []stated{
			{names: "X-RateLimit-*-Requests-Minute", is: named("requests per minute", per(0, Requests, time.Minute, "", Model))},
			{names: "X-RateLimit-*-Requests-Hour", is: named("requests per hour", per(0, Requests, time.Hour, "", Model))},
			{names: "X-RateLimit-*-Requests-Day", is: named("requests per day", per(0, Requests, day, "", Model))},
			{names: "X-RateLimit-*-Tokens-Minute", is: named("tokens per minute", per(0, Tokens, time.Minute, "", Model))},
			{names: "X-RateLimit-*-Tokens-Hour", is: named("tokens per hour", per(0, Tokens, time.Hour, "", Model))},
			{names: "X-RateLimit-*-Tokens-Day", is: named("tokens per day", per(0, Tokens, day, "", Model))},
		},
		refuse: []refused{
			{path: "code", is: []Pattern{"queue_exceeded"}, why: Overloaded},
			{path: "message", is: []Pattern{"*per day limit exceeded*", "*er day*"}, why: QuotaExhausted},
			{path: "code", is: []Pattern{"request_quota_exceeded", "token_quota_exceeded"}, why: RateLimited},
			{status: []int{402}, why: Unpaid},
		},
	}
}

// SambaNova states the requests of a minute under the names that OpenAI has, and those of a day
// beside them.
func sambanova() *row {
	return &row{
		Provider: Provider{
			Name: "sambanova", Title: "SambaNova",
			Hosts: []string{"api.sambanova.ai"},
			Docs:  "https://docs.sambanova.ai/docs/en/models/rate-limits", AsOf: "2026-11",
			Limited: Model, Banned: Key,
		},
		is: func(r *Response) bool {
			return sends("X-RateLimit-Limit-Requests-Day")(r) && sends("X-RateLimit-Limit-Requests")(r) && !sends("X-RateLimit-Limit-Tokens")(r)
		},
		stated: []stated{
			{names: "X-RateLimit-*-Requests", is: named("requests per minute", per(0, Requests, time.Minute, "", Model))},
			{names: "X-RateLimit-*-Requests-Day", is: named("requests per day", per(0, Requests, day, "", Model))},
		},
	}
}

// Cohere counts calls per endpoint. It states what is left of trial keys. That the calls of a month
// are used up it states only in words.
func cohere() *row {
	return &row{
		Provider: Provider{
			Name: "cohere", Title: "Cohere",
			SDKs:   []Pattern{"cohere.*", "cohere-ai"},
			Models: modelsOf("cohere"),
			Hosts:  []string{"api.cohere.com", "api.cohere.ai"},
			Docs:   "https://docs.cohere.com/docs/rate-limits", AsOf: "2026-11",
			Limited: Route, Banned: Key, Refusers: []Refuser{{"month", Key}},
			Published: []Preset{
				{"cohere:trial", "chat with a trial key", "https://docs.cohere.com/docs/rate-limits", "2026-11", []Policy{per(20, Requests, time.Minute, "", Route), named("month", per(1000, Requests, 30*day, "", Key))}},
				{"cohere:production", "chat", "https://docs.cohere.com/docs/rate-limits", "2026-11", []Policy{per(500, Requests, time.Minute, "", Route)}},
			},
		},
		is: sends("X-Trial-Endpoint-Call-Limit", "X-Endpoint-Monthly-Call-Limit"),
		stated: []stated{
			{limit: "X-Trial-Endpoint-Call-Limit", remaining: "X-Trial-Endpoint-Call-Remaining", used: "-", reset: "-", is: per(0, Requests, time.Minute, "", Route)},
			{limit: "X-Endpoint-Monthly-Call-Limit", remaining: "-", used: "-", reset: "-", is: named("month", per(0, Requests, 30*day, "", Key))},
		},
		refuse: []refused{
			{path: "message", is: []Pattern{"*calls / month*"}, why: QuotaExhausted, by: "month"},
			{status: []int{402}, why: Unpaid},
		},
		worded: []worded{
			{says: "limited to {limit} API calls / minute", is: per(0, Requests, time.Minute, "", Route)},
			{says: "limited to {limit} API calls / month", is: named("month", per(0, Requests, 30*day, "", Key))},
		},
	}
}

// Together adapts its limits, and says with every answer when the next request may go.
func together() *row {
	return &row{
		Provider: Provider{
			Name: "together", Title: "Together",
			SDKs:  []Pattern{"together.*", "together-ai"},
			Hosts: []string{"api.together.xyz", "api.together.ai"},
			Docs:  "https://docs.together.ai/docs/serverless/rate-limits", AsOf: "2026-11",
			Limited: Model, Banned: Key,
		},
		is: sends("X-Together-Traceid", "X-Tokenlimit-Limit"),
		stated: []stated{
			{limit: "X-RateLimit-Limit", remaining: "X-RateLimit-Remaining", used: "-", reset: "X-RateLimit-Reset", is: named("requests", per(0, Requests, 0, "", Model)), part: true},
			{limit: "X-Tokenlimit-Limit", remaining: "X-Tokenlimit-Remaining", used: "-", reset: "-", is: named("tokens", per(0, Tokens, 0, "", Model))},
		},
		refuse: []refused{
			{status: []int{402}, why: Unpaid},
			{path: "error.type", is: []Pattern{"dynamic_request_limited", "dynamic_token_limited", "credit_limit", "model_rate_limit"}, why: RateLimited},
			{path: "error_type", is: []Pattern{"dynamic_*_limited"}, why: RateLimited},
		},
		worded: []worded{{says: "Your rate limit is {limit} queries per minute", is: named("requests", per(0, Requests, time.Minute, "", Model))}},
	}
}

// Fireworks states what is left of requests, prompts and answers, but not when there is more. Its
// limits are per minute. With a field for uncached prompts (Cache-Adjusted-Prompt), its values are
// per second.
func fireworks() *row {
	return &row{
		Provider: Provider{
			Name: "fireworks", Title: "Fireworks",
			SDKs:  []Pattern{"fireworks.*"},
			Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Bytes: 1 << 30, Docs: "https://docs.fireworks.ai/guides/batch-inference"},
			Hosts: []string{"api.fireworks.ai"},
			Docs:  "https://docs.fireworks.ai/serverless/rate-limits", AsOf: "2026-11",
			Limited: Model, Banned: Key,
			Tokens: countsUsed,
		},
		is: sends("X-RateLimit-Limit-Tokens-Prompt", "X-RateLimit-Limit-Tokens-Generated", "X-RateLimit-Over-Limit"),
		stated: []stated{
			{names: "X-RateLimit-*-Requests", is: named("requests", per(0, Requests, time.Minute, "", Model))},
			{names: "X-RateLimit-*-Tokens-Prompt", is: named("prompt", per(0, Input, time.Minute, "", Model))},
			{names: "X-RateLimit-*-Tokens-Generated", is: named("generated", per(0, Output, time.Minute, "", Model))},
		},
		read: func(r *reading) {
			if !r.has("X-RateLimit-Limit-Tokens-Cache-Adjusted-Prompt") {
				return
			}
			minute := func(n int64) int64 { return min(60*n, MaxCount) }
			for i, p := range r.Policies {
				if p.Unit != Requests {
					r.Policies[i].Limit = minute(p.Limit)
				}
			}
			for i, l := range r.Limits {
				if l.Unit != Requests {
					r.Limits[i].Remaining.N = minute(l.Remaining.N)
				}
			}
		},
		refuse: []refused{{status: []int{402, 412}, why: Unpaid}},
	}
}

// Hugging Face's hub sends the IETF draft in a form of its own; its router refuses until it is
// paid.
func huggingface() *row {
	return &row{
		Provider: Provider{
			Name: "huggingface", Title: "Hugging Face",
			SDKs:  []Pattern{"huggingface_hub.*", "@huggingface/*"},
			Hosts: []string{"huggingface.co", "router.huggingface.co", "api-inference.huggingface.co"},
			Docs:  "https://huggingface.co/docs/hub/rate-limits", AsOf: "2026-11",
			Limited: Key, Banned: IP, Refusers: theirOwn,
			Published: []Preset{
				{"huggingface:anonymous", "API of the hub, by address", "https://huggingface.co/docs/hub/rate-limits", "2025-09", []Policy{per(500, Requests, 5*time.Minute, Calendar, IP)}},
				{"huggingface:free", "API of the hub, per user", "https://huggingface.co/docs/hub/rate-limits", "2025-09", []Policy{per(1000, Requests, 5*time.Minute, Calendar, Key)}},
			},
		},
		read: func(r *reading) {
			r.ietf()
			for i := range r.Policies {
				r.Policies[i].Rule = Calendar // it says that its windows are fixed
			}
		},
		refuse: []refused{{status: []int{402}, why: Unpaid}},
	}
}

// OpenRouter says nothing while it serves. Its own limits are those on free models; a refusal of a
// provider behind it has another text.
func openrouter() *row {
	return &row{
		Provider: Provider{
			Name: "openrouter", Title: "OpenRouter",
			Hosts: []string{"openrouter.ai"},
			Docs:  "https://openrouter.ai/docs/api-reference/limits", AsOf: "2026-11",
			Silent: true, Limited: Model, Banned: Key, Refusers: []Refuser{{"free models", Key}},
			Published: []Preset{
				{"openrouter:free", "free models together, per account", "https://openrouter.ai/docs/api-reference/limits", "2026-11",
					[]Policy{per(20, Requests, time.Minute, "", Key), named("day", per(50, Requests, day, Calendar, Key))}},
			},
		},
		is: func(r *Response) bool {
			return r.Status >= 400 && (mentions(r, `"provider_name"`) || mentions(r, "free-models-per-"))
		},
		stated: []stated{{names: "X-RateLimit-*", is: named("free models", per(0, Requests, 0, "", Key))}},
		refuse: []refused{
			{path: "error.message", is: []Pattern{"*free-models-per-day*"}, why: QuotaExhausted, by: "free models"},
			{path: "error.message", is: []Pattern{"*free-models-per-min*"}, why: RateLimited, by: "free models"},
			{path: "error.message", is: []Pattern{"*fewer max_tokens*"}, why: TooLarge}, // more than the remaining credit
			{status: []int{402}, why: Unpaid},
			{path: "error.message", is: []Pattern{"Key limit exceeded*"}, why: Unpaid},
			{status: []int{429}, path: "error.metadata.provider_name", why: RateLimited, waitAt: "error.metadata.retry_after_seconds"},
		},
	}
}

func replicate() *row {
	return &row{
		Provider: Provider{
			Name: "replicate", Title: "Replicate",
			Pages: []string{"next", "previous"},
			SDKs:  []Pattern{"replicate.*", "replicate"},
			Hosts: []string{"api.replicate.com"},
			Docs:  "https://replicate.com/docs/topics/predictions/rate-limits", AsOf: "2026-11",
			Silent: true, Limited: Route, Banned: Key,
			Published: []Preset{
				{"replicate", "new predictions", "https://replicate.com/docs/topics/predictions/rate-limits", "2026-11", []Policy{per(600, Requests, time.Minute, "", Route)}},
			},
		},
		is:     func(r *Response) bool { return r.Status == 429 && mentions(r, "Request was throttled.") },
		stated: []stated{{names: "Ratelimit-*", is: per(0, Requests, 0, "", Route)}},
		read: func(r *reading) {
			if r.Status != 429 || r.RetryAfter > 0 {
				return
			}
			for _, m := range r.at("detail") {
				if _, rest, ok := strings.Cut(m, "available in "); ok { // "Expected available in 1 second."
					n, _, _ := strings.Cut(rest, " ")
					d, err := seconds(n)
					r.orRetryAfter("detail", n, d, err)
				}
			}
		},
		refuse: []refused{
			{status: []int{402}, why: Unpaid},
			{status: []int{429}, why: RateLimited, waitAt: "retry_after"},
		},
	}
}

// ElevenLabs counts requests in flight, and credits: it answers 401 when they are spent.
func elevenlabs() *row {
	return &row{
		Provider: Provider{
			Name: "elevenlabs", Title: "ElevenLabs",
			SDKs:  []Pattern{"elevenlabs.*", "@elevenlabs/*", "elevenlabs"},
			Hosts: []string{"api.elevenlabs.io"},
			Docs:  "https://elevenlabs.io/docs/overview/models", AsOf: "2026-11",
			Limited: Key, Banned: Key,
		},
		is:     sends("Maximum-Concurrent-Requests"),
		stated: []stated{{limit: "Maximum-Concurrent-Requests", used: "Current-Concurrent-Requests", remaining: "-", reset: "-", is: named("concurrent", per(0, Concurrent, 0, Concurrency, Key))}},
		refuse: []refused{
			{path: "detail.status", is: []Pattern{"quota_exceeded"}, why: Unpaid},
			{path: "detail.status", is: []Pattern{"too_many_concurrent_requests"}, why: TooMany},
			{path: "detail.code", is: []Pattern{"*concurrent_limit_exceeded*", "concurrent_limit_exceeded"}, why: TooMany},
			{path: "detail.status", is: []Pattern{"system_busy"}, why: Overloaded},
			{path: "detail.status", is: []Pattern{"detected_unusual_activity"}, why: Banned},
		},
		worded: []worded{{says: "a maximum of {limit} concurrent requests", is: named("concurrent", per(0, Concurrent, 0, Concurrency, Key))}},
	}
}

// xAI counts requests per second and tokens per minute, per team and model, and says in words which
// of them refused.
func xai() *row {
	return &row{
		Provider: Provider{
			Name: "xai", Title: "xAI",
			Models: modelsOf("xai"),
			Hosts:  []string{"api.x.ai", ".api.x.ai"},
			Docs:   "https://docs.x.ai/developers/rate-limits", AsOf: "2026-11",
			Limited: Model, Banned: Key,
			Tokens: countsUsed,
		},
		is: func(r *Response) bool { return r.Status >= 400 && mentions(r, "team") && mentions(r, "(actual/limit)") },
		// Its field of what remains always has the whole limit.
		stated: []stated{
			{limit: "X-RateLimit-Limit-Requests", remaining: "-", used: "-", reset: "-", is: named("requests", per(0, Requests, 0, "", Model))},
			{limit: "X-RateLimit-Limit-Tokens", remaining: "-", used: "-", reset: "-", is: named("tokens", per(0, Tokens, 0, "", Model))},
		},
		refuse: []refused{
			{path: "error", is: []Pattern{"*available credits*", "*spending limit*", "*urchase credits*"}, why: Unpaid},
			{path: "error.message", is: []Pattern{"*available credits*", "*spending limit*", "*urchase credits*"}, why: Unpaid},
			{path: "error", is: []Pattern{"*(actual/limit)*", "Too many requests*", "Too many tokens*"}, why: RateLimited},
		},
		worded: []worded{
			{says: "Requests per Second (actual/limit): {used}/{limit}", is: named("requests", per(0, Requests, time.Second, "", Model))},
			{says: "Requests per Minute (actual/limit): {used}/{limit}", is: named("requests", per(0, Requests, time.Minute, "", Model))},
			{says: "Tokens per Minute (actual/limit): {used}/{limit}", is: named("tokens", per(0, Tokens, time.Minute, "", Model))},
		},
	}
}

// DeepSeek bounds the requests in flight per account and model, and states nothing; it keeps
// waiting connections open with empty lines.
func deepseek() *row {
	return &row{
		Provider: Provider{
			Name: "deepseek", Title: "DeepSeek",
			Models: modelsOf("deepseek"),
			Hosts:  []string{"api.deepseek.com"},
			Docs:   "https://api-docs.deepseek.com/quick_start/rate_limit", AsOf: "2026-11",
			Silent: true, Limited: Model, Banned: Key,
			Published: []Preset{
				{"deepseek:pro", "deepseek-v4-pro, per account", "https://api-docs.deepseek.com/quick_start/pricing", "2026-11",
					[]Policy{named("concurrent", per(500, Concurrent, 0, Concurrency, Model))}},
				{"deepseek:flash", "deepseek-flash, per account", "https://api-docs.deepseek.com/quick_start/pricing", "2026-11",
					[]Policy{named("concurrent", per(2500, Concurrent, 0, Concurrency, Model))}},
			},
		},
		is: sends("X-Ds-Trace-Id"),
		refuse: []refused{
			{status: []int{402}, why: Unpaid},
			{status: []int{429}, why: TooMany},
		},
	}
}

// Bedrock reserves input and max tokens when a request arrives, and gives back what was not used.
// With some models an output token counts several times.
func bedrock() *row {
	return &row{
		Provider: Provider{
			Name: "bedrock", Title: "Amazon Bedrock",
			Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Docs: "https://docs.aws.amazon.com/bedrock/latest/userguide/batch-inference.html"},
			Hosts: []string{"bedrock-runtime.us-east-1.amazonaws.com", "bedrock-runtime.us-east-2.amazonaws.com", "bedrock-runtime.us-west-2.amazonaws.com", "bedrock-runtime.eu-central-1.amazonaws.com",
				"bedrock-runtime.eu-west-1.amazonaws.com", "bedrock-runtime.eu-west-3.amazonaws.com", "bedrock-runtime.ap-northeast-1.amazonaws.com", "bedrock-runtime.ap-southeast-2.amazonaws.com"},
			Docs: "https://docs.aws.amazon.com/bedrock/latest/userguide/quotas-token-burndown.html", AsOf: "2026-11",
			Silent: true, Limited: Model, Banned: Key, Refusers: []Refuser{{"day", Model}},
			Tokens: countsUsed,
		},
		is: func(r *Response) bool {
			return sendsPrefix(r.Header, "X-Amzn-Bedrock-") || r.Status >= 400 && mentions(r, "please wait before trying again")
		},
		refuse: []refused{
			{path: "message", is: []Pattern{"*per day*"}, why: QuotaExhausted, by: "day"},
			{header: "X-Amzn-Errortype", is: []Pattern{"ModelNotReadyException*"}, why: Overloaded},
			{header: "X-Amzn-Errortype", is: throttling, why: RateLimited},
			{path: "message", is: []Pattern{"Too many tokens*", "Too many requests*"}, why: RateLimited},
		},
	}
}

// Vertex refuses as Gemini does. Where it only says "Resource exhausted", the capacity that all
// share is busy, and no key is at fault.
func vertex() *row {
	return &row{
		Provider: Provider{
			Name: "vertex", Title: "Vertex AI",
			Models: modelsOf("gemini"), Batch: &BatchAPI{Discount: 0.5, Within: 24 * time.Hour, Docs: "https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/batch-prediction-gemini"},
			Hosts: []string{"aiplatform.googleapis.com", ".aiplatform.googleapis.com", "us-central1-aiplatform.googleapis.com", "us-east5-aiplatform.googleapis.com", "europe-west1-aiplatform.googleapis.com",
				"europe-west4-aiplatform.googleapis.com", "asia-northeast1-aiplatform.googleapis.com"},
			Docs: "https://cloud.google.com/vertex-ai/generative-ai/docs/quotas", AsOf: "2026-11",
			Silent: true, Limited: Model, Banned: Key, Refusers: []Refuser{{"*base_model*", Model}, {"*", ""}},
		},
		is: func(r *Response) bool { return r.Status >= 400 && mentions(r, "aiplatform.googleapis.com") },
		read: func(r *reading) {
			if r.Status == 429 && (mentions(&r.Response, "Resource exhausted") || mentions(&r.Response, "Resource has been exhausted")) {
				r.refuse(Overloaded)
			}
			r.google()
		},
	}
}

// Perplexity counts requests in a bucket that holds as much as flows in within a second.
func perplexity() *row {
	return &row{
		Provider: Provider{
			Name: "perplexity", Title: "Perplexity",
			Models: modelsOf("perplexity"),
			Hosts:  []string{"api.perplexity.ai"},
			Docs:   "https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key,
			Published: []Preset{
				{"perplexity:tier0", "Agent API, before any credit was bought", "https://docs.perplexity.ai/docs/admin/rate-limits-usage-tiers", "2026-11", []Policy{per(1, Requests, time.Second, Bucket, Key)}},
			},
		},
		refuse: []refused{
			{status: []int{401}, path: "error.message", is: []Pattern{"*quota*", "*credit*"}, why: Unpaid},
			{status: []int{429}, why: RateLimited},
		},
	}
}

// Ollama has a queue at home; its cloud has an allowance per session and week, and does not state
// when that ends.
func ollama() *row {
	return &row{
		Provider: Provider{
			Name: "ollama", Title: "Ollama",
			SDKs:  []Pattern{"ollama.*", "ollama"},
			Hosts: []string{"ollama.com", "localhost:11434"},
			Docs:  "https://docs.ollama.com/faq", AsOf: "2026-11",
			Silent: true, Limited: Key, Banned: Key,
		},
		refuse: []refused{
			{status: []int{503}, path: "error", why: Overloaded},
			{path: "error", is: []Pattern{"*usage limit*"}, why: QuotaExhausted},
		},
	}
}
