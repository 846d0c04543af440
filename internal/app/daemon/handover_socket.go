//go:build unix

package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// HandoverSocket is where a process waits for the next one. Listen makes it.
type HandoverSocket struct {
	path     string
	fresh    string // the file before it is at path
	listener *net.UnixListener
	about    os.FileInfo // of the file at path
	requests *requests
	next     chan *Successor
	done     sync.WaitGroup
}

// takes is the first byte of a connection that asks for a handover. No request begins with it.
const takes = 0

// greeting is how long a new connection may say nothing.
const greeting = 10 * time.Second

// ListenForHandover opens a HandoverSocket for path. Serve or HandOver puts it there.
func ListenForHandover(path string) (*HandoverSocket, error) {
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	_ = os.Remove(fresh)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: fresh})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // by then, the next process may have its own there
	s := &HandoverSocket{path: path, fresh: fresh, listener: l, requests: &requests{at: l.Addr(), conns: make(chan net.Conn), over: make(chan struct{})},
		next: make(chan *Successor)}
	err = os.Chmod(fresh, 0o600)
	if err == nil {
		s.about, err = os.Lstat(fresh)
	}
	if err != nil {
		l.Close()
		_ = os.Remove(fresh)
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Serve accepts connections until Close. Without a former process, it puts the socket at its path. Otherwise it
// reports that this process serves, and the former one puts the socket there. A socket of a process that lives
// stays. So a next process that fails at
// any moment leaves the former one's socket at the path, for another takeover.
func (s *HandoverSocket) Serve(from *Predecessor) error {
	if from == nil {
		if c, err := DialHandover(context.Background(), s.path); err == nil {
			c.Close()
			return fmt.Errorf("%s is in use by another process; expected another path, or a takeover", s.path)
		}
	}
	s.done.Go(func() {
		for {
			c, err := s.listener.AcceptUnix()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // such as too many open files: it passes
				time.Sleep(10 * time.Millisecond)
				continue
			}
			s.done.Go(func() { s.greet(c) })
		}
	})
	if from != nil {
		return from.ready(filepath.Base(s.fresh))
	}
	return os.Rename(s.fresh, s.path)
}

// HandOver waits until the next process serves, puts that one's socket at the path, and tells it so. After an
// error, the socket of this process is at the path as before.
func (s *HandoverSocket) HandOver(next *Successor, within time.Duration) error {
	file, err := next.ready(within)
	if err != nil {
		return err
	}
	own := s.path + ".former" // until the next process knows
	if err := os.Rename(s.path, own); err != nil {
		return err
	}
	if err = os.Rename(filepath.Join(filepath.Dir(s.path), file), s.path); err == nil {
		err = next.write([]byte(taken))
	}
	if err != nil {
		return errors.Join(err, os.Rename(own, s.path))
	}
	_ = os.Remove(own) // nothing connects there
	return nil
}

// greet reads the first byte of a connection, which says what it is for.
func (s *HandoverSocket) greet(c *net.UnixConn) {
	first := make([]byte, 1)
	_ = c.SetReadDeadline(time.Now().Add(greeting))
	if checkUser(c) != nil {
		c.Close()
		return
	}
	if _, err := io.ReadFull(c, first); err != nil {
		c.Close()
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if first[0] != takes {
		s.requests.put(&begun{UnixConn: c, first: first})
		return
	}
	select {
	case s.next <- &Successor{conn: c}:
	case <-s.requests.over:
		c.Close()
	}
}

// Next are the processes that want to take over, one after the other.
func (s *HandoverSocket) Next() <-chan *Successor { return s.next }

// Requests are connections with requests, of processes that have handed over. Closing them closes the
// Socket.
func (s *HandoverSocket) Requests() net.Listener { return s.requests }

// Close stops accepting, and removes the file unless it is another process's.
func (s *HandoverSocket) Close() {
	s.requests.Close()
	s.listener.Close()
	for _, path := range []string{s.fresh, s.path} {
		if about, err := os.Lstat(path); err == nil && os.SameFile(about, s.about) {
			_ = os.Remove(path)
		}
	}
	s.done.Wait()
}

// requests is a net.Listener of the connections that are no handovers.
type requests struct {
	at    net.Addr
	conns chan net.Conn
	over  chan struct{}
	once  sync.Once
}

func (r *requests) put(c net.Conn) {
	select {
	case r.conns <- c:
	case <-r.over:
		c.Close()
	}
}

// Accept implements net.Listener.
func (r *requests) Accept() (net.Conn, error) {
	select {
	case c := <-r.conns:
		return c, nil
	case <-r.over:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (r *requests) Close() error {
	r.once.Do(func() { close(r.over) })
	return nil
}

// Addr implements net.Listener.
func (r *requests) Addr() net.Addr { return r.at }

// begun is a connection whose first byte was read.
type begun struct {
	*net.UnixConn
	first []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) > 0 && len(p) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	return b.UnixConn.Read(p)
}

// Successor is a process that takes over.
type Successor struct {
	conn *net.UnixConn
	mu   sync.Mutex // held during writes
}

// Give makes the offer, and passes the sockets on. They stay open here, too.
func (s *Successor) Give(o Offer, sockets []syscall.Conn) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var fds []int
	return withFDs(sockets, &fds, func() error {
		var rights []byte
		if len(fds) > 0 {
			rights = syscall.UnixRights(fds...)
		}
		line = append(line, '\n')
		n, _, err := s.conn.WriteMsgUnix(line, rights, nil)
		if err == nil && n < len(line) {
			_, err = s.conn.Write(line[n:])
		}
		return err
	})
}

// withFDs calls f while the descriptors of all sockets are in use.
func withFDs(sockets []syscall.Conn, fds *[]int, f func() error) (err error) {
	if len(sockets) == 0 {
		return f()
	}
	raw, err := sockets[0].SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) {
		*fds = append(*fds, int(fd))
		err = withFDs(sockets[1:], fds, f)
	})
	return errors.Join(failed, err)
}

// ready returns when the next process serves, with the name of its socket's file, or with an error if it has
// ended, or is not ready in time.
func (s *Successor) ready(within time.Duration) (file string, err error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(within))
	line, err := bufio.NewReader(s.conn).ReadString('\n')
	file, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), readyAt)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", fmt.Errorf("the next process was not ready within %v", within)
	case err != nil:
		return "", errors.New("the next process has ended")
	case !is || file != filepath.Base(file):
		return "", fmt.Errorf("the next process answered %.40q", line)
	}
	return file, nil
}

const (
	readyAt = "ready at " // and the name of a file; said by the next process
	taken   = "taken\n"   // said by the former one: the next process has the path
)

// Report sends a value to the next process, as JSON.
func (s *Successor) Report(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(append(line, '\n'))
}

func (s *Successor) write(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.conn.SetWriteDeadline(time.Now().Add(greeting))
	_, err := s.conn.Write(line)
	return err
}

// Close ends the handover: there is nothing more to report.
func (s *Successor) Close() error { return s.conn.Close() }
