//go:build !linux

package forward

import "net"

// AckNow does nothing: on Linux alone, a socket has an option for it.
func AckNow(net.Conn) {}
