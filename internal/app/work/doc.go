// Package work lets a run send the requests of a backlog, while other processes send from the same
// backlog. It adds no rules of its own: it only connects package run with package
// internal/core/backlog.
//
//	source.go    Source: the input of a run, and the ends of its requests
//	adding.go    Adder: puts the requests of a file into a backlog
//	results.go   the results of a backlog, in the order of its input
//	whole.go     Whole: the progress of all processes together
//
// The requests are lines of run's own format, without secrets, and the results are lines as run writes
// them.
package work
