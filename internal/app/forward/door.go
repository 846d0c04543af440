package forward

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/send/outgoing"
)

// Config is the configuration of a Door. All functions must be safe for concurrent use.
type Config struct {
	// Authority makes the certificates of named hosts.
	Authority *Authority
	// Named reports whether requests to a host and a port go to Serve. The host is in lower case.
	Named func(host, port string) bool
	// Serve gets the requests of named hosts. Their URLs are whole. CredentialOf has the client's
	// credential.
	Serve http.Handler
	// Server makes the server of connections to named hosts, with the bounds that hold for clients.
	Server func(http.Handler) *http.Server
	// Admits reports whether a client may connect, by its first request: CONNECT, or one with a whole
	// URL.
	Admits func(*http.Request) bool
	// Credential is that of each client. If empty, a client has its own.
	Credential string
	// Tunnels says which other hosts clients reach.
	Tunnels Tunnels
	// Proxies are on the way out. If nil, there are none.
	Proxies *outgoing.Proxies
	// Log gets what goes wrong. No line has a credential.
	Log *slog.Logger
}

// Tunnels says which other hosts are reached.
type Tunnels int

const (
	// NoTunnels: none.
	NoTunnels Tunnels = iota
	// PublicTunnels: port 443, and port 80 by http, on the public network. Behind a proxy none, since
	// its address could not be checked.
	PublicTunnels
	// AnyTunnels: all that this process reaches, by its proxies. It is for programs that could reach
	// them by themselves.
	AnyTunnels
)

const (
	// patience is how long a client may take to begin after CONNECT, and for TLS.
	patience = 30 * time.Second
	// reach is how long a tunnel's other end may take to answer.
	reach = 10 * time.Second
)

// Door is an http.Handler for the listener of a forward proxy. New makes it.
type Door struct {
	c       Config
	within  *http.Server // of connections to named hosts
	queue   *queue
	others  *httputil.ReverseProxy
	dialer  net.Dialer
	dial    func(ctx context.Context, network, address string) (net.Conn, error) // to other hosts
	over    context.Context                                                      // ends tunnels
	end     context.CancelFunc
	tunnels sync.WaitGroup
	said    sync.Map // hosts about whose TLS a line was logged
	figures figures
	ended   chan struct{}
}

// New returns a Door. Close it.
func New(c Config) *Door {
	d := &Door{c: c, queue: &queue{conns: make(chan net.Conn), over: make(chan struct{})}, ended: make(chan struct{})}
	d.over, d.end = context.WithCancel(context.Background())
	d.dialer.Timeout = reach
	if c.Tunnels != AnyTunnels {
		d.dialer.Control = publicOnly
	}
	d.dial = d.dialer.DialContext
	d.others = &httputil.ReverseProxy{
		Rewrite: func(pr *httputil.ProxyRequest) { // as it came: ReverseProxy takes some things out
			pr.Out.URL.RawQuery = pr.In.URL.RawQuery
			KeepForwarded(pr)
		},
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return d.dial(ctx, network, address)
			},

			DisableCompression: true, ResponseHeaderTimeout: 10 * time.Minute,
			IdleConnTimeout: 90 * time.Second,
			Proxy:           func(r *http.Request) (*url.URL, error) { return c.Proxies.For(r.URL), nil },
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "%s is not reached: %v", r.URL.Host, cause(err))
		},
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	d.within = c.Server(http.HandlerFunc(d.serveNamed))
	d.within.TLSConfig = d.tlsConfig()
	d.within.Protocols.SetUnencryptedHTTP2(true)
	d.within.ConnContext = withNamed
	go func() {
		_ = d.within.Serve(d.queue)
		close(d.ended)
	}()
	return d
}

// KeepForwarded gives a request the fields that ReverseProxy takes out. A program may tell a server who
// it is, whether or not its requests come by a forward proxy.
func KeepForwarded(pr *httputil.ProxyRequest) {
	for _, name := range [...]string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if all := pr.In.Header[name]; all != nil {
			pr.Out.Header[name] = all
		}
	}
}

