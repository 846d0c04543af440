package send

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// raw is a server of bytes: it reads requests of each connection, and answers each with the next text of its
// script, or with fine after that. It thenClosed a connection after a text that ends in thenClosed.
type raw struct {
	net.Listener
	all sync.WaitGroup

	mu       sync.Mutex
	script   []string
	requests []string
	accepted int
	ended    chan struct{} // gets each end of a connection that the client closed
}

const (
	fine       = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	thenClosed = "\x00"
)

func serveRaw(tb testing.TB, script ...string) *raw {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &raw{Listener: ln, script: script, ended: make(chan struct{}, 100)}
	s.all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.accepted++
			s.mu.Unlock()
			s.all.Go(func() { s.serve(c) })
		}
	})
	tb.Cleanup(func() { ln.Close(); s.all.Wait() })
	return s
}

func (s *raw) serve(c net.Conn) {
	defer c.Close()
	var text bytes.Buffer
	for in := bufio.NewReader(io.TeeReader(c, &text)); ; text.Reset() {
		q, err := http.ReadRequest(in)
		if err != nil {
			s.ended <- struct{}{}
			return
		}
		_, _ = io.Copy(io.Discard, q.Body)
		s.mu.Lock()
		s.requests = append(s.requests, text.String())
		say := fine
		if len(s.script) > 0 {
			say, s.script = s.script[0], s.script[1:]
		}
		s.mu.Unlock()
		say, last := strings.CutSuffix(say, thenClosed)
		if _, err := io.WriteString(c, say); err != nil || last {
			return
		}
	}
}

func (s *raw) seen() (requests []string, accepted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests, s.accepted
}

// plainTransport is one that Lines takes.
func plainTransport() *http.Transport {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	return &http.Transport{Protocols: p, MaxIdleConnsPerHost: 100}
}

// passingOn is a transport of a program that passes requests on. It also offers HTTP/2, and a Direct of it has lines.
func passingOn() *http.Transport {
	t := plainTransport()
	t.DisableCompression = true
	t.Protocols.SetHTTP2(true)
	return t
}

// both calls f with a Base of NewBase and one of Lines, for each kind of transport that has lines.
func both(tb testing.TB, f func(b *Base) string) (transports, lines string) {
	var said [2]string
	for i, all := range [][]*Base{{NewBase(plainTransport()), NewBase(passingOn())},
		{Lines(plainTransport()), NewBase(Direct{passingOn()})}} {
		for _, b := range all {
			if i == 1 && b.lines == nil {
				tb.Skip("this system has no lines")
			}
			said[i] += f(b) + "\n"
			b.CloseIdleConnections()
		}
	}
	return said[0], said[1]
}

// A line writes the bytes that net/http would write.
func TestLinesWriteTheSame(t *testing.T) {
	headers := []http.Header{{}, {"User-Agent": nil}, {"User-Agent": {""}}, {"User-Agent": {" me "}, "Range": {""}},
		{"Accept-Encoding": {"br, gzip"}}, {"Accept-Encoding": {""}},
		{"B": {"2", "1"}, "A": {" a "}, "Content-Length": {"7"}, "Host": {"x"}, "Trailer": {"T"}, "Range": {"bytes=1-"}}}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		for _, header := range headers {
			agents, given := header["User-Agent"]
			isPlain := !given || len(agents) == 1
			writesTheSame(t, method, "/", header, "", isPlain)
			writesTheSame(t, method, "/", header, "some", isPlain)
		}
	}
	for _, target := range []string{"", "/a%2Fb?x=1&y=%20", "?", "/é?ü=1", "/a#part"} {
		writesTheSame(t, "GET", target, http.Header{}, "", true)
	}
}

