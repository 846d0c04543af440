package send

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
)

// pipes is a network within the process, for virtual time.
type pipes struct {
	*fakeconn.Network
	// wrap changes the client's end of the n-th connection, from 1.
	wrap func(n int, c net.Conn) net.Conn
	n    int
}

func (p *pipes) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := p.Dial(ctx, network, address)
	if p.n++; err == nil && p.wrap != nil {
		c = p.wrap(p.n, c)
	}
	return c, err
}

// virtually runs f with a Base that speaks to a server in virtual time.
func virtually(t *testing.T, h2 bool, h http.HandlerFunc, f func(t *testing.T, b *Base, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := &pipes{Network: fakeconn.New()}
		protocols := new(http.Protocols)
		protocols.SetHTTP1(!h2)
		protocols.SetUnencryptedHTTP2(h2)
		srv := &http.Server{Handler: h, Protocols: protocols}
		over := make(chan error)
		go func() { over <- srv.Serve(network) }()
		b := NewBase(&http.Transport{DialContext: network.dial, Protocols: protocols})
		f(t, b, network)
		b.CloseIdleConnections()
		srv.Close()
		<-over
		synctest.Wait()
	})
}

// slow is a body of which the parts come after each other.
type slow struct {
	parts []string
	pause time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	time.Sleep(s.pause)
	n := copy(b, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

// A body that is slow to say that it has ended: its last byte left long before, and that is when the round trip begins.
func TestSlowEnd(t *testing.T) {
	handler := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(5 * time.Second)
	}
	virtually(t, false, handler, func(t *testing.T, b *Base, _ *pipes) {
		body, in := io.Pipe()
		const size = 100_000
		go func() {
			in.Write(make([]byte, size))
			time.Sleep(3 * time.Second)
			in.Close()
		}()
		r, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://a.test/", body)
		r.ContentLength = size
		a := new(Exchange)
		if _, err := finish(b.Send(r, a)); err != nil {
			t.Fatal(err)
		}
		if _, _, rtt := a.Times(time.Now()); rtt != 5*time.Second {
			t.Errorf("round trip %v, want 5s", rtt)
		}
	})
}

func TestTimes(t *testing.T) {
	whole := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(time.Second)
	}
	header := func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Second)
		c := http.NewResponseController(w)
		c.EnableFullDuplex() // else it reads the body before it answers
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		c.Flush()
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		body    io.Reader
		began   time.Duration
		rtt     time.Duration
	}{
		{"a GET", whole, nil, 0, time.Second},
		{"a body", whole, bytes.NewReader(make([]byte, 10_000)), 0, time.Second},
		{"a slow body", whole, &slow{[]string{"a", "b", "c"}, time.Minute}, 0, time.Second},
		{"answered before its end", header, &slow{[]string{"a", "b", "c"}, time.Minute}, 0, 0},
	} {
		for _, h2 := range []bool{false, true} {
			virtually(t, h2, c.handler, func(t *testing.T, b *Base, _ *pipes) {
				for range 2 { // on a new connection, and on one that is kept
					began := time.Now()
					r, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://a.test/", c.body)
					if s, ok := c.body.(*slow); ok {
						r.Body = io.NopCloser(&slow{s.parts, s.pause})
					}
					a := new(Exchange)
					resp, err := b.Send(r, a)
					if err != nil {
						t.Fatal(err)
					}
					written, at, rtt := a.Times(time.Now())
					finish(resp, nil)
					if !written || !at.Equal(began) || rtt != c.rtt {
						t.Errorf("%s, HTTP/2 %v: written %v, began after %v, round trip %v, want %v", c.name, h2, written, at.Sub(began), rtt, c.rtt)
					}
					time.Sleep(10 * time.Minute)
				}
			})
		}
	}
}

// failing is a connection whose Writes fail from the n-th on, after some bytes.
type failing struct {
	net.Conn
	n, bytes int
	before   time.Duration
}

var errFailing = errors.New("failing")

func (f *failing) Write(b []byte) (int, error) {
	time.Sleep(f.before)
	if f.n--; f.n > 0 {
		return f.Conn.Write(b)
	}
	n := 0
	if f.bytes > 0 {
		n, _ = f.Conn.Write(b[:min(f.bytes, len(b))])
	}
	return n, errFailing
}

