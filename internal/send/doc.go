// Package send sends requests over HTTP, each at most once for each permit (the permission to send
// once). It also records when the last byte of a request left. Both need an *http.Transport, or a
// RoundTripper that reports to httptrace.
//
// Package net/http by itself may write a request a second time. Over HTTP/1.1 it does so when a
// connection that it kept idle turns out to be closed and the request is a GET, say, or has an
// Idempotency-Key. Over HTTP/2 it does so after GOAWAY and REFUSED_STREAM. But the server, or a
// limiter in front of the server, may have counted the first write as well, while Paceline's
// limiter counts only one. So each permit has a record, the Exchange. Each time that net/http has a
// connection for a request, the request's Exchange decides whether net/http may write. If the
// request may have been written before, the Exchange refuses the second write before its first
// byte.
//
// A Base is a wrapped http.RoundTripper. A Base and its Exchanges (one for each permit) decide only
// whether a request may be written, by net/http or by a connection of package send itself
// (line.go). The caller decides whether to send a request again; if anything may have been written,
// that needs a new permit. A Base starts no goroutine of its own that runs all the time; a timer
// closes its idle connections. A Base and its Exchanges take the present time from time.Now, and no
// caller can replace that clock.
//
//	send.go          Base: at most one write per permit; ErrTwice; GOAWAY
//	attempt.go       whether and when a request was written; timeouts and cancels of it
//	watched_conn.go  connections that note whether a byte of the attempt was written
//	line.go          quick connections of HTTP/1.1: dialled, kept alive, closed by the server
//	line_request.go  which requests go over a line, and their bytes
//	tap*.go          whether the server has sent something on an idle connection
//	watch.go         one timer for many timeouts of one length
//	field.go         which names and values of header fields are valid
//	query.go         sets parameters of a query, and leaves the others as written
//	price.go         what a prompt costs in money: beforehand at most, then exactly; cache
//
// Package send/outgoing finds the HTTP or SOCKS proxy through which requests leave this machine's
// network. Package send/outgoing is separate from package send since it needs golang.org/x/net.
// Package transport needs package send, and should not depend on that module.
package send
