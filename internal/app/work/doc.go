// Package work lets a run send the requests of a backlog, while other processes send from the same
// backlog. A backlog is a list of requests in a database. The package adds no rules of its own: it
// only connects package internal/app/run with package backlog.
//
//	source.go   Source: the input of a run, and the ends of its requests
//	adding.go   Adder: puts the requests of a file into a backlog
//	note.go     Note: what a backlog keeps beside its requests, such as the models that have lanes
//	results.go  the results of a backlog, in the order of its input; Repeat and cancelled
//	whole.go    Whole: the progress of all processes together, counted now and then
//
// The database stores a request as a line of the input format of `paceline run`. Keys and tokens
// that the flags of a command supply are never in such a line. A request that itself contains a
// secret is refused, unless Storing.Secrets allows it. The database stores a result as the line
// that a run would write to its files of results and dead letters. Only the backlog may know that a
// request may have been sent twice. The mark for this is added to the result when the results are
// read.
package work
