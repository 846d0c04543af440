package send

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
)

// tunnel is a proxy that answers CONNECT with a status.
type tunnel struct {
	*httptest.Server
	asked atomic.Int64
}

func proxy(tb testing.TB, status int, secure bool) *tunnel {
	p := &tunnel{}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if r.Method != http.MethodConnect {
			tb.Errorf("the proxy got %s %s", r.Method, r.URL)
		}
		w.WriteHeader(status)
		if status != 200 {
			return
		}
		there, err := net.Dial("tcp", r.Host)
		if err != nil {
			tb.Error(err)
			return
		}
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			tb.Error(err)
			return
		}
		go func() {
			defer here.Close()
			io.Copy(here, there)
		}()
		defer there.Close()
		io.Copy(there, here)
	}))
	if secure {
		p.TLS, _ = tlsConfigs()
		p.StartTLS()
	} else {
		p.Start()
	}
	tb.Cleanup(p.Close)
	return p
}

func (p *tunnel) proxy(*http.Request) (*url.URL, error) { return url.Parse(p.URL) }

// A user's settings of a Transport keep working, and at most once holds.
func TestTransports(t *testing.T) {
	for _, c := range []struct {
		name string
		link link
		set  func(t *testing.T, b *http.Transport, address string) (used func() bool)
		// loose: not all that fails to arrive is known to be unwritten.
		loose bool
		to    string // instead of the server
	}{
		{name: "DialContext", link: links[0], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			return dials(&b.DialContext)
		}},
		{name: "Dial", link: links[0], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			var n atomic.Int64
			//lint:ignore SA1019 it is still heeded
			b.Dial = func(network, addr string) (net.Conn, error) {
				n.Add(1)
				return net.Dial(network, addr)
			}
			return func() bool { return n.Load() > 0 }
		}},
		{name: "DialContext for TLS", link: links[1], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			return dials(&b.DialContext)
		}},
		{name: "DialContext for HTTP/2", link: links[2], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			return dials(&b.DialContext)
		}},
		{name: "DialTLS", link: links[1], loose: true, set: func(t *testing.T, b *http.Transport, address string) func() bool {
			var n atomic.Int64
			//lint:ignore SA1019 it is still heeded
			b.DialTLS = func(network, addr string) (net.Conn, error) {
				n.Add(1)
				return tls.Dial(network, addr, trusting)
			}
			return func() bool { return n.Load() > 0 }
		}},
		{name: "DialTLSContext for HTTP/2", link: links[2], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			config := trusting.Clone()
			config.NextProtos = []string{"h2"}
			d := &tls.Dialer{Config: config}
			b.DialTLSContext = d.DialContext
			return dials(&b.DialTLSContext)
		}},
		{name: "DialTLSContext of another TLS", link: links[1], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			d := &tls.Dialer{Config: trusting}
			b.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := d.DialContext(ctx, network, addr)
				return struct{ net.Conn }{c}, err
			}
			return dials(&b.DialTLSContext)
		}},
		{name: "CONNECT", link: links[1], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			p := proxy(t, 200, false)
			b.Proxy = p.proxy
			var n atomic.Int64
			b.OnProxyConnectResponse = func(context.Context, *url.URL, *http.Request, *http.Response) error {
				n.Add(1)
				return nil
			}
			return func() bool { return n.Load() > 0 && p.asked.Load() > 0 }
		}},
		{name: "CONNECT for HTTP/2", link: links[2], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			p := proxy(t, 200, false)
			b.Proxy = p.proxy
			return func() bool { return p.asked.Load() > 0 }
		}},
		{name: "CONNECT over TLS", link: links[1], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			p := proxy(t, 200, true)
			b.Proxy = p.proxy
			return func() bool { return p.asked.Load() > 0 }
		}},
		{name: "plain proxy", link: links[0], to: "http://elsewhere.invalid", set: func(t *testing.T, b *http.Transport, address string) func() bool {
			b.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(address) } // it is the server itself
			return func() bool { return true }
		}},
		{name: "DisableKeepAlives", link: links[0], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			b.DisableKeepAlives = true
			return dials(&b.DialContext)
		}},
		{name: "unix socket", link: links[0], set: func(t *testing.T, b *http.Transport, address string) func() bool {
			path := filepath.Join(t.TempDir(), "s")
			ln, err := net.Listen("unix", path)
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { ln.Close() })
			go func() {
				for {
					here, err := ln.Accept()
					if err != nil {
						return
					}
					there, err := net.Dial("tcp", strings.TrimPrefix(address, "http://"))
					if err != nil {
						return
					}
					go func() { defer here.Close(); io.Copy(here, there) }()
					go func() { defer there.Close(); io.Copy(there, here) }()
				}
			}()
			b.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}
			return dials(&b.DialContext)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tlsConfigs()
			do := closeRead
			if c.link.h2 {
				do = refuse
			}
			s, url, bare := c.link.start(t, alternately(do))
			used := c.set(t, bare, url)
			b := over1(t, bare)
			if c.to != "" {
				url = c.to
			}
			answered := 0
			for i := range 20 {
				a := new(Exchange)
				status, err := finish(b.Send(shapes[i%len(shapes)].request(t.Context(), url, i), a))
				if status == 200 {
					answered++
				}
				came := s.came(i)
				if came > 1 || came == 1 && !a.Written() || came == 0 && a.Written() && !c.loose {
					t.Errorf("request %d: arrived %d times, written %v, %d, %v", i, came, a.Written(), status, err)
				}
			}
			if answered < 7 || answered > 13 || !used() { // not always 10: some fail to be written
				t.Errorf("%d of 20 answered, want about 10; what was set was used: %v", answered, used())
			}
		})
	}
}

