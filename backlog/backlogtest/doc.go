// Package backlogtest contains the tests that every backlog.Store has to pass. If you write a Store
// for another database, run these tests on it.
//
// # Files
//
//	backlogtest.go  Run, which runs all tests on a Store; help for them
//	turns.go        tests of workers' transactions: numbers, results, claims, returned requests
//	workers.go      tests of workers that died or stopped, and are given up
//	programs.go     tests of adding, results, counts, pausing, cancelling, sending again
package backlogtest
