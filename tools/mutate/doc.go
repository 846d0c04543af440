// Package mutate plants small faults in this module's sources, one at a time, and lets the tests
// look for each fault. A fault that no test finds shows a promise of the code that no test checks,
// unless equivalents.txt lists this fault. The package contains only tests: PACELINE_LONG=1 go test
// ./tools/mutate.
//
// A fault is an edit of a few bytes, made from the syntax tree. It is never written to the sources:
// the go command reads it through -overlay. A mutant is a source file with one fault. All mutants
// of a sample are compiled in one build. Each mutant has its own copy of the changed function, and
// an environment variable selects the copy that is called. So judging a mutant needs no build: only
// the tests are run, until the first test fails. (Mutants with a fault outside of functions are
// built one by one.)
//
// No fault is planted in code about which nothing is promised. Such code is: words for people,
// panics, and results beside a false or an error. The same holds for the number behind a minus (-1
// means none), the size of an allocation, and a comparison that cuts a value at a bound. Large
// constants and the numbers of durations are doubled and halved, and not changed by one, since
// nothing promises a pause or a size to a percent.
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
