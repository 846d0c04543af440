package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"
)

// Captured takes a connection that a program made without knowing of this Door, with the host and the
// port that it asked for. A host is an address if the program knew no name. Then the name in its TLS
// decides, so that a named host is not reached past its limits. The Door closes c.
func (d *Door) Captured(c net.Conn, host, port string) {
	d.tunnels.Go(func() { d.captured(c, CanonicalHost(host), port) })
}

func (d *Door) captured(c net.Conn, host, port string) {
	ours := d.c.Named(host, port)
	if _, err := netip.ParseAddr(host); err == nil && !ours && port == "443" {
		var name string
		if name, c = d.serverName(c); name != "" && d.c.Named(name, port) {
			host, ours = name, true
		}
	}
	if ours {
		d.figures.named.Add(1)
		d.takeNamed(&named{Conn: &prompt{Conn: c}, host: host, port: port, credential: d.c.Credential})
		return
	}
	out, err := d.reach(host, port)
	if err != nil {
		d.c.Log.Debug("a host is not reached", "host", host, "port", port, "err", cause(err))
		if t, ok := c.(interface{ SetLinger(int) error }); ok {
			_ = t.SetLinger(0) // the program sees a reset, and no end of an answer
		}
		c.Close()
		return
	}
	d.figures.other(host, true)
	d.tunnel(c, out)
}

// errSeen ends a handshake whose first message was read.
var errSeen = errors.New("seen")

// serverName reads the name that a client of TLS asks for. The connection that it returns begins with
// what was read. Empty: there is none.
func (d *Door) serverName(c net.Conn) (name string, again net.Conn) {
	var read bytes.Buffer
	_ = c.SetReadDeadline(time.Now().Add(patience))
	stop := context.AfterFunc(d.over, func() { c.Close() })
	_ = tls.Server(&onlyRead{c, io.TeeReader(c, &read)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		name = CanonicalHost(h.ServerName)
		return nil, errSeen
	}}).HandshakeContext(d.over)
	stop()
	_ = c.SetReadDeadline(time.Time{})
	return name, &headed{Conn: c, head: read.Bytes()}
}

// onlyRead is a connection on which nothing is answered.
type onlyRead struct {
	net.Conn
	from io.Reader
}

func (c *onlyRead) Read(p []byte) (int, error)  { return c.from.Read(p) }
func (c *onlyRead) Write(p []byte) (int, error) { return len(p), nil }
func (c *onlyRead) Close() error                { return nil }
