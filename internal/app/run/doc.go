// Package run sends the requests of a file. It contains all of `paceline run` but the flags and the
// terminal. These are its source files:
//
//	run.go          the four steps: New, Open, Send, Close
//	config.go       Config: the options of a run, and a Backlog as its input
//	earlier.go      what earlier runs left: their results and journal, and requests in doubt
//	check_input.go  checks the input, before a run and while it is read; ids that are there twice
//	feed.go         reads the input and hands the requests to a pool.Pool
//	snapshots.go    snapshots for metrics and the page; why requests wait; the sleep of the machine
//	plan.go         --dry-run: what a run would send, and how long the limits make it take
//	progress.go     figures of the progress: done, rate, percentage of the limit, why it waits
//	eta.go          the ETA: how long the rest takes
//
//	attempt.go       sends one request, from its permit to its answer
//	after.go         the steps after an answer, in their order
//	ended.go         writes results, many together, and the journal of attempts
//	bearer.go        the {token} of a run, which is renewed
//	judge_answer.go  what an answer proves about the request, the limits and the key
//	cost.go          what requests cost, by charges, answers and prices; the budget, which ends a run
//	known_hosts.go   hosts from which nothing arrives, and servers that deny every request
//	next_pages.go    requests for the next page of an answer
//
//	organizations.go  keys that share their limits
//	lessons.go        makes the Pools, with what earlier runs sent and learned of limits
//	sharing.go        limits that strangers also use; limits that nobody stated and the run finds out
//	groups.go         models that have limits of their own, each with a Pool; resources of a key
//	deadline.go       when the time of a request (--ttl) begins, and how much of it is left
//	trial.go          the first request of each model goes alone until it is answered
//	course.go         whether the run goes on, why it ended, and how far ahead it reads its input
//	polls.go          --every: the same requests again and again
//
// The packages in the folders of this package can be used without a Run:
//
//	format   the forms of requests and results
//	meter    the tokens of requests to language models, and of their answers
//	output   the files of a run
//	sending  attempts over HTTP, redirects, next pages, memory and money
//	tally    all that is counted
//	telling  what the user learns on the way
//
// docs/run-input.md describes the formats of the input, and docs/results.md those of the results.
package run