// dials counts how often a dialer is used.
func dials(d *dial) func() bool {
	in := *d
	if in == nil {
		in = new(net.Dialer).DialContext
	}
	var n atomic.Int64
	*d = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return in(ctx, network, addr)
	}
	return func() bool { return n.Load() > 0 }
}

// Below TLS within TLS, a proxy's, is our connection too.
func TestLook(t *testing.T) {
	for _, speaks := range []int32{one, two} {
		in := &conn{}
		in.speaks.Store(speaks) // there was no handshake to ask about
		if own, h2 := new(Base).look(tls.Client(tls.Client(in, nil), nil)); own != in || h2 != (speaks == two) {
			t.Errorf("%v, HTTP/2 %v", own, h2)
		}
	}
}

// Whether a Transport speaks HTTP/2 does not change, whether it has been used before or not.
func TestSpeaks(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	srv.EnableHTTP2 = true
	server, client := tlsConfigs()
	srv.TLS = server
	srv.StartTLS()
	defer srv.Close()
	only := func(set func(*http.Protocols, bool)) *http.Protocols {
		p := new(http.Protocols)
		set(p, true)
		return p
	}
	for name, fresh := range map[string]func() *http.Transport{
		"zero":          func() *http.Transport { return &http.Transport{} },
		"with TLS":      func() *http.Transport { return &http.Transport{TLSClientConfig: client.Clone()} },
		"with a dialer": func() *http.Transport { return &http.Transport{DialContext: new(net.Dialer).DialContext} },
		"forced": func() *http.Transport {
			return &http.Transport{TLSClientConfig: client.Clone(), ForceAttemptHTTP2: true}
		},
		"HTTP/1": func() *http.Transport { return &http.Transport{Protocols: only((*http.Protocols).SetHTTP1)} },
		"HTTP/2": func() *http.Transport { return &http.Transport{Protocols: only((*http.Protocols).SetHTTP2)} },
		"no next protocols": func() *http.Transport {
			return &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}
		},
		"DefaultTransport": func() *http.Transport { return http.DefaultTransport.(*http.Transport).Clone() },
	} {
		speaks := func(rt func(*http.Request) (*http.Response, error)) string {
			r, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
			resp, err := rt(r)
			if err != nil {
				return err.Error()
			}
			resp.Body.Close()
			return resp.Proto
		}
		trust := func(t *http.Transport) *http.Transport { // after its defaults are made
			t.CloseIdleConnections()
			if t.TLSClientConfig == nil {
				t.TLSClientConfig = &tls.Config{}
			}
			t.TLSClientConfig.RootCAs = client.RootCAs
			return t
		}
		bare := trust(fresh())
		want := speaks(bare.RoundTrip)
		send := func(b *Base) func(*http.Request) (*http.Response, error) {
			return func(r *http.Request) (*http.Response, error) { return b.Send(r, new(Exchange)) }
		}
		if got := speaks(send(over1(t, bare))); got != want {
			t.Errorf("%s, used before: %s, want %s", name, got, want)
		}
		b := over1(t, fresh())
		trust(b.own)
		if got := speaks(send(b)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		bare.CloseIdleConnections()
	}
}