func writesTheSame(t *testing.T, method, target string, header http.Header, body string, isPlain bool) {
	t.Helper()
	said := ""
	transports, lines := both(t, func(b *Base) string {
		s := serveRaw(t)
		defer s.Close()
		u, err := url.Parse("http://" + s.Addr().String() + target)
		if err != nil {
			t.Skip(err)
		}
		r := &http.Request{Method: method, URL: u, Host: "a.test:81", Header: header}
		if body != "" {
			r.ContentLength = int64(len(body))
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
			r.Body, _ = r.GetBody()
		}
		if b.lines != nil && isPlain && !b.lines.plain(r) {
			t.Errorf("%q %q %v: no line takes it", method, target, header)
		}
		a := new(Exchange)
		_, err = finish(b.Send(r, a))
		requests, _ := s.seen()
		if said = fmt.Sprintf("%q, written %v", requests, a.Written()); err != nil {
			said = fmt.Sprintf("an error, written %v", a.Written())
		}
		return said
	})
	if transports != lines {
		t.Errorf("%q %q %v %q:\nnet/http %s\nlines    %s", method, target, header, body, transports, lines)
	}
}

func FuzzLineWrites(f *testing.F) {
	f.Add("GET", "/a?b=c", "Name", "value", "")
	f.Add("POST", "/", "Expect", "100-continue", "body")
	f.Add("G\tT", "/\x7f", "A B", "x\r\ny", "")
	f.Fuzz(func(t *testing.T, method, target, name, value, body string) {
		writesTheSame(t, method, "/"+target, http.Header{name: {value}}, body, false)
	})
}

// answers that a server may give to the first request.
var rawAnswers = []string{
	fine, fine + thenClosed, "", thenClosed, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok" + thenClosed,
	"HTTP/1.1 200 OK\r\n\r\nuntil the end" + thenClosed, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok" + thenClosed,
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nT: x\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n" + thenClosed,
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + fine, "HTTP/1.1 100 Continue\r\n\r\n" + thenClosed,
	"HTTP/1.1 102 Processing\r\n\r\n" + fine + thenClosed,
	"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok" + thenClosed, "HTTP/1.1 200 OK\r\nContent-Le" + thenClosed, "nonsense\r\n\r\n" + thenClosed,
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more" + thenClosed, "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n" + thenClosed,
	"HTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 5000) + "\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 20_000) + "\r\nContent-Length: 2\r\n\r\nok" + thenClosed,
	"HTTP/1.1 100 Continue\r\nLong: " + strings.Repeat("x", 9_000) + "\r\n\r\nHTTP/1.1 200 OK\r\nLong: " + strings.Repeat("x", 9_000) + "\r\n\r\n" + thenClosed,
}

// A line reads what net/http would read: answers, bodies and errors. And it is used again where net/http would.
func TestLinesReadTheSame(t *testing.T) {
	for _, text := range rawAnswers {
		if text == "" {
			continue // without an answer it would wait
		}
		for _, method := range []string{"GET", "HEAD", "POST"} {
			for _, before := range []int{0, 1} { // requests on the same connection
				readsTheSame(t, method, text, before, strings.Contains(text, " 100 ") && before == 1)
			}
		}
	}
}

// heard is the headers of interim answers.
type heard []http.Header

func (h *heard) Said(header http.Header) { *h = append(*h, header) }

func readsTheSame(t *testing.T, method, text string, before int, hears bool) {
	t.Helper()
	transports, lines := both(t, func(b *Base) string {
		b.own.MaxResponseHeaderBytes = 16 << 10
		s := serveRaw(t, append(strings.Fields(strings.Repeat("- ", before)), text)...)
		defer s.Close()
		for i := range s.script[:before] {
			s.script[i] = fine
		}
		send := func(method string) string {
			said, ctx := "", t.Context()
			if b.own.DisableCompression {
				ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					if said += fmt.Sprint(code, h); code == http.StatusProcessing {
						return errLate
					}
					return nil
				}})
			}
			r, _ := http.NewRequestWithContext(ctx, method, "http://"+s.Addr().String(), nil)
			a, heard := new(Exchange), heard{}
			if hears {
				a.Interim = &heard
			}
			resp, err := b.Send(r, a)
			if err != nil {
				return fmt.Sprintf("%s, written %v, interim answers %q, traced %s", sameWords(err), a.Written(), heard, said)
			}
			defer resp.Body.Close()
			if resp.StatusCode == http.StatusSwitchingProtocols {
				t.Skip("a line hands no connection on")
			}
			if resp.Uncompressed || resp.Header.Get("Content-Encoding") != "" && !b.own.DisableCompression {
				return "coded" // a line leaves it so
			}
			body, err := io.ReadAll(resp.Body)
			_, again := resp.Body.Read(make([]byte, 1))
			return fmt.Sprintf("%d %q %q %d %v %v, %s, %s, written %v, interim answers %q, traced %s", resp.StatusCode, resp.Header,
				body, resp.ContentLength, resp.Close, resp.Trailer, sameWords(err), sameWords(again), a.Written(), heard, said)
		}
		for range before {
			send("GET")
		}
		said := send(method)
		if strings.HasSuffix(text, thenClosed) {
			s.all.Go(func() {}) // its end may not have come yet: another connection or not is chance
			return said
		}
		_, body, _ := strings.Cut(text[strings.LastIndex(text, "HTTP/"):], "\r\n\r\n")
		if method == "HEAD" && body != "" {
			return said // a body that HEAD must not have: whether it has come before the next request is chance
		}
		said += "; then " + send("GET")
		_, accepted := s.seen()
		return fmt.Sprint(said, "; connections: ", accepted)
	})
	if transports != lines {
		t.Errorf("%s, %d before, %.200q:\nnet/http %.300s\nlines    %.300s", method, before, text, transports, lines)
	}
}

