package batch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"
)

// sender sends attempts over HTTP/1.1, each at most once.
//
// net/http sends a request again by itself when a connection that it had kept turns out to be closed and the request is
// a GET, say: but the server may have read, and counted, the first one, and the limiter knows of one. So every connection
// knows which attempt writes to it, and refuses the first byte of an attempt that has written to another.
type sender struct {
	transport   *http.Transport
	header      []Template
	query       []Template
	timeout     time.Duration
	maxResponse int64
	userAgent   string
	redact      redactor
}

// errTwice is what a connection fails with instead of sending an attempt a second time.
var errTwice = errors.New("the connection was closed by the server after the request was written")

func newSender(c *Config) *sender {
	dialer := &net.Dialer{Timeout: c.Timeout, KeepAlive: 30 * time.Second}
	return &sender{
		header: c.Header, query: c.Query, timeout: c.Timeout, maxResponse: c.MaxResponse, userAgent: c.UserAgent,
		redact: newRedactor(c.Keys),
		transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				in, err := dialer.DialContext(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &conn{Conn: in}, nil
			},
			// HTTP/2 is left out: it has a resending of its own, and on its shared connections nothing tells when a
			// request's bytes have left.
			Protocols:           http1(),
			TLSClientConfig:     c.TLS,
			TLSHandshakeTimeout: c.Timeout,
			MaxIdleConns:        0,
			MaxIdleConnsPerHost: max(c.Concurrency, 1),
			IdleConnTimeout:     90 * time.Second,
			// A server may name its whole limit in header fields, but not fill the memory with them.
			MaxResponseHeaderBytes: 1 << 20,
		},
	}
}

func http1() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return p
}

// response is how one attempt ended.
type response struct {
	status  int // 0: no answer
	header  http.Header
	body    []byte
	cut     bool // the body is longer
	err     error
	written bool          // at least a byte may have left
	began   time.Time     // before the first byte was written
	ended   time.Time     // after the answer was read
	rtt     time.Duration // from after the last byte was written; 0: not known
}

// send makes one attempt. target is the job's URL or what a redirect made of it; foreign says that it is on another
// host, which is not given the templates with a key.
func (s *sender) send(ctx context.Context, r *Request, h hop, v *values) response {
	ctx, cancelTimeout := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("no answer within %v", s.timeout))
	defer cancelTimeout()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	a := &attempt{}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			if c := underlying(i.Conn); c != nil && !c.serve(a) {
				cancel(errTwice) // else it would be tried on the next connection, and refused there
			}
		},
	})
	out := response{began: time.Now()}
	res, err := s.transport.RoundTrip(s.request(ctx, r, h, v))
	if err == nil {
		out.status, out.header = res.StatusCode, res.Header
		out.body, err = io.ReadAll(io.LimitReader(res.Body, s.maxResponse+1))
		if int64(len(out.body)) > s.maxResponse {
			out.body, out.cut = out.body[:s.maxResponse], true
		}
		if err == nil && !out.cut {
			// What is left are the bytes that end the body; with them read the connection is kept.
			_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1))
		}
		res.Body.Close()
	}
	out.ended = time.Now()
	if err != nil {
		out.err = s.reason(ctx, err)
	}
	var began time.Time
	out.written, began, out.rtt = a.times(out.ended)
	if out.written {
		out.began = began
	}
	return out
}

// reason makes an error fit to be shown: why the context ended rather than that it did, no URL, no secret.
func (s *sender) reason(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	msg := err.Error()
	msg = strings.TrimPrefix(msg, "net/http: ")
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		msg = "the connection was closed before the whole answer was read"
	}
	return errors.New(s.redact.own(msg))
}

// hop is where an attempt goes: a request's own URL, or where a redirect led.
type hop struct {
	url     *url.URL
	method  string
	body    bool
	foreign bool
	count   int
}

func firstHop(r *Request) hop { return hop{url: r.URL, method: r.Method, body: true} }