// The argument of NewBase is not changed.
func TestNotChanged(t *testing.T) {
	given := &http.Transport{}
	for _, rt := range []http.RoundTripper{nil, given} {
		in := given
		if rt == nil {
			in = http.DefaultTransport.(*http.Transport)
		}
		before := reflect.ValueOf(in.DialContext).Pointer()
		b := over1(t, rt)
		if b.own == in || in.Protocols != nil || in.DialTLSContext != nil || reflect.ValueOf(in.DialContext).Pointer() != before {
			t.Errorf("%T was changed", rt)
		}
	}
}

// deaf is a connection that takes nothing.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("deaf") }

// A user's own TLS dialer counts too: where nothing could be written to its connection, nothing
// was.
func TestDialerForTLSIsOurs(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	b := NewBase(&http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) { return deaf{ours}, nil }})
	r, err := http.NewRequest("GET", "https://example.com/", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := new(Exchange)
	if resp, err := b.Send(r, a); err == nil {
		resp.Body.Close()
		t.Error("it was answered")
	}
	if a.Written() {
		t.Error("nothing was written")
	}
}

// Where there is no HTTP/2 nothing is paid for its streams.
func TestMayBeHTTP2(t *testing.T) {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	for name, c := range map[string]struct {
		t    *http.Transport
		want bool
	}{
		"by default":           {&http.Transport{}, true},
		"HTTP/1.1":             {&http.Transport{Protocols: http1}, false},
		"with a dialer":        {&http.Transport{DialContext: new(net.Dialer).DialContext}, false},
		"a dialer, and forced": {&http.Transport{DialContext: new(net.Dialer).DialContext, ForceAttemptHTTP2: true}, true},
	} {
		if b := NewBase(c.t); b.mayBeH2 != c.want {
			t.Errorf("%s: %v", name, b.mayBeH2)
		}
	}
}

// A Transport that speaks what is not HTTP is like another RoundTripper.
func TestSpeaksOther(t *testing.T) {
	given := &http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{"other/1": nil}}
	if b := NewBase(given); b.own != nil || b.rt != given {
		t.Error("it would not be known when other/1 is written")
	}
}

// A Transport's other schemes are still there, and it is known when nothing was written.
func TestOtherScheme(t *testing.T) {
	given := &http.Transport{}
	given.RegisterProtocol("file", http.NewFileTransportFS(fstest.MapFS{"a": {Data: []byte("hello")}}))
	b := over1(t, given)
	r, _ := http.NewRequest("GET", "file:///a", nil)
	a := new(Exchange)
	resp, err := b.Send(r, a)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(got) != "hello" || !a.Written() {
		t.Errorf("%q, written %v", got, a.Written())
	}
}

