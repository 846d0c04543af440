// Package provider reads what a server states about its limits in its answers. Each API provider
// has header fields and bodies of its own. The result of a reading is always of the same type, an
// Observation.
//
// Use package provider to read answers in your own code. Packages transport and provider/classify
// call package provider, so if you use one of those two, you need not call it. The command
// `paceline explain` prints an Observation in words.
//
// One header field may have different meanings at different providers. For example, a reset is a
// duration, a number of seconds, an instant in seconds or smaller units, an RFC 3339 time, or an
// HTTP date. So package provider has a Dialect for each provider, which defines the meanings. If a
// reset is a bare number, its size decides whether the number is a wait or an instant. For example,
// 30 is a wait of 30 s, unless the dialect has another unit. 1760000000 is an instant in seconds
// since 1970.
//
// For a server that is not in the table of providers, package provider reads the RateLimit fields
// of the IETF draft. It knows all three generations of the draft. If there are no such fields, it
// reads X-RateLimit fields. In any case it reads Retry-After. All other facts about a provider,
// such as its published limits, are in a Provider: a row of the package's table.
//
// A reading is the result of reading one answer. It is a hint about limits, not a permission to
// send: package limit decides when the next request may go. A reading never fails, and has no
// error. Its counts are never negative, its resets are never in the past, and its waits are never
// longer than MaxWait (31 days). If a value in the answer makes no sense, Observation.Problems
// contains a sentence about it.
//
// Package provider has no clock: the caller of a reading passes in the instant at which it read the
// response. Dialects have no state and are safe for concurrent use.
//
// # Files
//
//	observation.go    Observation: all that an answer can state; units, kinds of refusals; its
//	                  JSON; ComeBack: when to try again
//	provider.go       the table of providers, found by name, by host or by header fields
//	scope.go          Scope: address, key, resource, model or route: its names
//	preset.go         --preset: published limits of an account's tier; --per-second
//	charge.go         what a request costs by method, path and query, and in which resource
//	examples.go       an example request for each charge, for tests and explain
//	graphql.go        what a GraphQL query costs, by its text: Shopify's, GitHub's,
//	                  monday.com's
//	model_info.go     prices and sizes of models; names with dates or prefixes
//	shared_model.go   which models share limits: dated names, families
//	reading.go        numbers and waits in header fields; Retry-After, also in the past or by a wrong
//	                  clock; Date, processing time
//	reset.go          resets and dates in header fields: 1m30s, RFC 3339, HTTP dates, Unix time
//	stated_fields.go  limits in header fields by a row's table: limit, remaining, reset
//	worded_limits.go  limits in a refusal's words: "600 RPM", "20 requests per minute"
//	worded_waits.go   any server: "try again in 35 seconds"; retry_after in a body, without own
//	                  row
//	written_time.go   durations and instants as people write them: 7m12.5s, 2 minutes, noon
//	unpaid.go         refusals for no credit: insufficient_quota, balance, billing
//	refused.go        rate limit, overload, surge or denial: by status and words of the body
//	within.go         a 200 that is a refusal, whole or in an event stream
//	reads.go          a POST that only reads, so may be sent again: GraphQL queries, batches of
//	                  GETs
//	parts.go          a batch of which some parts were refused: 207, DynamoDB, lists
//	unread_fields.go  explain: header fields that look like limits and that no reading knows
//
// Each provider has a row: its own header fields and bodies of refusals, where limits or waits stand
// in them, what its requests cost, and its published limits.
//
//	rows_business.go   HubSpot, Salesforce, Zendesk, monday, Linear, Amazon SP, AWS, Microsoft,
//	                   Azure resources, Canvas, Procore, Datadog, Sentry, Twilio, SendGrid,
//	                   Fastly, Dropbox, Docker Hub, Trello, BigCommerce
//	rows_exchange.go   Binance, Bybit, Kraken, Coinbase, OKX, CME, Bitfinex, Deribit, Alpaca,
//	                   Etherscan
//	rows_generic.go    any other server: RateLimit and RateLimit-Policy, Cloudflare, X-RateLimit, other names
//	                   of Retry-After
//	rows_inference.go  Mistral, Cerebras, SambaNova, Cohere, Together, Fireworks, Hugging Face,
//	                   OpenRouter, Replicate, ElevenLabs, xAI, DeepSeek, Bedrock, Vertex,
//	                   Perplexity, Ollama
//	rows_llm.go        OpenAI, Groq, Azure OpenAI, Anthropic, Gemini
//	rows_open.go       GitLab, Twitch, Meta, Strava, Spotify, Riot, Roblox, SEC, arXiv, Crossref,
//	                   Wikimedia, npm, Google and YouTube, RapidAPI
//	rows_web.go        GitHub, Heroku, Shopify, Stripe, Discord, X, Slack, Notion, Reddit, Okta,
//	                   Atlassian
package provider