func sameWords(err error) string {
	if err == nil {
		return "well"
	}
	text := err.Error()
	if o, ok := errors.AsType[*net.OpError](err); ok {
		text = o.Op + " failed: " + o.Err.Error()
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "net/http: "), "http: ")
}

func FuzzLineReads(f *testing.F) {
	for _, text := range rawAnswers {
		f.Add(strings.TrimSuffix(text, thenClosed))
	}
	f.Fuzz(func(t *testing.T, text string) { readsTheSame(t, "GET", text+thenClosed, 0, false) })
}

// A connection serves one attempt after the other, whatever their contexts. An end that came meanwhile is
// seen before the next request is written, also below TLS.
func TestLinesAreUsedAgain(t *testing.T) {
	for _, l := range links[4:] {
		do := answer
		s, u, bare := l.start(t, func() act { return do })
		b := over1(t, bare)
		for i := range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			if i >= 10 {
				cancel()
				ctx, cancel = t.Context(), func() {}
			}
			if status, err := finish(b.Send(shapes[0].request(ctx, u, i), new(Exchange))); status != 200 {
				t.Fatalf("%s, request %d: %d, %v", l.name, i, status, err)
			}
			cancel()
		}
		if s.accepted != 1 {
			t.Errorf("%s: 20 requests had %d connections", l.name, s.accepted)
		}
		do = answerClose
		if status, err := finish(b.Send(shapes[0].request(t.Context(), u, 30), new(Exchange))); status != 200 {
			t.Fatalf("%s: %d, %v", l.name, status, err)
		}
		idle := b.lines.idle[place{strings.Split(u, ":")[0], strings.SplitN(u, "/", 4)[2]}][0]
		if _, err := idle.own.Read(make([]byte, 1)); err == nil { // until the end has come: of TLS, the first byte of its alert
			t.Logf("%s: the server says that it closes", l.name)
		}
		do = answer
		a := new(Exchange)
		if status, err := finish(b.Send(shapes[1].request(t.Context(), u, 31), a)); status != 200 || s.accepted != 2 {
			t.Errorf("%s, after the end of its connection: %d, %v, %d connections", l.name, status, err, s.accepted)
		}
	}
}

// The end of a context ends the attempt, while it waits for its answer and while it reads the body. The line is gone
// with it.
func TestLinesHeedContexts(t *testing.T) {
	half := "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
	for _, text := range []string{"HTTP/1.1 200", half} {
		s := serveRaw(t, fine, fine, text)
		b := Lines(plainTransport())
		t.Cleanup(b.CloseIdleConnections)
		ctx, cancel := context.WithCancelCause(t.Context())
		send := func() (string, error) {
			r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+s.Addr().String(), nil)
			resp, err := b.Send(r, new(Exchange))
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			if text == half && resp.ContentLength == 9 {
				cancel(errLate)
			}
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		for range 2 { // from the second on, the line follows the context while it is idle
			if body, err := send(); body != "ok" || err != nil {
				t.Fatal(body, err)
			}
		}
		if text != half {
			time.AfterFunc(5*time.Millisecond, func() { cancel(errLate) })
		}
		if body, err := send(); err == nil || text != half && err != errLate {
			t.Errorf("%q: %q, %v", text, body, err)
		}
		<-s.ended
		if _, err := send(); err != errLate {
			t.Errorf("after the end: %v", err)
		}
		if requests, _ := s.seen(); len(requests) != 3 {
			t.Errorf("%q: %d requests arrived", text, len(requests))
		}
	}
}

