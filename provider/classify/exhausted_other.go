//go:build !windows

package classify

import "syscall"

var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS}
