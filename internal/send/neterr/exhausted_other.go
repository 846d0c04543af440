//go:build !windows

package neterr

import "syscall"

var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS}
