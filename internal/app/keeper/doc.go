// Package keeper is the proxy through which the programs that `paceline exec` runs send their
// requests. One keeper serves all such programs of one user. With some flags, such as --apart, a
// keeper serves one program alone. Each program's run (the time from its start to its end) has a
// port of its own at the keeper, called its entrance. The requests of all runs at one keeper count
// in the same limits.
//
// # Files
//
//	keeper.go    one proxy for all runs of exec: a run joins, leaves; its upstreams
//	exec_run.go  one run: its port, token, certificates, files; its end
//	entrance.go  who may enter by the port of a run: by its token, or Java of this user
//	conflict.go  refuses a run whose settings for a host differ from another's
//	summary.go   the figures that a run prints at its end: hosts, requests, refusals, connections
package keeper
