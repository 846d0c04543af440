package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// link is how a client speaks to a server.
type link struct {
	name       string
	secure, h2 bool
	lines      bool
}

var links = []link{{name: "http1"}, {name: "https1", secure: true}, {name: "h2", secure: true, h2: true}, {name: "h2c", h2: true},
	{name: "lines", lines: true}, {name: "lines over TLS", secure: true, lines: true}}

// ofLines marks a transport that is to be used by Lines.
const ofLines = 99

// start starts a server, and returns it with its URL and a transport that speaks to it.
func (l link) start(tb testing.TB, next func() act) (*server, string, *http.Transport) {
	p := new(http.Protocols)
	t := &http.Transport{Protocols: p, MaxIdleConnsPerHost: 100, ExpectContinueTimeout: time.Second}
	tb.Cleanup(t.CloseIdleConnections)
	if l.lines {
		t.MaxIdleConnsPerHost = ofLines
	}
	switch {
	case !l.secure:
		p.SetHTTP1(!l.h2)
		p.SetUnencryptedHTTP2(l.h2)
		s := serve(tb, nil, l.h2, next)
		return s, "http://" + s.ln.Addr().String(), t
	case l.h2:
		p.SetHTTP2(true)
		server, client := tlsConfigs("h2")
		t.TLSClientConfig = client
		s := serve(tb, server, true, next)
		return s, "https://" + s.ln.Addr().String(), t
	}
	p.SetHTTP1(true)
	p.SetHTTP2(!l.lines) // offered, and not taken
	server, client := tlsConfigs("http/1.1")
	t.TLSClientConfig = client
	s := serve(tb, server, false, next)
	return s, "https://" + s.ln.Addr().String(), t
}

func over1(tb testing.TB, t http.RoundTripper) *Base {
	b := NewBase(t)
	if t, ok := t.(*http.Transport); ok && t.MaxIdleConnsPerHost == ofLines {
		if b = Lines(t); b.lines == nil {
			tb.Fatal("there are no lines")
		}
	}
	tb.Cleanup(b.CloseIdleConnections)
	return b
}

// shape is a kind of request: those that net/http sends again, and those that it does not.
type shape struct {
	method, key string
	body        int // bytes; 0: none
	rewinds     bool
}

var shapes = []shape{
	{"GET", "", 0, true}, {"POST", "", 10, true}, {"PUT", "", 10, true}, {"POST", "Idempotency-Key", 10, true},
	{"HEAD", "", 0, true}, {"POST", "X-Idempotency-Key", 0, true}, {"PUT", "", 10, false}, {"PUT", "", 100_000, true}, {"DELETE", "", 0, true},
	{"PUT", "Expect", 10, true},
}

func (s shape) String() string { return fmt.Sprintf("%s/%d%s", s.method, s.body, s.key) }

func (s shape) request(ctx context.Context, url string, id int) *http.Request {
	var body io.Reader
	if s.body > 0 {
		body = strings.NewReader(strings.Repeat("x", s.body))
	}
	r, err := http.NewRequestWithContext(ctx, s.method, url, body)
	if err != nil {
		panic(err)
	}
	r.Header.Set("X-Id", idOf(id))
	if s.key != "" {
		r.Header.Set(s.key, "100-continue") // a key may be anything
	}
	if !s.rewinds {
		r.GetBody = nil
	}
	return r
}

// finish reads an answer to its end.
func finish(resp *http.Response, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// alternately answers one request of a connection and does something else with the second. Where there are many requests
// at a time, roughly so.
func alternately(do act) func() act {
	var n atomic.Int64
	return func() act {
		if n.Add(1)%2 == 1 {
			return answer
		}
		return do
	}
}

// A server that answers the first request of each connection and fails the second, once it has read it: 100 requests arrive 100
// times. net/http alone sends more, which is what shows that the test tests.
func TestArrivesOnce(t *testing.T) {
	for _, l := range links {
		fails := []act{closeRead, resetRead, answerClose}
		if l.h2 {
			fails = []act{refuse, goAway, protocol, closeRead, resetRead, early}
		}
		for _, do := range fails {
			for _, kind := range shapes {
				t.Run(fmt.Sprint(l.name, "/", do, "/", kind), func(t *testing.T) { arrivesOnce(t, l, do, kind) })
			}
		}
	}
}

func arrivesOnce(t *testing.T, l link, do act, kind shape) {
	t.Parallel()
	s, url, bare := l.start(t, alternately(do))
	b := over1(t, bare)
	for i := range 6 {
		a := new(Exchange)
		status, err := finish(b.Send(kind.request(t.Context(), url, i), a))
		came := s.came(i)
		switch {
		case came > 1 || came == 1 && !a.Written() || (err == nil) != (status == 200):
			t.Fatalf("request %d: arrived %d times, written %v, status %d, error %v", i, came, a.Written(), status, err)
		case came == 0 && a.Written() && do != answerClose: // that one closes a connection that is being written to
			t.Fatalf("request %d: written, and never arrived: %v", i, err)
		}
		unprocessed := do == refuse || do == protocol || do == goAway && kind.body == 0 // else it may fail to write first
		if l.h2 && unprocessed && err != nil && kind.rewinds && !errors.Is(err, ErrUnprocessed) {
			t.Errorf("request %d was not processed, and its error is %v", i, err)
		}
	}
}

// The same servers, and net/http alone.
func TestBareArrivesTwice(t *testing.T) {
	for _, c := range []struct {
		link
		do act
	}{{links[0], closeRead}, {links[1], closeRead}, {links[2], refuse}, {links[2], goAway}, {links[3], refuse}} {
		s, url, bare := c.start(t, alternately(c.do))
		for i := range 20 {
			finish(bare.RoundTrip(shapes[0].request(t.Context(), url, i)))
		}
		if n, twice := s.total(); n <= 20 || twice == 0 {
			t.Errorf("%s, %d: net/http sends nothing twice any more (%d of 20, %d twice): is wire still needed?", c.name, c.do, n, twice)
		}
	}
}

// A hundred requests, ten at a time, of every kind.
func TestHundred(t *testing.T) {
	for _, l := range links {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			do := closeRead
			if l.h2 {
				do = refuse
			}
			s, url, bare := l.start(t, alternately(do))
			b := over1(t, bare)
			var all sync.WaitGroup
			var written, failed atomic.Int64
			for w := range 10 {
				all.Go(func() {
					for i := range 10 {
						a := new(Exchange)
						id := w*10 + i
						if _, err := finish(b.Send(shapes[id%len(shapes)].request(t.Context(), url, id), a)); err != nil {
							failed.Add(1)
						}
						if a.Written() {
							written.Add(1)
						}
					}
				})
			}
			all.Wait()
			n, twice := s.total()
			if twice > 0 || n != int(written.Load()) || failed.Load() < 20 {
				t.Errorf("%d arrived, %d of them more than once; %d written, %d failed", n, twice, written.Load(), failed.Load())
			}
		})
	}
}

