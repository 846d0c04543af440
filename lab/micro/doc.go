// Package micro measures Paceline beside other limiters. It is a module of its own, so that what it
// compares with is no dependency of Paceline.
//
//	cd lab/micro
//	go test -run 'Worst|Stale' -v                  most in any window, over the limit
//	go test -run Holdings -v                       bytes of a limiter
//	go test -run '^$' -bench Cases                 ns per operation, and aims
//	go test -run '^$' -bench Run -benchtime 5x     `paceline run` beside hey: some minutes
//	go test -run '^$' -bench Pacing -benchtime 1x  real time: share of the limit, lateness
//
// With -count 10, benchstat compares medians. An aim is met if the median is within it at every N.
//
// ./check only builds this module, since figures need a machine that does nothing else.
//
// The limiters of others make other promises than ours, and some do not keep what their names say:
// see the table of worst windows.
package micro
