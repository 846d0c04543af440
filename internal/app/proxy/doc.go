// Package proxy is what `paceline proxy` does: HTTP clients in any language send to it at once and without thinking, and it lets each
// request go at the first instant that the server surely allows.
//
// It is a thin adapter: httputil.ReverseProxy over package transport, which waits, judges, settles and sends again. Here are only those who
// ask, what may be asked for, and what is answered where a request does not get through.
package proxy
