package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// forwarded is a proxy that is a forward proxy, too. Its upstream is https://example.com.
type forwarded struct {
	*proxied
	at    *url.URL // of the forward proxy
	trust *x509.CertPool
}

// forwardTo starts a forward proxy before a server, which has the name example.com, and an http one of
// the same name.
func forwardTo(t *testing.T, h http.HandlerFunc, change func(*Config)) *forwarded {
	t.Helper()
	secure := httptest.NewUnstartedServer(h)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	plain := httptest.NewServer(h)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	trust := x509.NewCertPool()
	trust.AddCert(secure.Certificate())
	c := to(mustURL(t, "https://example.com"), "1000/s")
	c.Upstreams[0].TLS = &tls.Config{RootCAs: trust}
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		switch address {
		case "example.com:443":
			address = secure.Listener.Addr().String()
		case "example.com:80":
			address = plain.Listener.Addr().String()
		default:
			return nil, fmt.Errorf("nobody is at %s", address)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	l := listen(t)
	c.Forward = Forward{Listen: l.Addr().String(), Bundle: filepath.Join(t.TempDir(), "bundle.pem")}
	if change != nil {
		change(&c)
	}
	f := &forwarded{proxied: start(t, c), at: mustURL(t, "http://"+l.Addr().String()), trust: x509.NewCertPool()}
	tunnels := forward.PublicTunnels
	if _, err := f.server.Forward(Forwarding{Listener: l, Bundle: c.Forward.Bundle, Getenv: func(string) string { return "" }, Tunnels: tunnels}); err != nil {
		t.Fatal(err)
	}
	bundle, err := os.ReadFile(c.Forward.Bundle)
	if err != nil || !f.trust.AppendCertsFromPEM(bundle) {
		t.Fatal("no bundle", err)
	}
	return f
}

// program is an HTTP client that knows of the proxy and its bundle alone.
func (f *forwarded) program(password string) *http.Client {
	at := *f.at
	if password != "" {
		at.User = url.UserPassword("any", password)
	}
	tr := &http.Transport{Proxy: http.ProxyURL(&at), TLSClientConfig: &tls.Config{RootCAs: f.trust}, ForceAttemptHTTP2: true}
	f.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

func fetch(t *testing.T, c *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// A program as it is, with HTTPS_PROXY and a bundle, is served by HTTP/2 and HTTP/1.1, over TLS and
// not. All of its requests count in the upstream's limit.
func TestForward(t *testing.T) {
	f := forwardTo(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"`)
		fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Host, r.RequestURI, r.Header.Get("Proxy-Authorization"))
	}, func(c *Config) { c.Upstreams[0].Limits = limitsOf("4/h"); c.MaxWait = time.Second })
	program := f.program("")
	resp, text := fetch(t, program, "https://example.com/v1/things?a=b%20c")
	if resp.Proto != "HTTP/2.0" || text != "HTTP/2.0 example.com /v1/things?a=b%20c " {
		t.Errorf("%s: %q", resp.Proto, text)
	}
	if resp.Header.Get("Alt-Svc") != "" {
		t.Error("the client is led away:", resp.Header)
	}
	if _, text = fetch(t, program, "http://example.com/./Packages"); text != "HTTP/1.1 example.com /./Packages " {
		t.Errorf("%q", text)
	}
	old := f.program("")
	old.Transport.(*http.Transport).Protocols = new(http.Protocols)
	old.Transport.(*http.Transport).Protocols.SetHTTP1(true)
	if resp, text = fetch(t, old, "https://example.com"); resp.Proto != "HTTP/1.1" || !strings.HasSuffix(text, " example.com / ") {
		t.Errorf("%s: %q", resp.Proto, text)
	}
	fetch(t, program, "https://example.com/4")
	if resp, text = fetch(t, program, "https://example.com/5"); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the fifth of an hour: %s %q", resp.Status, text)
	}
}

// The bundle has no key, and what the authority could sign for another host is trusted by nobody.
func TestForwardBundle(t *testing.T) {
	f := forwardTo(t, func(http.ResponseWriter, *http.Request) {}, nil)
	bundle, err := os.ReadFile(f.proxy.config.Forward.Bundle)
	if err != nil || strings.Contains(string(bundle), "PRIVATE") {
		t.Fatal("a key in the bundle, or none at all:", err)
	}
	if _, err := os.Stat("/etc/ssl/certs/ca-certificates.crt"); err == nil && strings.Count(string(bundle), "BEGIN CERTIFICATE") < 50 {
		t.Error("the system's certificates are not in the bundle")
	}
}