// The end of a body that is closed early is that of its connection. Nothing is read after it.
func TestLinesCloseEarly(t *testing.T) {
	transports, lines := both(t, func(b *Base) string {
		s := serveRaw(t, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String(), nil)
		resp, err := b.Send(r, new(Exchange))
		if err != nil {
			t.Fatal(err)
		}
		closed := resp.Body.Close()
		<-s.ended
		_, after := resp.Body.Read(make([]byte, 1))
		status, err := finish(b.Send(r, new(Exchange)))
		_, accepted := s.seen()
		return fmt.Sprint(closed, after, status, err, accepted)
	})
	if transports != lines {
		t.Errorf("net/http %s\nlines    %s", transports, lines)
	}
}

// A body whose form is wrong is the last of its connection: where the next answer begins, nobody knows.
func TestLinesEndWithABadBody(t *testing.T) {
	transports, lines := both(t, func(b *Base) string {
		s := serveRaw(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokxx")
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String(), nil)
		status, bad := finish(b.Send(r, new(Exchange)))
		next, err := finish(b.Send(r, new(Exchange)))
		_, accepted := s.seen()
		return fmt.Sprint(status, bad, next, err, accepted)
	})
	if transports != lines {
		t.Errorf("net/http %s\nlines    %s", transports, lines)
	}
}

// A handshake takes no longer than it may.
func TestLinesShakeHandsInTime(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // and nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	transports, lines := both(t, func(b *Base) string {
		b.own.TLSHandshakeTimeout = 5 * time.Millisecond
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+ln.Addr().String(), nil)
		a := new(Exchange)
		_, err := b.Send(r, a)
		late, ok := errors.AsType[net.Error](err)
		return fmt.Sprint(err, ok && late.Timeout(), a.Written())
	})
	if transports != lines {
		t.Errorf("net/http %s\nlines    %s", transports, lines)
	}
}

// What is idle for too long is closed, and so is what is more than may be kept.
func TestLinesAreNotKeptForEver(t *testing.T) {
	s := serveRaw(t)
	from := plainTransport()
	from.IdleConnTimeout, from.MaxIdleConnsPerHost = 10*time.Millisecond, 1
	b := Lines(from)
	var open []*http.Response
	for range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr().String(), nil)
		resp, err := b.Send(r, new(Exchange))
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
	}
	for _, resp := range open {
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
	}
	<-s.ended
	<-s.ended // or the test takes for ever
	b.lines.mu.Lock()
	defer b.lines.mu.Unlock()
	for len(b.lines.idle) > 0 { // until tire has returned
		b.lines.mu.Unlock()
		time.Sleep(time.Millisecond)
		b.lines.mu.Lock()
	}
	if b.lines.timer != nil {
		t.Error("nothing is idle, and a timer is set")
	}
}

