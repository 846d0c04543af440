// Package llm provides servers that imitate language model APIs, for tests of clients. The servers
// imitate OpenAI and Anthropic: their main endpoints, limits, header fields, streams, refusals and
// faults. Package llm also provides a judge, which reads the log of a server. The judge counts what
// each key used of each model, and checks the server's decisions against the limits. Servers of
// other providers are in package ratetest/service.
//
// # Files
//
//	llm.go              Server: the way of a request: latency, check, key, answer
//	llm_config.go       Config; the usage that the server makes up
//	enforced_limits.go  limits of a key for a model, and which tokens count in them
//	free.go             endpoints that count in no limit: models, token counts
//	uploads.go          OpenAI's /v1/files: uploads, their forms, room
//	batch_api.go        OpenAI's /v1/batches: made, listed, served later
//	message_batches.go  Anthropic's /v1/messages/batches
//	fault.go            faults: error-event, 529 and others; how often, in which order
//	respond.go          answers, whole or as a stream; how quickly; a stream that breaks off
//	openai.go           OpenAI's paths, header fields, errors and refusals
//	anthropic.go        Anthropic's paths, header fields, errors and refusals; 529
//	llm_judge.go        the lines of a log, and the report at the end
package llm