// The connection of an answer 101 is the caller's, to read and to write.
func TestUpgrade(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		fmt.Fprint(c, line)
	}))
	defer srv.Close()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "echo")
	resp, err := over1(t, &http.Transport{}).Send(r, new(Exchange))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	w, ok := resp.Body.(io.Writer)
	if !ok {
		t.Fatalf("%T cannot be written to", resp.Body)
	}
	fmt.Fprintln(w, "hello")
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Another RoundTripper: one that wraps a Transport sends at most once too. For one without trace
// events, every attempt counts as written.
func TestAnotherBase(t *testing.T) {
	for _, l := range links[:3] {
		do := closeRead
		if l.h2 {
			do = refuse
		}
		s, url, bare := l.start(t, alternately(do))
		b := over1(t, roundTripper(bare.RoundTrip))
		failed := 0
		for i := range 20 {
			a := new(Exchange)
			status, err := finish(b.Send(shapes[i%len(shapes)].request(t.Context(), url, i), a))
			if n := s.came(i); n > 1 || n == 1 != a.Written() {
				t.Errorf("%s, request %d: arrived %d times, written %v, %d, %v", l.name, i, n, a.Written(), status, err)
			}
			if err != nil {
				failed++
			}
		}
		if failed < 7 || failed > 13 {
			t.Errorf("%s: %d failed, want about 10", l.name, failed)
		}
		s.close()
		a := new(Exchange)
		anew := NewBase(roundTripper(bare.Clone().RoundTrip))
		if _, err := finish(anew.Send(shapes[0].request(t.Context(), url, 99), a)); err == nil || a.Written() {
			t.Errorf("%s: nobody listens: %v, written %v", l.name, err, a.Written())
		}
	}
	a := new(Exchange)
	tells := NewBase(roundTripper(func(r *http.Request) (*http.Response, error) {
		trace := httptrace.ContextClientTrace(r.Context())
		for range 2 {
			trace.GotConn(httptrace.GotConnInfo{}) // without a connection
			trace.WroteRequest(httptrace.WroteRequestInfo{})
		}
		return nil, context.Cause(r.Context())
	}))
	_, err := tells.Send(shapes[0].request(t.Context(), "http://a.test", 1), a)
	if written, _, rtt := a.Times(time.Now()); err != ErrTwice || !written || rtt <= 0 {
		t.Errorf("%v, written %v, round trip %v", err, written, rtt)
	}
	a = new(Exchange)
	silent := NewBase(roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("no") }))
	if _, err := silent.Send(shapes[0].request(t.Context(), "http://a.test", 1), a); err == nil || !a.Written() {
		t.Errorf("%v, written %v", err, a.Written())
	}
	if _, err := silent.Send(shapes[0].request(t.Context(), "http://a.test", 1), a); err != ErrTwice {
		t.Error(err)
	}
}

// The request's context is ended when its answer's body is, and not before.
func TestEndsContext(t *testing.T) {
	var ctx context.Context
	for _, body := range []io.ReadCloser{io.NopCloser(strings.NewReader("hello")), http.NoBody, nil} {
		b := NewBase(roundTripper(func(r *http.Request) (*http.Response, error) {
			ctx = r.Context()
			return &http.Response{StatusCode: 200, Body: body}, nil
		}))
		r := shapes[0].request(t.Context(), "http://a.test", 1)
		resp, err := b.Send(r, new(Exchange))
		if err != nil || resp.Request != r {
			t.Fatal(err, resp)
		}
		if body != nil {
			if ctx.Err() != nil {
				t.Error("the context ended before the body")
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if ctx.Err() == nil {
			t.Errorf("the context goes on for ever: %v", body)
		}
	}
	b := NewBase(roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx = r.Context()
		panic("x")
	}))
	func() {
		defer func() { recover() }()
		b.Send(shapes[0].request(t.Context(), "http://a.test", 1), new(Exchange))
	}()
	if ctx.Err() == nil {
		t.Error("the context outlives a panic")
	}
}

