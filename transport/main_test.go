package transport_test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// base is a server within the process: it is asked on the goroutine of the client, and notes when.
type base struct {
	latency time.Duration
	serve   func(n int, r *http.Request) *http.Response // n counts from 1

	mu    sync.Mutex
	begin time.Time
	sent  []time.Duration
	paths []string
}

func newBase(latency time.Duration, serve func(n int, r *http.Request) *http.Response) *base {
	return &base{latency: latency, serve: serve, begin: time.Now()}
}

func (b *base) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	b.mu.Lock()
	b.sent = append(b.sent, time.Since(b.begin))
	b.paths = append(b.paths, r.URL.Path)
	n := len(b.sent)
	b.mu.Unlock()
	time.Sleep(b.latency)
	resp := b.serve(n, r)
	resp.Request = r
	return resp, nil
}

func (b *base) at() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Duration(nil), b.sent...)
}

// reply is an answer with header fields in pairs.
func reply(status int, body string, fields ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Set(fields[i], fields[i+1])
	}
	return &http.Response{
		Status: strconv.Itoa(status), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func ok(int, *http.Request) *http.Response { return reply(200, "fine") }

func mustNew(t testing.TB, c transport.Config) *transport.Transport {
	t.Helper()
	if spoken != nil && c.Base != nil {
		c.Base = spoken.RoundTripper(c.Base)
	}
	tr, err := transport.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// rolling is a limit without a margin, so that instants come out even.
func rolling(t testing.TB, n int64, window time.Duration, unit limit.Unit) *limit.Rolling {
	t.Helper()
	l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Margin: -1, Unit: unit})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func get(t testing.TB, url string, fields ...string) *http.Request {
	t.Helper()
	return request(t, http.MethodGet, url, "", fields...)
}

func request(t testing.TB, method, url, body string, fields ...string) *http.Request {
	t.Helper()
	var b io.Reader
	if body != "" {
		b = bytes.NewReader([]byte(body))
	}
	r, err := http.NewRequest(method, url, b)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// do sends, and reads the answer.
func do(t testing.TB, tr http.RoundTripper, r *http.Request) (status int, body string, err error) {
	t.Helper()
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(plainly(resp))
	if err != nil {
		t.Fatalf("reading the answer: %v", err)
	}
	return resp.StatusCode, string(b), nil
}

func seconds(s ...float64) []time.Duration {
	var d []time.Duration
	for _, v := range s {
		d = append(d, time.Duration(v*float64(time.Second)))
	}
	return d
}
