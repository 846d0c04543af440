// Package histogram counts durations in a bounded memory: 64 KiB, whatever their number.
//
// # Files
//
//	histogram.go  durations in classes: counts, means, quantiles
//	classes.go    the classes of metrics: 1 ms, 2 ms, 4 ms … 17 min
//	by_name.go    durations of each host or limit, of the last minutes
//	recent.go     which answers come too late: the longest of the last ones
package histogram