// Of the idle lines of each place, those are tired that were given longest ago: for as long as may be, or
// longer. The others stay, and the next look is when the first of them will be. A line that is taken is the
// latest, and nothing refers to it any more.
func TestLinesTireInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		a, b := place{"http", "a.test"}, place{"http", "b.test"}
		for _, c := range []struct {
			name        string
			a, b        []time.Duration // for how long their lines are idle
			tired       int
			leftA, left int
			next        time.Duration
		}{
			{"none is", []time.Duration{9 * s, 1 * s}, nil, 0, 2, 2, 1 * s},
			{"the first are", []time.Duration{30 * s, 10 * s, 10*s - 1, 0}, nil, 2, 2, 2, 1},
			{"all of a place are", []time.Duration{30 * s, 10 * s}, []time.Duration{2 * s}, 2, 0, 1, 8 * s},
			{"of two places, the first is next", []time.Duration{4 * s}, []time.Duration{7 * s, 5 * s}, 0, 1, 3, 3 * s},
			{"all are", []time.Duration{10 * s}, []time.Duration{11 * s}, 2, 0, 0, 0},
		} {
			l := &lines{from: &http.Transport{IdleConnTimeout: 10 * s}, idle: map[place][]*line{}}
			for to, ages := range map[place][]time.Duration{a: c.a, b: c.b} {
				for _, age := range ages {
					l.idle[to] = append(l.idle[to], &line{place: to, since: time.Now().Add(-age)})
				}
			}
			old := l.tired()
			if left := len(l.idle[a]) + len(l.idle[b]); len(old) != c.tired || len(l.idle[a]) != c.leftA || left != c.left {
				t.Errorf("%s: %d are, %d and %d are left", c.name, len(old), len(l.idle[a]), left-len(l.idle[a]))
			}
			for _, o := range old {
				if time.Since(o.since) < 10*s {
					t.Errorf("%s: one is tired after %v", c.name, time.Since(o.since))
				}
			}
			waits := func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.idle = map[place][]*line{} // the look finds none
				return l.timer != nil
			}
			if waits() != (c.next > 0) {
				t.Fatalf("%s: a timer is set: %v", c.name, c.next == 0)
			}
			if c.next > 0 {
				time.Sleep(c.next - time.Nanosecond)
				synctest.Wait()
				early := !waits()
				time.Sleep(time.Nanosecond)
				if synctest.Wait(); early || waits() {
					t.Errorf("%s: it looks again before %v: %v, and then: %v", c.name, c.next, early, !waits())
				}
			}
		}
		l := &lines{idle: map[place][]*line{a: {{place: a}, {place: a}}}}
		all := l.idle[a]
		last := all[1]
		if took := l.take(a); took != last || all[1] != nil || len(l.idle[a]) != 1 || l.take(b) != nil {
			t.Errorf("%p was taken, want %p; %v are left", took, last, all)
		}
	})
}

// A line that serves now and then is idle since its last answer.
func TestLinesServeNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := place{"http", "a.test"}
		all := &lines{from: &http.Transport{IdleConnTimeout: 10 * time.Second}, idle: map[place][]*line{}}
		l := &line{place: at, tap: &tap{raw: unasked{}}}
		for range 5 {
			if !all.keep(l) {
				t.Fatal("a line has no room")
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if old := all.tired(); len(old) > 0 || all.take(at) != l {
				t.Fatalf("6s after its answer, a line is tired: %v", old)
			}
		}
		all.closeIdle()
	})
}

// unasked is a connection that nobody asks.
type unasked struct{ syscall.RawConn }

