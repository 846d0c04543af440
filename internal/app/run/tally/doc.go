// Package tally counts the requests and attempts of a run.
//
// A Tally has a ledger of all ids, of the input and of the files of earlier runs. So it knows which requests
// have ended, and in the end that none is lost. Beside it are the figures: per key, per model, per way to fail,
// and how fast requests ended of late. It reads the clock, and sends nothing.
//
//	tally.go         the totals, and which ids are in the results or the dead letters
//	model_totals.go  the totals of each model
//	use.go           what the requests of a group cost
//	figures.go       latency, figures per key, and the ceiling of nonces
//	failures.go      how attempts failed
//	turns.go         the turns of requests that are asked again and again
//	pace.go          how fast requests ended of late
package tally
