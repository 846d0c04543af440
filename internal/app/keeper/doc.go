// Package keeper is the proxy of programs that paceline exec runs: of one, or of all that one user
// runs. Each run has an entrance of its own, and all of them count in the same limits.
//
// # Files
//
//	keeper.go    Keeper: one proxy for the upstreams of all runs
//	exec_run.go  Run: its port, token, certificates and files
//	entrance.go  who may enter by a port
//	same.go      runs that differ in the limits of one host
//	summary.go   the figures of a run's end
package keeper
