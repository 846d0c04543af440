package forward

import (
	"net"
	"syscall"
)

// AckNow acknowledges what a client has sent and sends next, without the usual 40 ms in which the
// kernel waits for an answer to send along. The end of a client's handshake has no answer, and a client
// without TCP_NODELAY keeps its request until the acknowledgement. That lasts until an answer is sent.
func AckNow(c net.Conn) {
	for {
		within, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = within.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { // a socket that is not of TCP has no such option
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
}
