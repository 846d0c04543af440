package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Requests and answers go on as they came.
func TestPassesOn(t *testing.T) {
	var got *http.Request
	var body string
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		h := w.Header()
		h.Set("X-RateLimit-Remaining", "41")
		h.Add("Set-Cookie", "a=1")
		h.Add("Set-Cookie", "b=2")
		h.Set("Content-Encoding", "gzip")
		h["Content-Type"] = nil
		h["Date"] = []string{"Sun, 06 Nov 1994 08:49:37 GMT"}
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "\x1f\x8bnot really")
	})
	x := start(t, to(u))
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/v1/a%2Fb/c%20d?q=%2f&b&c=1;2&%zz", ""}, {"POST", "//double//", "{}"}, {"PURGE", "/;p=1?", "x"}, {"DELETE", "/", ""},
		{"PROPFIND", "/%E4%F6?a=b?c", strings.Repeat("long ", 100_000)}, {"GET", "/a:b@c,d=(e)!*'$&+", ""},
	} {
		resp, text := x.do(c.method, c.target, c.body, "X-Mine", "yes", "User-Agent", "")
		if got.Method != c.method || got.RequestURI != c.target || body != c.body || got.Host != u.Host {
			t.Errorf("%s %s came as %s %s at %s, with %d bytes", c.method, c.target, got.Method, got.RequestURI, got.Host, len(body))
		}
		if want := int64(len(c.body)); got.ContentLength != want {
			t.Errorf("%s: a body of %d came with length %d", c.method, want, got.ContentLength)
		}
		names := slices.Sorted(maps.Keys(got.Header))
		if names = slices.DeleteFunc(names, func(n string) bool { return n == "Content-Length" }); !slices.Equal(names, []string{"X-Mine"}) {
			t.Errorf("%s: the fields that came are %q", c.method, names)
		}
		h := resp.Header
		if resp.StatusCode != http.StatusTeapot || text != "\x1f\x8bnot really" || h.Get("X-RateLimit-Remaining") != "41" || len(h["Set-Cookie"]) != 2 || h.Get("Date") != "Sun, 06 Nov 1994 08:49:37 GMT" {
			t.Errorf("%s: %d %q %v", c.method, resp.StatusCode, text, h)
		}
		if _, guessed := h["Content-Type"]; guessed || h.Get("Server") != "" || h.Get("Via") != "" {
			t.Errorf("%s: added to the answer: %v", c.method, h)
		}
		if n, err := strconv.Atoi(h.Get(FieldWaited)); err != nil || n != 0 {
			t.Errorf("%s: %s is %q", c.method, FieldWaited, h.Get(FieldWaited))
		}
	}
}

// Where the upstream has a path of its own, and the proxy a prefix for it, both are put right
// without touching what is encoded.
func TestPaths(t *testing.T) {
	var target string
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { target = r.Host + r.RequestURI })
	for _, c := range []struct{ prefix, to, in, out string }{
		{"", "", "/a%2Fb", "/a%2Fb"}, {"", "/base", "/a%2Fb?x", "/base/a%2Fb?x"}, {"", "/base/", "/a", "/base/a"}, {"/p", "", "/p/a%2fb", "/a%2fb"},
		{"/p", "", "/p", "/"}, {"/p", "", "/p?q=1", "/?q=1"}, {"/p", "/base/x%2Fy", "/p/z", "/base/x%2Fy/z"}, {"/p", "/base", "/p/", "/base/"}, {"/p", "/base/", "/p", "/base/"}, {"/p", "/base", "/p", "/base"},
		{"/p/q", "", "/p/q//r", "//r"},
	} {
		at := mustURL(t, u.String()+c.to)
		x := start(t, Config{Upstreams: []Upstream{{Path: c.prefix, To: at}}})
		if resp, _ := x.do("GET", c.in, ""); resp.StatusCode != 200 || target != u.Host+c.out {
			t.Errorf("%s at %q before %q: %d, asked for %s, expected %s", c.in, c.prefix, c.to, resp.StatusCode, target, c.out)
		}
	}
}

// Hop-by-hop fields stay here, in both directions, and so does all that Connection names.
func TestHopByHop(t *testing.T) {
	var got http.Header
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		w.Header().Set("Connection", "X-Theirs")
		w.Header().Set("X-Theirs", "1")
		w.Header().Set("Keep-Alive", "timeout=5")
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.Header().Set("X-Ours", "1")
	})
	x := start(t, to(u))
	resp, _ := x.do("GET", "/", "", "Connection", "X-Mine, keep-alive", "X-Mine", "1", "Keep-Alive", "1", "Te", "trailers, deflate", "Proxy-Authorization", "Basic eA==", "Proxy-Connection", "x",
		"Forwarded", "for=1.2.3.4", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-Host", "evil", "X-Forwarded-Proto", "https", "X-Kept", "1")
	for _, name := range []string{"Connection", "X-Mine", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if v, is := got[name]; is {
			t.Errorf("%s: %q went on", name, v)
		}
	}
	if got.Get("X-Kept") != "1" || got.Get("Te") != "trailers" {
		t.Errorf("went on: %v", got)
	}
	for _, name := range []string{"X-Theirs", "Keep-Alive", "Proxy-Authenticate"} {
		if v, is := resp.Header[name]; is {
			t.Errorf("%s: %q came back", name, v)
		}
	}
	if resp.Header.Get("X-Ours") != "1" {
		t.Errorf("came back: %v", resp.Header)
	}
}

