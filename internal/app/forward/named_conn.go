package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// named is a client's connection to a named host.
type named struct {
	net.Conn
	host, port string
	credential string
}

// CloseWrite is for net/http.
func (n *named) CloseWrite() error { return closeWrite(n.Conn) }

// NetConn returns the connection within.
func (n *named) NetConn() net.Conn { return n.Conn }

// Turns has the kernel acknowledge the first part of a client's message at once, if the rest comes later. A
// client without TCP_NODELAY that writes a head and a body keeps the body until then, for 40 ms. Each Read and
// Write of a connection calls it.
type Turns struct{ state atomic.Int32 }

const (
	idle  = iota // nothing of the message has come
	begun        // more of it may come
	acked
)

// Reads is called before a Read into p. After the end of a message, net/http waits for the next by a Read of one
// byte, which needs no acknowledgement.
func (t *Turns) Reads(c net.Conn, p []byte) {
	if len(p) > 1 && t.state.CompareAndSwap(begun, acked) {
		AckNow(c)
	}
}

// Came is called after a Read of n bytes.
func (t *Turns) Came(n int) {
	if n > 0 {
		t.state.CompareAndSwap(idle, begun)
	}
}

// Writes is called before a Write: it acknowledges all that has come.
func (t *Turns) Writes() { t.state.Store(idle) }

// prompt is a connection with Turns.
type prompt struct {
	net.Conn
	turns Turns
}

func (c *prompt) NetConn() net.Conn { return c.Conn }

func (c *prompt) CloseWrite() error { return closeWrite(c.Conn) }

func (c *prompt) Read(p []byte) (int, error) {
	c.turns.Reads(c.Conn, p)
	n, err := c.Conn.Read(p)
	c.turns.Came(n)
	return n, err
}

func (c *prompt) Write(p []byte) (int, error) {
	c.turns.Writes()
	return c.Conn.Write(p)
}

type namedKey struct{}

// withNamed keeps the connection in the context of its requests.
func withNamed(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, namedKey{}, c)
}

// CredentialOf returns the credential with which the client of a request reached the Door: the
// value of Proxy-Authorization, or empty.
func CredentialOf(ctx context.Context) string {
	if n, ok := ctx.Value(namedKey{}).(*named); ok {
		return n.credential
	}
	return ""
}

// WithCredential returns a context with which CredentialOf returns the credential.
func WithCredential(ctx context.Context, credential string) context.Context {
	return context.WithValue(ctx, namedKey{}, &named{credential: credential})
}

// tlsConfig is for clients of named hosts. The host of CONNECT decides the certificate, whatever
// name the client then asks for.
func (d *Door) tlsConfig() *tls.Config {
	return &tls.Config{
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			host := h.Conn.(*named).host
			c, err := d.c.Authority.Certificate(host, time.Now())
			if err != nil {
				d.c.Log.Warn("no certificate", "host", host, "err", err)
			}
			return c, err
		},
	}
}

// ServeOrigin begins to take connections to one host and port without CONNECT, until Shutdown. Only
// this user's programs are admitted, as the kernel knows them (see KnowsUsers).
func (d *Door) ServeOrigin(l net.Listener, host, port string) {
	host = CanonicalHost(host)
	d.tunnels.Go(func() {
		stop := context.AfterFunc(d.over, func() { l.Close() })
		defer stop()
		for d.over.Err() == nil {
			c, err := l.Accept()
			if err != nil {
				select { // such as too many open files: it passes
				case <-d.over.Done():
				case <-time.After(10 * time.Millisecond):
				}
				continue
			}
			if uid, ok := PeerUser(c); !ok || uid != os.Getuid() {
				c.Close()
				continue
			}
			d.figures.named.Add(1)
			d.tunnels.Go(func() {
				d.takeNamed(&named{Conn: &prompt{Conn: c}, host: host, port: port, credential: d.c.Credential})
			})
		}
	})
}

