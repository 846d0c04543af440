// Package service provides servers that enforce the published limits of many API providers, for
// tests of clients. A judge reads the log of a server. It counts the requests that each limit
// accepted and refused, and checks the server's decisions against the rules. Package service is
// written from the documentation of the providers. It does not use package provider, which is
// written from the same documentation. So a mistake in only one of the two packages shows in tests.
// Servers that imitate OpenAI and Anthropic are in package ratetest/llm.
//
// # Files
//
//	service.go         Server: the way of a request through latency, limits and answer
//	request.go         a request's key, address, model and route, in whose limits it counts
//	ban.go             after how many refusals a client is banned, and how long
//	service_judge.go   the lines of a log, and the report at the end
//	api.go             statuses and bodies of endpoints; a missing key
//	api_route.go       patterns of paths; fields and pages of made-up lists
//	api_llm.go         paths and answers of Groq, Azure OpenAI, Gemini, Mistral, DeepSeek
//	api_shops.go       endpoints of Stripe and Shopify
//	api_exchange.go    paths and answers of Binance, Bybit, Kraken, Coinbase, OKX
//	api_work.go        endpoints of Notion, Slack, GitHub and HubSpot
//	graphql_query.go   queries in GraphQL, and data for them
//	table_row.go       what a row of a provider may state; bodies of refusals, header fields
//	table_business.go  fakes of HubSpot, Zendesk, Docker Hub and monday.com
//	table_exchange.go  fakes of exchanges: Binance, Bybit, Kraken, Coinbase, OKX, CME, Etherscan
//	table_llm.go       fakes of language models: Groq, Azure OpenAI, Gemini, Mistral,
//	                   DeepSeek
//	table_open.go      fakes of GitLab, Twitch, Strava, Spotify, Riot, Google and YouTube
//	table_plain.go     fakes of no provider: drafts of the IETF, Cloudflare, common header fields
//	table_web.go       fakes of Heroku, GitHub, Shopify, Stripe, Discord, X, Slack, Notion,
//	                   Reddit, Okta, Atlassian
//	table_terse.go     fakes of Alpaca, arXiv, Cohere, Crossref, Deribit, Fastly, Hugging Face,
//	                   Linear, Microsoft, OpenRouter, Perplexity, Replicate, SEC, Trello,
//	                   Twilio
package service
