package proxy

import (
	"strings"
	"testing"
)

// A client cannot make the server change to HTTP/2 within a connection. Inside it, requests would
// pass limits and paths. Such a request goes on as an ordinary one; an upgrade to a WebSocket still
// goes on.
func TestNoTunnelOfHTTP2(t *testing.T) {
	s := newSink(t)
	x := start(t, to(mustURL(t, "http://"+s.Addr().String())))
	for _, c := range []struct {
		fields string
		goes   bool // the server is asked for a WebSocket
	}{
		{"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", false},
		{"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", false},
		{"Connection: upgrade\r\nUpgrade: H2C\r\n", false},
		{"Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", false},
		{"Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n", true},
		{"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", true},
	} {
		s.take()
		got := x.raw("GET /a HTTP/1.1\r\nHost: a\r\n" + strings.Replace(c.fields, "Connection: ", "Connection: close, ", 1) + "\r\n")
		sent := s.take()
		if asked := strings.Contains(sent, "Upgrade:"); !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.HasPrefix(sent, "GET /a HTTP/1.1\r\n") || asked != c.goes || strings.Contains(strings.ToLower(sent), "h2c") || strings.Contains(strings.ToLower(sent), "http2-settings") {
			t.Errorf("%q: %.60q, went on as %q", c.fields, got, sent)
		}
	}
}
