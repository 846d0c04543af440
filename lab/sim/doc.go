// Package sim runs the code of packages limit, queue and dispatch in virtual time, against the
// rules of simulated servers, over links with latency. The code of these packages is the same as in
// production. In virtual time nothing sleeps, so an hour takes only as long as its computation. The
// same seed gives the same bytes of output.
//
// Use package sim to measure a limiter or a queue of yours before a real server sees its requests.
// Package sim simulates two loads: orders to a trading exchange, and prompts to language models.
// Package lab/sim/fleet simulates clients that share a quota, and lab/sim/compare compares
// strategies for such clients. Package ratetest provides servers over HTTP, to test a client of
// your own.
//
// # Files
//
//	loop.go               virtual time, and events in the order of their instants
//	path.go               latencies there and back: symmetric, stalled, bunched, hostile
//	exchange_run.go       a client with keys, queue and nonces at an exchange
//	published_limiter.go  Published: the limiter of a published exchange client, to compare with
//	llm_run.go            clients of a language model; figures of that run
//	llm_work.go           prompts: when they come, how many tokens they have
//	llm_client.go         the Gate for these prompts, and what it reserves for output
//	llm_published.go      published clients of language models, to compare with
//	llm_produced.go       a server that counts output tokens as it produces them, and its client
//	proof.go              a client that sends as early as it may; was a window too full
//	proof_kinds.go        the kinds of servers of the proof, with their limiters and ceilings
//	proof_mutants.go      limiters with a planted fault, which the proof has to find
//	adversary.go          latencies chosen by somebody who knows the server's state
package sim
