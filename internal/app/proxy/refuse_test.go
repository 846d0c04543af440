package proxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// refused reads a problem, and checks that header and body agree.
func refused(t *testing.T, resp *http.Response, body string) (p problem) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("%v: %q", err, body)
	}
	h := resp.Header
	if h.Get("Content-Type") != "application/problem+json" || p.Status != resp.StatusCode || p.Title == "" || p.Detail == "" || p.Error.Message != "paceline: "+p.Detail || h.Get(FieldWaited) == "" {
		t.Errorf("%d %v\n%s", resp.StatusCode, h, body)
	}
	if p.WaitMS > 0 {
		if want := strconv.FormatInt((p.WaitMS+999)/1000, 10); h.Get("Retry-After") != want || h.Get("Retry-After-Ms") != strconv.FormatInt(p.WaitMS, 10) {
			t.Errorf("Retry-After %s and %s ms, and wait_ms is %d", h.Get("Retry-After"), h.Get("Retry-After-Ms"), p.WaitMS)
		}
	}
	return p
}

// A wait that is longer than the client's or the proxy's bound is refused at once, and says for how
// long.
func TestRefusesLongWaits(t *testing.T) {
	for _, c := range []struct {
		limit, field, value string
		most                time.Duration // of the proxy
		again               string
	}{
		{"1/h", "X-None", "", time.Minute, "false"},
		{"1/50s", "X-None", "", 10 * time.Second, "true"},
		{"1/50s", "X-None", "", -1, "true"},
		{"1/50s", FieldMaxWait, "5", time.Minute, "false"},
		{"1/50s", FieldMaxWait, "0.5s", time.Minute, "false"},
		{"1/50s", FieldMaxWait, "0", time.Minute, "false"},
		{"1/50s", FieldMaxWait, "55", 10 * time.Second, "true"},
		{"1/50s", "X-Stainless-Timeout", "30", time.Minute, "false"},
		{"1/50s", "X-Stainless-Read-Timeout", "30.5", time.Minute, "false"},
		{"1/50s", "Grpc-Timeout", "20S", time.Minute, "false"},
	} {
		synctest.Test(t, func(t *testing.T) {
			served := &tally{n: map[string]int{}}
			conf := to(mustURL(t, "http://server.test"), c.limit)
			conf.MaxWait = c.most
			conf.Clients.Header = "X-Who"
			x := virtual(t, served, conf)
			if resp, _ := x.do("GET", "/", ""); resp.StatusCode != 200 {
				t.Fatal(resp.StatusCode)
			}
			began := time.Now()
			resp, body := x.do("GET", "/", "", c.field, c.value, "X-Who", "me")
			if n := served.lately()["/"]; resp.StatusCode != 429 || time.Since(began) > 0 || n != 1 {
				t.Fatalf("%+v: %d after %v, and the server was asked %d times", c, resp.StatusCode, time.Since(began), n)
			}
			p := refused(t, resp, body)
			if synctest.Wait(); !strings.Contains(x.log.String(), "failed=wait-too-long limit="+c.limit) {
				t.Errorf("%+v: the log has\n%s", c, x.log)
			}
			l := limitsOf(c.limit)[0]
			if wait := time.Duration(p.WaitMS) * time.Millisecond; wait > l.Per+l.Per/100 || wait < l.Per {
				t.Errorf("%+v: it says %v", c, wait)
			}
			if p.Type != Kinds+"wait-too-long" || p.Limit != c.limit || p.Ahead == nil || *p.Ahead != 0 || p.Client != "me" || p.Upstream != "server.test" || resp.Header.Get("X-Should-Retry") != c.again {
				t.Errorf("%+v: %v %s", c, resp.Header, body)
			}
			// Retry-After is true: a client that comes back then goes.
			time.Sleep(time.Duration(p.WaitMS) * time.Millisecond)
			if resp, body := x.do("GET", "/", "", FieldMaxWait, "0"); resp.StatusCode != 200 {
				t.Errorf("%+v: as told, after %d ms: %d %s", c, p.WaitMS, resp.StatusCode, body)
			}
		})
	}
}

