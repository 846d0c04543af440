// Package run sends a file of requests. It is all of `paceline run` but the flags and the terminal.
//
//	config.go    the options of a run
//	run.go       the four steps: New, Open, Send, Close
//
//	feed.go      checks the input, then reads it and hands the requests to a pool.Pool
//	course.go    whether reading goes on, and how much is read ahead
//
//	deadline.go  when the time of a request begins, and how much of it is left
//	trial.go     the first request of each model goes alone
//
//	attempt.go   one request is sent and answered
//	ended.go     writes the results of requests that have ended, many together
//	send.go      sends one attempt over HTTP, and never writes it twice
//	budget.go    the money that attempts may cost, and the money that they did cost
//	price.go     prices, and the most that one attempt may cost
//	memory.go    bounds the memory for the bodies of answers
//	pages.go     a request goes on with its next page
//	next.go      finds the next page in an answer; pointer.go and weblink.go read its address
//	bearer.go    tokens that are renewed
//	verdict.go   the evidence of an answer about the request, the limits and the key
//	partly.go    answers of which a limit refused some parts
//	host.go      hosts where nothing arrives
//	denied.go    ends a run whose requests the server denies
//	figures.go   latency, figures per key, and the ceiling of nonces
//	waits.go     the causes for which requests waited
//	refusals.go  which attempts of a request were refused, and when
//	ceilings.go  how much the limits allow as time passes
//
//	earlier.go   what earlier runs did: their results, and the journal
//	selected.go  rows of answers
//	slept.go     midnights of a place, after the machine has slept
//	replay.go    sends of earlier runs fill the windows of this one
//	lessons.go   the journal keeps the lessons about wrong limits
//	tally.go     the totals, and which ids are in the results or the dead letters
//	model.go     the totals of each model
//	auto.go      limits that a run finds out; served.go observes them if no limit is given
//	sharing.go   limits that strangers also use
//	organizations.go  keys that have limits together
//	groups.go    models that have limits of their own, each with a Pool
//	plan.go      what a run would send, and how long the limits make it take
//	progress.go  how far the run is, and why it waits; look.go makes snapshots
//	eta.go       how long the rest takes
//	failures.go  how attempts failed
//	notices.go   notices for the user, each once
//
// Packages below this one need no Run:
//
//	format   the forms of requests and results
//	output   the files of a run
//	dead     the causes of dead letters
//	hide     the secrets that nothing may show
//
// docs/run-input.md and docs/results.md describe the formats.
package run