// What lines do not know goes by net/http.
func TestPlain(t *testing.T) {
	at := plainTransport()
	at.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == "proxied.test" {
			return url.Parse("http://proxy.test")
		}
		return nil, nil
	}
	b := Lines(at)
	if b.lines == nil {
		t.Skip("this system has no lines")
	}
	body := func(n int64) *http.Request {
		r, _ := http.NewRequest("POST", "http://a.test", strings.NewReader(strings.Repeat("x", int(n))))
		return r
	}
	get := func(change func(*http.Request)) *http.Request {
		r, _ := http.NewRequest("GET", "http://a.test/", nil)
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		r    *http.Request
		want bool
	}{
		"a small body":    {body(mostOfBody), true},
		"a large body":    {body(mostOfBody + 1), false},
		"a stream":        {get(func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), -1 }), false},
		"a length alone":  {get(func(r *http.Request) { r.ContentLength = 5 }), false},
		"no GetBody":      {get(func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 }), false},
		"a proxy":         {get(func(r *http.Request) { r.URL.Host = "proxied.test" }), false},
		"no more":         {get(func(r *http.Request) { r.Close = true }), false},
		"Expect":          {get(func(r *http.Request) { r.Header.Set("Expect", "100-continue") }), false},
		"Connection":      {get(func(r *http.Request) { r.Header.Set("Connection", "close") }), false},
		"Upgrade":         {get(func(r *http.Request) { r.Header.Set("Upgrade", "x") }), false},
		"its own coding":  {get(func(r *http.Request) { r.Header.Set("Accept-Encoding", "br") }), true},
		"TLS":             {get(func(r *http.Request) { r.URL.Scheme = "https" }), true},
		"a strange name":  {get(func(r *http.Request) { r.Header["a b"] = []string{"x"} }), false},
		"a strange value": {get(func(r *http.Request) { r.Header["A"] = []string{"x\ny"} }), false},
		"a strange host":  {get(func(r *http.Request) { r.Host = "ü.test" }), false},
		"a path as host":  {get(func(r *http.Request) { r.Host = "a.test/b" }), false},
		"no name":         {get(func(r *http.Request) { r.Header[""] = []string{"x"} }), false},
		"a zone":          {get(func(r *http.Request) { r.URL.Host = "[fe80::1%25eth0]" }), false},
		"IPv6":            {get(func(r *http.Request) { r.URL.Host = "[::1]:80" }), true},
		"CONNECT":         {get(func(r *http.Request) { r.Method = "CONNECT" }), false},
		"trailers":        {get(func(r *http.Request) { r.Trailer = http.Header{"T": nil} }), false},
	} {
		if got := b.lines.plain(c.r); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	offers := plainTransport()
	offers.Protocols.SetHTTP2(true)
	for scheme, want := range map[string]bool{"http": true, "https": false} {
		if got := Lines(offers).lines.plain(get(func(r *http.Request) { r.URL.Scheme = scheme })); got != want {
			t.Errorf("where HTTP/2 is offered, over %s: %v", scheme, got)
		}
	}
	for name, change := range map[string]func(*http.Transport){
		"HTTP/2 at once":     func(t *http.Transport) { t.Protocols.SetHTTP1(false); t.Protocols.SetUnencryptedHTTP2(true) },
		"no kept connection": func(t *http.Transport) { t.DisableKeepAlives = true },
		"few connections":    func(t *http.Transport) { t.MaxConnsPerHost = 1 },
		"patience":           func(t *http.Transport) { t.ResponseHeaderTimeout = time.Second },
		"TLS of its own":     func(t *http.Transport) { t.DialTLSContext = new(net.Dialer).DialContext },
	} {
		other := plainTransport()
		if change(other); Lines(other).lines != nil {
			t.Errorf("%s: it has lines", name)
		}
	}
}

// Nothing is written of a request that net/http would not write, or whose body is not what it says. The line stays.
func TestLinesWriteNothingOfAWrongRequest(t *testing.T) {
	s := serveRaw(t)
	b := Lines(plainTransport())
	t.Cleanup(b.CloseIdleConnections)
	for name, change := range map[string]func(r *http.Request){
		"a control character":      func(r *http.Request) { r.URL.RawQuery = "a\x01" },
		"no copy of the body":      func(r *http.Request) { r.GetBody = func() (io.ReadCloser, error) { return nil, errLate } },
		"a body that is too short": func(r *http.Request) { r.ContentLength++ },
		"a body that is too long":  func(r *http.Request) { r.ContentLength-- },
		"a body that fails": func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(iotest.ErrReader(errLate)), nil }
		},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Addr().String(), strings.NewReader("four"))
		change(r)
		a := new(Exchange)
		if status, err := finish(b.Send(r, a)); err == nil || strings.Contains(name, "no copy") != (err == errLate) {
			t.Errorf("%s: %d, %v", name, status, err)
		}
	}
	if requests, _ := s.seen(); len(requests) > 0 {
		t.Errorf("%q were written", requests)
	}
}

// The address of a URL without a port is that of its scheme.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"http://a.test": "a.test:80", "https://a.test": "a.test:443", "https://a.test:80": "a.test:80", "http://a.test:443": "a.test:443",
		"https://[::1]/": "[::1]:443", "http://[::1]:8080/": "[::1]:8080",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := address(u); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// An idle line that a server ended since it waited too long, in its own words, is a usual thing. Anything else that
// comes unasked is logged, as net/http has it.
func TestTimedOut(t *testing.T) {
	for text, want := range map[string]bool{
		"HTTP/1.1 408 Request Timeout\r\n\r\n": true, "HTTP/1.0 408 \r\n": true, "HTTP/1.1 408": false, // the status may go on
		"HTTP/1.1 200 OK\r\n\r\n": false, "HTTP/2.0 408 Request": false, "nonsense": false, "": false,
	} {
		if got := timedOut([]byte(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
