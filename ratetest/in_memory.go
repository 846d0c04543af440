package ratetest

import (
	"cmp"
	"net/http"
	"net/http/httptest"
)

// InMemory returns an http.RoundTripper that passes requests to h without a socket. It is for an
// http.Client in a test. In a bubble of testing/synctest, the latency of an Exchange and the waits
// of a client then pass at once:
//
//	client := &http.Client{Transport: transport.Must(transport.Config{Base: ratetest.InMemory(exchange), Limiter: rate})}
//
// h runs on the goroutine of the caller, and its answer is complete when h returns. So the answer
// to a streaming request comes all at once, at its end. If the context of a request has ended by
// then, the request fails with the context's error. h has seen the request nevertheless, as a real
// server would. All requests come from 192.0.2.1. Safe for concurrent use if h is.
func InMemory(h http.Handler) http.RoundTripper { return memory{h} }

type memory struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close() // a RoundTripper must close the body on every way out
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	got := r.Clone(r.Context()) // a RoundTripper must not change the caller's request
	if got.Body == nil {
		got.Body = http.NoBody
	}
	got.Host = cmp.Or(got.Host, got.URL.Host)
	got.Method = cmp.Or(got.Method, http.MethodGet)
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
