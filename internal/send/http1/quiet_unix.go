//go:build unix

package http1

import "syscall"

const supported = true

// quiet says whether there is nothing to read, and the other side has not closed the connection.
func quiet(fd uintptr) bool {
	var b [1]byte
	n, err := syscall.Read(int(fd), b[:])
	return n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK)
}
