// Package compare compares strategies for clients that share a quota and do not know of each other.
// It runs each strategy in each of a list of scenarios, once per seed, on all cores. The command
// `paceline-lab sim throttle` uses package compare for the strategies of package lab/strategy. A Go
// program can compare a strategy of its own, too; see the example.
//
// compare.go runs the strategies; compare_table.go has the results and writes them as a table.
//
// # Files
//
//	compare.go        runs strategies in scenarios, over seeds, on all cores
//	compare_table.go  the table: medians, worst, columns of its text
package compare
