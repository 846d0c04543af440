//go:build unix

package send

import (
	"errors"
	"io"
	"syscall"
)

// canAsk: a read of a connection that has nothing returns at once.
const canAsk = true

// ask reads what has come.
func (t *tap) ask(fd uintptr) (done bool) {
	n, err := syscall.Read(int(fd), t.into)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Read(int(fd), t.into)
	}
	switch {
	case errors.Is(err, syscall.EAGAIN):
		t.n, t.err = 0, errQuiet
	case err == nil && n == 0:
		t.n, t.err = 0, io.EOF
	default:
		t.n, t.err = max(n, 0), err
	}
	return true
}
