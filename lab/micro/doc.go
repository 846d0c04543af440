// Package micro measures Paceline beside other limiters. It is a module of its own, so that
// Paceline does not depend on those limiters.
//
//	cd lab/micro
//	go test -run 'Worst|Stale' -v                  most in any window, over the limit
//	go test -run Holdings -v                       bytes of a limiter
//	go test -run '^$' -bench Cases                 ns per operation, and aims
//	go test -run '^$' -bench Run -benchtime 5x     `paceline run` beside hey: some minutes
//	go test -run '^$' -bench Pacing -benchtime 1x  real time: share of the limit, lateness
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
