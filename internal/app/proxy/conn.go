package proxy

import (
	"errors"
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

	mu      sync.Mutex
	open    map[*conn]struct{}
	looking bool // as long as any are open
}

func newListener(l net.Listener, b *Bounds) *listener {
	return &listener{Listener: l, slots: make(chan struct{}, b.Connections), stall: b.Stall, over: make(chan struct{}), open: map[*conn]struct{}{}}
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
	k := &conn{Conn: c, listener: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[k] = struct{}{}
	if !l.looking {
		l.looking = true
		time.AfterFunc(soon/2, l.look)
	}
	return k, nil
}

// look has the connections wait no longer whose deadlines are near.
func (l *listener) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		c.look()
	}
	if l.looking = len(l.open) > 0; l.looking {
		time.AfterFunc(soon/2, l.look)
	}
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
	until    atomic.Int64 // the deadline of Writes, as Unix nanoseconds; 0: not known

	mu    sync.Mutex
	reads time.Time // the deadline of Reads; zero: none
	set   bool      // Conn knows of it
}

// soon is how near a deadline of Reads has to be for Conn to be told of it. net/http sets two for each request that are nearly never reached, and each
// would wake a thread of the runtime to reckon with it.
const soon = time.Second

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = t
	if t.IsZero() || time.Until(t) > soon {
		if !c.set {
			return nil
		}
		c.set = false
		return c.Conn.SetReadDeadline(time.Time{})
	}
	c.set = true
	return c.Conn.SetReadDeadline(t)
}

func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.set && !c.reads.IsZero() && time.Until(c.reads) <= soon {
		c.set = true
		_ = c.Conn.SetReadDeadline(c.reads) // it fails if the connection is closed
	}
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetWriteDeadline implements net.Conn. It holds until the next Write.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.until.Store(0)
	return c.Conn.SetWriteDeadline(t)
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
		c.listener.mu.Lock()
		delete(c.listener.open, c)
		c.listener.mu.Unlock()
		<-c.listener.slots
	}
	return err
}
