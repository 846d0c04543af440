// Package llm provides servers that imitate language model APIs, for tests of clients. The servers
// imitate OpenAI's and Anthropic's endpoints, limits, header fields, streams, refusals and faults.
// Package llm also provides a judge, which reads the log of a server. The judge counts what each
// key used of each model, and checks the server's decisions against the limits. Servers of other
// providers are in package ratetest/service.
//
// # Files
//
//	llm.go              Server: the way of a request through latency, check and answer
//	llm_config.go       Config, and Law: the true usage of requests
//	enforced_limits.go  Limits, and what counts: the limits of a key for a model
//	free.go             endpoints that count in no limit
//	uploads.go          OpenAI's files
//	batch_api.go        OpenAI's batches
//	message_batches.go  Anthropic's batches
//	fault.go            the faults that a server injects
//	respond.go          answers, whole or as a stream
//	openai.go           the language of OpenAI's API
//	anthropic.go        the language of Anthropic's API
//	llm_judge.go        Line, Report, and the judge of a log
package llm
