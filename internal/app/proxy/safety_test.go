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

// A request with a length and chunks ends its connection, and so what was sent behind it: a server
// before the proxy may have read it by its length.
func TestLengthAndChunksClose(t *testing.T) {
	const body = "5\r\nhello\r\n0\r\n\r\n"
	const plain, hidden = "POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "GET /smuggled HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
	const both = "POST /both HTTP/1.1\r\nHost: a\r\ncontent-LENGTH: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + body
	const chunks = "POST /chunks HTTP/1.1\r\nHost: a\r\nX: Content-Length: 5\r\nContent-Lengths: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + body
	for _, c := range []struct {
		name, request string
		answers       int
	}{
		{"both", both + hidden, 1},
		{"both, the chunks first", strings.Replace(both, "content-LENGTH: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 0", 1) + hidden, 1},
		{"both behind another", plain + both + hidden, 2},
		{"both, refused", strings.Replace(both, "/both", "/../both", 1) + hidden, 1},
		{"both, with two lengths", strings.Replace(both, "content-LENGTH: 5", "Content-Length: 5\r\nContent-Length: 5", 1) + hidden, 1},
		{"chunks alone", chunks + hidden, 2},
		{"chunks behind a length", plain + chunks + hidden, 3},
		{"a length alone", plain + plain + hidden, 3},
	} {
		s := newSink(t)
		x := start(t, to(mustURL(t, "http://"+s.Addr().String())))
		got := x.raw(c.request)
		if n := strings.Count(got, "HTTP/1.1 "); n != c.answers || strings.Contains(s.take(), "/smuggled") == strings.Contains(c.name, "both") {
			t.Errorf("%s: %d answers, expected %d: %q", c.name, n, c.answers, got)
		}
		x.stop()
	}
}

// The name of the field is found wherever its bytes are parted.
func TestLinesOfLengths(t *testing.T) {
	const text = "POST / HTTP/1.1\r\nContent-Length: 5\r\nX-Content-Length: 5\r\nContent-Lengths: 5\r\n\ncontent-lengtH:\r\nContent-\nContent-Length"
	for i := range len(text) {
		for j := i; j < len(text); j++ {
			var l lengths
			l.scan([]byte(text[:i]))
			l.scan([]byte(text[i:j]))
			l.scan([]byte(text[j:]))
			if n := l.seen.Load(); n != 2 {
				t.Fatalf("in parts at %d and %d: %d, expected 2", i, j, n)
			}
		}
	}
}

// h2 sends one request over HTTP/2, with its fields as they are. It returns the status, which is 0
// if there is no answer.
func (x *proxied) h2(t *testing.T, body string, fields ...string) (status string) {
	c := dial(t, x)
	frame := func(kind, flags byte, stream uint32, payload []byte) {
		head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags, 0, 0, 0, byte(stream)}
		c.Write(append(head, payload...))
	}
	io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	const settings, headers, data, rst, goaway = 4, 1, 0, 3, 7
	frame(settings, 0, 0, nil)
	var block []byte
	for _, s := range fields {
		name, value, _ := strings.Cut(s, "=")
		block = append(append(append(append(block, 0, byte(len(name))), name...), byte(len(value))), value...)
	}
	const endStream, endHeaders = 1, 4
	if body == "" {
		frame(headers, endStream|endHeaders, 1, block)
	} else {
		frame(headers, endHeaders, 1, block)
		frame(data, endStream, 1, []byte(body))
	}
	r := bufio.NewReader(c)
	for {
		var head [9]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return "closed"
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return "closed"
		}
		switch head[3] {
		case headers:
			for status, code := range map[string]byte{"200": 0x88, "204": 0x89, "400": 0x8c, "404": 0x8d} { // of the static table of HPACK
				if payload[0] == code {
					return status
				}
			}
			return "another"
		case rst, goaway:
			return "reset"
		}
	}
}