// A request that waits in vain for another one to end says so. Before, its turn "would come in no time", and it would wait
// longer than that.
func TestSaysThatAWaitWasInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := to(mustURL(t, "http://server.test"))
		conf.Upstreams[0].InFlight = 1
		x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Minute) }), conf)
		var first sync.WaitGroup
		first.Go(func() { x.do("GET", "/", "") })
		synctest.Wait()
		resp, body := x.do("GET", "/", "", FieldMaxWait, "20")
		p := refused(t, resp, body)
		if says := "the request waited 20s and had no turn at server.test, by the limit 1 in flight"; p.Type != Kinds+"wait-too-long" ||
			!strings.Contains(p.Detail, says) || strings.Contains(p.Detail, "would come") {
			t.Errorf("%s, want %q", body, says)
		}
		first.Wait()
	})
}

// A bound that is long enough is waited for, and the answer says how long.
func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := virtual(t, http.HandlerFunc(hello), to(mustURL(t, "http://server.test"), "1/300ms"))
		x.do("GET", "/", "")
		began := time.Now()
		resp, _ := x.do("GET", "/", "", FieldMaxWait, "10")
		if took := time.Since(began).Milliseconds(); resp.StatusCode != 200 || took < 300 || took > 310 || resp.Header.Get(FieldWaited) != strconv.FormatInt(took, 10) {
			t.Errorf("%d, after %d ms, waited %s ms", resp.StatusCode, took, resp.Header.Get(FieldWaited))
		}
		synctest.Wait()
		if !strings.Contains(x.log.String(), "waited_ms="+resp.Header.Get(FieldWaited)+".") {
			t.Errorf("waited %s ms, and the log has\n%s", resp.Header.Get(FieldWaited), x.log)
		}
		if cause := "waited_for_ms.1/300ms=" + resp.Header.Get(FieldWaited); strings.Count(x.log.String(), cause) != 1 || strings.Count(x.log.String(), "waited_for_ms") != 1 {
			t.Errorf("%s is missing, or the one that did not wait has a cause:\n%s", cause, x.log)
		}
	})
}

// More than a client may have in line is refused, and others still get in.
func TestRefusesFullLines(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	conf := to(u, "1/20s")
	conf.Clients = Clients{Header: "X-Who", Default: Client{MaxWaiting: 1}}
	x := start(t, conf)
	x.do("GET", "/", "")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); x.try(ctx, "GET", "/", "", "X-Who", "a") }()
	until(t, func() bool { return x.proxy.visits.count() == 1 && waiting(x) == 1 })
	resp, body := x.do("GET", "/", "", "X-Who", "a")
	if p := refused(t, resp, body); resp.StatusCode != 429 || p.Type != Kinds+"line-full" || p.Client != "a" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	resp, body = x.do("GET", "/", "", "X-Who", "b", FieldMaxWait, "0")
	if p := refused(t, resp, body); p.Type != Kinds+"wait-too-long" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	cancel()
	<-gone
}

// waiting is how many are in line at the first upstream.
func waiting(x *proxied) (n int) {
	for _, p := range x.proxy.routes[0].transport.Partitions() {
		n += p.Waiting
	}
	return n
}

func until(t testing.TB, is func() bool) {
	t.Helper()
	for range 10_000 {
		if is() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it does not come to that")
}

// A client that goes away frees its place in line at once, whatever it was sending.
func TestGoneClientsFreeTheirPlace(t *testing.T) {
	n := 0
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) { n++ })
	for name, request := range map[string]string{
		"no body":    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"small":      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"large":      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n" + strings.Repeat("x", 500000),
		"chunked":    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"unfinished": "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		x := start(t, to(u, "1/20s"))
		x.do("GET", "/", "")
		c := dial(t, x)
		io.WriteString(c, request)
		until(t, func() bool { return waiting(x) == 1 })
		c.Close()
		until(t, func() bool { return waiting(x) == 0 })
		until(t, func() bool { return strings.Contains(x.log.String(), "status=499") })
		x.stop()
		if !strings.Contains(x.log.String(), "failed=client-gone") {
			t.Errorf("%s: the log has\n%s", name, x.log)
		}
	}
	if n != 5 {
		t.Errorf("the server was asked %d times", n)
	}
}

