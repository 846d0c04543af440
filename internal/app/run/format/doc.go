// Package format defines the forms in which a run reads its requests, and the forms in which it
// writes their results.
//
// A Reader reads Requests from an input. The form of the input is a Format. There are three: Plain
// (the lines of JSON of `paceline run`), *Items (lists, tables or curl commands) and *LLM (batch
// files for language models). The Format of the input also writes each Result as a line. From such
// a line the Format reads an Entry, which is what a later run needs to know of the result. Package
// format sends nothing, and owns no clock and no file.
//
//	format.go           Format, and Plain: this program's own lines of JSON
//	input.go            the fields of a line of JSON: id, url, body, cost, deadline; their errors
//	items.go            requests from lists of URLs, tables, arrays and curl commands, by
//	                    templates
//	llm.go              batch files of OpenAI and Anthropic: how a line is read
//	llm_result.go       results in the forms of these batches, with paceline's own members
//	measure.go          a line's cost in tokens, from package meter
//	first.go            the first request of an input, which names host and provider
//	skipped.go          lines of a batch that are no requests, and their line among the errors
//	no_model.go         which answers say that there is no such model
//	per_second.go       --per-second: a limit per minute as one per second
//	sample.go           the requests that --dry-run shows, without secrets
//	hidden.go           hides passwords and keys in results, dead letters and errors
//	hidden_tokens.go    finds keys in a text, also tokens that come later
//	header_template.go  --header and --query with {key}, {nonce}, {token}; --key-env
//	entry.go            what a rerun reads of a line of results: id, state, request
//	result.go           Result: the fields of a line of results, its states, an answer's body as --select sees it
//	stored.go           a request as a backlog keeps it, without its secrets
//	result_append.go    writes a Result as a line of JSON, without encoding/json
//	dead_class.go       classes of dead letters; --retry-dead: which are sent again, and the words
//	                    for that
//	digest.go           hashes by which a rerun knows an id, and a changed request
package format
