package http1

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A host of letters, figures and a few marks is sent as it is written; any other is net/http's.
func TestTakesHosts(t *testing.T) {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]"
	for c := range 256 {
		req := request(t, "GET", "http://h/")
		req.Host = "a" + string([]byte{byte(c)})
		if got, want := new(Client).Takes(req, nil), strings.IndexByte(plain, byte(c)) >= 0 && supported; got != want {
			t.Errorf("%q: %v, want %v", req.Host, got, want)
		}
	}
}

// A query of anything but blanks and control characters is sent as it is written.
func TestTakesQueries(t *testing.T) {
	for c := range 256 {
		req := request(t, "GET", "http://h/")
		req.URL.RawQuery = "q=" + string([]byte{byte(c)})
		if got, want := new(Client).Takes(req, nil), c > ' ' && c != 0x7f && supported; got != want {
			t.Errorf("%q: %v, want %v", req.URL.RawQuery, got, want)
		}
	}
}

// The head of a request is net/http's whatever the method, with a body of a byte, of many and without.
func TestHeadOfShortBodies(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, n := range []int{0, 1, 2, 10, 4096} {
			body := bytes.Repeat([]byte("x"), n)
			req := request(t, method, "http://h.example/a")
			got, want := string(append(appendHead(nil, req, n), body...)), string(recorded(t, req, body))
			if got != want {
				t.Errorf("%s with %d bytes: %q, net/http writes %q", method, n, got, want)
			}
		}
	}
}

// Where its ctx ends while a connection is made, or before, a request is not written, and fails for that.
func TestEndsWhileConnecting(t *testing.T) {
	for _, early := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		if early {
			cancel()
		}
		here, there := net.Pipe()
		client := newClient(t)
		client.Dial = func(context.Context, string, string) (net.Conn, error) {
			cancel()
			return here, nil
		}
		res, sent, err := client.Send(ctx, request(t, "GET", "http://h.example/"), nil, time.Minute, nil)
		if res != nil || sent.Written || !errors.Is(err, context.Canceled) {
			t.Errorf("early %v: %v, %+v, %v", early, res, sent, err)
		}
		if _, err := there.Read(make([]byte, 1)); err == nil {
			t.Errorf("early %v: something was written", early)
		}
		there.Close()
		cancel()
	}
}

// A connection that is kept is not written to for a request whose ctx has ended; and who reads a body that was closed reads nothing.
func TestEndsBeforeAKeptConnectionIsUsed(t *testing.T) {
	var arrived atomic.Int32
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			arrived.Add(1)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	client := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	res, _, err := client.Send(ctx, request(t, "GET", "http://"+address+"/"), nil, time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if n, err := res.Body.Read(make([]byte, 2)); n != 0 || err == nil {
		t.Errorf("of a closed body %d bytes are read, %v", n, err)
	}
	cancel()
	if res, sent, err := client.Send(ctx, request(t, "GET", "http://"+address+"/"), nil, time.Minute, nil); res != nil || sent.Written || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %+v, %v", res, sent, err)
	}
	if n := arrived.Load(); n != 1 {
		t.Errorf("%d requests arrived, want 1", n)
	}
}

// counted is a context that counts who is to be told of its end.
type counted struct {
	context.Context
	told atomic.Int32
}

func (c *counted) AfterFunc(f func()) (stop func() bool) {
	c.told.Add(1)
	stop = context.AfterFunc(c.Context, f)
	return func() bool {
		if !stop() {
			return false
		}
		c.told.Add(-1)
		return true
	}
}

// A context that lasts for as long as the program holds on to no connection that is closed.
func TestContextForgetsWhatIsClosed(t *testing.T) {
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
		}
	})
	ctx, client := &counted{Context: t.Context()}, newClient(t)
	for range 5 {
		res, _, err := client.Send(ctx, request(t, "GET", "http://"+address+"/"), nil, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if n := ctx.told.Load(); n != 0 {
		t.Errorf("%d closed connections wait for the end of their context", n)
	}
}

// The header may be as long as is allowed, and not longer.
func TestHeaderAsLongAsAllowed(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: "
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		if req, err := http.ReadRequest(in); err == nil {
			var n int
			fmt.Sscan(req.URL.Query().Get("n"), &n)
			fmt.Fprint(conn, head+strings.Repeat("x", n-len(head)-4)+"\r\n\r\n")
		}
	})
	for _, c := range []struct {
		allowed, n int
		fits       bool
	}{{1 << 12, 1<<12 - 1, true}, {1 << 12, 1 << 12, true}, {1 << 12, 1<<12 + 1, false}, {0, 1 << 20, true}, {0, 1<<20 + 1, false}} {
		client := newClient(t)
		client.Header = int64(c.allowed)
		req := request(t, "GET", "http://"+address+"/")
		req.URL.RawQuery = url.Values{"n": {fmt.Sprint(c.n)}}.Encode()
		res, _, err := client.Send(t.Context(), req, nil, time.Minute, nil)
		if (err == nil) != c.fits || !c.fits && !strings.Contains(err.Error(), fmt.Sprintf("longer than %d bytes", cmp.Or(c.allowed, 1<<20))) {
			t.Errorf("%d bytes of %d: %v", c.n, c.allowed, err)
		}
		if err == nil {
			res.Body.Close()
		}
	}
}

// Who sends more than was asked for, in one piece with the answer, is not asked over that connection again: the next answer might be that.
func TestMoreThanWasAsked(t *testing.T) {
	var connections atomic.Int32
	address := server(t, func(_ int, conn net.Conn, in *bufio.Reader) {
		n := connections.Add(1)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				return
			}
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n%02dHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", n)
		}
	})
	client := newClient(t)
	for _, want := range []string{"01", "02", "03"} {
		res, _, err := client.Send(t.Context(), request(t, "GET", "http://"+address+"/"), nil, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if string(got) != want || err != nil {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
