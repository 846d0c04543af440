package send

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	errLate = errors.New("late")
	errGone = errors.New("gone")
)

// Stop and Expire end an attempt, over each kind of connection. Before it began, it neither arrives
// nor counts. While the server is silent, it counts as written.
func TestEnds(t *testing.T) {
	for _, how := range []struct {
		name string
		new  func() *Exchange
		end  func(*Exchange, error)
	}{
		{"Stop", func() *Exchange { return &Exchange{Stops: true} }, (*Exchange).Stop},
		{"Expire", func() *Exchange { return &Exchange{Expires: true} }, (*Exchange).Expire},
	} {
		for _, l := range links {
			t.Run(how.name+" "+l.name, func(t *testing.T) {
				var do atomic.Int64
				arrived := make(chan struct{}, 1)
				s, url, bare := l.start(t, func() act {
					arrived <- struct{}{}
					return act(do.Load())
				})
				b := over1(t, bare)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // never, if all is well
				defer cancel()
				a := how.new()
				how.end(a, errGone)
				if _, err := finish(b.Send(shapes[0].request(ctx, url, 1), a)); err != errGone || a.Written() || s.came(1) != 0 {
					t.Errorf("before: %v, written %v, arrived %d times", err, a.Written(), s.came(1))
				}
				do.Store(int64(stall))
				a = how.new()
				go func() {
					<-arrived
					how.end(a, errGone)
					how.end(a, errors.New("again"))
				}()
				if _, err := finish(b.Send(shapes[0].request(ctx, url, 2), a)); ctx.Err() != nil || err != errGone || !a.Written() {
					t.Errorf("while it is silent: %v, written %v", err, a.Written())
				}
			})
		}
	}
}

// Stop ends the answer's body, too.
func TestStopInTheBody(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	b := NewBase(roundTripper(func(r *http.Request) (*http.Response, error) {
		context.AfterFunc(r.Context(), func() { out.CloseWithError(context.Cause(r.Context())) })
		return &http.Response{StatusCode: 200, Body: in}, nil
	}))
	a := &Exchange{Stops: true}
	resp, err := b.Send(shapes[0].request(t.Context(), "http://a.test", 1), a)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a.Stop(errGone)
	if _, err := io.ReadAll(resp.Body); err != errGone {
		t.Errorf("in the body: %v", err)
	}
}

// An attempt that was stopped before it began does not wait for a connection either.
func TestStopBeforeADial(t *testing.T) {
	b := NewBase(&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}})
	defer b.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // never, if all is well
	defer cancel()
	a := &Exchange{Stops: true}
	a.Stop(errGone)
	if _, err := finish(b.Send(shapes[0].request(ctx, "http://a.test", 1), a)); err != errGone {
		t.Error(err)
	}
}

// An attempt with an answer does not expire.
func TestExpireAfterTheAnswer(t *testing.T) {
	var sent *http.Request
	b := NewBase(roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("an answer"))}, nil
	}))
	a := &Exchange{Expires: true}
	resp, err := b.Send(shapes[0].request(t.Context(), "http://a.test", 1), a)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	a.Expire(errLate)
	if err := sent.Context().Err(); err != nil {
		t.Errorf("its answer is being read, and its context has ended: %v", err)
	}
}

