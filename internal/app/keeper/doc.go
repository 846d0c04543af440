// Package keeper is the proxy of the programs that `paceline exec` runs. One keeper serves one
// program, or all such programs of one user. Each run has an entrance of its own, which is a port.
// All runs count in the same limits.
//
// # Files
//
//	keeper.go    Keeper: one proxy for the upstreams of all runs
//	exec_run.go  Run: its port, token, certificates and files
//	entrance.go  who may enter by the port of a run
//	same.go      runs that state different limits for one host
//	summary.go   the figures of a run's end
package keeper
