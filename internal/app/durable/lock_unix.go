//go:build unix && !aix && !solaris

package durable

import (
	"os"
	"syscall"
)

// lock locks the file for this process. The lock ends with the process, in whatever way that ends.
func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
