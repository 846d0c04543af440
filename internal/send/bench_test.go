package send

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
)

// answers is a variable, so that no compiler sees what becomes of a request.
var answers http.RoundTripper = roundTripper(func(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
})

// BenchmarkOverhead is what Send itself takes, beside a trace of two hooks without it.
func BenchmarkOverhead(b *testing.B) {
	base := &Base{own: &http.Transport{}, rt: answers}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://a.test/", nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Traced", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			a := new(Exchange)
			t := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { a.left = true }, WroteRequest: a.wroteRequest}
			finish(answers.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), t))))
		}
	})
	b.Run("Wire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			finish(base.Send(r, new(Exchange)))
		}
	})
}

// BenchmarkSend is what a request costs over a bare http.Transport, to a server on the loopback interface: both in one run.
func BenchmarkSend(b *testing.B) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, `{"ok":true}`) })
	server, client := tlsConfigs()
	for _, bc := range []struct {
		name       string
		secure, h2 bool
	}{{"HTTP1", false, false}, {"HTTPS1", true, false}, {"H2", true, true}} {
		srv := httptest.NewUnstartedServer(handler)
		srv.EnableHTTP2 = bc.h2
		bare := &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: client, ForceAttemptHTTP2: true}
		if bc.secure {
			srv.TLS = server.Clone()
			srv.StartTLS()
		} else {
			srv.Start()
		}
		over := NewBase(bare)
		trip := func(b *testing.B, send func(*http.Request) (*http.Response, error)) {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, srv.URL, nil)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := finish(send(r)); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(bc.name+"/Bare", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trip(b, bare.RoundTrip)
			}
		})
		b.Run(bc.name+"/Wire", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				trip(b, func(r *http.Request) (*http.Response, error) { return over.Send(r, new(Exchange)) })
			}
		})
		only1 := plainTransport()
		only1.TLSClientConfig = client
		if lines := Lines(only1); lines.lines != nil && !bc.h2 {
			b.Run(bc.name+"/Lines", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					trip(b, func(r *http.Request) (*http.Response, error) { return lines.Send(r, new(Exchange)) })
				}
			})
			lines.CloseIdleConnections()
		}
		bare.CloseIdleConnections()
		over.CloseIdleConnections()
		srv.Close()
	}
}
