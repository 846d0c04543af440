package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sink is a server that takes down what it gets, byte by byte, and answers each request with 200.
type sink struct {
	net.Listener
	mu  sync.Mutex
	got strings.Builder
}

func newSink(t *testing.T) *sink {
	s := &sink{Listener: listen(t)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				r := bufio.NewReader(io.TeeReader(c, s))
				for {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
		}
	})
	t.Cleanup(func() { s.Close(); all.Wait() })
	return s
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

// take returns what has come, and forgets it.
func (s *sink) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.got.Reset()
	return s.got.String()
}

// Requests that two servers could read in two ways are refused, or go on in one form: RFC 9112,
// section 11.2.
func TestSmuggling(t *testing.T) {
	s := newSink(t)
	x := start(t, to(mustURL(t, "http://"+s.Addr().String())))
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)
	for _, c := range []struct {
		name, request string
		status        string // of the first answer; empty: the connection is closed
		body          string // how the body goes on; "-": nothing goes on
	}{
		{"a length and chunks", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunked, "200", "Transfer-Encoding: chunked\r\n\r\n" + chunked},
		{"chunks and a length of none", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" + chunked, "200", "Transfer-Encoding: chunked\r\n\r\n" + chunked},
		{"two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello!", "400", "-"},
		{"a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\nConnection: close\r\n\r\nhello!", "400", "-"},
		{"one length twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "200", "Content-Length: 5\r\n\r\nhello"},
		{"a signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\nConnection: close\r\n\r\nhello", "400", "-"},
		{"a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\nConnection: close\r\n\r\nhello", "400", "-"},
		{"a length in hexadecimal", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\nConnection: close\r\n\r\nhello", "400", "-"},
		{"an unknown coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nConnection: close\r\n\r\n" + chunked, "501", "-"},
		{"two codings", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\nConnection: close\r\n\r\n" + chunked, "501", "-"},
		{"chunked twice", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunked, "501", "-"},
		{"a coding behind a tab", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\nConnection: close\r\n\r\n" + chunked, "200", "Transfer-Encoding: chunked\r\n\r\n" + chunked},
		{"a coding behind a control", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\nConnection: close\r\n\r\n" + chunked, "400", "-"},
		{"white space before the colon", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\nConnection: close\r\n\r\n" + chunked, "400", "-"},
		{"a folded field", "POST / HTTP/1.1\r\nHost: a\r\nX: a\r\n Content-Length: 5\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "200", "Content-Length: 5\r\nX: a Content-Length: 5\r\n\r\nhello"},
		{"a folded first field", "POST / HTTP/1.1\r\n Host: a\r\nHost: a\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello", "400", "-"},
		{"bare line feeds", "POST / HTTP/1.1\nHost: a\nContent-Length: 5\nConnection: close\n\nhello", "200", "Content-Length: 5\r\n\r\nhello"},
		{"a bare carriage return", "POST / HTTP/1.1\r\nHost: a\r\nX: a\rContent-Length: 5\r\nConnection: close\r\n\r\n", "400", "-"},
		{"a NUL", "POST / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\nConnection: close\r\n\r\n", "400", "-"},
		{"an extension of a chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5;x=\"y\"\r\nhello\r\n0\r\n\r\n", "200", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, "200", "Content-Length: 0\r\n\r\n"},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n", "400", "-"},
		{"no host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "400", "-"},
		{"a host with a space", "GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", "400", "-"},
		{"a method with a line in it", "GE\rT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "400", "-"},
		{"a target with a space", "GET /a b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "400", "-"},
		{"a length that Connection takes away", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close, Content-Length\r\n\r\nhello", "200", "Content-Length: 5\r\n\r\nhello"},
		{"HTTP/2 in the middle", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + smuggled, "", "-"},
		// The last: what is on its way then may come when the next has begun.
		{"a bare line feed after a chunk's size", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\nhello\r\n0\r\n\r\n", "400", "?"},
	} {
		s.take()
		got := x.raw(c.request)
		if c.status != "" && !strings.HasPrefix(got, "HTTP/1.1 "+c.status) && !strings.HasPrefix(got, "HTTP/1.0 "+c.status) {
			t.Errorf("%s: %.300q, expected %s", c.name, got, c.status)
		}
		sent := s.take()
		switch n := strings.Count(sent, " HTTP/1.1\r\nHost: "); {
		case c.body == "-" && sent != "":
			t.Errorf("%s: went on: %q", c.name, sent)
		case c.body == "-":
		case c.body == "?": // it was on its way when that was seen
			if strings.Contains(sent, "hello") || strings.HasSuffix(sent, "0\r\n\r\n") {
				t.Errorf("%s: went on: %q", c.name, sent)
			}
		case n != 1 && !strings.Contains(c.body, smuggled) || !strings.HasSuffix(sent, c.body) || !strings.HasPrefix(sent, "POST / HTTP/1.1\r\nHost: "+s.Addr().String()+"\r\n"):
			t.Errorf("%s: went on: %q, expected it to end %q", c.name, sent, c.body)
		}
		if strings.Count(got, "HTTP/1.") != 1 && c.status != "" && c.name != "chunks in HTTP/1.0" {
			t.Errorf("%s: there are two answers: %q", c.name, got)
		}
	}
}

// Nothing that a client says has the proxy ask another host, or leave the folder of an upstream.
func TestOnlyConfiguredUpstreams(t *testing.T) {
	s, other := newSink(t), newSink(t)
	conf := to(mustURL(t, "http://"+s.Addr().String()+"/base"))
	conf.Upstreams[0].Path = "/api"
	x := start(t, conf)
	elsewhere := other.Addr().String()
	for _, c := range []struct{ request, status string }{
		{"GET http://" + elsewhere + "/api/x HTTP/1.1\r\nHost: " + elsewhere + "\r\n", "421"},
		{"GET http://" + x.addr + "/api/x HTTP/1.1\r\nHost: a\r\n", "421"},
		{"CONNECT " + elsewhere + " HTTP/1.1\r\nHost: " + elsewhere + "\r\n", "405"},
		{"CONNECT /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"GET //" + elsewhere + "/api/x HTTP/1.1\r\nHost: a\r\n", "404"},
		{"GET /api/@" + elsewhere + "/ HTTP/1.1\r\nHost: a\r\n", "200"},
		{"GET @" + elsewhere + "/ HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/../x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%2e%2E/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%2fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/a%2f..%2f..%2fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..\\x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%5cx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/./x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api%2f..%2fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api%2fx HTTP/1.1\r\nHost: a\r\n", "404"},
		{"GET /api/.../x..y HTTP/1.1\r\nHost: a\r\n", "200"},
		{"GET /api/%252e%252e/x HTTP/1.1\r\nHost: a\r\n", "200"},
		{"GET /api/x HTTP/1.1\r\nHost: " + elsewhere + "\r\nX-Forwarded-Host: " + elsewhere + "\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: host=" + elsewhere + "\r\n", "200"},
		{"GET /api/x?url=http://" + elsewhere + "/ HTTP/1.1\r\nHost: a\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\n", "200"},
		{"OPTIONS * HTTP/1.1\r\nHost: a\r\n", "200"},
		{"GET api/x HTTP/1.1\r\nHost: a\r\n", "400"},
	} {
		s.take()
		got := x.raw(c.request + "Connection: close\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+c.status) {
			t.Errorf("%q: %.300q, expected %s", c.request, got, c.status)
		}
		sent := s.take()
		if went := sent != ""; went != (c.status == "200" && !strings.HasPrefix(c.request, "OPTIONS")) {
			t.Errorf("%q: went on: %q", c.request, sent)
		}
		if sent != "" && (!strings.HasPrefix(sent, "GET /base/") || !strings.Contains(sent, "\r\nHost: "+s.Addr().String()+"\r\n") || strings.Contains(sent, "orwarded")) {
			t.Errorf("%q went on as %q", c.request, sent)
		}
		if strings.Contains(got, elsewhere) {
			t.Errorf("%q: %q", c.request, got)
		}
	}
	if sent := other.take(); sent != "" {
		t.Errorf("another host got %q", sent)
	}
}

// A header that is too long is refused.
func TestHeadersTooLong(t *testing.T) {
	conf := to(upstreamOf(t, hello))
	conf.Bounds.Header = 4 << 10
	x := start(t, conf)
	if got := x.raw("GET / HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 431 ") {
		t.Errorf("%q", got)
	}
}

// Clients that are too slow do not hold anything up for long, and connections are bounded.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := to(mustURL(t, "http://server.test"))
		conf.Bounds = Bounds{HeaderTimeout: time.Second, IdleTimeout: 3 * time.Second, Connections: 3}
		x := virtual(t, http.HandlerFunc(hello), conf)
		began := time.Now()
		after := func(what string, bound time.Duration) {
			t.Helper()
			if took := time.Since(began); took < bound || took > bound+time.Second {
				t.Errorf("%s: it took %v, expected %v", what, took, bound)
			}
			began = time.Now()
		}
		x.raw("GET / HTTP/1.1\r\nHost: a\r\nX")
		after("a header without an end", time.Second)
		if got := x.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%q", got)
		}
		after("a connection without a request", 3*time.Second)
		for range 3 {
			io.WriteString(dial(t, x), "GET / HTTP/1.1\r\n") // part of a header
		}
		if got := x.raw("GET / HTTP/1.1\r\nHost: a\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") { // once one of them is closed
			t.Errorf("%q", got)
		}
		after("the fourth connection of three, and its own end", 4*time.Second)
	})
}

// A client that reads nothing of an answer longer than the system's buffers is given up, and so is
// its request.
func TestClientsThatDoNotRead(t *testing.T) {
	over := make(chan error, 1)
	conf := to(upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				over <- err
				return
			}
		}
		over <- nil
	}))
	conf.Bounds.Stall = 200 * time.Millisecond
	x := start(t, conf)
	io.WriteString(dial(t, x), "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if <-over == nil {
		t.Error("the server has sent all of it")
	}
	until(t, func() bool { return x.proxy.visits.count() == 0 })
}

// The admin listener can be looked at from this machine, under its name, and nothing else.
func TestAdmin(t *testing.T) {
	x := start(t, to(upstreamOf(t, func(http.ResponseWriter, *http.Request) {})))
	for _, c := range []struct {
		method, path, host, site string
		status                   int
	}{
		{"GET", "/livez", "", "", 200}, {"GET", "/readyz", "", "", 200}, {"HEAD", "/readyz", "", "", 200}, {"GET", "/readyz", "localhost:1", "", 200}, {"GET", "/readyz", "[::1]:1", "", 200},
		{"GET", "/readyz", "LOCALHOST.", "", 200}, {"GET", "/readyz", "evil.test", "", 421}, {"GET", "/readyz", "127.0.0.1.evil.test", "", 421}, {"GET", "/readyz", "10.0.0.1", "", 421},
		{"POST", "/readyz", "", "", 405}, {"PUT", "/nothing", "", "", 405}, {"GET", "/nothing", "", "", 404}, {"GET", "/readyz", "", "cross-site", 403}, {"GET", "/readyz", "", "same-origin", 200},
	} {
		r, _ := http.NewRequest(c.method, x.admin+c.path, nil)
		if c.host != "" {
			r.Host = c.host
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		resp, err := clientOf(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if csp := resp.Header.Get("Content-Security-Policy"); resp.StatusCode != c.status || !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%+v: %d %v", c, resp.StatusCode, resp.Header)
		}
	}
}
