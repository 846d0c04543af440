// Package sending makes the attempts of a run (of package internal/app/run) over HTTP/1.1, unless
// Config.Base sends them. An attempt is one try at a request. The package writes each attempt to
// the network at most once.
//
// A Sender sends a request to a Hop, which is the request's own URL or that of a redirect, and
// returns a Response. After a redirect, Sender.Follow returns the next Hop, and the caller decides
// when to send to it. For a list of several pages, the Sender makes the request for the next page.
// Requests to a Hop or a next page carry only those keys that the new address may get. The Sender
// bounds the memory that the bodies of all answers take together. A Budget bounds what the attempts
// may cost in money.
//
//	sender.go   makes the HTTP request; redirects, and keys on them; connection errors in words
//	trip.go     writes an attempt to the network, or to a Base, at most once
//	late.go     --timeout: ends an attempt; waits on this side do not count
//	next.go     finds the next page in an answer, and makes its request
//	pointer.go  reads the address of the next page in JSON
//	weblink.go  reads the address of the next page in the header field Link
//	memory.go   bounds the memory for bodies; shortens those that wait to be written
//	money.go    Budget: money that attempts may cost and did cost; reserves before a send
package sending
