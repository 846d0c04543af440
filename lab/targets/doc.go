// Package targets defines aims: figures that a strategy should reach for clients that share a quota
// and do not know of each other. Package targets also measures whether a strategy reaches each aim.
//
//	aim_table.go    each aim: a scenario of package fleet, and the figures to be reached
//	aim_figures.go  how each figure is measured: refusals, shares, settling time
//	open.go         the aims that are not reached, and why
//	aims.go         runs the scenarios over seeds; which figures are met
//	write.go        writes the table of the aims
//
// A strategy should be judged by other random seeds than those on which it was tuned. If the caller
// names no seeds, package targets uses the seeds 1001 to 1020, on which no strategy of package
// lab/strategy was tuned.
package targets
