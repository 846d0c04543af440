package send

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// conn is a connection that, with HTTP/1.1, knows which attempt is written to it.
type conn struct {
	net.Conn
	serves atomic.Pointer[Exchange] // the attempt; nil during a TLS handshake, a proxy's CONNECT, and with HTTP/2
	speaks atomic.Int32             // whether its TLS agreed on HTTP/2; 0: unknown yet
}

const (
	one = 1 + iota
	two
)

// Write counts for the attempt. After the request, it may write a TLS alert, or the caller's bytes
// after a switch of protocols. An alert on a connection that failed before the request counts as
// the request.
func (c *conn) Write(b []byte) (int, error) {
	a := c.serves.Load()
	if a == nil {
		return c.Conn.Write(b)
	}
	if !a.begin() {
		return 0, ErrLapsed
	}
	n, err := c.Conn.Write(b)
	a.end(n)
	return n, err
}

// look returns our connection below c, if there is one, and whether c speaks HTTP/2.
func (b *Base) look(c net.Conn) (own *conn, h2 bool) {
	outer, secure := c.(*tls.Conn)
	for t, ok := outer, secure; ok; t, ok = c.(*tls.Conn) { // TLS within TLS: that of a proxy
		c = t.NetConn()
	}
	own, _ = c.(*conn)
	switch {
	case !secure:
		return own, b.clearText
	case own == nil:
		return nil, negotiated(outer)
	}
	s := own.speaks.Load()
	if s == 0 { // asking copies the whole state of the connection
		s = one
		if negotiated(outer) {
			s = two
		}
		own.speaks.Store(s)
	}
	return own, s == two
}

func negotiated(c *tls.Conn) bool { return c.ConnectionState().NegotiatedProtocol == "h2" }

type dial = func(ctx context.Context, network, addr string) (net.Conn, error)

// clone returns a copy of t whose connections are ours. It returns nil if that is impossible: if t
// speaks something other than HTTP.
func clone(t *http.Transport) *http.Transport {
	c := t.Clone() // from here on t.TLSNextProto has the protocols of net/http itself
	for name := range t.TLSNextProto {
		if name != "h2" && name != "unencrypted_http2" {
			return nil
		}
	}
	if c.Protocols == nil {
		// By default a Transport with a dialer does not speak HTTP/2.
		c.Protocols = new(http.Protocols)
		c.Protocols.SetHTTP1(true)
		c.Protocols.SetHTTP2(t.TLSNextProto["h2"] != nil)
	}
	//lint:ignore SA1019 it is still heeded
	c.DialContext = ours(first(t.DialContext, t.Dial, new(net.Dialer).DialContext), false)
	//lint:ignore SA1019 it is still heeded
	if d := first(t.DialTLSContext, t.DialTLS, nil); d != nil {
		c.DialTLSContext = ours(d, true)
	}
	return c
}

// first returns the dialer that net/http would use.
func first(d dial, old func(network, addr string) (net.Conn, error), otherwise dial) dial {
	switch {
	case d != nil:
		return d
	case old != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	return otherwise
}

// ours wraps the connections of d in a conn. If secure, net/http looks for a *tls.Conn in the
// result, and must find it.
func ours(d dial, secure bool) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		in, err := d(ctx, network, addr)
		if _, ok := in.(*tls.Conn); in == nil || err != nil || ok && secure {
			return in, err
		}
		return &conn{Conn: in}, nil
	}
}
