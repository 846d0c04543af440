// Package backlogtest contains the tests that every backlog.Store (a database of backlogs) has to
// pass. If you write a Store for another database than SQLite and PostgreSQL, run these tests on
// your Store.
//
// # Files
//
//	backlogtest.go  Run, which runs all tests on a Store; help for them
//	turns.go        tests of workers' transactions: numbers, results, claims, returned requests
//	workers.go      tests of workers that died or stopped, and are given up
//	programs.go     tests of adding, results, counts, pausing, cancelling, sending again
package backlogtest