// An attempt with Body set expires while its body is read, over each kind of connection. After that,
// nothing is left that could expire.
func TestExpireInTheBody(t *testing.T) {
	over := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		if r.URL.Path == "/stuck" {
			_ = http.NewResponseController(w).Flush()
			<-over
		}
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	defer close(over)
	for _, name := range []string{"HTTP/1.1", "HTTP/2", "lines"} {
		t.Run(name, func(t *testing.T) {
			h2 := name == "HTTP/2"
			p := new(http.Protocols)
			p.SetHTTP1(!h2)
			p.SetHTTP2(h2)
			trusts := srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone() // net/http adds protocols to it
			trusts.NextProtos = nil
			b := NewBase(&http.Transport{Protocols: p, TLSClientConfig: trusts})
			if name == "lines" {
				b = Lines(&http.Transport{Protocols: p, TLSClientConfig: trusts})
			}
			defer b.CloseIdleConnections()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // never, if all is well
			defer cancel()
			a := &Exchange{Expires: true, Body: true}
			resp, err := b.SendIn(ctx, shapes[0].request(t.Context(), srv.URL+"/stuck", 1), a)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, len("half"))); err != nil {
				t.Fatal(err)
			}
			a.Expire(errLate)
			if rest, err := io.ReadAll(resp.Body); err == nil || ctx.Err() != nil || len(rest) > 0 {
				t.Errorf("%v after %q, ended by the test itself: %v", err, rest, ctx.Err() != nil)
			}
			first := &Exchange{Expires: true, Body: true}
			for _, a := range []*Exchange{first, {}} {
				if status, err := finish(b.SendIn(ctx, shapes[0].request(t.Context(), srv.URL, 2), a)); err != nil || status != 200 {
					t.Fatal(status, err)
				}
				first.Expire(errLate) // its body has been read, and the next attempt has its connection
			}
		})
	}
}

// asking is a context that does something when net/http first asks it for anything, which is before net/http knows of
// the request.
type asking struct {
	context.Context
	first func()
}

func (c asking) Value(key any) any {
	c.first()
	return c.Context.Value(key)
}

// An attempt that expires without a connection waits for none, even in the instant before net/http
// knows of it.
func TestExpireWithoutAConnection(t *testing.T) {
	for _, when := range []string{"before net/http knows of it", "while it is dialled"} {
		t.Run(when, func(t *testing.T) {
			over := make(chan struct{})
			a := &Exchange{Expires: true}
			late := sync.OnceFunc(func() { a.Expire(errLate) })
			b := NewBase(&http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
				late()
				<-over
				return nil, errors.New("the test is over")
			}})
			defer b.CloseIdleConnections()
			defer close(over)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // never, if all is well
			defer cancel()
			if when != "while it is dialled" {
				ctx = asking{ctx, late}
			}
			if _, err := finish(b.Send(shapes[0].request(ctx, "http://a.test", 1), a)); err != errLate || a.Written() || ctx.Err() != nil {
				t.Errorf("%v, written %v, waited for a connection: %v", err, a.Written(), ctx.Err() != nil)
			}
		})
	}
}

// An attempt that expires just as it gets its connection is not written.
func TestExpireWithAConnection(t *testing.T) {
	a := &Exchange{Expires: true}
	here, there := net.Pipe()
	defer there.Close()
	defer here.Close()
	if !a.got(&conn{Conn: here}, false) {
		t.Error("nothing has expired, and the connection is refused")
	}
	a.Expire(errLate)
	if a.got(&conn{Conn: here}, false) {
		t.Error("it has expired, and takes a connection")
	}
}

// Withdraw ends what is written, and what the server says after that still comes. Without an answer, Send returns its
// end. It does nothing before a request is written, once Send has returned or was stopped, and over HTTP/2.
func TestWithdraw(t *testing.T) {
	for _, base := range []func(http.RoundTripper) *Base{NewBase, func(rt http.RoundTripper) *Base { return Lines(rt.(*http.Transport)) }} {
		for _, answer := range []string{fine, ""} {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			a, withdrawn := &Exchange{Stops: true}, make(chan bool, 1)
			go func() {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				in := bufio.NewReader(c)
				if _, err := http.ReadRequest(in); err == nil {
					withdrawn <- a.Withdraw()
					_, _ = in.ReadByte() // until the client has gone
					_, _ = io.WriteString(c, answer)
				}
			}()
			b := base(plainTransport())
			if a.Withdraw() {
				t.Error("withdrawn before it was sent")
			}
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+ln.Addr().String(), nil)
			status, err := finish(b.Send(r, a))
			ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			if !<-withdrawn || answer == fine && (status != 200 || err != nil) || answer == "" && !ended {
				t.Errorf("after %q: %d, %v", answer, status, err)
			}
			if a.Withdraw() {
				t.Error("withdrawn after its end")
			}
			b.CloseIdleConnections()
			ln.Close()
		}
	}
}