// An upstream may be unreachable, have the wrong certificate, never answer, or break off. Each gets
// its own answer, and an unsent request does not count.
func TestUpstreamsThatFail(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	over := make(chan struct{})
	silent := upstreamOf(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	cut := upstreamOf(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for _, c := range []struct {
		to, kind string
		status   int
		says     string
		counts   bool
	}{
		{"http://" + free.Addr().String(), "unreachable", 502, "connection refused", false},
		{"http://nowhere.invalid", "unreachable", 502, "nowhere.invalid", false},
		{secure.URL, "unreachable", 502, "certificate", false},
		{strings.Replace(plain.String(), "http:", "https:", 1), "unreachable", 502, "TLS handshake", false},
		{silent.String(), "no-answer", 504, "within 100ms", true},
		{cut.String(), "cut-off", 502, "may have served", true},
	} {
		conf := to(mustURL(t, c.to), "2/h")
		conf.MaxWait, conf.Upstreams[0].Attempts, conf.Upstreams[0].MaxOutage = -1, 1, -1
		if c.status == 504 {
			conf.Upstreams[0].AnswerTimeout = 100 * time.Millisecond
		}
		conf.Upstreams[0].TLS = &tls.Config{}
		x := start(t, conf)
		resp, body := x.do("POST", "/", "{}")
		p := refused(t, resp, body)
		if resp.StatusCode != c.status || p.Type != Kinds+c.kind || !strings.Contains(p.Detail, c.says) {
			t.Errorf("%s: %d %s", c.to, resp.StatusCode, body)
		}
		for range 3 { // two may be sent in an hour, and what has not gone out does not count
			if _, body := x.do("POST", "/", "{}"); !c.counts && strings.Contains(body, "wait-too-long") {
				t.Errorf("%s: what was not sent counts: %s", c.to, body)
			}
		}
	}
}

// A body that is too long, by its stated or its real length, is refused, and the connection closed.
func TestBodiesTooLong(t *testing.T) {
	var whole atomic.Int64 // the beginning of a body of unknown length may be on its way before it is too long
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			whole.Add(1)
		}
	})
	conf := to(u)
	conf.Bounds.Body = 1000
	x := start(t, conf)
	long := strings.Repeat("x", 1001)
	for name, request := range map[string]string{
		"said":    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n" + long,
		"chunked": fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n%s\r\n0\r\n\r\n", long),
		"awaited": "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n",
	} {
		got := x.raw(request)
		if !strings.HasPrefix(got, "HTTP/1.1 413 ") || !strings.Contains(got, "body-too-long") || !strings.Contains(got, "\r\nConnection: close\r\n") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if resp, _ := x.do("POST", "/", long[1:]); resp.StatusCode != 200 || whole.Load() != 1 {
		t.Errorf("a body of 1000: %d; %d came whole", resp.StatusCode, whole.Load())
	}
}

// A client that stops in the middle of its body is given up.
func TestBodiesThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := to(mustURL(t, "http://server.test"))
		conf.Bounds.Stall = 5 * time.Second
		x := virtual(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), conf)
		for _, head := range []string{"Content-Length: 10", "Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			began := time.Now()
			got := x.raw("POST / HTTP/1.1\r\nHost: a\r\n" + head + "\r\n\r\n5\r\nh")
			if took := time.Since(began); !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, "body-stalled") || took < 5*time.Second || took > 6*time.Second {
				t.Errorf("%s: %q after %v", head, got, took)
			}
		}
	})
}

// The answer for an unknown path lists the known ones.
func TestNoUpstream(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	x := start(t, Config{Upstreams: []Upstream{{Name: "a", Path: "/a", To: u}, {Name: "b", Path: "/b/c/", To: u}, {Name: "h", Host: "api.test", To: u}}})
	for target, want := range map[string]int{"/a": 200, "/a/": 200, "/a?x": 200, "/ab": 404, "/b/c/d": 200, "/b/cd": 404, "/": 404, "/%61/x": 404} {
		resp, body := x.do("GET", target, "")
		if resp.StatusCode != want {
			t.Errorf("%s: %d", target, resp.StatusCode)
		}
		if want == 404 && !strings.Contains(body, "/a/…") {
			t.Errorf("%s: %s", target, body)
		}
	}
	for host, want := range map[string]string{"api.test": "200", "API.test:1234": "200", "api.test.": "200", "xapi.test": "404"} {
		if got := x.raw("GET /zzz HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(got, "HTTP/1.1 "+want) {
			t.Errorf("%s: %q", host, got)
		}
	}
}