// Reading the body to its end is enough if all of the request was written. Otherwise the rest of
// the request may still go, until Close.
func TestEndOfBodyEndsContext(t *testing.T) {
	for _, whole := range []bool{true, false} {
		var ctx context.Context
		b := NewBase(roundTripper(func(r *http.Request) (*http.Response, error) {
			if ctx = r.Context(); whole {
				httptrace.ContextClientTrace(ctx).WroteRequest(httptrace.WroteRequestInfo{})
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("hello"))}, nil
		}))
		resp, err := b.Send(shapes[0].request(t.Context(), "http://a.test", 1), new(Exchange))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := resp.Body.Read(make([]byte, 1)); err != nil || ctx.Err() != nil {
			t.Errorf("written whole %v: after a byte %v, and the context %v", whole, err, ctx.Err())
		}
		if rest, err := io.ReadAll(resp.Body); string(rest) != "ello" || err != nil || (ctx.Err() != nil) != whole {
			t.Errorf("written whole %v: %q, %v, and the context %v", whole, rest, err, ctx.Err())
		}
		if resp.Body.Close(); ctx.Err() == nil {
			t.Errorf("written whole %v: the context goes on after Close", whole)
		}
	}
}

// A request that is refused on a kept connection costs that one, and not one after the other all that are kept.
func TestRefusalKeepsConnections(t *testing.T) {
	const kept = 5
	var do atomic.Int64
	here, together := make(chan struct{}), make(chan struct{})
	s, url, bare := links[0].start(t, func() act {
		if a := act(do.Load()); a != answer {
			return a
		}
		here <- struct{}{}
		<-together
		return answer
	})
	b, id := over1(t, bare), 0
	send := func(n int) {
		var all sync.WaitGroup
		for range n {
			r, a := shapes[0].request(t.Context(), url, id), new(Exchange)
			id++
			all.Go(func() {
				if _, err := finish(b.Send(r, a)); err != nil {
					t.Error(err)
				}
			})
		}
		for range n { // until all of them are there: each has a connection
			<-here
		}
		for range n {
			together <- struct{}{}
		}
		all.Wait()
	}
	send(kept)
	do.Store(int64(closeRead))
	if _, err := finish(b.Send(shapes[0].request(t.Context(), url, 100), new(Exchange))); !errors.Is(err, ErrTwice) {
		t.Fatalf("got %v", err)
	}
	do.Store(int64(answer))
	send(kept - 2) // one that the server closed, and one that it was refused on
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.accepted != kept {
		t.Errorf("%d connections, want %d", s.accepted, kept)
	}
}

// The caller's own trace and values are in the request's context as ever.
func TestCallersContext(t *testing.T) {
	type name struct{}
	for _, l := range links {
		_, url, bare := l.start(t, func() act { return answer })
		b := over1(t, bare)
		var got, wrote int
		ctx := context.WithValue(t.Context(), name{}, "value")
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotConn:      func(httptrace.GotConnInfo) { got++ },
			WroteRequest: func(httptrace.WroteRequestInfo) { wrote++ },
		})
		a := new(Exchange)
		if status, err := finish(b.Send(shapes[0].request(ctx, url, 1), a)); status != 200 || !a.Written() {
			t.Errorf("%s: %d, %v, written %v", l.name, status, err, a.Written())
		}
		if got != 1 || wrote != 1 {
			t.Errorf("%s: the caller heard of %d connections and %d writes", l.name, got, wrote)
		}
		heard := 0
		for i, one := range []httptrace.ClientTrace{
			{GetConn: func(string) { heard++ }}, {GotConn: func(httptrace.GotConnInfo) { heard++ }},
			{WroteHeaderField: func(string, []string) { heard++ }}, {WroteRequest: func(httptrace.WroteRequestInfo) { heard++ }},
		} { // a trace of one event alone gets it, and the attempt still gets all
			a, before := new(Exchange), heard
			if status, err := finish(b.Send(shapes[0].request(httptrace.WithClientTrace(t.Context(), &one), url, 10+i), a)); status != 200 || !a.Written() || heard == before {
				t.Errorf("%s, listener %d: %d, %v, written %v, heard %d times", l.name, i, status, err, a.Written(), heard-before)
			}
		}
		answered := 0
		ctx = httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { answered++ }})
		a = new(Exchange)
		if status, err := finish(b.Send(shapes[0].request(ctx, url, 3), a)); status != 200 || !a.Written() || answered != 1 {
			t.Errorf("%s: %d, %v, written %v; who listens to answers alone heard of %d", l.name, status, err, a.Written(), answered)
		}
		var value any
		b = over1(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			value = r.Context().Value(name{})
			return bare.RoundTrip(r)
		}))
		if finish(b.Send(shapes[0].request(context.WithValue(t.Context(), name{}, "value"), url, 2), new(Exchange))); value != "value" {
			t.Errorf("%s: the Base finds %v in the context", l.name, value)
		}
	}
}

