package proxy

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// A goroutine of net/http ends by itself half a second after it closed a connection with a body on the way, which is as long as goleak waits.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// proxied is a proxy at loopback, before an upstream.
type proxied struct {
	t      testing.TB
	proxy  *Proxy
	server *Server
	url    string
	addr   string
	admin  string
	log    *safeLog
	once   sync.Once
	dial   func(ctx context.Context, network, address string) (net.Conn, error) // to the proxy
}

// safeLog is what was logged.
type safeLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *safeLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *safeLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// upstreamOf serves h until the test ends.
func upstreamOf(t testing.TB, h http.HandlerFunc) *url.URL {
	t.Helper()
	s := httptest.NewUnstartedServer(inCoding(h))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return mustURL(t, s.URL)
}

func mustURL(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// start starts a proxy, which ends with the test. Upstreams of which only the handler is known have To filled in.
func start(t testing.TB, c Config) *proxied {
	t.Helper()
	return startAt(t, c, listen(t), listen(t), (&net.Dialer{}).DialContext)
}

func startAt(t testing.TB, c Config, main, admin net.Listener, dial func(ctx context.Context, network, address string) (net.Conn, error)) *proxied {
	t.Helper()
	x := &proxied{t: t, log: &safeLog{}, dial: dial}
	if c.Access == nil {
		c.Access = slog.New(slog.NewTextHandler(x.log, nil))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(x.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c.Listen, c.Admin = cmp.Or(c.Listen, "127.0.0.1:0"), cmp.Or(c.Admin, "127.0.0.1:0")
	var err error
	if x.proxy, err = New(c); err != nil {
		t.Fatal(err)
	}
	x.addr = main.Addr().String()
	x.url = "http://" + x.addr
	if admin != nil {
		x.admin = "http://" + admin.Addr().String()
	}
	x.server = x.proxy.Start(main, admin)
	t.Cleanup(x.stop)
	return x
}

// virtual starts a proxy before a server, in virtual time. Both end with the bubble.
func virtual(t *testing.T, server http.Handler, c Config) *proxied {
	t.Helper()
	down := fakeconn.New()
	return virtualAt(t, server, c, down, down.Dial)
}

// virtualAt is virtual with a network of its own to the proxy.
func virtualAt(t *testing.T, server http.Handler, c Config, down *fakeconn.Network,
	dial func(ctx context.Context, network, address string) (net.Conn, error)) *proxied {
	t.Helper()
	up := fakeconn.New()
	upstream := &http.Server{Handler: inCoding(server)}
	var done sync.WaitGroup
	done.Go(func() { upstream.Serve(up) })
	t.Cleanup(func() { upstream.Close(); done.Wait() })
	c.Dial = up.Dial
	return startAt(t, c, down, nil, dial)
}

func (x *proxied) stop() {
	x.once.Do(func() {
		x.server.Stop()
		x.server.Stop()
		if err := x.server.Wait(); err != nil {
			x.t.Error(err)
		}
	})
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// to is a Config of one upstream.
func to(u *url.URL, limits ...string) Config {
	return Config{Upstreams: []Upstream{{To: u, Limits: limitsOf(limits...)}}}
}

func limitsOf(texts ...string) (all []Limit) {
	for _, s := range texts {
		l, err := rate.ParseLimit(s)
		if err != nil {
			panic(err)
		}
		all = append(all, Limit{Limit: l})
	}
	return all
}

// clientOf returns a client that keeps no connections, so that none outlives a test.
func clientOf(t testing.TB) *http.Client { return clientBy(t, nil) }

// clientBy is clientOf with other connections.
func clientBy(t testing.TB, dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	tr := &http.Transport{DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: 1000}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Hour, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// do sends a request with header fields in pairs, and returns the answer and its body.
func (x *proxied) do(method, path, body string, fields ...string) (*http.Response, string) {
	x.t.Helper()
	resp, text, err := x.try(context.Background(), method, path, body, fields...)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp, text
}

func (x *proxied) try(ctx context.Context, method, path, body string, fields ...string) (*http.Response, string, error) {
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, x.url+path, b)
	if err != nil {
		return nil, "", err
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	resp, err := clientBy(x.t, x.dial).Do(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(plainly(resp))
	return resp, string(text), err
}

// raw sends bytes as they are, and returns all that is answered before the connection is closed, which it has to be soon.
func (x *proxied) raw(text string) string {
	x.t.Helper()
	c, err := x.dial(x.t.Context(), "tcp", x.addr)
	if err != nil {
		x.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		x.t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	b, err := io.ReadAll(bufio.NewReader(c))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		x.t.Errorf("%.60q: the connection stays open after %.200q", text, b)
	}
	return string(b)
}

func dial(t testing.TB, x *proxied) net.Conn {
	t.Helper()
	c, err := x.dial(t.Context(), "tcp", x.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}