// What servers in front say of a client stays here.
func TestFieldsOfServersInFront(t *testing.T) {
	var got http.Header
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	x := start(t, to(u))
	fields := []string{"X-Kept", "1"}
	for name := range strings.FieldsSeq(`X-Forwarded-Port X-Forwarded-Server X-Forwarded-User X-Forwarded-Access-Token X-Forwarded X-Real-IP X-Client-IP
		True-Client-IP CF-Connecting-IP CF-IPCountry Fastly-Client-IP Fly-Client-IP X-Azure-ClientIP X-AppEngine-User-IP
		X-Envoy-External-Address X-Original-Forwarded-For X-Auth-Request-Email`) {
		fields = append(fields, name, "private")
	}
	x.do("GET", "/", "", fields...)
	for name, values := range got {
		if values[0] == "private" {
			t.Errorf("%s went on", name)
		}
	}
	if got.Get("X-Kept") != "1" {
		t.Error(got)
	}
}

// A program that uses a forward proxy may tell the server its own address.
func TestFieldsOfPrograms(t *testing.T) {
	f := forwardTo(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Real-IP"), r.Header["X-Forwarded-For"], r.Header["Forwarded"])
	}, nil)
	if got := f.raw("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nX-Real-IP: mine\r\nX-Forwarded-For: 1.2.3.4\r\nConnection: close\r\n\r\n"); got != "200 mine[1.2.3.4] []" {
		t.Error(got)
	}
}

// With Forwarded the upstream gets the address of the client, and never the client's own statement
// about it.
func TestForwarded(t *testing.T) {
	var got http.Header
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	x := start(t, Config{Upstreams: []Upstream{{To: u, Forwarded: true, Header: []Field{{"X-Set", "ours"}}, Query: []Field{{"v", "a&b"}}}}})
	x.do("GET", "/?v=1&w=2", "", "X-Forwarded-For", "1.2.3.4", "X-Set", "theirs", "Connection", "X-Set")
	if got.Get("X-Forwarded-For") != "127.0.0.1" || got.Get("X-Forwarded-Host") != x.addr || got.Get("X-Forwarded-Proto") != "http" || got.Get("X-Set") != "ours" {
		t.Error(got)
	}
}

// Events go on one by one, before the next is there; so do parts of an answer whose length is
// known.
func TestStreams(t *testing.T) {
	for _, known := range []bool{false, true} {
		next := make(chan struct{})
		u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if known {
				w.Header().Set("Content-Type", "application/octet-stream")
				w.Header().Set("Content-Length", "27")
			}
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				http.NewResponseController(w).Flush()
				<-next
			}
		})
		x := start(t, to(u))
		resp, err := clientOf(t).Get(x.url)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			line, err := lines.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); line != want || err != nil {
				t.Fatalf("%q, %v, expected %q", line, err, want)
			}
			lines.ReadString('\n')
			next <- struct{}{}
		}
		resp.Body.Close()
	}
}

// An answer that begins before the end of its request comes back at once.
func TestBothWays(t *testing.T) {
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.EnableFullDuplex()
		b := make([]byte, 4)
		for {
			n, err := r.Body.Read(b)
			fmt.Fprintf(w, "%s!", b[:n])
			rc.Flush()
			if err != nil {
				return
			}
		}
	})
	x := start(t, to(u))
	in, out := io.Pipe()
	r, _ := http.NewRequest("POST", x.url, in)
	type answer struct {
		resp *http.Response
		err  error
	}
	answers := make(chan answer)
	go func() {
		resp, err := clientOf(t).Do(r)
		answers <- answer{resp, err}
	}()
	io.WriteString(out, "one")
	a := <-answers
	if a.err != nil {
		t.Fatal(a.err)
	}
	b := make([]byte, 64)
	n, _ := io.ReadAtLeast(a.resp.Body, b, 4)
	if string(b[:n]) != "one!" {
		t.Errorf("%q", b[:n])
	}
	io.WriteString(out, "two")
	if n, _ = io.ReadAtLeast(a.resp.Body, b, 4); string(b[:n]) != "two!" {
		t.Errorf("%q", b[:n])
	}
	out.Close()
	io.Copy(io.Discard, a.resp.Body)
	a.resp.Body.Close()
}

