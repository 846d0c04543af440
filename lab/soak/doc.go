// Package soak sends through every door of Paceline to a server that behaves as strangers' servers
// do, for as long as one likes. It counts what the promises forbid.
//
// The server compresses its answers, serves in part, refuses within 200 and in words, repeats keys,
// and fails after it has served. The doors are `paceline run`, `paceline proxy`, and Pools that
// share a limit through a store that goes back in time.
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
