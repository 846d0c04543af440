package durable

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock locks the file for this process. The lock ends with the process, in whatever way that ends.
// It is on a byte beyond every line, since a lock on Windows also keeps other processes from
// reading.
func lock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}

// unlock does nothing: the lock ends with the file's only handle, which no child process inherits.
func unlock(*os.File) error { return nil }
