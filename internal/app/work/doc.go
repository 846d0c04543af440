// Package work lets a run send the requests of a backlog, while other processes send from the same
// backlog. A backlog is a list of requests in a database. The package adds no rules of its own: it
// only connects package run with package backlog.
//
//	source.go   Source: the input of a run, and the ends of its requests
//	adding.go   Adder: puts the requests of a file into a backlog
//	results.go  the results of a backlog, in the order of its input; Repeat and cancelled
//	whole.go    Whole: the progress of all processes together, counted now and then
//
// The requests of the backlog are stored as lines of run's own format. Keys and tokens are never in
// them. A request with another secret is refused, unless Storing.Secrets allows it. The results are
// stored as the lines that run writes to its files of results and dead letters. A possible repeat
// that only the backlog knows is added when the results are read.
package work
