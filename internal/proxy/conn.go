package proxy

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// listener has a bounded number of connections open, of which none may take for ever to take what is written to it.
type listener struct {
	net.Listener
	slots chan struct{}
	stall time.Duration
	over  chan struct{}
	once  sync.Once
}

func newListener(l net.Listener, b *Bounds) *listener {
	return &listener{Listener: l, slots: make(chan struct{}, b.Connections), stall: b.Stall, over: make(chan struct{})}
}

// Accept implements net.Listener. It waits until fewer connections are open than may be.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.over:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &conn{Conn: c, listener: l}, nil
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.over) })
	return l.Listener.Close()
}

// conn is a client's connection.
type conn struct {
	net.Conn
	listener *listener
	closed   atomic.Bool
	until    atomic.Int64 // the deadline of Writes, as Unix nanoseconds
}

// Write implements net.Conn. A client that takes nothing for as long as a stall may last is given up.
func (c *conn) Write(p []byte) (int, error) {
	stall := c.listener.stall
	now := time.Now()
	if until := now.Add(stall); until.UnixNano()-c.until.Load() > int64(stall/8) {
		c.until.Store(until.UnixNano())
		if err := c.Conn.SetWriteDeadline(until); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// CloseWrite is for net/http, which waits a moment between that and Close, for what it wrote to be read.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	if !c.closed.Swap(true) {
		<-c.listener.slots
	}
	return err
}