// takeNamed serves a connection: TLS if that is how it begins, and otherwise plain HTTP.
func (d *Door) takeNamed(n *named) {
	_ = n.SetReadDeadline(time.Now().Add(patience))
	first := make([]byte, 1)
	stop := context.AfterFunc(d.over, func() { n.Close() })
	_, err := io.ReadFull(n.Conn, first)
	if stop(); err != nil {
		n.Close()
		return
	}
	n.Conn = &headed{Conn: n.Conn, head: first}
	const handshake = 0x16 // a record of TLS (RFC 8446, 5.1)
	if first[0] != handshake {
		_ = n.SetReadDeadline(time.Time{})
		d.queue.put(n)
		return
	}
	t := tls.Server(n, d.within.TLSConfig)
	ctx, cancel := context.WithTimeout(d.over, patience)
	err = t.HandshakeContext(ctx)
	cancel()
	if err != nil {
		d.blameTLS(n, err)
		t.Close()
		return
	}
	AckNow(n)
	_ = n.SetReadDeadline(time.Time{})
	d.queue.put(t)
}

// blameTLS logs, once for each host, that a program does not take our certificates. The program's
// own error does not show why.
func (d *Door) blameTLS(n *named, err error) {
	const remote = "remote error" // crypto/tls has no other word for an alert of the other end
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != remote || !strings.Contains(op.Err.Error(), "certificate") {
		d.c.Log.Debug("TLS of a program failed", "host", n.host, "err", err)
		return
	}
	d.c.Log.Debug("a program refuses our certificate", "host", n.host, "err", err)
	if _, said := d.said.LoadOrStore(n.host, true); !said {
		d.c.Log.Warn("a program does not trust the certificates of this run: its variable of certificates is not set",
			"host", n.host, "client", n.RemoteAddr(), "err", err)
	}
}

// serveNamed serves a request within a connection to a named host.
func (d *Door) serveNamed(w http.ResponseWriter, r *http.Request) {
	n, _ := r.Context().Value(namedKey{}).(*named)
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	d.serve(w, r, n, scheme)
}

// serve passes a request to Serve, with its whole URL. Its host must be that of the connection: a
// client of HTTP/2 may otherwise use a connection for hosts of one certificate.
func (d *Door) serve(w http.ResponseWriter, r *http.Request, n *named, scheme string) {
	standard := map[string]string{"http": "80", "https": "443"}[scheme]
	host, port, err := splitHost(r.Host, n.port)
	if err != nil || host != n.host || port != n.port {
		refuse(w, http.StatusMisdirectedRequest, "%.200q is asked for on a connection to %s", r.Host,
			net.JoinHostPort(n.host, n.port))
		return
	}
	if r.Method == http.MethodConnect {
		refuse(w, http.StatusMethodNotAllowed, "CONNECT within a connection is not taken")
		return
	}
	whole := *r.URL
	whole.Scheme, whole.Host, whole.User = scheme, n.host, nil
	if a, err := netip.ParseAddr(n.host); err == nil && a.Is6() {
		whole.Host = "[" + n.host + "]"
	}
	if n.port != standard {
		whole.Host = net.JoinHostPort(n.host, n.port)
	}
	if whole.Path == "" && whole.Opaque == "" {
		whole.Path = "/"
	}
	next := r.WithContext(context.WithValue(r.Context(), namedKey{}, n))
	next.URL, next.Host = &whole, whole.Host
	d.c.Serve.ServeHTTP(w, next)
}

// queue is the listener of connections to named hosts.
type queue struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (q *queue) put(c net.Conn) {
	select {
	case q.conns <- c:
	case <-q.over:
		c.Close()
	}
}

// Accept implements net.Listener.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (q *queue) Close() error {
	q.once.Do(func() { close(q.over) })
	return nil
}

// Addr implements net.Listener.
func (*queue) Addr() net.Addr { return &net.TCPAddr{} }