// Each line is a request to the forward proxy that is not taken.
func TestForwardRefuses(t *testing.T) {
	private := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a private address was reached")
	}))
	defer private.Close()
	_, port, _ := net.SplitHostPort(private.Listener.Addr().String())
	f := forwardTo(t, func(http.ResponseWriter, *http.Request) {}, nil)
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n":                                 "400 | this is a forward proxy",
		"GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n":              "400 | this is a forward proxy",
		"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\n\r\n":                           "502 | not on the public network",
		"CONNECT localhost:443 HTTP/1.1\r\nHost: x\r\n\r\n":                           "502 | not on the public network",
		"CONNECT [::ffff:10.0.0.1]:443 HTTP/1.1\r\nHost: x\r\n\r\n":                   "502 | not on the public network",
		"CONNECT [64:ff9b::7f00:1]:443 HTTP/1.1\r\nHost: x\r\n\r\n":                   "502 | not on the public network",
		"CONNECT 127.0.0.1:" + port + " HTTP/1.1\r\nHost: x\r\n\r\n":                  "403 | port 443 alone",
		"CONNECT mail.example.org:25 HTTP/1.1\r\nHost: x\r\n\r\n":                     "403 | port 443 alone",
		"CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n":                   "400 | expected a port",
		"GET http://127.0.0.1:" + port + "/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n":      "403 | port 80 alone",
		"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n":                   "502 | not on the public network",
		"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n": "502 | not on the public network",
	} {
		if got := f.raw(request); !strings.HasPrefix(got, want[:3]) || !strings.Contains(got, want[6:]) {
			t.Errorf("%q: %q, want %s", request, got, want)
		}
	}
}

// raw sends a request as it is and returns the status and the body of the answer.
func (f *forwarded) raw(request string) string {
	f.t.Helper()
	c, err := net.Dial("tcp", f.at.Host)
	if err != nil {
		f.t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		f.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, b)
}

// Where clients have keys, a program sends its own as the proxy's password. It is admitted by that
// alone, its own credentials go to the server, and the proxy's key does not.
func TestForwardByKey(t *testing.T) {
	f := forwardTo(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header) }, func(c *Config) {
		c.Clients.List = []Client{{Name: "alice", Keys: []KeyHash{HashKey("alice-key-1")}}}
	})
	if _, err := f.program("").Get("https://example.com/"); err == nil || !strings.Contains(err.Error(), "Proxy Authentication Required") {
		t.Error("without a key:", err)
	}
	if _, err := f.program("wrong").Get("https://example.com/"); err == nil {
		t.Error("a wrong key is admitted")
	}
	r, _ := http.NewRequest("GET", "https://example.com/", nil)
	r.Header.Set("Authorization", "Bearer its-own")
	resp, err := f.program("alice-key-1").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	if text := string(b); !strings.Contains(text, "its-own") || strings.Contains(text, "alice-key-1") {
		t.Error("the server got", text)
	}
	if log := f.log.String(); !strings.Contains(log, "client=alice") || strings.Contains(log, "alice-key-1") {
		t.Error(log)
	}
}

// An upstream's own keys replace the program's, and go over https alone.
func TestForwardAddsKeys(t *testing.T) {
	f := forwardTo(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header["Authorization"]) }, func(c *Config) {
		c.Upstreams[0].Keys = []Key{{Name: "k", Secret: "real-key"}}
		c.Upstreams[0].Header = []Field{{Name: "Authorization", Value: "Bearer {key}"}}
	})
	program := f.program("")
	r, _ := http.NewRequest("GET", "https://example.com/", nil)
	r.Header.Set("Authorization", "Bearer placeholder")
	resp, err := program.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "[Bearer real-key]" {
		t.Errorf("%q", b)
	}
	if resp, text := fetch(t, program, "http://example.com/"); resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "in-the-clear") {
		t.Errorf("%s %q", resp.Status, text)
	}
}

