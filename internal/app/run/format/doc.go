// Package format defines the forms in which a run reads its requests, and the forms in which it
// writes their results.
//
// A Reader reads Requests from an input. The form of the input is a Format. There are three: Plain
// (the lines of JSON of `paceline run`), *Items (lists, tables or curl commands) and *LLM (batch
// files for language models). The Format of the input also writes each Result as a line. From such
// a line the Format reads an Entry, which is what a later run needs to know of the result. Package
// format sends nothing, and owns no clock and no file.
//
//	format.go           Format, and Plain: lines of JSON of this program's own form
//	input.go            Request and Reader; the fields of a line of JSON
//	items.go            requests from lists of URLs, tables, arrays and curl commands
//	llm.go              batch files of OpenAI and Anthropic
//	llm_result.go       results in the forms of these batches, with paceline's own members
//	measure.go          what a request to a language model costs, as package meter counts it
//	first.go            the first request of an input
//	skipped.go          lines of a batch that are no requests
//	no_model.go         answers that say that there is no such model
//	per_second.go       limits as flags give them, per second or of one model
//	sample.go           a request as it would be sent, for people to look at
//	hidden.go           Secrets that nothing may show; a dead letter's request without them
//	hidden_tokens.go    finds keys in a text, and tokens that come later
//	header_template.go  keys, and the places of their values and nonces
//	entry.go            Entry: what a rerun reads of a line of results
//	result.go           Result: the fields of a line of results, and its states
//	stored.go           a request as a backlog keeps it, without its secrets
//	result_append.go    writes a Result as a line of JSON, without encoding/json
//	dead_class.go       classes of dead letters, and which of them another run sends again
//	digest.go           short values that stand for a request and for its id
package format
