package proxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// listener bounds the number of open connections. It gives up a client that stops reading its
// answer.
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
	return &listener{Listener: l, slots: make(chan struct{}, b.Connections), stall: b.Stall, over: make(chan struct{}),
		open: map[*conn]struct{}{}}
}

// Accept implements net.Listener. It waits until there is room for a connection.
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

// look sets the near deadlines of all connections.
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
	lasts    atomic.Bool  // its client may read nothing for as long as it likes
	until    atomic.Int64 // the deadline of Writes, as Unix nanoseconds; 0: not known
	lengths  lengths
	turns    forward.Turns

	mu    sync.Mutex
	reads time.Time // the deadline of Reads; zero: none
	set   bool      // the deadline of Conn is set
}

// NetConn returns the connection within.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.turns.Reads(c.Conn, p)
	n, err := c.Conn.Read(p)
	c.turns.Came(n)
	c.lengths.scan(p[:n])
	return n, err
}

// soon is the distance at which a deadline of Reads is set in Conn. For each request net/http sets
// two deadlines that almost never pass. Each of them would wake a thread of the runtime.
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

// Last is for tunnels, whose clients may pause: no Write has a deadline any more.
func (c *conn) Last() error {
	c.lasts.Store(true)
	return c.SetWriteDeadline(time.Time{})
}

// Write implements net.Conn. A client that reads nothing for the longest stall is given up.
func (c *conn) Write(p []byte) (int, error) {
	c.turns.Writes()
	if c.lasts.Load() {
		return c.Conn.Write(p)
	}
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

// CloseWrite is for net/http. Between CloseWrite and Close, net/http waits a moment for the client
// to read the rest.
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
