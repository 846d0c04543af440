//go:build unix

package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// Peer is the process at the other end of a connection, as the kernel knows it.
type Peer struct{ PID, UID int }

// conn is a connection to the daemon, and the file that came with its first bytes.
type conn struct {
	*net.UnixConn
	peer Peer

	began bool // only one goroutine reads
	mu    sync.Mutex
	file  *os.File
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if c.began {
		return c.UnixConn.Read(p)
	}
	rights := make([]byte, syscall.CmsgSpace(4)) // one descriptor; the kernel closes further ones
	n, m, _, _, err := c.ReadMsgUnix(p, rights)
	if m > 0 {
		c.take(rights[:m])
	}
	if n <= 0 { // ReadMsgUnix has the results of the system call
		if err == nil && len(p) > 0 {
			err = io.EOF
		}
		return 0, err
	}
	c.began = true
	return n, err
}

func (c *conn) take(rights []byte) {
	messages, _ := syscall.ParseSocketControlMessage(rights)
	for i := range messages {
		all, _ := syscall.ParseUnixRights(&messages[i])
		for _, fd := range all {
			c.mu.Lock()
			c.file = os.NewFile(uintptr(fd), "the other end's")
			c.mu.Unlock()
		}
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	if f := c.taken(); f != nil {
		f.Close()
	}
	return c.UnixConn.Close()
}

func (c *conn) taken() (f *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, c.file = c.file, nil
	return f
}

// sender is a connection of a client that sends a file with its first bytes.
type sender struct {
	*net.UnixConn
	file *os.File
	once sync.Once
}

// Write implements net.Conn.
func (s *sender) Write(p []byte) (n int, err error) {
	s.once.Do(func() { n, _, err = s.WriteMsgUnix(p, syscall.UnixRights(int(s.file.Fd())), nil) })
	if err != nil || n == len(p) {
		return n, err
	}
	m, err := s.UnixConn.Write(p[n:])
	return n + m, err
}

type connKey struct{}

// PeerOf returns the process that sent a request.
func PeerOf(ctx context.Context) (Peer, bool) {
	c, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return Peer{}, false
	}
	return c.peer, true
}

// TakeFile returns the file that came with the connection of a request; nil: none came, or it was
// taken. The caller closes it.
func TakeFile(ctx context.Context) *os.File {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		return c.taken()
	}
	return nil
}

// checked returns a connection whose other end is a process of this user.
func checked(c *net.UnixConn) (*conn, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer Peer
	var asked error
	if err = raw.Control(func(fd uintptr) { peer, asked = peerOf(int(fd)) }); err == nil {
		err = asked
	}
	if err == nil && peer.UID != os.Getuid() {
		err = fmt.Errorf("the other end of %s is of another user (uid %d)", c.LocalAddr(), peer.UID)
	}
	return &conn{UnixConn: c, peer: peer}, err
}

// checkUser returns an error unless the other end of a connection is a process of this user, as the kernel
// knows it.
func checkUser(c *net.UnixConn) error {
	_, err := checked(c)
	return err
}

// listener accepts connections of this user's processes.
type listener struct{ *net.UnixListener }

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if own, err := checked(c); err == nil {
			return own, nil
		}
		c.Close()
	}
}
