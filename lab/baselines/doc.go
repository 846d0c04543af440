// Package baselines contains the claims of five published systems about themselves. For each claim
// it has a rerun of our own in the set-up of the claim, the result, and the reason for the result.
// A system is named by what it is, such as "an exchange client". The package contains only tests.
// One of the tests checks docs/published.md and, with the flag -update, writes it.
//
//	document_test.go         the page, its documents and their claims
//	claims.md                the texts of claims; claims_test.go reads them
//	exchange_claims_test.go  limiters, queues and nonces of an exchange client
//	gem_claims_test.go       a throttle; its runs are in gem_runs_test.go, their author's figures in gem_seen_test.go
//	demo_claims_test.go      a demonstration of throttles; the ways that its author tried are in demo_tried_test.go
//	gates_test.go            two gates before a language model, for requests and for tokens; wait_shapes_test.go: its waits
//	counters_test.go         a counter of slots
//	published_test.go        the page in Markdown, and what was wrong once
package baselines
