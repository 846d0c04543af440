// Package send sends requests over HTTP, each at most once per permit. It knows when the last byte of
// a request left.
//
// net/http by itself sends a request again. Over HTTP/1.1 it does so when a kept connection turns
// out to be closed and the request is a GET, say, or has an Idempotency-Key. Over HTTP/2 it does so
// after GOAWAY and REFUSED_STREAM. But the server, or a limiter in front of it, may have counted
// the first one, and our limiter counts only one. So each time that net/http has a connection for a
// request, the Exchange decides. If the request may have been written before, it is refused before
// a byte is written.
//
// A Base and its Exchanges decide nothing else. The caller decides whether to send again, with a new
// permit. They start no goroutine and have no clock of their own: Times are time.Now.
//
//	send.go          Base: NewBase, Send; how net/http is kept from a second write
//	attempt.go       Exchange: what is known of one permit
//	watched_conn.go  connections that know which attempt is written to them
//	line.go          Lines: connections on which one goroutine writes and reads; their idle ones
//	line_request.go  which requests go over a line, and their bytes
//	tap*.go          whether something has come on an idle connection
//	watch.go         Watch: one timer for all attempts that should end within the same span
//	field.go         names and values of header fields
//	query.go         parameters of queries
//	price.go         what a request to a language model costs: at most beforehand, then really
//
// Package outgoing knows the proxy on the way out. It is a package of its own since it needs a module
// of others, and transport does without that module.
package send