func (s *sender) request(ctx context.Context, r *Request, h hop, v *values) *http.Request {
	u := *h.url
	header, query := s.header, s.query
	if h.foreign {
		header, query = withoutKey(header), withoutKey(query)
	}
	u.RawQuery = setQuery(u.RawQuery, query, v)
	q := &http.Request{Method: h.method, URL: &u, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Host: u.Host}
	for name, all := range r.Header {
		switch {
		case name == "Host":
			if !h.foreign {
				q.Host = all[0]
			}
		case h.foreign && (name == "Authorization" || name == "Cookie"):
		case !h.body && name == "Content-Type":
		default:
			q.Header[name] = all
		}
	}
	if q.Header["User-Agent"] == nil {
		q.Header.Set("User-Agent", s.userAgent)
	}
	for _, t := range header {
		if http.CanonicalHeaderKey(t.name) == "Host" {
			q.Host = t.fill(v)
			continue
		}
		q.Header.Set(t.name, t.fill(v))
	}
	if h.body && len(r.Body) > 0 {
		q.ContentLength = int64(len(r.Body))
		// For the case that a kept connection fails before a byte was written; see conn for the other.
		q.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
		q.Body, _ = q.GetBody()
	}
	return q.WithContext(ctx)
}

func withoutKey(all []Template) []Template {
	var kept []Template
	for _, t := range all {
		if !t.uses("key") {
			kept = append(kept, t)
		}
	}
	return kept
}

// next follows a redirect, if it is one: the methods and bodies that browsers agree on.
func (h hop) next(res *response) (hop, error) {
	to, err := h.url.Parse(res.header.Get("Location"))
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return h, errors.New("redirected to no http or https URL")
	}
	to.Fragment, to.RawFragment = "", ""
	n := h
	n.url = to
	n.count++
	n.foreign = h.foreign || to.Host != h.url.Host || to.Scheme != h.url.Scheme
	switch res.status {
	case http.StatusSeeOther:
		if h.method != http.MethodHead {
			n.method = http.MethodGet
		}
		n.body = false
	case http.StatusMovedPermanently, http.StatusFound:
		if h.method == http.MethodPost {
			n.method, n.body = http.MethodGet, false
		}
	}
	return n, nil
}

func isRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// attempt knows what of one try has been written, on whatever connection.
type attempt struct {
	mu      sync.Mutex
	writing bool
	written int64
	began   time.Time // before the first write
	last    time.Time // after the latest
}

// times returns whether anything may have left, when the first write began, and how long before end the last byte was
// given to the system: from then on nothing on this machine delays its arrival, so a promised one-way latency can be
// counted from there, however long the machine stalled before.
func (a *attempt) times(end time.Time) (written bool, began time.Time, rtt time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writing || a.written == 0 {
		return a.writing, a.began, 0
	}
	return true, a.began, max(end.Sub(a.last), 0)
}

// conn is a connection that knows which attempt it serves.
type conn struct {
	net.Conn
	mu      sync.Mutex
	serves  *attempt
	refused bool
}

// serve hands the connection to an attempt. False: the attempt has been written to another one, and is refused here.
func (c *conn) serve(a *attempt) bool {
	a.mu.Lock()
	ok := !a.writing && a.written == 0
	a.mu.Unlock()
	c.mu.Lock()
	c.serves, c.refused = a, !ok
	c.mu.Unlock()
	return ok
}

func (c *conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	a, refused := c.serves, c.refused
	c.mu.Unlock()
	if refused {
		return 0, errTwice
	}
	if a == nil { // a TLS handshake, a proxy's CONNECT
		return c.Conn.Write(b)
	}
	a.mu.Lock()
	if a.began.IsZero() {
		a.began = time.Now()
	}
	a.writing = true
	a.mu.Unlock()
	n, err := c.Conn.Write(b)
	a.mu.Lock()
	a.writing = false
	a.written += int64(n)
	a.last = time.Now()
	a.mu.Unlock()
	return n, err
}

func underlying(c net.Conn) *conn {
	for {
		switch in := c.(type) {
		case *conn:
			return in
		case *tls.Conn:
			c = in.NetConn()
		default:
			return nil
		}
	}
}
