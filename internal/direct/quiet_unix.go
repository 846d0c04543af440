//go:build unix

package direct

import "syscall"

const supported = true

// quiet says whether there is nothing to read, nor an end.
func quiet(fd uintptr) bool {
	var b [1]byte
	n, err := syscall.Read(int(fd), b[:])
	return n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK)
}
