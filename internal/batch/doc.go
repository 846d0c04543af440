// Package batch sends a file of requests: it is what `paceline run` does, without flags and terminal.
//
//	input.go     one line of JSON is one request, strictly read
//	format.go    how lines are read and written: this package's own, or a batch for language models
//	llm.go, llm_result.go  batch files of OpenAI and Anthropic, and what the answers say of limits and usage
//	plan.go      what a run has before it, by the limits
//	limits.go    the server's limits, and what they allow
//	template.go  keys, and where their secrets and nonces go
//	send.go      one attempt over HTTP, never written twice
//	output.go    files of lines that survive a crash: results and dead letters
//	journal.go   what was sent, so that a restart neither forgets a window nor repeats in silence
//	ledger.go    which id is where, 128 bits an id
//	config.go    what a run is given
//	open.go      its files, and what the runs before left in them
//	run.go       all of it together, on a paceline.Pool
//	verdict.go   what an answer says of the request, the limits and the key
//	progress.go  how far it is, and what it waits for
//
// docs/run.md describes the formats.
package batch
