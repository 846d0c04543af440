package forward

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var discarded = slog.New(slog.DiscardHandler)

func serverOf(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{Handler: h, Protocols: protocols}
}

// startDoor serves a Door that names nobody. Other hosts are at other.
func startDoor(t *testing.T, other net.Listener) (d *Door, address string) {
	t.Helper()
	d = New(Config{
		Named: func(string, string) bool { return false }, Admits: func(*http.Request) bool { return true }, Tunnels: PublicTunnels,
		Server: serverOf, Log: discarded,
	})
	d.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, other.Addr().String())
	}
	s := &http.Server{Handler: d}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() {
		d.Shutdown(context.Background())
		s.Close()
	})
	return d, l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// Bytes of another host pass as they are, each way until its own end. The client need not wait for
// the answer to CONNECT.
func TestTunnel(t *testing.T) {
	other := listen(t)
	go func() {
		c, err := other.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(c) // until the client's half is closed
		fmt.Fprintf(c, "got %d bytes: %q", len(all), all)
		c.Close()
	}()
	_, at := startDoor(t, other)
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "CONNECT other.example.org:443 HTTP/1.1\r\nHost: other.example.org:443\r\n\r\n\x16\x03\x01not TLS")
	_ = c.(*net.TCPConn).CloseWrite()
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	if b, err := io.ReadAll(r); string(b) != `got 10 bytes: "\x16\x03\x01not TLS"` {
		t.Errorf("%q %v", b, err)
	}
}

// Shutdown closes tunnels that would last for ever.
func TestTunnelsEnd(t *testing.T) {
	other := listen(t)
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := other.Accept()
		if err == nil {
			accepted <- c
		}
	}()
	d, at := startDoor(t, other)
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "CONNECT other.example.org:443 HTTP/1.1\r\nHost: other.example.org:443\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	end := <-accepted
	defer end.Close()
	d.Shutdown(context.Background())
	_ = end.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := end.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Error("the tunnel goes on:", err)
	}
}

// A request by http to another host is that host's, without the proxy's fields.
func TestOtherByHTTP(t *testing.T) {
	other := listen(t)
	got := make(chan *http.Request, 1)
	go http.Serve(other, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r
		fmt.Fprint(w, "hello")
	}))
	_, at := startDoor(t, other)
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET http://other.example.org/path?q HTTP/1.1\r\nHost: other.example.org\r\nProxy-Authorization: Basic x\r\nConnection: close\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if r := <-got; string(b) != "hello" || r.Host != "other.example.org" || r.URL.String() != "/path?q" || r.Header.Get("Proxy-Authorization") != "" {
		t.Errorf("%q of %s %s %v", b, r.Host, r.URL, r.Header)
	}
}
