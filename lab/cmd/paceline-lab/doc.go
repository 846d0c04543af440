// Command paceline-lab simulates clients that share a quota, and measures Paceline's limiters
// against simulated servers that enforce their limits. The verb proof simulates hostile latencies.
// It checks that a server never refuses a request that Paceline's limiters admitted.
//
// The source of each verb of paceline-lab is in a file of its own. The program paceline contains
// nothing of paceline-lab, and no package outside the folder lab imports a package inside it.
//
// # Files
//
//	main.go            the list of verbs
//	verbs.go           the first Ctrl-C; a report as text or JSON, and its exit code
//	flag_groups.go     groups of flags, for help
//	bench.go           bench: the verb above exchange and llm
//	bench_exchange.go  bench exchange: flags, and the choice of rows by --row
//	bench_llm.go       bench llm: its flags, such as --seeds
//	proof.go           proof: flags such as --requests 1e8, and the line of progress
//	sim.go             sim: runs a scenario file, with its text and its chart
//	sim_init.go        sim --init: an example scenario
//	sim_throttle.go    sim throttle: compares strategies in the standard scenarios; seeds
//	sim_aims.go        sim throttle --aims: measures a strategy against the aims
//	chart.go           chart: draws the results of a run
//	chart_figure.go    what the chart of a sim shows: lines, bars, groups, sleeps
//	check_log.go       check-log: proves that no window of a log held more than a limit
package main
