// Package histogram counts durations in a bounded memory, whatever their number. A Histogram takes
// 64 KiB. A Classes, with fewer and wider classes, takes 192 bytes. A Named takes about 130 KiB for
// each name, and has at most 32 names; it counts later names together as "other". A Recent keeps
// the latest 64 durations, in 544 bytes.
//
// # Files
//
//	histogram.go  durations in classes: counts, means, quantiles
//	classes.go    the classes of metrics: 1 ms, 2 ms, 4 ms … 17 min
//	by_name.go    durations of each host or limit, of the last minutes
//	recent.go     which answers come too late: the longest of the last ones
package histogram