// The allocations of an attempt over HTTP/1.1, itself included, do not creep up.
func TestAllocations(t *testing.T) {
	most := 5.0
	if race.Enabled { // it allocates too
		most = 7
	}
	traced := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotFirstResponseByte: func() {}}) // as httputil.ReverseProxy does
	for _, c := range []struct {
		url     string
		mayBeH2 bool // over TLS
		ctx     context.Context
	}{
		{"http://a.test/", false, context.Background()}, {"http://a.test/", false, traced},
		{"http://a.test/", true, context.Background()}, {"https://a.test/", false, context.Background()},
	} {
		b := &Base{own: &http.Transport{}, rt: answers, mayBeH2: c.mayBeH2}
		r := shapes[0].request(c.ctx, c.url, 1)
		if n := testing.AllocsPerRun(100, func() { finish(b.Send(r, new(Exchange))) }) - 1; n > most { // the answer
			t.Errorf("%+v: %v allocations, want %v at most", c, n, most)
		}
	}
}

// HTTP/2 by another RoundTripper sends again only what the server did not process, as HTTP/2 by a
// Transport does: over TLS, and in clear text, where nothing but its fields shows the protocol.
func TestUnprocessedByAnotherBase(t *testing.T) {
	for _, l := range links[2:4] {
		for _, do := range []act{refuse, goAway, protocol} {
			s, url, bare := l.start(t, alternately(do))
			b := over1(t, roundTripper(bare.RoundTrip))
			failed := 0
			for i := range 20 {
				a := new(Exchange)
				if _, err := finish(b.Send(shapes[1].request(t.Context(), url, i), a)); err != nil {
					closed := s.came(i) == 0 // its write failed first
					if failed++; !a.Written() || !closed && !errors.Is(err, ErrUnprocessed) {
						t.Errorf("%s, %v, request %d: %v, written %v", l.name, do, i, err, a.Written())
					}
				}
				if n := s.came(i); n > 1 {
					t.Errorf("%s, %v: request %d arrived %d times", l.name, do, i, n)
				}
			}
			if failed < 7 || failed > 13 {
				t.Errorf("%s, %v: %d failed, want about 10", l.name, do, failed)
			}
		}
	}
}

// A RoundTripper that sends again by itself, after an answer, has an answer that it did not like.
// That request was processed, whatever the protocol.
func TestSendsAgainAfterAnAnswer(t *testing.T) {
	for _, l := range links {
		s, url, bare := l.start(t, func() act { return answer })
		answered := 0
		b := over1(t, roundTripper(func(r *http.Request) (*http.Response, error) {
			first, err := bare.RoundTrip(r)
			if err != nil {
				return nil, err
			}
			first.Body.Close()
			return bare.RoundTrip(r)
		}))
		r := shapes[0].request(t.Context(), url, 1)
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { answered++ }}))
		if _, err := finish(b.Send(r, new(Exchange))); err != ErrTwice {
			t.Errorf("%s: %v", l.name, err)
		}
		if n := s.came(1); n != 1 || answered != 1 {
			t.Errorf("%s: arrived %d times; the caller's trace has %d answers", l.name, n, answered)
		}
		if _, err := finish(b.Send(shapes[0].request(t.Context(), url, 2), new(Exchange))); err != ErrTwice || s.came(2) != 1 {
			t.Errorf("%s, without a trace of the caller: %v, arrived %d times", l.name, err, s.came(2))
		}
	}
}
