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
// With -count 10, benchstat compares medians. Some operations have an aim: a time in ns that they
// should not exceed. An aim is met if the median is within it at every N, where N is the limit in
// the benchmark.
//
// The script ./check builds this module and runs nothing of it. Its figures need a machine that
// does nothing else meanwhile.
//
// Other limiters promise other things than Paceline's. Some let more go in a window than their
// limit: see the table of worst windows.
package micro
