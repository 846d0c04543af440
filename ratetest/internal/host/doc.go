// Package host contains the code that all servers of ratetest have in common. It starts and stops a
// server on a socket, counts the requests under way, and writes the log. It also contains a few
// texts and answers that several servers use.
//
// # Files
//
//	host.go           a server listens, and ends after its last request
//	requests.go       Requests: those under way, and the wait for the last of them
//	server_clock.go   Clock: the clock of a server, real or virtual
//	virtual_clock.go  /clock/: clients sleep in virtual time
//	sleepers.go       whose sleep ends next, and when virtual time advances
//	journal.go        --log: the log, in lines of JSON
//	answer.go         bodies of JSON; common error texts; waits in whole units
//	route_pattern.go  Match: whether a request has a pattern such as GET /v1/{}/messages
package host
