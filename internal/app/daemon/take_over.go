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
	"syscall"
	"time"
)

// Predecessor is the process that hands over. Take makes it.
type Predecessor struct {
	Offer
	conn  *net.UnixConn
	lines *bufio.Reader
	files []*os.File // by Offer.Sockets; nil: taken
}

// mostSockets is how many sockets may go over.
const mostSockets = 16

// TakeOver asks the process that listens at path to hand over, and waits for its sockets. It returns
// ErrNoPredecessor if there is no such process.
func TakeOver(ctx context.Context, path string) (*Predecessor, error) {
	c, err := DialHandover(ctx, path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("%w: none listens at %s", ErrNoPredecessor, path)
	}
	if err != nil {
		return nil, err
	}
	p := &Predecessor{conn: c}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err = p.take(); err == nil && p.Refused != "" {
		err = fmt.Errorf("the process %d does not hand over: %s", p.PID, p.Refused)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// take sends the first byte, and reads the offer.
func (p *Predecessor) take() error {
	if _, err := p.conn.Write([]byte{takes}); err != nil {
		return err
	}
	rights := &received{UnixConn: p.conn}
	p.lines = bufio.NewReader(rights)
	line, err := p.lines.ReadBytes('\n')
	p.files = rights.files
	if err != nil {
		return fmt.Errorf("the former process gave no offer: %w", err)
	}
	if err := json.Unmarshal(line, &p.Offer); err != nil {
		return fmt.Errorf("the offer of the former process: %w", err)
	}
	if len(p.files) != len(p.Sockets) {
		return fmt.Errorf("%d sockets came of the former process, expected %d", len(p.files), len(p.Sockets))
	}
	return nil
}

// received is a connection that keeps the files which come with its bytes.
type received struct {
	*net.UnixConn
	files []*os.File
}

// Read implements io.Reader.
func (r *received) Read(b []byte) (int, error) {
	rights := make([]byte, syscall.CmsgSpace(4*mostSockets))
	n, m, _, _, err := r.ReadMsgUnix(b, rights)
	messages, _ := syscall.ParseSocketControlMessage(rights[:max(m, 0)])
	for i := range messages {
		fds, _ := syscall.ParseUnixRights(&messages[i])
		for _, fd := range fds {
			syscall.CloseOnExec(fd)
			r.files = append(r.files, os.NewFile(uintptr(fd), "a listener"))
		}
	}
	if n <= 0 && err == nil {
		err = io.EOF
	}
	return max(n, 0), err
}

// Listener returns the socket of a use, if the former process has opened it for the same address, or
// if address is empty. Each is returned once. nil: there is none.
func (p *Predecessor) Listener(use, address string) (net.Listener, error) {
	f := p.File(use, address)
	if f == nil {
		return nil, nil
	}
	defer f.Close()
	return net.FileListener(f)
}

// File is Listener for what is no socket, such as a lock. nil: there is none.
func (p *Predecessor) File(use, address string) *os.File {
	for i, s := range p.Sockets {
		if s.Use == use && (address == "" || s.Address == address) && i < len(p.files) && p.files[i] != nil {
			f := p.files[i]
			p.files[i] = nil
			return f
		}
	}
	return nil
}

// ready reports that this process serves, with its socket in a file, and closes the listeners that it has not
// taken. It returns once the former process has put the file at the path.
func (p *Predecessor) ready(file string) error {
	p.closeFiles()
	if _, err := io.WriteString(p.conn, readyAt+file+"\n"); err != nil {
		return err
	}
	_ = p.conn.SetReadDeadline(time.Now().Add(greeting))
	line, err := p.lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the former process did not hand over: %w", err)
	}
	if line != taken {
		return fmt.Errorf("the former process answered %.40q", line)
	}
	return p.conn.SetReadDeadline(time.Time{})
}

// Each calls f for each value that the former process reports, until that has ended. An error of f, or
// a value that is none, ends it.
func (p *Predecessor) Each(f func(value []byte) error) error {
	for {
		line, err := p.lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(line)
		}
		if err != nil {
			return err
		}
	}
}

func (p *Predecessor) closeFiles() {
	for i, f := range p.files {
		if f != nil {
			f.Close()
			p.files[i] = nil
		}
	}
}

// Close ends the handover. Before it is complete, the former process goes on.
func (p *Predecessor) Close() error {
	p.closeFiles()
	return p.conn.Close()
}

// predecessorPatience is how long a process may take to accept a connection.
const predecessorPatience = 10 * time.Second

// DialHandover connects to the process that listens at path now, which must be this user's.
func DialHandover(ctx context.Context, path string) (*net.UnixConn, error) {
	c, err := (&net.Dialer{Timeout: predecessorPatience}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	u := c.(*net.UnixConn)
	if err := checkUser(u); err != nil {
		u.Close()
		return nil, err
	}
	return u, nil
}
