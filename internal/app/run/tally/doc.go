// Package tally counts the requests and attempts of a run (of package internal/app/run).
//
// A Tally stores the ids of all requests, from the input and from the files of earlier runs. (It
// stores no ids of a backlog, nor of requests that are sent in rounds.) So the Tally knows which
// requests have ended, and finds at the end of the run whether one has no result. The Tally also
// counts requests and attempts per key, per model and per kind of failure, and it measures the
// recent rate. The package reads the clock, and sends nothing.
//
//	tally.go         counts done, dead, expired, missing; which ids a resumed run skips
//	model_totals.go  done, dead, tokens and money of each model
//	use.go           the mean cost of a request, and attempts per request, for the ETA
//	figures.go       latency, figures of each key, and the most that nonces in order allow
//	failures.go      recent failures: counts attempts that failed for the same reason
//	turns.go         the rounds of requests that are sent again and again (--every)
//	pace.go          the recent rate: how fast requests ended of late
package tally
