// Package batch sends a file of requests: it is what `paceline run` does, without flags and terminal.
//
//	config.go    what a run is given
//	run.go       the four steps: New, Open, Send, Close
//
//	feed.go      the input is checked, then read and handed to a paceline.Pool
//	course.go    whether that goes on, and how much is read ahead
//	input.go     one line of JSON is one request
//	format.go    how lines are read and written: this package's own, or a batch for language models
//	llm.go, llm_result.go  batch files of OpenAI and Anthropic, and what the answers say of limits and usage
//
//	deadline.go  from when durations count, and how long is left
//
//	attempt.go   one request is sent and answered
//	ended.go     those that have ended, written together
//	send.go      one attempt over HTTP, never written twice
//	budget.go    what attempts may cost in money, and did
//	memory.go    what the bodies of answers take
//	template.go  keys, and where their values and nonces are put
//	verdict.go   what an answer says of the request, the limits and the key
//	host.go      hosts where nothing arrives
//	class.go     what dead letters are dead of
//	result.go    what is written of a request; result_append.go, as a line; entry.go, read again
//	figures.go   latency, figures per key, and the ceiling of nonces
//	waits.go     what requests waited for
//
//	store.go     results and dead letters, what the runs before left in them, and when they are synced
//	distinct.go  no two of a run's files are one
//	replay.go    what the runs before sent fills the windows of this one
//	tally.go     what counts, and which id is where
//	limits.go    the server's limits, and what they allow
//	sharing.go   limits that strangers use, too
//	groups.go    models that have limits of their own, each with a Pool
//	plan.go      what a run has before it, by the limits
//	progress.go  how far it is, and what it waits for
//	eta.go       how long that takes
//	notices.go   what the user is told, once
//
// docs/run.md describes the formats.
package batch
