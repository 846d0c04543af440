// Package soak tests Paceline against a server that misbehaves as real servers do, for the time of
// the flag -for (5 s by default). The test sends requests in three ways, which are called doors
// here: `paceline run`, `paceline proxy`, and Pools that share a limit through a store. The test
// counts broken promises of Paceline, such as requests above the limit, and keys in files.
//
// The test server of package soak compresses its answers, and serves only a part of some requests.
// It refuses some requests by answers with status 200, and repeats keys in its answers. Some
// requests fail after the server has served them. The store sometimes returns to an earlier state,
// as after a restored backup.
//
//	go test ./lab/soak -run TestSoak -for 30m -timeout 0 -v
//
// With -artifacts, the files that the programs write are kept. The package has nothing but tests:
//
//	soak_test.go      TestSoak: the doors, for a time
//	stranger_test.go  the server, and what it counts
//	doors_test.go     run, proxy and Pool, each against the server
//	rewinding_test.go the store that goes back in time
//	secrets_test.go   the search for keys in all that was written
//	report_test.go    report, and its table
package soak
