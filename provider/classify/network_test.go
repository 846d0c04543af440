package classify_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// linkTo sends one request over a transport of its own, and returns what the error shows.
func linkTo(t *testing.T, ctx context.Context, to string, tr *http.Transport) (limit.Link, error) {
	t.Helper()
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(r)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("%s answered %d", to, resp.StatusCode)
	}
	return classify.LinkOf(ctx, err), err
}

// quiet is a server over TLS that does not write of what it refuses.
func quiet(t *testing.T, c *tls.Config) *httptest.Server {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = c
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// closed returns the address of a port that nobody listens on.
func closed(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// swallows accepts connections and ignores their bytes; with resets, a reset ends them.
func swallows(t *testing.T, resets bool) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if !resets {
				defer c.Close()
				continue
			}
			c.Read(make([]byte, 1000))
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		}
	}()
	return l.Addr().String()
}

// nameServer answers that there is no such name.
func nameServer(t *testing.T) *net.Resolver {
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	go func() {
		b := make([]byte, 1500)
		for {
			n, from, err := p.ReadFrom(b)
			if err != nil {
				return
			}
			b[2], b[3] = 0x81, 0x83 // an answer: NXDOMAIN
			p.WriteTo(b[:n], from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", p.LocalAddr().String())
	}}
}

// fails makes every connect fail as the kernel would.
func fails(no syscall.Errno) *http.Transport {
	d := &net.Dialer{Control: func(string, string, syscall.RawConn) error { return os.NewSyscallError("connect", no) }}
	return &http.Transport{DialContext: d.DialContext}
}

func TestLinkOf(t *testing.T) {
	ctx := context.Background()
	secure := quiet(t, nil)
	wantsOurs := quiet(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12})
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	trusted := func(c *tls.Config) *http.Transport {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AddCert(secure.Certificate())
		c.RootCAs.AddCert(wantsOurs.Certificate())
		return &http.Transport{TLSClientConfig: c}
	}
	proxy := func(r *http.Request) (*url.URL, error) { return url.Parse("http://" + closed(t)) }
	nobody := &net.Dialer{Resolver: nameServer(t)}
	hasty := &net.Dialer{Timeout: time.Nanosecond}
	for _, tc := range []struct {
		name string
		to   string
		tr   *http.Transport
		want limit.Link
	}{
		{"refused", "http://" + closed(t), &http.Transport{}, limit.Unreachable},
		{"the proxy refused", plain.URL, &http.Transport{Proxy: proxy}, limit.Unreachable},
		{"the proxy of a tunnel refused", secure.URL, &http.Transport{Proxy: proxy}, limit.Unreachable},
		{"no route", "http://127.0.0.1:9", fails(syscall.EHOSTUNREACH), limit.Unreachable},
		{"no network", "http://127.0.0.1:9", fails(syscall.ENETUNREACH), limit.Unreachable},
		{"no answer to a connect", plain.URL, &http.Transport{DialContext: hasty.DialContext}, limit.Unreachable},
		{"no answer to a connect to the proxy", secure.URL, &http.Transport{Proxy: proxy, DialContext: hasty.DialContext}, limit.Unreachable},
		{"does not speak TLS", "https://" + plain.Listener.Addr().String(), &http.Transport{}, limit.Unreachable},
		{"no such name", "http://nobody.test", &http.Transport{DialContext: nobody.DialContext}, limit.NoName},
		{"nobody vouches for it", secure.URL, &http.Transport{}, limit.BadCertificate},
		{"another name", secure.URL, trusted(&tls.Config{ServerName: "other.test"}), limit.BadCertificate},
		{"expired", secure.URL, trusted(&tls.Config{Time: func() time.Time { return time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC) }}), limit.BadCertificate},
		{"it wants a certificate", wantsOurs.URL, trusted(&tls.Config{}), limit.BadCertificate},
		{"no files", "http://127.0.0.1:9", fails(syscall.EMFILE), limit.NoFiles},
		{"reset", "http://" + swallows(t, true), &http.Transport{}, limit.Silent},
		{"no answer", "http://" + swallows(t, false), &http.Transport{ResponseHeaderTimeout: 10 * time.Millisecond}, limit.Silent},
		{"no answer to a handshake", "https://" + swallows(t, false), &http.Transport{TLSHandshakeTimeout: 10 * time.Millisecond}, limit.Silent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := linkTo(t, ctx, tc.to, tc.tr); got != tc.want {
				t.Errorf("%v, want %v: %v", got, tc.want, err)
			}
		})
	}
}

// A caller who has no more time, or gives up, says little of the host.
func TestTheCallersOwnEnd(t *testing.T) {
	late, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if got, err := linkTo(t, late, "http://"+swallows(t, false), &http.Transport{}); got != limit.Silent {
		t.Errorf("deadline: %v: %v", got, err)
	}
	over, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := (&net.Dialer{}).DialContext(over, "tcp", closed(t))
	if got := classify.LinkOf(over, err); got != limit.Silent {
		t.Errorf("deadline before the connect: %v: %v", got, err)
	}
	gone, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if got, err := linkTo(t, gone, "http://"+swallows(t, false), &http.Transport{}); got != limit.Implied {
		t.Errorf("cancelled: %v: %v", got, err)
	}
	if got := classify.LinkOf(context.Background(), nil); got != limit.Implied {
		t.Errorf("no error: %v", got)
	}
	own := errors.New("whatever")
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		want limit.Link
	}{
		{context.Background(), own, limit.Silent},
		{gone, own, limit.Implied},
		{context.Background(), fmt.Errorf("the pool: %w", context.Canceled), limit.Implied},
		{context.Background(), fmt.Errorf("a dialer of somebody's own: %w", syscall.ECONNREFUSED), limit.Unreachable},
		{context.Background(), fmt.Errorf("as a Client says it: %w", http.ErrSchemeMismatch), limit.Unreachable},
		{context.Background(), tls.RecordHeaderError{Msg: "SSH"}, limit.Unreachable},
		{context.Background(), x509.UnknownAuthorityError{}, limit.BadCertificate},
		{context.Background(), x509.HostnameError{}, limit.BadCertificate},
		{context.Background(), x509.CertificateInvalidError{}, limit.BadCertificate},
	} {
		if got := classify.LinkOf(tc.ctx, tc.err); got != tc.want {
			t.Errorf("%v, want %v: %T", got, tc.want, tc.err)
		}
	}
}

func TestLinkOfAStatus(t *testing.T) {
	for status, want := range map[int]limit.Link{200: limit.Working, 404: limit.Working, 429: limit.Working, 500: limit.Broken, 503: limit.Broken, 529: limit.Broken} {
		if got := new(classify.Policy).Of(&classify.Evidence{Status: status}).Link; got != want {
			t.Errorf("%d: %v, want %v", status, got, want)
		}
	}
}
