// Package format defines two kinds of forms: those in which a run reads its requests, and those in
// which it writes their results.
//
// A Reader reads Requests from an input. The form of the input is a Format: Plain (this program's
// own lines), an *Items (lists, tables or curl commands) or an *LLM (batch files). The same Format
// writes each Result as a line. From such a line the Format also reads an Entry, which is what a
// later run needs to know of the result. Package format sends nothing, and owns no clock and no
// file.
//
//	format.go           Format, and Plain: this program's own lines
//	input.go            Request and Reader; a request from one line of JSON
//	items.go            requests from lists of URLs, tables, arrays and curl commands
//	llm.go              batch files of OpenAI and Anthropic
//	llm_result.go       results in the forms of these batches
//	measure.go          what a request to a language model costs, as package meter counts it
//	first.go            the first request of an input
//	skipped.go          lines of a batch that are no requests
//	no_model.go         answers that say that there is no such model
//	per_second.go       limits as flags give them, and those of one model
//	sample.go           a request as it would be sent, for people to look at
//	hidden.go           the secrets of requests, left out of what is shown
//	hidden_tokens.go    what finds the secrets of a run: keys, and tokens that come later
//	header_template.go  keys, and the places of their values and nonces
//	entry.go            what a rerun reads of a result
//	result.go           a result
//	stored.go           a request as a backlog keeps it
//	result_append.go    a result as a line of JSON
//	dead_class.go       why requests become dead letters, and which of them another run sends again
//	digest.go           short values that stand for a request and for its id
package format
