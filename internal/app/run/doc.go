// Package run sends a file of requests. It is all of `paceline run` but the flags and the terminal.
//
//	config.go    what a run is given
//	run.go       the four steps: New, Open, Send, Close
//
//	feed.go      the input is checked, then read and handed to a pool.Pool
//	course.go    whether the reading goes on, and how much is read ahead
//	input.go     one line of JSON is one request
//	format.go    how lines are read and written: this package's own, or a batch for language models
//	llm.go, llm_result.go  batch files of OpenAI and Anthropic, and what the answers say of limits and usage
//
//	deadline.go  when the time of a request begins, and how much of it is left
//
//	attempt.go   one request is sent and answered
//	ended.go     requests that have ended are written together
//	send.go      one attempt is sent over HTTP, and is never written twice
//	budget.go    what attempts may cost in money, and what they did cost
//	memory.go    how much memory the bodies of answers take
//	pages.go     a request goes on with its next page; next.go says where that is, pointer.go and weblink.go read it
//	bearer.go    tokens that are renewed
//	template.go  keys, and where their values and nonces are put
//	verdict.go   what an answer says of the request, the limits and the key
//	host.go      hosts where nothing arrives
//	class.go     why requests become dead letters
//	result.go    what is written of a request; result_append.go writes it as a line, entry.go reads it again
//	figures.go   latency, figures per key, and the ceiling of nonces
//	waits.go     what requests waited for
//	refusals.go  which attempts of a request were refused, and when
//	ceilings.go  how much the limits allow as time passes
//
//	store.go     results and dead letters, what the runs before left in them, and when they are synced
//	bodies.go    a file for each answer
//	rows_view.go      results as rows or in order; selected.go says what rows are made from, order.go keeps the order
//	distinct.go  no two of the files of a run may be the same
//	replay.go    what earlier runs sent fills the windows of this one
//	tally.go     the totals, and which ids are in the results or the dead letters
//	limits.go    the server's limits, and what they allow
//	sharing.go   limits that strangers also use
//	groups.go    models that have limits of their own, each with a Pool
//	plan.go      what a run would send, and how long the limits make it take
//	progress.go  how far the run is, and what it waits for
//	eta.go       how long the rest takes
//	failures.go  how attempts failed
//	notices.go   what the user is told, each thing once
//
// docs/run.md describes the formats.
package run
