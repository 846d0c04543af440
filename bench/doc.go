// Package bench measures Paceline beside other limiters. It is a module of its own, so that what it compares with is no
// dependency of Paceline.
//
//	cd bench
//	go run ./table                               ns per operation, aims and ratios; bytes; cold cache: half a minute
//	go run ./pacing                              real time: share of the limit, worst window, lateness: 2 minutes
//	go run ./run                                 `paceline run` beside hey: requests/s, CPU per request: some minutes
//	go test -run 'Worst|Stale' -v                most in any window, over the limit
//	go test -run '^$' -bench . -benchmem         the table's cases as benchmarks
//
// The table times all cases in turns of some milliseconds, so that noise of the machine hits all alike, and prints medians
// over the turns. An aim is met if the median is within it at every N, and met at best if only the fastest turn is.
//
// ./check only builds this module: figures want a machine that does nothing else.
//
// The others promise other things than ours, and not all of them what their names say: see the table of worst windows.
package bench
