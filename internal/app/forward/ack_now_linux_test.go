package forward

import (
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"
)

// AckNow reaches the socket through all that a Door puts around a connection.
func TestAckNow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	quick := func(set ...int) (is int) {
		t.Helper()
		err := raw.Control(func(fd uintptr) {
			for _, v := range set {
				if err := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, v); err != nil {
					t.Error(err)
				}
			}
			if is, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Error(err)
		}
		return is
	}
	for name, whole := range map[string]net.Conn{
		"bare": c, "of a tunnel": &headed{Conn: c}, "decrypted": tls.Server(&named{Conn: &headed{Conn: c}}, nil),
	} {
		if is := quick(0); is != 0 {
			t.Fatalf("%s: acknowledged at once before", name)
		}
		if AckNow(whole); quick() != 1 {
			t.Errorf("%s: not acknowledged at once", name)
		}
	}
	// A message in two parts is acknowledged between them, once, and the next message anew. A Read of one byte
	// waits for a client that is silent.
	whole := &prompt{Conn: c}
	part := make([]byte, 100)
	for _, step := range []struct {
		read  int // bytes; 0: Write
		quick int
	}{{100, 0}, {1, 0}, {100, 1}, {100, 0}, {0, 0}, {100, 0}, {100, 1}} {
		quick(0)
		if step.read == 0 {
			_, err = whole.Write(part)
		} else if _, err = client.Write(part[:step.read]); err == nil {
			_, err = io.ReadFull(whole, part[:step.read])
		}
		if is := quick(); is != step.quick || err != nil {
			t.Errorf("%+v: acknowledged at once: %d, %v", step, is, err)
		}
	}
	one, other := net.Pipe() // no socket
	AckNow(one)
	one.Close()
	other.Close()
}
