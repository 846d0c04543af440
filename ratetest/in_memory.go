package ratetest

import (
	"net/http"
	"net/http/httptest"
)

// InMemory returns an http.RoundTripper that hands requests to h without a socket, for an http.Client in a test. In a bubble of
// testing/synctest the latency of an Exchange, and what a client waits, then pass at once:
//
//	client := &http.Client{Transport: transport.Must(transport.Config{Base: ratetest.InMemory(exchange), Limiter: rate})}
//
// h runs on the goroutine of the caller, and its answer is complete when it returns, so the answer to a streaming request comes all at
// once, at its end. A request whose context has ended by then fails with the context's error, although h has seen it, as with a server.
// All requests come from 192.0.2.1. Safe for concurrent use if h is.
func InMemory(h http.Handler) http.RoundTripper { return memory{h} }

type memory struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close() // the contract of a RoundTripper asks for it on every way out
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	got := r.Clone(r.Context()) // a RoundTripper must not change what it is given
	if got.Body == nil {
		got.Body = http.NoBody
	}
	if got.Host == "" {
		got.Host = got.URL.Host
	}
	if got.Method == "" {
		got.Method = http.MethodGet
	}
	got.RequestURI, got.RemoteAddr = got.URL.RequestURI(), "192.0.2.1:1234"
	w := httptest.NewRecorder()
	m.ServeHTTP(w, got)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