// Trailers go on, of requests and of answers, said beforehand or not.
func TestTrailers(t *testing.T) {
	var got http.Header
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got = r.Trailer.Clone()
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "hello")
		w.Header().Set("X-Sum", "5")
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	})
	x := start(t, to(u))
	r, _ := http.NewRequest("POST", x.url, struct{ io.Reader }{strings.NewReader("hello")})
	r.Trailer = http.Header{"X-Sent": {"1"}}
	resp, err := clientOf(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if got.Get("X-Sent") != "1" || resp.Trailer.Get("X-Sum") != "5" || resp.Trailer.Get("X-Late") != "yes" {
		t.Errorf("the request's: %v; the answer's: %v", got, resp.Trailer)
	}
}

// The upstream says whether it wants a body that is held back until somebody asks for it.
func TestContinue(t *testing.T) {
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		io.Copy(w, r.Body)
	})
	x := start(t, to(u))
	head := "PUT /yes HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
	if got := x.raw(strings.Replace(head, "/yes", "/no", 1)); !strings.HasPrefix(got, "HTTP/1.1 417 ") {
		t.Errorf("no: %q", got)
	}
	c := textproto.NewConn(dial(t, x))
	defer c.Close()
	fmt.Fprint(c.W, head)
	c.W.Flush()
	line, err := c.ReadLine()
	if line != "HTTP/1.1 100 Continue" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	c.ReadLine()
	fmt.Fprint(c.W, "hello")
	c.W.Flush()
	if line, err = c.ReadLine(); line != "HTTP/1.1 200 OK" || err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	rest, _ := io.ReadAll(c.R)
	if !strings.HasSuffix(string(rest), "hello") {
		t.Errorf("%q", rest)
	}
}

// Informational answers go on: hints, and notices about processing.
func TestInformational(t *testing.T) {
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusNoContent)
	})
	x := start(t, to(u))
	got := x.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(got, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n") || !strings.Contains(got, "\r\n\r\nHTTP/1.1 204 No Content\r\n") {
		t.Errorf("%q", got)
	}
}

// A HEAD has the length that a GET would have, and a redirect is passed on, not followed.
func TestHeadAndRedirect(t *testing.T) {
	asked := 0
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusFound)
			return
		}
		w.Header().Set("Content-Length", "1234")
	})
	x := start(t, to(u))
	if resp, _ := x.do("HEAD", "/", ""); resp.ContentLength != 1234 {
		t.Errorf("%d", resp.ContentLength)
	}
	if resp, _ := x.do("GET", "/old", ""); resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "/new" || asked != 2 {
		t.Errorf("%d %v, asked %d times", resp.StatusCode, resp.Header, asked)
	}
}

// An upgrade becomes a connection in both directions, counts once, and ends with either side.
func TestUpgrade(t *testing.T) {
	asked := 0
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Upgrade") != "echo" {
			return
		}
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		io.Copy(c, b)
	})
	conf := to(u, "2/h")
	conf.MaxWait = -1
	x := start(t, conf)
	for range 2 {
		c := textproto.NewConn(dial(t, x))
		fmt.Fprint(c.W, "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		c.W.Flush()
		line, _ := c.ReadLine()
		h, err := c.ReadMIMEHeader()
		if line != "HTTP/1.1 101 Switching Protocols" || h.Get("Upgrade") != "echo" || h.Get(FieldWaited) != "0" || err != nil {
			t.Fatalf("%q %v %v", line, h, err)
		}
		for i := range 100 {
			fmt.Fprintf(c.W, "%d\n", i)
			c.W.Flush()
			if line, err := c.ReadLine(); line != strconv.Itoa(i) || err != nil {
				t.Fatalf("%q %v", line, err)
			}
		}
		c.Close()
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for x.proxy.visits.count() > 0 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if n := x.proxy.visits.count(); n > 0 {
		t.Errorf("%d connections are left", n)
	}
	x.stop()
	if log := x.log.String(); strings.Count(log, "msg=request method=GET path=/ status=101 ") != 2 || strings.Count(log, " bytes=290 upgrade=echo ") != 2 {
		t.Errorf("the lines of the upgrades are not whole:\n%s", log)
	}
}

// A part of an answer of known length goes on 20 ms after its arrival, together with later parts.
// Nothing goes after the end: the connection serves the next request.
func TestPartsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", "8")
			for i, wait := range []time.Duration{0, 5 * time.Millisecond, time.Second, time.Minute} {
				time.Sleep(wait)
				fmt.Fprintf(w, "%d.", i)
				http.NewResponseController(w).Flush()
			}
		}), to(mustURL(t, "http://a.test")))
		conn, err := x.dial(t.Context(), "tcp", x.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r := bufio.NewReader(conn)
		for range 2 {
			began := time.Now()
			io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for b := make([]byte, 8); ; {
				n, err := resp.Body.Read(b)
				if n > 0 {
					got = append(got, fmt.Sprintf("%s after %v", b[:n], time.Since(began)))
				}
				if err != nil {
					break
				}
			}
			if want := []string{"0.1. after 20ms", "2. after 1.025s", "3. after 1m1.005s"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
	})
}