// A connection is for the host of its CONNECT, whatever its requests say.
func TestForwardMisdirected(t *testing.T) {
	f := forwardTo(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	r, _ := http.NewRequest("GET", "https://example.com/", nil)
	r.Host = "other.example.com"
	resp, err := f.program("").Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Error(resp.Status)
	}
}

// Streams, uploads in chunks and upgrades pass as they do by the base URL.
func TestForwardStreams(t *testing.T) {
	more := make(chan bool)
	f := forwardTo(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/events":
			for i := range 2 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				http.NewResponseController(w).Flush()
				<-more
			}
		case "/upload":
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		case "/socket":
			c, rw, _ := http.NewResponseController(w).Hijack()
			defer c.Close()
			fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
			rw.Flush()
			line, _ := rw.ReadString('\n')
			fmt.Fprint(c, "echo "+line)
		}
	}, nil)
	program := f.program("")
	resp, err := program.Get("https://example.com/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	for i := range 2 {
		if line, err := events.ReadString('\n'); line != fmt.Sprintf("data: %d\n", i) {
			t.Fatal(line, err)
		}
		_, _ = events.ReadString('\n')
		more <- true
	}
	up, err := program.Post("https://example.com/upload", "", io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20))))
	if err != nil {
		t.Fatal(err)
	}
	defer up.Body.Close()
	if b, _ := io.ReadAll(up.Body); string(b) != "1048576 <nil>" {
		t.Errorf("%s", b)
	}
	first := f.program("").Transport.(*http.Transport)
	first.ForceAttemptHTTP2 = false
	first.Protocols = new(http.Protocols)
	first.Protocols.SetHTTP1(true)
	for _, scheme := range []string{"http", "https"} {
		r, _ := http.NewRequest("GET", scheme+"://example.com/socket", nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		socket, err := first.RoundTrip(r)
		if err != nil || socket.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(scheme, socket, err)
		}
		both := socket.Body.(io.ReadWriteCloser)
		fmt.Fprintln(both, "hello")
		if line, err := bufio.NewReader(both).ReadString('\n'); line != "echo hello\n" {
			t.Error(scheme, line, err)
		}
		both.Close()
	}
}