// Over HTTP/2 a body has one length, and a request is for a path.
func TestRequestsOfHTTP2(t *testing.T) {
	s := newSink(t)
	x := start(t, to(mustURL(t, "http://"+s.Addr().String())))
	post := []string{":method=POST", ":scheme=http", ":authority=a", ":path=/a"}
	for _, c := range []struct {
		name, body string
		fields     []string
		status     string // or means that the end of the stream may come first
	}{
		{"a length", "hello", append(post[:4:4], "content-length=5"), "200"},
		{"no length", "hello", post, "200"},
		{"no body", "", append(post[:4:4], "content-length=0"), "200"},
		{"two lengths", "hello", append(post[:4:4], "content-length=5", "content-length=6"), "400"},
		{"one length twice", "hello", append(post[:4:4], "content-length=5", "content-length=5"), "400"},
		{"a list of lengths", "hello", append(post[:4:4], "content-length=5, 5"), "400 or reset"},
		{"a negative length", "hello", append(post[:4:4], "content-length=-5"), "400 or reset"},
		{"a signed length", "hello", append(post[:4:4], "content-length=+5"), "400 or reset"},
		{"a length in hexadecimal", "hello", append(post[:4:4], "content-length=0x5"), "400 or reset"},
		{"a length too long to be a number", "hello", append(post[:4:4], "content-length=99999999999999999999999"), "400 or reset"},
		{"an empty length", "hello", append(post[:4:4], "content-length="), "400 or reset"},
		{"a length of none", "hello", append(post[:4:4], "content-length=0"), "200 or reset"},
		{"a length without a body", "", append(post[:4:4], "content-length=5"), "400"},
		{"chunks", "hello", append(post[:4:4], "transfer-encoding=chunked"), "400"},
		{"a star", "", []string{":method=GET", ":scheme=http", ":authority=a", ":path=*"}, "400"},
		{"a path without a slash", "", []string{":method=GET", ":scheme=http", ":authority=a", ":path=a"}, "reset"},
		{"an empty path", "", []string{":method=GET", ":scheme=http", ":authority=a", ":path="}, "reset"},
		{"a path with a line in it", "", []string{":method=GET", ":scheme=http", ":authority=a", ":path=/a\r\nX: b"}, "reset"},
		{"a method with a line in it", "", []string{":method=GET / HTTP/1.1\r\nX", ":scheme=http", ":authority=a", ":path=/a"}, "reset"},
		{"TRACE", "", []string{":method=TRACE", ":scheme=http", ":authority=a", ":path=/a"}, "another"},
		{"two paths", "", []string{":method=GET", ":scheme=http", ":authority=a", ":path=/a", ":path=/b"}, "reset"},
		{"a path behind a field", "", []string{":method=GET", ":scheme=http", ":authority=a", "x=y", ":path=/b"}, "reset"},
		{"a double slash as a host", "", []string{":method=GET", ":scheme=http", ":authority=a", ":path=//b/c"}, "200"},
	} {
		s.take()
		status := x.h2(t, c.body, c.fields...)
		sent := s.take()
		if !strings.Contains(c.status, status) || (sent != "") != strings.Contains(c.status, "200") && sent != "" || strings.Contains(sent, "hello") != (c.body != "" && c.status == "200") || strings.Count(sent, " HTTP/1.1\r\n") > 1 {
			t.Errorf("%s: %s, expected %s; went on: %q", c.name, status, c.status, sent)
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
		{"GET /api/%252e%252e/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%25252e%25252e%25252fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/100%25/..%252fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..;/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..;a=b/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/.;/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%3b/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%09 HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%20../x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%0a/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%3fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%2523x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/x%00.json HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%c0%ae%c0%ae/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%e0%80%ae%e0%80%ae/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%f0%80%80%ae/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/a%c0%afb HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/a%c1%9cb HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%25c0%25ae/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%ef%bc%8e%ef%bc%8e/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/..%ef%bc%8fx HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%e2%80%a5/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET /api/%u002e%u002e/x HTTP/1.1\r\nHost: a\r\n", "400"},
		{"GET * HTTP/1.1\r\nHost: a\r\n", "400"},
		{"POST * HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n", "400"},
		{"PRI * HTTP/1.1\r\nHost: a\r\n", "405"},
		{"PRI /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"TRACE /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"TRACK /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"trace /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"TRACE /api/x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n", "405"},
		{"DEBUG /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"connect /api/x HTTP/1.1\r\nHost: a\r\n", "405"},
		{"GET /api/caf%C3%A9/100%25/a;b=c/x.y/%E6%97%A5 HTTP/1.1\r\nHost: a\r\n", "200"},
		{"GET /api/caf%E9/%E2%80%A6/..x/x.. HTTP/1.1\r\nHost: a\r\n", "200"},
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
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store"} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%+v: %s is %q, expected %q", c, name, got, want)
			}
		}
	}
}
