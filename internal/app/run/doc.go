// Package run sends the requests of a file: it contains all of `paceline run` but the flags and the
// terminal.
//
//	run.go          the four steps: New, Open, Send, Close
//	config.go       the options of a run
//	earlier.go      what earlier runs did: their results, and the journal
//	check_input.go  checks the input, before a run and while it is read
//	feed.go         reads the input and hands the requests to a pool.Pool
//	snapshots.go    makes snapshots; notes why requests wait; keeps midnights right after a sleep of the machine
//	plan.go         what a run would send, and how long the limits make it take
//	progress.go     how far the run is, why it waits, and how much the limits allow
//	eta.go          how long the rest takes
//
//	attempt.go       sends one request
//	after.go         the steps after an answer, in their order
//	ended.go         writes results, many together, and the journal of attempts
//	bearer.go        tokens that are renewed
//	judge_answer.go  what an answer proves about the request, the limits and the key
//	cost.go          what requests cost, by charges, answers and prices, and the budget
//	known_hosts.go   hosts from which nothing arrives, and servers that deny every request
//	next_pages.go    requests for the next page of an answer
//
//	organizations.go  keys that share their limits
//	lessons.go        makes the Pools, with what earlier runs sent and learned
//	sharing.go        limits that strangers also use, and limits that nobody stated and the run finds out
//	groups.go         models that have limits of their own, each with a Pool; resources of a key
//	deadline.go       when the time of a request begins, and how much of it is left
//	trial.go          the first request of each model goes alone until it is answered
//	course.go         whether the run goes on, and how far ahead it reads its input
//	polls.go          --every: the same requests again and again
//
// Packages in folders of this one do not need a Run:
//
//	format   the forms of requests and results
//	meter    the tokens of requests to language models, and of their answers
//	output   the files of a run
//	sending  attempts over HTTP, redirects, next pages, memory and money
//	tally    all that is counted
//	telling  what the user learns on the way
//
// docs/run-input.md and docs/results.md describe the formats.
package run
