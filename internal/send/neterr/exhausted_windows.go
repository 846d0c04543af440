package neterr

import "syscall"

// As Winsock numbers them: WSAEMFILE, WSAEADDRNOTAVAIL, WSAENOBUFS.
var exhausted = []error{syscall.Errno(10024), syscall.Errno(10049), syscall.Errno(10055)}
