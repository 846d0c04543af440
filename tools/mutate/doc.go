// Package mutate plants small faults in this module's sources, one at a time, and has the tests
// find them. What no test finds is a promise that nothing holds anybody to. It is for tests alone:
// go test ./tools/mutate with PACELINE_LONG=1.
//
// A fault is an edit of a few bytes, made from the syntax tree and never written to the sources: go
// reads it through -overlay. All mutants of a sample are compiled in one build. Each has its own
// copy of the function, and an environment variable selects the copy that is called. So judging a
// mutant needs no build: only the tests are run, until the first one fails. (Those outside of
// functions are built one by one.)
//
// No fault is planted where no promise is. That is: words for people, panics, and results beside a
// false or an error. It is also the number behind a minus (-1 means none), the size of an
// allocation, and a comparison that cuts a value at a bound. The number of a duration is doubled
// and halved, and so is a constant of more than a few. No promise says to a percent how long a
// pause or a memory is.
//
// # Files
//
//	study_test.go     samples mutants, has the tests judge them, prints which survive
//	targets_test.go   which packages have faults planted
//	mutants_test.go   which faults there are, and where none is planted
//	accepted_test.go  equivalents.txt: mutants that no test can find, and why
//	since_test.go     mutants of the lines that changed since a revision
//	build_test.go     builds many mutants at once, or one by one
//	users_test.go     whose tests are made with a package, so may find its mutants
//	asks_test.go      which tests are asked about a mutant, in which order
//	suites_test.go    runs the tests of a package; how they end; how long they may take
//	mutate_test.go    tests of mutants, of diffs, and of equivalents.txt
//	run_test.go       tests of builds, users and ends
package mutate
