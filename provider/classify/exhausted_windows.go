package classify

import "syscall"

// By the numbers of Winsock: WSAEMFILE, WSAEADDRNOTAVAIL, WSAENOBUFS.
var exhausted = []error{syscall.Errno(10024), syscall.Errno(10049), syscall.Errno(10055)}