// An attempt that fails before any byte is written was not written.
func TestNotWritten(t *testing.T) {
	s, url, bare := links[0].start(t, func() act { return answer })
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	_, client := tlsConfigs()
	wrong := client.Clone()
	wrong.RootCAs = nil
	_, secure, _ := links[1].start(t, func() act { return answer })
	_, h2, _ := links[2].start(t, func() act { return answer })
	refusing := proxy(t, 403, false)
	for _, c := range []struct {
		name, url string
		t         *http.Transport
	}{
		{"nobody listens", "http://" + gone.Addr().String(), &http.Transport{}},
		{"no such name", "http://no-such-host.invalid", &http.Transport{}},
		{"certificate", secure, &http.Transport{TLSClientConfig: wrong}},
		{"certificate over HTTP/2", h2, &http.Transport{TLSClientConfig: wrong, ForceAttemptHTTP2: true}},
		{"no TLS there", strings.Replace(url, "http:", "https:", 1), &http.Transport{TLSHandshakeTimeout: 20 * time.Millisecond}},
		{"the proxy refuses", secure, &http.Transport{TLSClientConfig: client, Proxy: refusing.proxy}},
		{"the dialer refuses", url, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no")
		}}},
		{"the dialer has nothing", url, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, nil }}},
		{"a field is wrong", url, &http.Transport{}},
	} {
		b := over1(t, c.t)
		r := shapes[1].request(t.Context(), c.url, 1)
		if c.name == "a field is wrong" {
			r.Header["A b"] = nil
		}
		a := new(Exchange)
		if _, err := finish(b.Send(r, a)); err == nil || a.Written() || errors.Is(err, ErrTwice) {
			t.Errorf("%s: %v, written %v", c.name, err, a.Written())
		}
		// So it is free to be sent elsewhere.
		if _, err := finish(over1(t, bare).Send(shapes[1].request(t.Context(), url, 2), a)); err != nil || !a.Written() {
			t.Errorf("%s: sent to another server: %v, written %v", c.name, err, a.Written())
		}
	}
	if n, _ := s.total(); n != 9 {
		t.Errorf("%d arrived, want 9", n)
	}
}

// An attempt that waits for a connection until its time is over was not written; nor is it then sent.
func TestNoConnection(t *testing.T) {
	for _, l := range links[:2] {
		s, url, bare := l.start(t, func() act { return stall })
		bare.MaxConnsPerHost = 1
		b := over1(t, bare)
		ctx, cancel := context.WithCancel(t.Context())
		first, a := make(chan error), new(Exchange)
		go func() {
			_, err := finish(b.Send(shapes[0].request(ctx, url, 1), a))
			first <- err
		}()
		for n := 0; n == 0; n, _ = s.total() {
			time.Sleep(time.Millisecond)
		}
		late, end := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer end()
		waits := new(Exchange)
		if _, err := finish(b.Send(shapes[0].request(late, url, 2), waits)); !errors.Is(err, context.DeadlineExceeded) || waits.Written() {
			t.Errorf("%s: %v, written %v", l.name, err, waits.Written())
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || !a.Written() {
			t.Errorf("%s: %v, written %v", l.name, err, a.Written())
		}
		if n, _ := s.total(); n != 1 {
			t.Errorf("%s: %d arrived", l.name, n)
		}
	}
}

// An attempt of which something was written is not sent by a second Send either, and its body is closed.
func TestSentTwice(t *testing.T) {
	s, url, bare := links[0].start(t, func() act { return answer })
	b := over1(t, bare)
	a := new(Exchange)
	if _, err := finish(b.Send(shapes[1].request(t.Context(), url, 1), a)); err != nil {
		t.Fatal(err)
	}
	r, closed := shapes[1].request(t.Context(), url, 1), false
	r.Body = closes{r.Body, &closed}
	if _, err := b.Send(r, a); err != ErrTwice || !closed {
		t.Errorf("%v, body closed %v", err, closed)
	}
	if n, _ := s.total(); n != 1 {
		t.Errorf("%d arrived", n)
	}
}

type closes struct {
	io.ReadCloser
	closed *bool
}

func (c closes) Close() error {
	*c.closed = true
	return c.ReadCloser.Close()
}
