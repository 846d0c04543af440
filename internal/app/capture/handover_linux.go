package capture

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// handed are the listeners of a namespace. They are handed over in this order, each with its letter.
type handed struct {
	tcp   []net.Listener // all connections, by IPv4 and, where it is there, by IPv6
	names net.PacketConn
	asked net.Listener // names by TCP
}

// handIn is how long the two sides wait for one another.
const handIn = 10 * time.Second

// taken is what the proxy answers when it serves.
const taken = "taken"

// give hands listeners over, and waits until the other side serves them.
func give(socket, letters string, files []*os.File) error {
	c, err := net.DialTimeout("unix", socket, handIn)
	if err != nil {
		return fmt.Errorf("the proxy of this run: %w", err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(handIn))
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte(letters), syscall.UnixRights(fds...), nil); err != nil {
		return fmt.Errorf("listeners for the proxy of this run: %w", err)
	}
	said := make([]byte, 512)
	n, err := c.Read(said)
	switch {
	case err != nil:
		return fmt.Errorf("the proxy of this run: %w", err)
	case string(said[:n]) != taken:
		return errors.New(string(said[:n]))
	}
	return nil
}

// take waits for listeners. answer lets the other side go on, or says what is wrong.
func take(l *net.UnixListener) (h handed, answer func(error), err error) {
	c, err := l.AcceptUnix()
	if err != nil {
		return h, nil, err
	}
	_ = c.SetDeadline(time.Now().Add(handIn))
	answer = func(err error) {
		text := taken
		if err != nil {
			text = err.Error()
		}
		_, _ = c.Write([]byte(text))
		c.Close()
	}
	const most = 8
	letters, rights := make([]byte, most), make([]byte, syscall.CmsgSpace(4*most))
	n, oob, _, _, err := c.ReadMsgUnix(letters, rights)
	if err == nil {
		h, err = opened(string(letters[:n]), rights[:oob])
	}
	if err != nil {
		answer(err)
		h.close()
	}
	return h, answer, err
}

// opened makes listeners of what came.
func opened(letters string, rights []byte) (h handed, err error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return h, err
	}
	var fds []int
	for _, m := range messages {
		more, err := syscall.ParseUnixRights(&m)
		if err != nil {
			return h, err
		}
		fds = append(fds, more...)
	}
	if len(fds) != len(letters) || len(fds) == 0 {
		err = fmt.Errorf("%d listeners came with the letters %q", len(fds), letters)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "listener") // closed below, as the net package has its own copy
		if err == nil {
			err = h.add(letters[i], f)
		}
		f.Close()
	}
	return h, err
}

func (h *handed) add(letter byte, f *os.File) (err error) {
	var l net.Listener
	switch letter {
	case 'u':
		h.names, err = net.FilePacketConn(f)
	case 'n':
		h.asked, err = net.FileListener(f)
	case '4', '6':
		if l, err = net.FileListener(f); err == nil {
			h.tcp = append(h.tcp, l)
		}
	default:
		err = fmt.Errorf("a listener of the letter %q", letter)
	}
	return err
}

func (h *handed) close() {
	for _, l := range h.tcp {
		l.Close()
	}
	if h.names != nil {
		h.names.Close()
	}
	if h.asked != nil {
		h.asked.Close()
	}
}
