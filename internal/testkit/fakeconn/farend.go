// Package fakeconn provides the server's end of connections in memory, for tests in virtual time. A
// Conn leads to a server that answers each request with a status. A Network is a listener for a
// server that the test itself provides. A test that needs only an http.Client and an http.Handler
// uses ratetest.InMemory, which has no connections.
package fakeconn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Conn returns a connection to a server that reads each request to its end, asks status, and
// answers with that and nothing else. Its goroutine ends with the connection, and is the only one
// that calls status.
func Conn(status func() int) net.Conn {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		for in := bufio.NewReader(server); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			code := status()
			fmt.Fprintf(server, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", code, http.StatusText(code))
		}
	}()
	return client
}

// Network is a listener to which its own Dial connects. It has to be made within the bubble of a test in virtual time.
type Network struct {
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

// New returns a Network that nobody has connected to.
func New() *Network { return &Network{conns: make(chan net.Conn), over: make(chan struct{})} }

// Accept implements net.Listener.
func (n *Network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It may be called again.
func (n *Network) Close() error { n.once.Do(func() { close(n.over) }); return nil }

// Addr implements net.Listener: an address of this machine, at which nobody listens.
func (n *Network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9999} }

// Dial connects to the listener, once that accepts, whatever the address.
func (n *Network) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case n.conns <- far:
		return near, nil
	case <-n.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// DialHalves is Dial, but the client can end the writing half of its connection, as over TCP.
func (n *Network) DialHalves(ctx context.Context, _, _ string) (net.Conn, error) {
	up, upFar := net.Pipe()
	down, downFar := net.Pipe()
	near, far := &halves{in: down, Conn: up}, &halves{in: upFar, Conn: downFar}
	select {
	case n.conns <- far:
		return closesHalf{near}, nil
	case <-n.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// halves is an end of two connections: one to read from, and the Conn to write to.
type halves struct {
	net.Conn
	in net.Conn
}

func (h *halves) Read(b []byte) (int, error) { return h.in.Read(b) }
func (h *halves) Close() error               { return errors.Join(h.in.Close(), h.Conn.Close()) }
func (h *halves) SetDeadline(t time.Time) error {
	return errors.Join(h.in.SetDeadline(t), h.Conn.SetDeadline(t))
}
func (h *halves) SetReadDeadline(t time.Time) error { return h.in.SetReadDeadline(t) }

type closesHalf struct{ *halves }

func (h closesHalf) CloseWrite() error { return h.Conn.Close() }
