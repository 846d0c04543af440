// Package backlogtest contains the tests that every backlog.Store has to pass. If you write a Store
// for another database, run these tests on it.
//
// # Files
//
//	backlogtest.go  Run, and help for the tests
//	turns.go        transactions of workers: their numbers, results, claims and returned requests
//	workers.go      workers that are given up
//	programs.go     adding, results, pausing, cancelling, sending again
package backlogtest
