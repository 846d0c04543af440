// Package micro measures Paceline beside other limiters. It is a module of its own, so that what it
// compares with is no dependency of Paceline.
//
//	cd lab/micro
//	go run ./table                               ns per operation, aims and ratios; bytes; cold cache: half a minute
//	go run ./pacing                              real time: share of the limit, worst window, lateness: 2 minutes
//	go run ./run                                 `paceline run` beside hey: requests/s, CPU per request: some minutes
//	go test -run 'Worst|Stale' -v                most in any window, over the limit
//	go test -run '^$' -bench . -benchmem         the table's cases as benchmarks
//
// The table times all cases in turns of some milliseconds, so that noise of the machine affects all
// of them alike, and prints the medians of the turns. An aim is met if the median is within it at
// every N. It is "met at best" if only the fastest turn is within it.
//
// ./check only builds this module, since figures need a machine that does nothing else.
//
// The limiters of others make other promises than ours, and some do not keep what their names say:
// see the table of worst windows.
package micro
