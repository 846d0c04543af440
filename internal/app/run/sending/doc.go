// Package sending makes the attempts of a run (of package internal/app/run) over HTTP/1.1, unless
// Config.Base sends them. An attempt is one try at a request. The package writes each attempt to
// the network at most once.
//
// A Sender sends a request to a Hop, which is the request's own URL or that of a redirect, and
// returns a Response. After a redirect, Sender.Follow returns the next Hop, and the caller decides
// when to send to it. For a list of several pages, Sender.Turned builds the request for the next
// page, and the caller sends it.
//
// Some addresses may not get the keys of the run, for example those at another host that --key-host
// does not name. After a redirect to such an address, the request to the new Hop is made without
// the keys. If a key would still be in the URL or body of this request, Follow returns an error. A
// next page at such an address is not requested: Turned returns an error.
//
// The Sender bounds the memory that the bodies of all answers take together. A Budget bounds what
// the attempts may cost in money.
//
//	sender.go   makes the HTTP request; redirects, and keys on them; connection errors in words
//	trip.go     writes an attempt to the network, or to a Base, at most once
//	late.go     --timeout: ends an attempt; waits on this side do not count
//	in_line.go  requests that wait in paceline proxy: their time, and that they are taken back
//	next.go     finds the next page in an answer, and builds its request
//	pointer.go  reads the address of the next page in JSON
//	weblink.go  reads the address of the next page in the header field Link
//	flights.go  how many attempts are in flight, by limits, answers and --concurrency
//	memory.go   bounds the memory for bodies; shortens those that wait to be written
//	open_files.go  how many connections the process may open; by system in open_files_unix.go and
//	            open_files_other.go
//	money.go    Budget: money that attempts may cost and did cost; reserves before a send
package sending