// A write that takes long is no part of the round trip.
func TestSlowWrite(t *testing.T) {
	handler := func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }
	virtually(t, false, handler, func(t *testing.T, b *Base, p *pipes) {
		p.wrap = func(n int, in net.Conn) net.Conn { return &failing{Conn: in, n: 100, before: time.Minute} }
		a := new(Exchange)
		if _, err := finish(b.Send(shapes[0].request(t.Context(), "http://a.test", 1), a)); err != nil {
			t.Fatal(err)
		}
		if _, _, rtt := a.Times(time.Now()); rtt != time.Second {
			t.Errorf("round trip %v, want 1s", rtt)
		}
	})
}

// A request that net/http sends again, because not a byte was written, is sent. It began at that
// second write. Where a byte was written, it is not sent again.
func TestNothingWritten(t *testing.T) {
	for _, c := range []struct {
		bytes   int
		arrived int
	}{{0, 2}, {1, 1}} {
		arrived := 0
		handler := func(http.ResponseWriter, *http.Request) { arrived++ }
		virtually(t, false, handler, func(t *testing.T, b *Base, p *pipes) {
			p.wrap = func(n int, in net.Conn) net.Conn {
				if n == 1 {
					return &failing{Conn: in, n: 2, bytes: c.bytes, before: time.Second}
				}
				return in
			}
			if _, err := finish(b.Send(shapes[1].request(t.Context(), "http://a.test", 1), new(Exchange))); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			was := time.Now()
			a := new(Exchange)
			_, err := finish(b.Send(shapes[1].request(t.Context(), "http://a.test", 2), a))
			written, began, rtt := a.Times(time.Now())
			if !written || arrived != c.arrived || (err == nil) != (c.arrived == 2) || rtt != 0 {
				t.Errorf("%d bytes written: %v, written %v, %d arrived, round trip %v", c.bytes, err, written, arrived, rtt)
			}
			if want := time.Duration(1-c.bytes) * time.Second; began.Sub(was) != want {
				t.Errorf("%d bytes written: began after %v, want %v", c.bytes, began.Sub(was), want)
			}
		})
	}
}

// A Write that never returns may have written.
func TestStuck(t *testing.T) {
	virtually(t, false, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, b *Base, p *pipes) {
		p.wrap = func(n int, in net.Conn) net.Conn { return &failing{Conn: in, n: 1, before: time.Hour} }
		a := new(Exchange)
		over := make(chan error)
		go func() {
			_, err := finish(b.Send(shapes[0].request(t.Context(), "http://a.test", 1), a))
			over <- err
		}()
		time.Sleep(time.Minute)
		if !a.Written() {
			t.Error("it is being written, and counts as not written")
		}
		if err := <-over; err == nil || a.Written() {
			t.Errorf("%v, written %v", err, a.Written())
		}
	})
}

// Over HTTP/2 an attempt that waits for a place in its connection was not written; one that is given up may be.
func TestStreamGivenUp(t *testing.T) {
	a := new(Exchange)
	if a.start(true) != nil || !a.got(nil, true) || a.Written() {
		t.Error("a stream that has not begun counts as written")
	}
	if a.failed(true); !a.Written() {
		t.Error("a stream that was given up may be just beginning, and does not count as written")
	}
}

// A request that net/http had written to its end, to a buffer, and begins anew on another connection, is not whole.
func TestBeginsAnew(t *testing.T) {
	a := new(Exchange)
	if a.start(true) != nil || !a.got(&conn{}, false) {
		t.Fatal("refused")
	}
	a.wroteRequest(httptrace.WroteRequestInfo{})
	if !a.got(&conn{}, false) || a.wholly() {
		t.Error("a request of which nothing was written is whole on its next connection, or refused")
	}
}

// A connection on which an attempt is refused is not written to: the context would be read too
// late. A connection of HTTP/2 is also used by others.
func TestRefusedConnection(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		here, there := net.Pipe()
		go io.Copy(io.Discard, there)
		ctx, cancel := context.WithCancelCause(t.Context())
		in := &trip{base: &Base{clearText: h2}, attempt: &Exchange{left: true}, cancel: cancel}
		in.got(httptrace.GotConnInfo{Conn: &conn{Conn: here}})
		if context.Cause(ctx) != ErrTwice {
			t.Error("the request goes on to the next connection")
		}
		if _, err := here.Write([]byte("GET")); (err == nil) != h2 {
			t.Errorf("HTTP/2 %v: write to a connection that it was refused on: %v", h2, err)
		}
		here.Close()
	}
}
