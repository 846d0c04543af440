package wire

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// conn is a connection that knows which attempt is written to it, if it speaks HTTP/1.1.
type conn struct {
	net.Conn
	serves atomic.Pointer[Attempt] // nil during a TLS handshake, a proxy's CONNECT, and over HTTP/2
	speaks atomic.Int32            // whether over TLS it is HTTP/2: 0 if nobody has looked
}

const (
	one = 1 + iota
	two
)

// Write counts for the attempt. After its request come an alert of TLS, or what a caller writes who has switched protocols;
// an alert on a connection that failed before the request counts as if it were the request.
func (c *conn) Write(b []byte) (int, error) {
	a := c.serves.Load()
	if a == nil {
		return c.Conn.Write(b)
	}
	a.begin()
	n, err := c.Conn.Write(b)
	a.end(n)
	return n, err
}

// look returns the connection of ours below c, if there is one, and whether c is one of HTTP/2.
func (b *Base) look(c net.Conn) (own *conn, h2 bool) {
	outer, secure := c.(*tls.Conn)
	for t, ok := outer, secure; ok; t, ok = c.(*tls.Conn) { // TLS within TLS: a proxy's
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
	if s == 0 { // asking makes a copy of all there is to know
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

// clone returns a copy of t whose connections are ours, and nil where that would not do: it speaks what is not HTTP.
func clone(t *http.Transport) *http.Transport {
	c := t.Clone() // from here on t.TLSNextProto has what net/http itself speaks
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

// first returns the dialer that net/http would take.
func first(d dial, old func(network, addr string) (net.Conn, error), otherwise dial) dial {
	switch {
	case d != nil:
		return d
	case old != nil:
		return func(_ context.Context, network, addr string) (net.Conn, error) { return old(network, addr) }
	}
	return otherwise
}

// ours puts a conn around what d returns. Where it is to be secure already, net/http looks for a *tls.Conn, and must find it.
func ours(d dial, secure bool) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		in, err := d(ctx, network, addr)
		if _, ok := in.(*tls.Conn); in == nil || err != nil || ok && secure {
			return in, err
		}
		return &conn{Conn: in}, nil
	}
}