// A reader of a tunnel may pause for longer than one of an answer.
func TestForwardPausingReader(t *testing.T) {
	const size = 16 << 20 // more than the network keeps
	other := listen(t)
	defer other.Close()
	go func() {
		c, err := other.Accept()
		if err == nil {
			_, _ = c.Write(make([]byte, size))
			c.Close()
		}
	}()
	c := to(mustURL(t, "https://example.com"), "1/s")
	c.Bounds.Stall = 100 * time.Millisecond
	l := listen(t)
	c.Forward = Forward{Listen: l.Addr().String(), Bundle: filepath.Join(t.TempDir(), "bundle.pem")}
	x := start(t, c)
	if _, err := x.server.Forward(Forwarding{Listener: l, Bundle: c.Forward.Bundle, Getenv: func(string) string { return "" }, Tunnels: forward.AnyTunnels}); err != nil {
		t.Fatal(err)
	}
	at, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	fmt.Fprintf(at, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", other.Addr())
	r := bufio.NewReader(at)
	if resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	time.Sleep(5 * c.Bounds.Stall) // what is tested is that nothing happens in this time
	if n, err := io.Copy(io.Discard, r); n != size || err != nil {
		t.Errorf("%d of %d bytes, %v", n, size, err)
	}
}

// A program that does not trust the bundle fails, and the log says why, once.
func TestForwardUntrusted(t *testing.T) {
	f := forwardTo(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, nil)
	program := f.program("")
	program.Transport.(*http.Transport).TLSClientConfig.RootCAs = x509.NewCertPool()
	for range 2 {
		if _, err := program.Get("https://example.com/"); err == nil {
			t.Fatal("the program trusts anybody")
		}
	}
	ends := func() int { return strings.Count(f.log.String(), "remote error: tls: bad certificate") }
	for end := time.Now().Add(time.Minute); ends() < 3 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if n := strings.Count(f.log.String(), "does not trust the certificates"); n != 1 {
		t.Errorf("%d lines say so:\n%s", n, f.log.String())
	}
}

// Wrong configurations of a forward proxy are named.
func TestForwardConfig(t *testing.T) {
	for want, forward := range map[string]Forward{
		"Forward.Listen: \"7880\", expected HOST:PORT":      {Listen: "7880", Bundle: "b"},
		"can be reached from other machines":                {Listen: "0.0.0.0:7880", Bundle: "b"},
		"another address of this proxy":                     {Listen: DefaultListen, Bundle: "b"},
		"Forward.Bundle: none, expected a file to write":    {Listen: "127.0.0.1:7880"},
		"Forward.Tunnels: \"any\", expected public or none": {Listen: "127.0.0.1:7880", Bundle: "b", Tunnels: "any"},
	} {
		c := to(mustURL(t, "https://example.com"), "1/s")
		c.Forward = forward
		if _, err := c.Checked(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", forward, err, want)
		}
	}
}

// A whole URL belongs to the upstream whose folder servers find it in, however it is written. With
// keys of the proxy, no path outside of a folder is reached.
func TestForwardFolders(t *testing.T) {
	f := forwardTo(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("X-Key")) }, func(c *Config) {
		chat := c.Upstreams[0]
		c.Upstreams[0].To, c.Upstreams[0].Path = mustURL(t, "https://example.com/v1"), "/a"
		chat.Name, chat.To, chat.Path, chat.Header = "chat", mustURL(t, "https://example.com/v1/chat"), "/b", []Field{{Name: "X-Key", Value: "chat-key-123456789"}}
		c.Upstreams = append(c.Upstreams, chat)
	})
	program := f.program("")
	for path, want := range map[string]string{
		"/v1/x": "", "/v1/chat": "chat-key-123456789", "/v1/chat/x": "chat-key-123456789", "/v1//chat": "chat-key-123456789",
		"/v1/%63hat": "chat-key-123456789", "/V1/chat": "chat-key-123456789", "/v1/./chat": "chat-key-123456789", "/v1/chatter": "",
		"/v2": "",
	} {
		if resp, text := fetch(t, program, "https://example.com"+path); resp.StatusCode != http.StatusOK || text != want {
			t.Errorf("%s: %s %q, want %q", path, resp.Status, text, want)
		}
	}
	g := forwardTo(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, func(c *Config) {
		c.Upstreams[0].To = mustURL(t, "https://example.com/v1/chat")
		c.Upstreams[0].Header = []Field{{Name: "X-Key", Value: "chat-key-123456789"}}
	})
	if resp, _ := fetch(t, g.program(""), "https://example.com/v1/admin"); resp.StatusCode != http.StatusNotFound {
		t.Error(resp.Status)
	}
}

// An address is named in whatever form it is written.
func TestForwardNames(t *testing.T) {
	for _, at := range []string{"https://[2001:db8::1]", "https://[2001:DB8:0::1]", "https://[2001:db8::1]:443"} {
		p, err := New(to(mustURL(t, at), "1/s"))
		if err != nil {
			t.Fatal(err)
		}
		if !p.named("2001:db8::1", "443") || p.named("2001:db8::2", "443") || p.named("2001:db8::1", "8443") {
			t.Error(at)
		}
		p.close()
	}
}

// A program whose host cannot be reached gets an answer, also for a path that is shorter than the
// upstream's own.
func TestForwardUnreachable(t *testing.T) {
	f := forwardTo(t, nil, func(c *Config) {
		c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody is there") }
		c.Upstreams[0].Path, c.Upstreams[0].MaxOutage = "/long/path", -1
	})
	if resp, text := fetch(t, f.program(""), "https://example.com/"); resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, "nobody is there") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// An upstream is at its host and port. One at the port of its scheme is also at that of the other scheme, where a URL
// names none.
func TestIsAt(t *testing.T) {
	for to, want := range map[string][]string{
		"http://h.test": {"80", "443"}, "https://h.test/folder": {"80", "443"}, "https://h.test:443": {"80", "443"},
		"http://h.test:8080": {"8080"}, "https://h.test:80": {"80"}, "http://h.test:443": {"443"},
	} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		var at []string
		for _, port := range []string{"80", "443", "8080", ""} {
			if isAt(u, "other.test", port) {
				t.Errorf("%s is at another host", to)
			}
			if isAt(u, "h.test", port) {
				at = append(at, port)
			}
		}
		if !slices.Equal(at, want) {
			t.Errorf("%s is at the ports %q, want %q", to, at, want)
		}
	}
}
