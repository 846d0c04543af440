package provider

import (
	"strings"
	"time"
)

// ModelInfo is what a provider publishes about a model. A number that is 0 is unknown.
type ModelInfo struct {
	// Name is the name in requests, without the date of a snapshot.
	Name string
	// Input, Output and Cached are prices in USD per million tokens: of input, of output, and of
	// input that was read from the provider's cache.
	Input, Output, Cached float64
	// Context is the most tokens of input and output together, and MaxOutput the most tokens of
	// output.
	Context, MaxOutput int64
	// Note has further facts, such as a price that changes with the length of the prompt, or on a
	// day.
	Note string
}

// BatchAPI is a provider's own API for many requests, later and for less.
type BatchAPI struct {
	// Discount is the part of the price that it saves, at best.
	Discount float64
	// Within is the longest that a batch takes, according to the provider's aim.
	Within time.Duration
	// Requests and Bytes are the most in one batch; 0: unknown.
	Requests, Bytes int64
	Docs            string
}

// LookupModel returns what a provider publishes about a model. The name may be any that requests
// use: with the date of a snapshot, with a router's prefix (openai/gpt-4o), or of a tuned model
// (ft:gpt-4o-2024-08-06:org::id).
func LookupModel(provider, model string) (ModelInfo, bool) {
	var models []ModelInfo
	if d := rowOf(provider); d != nil {
		models = d.Models
	}
	model = model[strings.LastIndexByte(model, '/')+1:]
	if tuned, ok := strings.CutPrefix(model, "ft:"); ok {
		model, _, _ = strings.Cut(tuned, ":")
	}
	for range 2 {
		for _, m := range models {
			if m.Name == model {
				return m, true
			}
		}
		model = sharedName(dated, model)
	}
	return ModelInfo{}, false
}

// PriceOf returns the published price of a model. A tuned model does not have the price of its
// base.
func PriceOf(provider, model string) (ModelInfo, bool) {
	if strings.HasPrefix(model, "ft:") {
		return ModelInfo{}, false
	}
	m, known := LookupModel(provider, model)
	return m, known && (m.Input > 0 || m.Output > 0)
}

// USD returns the price of so many tokens. Input that is read from a cache, or written to one,
// counts as other input does.
func (m ModelInfo) USD(input, output int64) float64 {
	return (m.Input*float64(input) + m.Output*float64(output)) / 1e6
}

// modelsAsOf is when the prices were looked up, on the pages of the providers or of others that
// read those daily.
const modelsAsOf = "2026-11"

var openAIModels = []ModelInfo{
	{"gpt-6-astra", 10, 50, 1, 1_050_000, 128_000, "above 272,000 tokens of input twice the price of input, 1.5 times that of output"},
	{"gpt-6-sol", 2, 10, 0.2, 0, 0, ""},
	{"gpt-6-luna", 0.1, 0.5, 0.01, 0, 0, ""},
	{"gpt-6.1-terra", 1, 5, 0.05, 0, 0, ""},
	{"gpt-5.6-terra", 2, 12, 0.2, 0, 0, ""},
	{"gpt-5.6-luna", 0.2, 1.2, 0.02, 0, 0, ""},
	{"gpt-5.5", 5, 30, 0.5, 1_050_000, 128_000, "prompts above 272,000 tokens have a limit and a price of their own"},
	{"gpt-5.4", 2.5, 15, 0.25, 1_050_000, 128_000, ""},
	{"gpt-5.4-mini", 0.75, 4.5, 0.075, 400_000, 128_000, ""},
	{"gpt-5.4-nano", 0.2, 1.25, 0.02, 400_000, 128_000, ""},
	{"gpt-5.3-codex", 1.75, 14, 0.175, 400_000, 128_000, ""},
	{"gpt-5.2", 1.75, 14, 0.175, 400_000, 128_000, ""},
	{"gpt-5.1", 1.25, 10, 0.125, 400_000, 128_000, ""},
	{"gpt-5", 1.25, 10, 0.125, 400_000, 128_000, ""},
	{"gpt-5-mini", 0.25, 2, 0.025, 400_000, 128_000, ""},
	{"gpt-5-nano", 0.05, 0.4, 0.005, 400_000, 128_000, ""},
	{"gpt-5-pro", 15, 120, 0, 400_000, 272_000, ""},
	{"gpt-4.1", 2, 8, 0.5, 1_047_576, 32_768, ""},
	{"gpt-4.1-mini", 0.4, 1.6, 0.1, 1_047_576, 32_768, ""},
	{"gpt-4.1-nano", 0.1, 0.4, 0.025, 1_047_576, 32_768, ""},
	{"gpt-4o", 2.5, 10, 1.25, 128_000, 16_384, ""},
	{"gpt-4o-mini", 0.15, 0.6, 0.075, 128_000, 16_384, ""},
	{"o4-mini", 1.1, 4.4, 0.275, 200_000, 100_000, ""},
	{"o3", 2, 8, 0.5, 200_000, 100_000, ""},
	{"o1", 15, 60, 7.5, 200_000, 100_000, ""},
	{"gpt-4-turbo", 10, 30, 0, 128_000, 4096, ""},
	{"gpt-4", 30, 60, 0, 8192, 8192, ""},
	{"gpt-3.5-turbo", 0.5, 1.5, 0, 16_385, 4096, ""},
	{"text-embedding-3-small", 0.02, 0, 0, 8191, 0, ""},
	{"text-embedding-3-large", 0.13, 0, 0, 8191, 0, ""},
	{"text-embedding-ada-002", 0.1, 0, 0, 8191, 0, ""},
}

