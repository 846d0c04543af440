package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// server accepts connections and has serve answer each.
func server(t *testing.T, serve func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for n := 0; ; n++ {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				serve(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { ln.Close(); all.Wait() })
	return ln.Addr().String()
}

func newClient(t *testing.T) *Client {
	c := &Client{Dial: new(net.Dialer).DialContext, Idle: 4, IdleTimeout: time.Minute, Header: 1 << 12}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func request(t *testing.T, method, address string) *http.Request {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: method, URL: u, Host: u.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"User-Agent": {"a"}}}
}

// answer is one as text: its status, what is known of its body, its header, and whether it failed.
func answer(res *http.Response, err error) string {
	if err != nil {
		return "failed"
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	return fmt.Sprintf("%d %d %v %v %q %v", res.StatusCode, res.ContentLength, res.Uncompressed, res.Header, body, err != nil)
}

const zipped = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xcaH\xcd\xc9\xc9\x07\x04\x00\x00\xff\xff\x86\xa6\x106\x05\x00\x00\x00" // hello

// Whatever a server answers is what net/http makes of it, and the connection is used again when net/http does.
func TestAsNetHTTP(t *testing.T) {
	for _, c := range []struct {
		method, answer string
		kept           bool // by the client, for another
	}{
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: 1\r\nx: 2\r\n\r\nok", true},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n3\r\n!!!\r\n0\r\n\r\n", true},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n2\r\nok\r\n0\r\nT: 1\r\n\r\n", true},
		{"GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", false},
		{"GET", "HTTP/1.1 200 OK\r\n\r\nuntil it is closed", false},
		{"GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
		{"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		{"GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", false},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and what nobody asked for", false},
		{"GET", "HTTP/1.1 204 No Content\r\n\r\n", true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n", true},
		{"HEAD", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", true},
		{"GET", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		{"GET", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 9) + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 29\r\n\r\n" + zipped, true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nno", true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nno", true},
		{"GET", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nok", true},
		{"POST", "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 2\r\nContent-Length: 2\r\n\r\nno", true},
		{"GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 9000) + "\r\nContent-Length: 2\r\n\r\nok", false},
		{"GET", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 3000) + "\r\nContent-Length: 2\r\n\r\nok", true},
		{"GET", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok", false},
		{"GET", "HTTP/1.1 200", false},
		{"GET", "SSH-2.0-x\r\n", false},
		{"GET", "", false},
	} {
		// Where the end of the connection is that of the answer.
		ends := "HTTP/1.1 200 OK\r\n\r\nuntil it is closed|HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf|HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n|HTTP/1.1 200|"
		conns := atomic.Int32{}
		address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
			conns.Add(1)
			for {
				q, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, q.Body)
				fmt.Fprint(conn, c.answer)
				if strings.Contains(ends, c.answer) {
					return
				}
			}
		})
		rt := &http.Transport{MaxResponseHeaderBytes: 1 << 12}
		want := answer(rt.RoundTrip(request(t, c.method, "http://"+address+"/")))
		rt.CloseIdleConnections()
		conns.Store(0)
		client := newClient(t)
		for range 2 {
			q := request(t, c.method, "http://"+address+"/")
			if !client.Takes(q, nil) {
				t.Fatal("it is not taken")
			}
			res, sent, err := client.Send(context.Background(), q, nil, time.Minute, nil)
			if got := answer(res, err); got != want || !sent.Written {
				t.Errorf("%.200q: %s, want %s (%v)", c.answer, got, want, err)
			}
		}
		if n := conns.Load(); (n == 1) != c.kept {
			t.Errorf("%.200q: %d connections for two requests", c.answer, n)
		}
		// What is left of a body is not taken for an answer.
		res, _, err := client.Send(context.Background(), request(t, c.method, "http://"+address+"/"), nil, time.Minute, nil)
		if err == nil {
			_, _ = res.Body.Read(make([]byte, 1))
			res.Body.Close()
		}
		res, _, err = client.Send(context.Background(), request(t, c.method, "http://"+address+"/"), nil, time.Minute, nil)
		if got := answer(res, err); got != want {
			t.Errorf("%.200q, after half of one: %s, want %s (%v)", c.answer, got, want, err)
		}
		client.CloseIdleConnections()
	}
}

// A connection that the server has closed is not written to, and one that it closes when it has read is not written to again: what the
// server sees is what was sent.
func TestAtMostOnce(t *testing.T) {
	var seen atomic.Int32
	closed := make(chan struct{}, 1)
	address := server(t, func(n int, conn net.Conn, in *bufio.Reader) {
		for i := range 2 {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			if seen.Add(1); i == 1 && n%2 == 1 {
				return // without a word
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if n%2 == 0 {
				conn.Close()
				closed <- struct{}{}
				return
			}
		}
	})
	client := newClient(t)
	answered, broken := 0, 0
	for i := range 30 {
		_, sent, err := func() (string, Sent, error) {
			res, sent, err := client.Send(context.Background(), request(t, "POST", "http://"+address+"/"), nil, time.Minute, nil)
			return answer(res, err), sent, err
		}()
		if err == nil {
			answered++
		} else {
			broken++
		}
		if !sent.Written || sent.Last.Before(sent.Began) {
			t.Errorf("%+v, %v", sent, err)
		}
		if i%3 == 0 {
			select {
			case <-closed:
			case <-time.After(5 * time.Second):
				t.Fatal("it is not where it should be")
			}
			// What is kept is closed, and one that looks sees that, but not at once
			for range 1000 {
				if x := client.idle[address]; len(x) == 0 || !x[0].isOpen() {
					break
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
	if n := int(seen.Load()); n != 30 || answered != 20 || broken != 10 {
		t.Errorf("%d were sent, %d answered, %d not; the server saw %d", 30, answered, broken, n)
	}
}

// stuck is a connection that breaks in the middle of a write.
type stuck struct {
	*net.TCPConn
	after *atomic.Int32
}

func (s stuck) Write(b []byte) (int, error) {
	if s.after.Add(-1) >= 0 {
		return s.TCPConn.Write(b)
	}
	n, _ := s.TCPConn.Write(b[:len(b)/2])
	return n, errors.New("broken")
}

// What was written by half is not written again, as it may be a whole one to the server.
func TestHalfWritten(t *testing.T) {
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	var whole atomic.Int32
	whole.Store(3)
	client, conns := newClient(t), 0
	client.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conns++
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return stuck{c.(*net.TCPConn), &whole}, nil
	}
	for i := range 4 {
		res, sent, err := client.Send(context.Background(), request(t, "GET", "http://"+address+"/"), nil, time.Minute, nil)
		if answer(res, err); (err == nil) != (i < 3) || !sent.Written {
			t.Errorf("%d: %v, %v", i, sent, err)
		}
	}
	if conns != 1 {
		t.Errorf("%d connections", conns)
	}
}

// The rest of an answer that was not read to its end is not taken for the next one.
func TestLeftUnread(t *testing.T) {
	address := server(t, func(n int, conn net.Conn, in *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			if n == 0 {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
				_, _ = http.ReadRequest(in)
				fmt.Fprint(conn, "k")
			}
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	client := newClient(t)
	for i := range 3 {
		res, _, err := client.Send(context.Background(), request(t, "GET", "http://"+address+"/"), nil, 5*time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1)
		if _, err := res.Body.Read(b); err != nil || b[0] != 'o' {
			t.Errorf("%d: %q, %v", i, b, err)
		}
		res.Body.Close()
	}
}

// An attempt ends with its context, or when it is late, but for what it was paused.
func TestEnds(t *testing.T) {
	for _, header := range []bool{false, true} {
		address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
			for {
				q, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if q.Method == "HEAD" {
					fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
				} else if header {
					fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no")
				}
			}
		})
		client := newClient(t)
		try := func(ctx context.Context, timeout, pause time.Duration) (time.Duration, error) {
			// Over a connection that has served another, who goes on.
			if res, _, err := client.Send(context.Background(), request(t, "HEAD", "http://"+address+"/"), nil, time.Minute, nil); answer(res, err) != "200 -1 false map[] \"\" false" {
				t.Fatal(err)
			}
			began := time.Now()
			res, _, err := client.Send(ctx, request(t, "GET", "http://"+address+"/"), nil, timeout, nil)
			if err == nil {
				if pause > 0 {
					res.Body.(Body).Pause(true)
					time.Sleep(pause)
					res.Body.(Body).Pause(false)
				}
				_, err = io.ReadAll(res.Body)
				res.Body.Close()
			}
			return time.Since(began), err
		}
		if took, err := try(context.Background(), 20*time.Millisecond, 0); !errors.Is(err, os.ErrDeadlineExceeded) || took < 20*time.Millisecond {
			t.Errorf("late, header %v: %v after %v", header, err, took)
		}
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(20*time.Millisecond, cancel)
		if took, err := try(ctx, 5*time.Second, 0); err == nil || took > 4*time.Second {
			t.Errorf("cancelled, header %v: %v after %v", header, err, took)
		}
		if _, err := try(ctx, time.Minute, 0); err == nil {
			t.Error("it went with a context that had ended")
		}
		if took, err := try(context.Background(), 20*time.Millisecond, 50*time.Millisecond); header && (!errors.Is(err, os.ErrDeadlineExceeded) || took < 70*time.Millisecond) {
			t.Errorf("paused: %v after %v", err, took)
		}
		// A pause does not keep it from its context.
		ctx, cancel = context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		if took, err := try(ctx, 5*time.Second, 30*time.Millisecond); err == nil || took > 4*time.Second {
			t.Errorf("cancelled in a pause, header %v: %v after %v", header, err, took)
		}
	}
}

// pipe is a connection that can be told whether it is open, in virtual time.
type pipe struct {
	net.Conn
	closed *atomic.Int32
}

func (p *pipe) Close() error { p.closed.Add(1); return p.Conn.Close() }

// No more are kept than may be, none for longer than may be, and those of other hosts, too, are closed when it is time.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		c := &Client{Idle: 3, IdleTimeout: time.Minute}
		put := func(address string) bool {
			in, _ := net.Pipe()
			return c.keep(newExchange(c, address, &pipe{in, &closed}))
		}
		for i := range 5 {
			if kept := put("a"); kept != (i < 3) {
				t.Errorf("%d: kept %v", i, kept)
			}
		}
		time.Sleep(40 * time.Second)
		x := c.pop("a")
		c.keep(x) // it was in use
		put("b")
		time.Sleep(30 * time.Second)
		put("b")
		if n := closed.Load(); n != 2 || len(c.idle["a"]) != 1 || len(c.idle["b"]) != 2 {
			t.Errorf("%d closed, %d and %d kept", n, len(c.idle["a"]), len(c.idle["b"]))
		}
		time.Sleep(time.Hour)
		put("c")
		if n := closed.Load(); n != 5 || len(c.idle) != 1 {
			t.Errorf("%d closed, %d hosts", n, len(c.idle))
		}
		c.CloseIdleConnections()
		if n := closed.Load(); n != 6 || c.pop("c") != nil {
			t.Errorf("%d closed", n)
		}
	})
}

// recorded is what net/http writes for a request.
func recorded(t *testing.T, req *http.Request, body []byte) []byte {
	here, there := net.Pipe()
	got := make(chan []byte, 1)
	go func() {
		var all bytes.Buffer
		in := bufio.NewReader(io.TeeReader(there, &all))
		if q, err := http.ReadRequest(in); err == nil {
			_, _ = io.Copy(io.Discard, q.Body)
		}
		fmt.Fprint(there, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
		there.Close()
		got <- all.Bytes()
	}()
	rt := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return here, nil }}
	q := req.Clone(context.Background())
	if len(body) > 0 {
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	res, err := rt.RoundTrip(q)
	here.Close()
	if err != nil {
		there.Close()
		<-got
		return nil
	}
	res.Body.Close()
	return <-got
}

// FuzzHead: what is taken is written as net/http writes it, to the byte.
func FuzzHead(f *testing.F) {
	f.Add("GET", "http://h.example:8080/a%2Fb/é?q=1&r", "", "X-A", " v\t", "x-b", "w", "")
	f.Add("POST", "http://[::1]/?", "other.example", "Accept-Encoding", "br", "Range", "", "body")
	f.Add("0", "http://[::1]/?", "other.example", "Accept", "br", "Range", "", "body") // a Range that says nothing asks for all
	f.Add("0", "http://[::1]/?", "other.example", "Accept-Encoding", "", "A", "", "body")
	f.Add("PUT", "http://h", "", "User-Agent", "", "Content-Type", "t", "")
	f.Add("DELETE", "http://h/#f", "bücher.example", "Connection", "close", "Cookie", "a=b", "x")
	f.Add("HEAD", "http://u:p@h:/a b", "a b", "X\r\n", "a\nb", "User-Agent", " u ", "")
	f.Fuzz(func(t *testing.T, method, address, host, name1, value1, name2, value2, body string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		if host == "" {
			host = u.Host
		}
		req := &http.Request{Method: method, URL: u, Host: host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{name1: {value1, value2}, name2: {value2}}}
		if !new(Client).Takes(req, []byte(body)) {
			return
		}
		got := append(appendHead(nil, req, len(body)), body...)
		if want := recorded(t, req, []byte(body)); !bytes.Equal(got, want) {
			t.Errorf("%q, net/http writes %q", got, want)
		}
	})
}

// What needs more than a connection is net/http's.
func TestTakes(t *testing.T) {
	proxy := func(q *http.Request) (*url.URL, error) {
		if q.URL.Host == "proxied" {
			return q.URL, nil
		}
		return nil, nil
	}
	for _, c := range []struct {
		method, address, name, value string
		body                         int
		want                         bool
	}{
		{"GET", "http://h/", "X", "1", 0, true},
		{"get", "http://h:80/?%20", "X", "é", 8 << 10, true},
		{"GET", "https://h/", "X", "1", 0, false},
		{"GET", "http://proxied/", "X", "1", 0, false},
		{"GET", "http://bücher/", "X", "1", 0, false},
		{"GET", "http://[fe80::1%25eth0]/", "X", "1", 0, false},
		{"GET", "http://:80/", "X", "1", 0, false},
		{"GET", "http://h/", "X", "a\r\nY: b", 0, false},
		{"GET", "http://h/", "X ", "a", 0, false},
		{"GET", "http://h/", "Expect", "100-continue", 0, false},
		{"POST", "http://h/", "X", "1", 8<<10 + 1, false},
		{"GET", "http://h/" + strings.Repeat("x", 8<<10), "X", "1", 0, false},
		{"GET", "http://h/", "X", strings.Repeat("x", 8<<10), 0, false},
		{"CONNECT", "http://h/", "X", "1", 0, false},
		{"", "http://h/", "X", "1", 0, false},
		{"A B", "http://h/", "X", "1", 0, false},
	} {
		q := request(t, c.method, c.address)
		q.Header[c.name] = []string{c.value}
		if got := (&Client{Proxy: proxy}).Takes(q, make([]byte, c.body)); got != (c.want && supported) {
			t.Errorf("%+.80v: %v", c, got)
		}
	}
}

// What has no URL, or asks for an end, is left to net/http.
func TestTakesNoOdd(t *testing.T) {
	ends := request(t, "GET", "http://h/")
	ends.Close = true
	for _, q := range []*http.Request{{Method: "GET", Host: "h", Header: http.Header{}}, ends} {
		if new(Client).Takes(q, nil) {
			t.Errorf("%+v is taken", q)
		}
	}
}

// Nothing arrives of a request for which there is no leave any more when it is to be written; one with leave is asked about once.
func TestLapsed(t *testing.T) {
	arrived := make(chan string, 10)
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		for {
			q, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			arrived <- q.URL.Path
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
	client := newClient(t)
	for i, fresh := range []bool{false, true, false, true} { // the third over a connection that was kept
		asked := 0
		res, sent, err := client.Send(context.Background(), request(t, "GET", fmt.Sprintf("http://%s/%d", address, i)), nil, time.Minute, func() bool {
			asked++
			return fresh
		})
		switch {
		case asked != 1:
			t.Errorf("request %d: asked %d times", i, asked)
		case !fresh && (!errors.Is(err, ErrLapsed) || sent.Written):
			t.Errorf("request %d without leave: written %v, %v", i, sent.Written, err)
		case fresh && err != nil:
			t.Errorf("request %d with leave: %v", i, err)
		case fresh:
			res.Body.Close()
			if path := <-arrived; path != fmt.Sprintf("/%d", i) {
				t.Errorf("%s arrived", path)
			}
		}
	}
}
