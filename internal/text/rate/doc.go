// Package rate reads rates as people write them: 20/s, 100/min, 5 per second, 300/5m, 10rps, 1k/h.
// A Limit is such a rate with further settings, for example a unit, from a flag or a file. A method
// of Limit makes the limiter for the rate and these settings.
//
// Package rate has no clock: it computes on texts, and on an instant that its caller passes in.
// Package rate does not know whether a limit is that of each key or of each client: the caller
// knows this.
//
// # Files
//
//	rate.go       Rate and Parse: 20/s, 300/5m, 10rps, and errors that name the expected forms
//	limit.go      Limit: a rate with its settings; the limiter that it makes, how long requests take
//	changed_limit.go     a limit with another number or window, and its limiter changed to that
//	together.go          how long requests take that several limits let go together
//	parallel_servers.go  how long requests take that several servers divide among each other
//	counted.go    limits with a unit: 200k tokens/d, 5USD/d
//	zone_name.go  limits by the clock of a place: 100/d@America/Los_Angeles
//	percent.go    parts of a whole, as --use has them: 75%, 0.75
//	model.go      limits of one model, or of all models
package rate
