// Package send sends requests over HTTP, each at most once for each permit (the permission to send
// once). It also records when the last byte of a request left.
//
// Package net/http by itself may write a request a second time. Over HTTP/1.1 it does so when a
// connection that it kept idle turns out to be closed and the request is a GET, say, or has an
// Idempotency-Key. Over HTTP/2 it does so after GOAWAY and REFUSED_STREAM. But the server, or a
// limiter in front of the server, may have counted the first write as well, while Paceline's
// limiter counts only one. So each time that net/http has a connection for a request, the request's
// Exchange decides whether net/http may write. If the request may have been written before, the
// Exchange refuses the second write before its first byte.
//
// A Base (a wrapped http.RoundTripper) and its Exchanges (one for each permit) decide only whether a
// request may be written: by net/http, or by a connection of this package (line.go). The caller
// decides whether to send a request again, with a new permit. A Base has no goroutine that runs all
// the time; a timer closes its idle connections. A Base and its Exchanges take the present time from time.Now, and no caller can
// replace that clock.
//
//	send.go          Base: NewBase, Send; how net/http is kept from a second write
//	attempt.go       Exchange: what is known of the request that is sent with one permit
//	watched_conn.go  connections that know which attempt is written to them
//	line.go          Lines: connections on which one goroutine writes and reads; their idle ones
//	line_request.go  which requests go over a line, and their bytes
//	tap*.go          whether the server has sent something on an idle connection
//	watch.go         Watch: one timer for all attempts that should end within the same span
//	field.go         names and values of header fields
//	query.go         parameters of queries
//	price.go         what a request to a language model costs: the most, before it is sent; exactly, after the answer
//
// Package send/outgoing finds the proxy through which requests leave this machine's network.
// Package send/outgoing is separate from package send since it needs golang.org/x/net, while
// package transport needs package send and nothing of that module.
package send
