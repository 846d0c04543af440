package proxy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

// drain takes an answer and keeps nothing of it.
type drain struct{ header http.Header }

func (w *drain) Header() http.Header             { return w.header }
func (w *drain) Write(b []byte) (int, error)     { return len(b), nil }
func (w *drain) WriteHeader(int)                 {}
func (w *drain) Flush()                          {}
func (w *drain) SetReadDeadline(time.Time) error { return nil }
func (w *drain) EnableFullDuplex() error         { return nil }

// atHand answers without a network.
type atHand struct{}

func (atHand) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"text/plain"}},
		Body: io.NopCloser(strings.NewReader("fine")), ContentLength: 4, Request: r,
	}, nil
}

// handlers are ReverseProxy alone and the proxy, both before a server at hand.
func handlers(t testing.TB) (plain, ours http.Handler) {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: "upstream"}
	quiet := slog.New(slog.DiscardHandler)
	p, err := New(Config{Upstreams: []Upstream{{To: to, Limits: limitsOf("1000000000/s")}}, Live: true, Log: quiet, Access: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	u := p.routes[0]
	c := u.settings(&p.config)
	c.Base, c.Clients = atHand{}, p.clientele.Clients
	c.Limit = func(at transport.Partition) limit.Limiter { return u.now.Load().of(at).held(true) }
	if u.proxy.Transport, err = transport.New(c); err != nil {
		t.Fatal(err)
	}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: atHand{}, BufferPool: buffers{}}, p
}

// visited sends a request through a handler.
func visited(h http.Handler, method string) {
	r := httptest.NewRequest(method, "/v1/things?x=1", nil)
	if method == http.MethodPost {
		r = httptest.NewRequest(method, "/v1/things?x=1", strings.NewReader(`{"a":1}`))
	}
	r.RemoteAddr = "127.0.0.1:1234"
	h.ServeHTTP(&drain{http.Header{}}, r)
}

// BenchmarkProxy measures the cost of a request beside net/http and the network, for ReverseProxy
// alone and for the proxy:
//
//	go test ./internal/app/proxy -run '^$' -bench BenchmarkProxy
func BenchmarkProxy(b *testing.B) {
	cli.Ballast() // as paceline proxy
	plain, ours := handlers(b)
	for _, c := range []struct {
		name string
		h    http.Handler
	}{{"ReverseProxy", plain}, {"paceline", ours}} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			b.Run(c.name+"/"+method, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					visited(c.h, method)
				}
			})
		}
	}
}

// The allocations of a request beside ReverseProxy's do not creep up.
func TestAllocations(t *testing.T) {
	race.Without(t) // which allocates, too
	plain, ours := handlers(t)
	for method, most := range map[string]float64{http.MethodGet: 29, http.MethodPost: 36} {
		count := func(h http.Handler) (n float64) { // what else goes on in this process may allocate, too
			for i := range 5 {
				if each := testing.AllocsPerRun(50, func() { visited(h, method) }); i == 0 || each < n {
					n = each
				}
			}
			return n
		}
		if more := count(ours) - count(plain); more > most {
			t.Errorf("%s: %v allocations more than ReverseProxy, want %v at most", method, more, most)
		}
	}
}

// Rare parts of a visit are elsewhere: each request takes the memory of a visit.
func TestVisitIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(visit{}); n > 448 { // the next class of sizes is 480
		t.Errorf("a visit takes %d bytes", n)
	}
}
