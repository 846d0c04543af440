// Package work lets a run send the requests of a backlog, beside other processes that do so. It adds no
// law to those of a run and of a backlog: it only connects them.
//
//	source.go    Source: the input of a run, and the ends of its requests
//	adding.go    Adder: the requests of a file get into a backlog
//	results.go   the results of a backlog, in the order of its input
//	whole.go     Whole: how far all processes are together
//
// The requests are lines of run's own format, without secrets, and the results are lines as run writes
// them.
package work
