// Package tally counts the requests and attempts of a run.
//
// A Tally has the ids of all requests, from the input and from the files of earlier runs. So the
// Tally knows which requests have ended, and finds at the end of the run whether one is missing.
// The Tally also counts per key, per model and per kind of failure, and it measures the recent
// rate. The package reads the clock, and sends nothing.
//
//	tally.go         the totals, and which ids are in the results or the dead letters
//	model_totals.go  the totals of each model
//	use.go           what the requests of a group cost
//	figures.go       latency, figures per key, and the ceiling of nonces
//	failures.go      how attempts failed
//	turns.go         the rounds of requests that are sent again and again (--every)
//	pace.go          how fast requests ended of late
package tally
