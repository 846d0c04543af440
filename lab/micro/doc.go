// Package micro measures Paceline beside other limiters. It is a module of its own, so that
// Paceline does not depend on those limiters.
//
//	cd lab/micro
//	go test -run 'Worst|Stale' -v                  the most that a limiter let go in any window, over its limit
//	go test -run Holdings -v                       the memory of a limiter, in bytes
//	go test -run '^$' -bench Cases                 ns per operation, and aims
//	go test -run '^$' -bench Run -benchtime 5x     the speed of `paceline run` and of hey: takes some minutes
//	go test -run '^$' -bench Pacing -benchtime 1x  in real time: the used share of the limit, and the lateness
//
// With -count 10, the tool benchstat compares the medians of ten runs. Some operations have an aim:
// a time in ns that they should not exceed. The benchmarks run with several N, the limit. An aim is
// met if the median is within the aim at every N.
//
// The script ./check builds the module lab/micro and runs nothing of it. The reason is that the
// figures of this module need a machine that does nothing else meanwhile.
//
// The limiters that are measured beside Paceline's promise less, or other things. Some let more
// requests go in a window than their limit: see the table of worst windows in the documentation of
// package paceline.
package micro