var anthropicModels = []ModelInfo{
	{"claude-fable-5-1", 10, 50, 0, 1_000_000, 128_000, ""},
	{"claude-opus-5-5", 4, 20, 0, 1_000_000, 128_000, ""},
	{"claude-opus-5", 5, 25, 0.5, 1_000_000, 128_000, ""},
	{"claude-sonnet-5-5", 2, 10, 0, 1_000_000, 128_000, ""},
	{"claude-sonnet-5", 2, 10, 0.2, 1_000_000, 128_000, ""},
	{"claude-haiku-5-5", 0.5, 2.5, 0, 1_000_000, 128_000, "a fifth of it for prompts of at most 100,000 tokens"},
	{"claude-opus-4-8", 5, 25, 0.5, 1_000_000, 128_000, ""},
	{"claude-opus-4-7", 5, 25, 0.5, 1_000_000, 128_000, ""},
	{"claude-opus-4-6", 5, 25, 0.5, 1_000_000, 128_000, ""},
	{"claude-opus-4-5", 5, 25, 0.5, 200_000, 64_000, ""},
	{"claude-opus-4-1", 15, 75, 1.5, 200_000, 32_000, ""},
	{"claude-sonnet-4-6", 3, 15, 0.3, 1_000_000, 64_000, ""},
	{"claude-sonnet-4-5", 3, 15, 0.3, 200_000, 64_000, ""},
	{"claude-haiku-4-5", 1, 5, 0.1, 200_000, 64_000, ""},
	{"claude-3-haiku", 0.25, 1.25, 0, 200_000, 4096, ""},
}

var geminiModels = []ModelInfo{
	{"gemini-3.8-flash", 0.75, 3.75, 0.075, 1_048_576, 65_536, "twice that from 2027-01-01"},
	{"gemini-3.7-flash", 0.75, 3.75, 0.075, 1_048_576, 65_536, ""},
	{"gemini-3.5-flash", 1.5, 9, 0, 1_048_576, 65_536, ""},
	{"gemini-3.5-flash-lite", 0.3, 2.5, 0, 1_048_576, 65_536, ""},
	{"gemini-3.1-pro-preview", 2, 12, 0, 1_048_576, 65_536, "4 and 18 for prompts above 200,000 tokens"},
	{"gemini-3.1-flash-lite", 0.25, 1.5, 0.025, 1_048_576, 65_536, ""},
	{"gemini-2.5-pro", 1.25, 10, 0, 1_048_576, 65_536, "2.50 and 15 for prompts above 200,000 tokens"},
	{"gemini-2.5-flash", 0.3, 2.5, 0, 1_048_576, 65_536, ""},
	{"gemini-2.5-flash-lite", 0.1, 0.4, 0, 1_048_576, 65_536, ""},
	{"gemini-embedding-001", 0.15, 0, 0, 2048, 0, ""},
}

var groqModels = []ModelInfo{
	{"gpt-oss-120b", 0.15, 0.6, 0.075, 131_072, 65_536, ""},
	{"gpt-oss-20b", 0.075, 0.3, 0.0375, 131_072, 65_536, ""},
}

var mistralModels = []ModelInfo{
	{"mistral-medium-2604", 1.5, 7.5, 0, 262_144, 0, ""},
	{"mistral-medium-2508", 0.4, 2, 0, 0, 0, ""},
	{"mistral-large-2512", 0.5, 1.5, 0, 0, 0, ""},
	{"mistral-small-2603", 0.15, 0.6, 0, 256_000, 0, ""},
	{"devstral-2512", 0.4, 2, 0, 0, 0, ""},
	{"ministral-8b", 0.1, 0.1, 0, 0, 0, ""},
	{"ministral-3b", 0.04, 0.04, 0, 0, 0, ""},
	{"mistral-embed", 0.1, 0, 0, 0, 0, ""},
}

var cohereModels = []ModelInfo{
	{"command-a-03-2025", 2.5, 10, 0, 256_000, 8000, ""},
	{"command-a-plus-05-2026", 2.5, 10, 0, 128_000, 64_000, ""},
	{"command-a-reasoning-08-2025", 2.5, 10, 0, 256_000, 32_000, ""},
	{"command-r-plus-08-2024", 2.5, 10, 0, 128_000, 4000, ""},
	{"command-r-08-2024", 0.15, 0.6, 0, 128_000, 4000, ""},
	{"command-r7b-12-2024", 0.0375, 0.15, 0, 128_000, 4000, ""},
}

var deepseekModels = []ModelInfo{
	{"deepseek-v4-pro", 0.435, 0.87, 0.003625, 1_000_000, 384_000, ""},
	{"deepseek-v4-flash", 0.14, 0.28, 0.0028, 1_000_000, 384_000, ""},
	{"deepseek-chat", 0.14, 0.28, 0.0028, 1_000_000, 384_000, ""},
	{"deepseek-reasoner", 0.14, 0.28, 0.0028, 1_000_000, 384_000, ""},
}

var xaiModels = []ModelInfo{
	{"grok-4.3", 1.25, 2.5, 0.2, 1_000_000, 30_000, ""},
	{"grok-4.20", 1.25, 2.5, 0.2, 1_000_000, 30_000, ""},
}

var cerebrasModels = []ModelInfo{{"gpt-oss-120b", 0.35, 0.75, 0, 131_072, 40_960, ""}}

var perplexityModels = []ModelInfo{
	{"sonar", 1, 1, 0, 128_000, 4096, "and a price per request"},
	{"sonar-pro", 3, 15, 0, 200_000, 8192, "and a price per request"},
	{"sonar-reasoning-pro", 2, 8, 0, 128_000, 0, "and a price per request"},
}
