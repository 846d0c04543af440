package send

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"time"
)

// says is a leave that counts how often it is asked.
type says struct {
	yes   bool
	asked int
}

func (s *says) Fresh() bool { s.asked++; return s.yes }

// written writes n bytes of an attempt on an HTTP/1.1 connection; false: it must not.
func written(a *Exchange, n int) bool {
	if !a.begin() {
		return false
	}
	a.end(n)
	return true
}

// A lapsed leave stays lapsed for all of a trip, however often it is asked. The next trip asks
// anew, and after it no code does.
func TestLapsedStaysLapsed(t *testing.T) {
	leave := &says{}
	a := &Exchange{Leave: leave}
	if err := a.start(true); err != nil || !a.got(&conn{}, false) || leave.asked != 0 {
		t.Fatalf("a connection of ours asks when it is written to: %v, asked %d times", err, leave.asked)
	}
	if written(a, 1) {
		t.Error("written although the leave said no")
	}
	if leave.yes = true; written(a, 1) || a.got(&conn{}, false) || leave.asked != 1 {
		t.Errorf("written after the leave said no; asked %d times", leave.asked)
	}
	if err := a.failed(false); !errors.Is(err, ErrLapsed) || a.Written() {
		t.Errorf("%v, written %v", err, a.Written())
	}
	if err := a.start(true); err != nil || !a.got(&conn{}, false) || !written(a, 0) || !written(a, 1) || leave.asked != 3 {
		t.Errorf("the next trip: %v, asked %d times", err, leave.asked)
	}
	if !written(a, 1) || leave.asked != 3 { // what follows the first byte is not asked about
		t.Errorf("asked %d times", leave.asked)
	}
	if err := a.start(true); !errors.Is(err, ErrTwice) {
		t.Errorf("a third trip, after a byte has left: %v", err)
	}
	b := &Exchange{Leave: leave}
	if err := b.start(true); err != nil || !b.got(&conn{}, false) {
		t.Fatal(err)
	}
	b.returns()
	if written(b, 1) || leave.asked != 3 {
		t.Errorf("written after Send returned; asked %d times", leave.asked)
	}
}

// The leftovers of a trip over a stream say nothing of the next trip.
func TestEachTripBeginsAnew(t *testing.T) {
	a := &Exchange{}
	if err := a.start(true); err != nil || !a.got(nil, true) || a.Written() {
		t.Fatalf("a stream of which nothing is written: %v, %v", err, a.Written())
	}
	if err := a.failed(false); err != nil || a.Written() {
		t.Fatalf("%v, %v", err, a.Written())
	}
	if err := a.start(true); err != nil {
		t.Fatal(err)
	}
	if a.wroteField("", nil); a.Written() { // before there is a connection it is one to come
		t.Error("written before there is a connection")
	}
	if err := a.failed(true); err != nil || a.Written() {
		t.Errorf("given up before there was a connection: %v, %v", err, a.Written())
	}
	if err := a.start(true); err != nil || !a.got(nil, true) {
		t.Fatal(err)
	}
	before := time.Now()
	a.wroteField("", nil)
	a.wroteRequest(httptrace.WroteRequestInfo{Err: errors.New("half of it")})
	if yes, began, rtt := a.Times(time.Now().Add(time.Hour)); !yes || began.Before(before) || rtt != 0 || a.wholly() {
		t.Errorf("half of a request: %v, %v, %v", yes, began.Sub(before), rtt)
	}
	a.wroteRequest(httptrace.WroteRequestInfo{})
	if yes, _, rtt := a.Times(time.Now().Add(time.Hour)); !yes || rtt < time.Hour || !a.wholly() {
		t.Errorf("all of a request: %v, answered after %v", yes, rtt)
	}
	if yes, _, rtt := a.Times(before); !yes || rtt != 0 {
		t.Errorf("answered before its end: %v, %v", yes, rtt)
	}
}

// A request is given up when its context has ended, or the channel of old is closed.
func TestGivenUp(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	closed := make(chan struct{})
	close(closed)
	for _, c := range []struct {
		ctx    context.Context
		cancel <-chan struct{}
		want   bool
	}{{t.Context(), nil, false}, {t.Context(), make(chan struct{}), false}, {t.Context(), closed, true}, {over, nil, true}, {over, make(chan struct{}), true}} {
		//lint:ignore SA1019 net/http heeds it
		if got := ended(c.ctx, &http.Request{Cancel: c.cancel}); got != c.want {
			t.Errorf("%v, %v: %v", c.ctx.Err(), c.cancel, got)
		}
	}
}

// A connection under TLS speaks the agreed protocol, ours or not, asked once or twice.
func TestSpeaksAsAgreed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	base := NewBase(&http.Transport{})
	for protocol, h2 := range map[string]bool{"h2": true, "http/1.1": false} {
		for _, isOurs := range []bool{true, false} {
			var below net.Conn
			below, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if isOurs {
				below = &conn{Conn: below}
			}
			c := tls.Client(below, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}})
			if err := c.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if own, got := base.look(c); got != h2 || (own != nil) != isOurs {
					t.Errorf("%s, ours %v: HTTP/2 %v, ours %v", protocol, isOurs, got, own != nil)
				}
			}
			c.Close()
		}
	}
}

// A Transport that says nothing of protocols speaks HTTP/1, and HTTP/2 if it did.
func TestProtocolsOfAClone(t *testing.T) {
	for _, c := range []struct {
		given *http.Transport
		h2    bool
	}{{&http.Transport{}, true}, {&http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}}, false}} {
		if p := clone(c.given).Protocols; !p.HTTP1() || p.HTTP2() != c.h2 {
			t.Errorf("HTTP/1 %v, HTTP/2 %v, want %v", p.HTTP1(), p.HTTP2(), c.h2)
		}
	}
}