// Shutdown accepts no more requests, closes tunnels, and waits for requests of named hosts, until
// ctx ends. Then it breaks them off.
func (d *Door) Shutdown(ctx context.Context) {
	d.end()
	if d.within.Shutdown(ctx) != nil {
		d.within.Close()
	}
	d.queue.Close()
	<-d.ended
	d.tunnels.Wait()
	d.others.Transport.(*http.Transport).CloseIdleConnections()
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	credential := cmp.Or(d.c.Credential, r.Header.Get("Proxy-Authorization"))
	if r.Method == http.MethodConnect { // after a refusal, what comes next may be no request
		w.Header().Set("Connection", "close")
	}
	if !d.c.Admits(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="paceline"`)
		refuse(w, http.StatusProxyAuthRequired, "expected a key of the proxy: HTTPS_PROXY=http://any:KEY@%s",
			r.Context().Value(http.LocalAddrContextKey))
		return
	}
	switch {
	case d.over.Err() != nil:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the proxy stops")
	case r.Method == http.MethodConnect:
		d.connect(w, r, credential)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		d.plain(w, r, credential)
	default:
		refuse(w, http.StatusBadRequest,
			"this is a forward proxy: expected a whole http URL, or CONNECT, as programs send them with HTTP_PROXY and "+
				"HTTPS_PROXY")
	}
}

// connect opens a connection for the client.
func (d *Door) connect(w http.ResponseWriter, r *http.Request, credential string) {
	host, port, err := splitHost(r.Host, "")
	if err != nil {
		refuse(w, http.StatusBadRequest, "CONNECT %.200q: %v", r.Host, err)
		return
	}
	if d.c.Named(host, port) {
		if !d.c.Authority.Covers(host) {
			refuse(w, http.StatusBadGateway,
				"%s became an upstream after the start of the proxy, and has no certificate: start the proxy again", host)
			return
		}
		if c, err := take(w); err == nil {
			d.figures.named.Add(1)
			d.takeNamed(&named{Conn: c, host: host, port: port, credential: credential})
		}
		return
	}
	if status, why := d.mayTunnel(host, port, "https", "443"); why != "" {
		refuse(w, status, "%s", why)
		return
	}
	out, err := d.reach(host, port)
	if err != nil {
		refuse(w, http.StatusBadGateway, "%s is not reached: %v", host, cause(err))
		return
	}
	c, err := take(w)
	if err != nil {
		out.Close()
		return
	}
	d.figures.other(host, true)
	d.tunnels.Go(func() { d.tunnel(lasting(c), out) })
}

// plain passes on a request by http.
func (d *Door) plain(w http.ResponseWriter, r *http.Request, credential string) {
	host, port, err := splitHost(r.URL.Host, "80")
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, "%.200q: %v", r.URL.Host, err)
	case d.c.Named(host, port):
		n := named{host: host, port: port, credential: credential}
		if isFirst(r, firstNamed) {
			d.figures.named.Add(1)
		}
		d.serve(w, r, &n, "http")
	default:
		if status, why := d.mayTunnel(host, port, "http", "80"); why != "" {
			refuse(w, status, "%s", why)
			return
		}
		d.figures.other(host, isFirst(r, firstOther))
		d.others.ServeHTTP(w, r)
	}
}

// mayTunnel says why another host is not reached; empty: it may be.
func (d *Door) mayTunnel(host, port, scheme, only string) (status int, why string) {
	target := net.JoinHostPort(host, port)
	switch d.c.Tunnels {
	case AnyTunnels:
		return 0, ""
	case NoTunnels:
		return http.StatusForbidden, fmt.Sprintf("%s is not the host of an upstream, and this proxy reaches no other", target)
	}
	if port != only {
		return http.StatusForbidden, fmt.Sprintf("%s is not the host of an upstream; of others, port %s alone is "+
			"reached by %s", target, only, scheme)
	}
	if d.c.Proxies.For(&url.URL{Scheme: scheme, Host: host}) != nil {
		return http.StatusForbidden, fmt.Sprintf("%s is not the host of an upstream, and it is behind a proxy of the "+
			"environment: its address cannot be checked", target)
	}
	return 0, ""
}

// CanonicalHost is the one form of a host's name or address in which hosts are compared: in lower
// case, without a dot at the end or brackets, and an address as netip writes it.
func CanonicalHost(host string) string {
	host = strings.ToLower(strings.TrimRight(strings.Trim(host, "[]"), "."))
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

// splitHost returns a host in lower case and its port.
func splitHost(hostport, standard string) (host, port string, err error) {
	u := url.URL{Host: hostport}
	host, port = CanonicalHost(u.Hostname()), u.Port()
	if port == "" {
		port = standard
	}
	at := strings.LastIndexByte(hostport, ':')
	switch {
	case host == "", strings.ContainsAny(hostport, "@/?#% \t\r\n"):
		return "", "", errors.New("expected a host and a port, such as api.example.com:443")
	case port == "", at == len(hostport)-1:
		return "", "", errors.New("expected a port, such as api.example.com:443")
	case strings.Trim(port, "0123456789") != "" || port[0] == '0' || len(port) > 5:
		return "", "", errors.New("expected a port of digits, such as api.example.com:443")
	}
	return host, port, nil
}

// take takes the connection of a request from net/http, and answers CONNECT.
func take(w http.ResponseWriter) (net.Conn, error) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, http.StatusHTTPVersionNotSupported, "expected CONNECT over HTTP/1.1")
		return nil, err
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		c.Close()
		return nil, err
	}
	return withHead(c, rw.Reader), nil // the client may not have waited for the answer
}

// withHead returns a connection that begins with what was read of it before.
func withHead(c net.Conn, r *bufio.Reader) net.Conn {
	n := r.Buffered()
	if n == 0 {
		return c
	}
	head, _ := r.Peek(n)
	return &headed{Conn: c, head: append([]byte(nil), head...)}
}

// headed is a connection of which the first bytes were read before.
type headed struct {
	net.Conn
	head []byte
}

func (c *headed) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite is for tunnels and net/http.
func (c *headed) CloseWrite() error { return closeWrite(c.Conn) }

// NetConn returns the connection within.
func (c *headed) NetConn() net.Conn { return c.Conn }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	fmt.Fprintf(w, "paceline: "+format+"\n", args...)
}

// cause is an error of the network without the addresses around it.
func cause(err error) error {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New(name.Err)
	}
	for {
		op, ok := errors.AsType[*net.OpError](err)
		if !ok {
			return err
		}
		err = op.Err
	}
}
